"""The MyST project of the committed pages."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from probelib import files, paths
from probelib.export.site import _for_myst, main, write_site
from probelib.paths import ROOT
from probelib.runner import plan


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    assert main(["--out", str(out)]) == 0
    return out


def test_every_page_of_the_plan_has_its_place(site):
    project = yaml.safe_load((site / "myst.yml").read_text())["project"]
    listed = [child["file"] for part in project["toc"] for child in part.get("children", [])]
    listed.remove("phenomena.md")
    assert listed == [f"{step.notebook}.md" for step in plan.read().steps if (site / f"{step.notebook}.md").exists()]
    assert "monitor/sec5_results.md" in listed and all((site / name).exists() for name in project["bibliography"])


def test_no_link_or_picture_leads_nowhere(site):
    found = 0
    for page in site.rglob("*.md"):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
            assert (page.parent / target).exists(), (page, target)
            found += 1
    assert found > 200  # pictures, numbers, and links between pages


def test_the_first_page_shows_what_was_found_and_every_page(site):
    index = (site / "index.md").read_text()
    assert "](beyond/quality_against_cost.png)" in index and "## MONITOR (Wang et al., NAACL 2024)" in index
    assert re.search(r"^- .+pairs.+\(\[.+\]\(beyond/ground_truth\.md\)\)$", index, re.MULTILINE)
    assert "- [Section 5: how reliable are a model's answers?](monitor/sec5_results.md)" in index
    for page in site.rglob("*.md"):
        assert page.name == "index.md" or f"]({page.relative_to(site).as_posix()})" in index, page


def test_numbers_are_beside_their_page(site):
    page = (site / "monitor" / "sec5_results.md").read_text()
    assert "([all columns](table4.csv))" in page and "The notebook" not in page  # no link, as there is no owner
    copied = (site / "monitor" / "table4.csv").read_text()
    assert copied == (ROOT / "figures" / "atlas" / "monitor" / "table4.csv").read_text()


def test_the_page_of_claims_comes_last_at_the_start(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    for name in ("00_tour", "monitor/sec5_results", "phenomena"):
        files.write(paths.FIGURES / "mine" / f"{name}.md", f"# On {name}\n\n[claim](monitor/sec5_results.md)\n")
    start, monitor = yaml.safe_load(write_site(tmp_path / "site", "mine").read_text())["project"]["toc"][1:]
    assert [child["file"] for child in start["children"]] == ["00_tour.md", "phenomena.md"]
    assert "[claim](monitor/sec5_results.md)" in (tmp_path / "site" / "phenomena.md").read_text()


def test_equations_have_the_numbers_of_the_paper():
    page = _for_myst("Eq. 1:\n\n$$a = b \\tag{3, 4}$$\n\n$$c = d$$\n")
    assert page == "Eq. 1:\n\n```{math}\n:enumerator: 3, 4\na = b\n```\n\n$$c = d$$\n"


def test_the_code_of_adjacent_cells_is_one_block():
    fold = "<details><summary>Code</summary>\n\n```python\n{}\n```\n\n</details>\n\n"
    once = fold.format("1\n```\n\n```python\n2")
    rest = f"Text.\n\n{fold.format(3)}"
    assert _for_myst(fold.format(1) + fold.format(2) + rest) == once + rest


def test_a_citation_follows_the_quotation_marks():
    title = '"[Assessing](https://aclanthology.org/2024.naacl-long.46)"'
    assert _for_myst(f"{title}, {title}") == f"{title} {{cite:p}}`monitor`, {title}"


def test_the_icon_is_a_picture(site):
    from matplotlib.image import imread

    assert imread(site / "favicon.png").shape[:2] == (32, 32)


def maths(node: dict) -> list[dict]:
    """The displayed equations of a MyST tree."""
    below = [found for child in node.get("children", []) for found in maths(child)]
    return [node] if node.get("type") == "math" else below


@pytest.mark.skipif(not shutil.which("myst"), reason="needs mystmd (npm install -g mystmd) and node")
def test_myst_builds_every_page_without_a_warning(site, tmp_path):
    """As `myst build --html` does, up to the theme, which would be downloaded: pages, cross-references, bibliography, search."""
    built = shutil.copytree(site, tmp_path / "site")
    (tmp_path / "theme").mkdir()
    kinds = {"logo_text": "string", "favicon": "file", "style": "file", "folders": "boolean"}  # as in the book theme
    options = [{"id": name, "type": kind} for name, kind in kinds.items()]
    theme = yaml.safe_dump({"jtex": "v1", "title": "none", "options": options})
    (tmp_path / "theme" / "template.yml").write_text(theme)
    config = built / "myst.yml"
    config.write_text(config.read_text().replace("template: book-theme", "template: ../theme"))
    done = subprocess.run(["myst", "build", "--site"], cwd=built, capture_output=True, text=True, timeout=600)
    said, bibliography = done.stdout + done.stderr, (built / "references.bib").read_text()
    assert done.returncode == 0 and not re.search("⚠|⛔", said), said
    pages = [json.loads(path.read_text()) for path in (built / "_build" / "site" / "content").glob("*.json")]
    parts = yaml.safe_load(config.read_text())["project"]["toc"]
    assert len(pages) == 1 + sum(len(part.get("children", [])) for part in parts)
    for page in pages:  # no text is taken for an address
        source = (built / page["location"].lstrip("/")).read_text()
        links = re.findall(r'"url": "(http[^"]+)"', json.dumps(page["mdast"]))
        assert all(link in source or link in bibliography for link in links), page["location"]
    cited = {page["location"]: page["references"].get("cite", {}).get("order", []) for page in pages}
    assert cited["/index.md"] == ["monitor", "zplke", "distractors", "grapheval"]
    assert cited["/monitor/sec5_results.md"] == ["monitor"]
    equations = {page["location"]: [node.get("enumerator") for node in maths(page["mdast"])] for page in pages}
    assert equations["/monitor/sec5_results.md"] == ["1", "2", "3"] and equations["/00_tour.md"] == [None, None]
    records = json.loads((built / "_build" / "site" / "myst.search.json").read_text())["records"]
    assert any("PFD" in record.get("content", "") for record in records)


def test_a_profile_without_pages_is_an_error(tmp_path, capsys):
    assert main(["--out", str(tmp_path), "--profile", "nowhere"]) == 1
    assert "./run_all.sh --profile nowhere makes them" in capsys.readouterr().err


def test_the_command_line_writes_it(tmp_path):
    command = [sys.executable, "-m", "probelib.export.site", "--out", tmp_path]
    kit = os.environ | {"PROBELIB_OUT": str(ROOT)}
    made = subprocess.run(command, capture_output=True, text=True, check=True, env=kit)
    assert made.stdout.strip() == str(tmp_path / "myst.yml") and (tmp_path / "myst.yml").exists()
