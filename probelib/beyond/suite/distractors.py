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


@shared
def _scored(model, questions, folder) -> Study:
    """The study with the strategies that need no model."""
    return _study(model, questions, folder, FREE)


@shared
def _searched(model, questions, folder) -> Study:
    """``_scored`` with ApprOpt, whose searches are the most expensive."""
    return _study(model, questions, folder, (*FREE, "appropt"))


def _study(model, questions, folder, strategies: tuple[str, ...] = (), **second) -> Study:
    how = DistractorSettings(
        n_distractors=questions.n,
        seed=questions.seed,
        next_tokens=questions.n,
        widths=(WIDTH,),
        judge_width=WIDTH,
    )
    return Study(
        model,
        questions.kb,
        questions.facts,
        questions.sentences(),
        folder,
        how,
        strategies,
        **second,
    )


def _at_n(model, questions, folder, strategy: str, aggregate: str) -> tuple[pd.Series, float]:
    """Min@n or Avg@n per fact, mean over its sentences [distractors, Eq. 2 and 3]."""
    study = (_scored if strategy in FREE else _searched)(model, questions, folder)
    outcomes = study.outcomes[strategy]
    table = distractors.over_sentences(distractors.aggregated(outcomes, aggregate))
    return table[outcomes.columns[-1]], _tokens(model, questions, folder, strategy)


@shared
def _tokens(model, questions, folder, strategy: str) -> float:
    """Tokens per fact of a strategy. Min@n and Avg@n share its distractors and searches."""
    rows = questions.facts.facts
    if strategy in FREE:
        rivals = [retrieval.retrieve(questions.kb, rows, strategy, questions.n, questions.seed)]
        searched = 0.0
    else:
        cost = _searched(model, questions, folder).lists[strategy].attrs["cost"]
        rivals, searched = [], cost["forwarded_tokens"] / len(rows)
    candidates = retrieval.candidates(questions.kb, rows, rivals)
    return searched + tokens_per_fact(model, questions.sentences(), candidates, end=True)


for _strategy in (*FREE, "appropt"):
    for _aggregate in ("Min", "Avg"):
        measure(
            f"{_aggregate}@n {retrieval.NAMES[_strategy]}",
            paper="distractors",
            prompts="sentences",
            probability=_aggregate == "Avg",
            paraphrased=_strategy in FREE,
        )(partial(_at_n, strategy=_strategy, aggregate=_aggregate))


@measure("Probability", paper="distractors", prompts="sentences", paraphrased=True)
def probability_of_object(model, questions, folder):
    """Sum over the labels of the object [distractors, Table 2]. It can exceed 1 if one label begins another, so it does not count
    as a probability."""
    grid = distractor_scores.probability(_scored(model, questions, folder))
    candidates = retrieval.candidates(questions.kb, questions.facts.facts, [])
    return distractors.over_sentences(grid)["–"], tokens_per_fact(
        model, questions.sentences(), candidates
    )


@shared
def _decoded(model, questions, folder) -> Study:
    """The study whose generated texts these measures read."""
    return _study(model, questions, folder, encoder=questions.encoder, judge=questions.tuned)


def _of_text(model, questions, folder, name: str) -> tuple[pd.Series, float]:
    """A measure of generated text [distractors, Table 2]."""
    grid = distractor_scores.MEASURES[name](_decoded(model, questions, folder))
    values = distractors.over_sentences(grid).iloc[:, -1]
    return values, grid.attrs["cost"]["tokens"] / len(questions.facts.facts)


for _name, _needs in {
    "Precision@n": ("generation",),
    "ROUGE-L": ("generation",),
    "BERT-score": ("generation", "encoder"),
    "LLM-as-a-judge": ("generation", "tuned"),
}.items():
    measure(_name, paper="distractors", prompts="sentences", paraphrased=True, needs=_needs)(
        partial(_of_text, name=_name)
    )


@measure("KaRR", paper="distractors", prompts="statements")
def karr_per_fact(model, questions, folder):
    """KaRR, with its own templates [karr]."""
    grid = distractor_scores.karr(_decoded(model, questions, folder))
    return grid["–"], grid.attrs["cost"]["tokens"] / len(questions.facts.facts)
