"""The Markdown pages: what an executed notebook shows, as GitHub can show it; nothing of data becomes markup."""

import os
import re
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import pytest
from nbclient import NotebookClient

from probelib import paths
from probelib.report import markdown
from probelib.runner import plan

FIGURES = paths.ROOT / "figures"
PAGES = [FIGURES / "README.md", *sorted((FIGURES / "atlas").rglob("*.md")), *sorted((FIGURES / "study").rglob("*.md"))]


def test_a_table_by_hand():
    table = pd.DataFrame({"model": ["a|b", "Ke$ha"], "r": ["-0.81234", ""], "n": ["12", "1"]})
    rows = ["| model | r | n |", "|---|---|---|", "| a\\|b | -0.81 | 12 |", "| Ke\\$ha | – | 1 |"]
    assert markdown.table_markdown(table, {"r": 2}).split("\n") == rows


def test_a_long_table_is_folded():
    for n, start in ((31, "<details><summary>31 rows</summary>\n\n| n |"), (30, "| n |")):
        assert markdown.table_markdown(pd.DataFrame({"n": range(n)})).startswith(start)


LINKS = "[Results of the default run](../../figures/atlas/monitor/sec9.md), [facts](../01_facts.ipynb#read), [none](none.md)"


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> str:
    """The page of a small notebook that was really executed: a figure, a table, a frame, a sentence."""
    out = tmp_path_factory.mktemp("page")
    sources = [
        "import pandas as pd, matplotlib.pyplot as plt\n"
        "from probelib import report\n"
        "section = report.Section('monitor/sec9', 'atlas', None, {})",
        "figure, axis = plt.subplots()\n"
        "section.show(report.legacy.Artifact('monitor/figure1', pd.DataFrame({'x': [0.5]}), 'Caption of <b>', 'r = 1.', figure,\n"
        "                             'A | line', pd.DataFrame({'printed': [2]})))",
        "section.show(report.legacy.Artifact('monitor/table1', pd.DataFrame({'x': [0.123456]}), 'Of a table', decimals=2))",
        "pd.DataFrame({'shown': [1]})",
        "pd.DataFrame({'styled': ['<i>'], 'value': [0.123456]}).style.format(precision=2).hide(axis='index')",
        "from IPython.display import HTML\nHTML('<style>p {}</style><p>The <b>board</b> &amp; its text</p>')",
    ]
    title = nbformat.v4.new_markdown_cell("# A title\n\n$$x = 1$$\n\n" + LINKS)
    cells = [title, *map(nbformat.v4.new_code_cell, sources)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "RUNS", out / "runs")
        patch.setattr(paths, "FIGURES", out / "figures")
        patch.setenv("PROBELIB_OUT", str(out))
        notebook = NotebookClient(nbformat.v4.new_notebook(cells=cells)).execute()
        target = paths.RUNS / "atlas" / "notebooks" / "monitor" / "sec9.ipynb"
        target.parent.mkdir(parents=True)
        nbformat.write(notebook, target)
        step = SimpleNamespace(notebook="monitor/sec9", makes=[])
        return markdown.write_page("atlas", step).read_text(encoding="utf-8")


def test_a_page_shows_pictures_tables_captions_findings_and_printed_values(page):
    assert page.startswith("# A title\n\n$$x = 1$$\n\n[The notebook](")
    assert "![A \\| line](figure1.png)" in page and page.count("base64") == 0
    assert "**Figure 1.** Caption of &lt;b> ([numbers](figure1.csv))" in page
    assert "> **Finding.** r = 1." in page
    assert "The values that the paper prints" in page and " printed\n       2" in page
    assert "| x |\n|---|\n| 0.12 |" in page
    assert "```text\n   shown\n0      1\n```" in page  # the header is above its column
    assert "<summary>Code</summary>" in page


def test_links_of_a_page_are_those_of_the_kit_wherever_it_is_written(page):
    """The page lies in a temporary folder: no path of this machine is in it, and its bytes do not depend on the folder."""
    kit = "../../../notebooks"
    assert f"[The notebook]({kit}/monitor/sec9.ipynb), [facts]({kit}/01_facts.ipynb#read), [none](none.md)" in page


