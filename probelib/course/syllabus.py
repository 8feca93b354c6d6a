"""The course at a glance: one row per lab, read from the list at the top of the lab itself."""

import re

import nbformat

from probelib.errors import ProbeError
from probelib.runner.plan import Step

ITEMS = ("Goal", "Minutes", "Before it", "Paper", "Project")


def entry(lab: Step) -> dict[str, str]:
    """The entry of a lab, from its first cell: ``Lab`` (its title) and ``ITEMS``, in Markdown.

    Raise ProbeError if an item is missing.
    """
    text = nbformat.read(lab.path, as_version=4).cells[0].source
    items = dict(re.findall(r"^- \*\*(.+?):\*\* (.+?)(?=\n- |\n\n|\Z)", text, re.MULTILINE | re.DOTALL))
    if missing := [item for item in ITEMS if item not in items]:
        raise ProbeError(f"{lab.path.name}: the list in its first cell needs '- **{missing[0]}:** ...'.")
    title = text.split("\n")[0].removeprefix("# Lab ")
    plain = lambda item: " ".join(item.split()).removesuffix(".")
    return {"Lab": title} | {item: plain(items[item])[0].upper() + plain(items[item])[1:] for item in ITEMS}


def markdown_table(rows: list[dict[str, str]]) -> str:
    """A Markdown table of rows that share their keys, which are its columns.

    >>> print(markdown_table([{"Lab": "1", "Minutes": "45"}]))
    | Lab | Minutes |
    |---|---|
    | 1 | 45 |
    """
    line = lambda cells: f"| {' | '.join(cells)} |"
    return "\n".join([line(rows[0]), "|" + "---|" * len(rows[0]), *(line(row.values()) for row in rows)])


def syllabus(labs: list[Step]) -> str:
    """The table of notebooks/exercises/README.md, with links to the labs beside it."""
    rows = [(lab, entry(lab)) for lab in labs]
    return markdown_table([row | {"Lab": f"[{row['Lab']}]({lab.path.name})"} for lab, row in rows])
