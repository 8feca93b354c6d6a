"""Lab 8: bring your own model or facts. Answers are free here, so most checks test rules, not values."""

import math
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import facts, stats
from probelib.course.checks import Check, NotYet, call
from probelib.errors import ProbeError
from probelib.lm import LM
from probelib.zplke import measures as zplke

COLUMNS = ["relation", "subject", "object"]
CAPITAL_OF, HAS_CAPITAL = "capital_of", "has_capital"  # subject: the city; the country
_PAIRS_PER_GROUP = 5  # fewer pairs give no usable interval


def require_pairs(sizes: pd.Series, n_pairs: int, often: int) -> None:
    """Raise ProbeError if a group has too few pairs; ``sizes``: group -> pairs, at most ``n_pairs`` each."""
    if n_pairs < _PAIRS_PER_GROUP:
        wanted = f"at least {_PAIRS_PER_GROUP} pairs per group are needed, and 20 for a useful interval"
        raise ProbeError(f"n_pairs={n_pairs}: {wanted}")
    if sizes.min() < _PAIRS_PER_GROUP:
        raise ProbeError(
            f"often={often} leaves {sizes.min()} pairs in the group {sizes.idxmin()!r}; "
            f"at least {_PAIRS_PER_GROUP} are needed: try often=16"
        )


def template_table(questions: dict[str, list[str]]) -> pd.DataFrame:
    """{relation: [questions]} as a frame of templates: relation, role, number, template."""
    rows = [(relation, "question", k, text) for relation, own in questions.items() for k, text in enumerate(own, 1)]
    return pd.DataFrame(rows, columns=["relation", "role", "number", "template"])


_PAIRS = [("Lima", "Peru"), ("Oslo", "Norway"), ("Accra", "Ghana")]


def _both(pairs: list[tuple[str, str]]) -> set[tuple[str, ...]]:
    return {(CAPITAL_OF, city, land) for city, land in pairs} | {(HAS_CAPITAL, land, city) for city, land in pairs}


def both_ways(answer: Callable) -> None:
    """Check ``both_ways(pairs) -> table``: the order of rows and columns does not matter."""
    table = call(answer, (_PAIRS,), "both_ways")
    if not isinstance(table, pd.DataFrame) or not set(COLUMNS) <= set(table.columns):
        raise NotYet(f"both_ways gives {_what(table)}; a DataFrame with the columns {', '.join(COLUMNS)} is expected.")
    rows, right = set(table[COLUMNS].itertuples(index=False, name=None)), _both(_PAIRS)
    if rows == {(r, o, s) for r, s, o in right}:
        said = f"Lima is the capital of Peru, so Lima is the subject of {CAPITAL_OF}"
        raise NotYet(f"both_ways has exchanged subject and object: {said}.")
    if len(rows) < len(right) and rows < right:
        raise NotYet(f"both_ways gives {len(rows)} of {len(right)} rows: every pair is needed in both directions.")
    if rows != right:
        odd = sorted(rows - right) or sorted(right - rows)
        wanted = f"the relations {CAPITAL_OF!r} (of a city) and {HAS_CAPITAL!r} (of a country), two rows per pair"
        raise NotYet(f"look at {odd[0]}: expected are {wanted}.")
    if len(table) > len(rows):
        raise NotYet(f"both_ways gives {len(table)} rows, but {len(rows)} are expected, each once.")
    print("✓ both_ways is right.")


def _needed(width: float, factor: float = 1.96, power: int = 2) -> int:
    return math.ceil((factor / width) ** power)


facts_needed = Check(
    right=_needed,
    cases=[(0.1,), (0.08,), (0.05,)],
    mistakes={
        "`width` is the whole interval, from its low to its high end": partial(_needed, factor=0.98),
        "the standard error falls with the root of n: square at the end": partial(_needed, power=1),
        "this is one standard error; the interval reaches 1.96 of them to each side": partial(_needed, factor=0.5),
    },
    look="at a share of 1/2 the standard error is 0.5 / sqrt(n), and the interval is 2 * 1.96 of them wide",
    tolerance=0.05,  # Wilson's interval is a little narrower, and equally right
)


