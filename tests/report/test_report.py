"""Artifacts, pages and charts: same bytes twice, everything escaped, nothing fetched, the committed
pages show the CSVs."""

import html
import json
import os
import re
from types import SimpleNamespace
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
from nbconvert.filters import markdown2html

from probelib import paths, report
from probelib.errors import ProbeError
from probelib.report import Artifact, claims, pages
from probelib.report.shown import escape_markdown
from probelib.runner import plan

pytestmark = pytest.mark.fast

MODELS = ["a_b", "<script>alert(1)</script>"]
FRAME = pd.DataFrame({"model": MODELS, "score": [0.123456789, np.nan], "n": [10, 20]})
TEXTS = {
    "p/table1": {"caption": "A caption & more."},
    "p/figure1": {"caption": "A figure.", "alt": "a rising line",
                  "claims": {"up": {"claim": "It rises.", "statistic": "slope"}}},
}  # fmt: skip
FIGURES = paths.ROOT / "figures"
PROFILES = ("atlas", "real", "study", "larger", "taught")
PAGES = sorted(p for name in PROFILES for p in (FIGURES / name).rglob("*.md"))
OTHER = SimpleNamespace(notebook="p/other", title="other", makes=["p/table2"])


@pytest.fixture
def section(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(claims, "_entries", lambda: TEXTS)
    return report.Section("p/notebook", "smoke", None, {"n": 1})


def make(section):
    section.save(Artifact("p/table1", FRAME, best={"score": "min"}))
    figure, axis = plt.subplots()
    axis.plot([1, 2], [3, 4], **report.model_style("atlas-neox-2.4m"))
    up = claims.check("p/figure1", up={"value": 0.5, "low": 0.4, "high": 0.6, "n": 9})
    section.save(Artifact("p/figure1", FRAME, up, figure))
    assert type(figure.get_layout_engine()).__name__ == "ConstrainedLayoutEngine"  # as before
    plt.close(figure)


def executed(section) -> SimpleNamespace:
    """A step of the plan whose notebook was executed, with both artifacts, a formula, printed text
    and a frame."""
    new = nbformat.v4
    about = lambda name: {"probelib_artifact": name}
    shown = lambda name: new.new_output("display_data", {"text/plain": ""}, metadata=about(name))
    outputs = [shown("p/table1"), shown("p/figure1"), new.new_output("stream", text="a ``` <b>")]
    outputs.append(new.new_output("stream", name="stderr", text="100%|####|"))
    cells = [new.new_markdown_cell("# A title\n\n$$x_1 = 1$$"), new.new_code_cell("a = 1")]
    cells += [new.new_markdown_cell("## Part"), new.new_code_cell("b = 2", outputs=outputs)]
    path = paths.RUNS / "smoke" / "notebooks" / "p" / "notebook.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(new.new_notebook(cells=cells, metadata={"widgets": {"x": {}}}), path)
    makes = ["p/table1", "p/figure1"]
    return SimpleNamespace(notebook="p/notebook", title="a <title>", makes=makes)


def test_same_run_same_bytes(section):
    make(section)
    first = {p: p.read_bytes() for p in section.folder.rglob("*.*")}
    assert {p.suffix for p in first} == {".csv", ".tex", ".html", ".json", ".png", ".pdf"}
    make(section)
    assert {p: p.read_bytes() for p in section.folder.rglob("*.*")} == first


def test_a_table_keeps_its_digits_and_escapes_its_strings(section):
    make(section)
    stem = section.folder / "p" / "table1"
    assert pd.read_csv(f"{stem}.csv")["score"][0] == pytest.approx(0.123456789, abs=1e-10)
    page, tex = stem.with_suffix(".html").read_text(), stem.with_suffix(".tex").read_text()
    assert "<script>" not in page and "&lt;script&gt;" in page and "0.123" in page and "–" in page
    assert r"a\_b" in tex and r"\toprule" in tex and r"\bfseries 0.123" in tex


def test_an_interval_is_shown_in_its_cell_and_the_csv_keeps_every_column(section):
    frame = FRAME.assign(**{"score low": [0.1, np.nan], "score high": [0.2, np.nan]})
    section.save(Artifact("p/table1", frame, best={"score": "min"}))
    stem = section.folder / "p" / "table1"
    assert pd.read_csv(stem.with_suffix(".csv")).columns.tolist() == frame.columns.tolist()
    page = pages.artifact_markdown("smoke", "p/table1", section.folder / "p")
    texts = [stem.with_suffix(suffix).read_text() for suffix in (".html", ".tex")]
    assert all("0.123 [0.100, 0.200]" in text for text in (*texts, page))
    assert "| **0.123 [0.100, 0.200]** |" in page and "[all columns](table1.csv)" in page


def test_the_record_says_where_a_number_comes_from(section):
    make(section)
    record = json.loads((section.folder / "p" / "figure1.json").read_text())
    assert record["caption"] == "A figure." and record["parameters"] == {"n": 1}
    assert record["versions"]["torch"] and record["profile"] == "smoke"
    checked = pd.read_csv(section.folder / "p" / "figure1.claims.csv")
    assert checked[["key", "value", "n", "verdict"]].values.tolist() == [["up", 0.5, 9, "shown"]]


def test_a_page_shows_artifacts_claims_and_folded_code(section):
    make(section)
    page = pages.write_page("smoke", executed(section)).read_text()
    assert page.index("## In short") < page.index("## Part")
    assert "[Figure 1](#figure1): **It rises.** Here: slope = 0.50 [0.40, 0.60], n = 9: s" in page
    assert "![a rising line](figure1.png)" in page and "A caption & more." in page
    assert page.count("<summary>Code</summary>") == 2 and "````text\na ``` <b>\n````" in page
    assert "100%" not in page and pages.write_page("smoke", OTHER) is None


def test_a_notebook_shows_what_its_page_shows(section, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, **_: shown.append(data))
    section.show(Artifact("p/table1", FRAME))
    section.show(Artifact("p/figure1", FRAME, figure=(figure := plt.figure())))
    table, picture, text = shown
    assert "| a\\_b | 0.123 | 10 |" in table["text/markdown"] and "&lt;script>" in str(table)
    assert picture["image/png"][:4] == b"\x89PNG" and "A figure." in text["text/markdown"]
    assert "![" not in text["text/markdown"] and not plt.fignum_exists(figure.number)


def test_the_book_is_one_page_that_fetches_nothing(section):
    make(section)
    about, ok = {"models": ["A_b", "c"], "data": []}, {"p/notebook": "ok"}
    page = pages.book("smoke", [executed(section), OTHER], ok, about).read_text()
    assert "<li>models: A_b, c" in page and "<li>data" not in page
    assert "<script" not in page and not re.search(r"src=.https?:", page)
    assert "a &lt;title&gt;" in page and 'src="data:image/png;base64,' in page and "<math" in page
    assert "Not made yet." in page and "default-src 'none'" in page
    assert "What is claimed" not in page  # no claim of a paper was made


@pytest.mark.parametrize(
    ("file", "content"),
    [("figure1.png", None), ("table1.json", "{}"), ("table1.json", "{"), ("table1.csv", None)],
)
def test_a_damaged_product_names_its_page_and_leaves_the_others(section, file, content):
    make(section)
    damaged = section.folder / "p" / file
    damaged.unlink() if content is None else damaged.write_text(content)
    page = pages.book("smoke", [executed(section), OTHER], {}, {}).read_text()
    assert "--only p/notebook --force" in page and "other" in page


def test_a_table_by_hand():
    table = {"m": ["a|b", "c"], "r": ["-0.81234", ""], "n": ["3e+09", "4"], "p": ["4e-05", "0.04"]}
    first = "| a\\|b | -0.81 | 3,000,000,000 | under 0.001 |"
    rows = ["|---|---|---|---|", first, "| c | – | 4 | 0.040 |"]
    assert pages.table_markdown(pd.DataFrame(table), {"r": 2}).split("\n")[1:] == rows
    long = pages.table_markdown(pd.DataFrame({"n": range(pages.LONGEST + 1)}))
    assert long.startswith(f"<details><summary>{pages.LONGEST + 1} rows</summary>")


def test_names_in_a_table_are_shown_letter_by_letter():
    names = ["_United States_", "*NSYNC*", "a `b` c", "New Zealand\\, Inc.", "AC|DC", "~~old~~"]
    names += ["Ke$ha and A$AP", "<i>x</i>", "[link](http://a.b)", "snake_case_name", "&amp;"]
    page = markdown2html(pages.table_markdown(pd.DataFrame({"label": names})))
    shown = re.findall(r"<td[^>]*>(.*?)</td>", page)
    assert [html.unescape(re.sub("<[^>]*>", "", cell)) for cell in shown] == names


def test_no_artifact_leaves_the_folder_of_its_profile(section, monkeypatch):
    monkeypatch.setattr(claims, "_entries", lambda: {"../x": {"caption": "A caption."}})
    section.save(Artifact("../x", FRAME))
    assert not (section.folder.parent / "x.csv").exists() and list(section.folder.rglob("x.csv"))


def test_a_section_keeps_the_parameters_that_its_notebook_declares():
    """No other name, no profile, and no place where files lie."""
    values = {"__name__": "__main__", "pd": pd, "profile": "smoke", "papers": None, "data": "atlas"}
    assert report.parameters_of("beyond/audit", values) == {"papers": None}
    given = {"results": "/home/me/scores", "relations": ["P36", "~/x"], "n": 1}
    kept = {"results": "scores", "relations": ["P36", "x"]}
    assert report.parameters_of("beyond/real_gpt2", given) == kept
    assert report.parameters_of("my/own", {"n": 1}) == {"n": 1}
    with pytest.raises(ProbeError, match="my/own.ipynb does not exist"):
        report.parameters_of("my/own", values)


def test_a_formula_by_hand():
    root = ElementTree.fromstring(pages.to_html(r"$\frac{a}{b}$"))[0]
    assert root.tag.endswith("math") and root.get("display") == "inline"
    letters = [(node.tag.split("}")[1], node.text) for node in root.iter() if node.text]
    assert letters == [("mi", "a"), ("mi", "b")]
    assert 'display="block"' in pages.to_html("So $$a_b$$ holds.")


@pytest.mark.parametrize("source", ["`$HOME$`", "```\nx = $a$\n```", r"\$a\$", "no formula"])
def test_what_is_no_formula_stays(source):
    shown = re.sub("<[^>]*>", "", pages.to_html(source)).strip()
    assert shown == source.replace("\\", "").strip("`\n")


def test_every_formula_of_the_kit_is_known():
    known = 0
    for path in sorted(paths.NOTEBOOKS.rglob("*.ipynb")):
        for cell in json.loads(path.read_text())["cells"]:
            if cell["cell_type"] == "markdown":
                text = "".join(cell["source"])
                prose = re.sub(r"(?s)(`+).+?\1", "", text)
                formulas = re.findall(r"\$\$.+?\$\$|\$.+?\$", prose, re.S)
                shown = pages.to_html(text).count("<math")
                assert shown == len(formulas), (path.name, text)
                known += shown
    assert known > 100


def test_every_notebook_of_the_plan_has_a_committed_page():
    names = {str(p.relative_to(FIGURES)) for p in PAGES if p.is_relative_to(FIGURES / "atlas")}
    steps = plan.steps_of(plan.read(), "atlas")
    assert names == {"atlas/claims.md", *(f"atlas/{step.notebook}.md" for step in steps)}
    index = (FIGURES / "README.md").read_text(encoding="utf-8")  # written by hand
    assert all(f"[{step.title}](atlas/{step.notebook}.md)" in index for step in steps)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_committed_page_shows_the_committed_numbers(path):
    """Whole tables are their CSVs, captions those of ``claims.yaml``; links lead to the kit."""
    text = path.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", re.sub(r"```.*?```", "", text, flags=re.S))
    targets = [os.path.normpath(path.parent.relative_to(paths.ROOT) / link) for link in links]
    assert all((paths.ROOT / target).exists() and not target.startswith("..") for target in targets)
    captions = re.findall(r"^\*\*[^*]+\.\*\* (.*) <sub>\(\[[a-z ]+\]\((\S+)\.csv\)", text, re.M)
    for shown, name in captions:
        caption = claims.texts("/".join((path.parent / name).parts[-2:])).caption
        assert shown in (escape_markdown(caption), "Not shown here."), name
    whole = r"((?:^\|.*\n)+)(?:\n</details>\n)?\n\*\*[^\n]*\(\[numbers\]\((\S+?)\)\)"
    for rows, numbers in re.findall(whole, text, re.M):
        head, _, *body = [re.split(r"(?<!\\)\|", row)[1:-1] for row in rows.strip().split("\n")]
        table = pd.read_csv(path.parent / numbers)
        assert len(head) == len(table.columns) and len(body) == len(table)
        columns = zip(*body, strict=True) if body else [()] * len(head)
        for column, shown in zip(table, columns, strict=True):
            for cell, value in zip(shown, table[column], strict=True):
                if isinstance(value, float) and np.isfinite(value):
                    cell = cell.strip().strip("*")
                    digits = len(cell.partition(".")[2])
                    assert float(cell) == pytest.approx(value, abs=0.51 * 10**-digits)
