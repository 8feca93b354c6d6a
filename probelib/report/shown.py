"""How tables and texts are shown: in the notebook, and on every page made from it."""

import copy
import html
import io
import re
from collections.abc import Iterable
from functools import partial
from itertools import zip_longest

import numpy as np
import pandas as pd

from probelib.report import claims

ARTIFACT = "probelib_artifact"  # key in the metadata of outputs: the artifact they belong to
PAPERS = {"monitor": "MONITOR", "zplke": "ZP-LKE", "distractors": "Distractors"}
PAPERS |= {"grapheval": "GraphEval", "beyond": "Beyond the papers"}


def artifact_title(name: str) -> str:
    """The heading of an artifact: "Table 4", "Quality against cost"."""
    title = re.sub(r"^(table|figure)(\d+)$", r"\1 \2", name.split("/")[1]).replace("_", " ")
    return (title[:1].upper() + title[1:]).replace("Gpt2", "GPT-2")


def styled(frame: pd.DataFrame, decimals: dict | int, bold: dict[str, list[int]], escape="html"):
    """A table as a pandas Styler without random ids, for "html" or "latex": ``decimals`` set, NaN
    as "–", some cells ``bold`` (``Artifact.bold``)."""
    style = frame.style.format(escape=escape, na_rep="–")
    for column in frame.columns:
        if pd.api.types.is_integer_dtype(frame[column]):
            style = style.format(thousands=",", subset=[column])
        elif pd.api.types.is_float_dtype(frame[column]):
            show = partial(claims.cell, decimals=decimals, column=column)
            style = style.format(show, subset=[column])
    style = style.format_index(escape=escape, axis=1).hide(axis="index").set_uuid("t")
    style.cell_ids = False
    for column, rows in bold.items():
        at = np.isin(np.arange(len(frame)), rows)
        style = style.apply(lambda _, at=at: np.where(at, "font-weight: bold", ""), subset=[column])
    return style


def picture(figure, kind: str, **options) -> bytes:
    """The bytes of a matplotlib figure; ``kind``: "png" or "pdf"."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, **options)
    return buffer.getvalue()


def say(text: str) -> None:
    """Show a text as Markdown (``IPython.display.Markdown`` would download an address)."""
    from IPython.display import display

    display({"text/markdown": escape_markdown(text), "text/plain": text}, raw=True)


def escape_stylers() -> None:
    """Escape the texts of every pandas Styler in a notebook; its Markdown is for the pages."""
    from IPython import get_ipython
    from pandas.io.formats.style import Styler

    if notebook := get_ipython():
        formatters = notebook.display_formatter.formatters
        formatters["text/html"].for_type(Styler, escaped_html)
        formatters["text/markdown"].for_type(Styler, styler_markdown)


def styler_markdown(style, separator: str = "\x1f") -> str:
    """The cells that a Styler shows, as a Markdown table; colours and bars are lost."""
    style = copy.copy(style)
    style.data = style.data.map(lambda v: " ".join(v.split()) if isinstance(v, str) else v)
    rows = [line.split(separator) for line in style.to_string(delimiter=separator).splitlines()]
    heads = len(rows) - len(style.data)  # a row per level of the columns, one for the index
    head = [" ".join(" ".join(texts).split()) for texts in zip_longest(*rows[:heads], fillvalue="")]
    return markdown_rows(map(escape_cell, row) for row in [head, *rows[heads:]])


def markdown_rows(rows: Iterable[Iterable[str]]) -> str:
    """Rows of Markdown, the first one the head, as a Markdown table."""
    cells = [list(map(one_line, row)) for row in rows]
    head, *lines = ("| " + " | ".join(row) + " |" for row in cells)
    return "\n".join([head, "|" + "---|" * len(cells[0]), *lines])


def one_line(text: str) -> str:
    """Text in one line with escaped bars: a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def escaped_html(style) -> str:
    """HTML of a Styler with escaped cells, row names and column names."""
    style = copy.deepcopy(style)
    style.data = style.data.map(lambda v: html.escape(v) if isinstance(v, str) else v)
    for axis in (0, 1):
        style.format_index(escape="html", axis=axis).format_index_names(escape="html", axis=axis)
    return style.to_html()


def escape_cell(text: str) -> str:
    """A text from data as Markdown that shows each of its letters: _United States_, *NSYNC*."""
    text = re.sub(r"&(?=#?\w+;)", "&amp;", text)
    text = re.sub(r"[\\`*_~$]|(?<=!)\[|(?<=\])\(|:(?=//)|(?<=www)\.", r"\\\g<0>", text)
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text)


def escape_markdown(text: str) -> str:
    """Markdown whose tags, links, addresses, pictures, dollars and marks between two letters
    (M*A*S*H) are shown literally: they come from data or models, never from the kit."""
    marks = r"(`[^`]*`)|((?<=\w)[*_](?=\w)|\$|(?<=!)\[|(?<=\])\(|:(?=//)|(?<=www)\.)"
    text = re.sub(marks, lambda found: found[1] or f"\\{found[2]}", text)  # code stays
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text)
