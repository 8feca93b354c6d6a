"""How an artifact, a sentence and an interval are shown: in the notebook, and on every page made
from it."""

import copy
import html
import io
import re
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pandas as pd

from probelib.report.artifact import Artifact

ARTIFACT = (
    "probelib_artifact"  # key in the metadata of a notebook's outputs: the artifact they belong to
)
PAPERS = {
    "monitor": "MONITOR",
    "zplke": "ZP-LKE",
    "distractors": "Distractors",
    "grapheval": "GraphEval",
    "beyond": "Beyond the papers",
}
PIXELS = 110  # per inch of a figure in a notebook


def display_artifact(artifact: Artifact, saved: Path, scope: str) -> None:
    """Show the table or picture, its caption, the paper's printed values and the finding as four
    outputs of the cell.

    saved   the picture's file (PNG); not read for a table
    scope   the line below the caption: models, facts, profile
    """
    from IPython.display import display

    def show(part: str, data: dict, **look: dict) -> None:
        display(
            data,
            raw=True,
            metadata={ARTIFACT: artifact.name, "part": part, "alt": artifact.alt, **look},
        )

    if artifact.figure is None:
        table = _scroll(styled(artifact.table(), artifact.decimals, artifact.bold()))
        show("body", {"text/html": table, "text/plain": artifact.table().to_string(index=False)})
    else:
        import matplotlib.pyplot as plt

        size = {
            "width": round(PIXELS * artifact.figure.get_size_inches()[0])
        }  # the file has more pixels, for print
        show(
            "body",
            {"image/png": saved.read_bytes(), "text/plain": artifact.alt},
            **{"image/png": size},
        )
        plt.close(
            artifact.figure
        )  # otherwise the notebook draws it a second time at the end of the cell
    about = f"<b>{artifact_title(artifact.name)}.</b> {html.escape(artifact.caption)}"
    caption = f"<p>{about} <small>{html.escape(scope)}</small></p>"
    show("caption", {"text/html": caption, "text/plain": f"{artifact.caption} {scope}"})
    if artifact.published is not None:
        table = _scroll(styled(artifact.published, artifact.decimals, {}))
        folded = f"<details><summary>The values that the paper prints</summary>{table}</details>"
        show(
            "published",
            {"text/html": folded, "text/plain": artifact.published.to_string(index=False)},
        )
    if artifact.finding:
        finding = escape_markdown(artifact.finding)
        show("finding", {"text/markdown": finding, "text/plain": finding})


def artifact_title(name: str) -> str:
    """The heading of an artifact.

    >>> artifact_title("monitor/table4"), artifact_title("beyond/quality_against_cost")
    ('Table 4', 'Quality against cost')
    """
    title = re.sub(r"^(table|figure)(\d+)$", r"\1 \2", name.split("/")[1]).replace("_", " ")
    return title[:1].upper() + title[1:]


def styled(
    frame: pd.DataFrame, decimals: dict | int, bold: dict[str, list[int]], escape: str = "html"
):
    """A table as a pandas Styler without random ids: ``decimals`` set, NaN as "–", some cells
    ``bold`` (``Artifact.bold``).

    escape    "html" or "latex"
    """
    style = frame.style.format(escape=escape, na_rep="–")
    for column in frame.columns:
        if pd.api.types.is_integer_dtype(frame[column]):
            style = style.format(thousands=",", subset=[column])
        elif pd.api.types.is_float_dtype(frame[column]):
            style = style.format(precision=digits(decimals, column), na_rep="–", subset=[column])
    style = style.format_index(heading, escape=escape, axis=1).hide(axis="index").set_uuid("t")
    style.cell_ids = False
    for column, rows in bold.items():
        at = np.isin(np.arange(len(frame)), rows)
        style = style.apply(lambda _, at=at: np.where(at, "font-weight: bold", ""), subset=[column])
    return style


def digits(decimals: dict[str, int] | int, column: str) -> int:
    """The digits shown of a column (``Artifact.decimals``)."""
    return decimals.get(column, 3) if isinstance(decimals, dict) else decimals


def heading(column: str) -> str:
    """The heading of a column. The kit's tables count a model's parameters without its embeddings,
    and say so.

    >>> heading("parameters"), heading("model")
    ('parameters without embeddings', 'model')
    """
    return "parameters without embeddings" if column == "parameters" else column


