"""The bibliography and CITATION.cff say the same of the four papers, and every measure names its
paper."""

import itertools
import json
import re

import pytest
import yaml

from probelib import published
from probelib.beyond import suite
from probelib.beyond.suite import PAPERS
from probelib.paths import NOTEBOOKS, PACKAGE, ROOT

pytestmark = pytest.mark.fast

OTHERS = (
    "karr",
    "bear",
    "lama",
    "wikifactdiff",
    "allenzhu",
    "chang",
    "gekhman",
)  # keys beside the four papers


def test_the_bibliography_reads_as_bibtex_and_has_no_key_twice():
    text = (PACKAGE / "published" / "references.bib").read_text(encoding="utf-8")
    keys = re.findall(r"^@\w+\{(\w+),$", text, re.MULTILINE)
    assert len(keys) == len(set(keys)) >= 11 and text.count("{") == text.count("}")
    for key in keys:
        entry = published.reference(key)
        assert {"title", "author", "year", "url"} <= set(entry), key
        assert not re.search(r"[\\{}]", "".join(entry.values())), key  # no TeX is left
        assert entry.get("eprint", "") in entry["url"] or "aclanthology" in entry["url"], key


def test_citation_file_and_bibliography_agree():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["references"]
    for key, entry in zip(("monitor", "zplke", "distractors", "grapheval"), cited, strict=True):
        known = published.reference(key)
        authors = " and ".join(f"{a['family-names']}, {a['given-names']}" for a in entry["authors"])
        said = {
            "title": entry["title"],
            "year": str(entry["year"]),
            "url": entry["url"],
            "author": authors,
        }
        assert said.items() <= known.items()


def citations(text: str) -> set[str]:
    """Keys of citations such as [monitor, Eq. 3] and [karr].

    >>> sorted(citations("PFD [monitor, Eq. 1], KaRR [karr], p [L], f [R, L]"))
    ['karr', 'monitor']
    """
    located = re.findall(r"\[([a-z]+), (?:Eq|Sec|Fig)\. \d|\[([a-z]+), Table \d", text)
    return {key for pair in located for key in pair if key} | set(
        re.findall(rf"\[({'|'.join(OTHERS)})\]", text)
    )


def test_every_citation_has_its_entry_in_the_bibliography():
    sources = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.yaml"), *NOTEBOOKS.rglob("*.ipynb")]
    used = {key for path in sources for key in citations(path.read_text(encoding="utf-8"))}
    assert {published.reference(key)["url"][:8] for key in used} == {"https://"}
    assert set(PAPERS[:4]) <= used <= set(PAPERS[:4]) | set(OTHERS)


def heads() -> dict[str, str]:
    """Notebook -> its text before the first code cell."""
    found = {}
    for path in sorted(NOTEBOOKS.rglob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        head = itertools.takewhile(lambda cell: cell["cell_type"] == "markdown", cells)
        found[path.relative_to(NOTEBOOKS).as_posix()] = "\n".join(
            "".join(cell["source"]) for cell in head
        )
    return found


def test_every_notebook_links_its_literature_at_the_head():
    """At least one entry of the bibliography, and no paper that the bibliography lacks."""
    text = (PACKAGE / "published" / "references.bib").read_text(encoding="utf-8")
    known = {
        published.reference(key)["url"] for key in re.findall(r"^@\w+\{(\w+),$", text, re.MULTILINE)
    }
    linked = {
        name: set(re.findall(r"\]\((https?://[^)]*)\)", head)) for name, head in heads().items()
    }
    assert [name for name, urls in linked.items() if not urls & known] == []
    papers = re.compile("arxiv|aclanthology|doi.org|openreview")
    unknown = {url for urls in linked.values() for url in urls - known if papers.search(url)}
    assert not unknown, "papers that references.bib lacks"


def test_every_notebook_that_names_a_paper_links_it():
    """The authors' names with a year are links to the bibliography's addresses."""
    names = {
        "Wang": "monitor",
        "Wu": "zplke",
        "Ammar Khodja": "distractors",
        "Liu": "grapheval",
        "Chang": "chang",
    }
    names |= {"Petroni": "lama", "Wiland": "bear", "Berglund": "berglund"}
    found = 0
    for notebook, text in heads().items():
        for name in re.findall(rf"({'|'.join(names)}) et al\.", text):
            assert published.reference(names[name])["url"] in text, (notebook, name)
            found += 1
    assert found >= 50


def test_every_measure_names_its_paper_and_equation():
    for each in (suite.MEASURES[name] for name in suite.measures_of(*PAPERS[:4])):
        function = getattr(each.compute, "func", each.compute)  # some are partial functions
        keys = citations(function.__doc__ or "")
        assert keys and keys <= {each.paper, "karr"}, each.name


@pytest.mark.parametrize(
    "paper, equations", [("monitor", 3), ("zplke", 5), ("distractors", 4), ("grapheval", 2)]
)
def test_every_equation_is_cited_by_the_code_that_computes_it(paper, equations):
    """GraphEval's equation 1 is a bound on its judge's error, which nobody computes."""
    everywhere = "".join(p.read_text(encoding="utf-8") for p in PACKAGE.rglob("*.py"))
    own = "".join(p.read_text(encoding="utf-8") for p in (PACKAGE / paper).rglob("*.py"))
    for number in range(2 if paper == "grapheval" else 1, equations + 1):
        cited = f"[{paper}, Eq. {number}]" in everywhere or f"Eq. {number}" in own
        assert cited, f"{paper}, equation {number}"
