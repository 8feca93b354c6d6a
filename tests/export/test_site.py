"""The MyST project of the committed pages."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from probelib.export.site import main
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
    assert listed == [f"{step.notebook}.md" for step in plan.read().steps if (site / f"{step.notebook}.md").exists()]
    assert "monitor/sec5_results.md" in listed and all((site / name).exists() for name in project["bibliography"])


def test_no_link_or_picture_leads_nowhere(site):
    found = 0
    for page in site.rglob("*.md"):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
            assert (page.parent / target).exists(), (page, target)
            found += 1
    assert found > 80  # pictures, and links between pages


@pytest.mark.skipif(not shutil.which("myst"), reason="needs mystmd (npm install -g mystmd) and node")
def test_myst_builds_every_page_without_a_warning(site, tmp_path):
    """As `myst build --html` does, up to the theme, which would be downloaded: pages, cross-references, bibliography, search."""
    built = shutil.copytree(site, tmp_path / "site")
    (tmp_path / "theme").mkdir()
    (tmp_path / "theme" / "template.yml").write_text("jtex: v1\ntitle: none\n")
    config = built / "myst.yml"
    config.write_text(config.read_text().replace("template: book-theme", "template: ../theme"))
    done = subprocess.run(["myst", "build", "--site"], cwd=built, capture_output=True, text=True, timeout=600)
    said, bibliography = done.stdout + done.stderr, (built / "references.bib").read_text()
    assert done.returncode == 0 and not re.search("⚠|⛔", said), said
    pages = [json.loads(path.read_text()) for path in (built / "_build" / "site" / "content").glob("*.json")]
    assert len(pages) == 1 + sum(
        len(part.get("children", [])) for part in yaml.safe_load(config.read_text())["project"]["toc"]
    )
    for page in pages:  # no text is taken for an address
        source = (built / page["location"].lstrip("/")).read_text()
        links = re.findall(r'"url": "(http[^"]+)"', json.dumps(page["mdast"]))
        assert all(link in source or link in bibliography for link in links), page["location"]
    cited = {page["location"]: page["references"].get("cite", {}).get("order", []) for page in pages}
    assert cited["/index.md"] == ["monitor", "zplke", "distractors", "grapheval"]
    assert cited["/monitor/sec5_results.md"] == ["monitor"]
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
