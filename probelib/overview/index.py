"""``notebooks/README.md``: the notebooks by paper, by measure, by figure and table (``python -m probelib.overview`` writes it).

It is made from the plan, the registered measures and the descriptions of the papers' tables and figures; a test checks that it is
up to date. The same command writes the cell with which Colab downloads the kit, once pyproject.toml names the repository's owner.
"""

import csv
import json
import re
import tomllib
from textwrap import fill

from probelib import paths, published
from probelib.beyond import MEASURES
from probelib.paths import ROOT
from probelib.report import summary
from probelib.report.pages import PAPERS
from probelib.report.shown import artifact_title
from probelib.runner import plan

FOUND = ("<!-- found -->", "<!-- /found -->")  # around the findings in README.md
HEAD = """# The notebooks

{badges}New here? [00_tour](00_tour.ipynb) goes from one fact to one score; [explore](explore.ipynb) shows what the four papers
say of a fact that you pick. *Results* links the page of the default run: story, tables, figures, findings. To run them over
other models and facts: [your_own.md](your_own.md); to teach with them: [exercises](exercises/README.md). This page is written by
`python -m probelib.overview`.
"""


BADGES = """Without installing anything: [Binder]({binder}), or Colab with [the tour]({colab}/00_tour.ipynb) or
[explore]({colab}/explore.ipynb)

"""


ON_COLAB = ("00_tour", "explore")  # notebooks that the index links to Colab
COLAB = """import os
import subprocess
import sys

if "COLAB_RELEASE_TAG" in os.environ:  # on Google Colab only: fetch the kit and install it
    repository = "{address}"
    subprocess.run(["git", "clone", "-q", "--depth", "1", repository], check=True)
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "-e", "{name}"], check=True)
    sys.path.insert(0, os.path.abspath("{name}"))"""


