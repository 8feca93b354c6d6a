"""Lab 8: bring your own model or facts. Answers are free here, so most checks test rules, not
values."""

import math
import tempfile
from functools import partial
from pathlib import Path

import pandas as pd

from probelib import facts, stats
from probelib.course.checks import Check, NotYet, call, shown
from probelib.errors import ProbeError

COLUMNS = ["relation", "subject", "object"]
CAPITAL_OF, HAS_CAPITAL = "capital_of", "has_capital"  # subject: the city; the country
_PAIRS = [("Lima", "Peru"), ("Oslo", "Norway"), ("Accra", "Ghana")]


def template_table(questions: dict[str, list[str]]) -> pd.DataFrame:
    """{relation: [questions]} as a frame of templates: relation, role, number, template."""
    rows = [(r, k, text) for r, own in questions.items() for k, text in enumerate(own, 1)]
    table = pd.DataFrame(rows, columns=["relation", "number", "template"])
    table.insert(1, "role", "question")
    return table


def both_ways(answer) -> None:
    """Check ``both_ways(pairs) -> table``: the order of rows and columns does not matter."""
    table = _table(call(answer, (_PAIRS,), "both_ways"), "both_ways gives")
    rows = sorted(table.itertuples(index=False, name=None))
    right = [row for c, land in _PAIRS for row in ((CAPITAL_OF, c, land), (HAS_CAPITAL, land, c))]
    if rows != sorted(right):
        odd = next((row for row in rows if row not in right), "a row is missing, or stands twice")
        wanted = f"{CAPITAL_OF} with the city as subject, {HAS_CAPITAL} with the country"
        raise NotYet(f"look at {odd}: two rows per pair are expected, {wanted}.")
    print("✓ both_ways is right.")


def _needed(width, factor=1.96, power=2):
    return math.ceil((factor / width) ** power)


facts_needed = Check(
    "lab8.facts_needed",
    _needed,
    [(0.1,), (0.08,), (0.05,)],
    tolerance=0.05,  # Wilson's interval is a little narrower, and equally right
    half_width=partial(_needed, factor=0.98),
    root=partial(_needed, power=1),
)


def _verdict(hits, n, chance, interval=stats.wilson):
    low, high = interval(hits, n)
    return "above chance" if low > chance else "below chance" if high < chance else "cannot be told"


verdict = Check(
    "lab8.verdict",
    _verdict,
    [(18, 22, 0.05), (2, 22, 0.05), (0, 22, 0.05), (1, 100, 0.2), (30, 60, 0.45)],
    share=partial(_verdict, interval=lambda k, n: (k / n, k / n)),
    below=lambda *given: _verdict(*given).replace("below chance", "cannot be told"),
)


def templates(answer) -> None:
    """Check ``templates() -> {relation: [questions]}``: any question with [X] is right."""
    _questions(call(answer, (), "templates"), {CAPITAL_OF, HAS_CAPITAL}, "templates gives")
    print("✓ templates can be used as prompts.")


def _questions(found, relations, where) -> None:
    """Raise NotYet unless ``found`` holds usable questions of the relations."""
    if not isinstance(found, dict) or set(found) != relations:
        wanted = f"a dict with the relations {sorted(relations)}, each with a list of questions"
        raise NotYet(f"{where} {shown(found)}; expected is {wanted}.")
    for relation, texts in found.items():
        if not isinstance(texts, list | tuple) or len(set(map(str, texts))) < 2:
            raise NotYet(f"{relation!r} needs a list of at least two different questions.")
        for text in map(str, texts):
            if text.count("[X]") != 1 or "[Y]" in text or not text.endswith("?"):
                wanted = "[X] once, for the subject, no [Y], and a question mark at the end"
                raise NotYet(f"{text!r} is no question as expected: {wanted}.")


def project(answer) -> None:
    """Check ``my_project() -> (table, templates)`` with the library's own reader."""
    look = "a DataFrame with relation, subject, object, and a dict of questions for its relations"
    found = call(answer, (), "my_project")
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise NotYet(f"my_project gives {shown(found)}; two things are expected: {look}.")
    table, texts = _table(found[0], "the table is"), found[1]
    with tempfile.TemporaryDirectory() as folder:
        table.to_csv(path := Path(folder) / "my_facts.csv", index=False)
        try:
            read = facts.load(data="table", folder=path, n_facts="all").facts
        except ProbeError as error:
            said = str(error).replace(folder + "/", "")
            raise NotYet(f"the library cannot read this table: {said}") from None
    own, twice = read.groupby("relation"), read[read.duplicated(["relation", "subject"])]
    if own.size().min() < 10 or own["object"].nunique().min() < 3:
        raise NotYet("every relation needs at least 10 facts and 3 different answers.")
    if len(twice):
        subject = twice["subject"].iloc[0]
        raise NotYet(f"{subject!r} has two right answers: which of them should count as wrong?")
    _questions(texts, set(own.groups), "the questions are")
    print(f"✓ my_project can be scored: {len(read)} facts of {len(own)} relation(s).")


def _table(value, where) -> pd.DataFrame:
    """The columns of a table as plain texts; NotYet if it is none."""
    if not isinstance(value, pd.DataFrame) or not set(COLUMNS) <= set(value.columns):
        wanted = f"a DataFrame with the columns {', '.join(COLUMNS)} is expected"
        raise NotYet(f"{where} {shown(value)}; {wanted}.")
    return pd.DataFrame(value[COLUMNS].to_numpy(dtype=str), columns=COLUMNS)
