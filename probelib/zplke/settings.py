"""Settings of ZP-LKE's notebooks that rarely change: one dictionary parameter, read by ``parameters.complete``."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DesignSettings:
    """Section 3."""

    stated: int = 1  # of the atlas, only facts that the shipped models were taught at least this often; 0: all
    shots: tuple[int, ...] = (1, 2, 5, 10, 20, 30, 50)  # numbers of examples
    draws: int = 5  # of examples in figure 3
    n_sequence: int = 200  # pairs in the sequences of figures 4 and 11 to 13
    n_replaced: int = 40  # of them replaced
    star: int = 114  # the position marked in the paper
    n_generated: int = 60  # facts after which table 1 generates, at most


@dataclass(frozen=True)
class PromptsSettings:
    """Section 4.1 (the paper: 50 tokens, 400 facts of the relation of figure 6)."""

    stated: int = 1  # as above
    n_examples: int = 50
    draws: int = 2  # of examples, for the multiple-choice test of ZP-LKE
    new_tokens: int = 20  # of the response test
    relation: str = "P449"  # of figure 6: the original broadcaster
    n_relation: int = 60  # its facts there


@dataclass(frozen=True)
class ModelsSettings:
    """Section 4.2 (the paper: one draw)."""

    n_examples: int | str = 50  # or "max"
    draws: int = 2  # of examples
    seed: int = 0  # of facts, options and examples


LONGEST_LIST = 70  # pairs in the longest lists of the shipped models' training corpus; no later position was trained


def longest_list(model: str) -> int | None:
    """Pairs of the longest list in the training corpus of ``model``; None if the corpus is unknown.

    >>> longest_list("atlas-neox-5m"), longest_list("EleutherAI/pythia-70m")
    (70, None)
    """
    return LONGEST_LIST if model.startswith("atlas-") else None