def repository() -> str:
    """The address under which the kit is published (pyproject.toml), from which badges and links are made."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]


def badges() -> dict[str, str]:
    """The addresses that open the notebooks in Binder and in Colab."""
    owner_and_name = repository().removeprefix("https://github.com/")
    return {
        "binder": f"https://mybinder.org/v2/gh/{owner_and_name}/HEAD?urlpath=lab/tree/notebooks/00_tour.ipynb",
        "colab": f"https://colab.research.google.com/github/{owner_and_name}/blob/HEAD/notebooks",
    }


def has_owner(address: str) -> bool:
    """Whether the kit is published. Before that there are no badges and no cell for Colab: their links would not work."""
    return "/OWNER/" not in address


def with_colab_cell(notebook: str, address: str) -> str:
    """A notebook's JSON with a cell after the parameters that downloads the kit from this address on Colab; without an owner,
    without this cell."""
    content = json.loads(notebook)
    cells = [cell for cell in content["cells"] if "COLAB_RELEASE_TAG" not in "".join(cell["source"])]
    if has_owner(address):
        source = COLAB.format(address=address, name=address.rsplit("/", 1)[-1]).splitlines(keepends=True)
        at = next(i for i, cell in enumerate(cells) if "parameters" in cell["metadata"].get("tags", []))
        empty = {"cell_type": "code", "execution_count": None, "id": "colab", "metadata": {}, "outputs": []}
        cells.insert(at + 1, empty | {"source": source})
    return json.dumps(content | {"cells": cells}, indent=1, ensure_ascii=False) + "\n"


def page() -> str:
    """The index as Markdown."""
    steps = plan.read().steps
    shown = BADGES.format(**badges()) if has_owner(repository()) else ""
    return "\n".join([HEAD.format(badges=shown), *_by_paper(steps), *_by_measure(steps), *_by_figure(steps)]) + "\n"


def with_findings(readme: str) -> str:
    """README.md with an updated list of findings between its two marks: those of the default run, each with its page, or, if
    committed, those of the study on more facts."""
    pages = {step.notebook: step.title.split(": ")[-1].rstrip("?") for step in plan.read().steps}
    said = {
        notebook: (profile, text)
        for profile in ("atlas", "study")
        for notebook, text in summary.findings(profile).items()
    }
    found = [
        fill(
            f"- {text} ([{pages[notebook]}](figures/{profile}/{notebook}.md))",
            128,
            subsequent_indent="  ",
            break_on_hyphens=False,
        )
        for notebook, (profile, text) in said.items()
    ]
    before, rest = readme.split(FOUND[0])
    return before + FOUND[0] + "\n" + "\n".join(found) + "\n" + FOUND[1] + rest.split(FOUND[1])[1]


def _by_paper(steps: list[plan.Step]) -> list[str]:
    groups: dict[str, list[plan.Step]] = {}
    for step in steps:
        groups.setdefault(step.notebook.split("/")[0] if "/" in step.notebook else "", []).append(step)
    rows = ["## By paper", ""]
    for paper, notebooks in groups.items():
        rows += [f"**{PAPERS.get(paper, ('First', ''))[0]}**: {_about(paper)}", ""]
        rows += [f"- {_link(step)}: {_without_paper(step.title)}{_results(step)}" for step in notebooks] + [""]
    return rows


def _about(paper: str) -> str:
    if paper not in list(PAPERS)[:4]:
        return PAPERS.get(paper, ("", "the tour, the facts, the models"))[1]
    entry = published.reference(paper)
    return f"[{entry['title']}]({entry['url']}) ({entry['author'].split(',')[0]} et al., {PAPERS[paper][1]})"


def _by_measure(steps: list[plan.Step]) -> list[str]:
    rows = ["## By measure", "", "| measure | prompts | paper | computed in |", "|---|---|---|---|"]
    for measure in MEASURES.values():
        compute = getattr(measure.compute, "func", measure.compute)  # of a partial
        file = f"{compute.__module__.removeprefix('probelib.').replace('.', '/')}.py"
        link = f"[{file}](../probelib/{file})"
        rows.append(f"| {measure.name} | {measure.prompts} | {PAPERS[measure.paper][0]} | {link} |")
    together = [
        step
        for step in steps
        if step.notebook in ("explore", "beyond/ground_truth", "beyond/robustness", "beyond/agreement")
    ]
    return [*rows, "", f"Many of them on the same facts: {', '.join(map(_link, together))}", ""]


def _by_figure(steps: list[plan.Step]) -> list[str]:
    with open(ROOT / "tests" / "coverage.csv", encoding="utf-8", newline="") as file:
        shows = {row["artifact"]: row["shows"] for row in csv.DictReader(file)}
    rows = [
        "## By figure and table",
        "",
        "Links lead to the default profile; the numbers of each are beside it as CSV.",
        "",
    ]
    rows += ["| artifact | what it shows in the paper | notebook |", "|---|---|---|"]
    for step in steps:
        for artifact in step.makes:
            paper = PAPERS.get(artifact.split("/")[0], (artifact.split("/")[0], ""))[0]
            name, what = f"{paper}, {artifact_title(artifact)}", shows.get(artifact, "").replace("|", "\\|")
            rows.append(f"| {_product(artifact, name)} | {what} | {_link(step)} |")
    return rows


def _product(artifact: str, name: str) -> str:
    """The name, linked to the picture or the numbers of the default profile if they are committed."""
    for suffix in (".png", ".csv"):
        if (paths.ROOT / "figures" / "atlas" / f"{artifact}{suffix}").exists():
            return f"[{name}](../figures/atlas/{artifact}{suffix})"
    return name


def _results(step: plan.Step) -> str:
    target = f"figures/atlas/{step.notebook}.md"
    return f" ([results](../{target}))" if (paths.ROOT / target).exists() else ""


def _link(step: plan.Step) -> str:
    return f"[{step.notebook}]({step.notebook}.ipynb)"


def _without_paper(title: str) -> str:
    """A title without the paper's name, which is in the heading: "MONITOR, section 4: anchors" -> "section 4: anchors"."""
    names = "|".join(re.escape(name) for name, _ in PAPERS.values())
    return re.sub(rf"^(?:{names})[,:] ", "", title)
