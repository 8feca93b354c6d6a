"""Settings of a study of the Distractors paper that rarely change: one dictionary parameter in the notebooks."""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class DistractorSettings:
    """What is scored; the defaults are the paper's (section 4.2) unless a line says otherwise.

    n_sentences     cloze sentences per fact
    n_distractors   distractors per fact (section 4.1: 100)
    next_tokens     most probable next tokens that Precision@n reads
    widths          widths of the beams that ROUGE-L and BERT-score read
    judge_width     widest of these beams that the judge reads
    ending          what ends a label, see ``measures.ENDINGS``
    rated_facts     facts per relation that have ratings, or "all" (the kit's default; the paper has 210 facts in all)
    ratings_file    human ratings (wikidata_triples_to_human_scores.json); None: how often the model was taught each fact
    verbalizations  annotated sentences (taxonomy.csv); None: sentences with errors made by rule
    studied         the model of figures 3, 4 and 6, where several are loaded; None: the last one
    n_former        facts per relation of the set S', whose subjects had another object before
    n_optimum       facts for which the exact search runs (the kit's: the paper does not run it)
    timings         runs per measure when its cost is measured (the kit's)
    dtype           of the weights: "auto", "float32", "bfloat16" or "float16"
    seed            of random distractors and of facts
    """

    n_sentences: int = 5
    n_distractors: int = 200
    next_tokens: int = 200
    widths: tuple[int, ...] = (1, 2, 5, 10, 20, 30, 50, 100)
    judge_width: int = 5
    ending: str = "eos"
    rated_facts: int | str = 6
    ratings_file: str | None = None
    verbalizations: str | None = None
    studied: str | None = None
    n_former: int = 100
    n_optimum: int = 60
    timings: int = 3
    dtype: str = "auto"
    seed: int = 0


class Study(NamedTuple):
    """The facts about a study that its captions state.

    model        display name of the model
    reference    what the measures are compared with, in words (``annotated.rated``)
    settings     what was scored
    substitutes  names of the measures whose second model replaces the paper's
    """

    model: str
    reference: str
    settings: DistractorSettings
    substitutes: tuple[str, ...] = ()