def picture(figure, kind: str, **options) -> bytes:
    """The bytes of a matplotlib figure; ``kind``: "png" or "pdf"."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, **options)
    return buffer.getvalue()


def say(text: str) -> None:
    """Show a computed sentence as Markdown, in the notebook and on its pages.

    The text is displayed directly: ``IPython.display.Markdown`` would download a text that begins
    with an address."""
    from IPython.display import display

    display({"text/markdown": escape_markdown(text), "text/plain": text}, raw=True)


def show_styled(style) -> None:
    """Show a pandas Styler with its texts escaped, also outside a notebook that does so
    (``escape_stylers``)."""
    from IPython.display import display

    plain = style.data.to_string(index=False)
    display(
        {
            "text/html": escaped_html(style),
            "text/markdown": styler_markdown(style),
            "text/plain": plain,
        },
        raw=True,
    )


def escape_stylers() -> None:
    """Make the notebook escape the texts of every pandas Styler that it shows, which pandas itself
    treats as HTML, and add the table as Markdown for the pages."""
    from IPython import get_ipython
    from pandas.io.formats.style import Styler

    if notebook := get_ipython():
        formatters = notebook.display_formatter.formatters
        formatters["text/html"].for_type(Styler, escaped_html)
        formatters["text/markdown"].for_type(Styler, styler_markdown)


def styler_markdown(style, separator: str = "\x1f") -> str:
    """The cells that a Styler shows, as a Markdown table; colours and bars are lost.

    >>> print(styler_markdown(pd.DataFrame({"a|b": [0.25], "c": ["x\\ny"]}).style.format(precision=1).hide(axis="index")))
    | a\\|b | c |
    |---|---|
    | 0.2 | x y |
    """
    style = copy.copy(style)
    style.data = style.data.map(
        lambda value: " ".join(value.split()) if isinstance(value, str) else value
    )
    rows = [line.split(separator) for line in style.to_string(delimiter=separator).splitlines()]
    heads = len(rows) - len(
        style.data
    )  # a row per level of the columns, and one for the names of the index
    head = [" ".join(" ".join(texts).split()) for texts in zip_longest(*rows[:heads], fillvalue="")]
    return markdown_rows(map(escape_markdown, row) for row in [head, *rows[heads:]])


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
    text = lambda value: html.escape(value) if isinstance(value, str) else value
    names = lambda axis: axis.map(
        lambda name: tuple(map(text, name)) if isinstance(name, tuple) else text(name)
    )
    style = copy.copy(style)
    style.data = style.data.map(text)
    for side in ("index", "columns"):
        named = names(getattr(style, side)).set_names(
            [text(name) for name in getattr(style, side).names]
        )
        setattr(style, side, named)
        setattr(style.data, side, named)
    return style.to_html()


def escape_markdown(text: str) -> str:
    """Markdown whose tags, links, addresses, pictures, dollars and marks between two letters
    (M*A*S*H) are shown literally: they come from data or models, never from the kit."""
    marks = r"(`[^`]*`)|((?<=\w)[*_](?=\w)|\$|(?<=!)\[|(?<=\])\(|:(?=//)|(?<=www)\.)"
    text = re.sub(marks, lambda found: found[1] or f"\\{found[2]}", text)  # code stays
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text)


def span(low: float, high: float, form: str = ".2f") -> str:
    """An interval in a sentence; "[no interval]" if an end is NaN (too few cases, or no spread).

    >>> span(0.1, 0.25), span(float("nan"), 0.25)
    ('[0.10, 0.25]', '[no interval]')
    """
    return f"[{low:{form}}, {high:{form}}]" if np.isfinite([low, high]).all() else "[no interval]"


def with_interval(values: pd.Series, low: pd.Series, high: pd.Series, digits: int = 3) -> pd.Series:
    """Texts of a column of a printed table: each value with its interval, only the value if it has
    none, "–" for NaN.

    >>> nan = float("nan")
    >>> with_interval(pd.Series([0.1234, 0.5, nan]), pd.Series([0.1, nan, nan]), pd.Series([0.2, nan, nan]), 2).tolist()
    ['0.12 [0.10, 0.20]', '0.50', '–']
    """
    texts = [
        "–"
        if np.isnan(value)
        else f"{value:.{digits}f} {span(*ends, f'.{digits}f')}".removesuffix(" [no interval]")
        for value, *ends in zip(values, low, high, strict=True)
    ]
    return pd.Series(texts, index=values.index, dtype=object)


def side_by_side(
    table: pd.DataFrame,
    rows: list[str],
    columns: list[str],
    values: dict[str, tuple[str, str]],
    digits: int = 3,
) -> pd.DataFrame:
    """A long table for print: one row per value of ``rows``, one column per value of ``columns``
    and per column of ``values``.

    values   column -> columns of the ends of its interval, which is shown in the same cell

    >>> long = {"model": ["m", "m"], "facts": ["never", "well"], "share": [0.5, 0.75], "low": [0.4, 0.7], "high": [0.6, 0.8]}
    >>> side_by_side(pd.DataFrame(long), ["model"], ["facts"], {"share": ("low", "high")}, 1).to_dict("records")
    [{'model': 'm', 'never': '0.5 [0.4, 0.6]', 'well': '0.8 [0.7, 0.8]'}]
    """
    parts = {}
    for keys, part in table.groupby(columns, sort=False):
        own = part.set_index(rows)
        for name, (low, high) in values.items():
            title = ": ".join([*map(str, keys), *[name] * (len(values) > 1)])
            parts[title] = with_interval(own[name], own[low], own[high], digits)
    wide = pd.concat(parts, axis=1, sort=False).fillna("–")
    return wide.rename_axis(rows).reset_index()


def _scroll(style) -> str:
    return f"<div style='overflow-x: auto'>{style.to_html()}</div>"
