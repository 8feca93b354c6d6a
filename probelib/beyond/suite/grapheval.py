"""GraphEval's measures: an instruction-tuned model answers whether a statement is true, and a judge predicts its answer from its
hidden states."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from probelib import grapheval, prompts, store
from probelib.beyond.questions import tokens_per_fact
from probelib.beyond.suite import measure, shared
from probelib.facts.model import Facts

WORDS = {
    grapheval.Answer.TRUE: "Yes",
    grapheval.Answer.FALSE: "No",
    grapheval.Answer.IDK: "I don't know",
}


class _Answers(NamedTuple):
    """Statements (a frame of prompts with ``statement`` and ``negative``), the shares of the three answers [statements, 3],
    and tokens per statement."""

    statements: pd.DataFrame
    share: np.ndarray
    tokens: float


def with_corruptions(asked: Facts) -> pd.DataFrame:
    """The facts and one corruption of each (its first distractor as object): ``negative`` is 0 or 1."""
    false = asked.facts.merge(
        asked.distractors[asked.distractors["number"] == 1][["fact", "object"]], on="fact"
    )
    false = false.drop(columns="object_x").rename(columns={"object_y": "object"})
    return pd.concat([asked.facts.assign(negative=0), false.assign(negative=1)], ignore_index=True)


def instructed_statements(asked: Facts, rows: pd.DataFrame, tuned) -> pd.DataFrame:
    """Facts (``rows``, right or corrupted) as statements (the first template) within GraphEval's instruction: a frame of prompts
    with ``statement`` and ``negative``."""
    templates = prompts.templates_of(asked, "statement", rows["relation"])
    rows = rows.merge(templates[templates["number"] == 1], on="relation", validate="many_to_one")
    before, after = prompts.split_instruction(tuned.chat(prompts.INSTRUCTION))
    names = zip(
        rows["template"], asked.label(rows["subject"]), asked.label(rows["object"]), strict=True
    )
    texts = [prompts.statement(*parts) for parts in names]
    ids = "asked|" + rows["fact"] + "|" + rows["object"]
    framed = [f"{before}{text}{after}" for text in texts]
    rows = rows.assign(
        prompt=ids, template=1, context="none", seed=-1, text=framed, statement=texts
    )
    return rows[[*prompts.PROMPTS, "statement", "negative"]]


def _options(statements: pd.DataFrame) -> pd.DataFrame:
    """The three answers as candidates of every statement."""
    rows = statements[["fact"]].drop_duplicates()
    return pd.concat(
        [rows.assign(candidate=int(answer), label=word) for answer, word in WORDS.items()]
    )


def _logprobs(tuned, statements: pd.DataFrame, folder) -> np.ndarray:
    """Log-probabilities of the three answers, [statements, 3]."""
    scores = store.score(tuned, statements[prompts.PROMPTS], _options(statements), folder)
    return (
        scores.pivot(index="prompt", columns="candidate", values="logprob")
        .loc[statements["prompt"]]
        .to_numpy()
    )


@shared
def _answered(model, questions, folder) -> _Answers:
    """The answers of the instruction-tuned model."""
    tuned = questions.tuned
    statements = instructed_statements(questions.facts, with_corruptions(questions.facts), tuned)
    logprobs = _logprobs(tuned, statements, folder)
    share = np.exp(logprobs - np.logaddexp.reduce(logprobs, axis=1, keepdims=True))
    true = statements[statements["negative"] == 0]
    return _Answers(statements, share, tokens_per_fact(tuned, true, _options(true)))


@shared
def _predicted(model, questions, folder) -> _Answers:
    """The answers that a judge predicts, trained on the model's answers about other facts. The tokens are those of the judged
    statements, without those of the training statements."""
    from probelib.grapheval import judge

    statements, _, _ = _answered(model, questions, folder)
    reader = judge.Reader(questions.tuned)
    others = instructed_statements(
        questions.others, with_corruptions(questions.others), questions.tuned
    )
    others = others.assign(relation="other statements")  # one part of the store
    labels = _logprobs(questions.tuned, others, folder).argmax(axis=1)
    states = reader.states(others["statement"].tolist())[0]
    how = {"epochs": 20, "batch": 64, "lr": 1e-3, "seed": questions.seed}
    trained = judge.train(states, labels, others["negative"] == 0, **how)
    states, cost = reader.states(statements["statement"].tolist())
    share = judge.predict(trained, states, statements["negative"] == 0)
    return _Answers(statements, share, cost["forwarded_tokens"] / len(statements))


def _p_true(answers: _Answers) -> tuple[pd.Series, float]:
    """The share of "yes" on the true statement."""
    true = (answers.statements["negative"] == 0).to_numpy()
    facts = answers.statements["fact"].to_numpy()[true]
    return pd.Series(answers.share[true, int(grapheval.Answer.TRUE)], index=facts), answers.tokens


def _correct(answers: _Answers) -> tuple[pd.Series, float]:
    """Eq. 2 over the true and the corrupted statement."""
    rows = pd.DataFrame(
        {"triple": answers.statements["fact"], "negative": answers.statements["negative"]}
    )
    scored = grapheval.eq2(rows.assign(answer=answers.share.argmax(axis=1)))
    return scored.set_index("triple")["correct"].astype(float), 2 * answers.tokens


@measure(
    "GraphEval P(true)",
    "grapheval",
    "a statement, true or not?",
    probability=True,
    needs=("tuned",),
)
def grapheval_p_true(model, questions, folder):
    """Share of "yes" among the three answers to the true statement [grapheval, Sec. 3.1]."""
    return _p_true(_answered(model, questions, folder))


@measure("GraphEval correct", "grapheval", "a statement, true or not?", needs=("tuned",))
def grapheval_correct(model, questions, folder):
    """Correct, from the model's own answers [grapheval, Eq. 2]."""
    return _correct(_answered(model, questions, folder))


@measure(
    "GraphEval judge P(true)",
    "grapheval",
    "a statement, read by a judge",
    True,
    needs=("tuned", "states"),
)
def judge_p_true(model, questions, folder):
    """Share of "yes" that the judge predicts for the true statement [grapheval, Sec. 3.2]."""
    return _p_true(_predicted(model, questions, folder))


@measure(
    "GraphEval judge correct",
    "grapheval",
    "a statement, read by a judge",
    needs=("tuned", "states"),
)
def judge_correct(model, questions, folder):
    """Correct, from the answers that the judge predicts [grapheval, Eq. 2]."""
    return _correct(_predicted(model, questions, folder))