def _verdict(hits: int, n: int, chance: float, interval: Callable = stats.wilson) -> str:
    low, high = interval(hits, n)
    return "above chance" if low > chance else "below chance" if high < chance else "cannot be told"


_either = lambda *given: _verdict(*given).replace("below chance", "cannot be told")


verdict = Check(
    right=_verdict,
    cases=[(18, 22, 0.05), (2, 22, 0.05), (0, 22, 0.05), (1, 100, 0.2), (30, 60, 0.45)],
    mistakes={
        "a share above chance may be luck: compare its interval with chance, not the share": (
            partial(_verdict, interval=lambda k, n: (k / n, k / n))
        ),
        "an interval that lies wholly below chance is a result, too": _either,
    },
    look="stats.wilson(hits, n), and whether chance is below, above or inside the interval",
)


def templates(answer: Callable, relations: tuple[str, ...] = (CAPITAL_OF, HAS_CAPITAL)) -> None:
    """Check ``templates() -> {relation: [questions]}``: any question with [X] is right."""
    look = "a dict from each relation to a list of two or more questions with one [X] for the subject"
    found = call(answer, (), "templates")
    if not isinstance(found, dict) or set(found) != set(relations):
        raise NotYet(f"templates gives {_what(found)}; expected is {look}: {', '.join(relations)}.")
    for relation, texts in found.items():
        _questions(relation, texts)
    print("✓ templates can be used as prompts.")


def _questions(relation: str, texts: object) -> None:
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise NotYet(f"{relation!r} has {texts!r:.60}: a list of questions is expected, each of them a text.")
    if len(set(texts)) < 2:
        wanted = "at least two different paraphrases, so that you see what paraphrasing does"
        raise NotYet(f"{relation!r} has {_what(texts)}: {wanted}.")
    for text in texts:
        if text.count("[X]") != 1:
            raise NotYet(f"{text!r} has {text.count('[X]')} slots [X]; exactly one is expected, for the subject.")
        if "[Y]" in text:
            raise NotYet(f"{text!r} contains [Y]: a question must not name its answer.")
        if not text.rstrip().endswith("?") or text != text.strip():
            wanted = "should end in its question mark, without blanks around it: a blank belongs to the answer"
            raise NotYet(f"{text!r} {wanted}.")


