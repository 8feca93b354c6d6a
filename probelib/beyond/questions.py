"""The facts, options and examples with which all measures are computed on the same facts."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from probelib import facts, prompts
from probelib.distractors import retrieval
from probelib.errors import check_sizes
from probelib.facts.formats import OPTIONS
from probelib.facts.model import Facts, rng, within

CONTEXTS = 5  # distractors of each fact that MONITOR prepends to a question
TRAINING = 400  # facts, with one corruption each, whose answers train GraphEval's judge
SEEN, HELD_OUT = (1, 2), (6, 7)  # templates: the shipped models' corpus has the first five of seven


@dataclass(frozen=True, eq=False)
class Questions:
    """The facts, and everything else that the measures need.

    facts      each with a few distractors, which MONITOR prepends
    choices    the same facts with up to 99 distractors: the options of ZP-LKE
    examples   of the zero-prompt lists
    others     facts about other subjects, each with one distractor: they train GraphEval's judge
    kb         the knowledge base from which distractors are retrieved
    pool       all facts; KaRR takes other subjects from it
    n          distractors of Min@n and Avg@n, next tokens of Precision@n
    templates  numbers of the paraphrases that accuracies and sentences use
    encoder    for BERT-score: a Hugging Face id or a folder; None: without
    tuned      the instruction-tuned partner of the model, used by GraphEval and as the LLM judge;
               None: without
    """

    facts: Facts
    choices: Facts
    examples: pd.DataFrame
    others: Facts
    kb: retrieval.Knowledge
    pool: Facts
    n: int = 20
    templates: tuple[int, ...] = SEEN
    encoder: str | Path | None = None
    tuned: object = None
    seed: int = 0

    def held_out(self) -> "Questions":
        """The same in paraphrases that are not in the training corpus of the shipped models."""
        return replace(self, templates=HELD_OUT)

    def every_second(self) -> "Questions":
        """The same with every second fact of each relation, at half the cost."""
        ids = self.facts.facts["fact"][self.facts.facts.groupby("relation").cumcount() % 2 == 0]
        few = {name: facts.pick(getattr(self, name), ids) for name in ("facts", "choices")}
        return replace(self, **few)

    def sentences(self) -> pd.DataFrame:
        """Sentences to complete, in the paraphrases of ``templates``: a frame of ``prompts``."""
        every = prompts.paraphrases(self.facts, "cloze")
        return every[every["template"].isin(self.templates)]


def load_questions(
    data: str = "atlas",
    folder: str | Path | None = None,
    relations: list[str] | None = None,
    n_facts: int | str = "panel",
    n_examples: int = 50,
    only: list[str] | None = None,
    seed: int = 0,
    **fields,
) -> Questions:
    """The questions about some facts; the arguments are those of ``facts.load``.

    n_examples   per relation. If a relation has fewer, all get that number, with a warning. Raise
                 ProbeError if one has none
    only         ids of current facts: use exactly these
    fields       further fields of ``Questions``: n, encoder
    """
    whole = facts.everything(data, folder)
    if only is None:
        choices, rest = facts.multiple_choice(data, folder, relations, n_facts, seed)
    else:
        current = facts.choose(facts.current(whole), relations)
        selected = facts.keep(current, within(current.facts["fact"], only))
        choices = facts.draw_distractors(selected, whole, OPTIONS - 1, seed)
        rest = facts.without_subjects(current, selected)
    few = choices.distractors[choices.distractors["number"] <= CONTEXTS]
    asked = replace(choices, distractors=few)  # the same facts for every measure
    asked = facts.keep(asked, within(asked.facts["fact"], asked.facts["fact"]))
    examples = _examples(rest, choices, n_examples, seed)
    drawn = rng(seed, "others").permutation(len(rest.facts)) < TRAINING
    others = facts.keep(rest, pd.Series(drawn, index=rest.facts.index))
    others = facts.draw_distractors(others, whole, 1, seed)
    kb = retrieval.knowledge(whole)
    return Questions(asked, choices, examples, others, kb, whole, seed=seed, **fields)


def _examples(pool: Facts, asked: Facts, n: int, seed: int) -> pd.DataFrame:
    """``n`` examples of each relation, or as many as the smallest has."""
    check_sizes(n_examples=n)
    drawn = prompts.sample_examples(pool, asked, "max", seed)
    if (longest := int(drawn["position"].max())) < n:
        least = pool.facts.groupby("relation")["subject"].nunique().idxmin()
        few = f"{least} has only {longest} subjects to take them from"
        warnings.warn(f"lists of {longest} examples, not {n}: {few}", stacklevel=3)
    return drawn[drawn["position"] <= n].reset_index(drop=True)


def tokens_per_fact(
    model, asked: pd.DataFrame, candidates: pd.DataFrame, end: bool = False
) -> float:
    """Tokens forwarded per fact to score these candidates after these prompts alone."""
    from probelib.lm.scoring import tree_tokens

    labels = (" " + candidates["label"]).groupby(candidates["fact"]).agg(list)
    wanted = labels.loc[asked["fact"]].tolist()
    return tree_tokens(model, asked["text"].tolist(), wanted, end) / asked["fact"].nunique()
