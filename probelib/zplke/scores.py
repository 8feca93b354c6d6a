"""How ZP-LKE scores: its settings, the examples that fit, the models."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from probelib.errors import ProbeError
from probelib.facts import Facts
from probelib.lm.partners import family, pairs_with_base, tuned_pairs
from probelib.prompts import sample_examples

DECISIONS = {  # how pairs are written: (arguments of ``prompts.many_shots``, text before an option)
    "as here: a blank": ({}, " "),
    "a comma": ({"gap": ", "}, " "),
    "a line break": ({"gap": "\n"}, " "),
    "as released": ({"variant": "released"}, " : "),
}
LONGEST_LIST = 70  # pairs in the longest lists that the shipped models were trained on
# The requirements of notebook 02_models that every shipped model misses: lists and their pairs can
# harm only a model that reads the pairs; generated text tests only a model that answers in kind.
NO_LISTS = "permuted lists lower log P"
NO_TEXT = "never taught, answer of the right type"


@dataclass(frozen=True)
class DesignSettings:
    """Settings of section 3 that rarely change."""

    stated: int = 1  # of the atlas, only facts taught at least this often; 0: all
    shots: tuple[int, ...] = (1, 2, 5, 10, 20, 30, 50)  # numbers of examples
    draws: int = 5  # of examples in figure 3
    n_sequence: int = 200  # pairs in the sequences of figures 4 and 11 to 13
    n_replaced: int = 40  # of them replaced
    star: int = 114  # the position marked in the paper
    n_generated: int = 60  # facts after which table 1 generates, at most


@dataclass(frozen=True)
class PromptsSettings:
    """Settings of section 4.1 (the paper: 50 tokens, 400 facts of the relation of figure 6)."""

    stated: int = 1  # as above
    n_examples: int = 50
    draws: int = 2  # of examples, for the multiple-choice test of ZP-LKE
    new_tokens: int = 20  # of the response test
    relation: str = "P449"  # of figure 6: the original broadcaster
    n_relation: int = 60  # its facts there


@dataclass(frozen=True)
class ModelsSettings:
    """Settings of section 4.2 (the paper: one draw)."""

    n_examples: int | str = 50  # or "max"
    draws: int = 2  # of examples
    seed: int = 0  # of facts, options and examples


def shipped(model: str) -> bool:
    """Whether a model is one of the kit's, so that its training corpus is known."""
    return model.startswith("atlas-")


def shared_examples(
    facts: Facts | None,
    pool: Facts,
    models: Iterable = (),
    n_examples: int | str = 50,
    draws: int = 2,
    seed: int = 0,
) -> pd.DataFrame:
    """``draws`` draws of ``n_examples`` examples per relation: a frame of examples (``prompts``).

    facts, pool   ``facts.multiple_choice``; None: no fact is scored, the examples are
    models        loaded models, into whose contexts the longest list must fit; "max": the longest
                  list that fits into all
    """
    drawn = pd.concat([sample_examples(pool, facts, n_examples, seed + i) for i in range(draws)])
    fitting = [fit_examples(n_examples, drawn, facts, model) for model in models]
    return drawn[drawn["position"] <= min(fitting)] if fitting else drawn


def fit_examples(n: int | str, examples: pd.DataFrame, facts: Facts, model, room: int = 16) -> int:
    """Return ``n`` if lists of ``n`` examples fit into the model's context; with "max" the number
    that fits. Raise ProbeError if they do not fit.

    model   its context must hold the tokens around every text, the examples, the longest subject
            and ``room`` tokens of an object
    """
    length = lambda texts: [len(ids) for ids in model.tokens.encode(texts)]
    context = model.context - len(model.tokens.prompts(["a"])[0]) + length(["a"])[0]
    subjects = facts.facts.assign(label=facts.label(facts.facts["subject"]))
    longest = {
        relation: max(length([f" {label}" for label in labels]))
        for relation, labels in subjects.groupby("relation")["label"]
    }
    most = {}
    for (relation, _), shots in examples.groupby(["relation", "seed"]):
        pairs = zip(shots["subject"], shots["object"], strict=True)
        each = np.cumsum(length([f" {x} {y}" for x, y in pairs]))
        left = context - longest[relation] - room
        fitting = int(np.searchsorted(each, left, side="right"))
        most[relation] = min(fitting, most.get(relation, fitting))
    relation, fits = min(most.items(), key=lambda item: item[1])
    if n == "max":
        return fits
    if not isinstance(n, int) or not 0 < n <= fits:
        raise ProbeError(
            f"n_examples={n!r}: at most {fits} examples of relation {relation} are in the pool and "
            f"fit into the {model.context} tokens that the model reads; use a number from 1 to "
            f"{fits}, or 'max'"
        )
    return n


def bases(models: list[str], tuned: list[str]) -> dict[str, str]:
    """Fine-tuned model -> its base; "" if that is not among ``models``."""
    return dict.fromkeys(tuned_pairs(tuned), "") | dict(pairs_with_base(models, tuned))


def describe(models: dict, base_of: dict[str, str]) -> pd.DataFrame:
    """``model``, ``family``, ``kind`` (base or fine-tuned), ``base`` ("" for base models),
    ``parameters`` (without embeddings) and ``context`` (tokens) of loaded models; ``base_of``: see
    ``bases``."""
    table = pd.DataFrame({"model": list(models), "family": map(family, models)})
    table["kind"] = np.where(table["model"].isin(base_of), "fine-tuned", "base")
    table["base"] = table["model"].map(base_of).fillna("")
    table["parameters"] = [model.n_parameters for model in models.values()]
    return table.assign(context=[model.context for model in models.values()])
