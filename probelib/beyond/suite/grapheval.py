"""GraphEval's measures: an instruction-tuned model answers whether a statement is true, and a judge
predicts its answer from its hidden states."""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from probelib import grapheval, prompts, store
from probelib.beyond.questions import tokens_per_fact
from probelib.beyond.suite import measure, shared
from probelib.facts.model import Facts
from probelib.grapheval.measures import likeliest_answers

WORDS = dict(zip(grapheval.Answer, ("Yes", "No", "I don't know"), strict=True))


class _Answers(NamedTuple):
    """``asked_statements``, shares of the three answers [statements, 3], tokens a statement."""

    statements: pd.DataFrame
    share: np.ndarray
    tokens: float


def asked_statements(asked: Facts, tuned) -> pd.DataFrame:
    """The facts and one corruption of each (its first distractor as object; ``negative``: 0, then
    1) in their first template inside GraphEval's instruction: a frame of ``prompts``, with
    ``statement``."""
    one = replace(asked, distractors=asked.distractors[asked.distractors["number"] == 1])
    rows, plain = (prompts.checks(one, t) for t in (tuned.chat(prompts.INSTRUCTION), "{statement}"))
    false = (rows["context"] != "true").astype(int)
    rows = rows.assign(statement=plain["text"], negative=false)[rows["template"] == 1]
    return rows.sort_values("negative", kind="stable", ignore_index=True)


def _options(statements: pd.DataFrame) -> pd.DataFrame:
    """The three answers as candidates of every statement."""
    words = pd.DataFrame({"candidate": list(map(int, WORDS)), "label": list(WORDS.values())})
    return statements[["fact"]].drop_duplicates().merge(words, how="cross")


def shares(tuned, statements: pd.DataFrame, folder) -> np.ndarray:
    """Shares of the three answers, [statements, 3]."""
    scores = store.score(tuned, statements[prompts.PROMPTS], _options(statements), folder)
    wide = scores.pivot(index="prompt", columns="candidate", values="logprob")
    logprobs = wide.loc[statements["prompt"]].to_numpy()
    return np.exp(logprobs - np.logaddexp.reduce(logprobs, axis=1, keepdims=True))


@shared
def _answered(model, questions, folder) -> _Answers:
    """The answers of the instruction-tuned model."""
    tuned = questions.tuned
    statements = asked_statements(questions.facts, tuned)
    true = statements[statements["negative"] == 0]
    tokens = tokens_per_fact(tuned, true, _options(true))
    return _Answers(statements, shares(tuned, statements, folder), tokens)


@shared
def _predicted(model, questions, folder) -> _Answers:
    """The answers that a judge predicts, trained on the model's answers about other facts. The
    tokens are those of the judged statements, without those of the training statements."""
    from probelib.grapheval import judge

    statements = _answered(model, questions, folder).statements
    reader = judge.Reader(questions.tuned)
    others = asked_statements(questions.others, questions.tuned)
    others = others.assign(relation="other statements")  # one part of the store
    labels = likeliest_answers(shares(questions.tuned, others, folder))
    states = reader.states(others["statement"].tolist())[0]
    how = {"epochs": 20, "batch": 64, "lr": 1e-3, "seed": questions.seed}
    trained = judge.train(states, labels, others["negative"] == 0, **how)
    states, cost = reader.states(statements["statement"].tolist())
    share = judge.predict(trained, states, statements["negative"] == 0)
    return _Answers(statements, share, cost["forwarded_tokens"] / len(statements))


def _p_true(*asked, read) -> tuple[pd.Series, float]:
    """Share of "yes" on the true statement [grapheval, Sec. 3.1, 3.2]."""
    answers = read(*asked)
    share = pd.Series(answers.share[:, int(grapheval.Answer.TRUE)], answers.statements["fact"])
    return share[(answers.statements["negative"] == 0).to_numpy()], answers.tokens


def _correct(*asked, read) -> tuple[pd.Series, float]:
    """Correct over the true and the corrupted statement [grapheval, Eq. 2]."""
    answers = read(*asked)
    rows = answers.statements.rename(columns={"fact": "triple"})[["triple", "negative"]]
    scored = grapheval.eq2(rows.assign(answer=likeliest_answers(answers.share)))
    return scored.set_index("triple")["correct"].astype(float), 2 * answers.tokens


def _register(name: str, prompts: str, answers, needs: tuple[str, ...]) -> None:
    """P(true) and Correct from the answers of the model, or from those that the judge predicts."""
    how = {"paper": "grapheval", "prompts": prompts, "needs": needs}
    measure(f"{name} P(true)", probability=True, **how)(partial(_p_true, read=answers))
    measure(f"{name} correct", **how)(partial(_correct, read=answers))


_register("GraphEval", "a statement, true or not?", _answered, ("tuned",))
_register("GraphEval judge", "a statement, read by a judge", _predicted, ("tuned", "states"))