def project(answer: Callable) -> None:
    """Check ``my_project() -> (table, templates)`` with the library's own reader."""
    look = "a DataFrame with relation, subject, object, and a dict of questions for its relations"
    found = call(answer, (), "my_project")
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise NotYet(f"my_project gives {_what(found)}; two things are expected: {look}.")
    table, texts = found
    if not isinstance(table, pd.DataFrame) or not set(COLUMNS) <= set(table.columns):
        raise NotYet(f"the table is {_what(table)}; a DataFrame with the columns {', '.join(COLUMNS)} is expected.")
    if (again := table.duplicated(COLUMNS)).any():
        row = ", ".join(map(str, table.loc[again, COLUMNS].iloc[0]))
        raise NotYet(f"this row occurs twice in the table: {row}. Leave one out.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "my_facts.csv"
        table.to_csv(path, index=False)
        try:
            read = facts.load(data="table", folder=path, n_facts="all")
        except ProbeError as error:
            raise NotYet(f"the library cannot read this table: {str(error).replace(folder + '/', '')}") from None
    own = read.facts.groupby("relation")
    if (short := own.size()).min() < 10:
        raise NotYet(f"{short.idxmin()!r} has {short.min()} facts: a share of fewer than ten says too little.")
    if (kinds := own["object"].nunique()).min() < 3:
        raise NotYet(f"{kinds.idxmin()!r} has {kinds.min()} different answers: there is nothing to choose from.")
    if (twice := read.facts.duplicated(["relation", "subject"])).any():
        subject = read.facts["subject"][twice].iloc[0]
        raise NotYet(f"{subject!r} has two right answers: which of them should count as wrong?")
    if not isinstance(texts, dict) or set(texts) != set(read.relations["relation"]):
        raise NotYet(f"the questions are {_what(texts)}; expected is a dict with the relations {sorted(own.groups)}.")
    for relation, questions in texts.items():
        _questions(relation, questions)
    print(f"✓ my_project can be scored: {len(read.facts)} facts of {len(read.relations)} relation(s).")


def _what(value: object) -> str:
    """A value in words, for a message."""
    if isinstance(value, pd.DataFrame):
        return f"a table with the columns {', '.join(map(str, value.columns))}"
    if isinstance(value, dict):
        return f"a dict with the keys {', '.join(map(str, value)) or '(none)'}"
    if isinstance(value, list | tuple | np.ndarray):
        return f"{type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def finding_width(facts_needed: Callable[[float], int], smallest: int) -> str:
    """How many facts an interval takes, and how wide that of the smallest group is.

    facts_needed   the student's function: width -> facts   smallest   pairs of the smallest group
    """
    width = min(w / 100 for w in range(2, 100) if facts_needed(w / 100) <= smallest)
    return (
        f"An interval 10 points wide takes {facts_needed(0.1)} facts, one 2 points wide {facts_needed(0.02):,}. The smallest "
        f"group here has {smallest} pairs, so its interval is at most about {width:.0%} wide, half of that to each side: a share "
        "closer to chance than this half may not differ significantly from it. Two shares of the *same* pairs are compared pair "
        "by pair (below): that can show smaller differences."
    )


def alt_directions(table: pd.DataFrame, chance: float) -> str:
    """Alt text of the shares right. ``table``: ``group``, ``wanted``, ``hits``, ``n``, one row per bar."""
    bars = [f"{row.group}, asked for {row.wanted}: {row.hits} of {row.n}" for row in table.itertuples()]
    return f"Bars of the share right with 95 % intervals, chance dashed at {chance:.2f}. {'; '.join(bars)}."


def finding_directions(rows: pd.DataFrame) -> str:
    """The results of one group, with the student's ``verdict``; columns as for ``alt_directions``."""
    each = [f"{row.hits} of {row.n} for {row.wanted} (**{row.verdict}**)" for row in rows.itertuples()]
    return f"*{rows['group'].iloc[0]}*: {'; '.join(each)}."


def half_page(model: LM, pairs: pd.DataFrame, choices: pd.DataFrame, table: pd.DataFrame, tests: dict) -> str:
    """The report on the small project, half a page of Markdown, with the numbers of the run.

    pairs   one row per pair            choices   of ``zplke.choices``, with ``template``
    table   as for ``alt_directions``   tests     group -> McNemar's test of the two directions
    """
    results = [
        f"{row.group}: {row.wanted} {row.hits} of {row.n} ({row.hits / row.n:.0%})" for row in table.itertuples()
    ]
    paired = [f"{group}: McNemar p = {test['p']:.2g}" for group, test in tests.items()]
    parts = {
        "Question": "Is a pair that was read known equally well in both directions?",
        "Facts": f"{len(pairs)} pairs of city and country from the atlas, in {table['group'].nunique()} group(s).",
        "Model": f"{model.name}, {model.n_parameters:,} parameters, {model.dtype}, before every text: {model.tokens.bos_rule}.",
        "Measure": f"Multiple choice among {choices['n_options'].max()}, chance {zplke.chance(choices):.2f}; "
        f"first of {choices['template'].nunique()} paraphrases.",
        "Result": f"{'; '.join(results)}.",
        "Paired": f"{'; '.join(paired)}.",
        "Limits": "One kind of fact; the model may know the names of wrong options better or worse than the right one; a model "
        "trained on little text may differ from one that read everything.",
    }
    return "  \n".join(f"**{part}.** {text}" for part, text in parts.items())


def finding_project(model: str, hits: int, n: int, luck: float, usual: float, verdict: Callable) -> str:
    """The result on a student's own facts, against guessing and against the most frequent answer.

    luck, usual   the share right of each   verdict   the student's function of (hits, n, chance)
    """
    low, high = stats.wilson(hits, n)
    return (
        f"{model} on your facts: {hits} of {n} right ({hits / n:.0%} [{low:.0%}, {high:.0%}]). Guessing gets {luck:.0%}, and "
        f"always the most frequent answer {usual:.0%}. By your rule, against guessing: **{verdict(hits, n, luck)}**; against the "
        f"most frequent answer: **{verdict(hits, n, usual)}**."
    )
