"""Lab 8: bring your own model or facts. Answers are free here, so most checks test rules, not
values."""

import math
import tempfile
from pathlib import Path

import pandas as pd

from probelib import facts, stats
from probelib.course.checks import NotYet, call, exercise, require, shown
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
    odd = next((row for row in rows if row not in right), "a row is missing or duplicated")
    require(rows == sorted(right), "lab8.pairs", odd)
    print("✓ both_ways is right.")


@exercise("lab8.facts_needed", half_width={"factor": 0.98}, root={"power": 1})
def facts_needed(width, factor=1.96, power=2):
    return math.ceil((factor / width) ** power)


@exercise(
    "lab8.verdict",
    share={"interval": lambda k, n: (k / n, k / n)},
    below=lambda *given: verdict.right(*given).replace("below chance", "cannot be told"),
)
def verdict(hits, n, chance, interval=stats.wilson):
    low, high = interval(hits, n)
    return "above chance" if low > chance else "below chance" if high < chance else "cannot be told"


def templates(answer) -> None:
    """Check ``templates() -> {relation: [questions]}``: any question with [X] is right."""
    _questions(call(answer, (), "templates"), {CAPITAL_OF, HAS_CAPITAL}, "templates gives")
    print("✓ templates can be used as prompts.")


def _questions(found, relations, where) -> None:
    """Raise NotYet unless ``found`` holds usable questions of the relations."""
    usable = isinstance(found, dict) and set(found) == relations
    require(usable, "lab8.questions", where, shown(found), sorted(relations))
    for relation, texts in found.items():
        several = isinstance(texts, list | tuple) and len(set(map(str, texts))) >= 2
        require(several, "lab8.few", relation)
        for text in map(str, texts):
            asks = text.count("[X]") == 1 and "[Y]" not in text and text.endswith("?")
            require(asks, "lab8.question", text)


def project(answer) -> None:
    """Check ``my_project() -> (table, templates)`` with the library's own reader."""
    found = call(answer, (), "my_project")
    require(isinstance(found, tuple | list) and len(found) == 2, "lab8.two_things", shown(found))
    table, texts = _table(found[0], "the table is"), found[1]
    with tempfile.TemporaryDirectory() as folder:
        table.to_csv(path := Path(folder) / "my_facts.csv", index=False)
        try:
            read = facts.load(data="table", folder=path, n_facts="all").facts
        except ProbeError as error:
            said = str(error).replace(folder + "/", "")
            raise NotYet(f"the library cannot read this table: {said}") from None
    own, twice = read.groupby("relation"), read[read.duplicated(["relation", "subject"])]
    require(own.size().min() >= 10 and own["object"].nunique().min() >= 3, "lab8.small")
    require(twice.empty, "lab8.twice", *twice["subject"])
    _questions(texts, set(own.groups), "the questions are")
    print(f"✓ my_project can be scored: {len(read)} facts of {len(own)} relation(s).")


def _table(value, where) -> pd.DataFrame:
    """The columns of a table as plain texts; NotYet if it is none."""
    columns = isinstance(value, pd.DataFrame) and set(COLUMNS) <= set(value.columns)
    require(columns, "lab8.table", where, shown(value))
    return pd.DataFrame(value[COLUMNS].to_numpy(dtype=str), columns=COLUMNS)
