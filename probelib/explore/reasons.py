"""Why a fact is not known by a measure: a few words beside its cross."""

from pathlib import Path

import pandas as pd

from probelib import prompts, store
from probelib.beyond.questions import Questions
from probelib.monitor.answers import extract
from probelib.zplke import measures as zplke

ANSWERS = ("true", "false", "don't know")  # to a statement, in the order of grapheval.Answer


def said_instead(model, asked: Questions, folder: Path) -> dict[str, str]:
    """The model's answers: ``question`` and ``list`` (generated), ``choice`` (the chosen option of the multiple choice after a
    list)."""
    question = prompts.paraphrases(asked.facts).head(1)
    lists, row = prompts.many_shots(asked.choices, asked.examples), asked.facts.facts.iloc[0]
    generated = {"question": question, "list": lists.head(1)}
    texts = {way: store.generate(model, rows, folder) for way, rows in generated.items()}
    scores = store.score(model, lists, prompts.options(asked.choices, asked.seed), folder)
    chosen = zplke.choices(scores, {row["fact"]: row["object"]})["predicted"].head(1)
    return {way: extract(rows["text"].iloc[0]) for way, rows in texts.items()} | {
        "choice": asked.choices.label(chosen)[0]
    }


def why_not(name: str, value: float, said: dict[str, str], judged: pd.DataFrame | None) -> str:
    """A reason in a few words for a measure's value of one half or less.

    said     ``said_instead``
    judged   the true statement and, below it, false ones: ``object``, a share per answer (``ANSWERS``, "judge true", ...)
    """
    if name in ("Base accuracy", "ZP response"):
        answer = said["question" if name == "Base accuracy" else "list"]
        return f"answers “{answer}”" if answer else "ends without an answer"
    if name == "ZP choice":
        return f"chooses {said['choice']}"
    if name.startswith("Accuracy"):
        return f"right after {value:.0%} of its prompts"
    if name.startswith("Min@n"):
        return f"a distractor wins in {1 - value:.0%}"
    if name.startswith("GraphEval") and name.endswith("correct") and judged is not None:
        columns = {f"judge {answer}" * ("judge" in name) or answer: answer for answer in ANSWERS}
        true, wrong = judged[list(columns)].rename(columns=columns).idxmax(axis=1).head(2)
        return f"“{true}”; of {judged['object'].iloc[1]}: “{wrong}”"
    return f"{value:.2f}"
