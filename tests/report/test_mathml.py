"""Formulas of Markdown cells become MathML; code, amounts of money and outputs stay."""

import json
import re
from xml.etree import ElementTree

import nbformat
import pytest
from nbconvert import HTMLExporter

from probelib.paths import NOTEBOOKS
from probelib.report.mathml import typeset

pytestmark = pytest.mark.fast


def cell(source: str) -> str:
    return typeset(source)


def test_a_fraction_by_hand():
    root = ElementTree.fromstring(cell(r"$\frac{a}{b}$"))
    assert root.tag.endswith("math") and root.get("display") == "inline"
    assert [(node.tag.split("}")[1], node.text) for node in root.iter() if node.text] == [
        ("mi", "a"),
        ("mi", "b"),
    ]
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell(typeset("So $$a_b$$ holds."))]
    )
    page, _ = HTMLExporter().from_notebook_node(notebook)
    assert (
        'display="block"' in page
        and "<msub><mi>a</mi>" in page
        and "$" not in page.split("<main")[-1]
    )


@pytest.mark.parametrize(
    "source", ["`$HOME$`", "```\nx = $a$\n```", "$5 and $10", r"\$a\$", "no formula"]
)
def test_what_is_no_formula_stays(source):
    assert cell(source) == source


def test_every_formula_of_the_kit_is_known():
    known = 0
    for path in sorted(NOTEBOOKS.rglob("*.ipynb")):
        for found in json.loads(path.read_text())["cells"]:
            if found["cell_type"] == "markdown":
                text = re.sub(r"(?s)(`+).+?\1", "", cell("".join(found["source"])))
                assert "$" not in text, (path.name, text[max(0, text.find("$") - 40) :][:90])
                known += text.count("<math")
    assert known > 100
