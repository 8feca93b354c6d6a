"""The details below the board: how to read it, and the numbers of each of its panels."""

import html
from typing import NamedTuple

from pandas.io.formats.style import Styler

from probelib.explore.drawing import monitor_in_words, reading, why_unjudged
from probelib.explore.seen import Look
from probelib.report.shown import escaped_html

STYLE = (
    "<style>.probelib table { border-collapse: collapse } .probelib td, .probelib th { padding: .15em .8em; text-align: left } "
    ".probelib > div { max-height: 26em; overflow: auto }</style>"
)


class Detail(NamedTuple):
    """A heading, a few sentences, and a table or None."""

    title: str
    text: str
    table: Styler | None = None


def details(seen: Look) -> list[Detail]:
    """The details below the board, in its order."""
    return [
        Detail("How to read it", reading(seen)),
        Detail("Does the paraphrase matter?", monitor_in_words(seen), _prompts(seen)),
        Detail(
            "How many examples does it need?",
            "ZP-LKE writes no question, only pairs of the same relation and then the subject. The share is that of the right "
            "object among all options.",
            _lists(seen),
        ),
        Detail(
            "Which wrong answers tempt it?",
            "The most plausible objects of the same type, found by a beam search over the labels of all of them.",
            seen.rivals.style.format({"probability": "{:.2e}"}).hide(axis="index"),
        ),
        Detail("Would it say so?", *_judged(seen)),
        Detail(
            "Do the measures agree?",
            "Each measure has its own scale, so only the verdict is compared: above one half, known. MONITOR and Avg@n have no "
            "such point and no verdict.",
            seen.measures.style.format(precision=3, na_rep="–").hide(axis="index"),
        ),
    ]


def details_as_html(seen: Look) -> str:
    """All details as HTML; long tables scroll."""
    pieces = [STYLE]
    for detail in details(seen):
        table = "" if detail.table is None else f"<div>{escaped_html(detail.table)}</div>"
        pieces.append(f"<h3>{html.escape(detail.title)}</h3><p>{html.escape(detail.text)}</p>{table}")
    return f"<div class='probelib'>{''.join(pieces)}</div>"


def _prompts(seen: Look) -> Styler:
    prompts = (
        seen.framed[["template", "hint", "text", "probability", "correct"]].rename(columns={"hint": "context"}).style
    )
    prompts = prompts.format({"probability": "{:.3f}"}).hide(axis="index")
    return prompts.bar(subset="probability", color="#9cc4de", vmin=0, vmax=1)


def _lists(seen: Look) -> Styler:
    lists = seen.curve.groupby("examples").agg(share=("q_gold", "mean"), right=("correct", "mean")).reset_index()
    return lists.style.format({"share": "{:.1%}", "right": "{:.0%}"}).hide(axis="index")


def _judged(seen: Look) -> tuple[str, Styler | None]:
    if seen.judged is None:
        return why_unjudged(seen), None
    text = (
        "GraphEval shows a statement and asks whether it is true: once with the fact, and once with each distractor in the "
        "object's place. A judge predicts the answer from the model's hidden state alone."
    )
    return text, seen.judged.style.format(precision=3).hide(axis="index")