def test_a_page_shows_no_object_addresses(page):
    """A Styler becomes a table, an HTML object its text."""
    shown = re.sub(r"```python.*?```", "", page, flags=re.S)
    assert "| styled | value |\n|---|---|\n| &lt;i> | 0.12 |" in shown
    assert "The board & its text" in shown
    assert "<style" not in shown and not re.search(r"<[\w.]+ (object|at 0x)", shown)


def test_a_step_that_was_not_executed_has_no_page(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    assert markdown.write_page("atlas", SimpleNamespace(notebook="monitor/none", makes=[])) is None


def test_every_notebook_of_the_plan_has_a_committed_page():
    names = {str(page.relative_to(FIGURES / "atlas")) for page in PAGES if page.is_relative_to(FIGURES / "atlas")}
    assert names == {"phenomena.md", *(f"{step.notebook}.md" for step in plan.read().steps)}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_committed_page_shows_the_committed_numbers(path):
    """Every table of a page is its CSV, cell by cell, rounded to the digits that are shown; every link leads to a file
    of the kit, and to none of the machine that made the page."""
    text = path.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", re.sub(r"```.*?```", "", text, flags=re.S))
    targets = [os.path.normpath(path.parent.relative_to(paths.ROOT) / link) for link in links]
    assert all((paths.ROOT / target).exists() and not target.startswith("..") for target in targets)
    for rows, kind, numbers in re.findall(
        r"((?:^\|.*\n)+)(?:\n</details>\n)?\n\*\*[^\n]*\(\[(numbers|all columns)\]\((\S+?)\)\)", text, re.M
    ):
        head, _, *body = [re.split(r"(?<!\\)\|", row)[1:-1] for row in rows.strip().split("\n")]
        table = pd.read_csv(path.parent / numbers)
        if kind == "all columns":
            assert len(head) <= len(table.columns) and not wrong_numbers(body, table)
            continue
        assert len(head) == len(table.columns) and len(body) == len(table)
        for column, shown in zip(table, zip(*body, strict=True), strict=True):
            for cell, value in zip(shown, table[column], strict=True):
                if isinstance(value, float) and np.isfinite(value):
                    digits = len(cell.strip().partition(".")[2])
                    assert float(cell) == pytest.approx(value, abs=0.51 * 10**-digits)


def wrong_numbers(body: list[list[str]], table: pd.DataFrame) -> list[str]:
    """The decimal fractions of a selection that are neither in the rows of the CSV that hold its first cell, nor a median."""
    wrong = []
    for first, *cells in body:
        rows = table[(table.astype(str) == first.strip().replace("\\", "")).any(axis=1)]
        numbers = re.findall(r"-?\d+\.?\d*(?:e[+-]\d+)?", " ".join(map(str, rows.to_numpy().ravel())))
        known = np.array([*map(float, numbers), *rows.select_dtypes("float").median(axis=1)])
        for text in re.findall(r"(?<!&lt;)(?<![\w<-])-?\d+\.\d+", " ".join(cells)):
            if not (np.abs(known - float(text)) <= 0.51 * 10.0 ** -len(text.partition(".")[2])).any():
                wrong.append(f"{first}: {text}")
    return wrong


def test_a_number_of_a_selection_that_is_not_in_the_csv_is_found():
    table = pd.DataFrame({"model": ["a_b", "c"], "score": [0.1234, 0.5], "low": [0.1, np.nan], "high": [0.2, np.nan]})
    assert wrong_numbers([[" a\\_b ", " 0.12 [0.10, 0.20] "], [" c ", " 0.50 "]], table) == []
    assert wrong_numbers([[" c ", " 0.12 "]], table) == [" c : 0.12"]
    three = pd.DataFrame({"relation": ["P1"], "a": [0.1], "b": [0.3], "c": [0.8], "said": "0.77, 2"})
    assert wrong_numbers([["P1", "0.100 (a-2.4m)", "0.300", "0.77"]], three) == []  # a median, and a number in a text
