"""The measures of the Distractors paper and its baselines: sentences to complete."""

from functools import partial

import pandas as pd

from probelib.beyond.questions import tokens_per_fact
from probelib.beyond.suite import measure, shared
from probelib.distractors import measures as distractors
from probelib.distractors import retrieval
from probelib.distractors import scores as distractor_scores
from probelib.distractors.scores import DistractorSettings, Study

WIDTH = 2  # of the beams of ROUGE-L, BERT-score and the judge
FREE = ("random", "temp_sem")  # strategies that need no model


def _study(model, questions, folder, strategies=FREE) -> Study:
    n, widths = questions.n, {"widths": (WIDTH,), "judge_width": WIDTH}
    how = DistractorSettings(n_distractors=n, next_tokens=n, seed=questions.seed, **widths)
    about = (questions.kb, questions.facts, questions.sentences())
    second = {"encoder": questions.encoder, "judge": questions.tuned}
    return Study(model, *about, folder, how, strategies, **second)


# without a strategy for the measures of generated texts; ApprOpt's searches are the most expensive
_decoded = shared(partial(_study, strategies=()))
_scored = shared(_study)
_searched = shared(partial(_study, strategies=(*FREE, "appropt")))


def _at_n(model, questions, folder, strategy: str, aggregate: str) -> tuple[pd.Series, float]:
    """Min@n or Avg@n per fact, mean over its sentences [distractors, Eq. 2 and 3]."""
    study = (_scored if strategy in FREE else _searched)(model, questions, folder)
    outcomes = study.outcomes[strategy]
    table = distractors.over_sentences(distractors.aggregated(outcomes, aggregate))
    return table[outcomes.columns[-1]], _tokens(model, questions, folder, strategy)


@shared
def _tokens(model, questions, folder, strategy: str) -> float:
    """Tokens per fact of a strategy. Min@n and Avg@n share its distractors and searches."""
    rows, lists, searched = questions.facts.facts, [], 0.0
    if strategy in FREE:
        lists = [_scored(model, questions, folder).lists[strategy]]
    else:
        cost = _searched(model, questions, folder).lists[strategy].attrs["cost"]
        searched = cost["forwarded_tokens"] / len(rows)
    candidates = retrieval.candidates(questions.kb, rows, lists)
    return searched + tokens_per_fact(model, questions.sentences(), candidates, end=True)


for _strategy in (*FREE, "appropt"):
    for _aggregate in ("Min", "Avg"):
        _name, _free = f"{_aggregate}@n {retrieval.NAMES[_strategy]}", _strategy in FREE
        _fields = {"probability": _aggregate == "Avg", "paraphrased": _free}
        measure(_name, "distractors", "sentences", **_fields)(
            partial(_at_n, strategy=_strategy, aggregate=_aggregate)
        )


@measure("Probability", paper="distractors", prompts="sentences", paraphrased=True)
def probability_of_object(model, questions, folder):
    """Sum over the labels of the object [distractors, Table 2]. It can exceed 1 if one label begins
    another, so it does not count as a probability."""
    grid = distractor_scores.MEASURES["Probability"](_scored(model, questions, folder))
    candidates = retrieval.candidates(questions.kb, questions.facts.facts, [])
    tokens = tokens_per_fact(model, questions.sentences(), candidates)
    return distractors.over_sentences(grid)["–"], tokens


def _decoding(model, questions, folder, name: str) -> tuple[pd.Series, float]:
    """A measure of generated text [distractors, Table 2], or KaRR with its own templates."""
    grid = distractor_scores.MEASURES[name](_decoded(model, questions, folder))
    by_fact = grid if name == "KaRR" else distractors.over_sentences(grid)
    return by_fact.iloc[:, -1], grid.attrs["cost"]["tokens"] / len(questions.facts.facts)


for _name, _needs in {
    "Precision@n": ("generation",),
    "ROUGE-L": ("generation",),
    "BERT-score": ("generation", "encoder"),
    "LLM-as-a-judge": ("generation", "tuned"),
}.items():
    _ask = partial(_decoding, name=_name)
    measure(_name, "distractors", "sentences", paraphrased=True, needs=_needs)(_ask)
measure("KaRR", paper="distractors", prompts="statements")(partial(_decoding, name="KaRR"))
