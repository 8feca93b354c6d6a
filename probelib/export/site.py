"""``./run_all.sh site --out DIR``: write the pages of a profile as a MyST project, which Jupyter Book 2 builds.

    npm install mystmd && cd DIR && npx myst start       # or: npx myst build --html

One page per executed notebook of the plan, with its pictures and numbers, the page of claims, a table of contents by paper,
links between the pages, and the bibliography. Links to code lead to the repository that ``pyproject.toml`` names; without an
owner they are text.
"""

import argparse
import re
import shutil
import sys
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
import yaml

from probelib import files, paths, published
from probelib.errors import ProbeError, command
from probelib.overview.index import repository
from probelib.report import summary
from probelib.report.pages import PAPERS as PACKAGES
from probelib.runner import plan

PAPERS = ("monitor", "zplke", "distractors", "grapheval")
TITLE = "What do language models know as fact?"
ABOUT = """And which measure of it can be trusted? The kit regenerates the tables and figures of four papers, with small language
models whose knowledge is known. Every page is an executed notebook; its code is folded away.
"""
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")
EQUATION = re.compile(r"^\$\$(.+?)\s*\\tag\{([^}]*)\}\s*\$\$$", re.MULTILINE)
STYLE = """td:first-child { min-width: 9.5rem; }  /* a name such as atlas-llama-0.6m stays on one line */
@media (max-width: 640px) { table:has(th:nth-child(5)) { min-width: 40rem; } }  /* a phone scrolls wide tables */
main { overflow-x: clip; }  /* the hidden mark behind a long heading does not widen the page on a phone */
"""


@command
def main(arguments: list[str] | None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser("run_all.sh site", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--profile", default="atlas", help="the pages in figures/<profile> (default: atlas)")
    args = parser.parse_args(arguments)
    print(write_site(args.out, args.profile))


def write_site(out: Path, profile: str = "atlas") -> Path:
    """Write the project; return the path of its myst.yml. Raise ProbeError if the profile has no pages."""
    home = (paths.FIGURES / profile).resolve()
    steps = [step for step in plan.read().steps if (home / f"{step.notebook}.md").exists()]
    if not steps:
        raise ProbeError(f"{home} has no pages; ./run_all.sh --profile {profile} makes them")
    names = [step.notebook for step in steps] + ["phenomena"] * (home / "phenomena.md").exists()
    pages, titles = {f"{name}.md" for name in names}, {}
    for name in names:
        page = home / f"{name}.md"
        text = page.read_text(encoding="utf-8")
        titles[name] = _without_paper(text.split("\n")[0].removeprefix("# "))
        if not _address():
            text = re.sub(r"^\[The notebook\]\(.*\)\n\n", "", text, count=1, flags=re.MULTILINE)
        text = LINK.sub(partial(_link, page=page, home=home, pages=pages, out=out), text)
        files.write(out / f"{name}.md", _for_myst(text))
    shutil.copyfile(paths.PACKAGE / "published" / "references.bib", out / "references.bib")
    files.write(out / "site.css", STYLE)
    files.write(out / "favicon.png", _favicon())
    packages: dict[str, list[str]] = {}
    for name in names:
        packages.setdefault(name.rpartition("/")[0], []).append(name)
    files.write(out / "index.md", _index(profile, packages, titles, out))
    child = lambda name: {"file": f"{name}.md", "title": titles[name]}
    parts = [{"title": _part_title(name), "children": list(map(child, inside))} for name, inside in packages.items()]
    project = {"title": "probelib", "bibliography": ["references.bib"], "toc": [{"file": "index.md"}, *parts]}
    project |= {"numbering": {"equation": {"enabled": False}}}  # equations have the papers' numbers, or none
    project |= {"github": _address()} if _address() else {}
    options = {"logo_text": "probelib", "favicon": "favicon.png", "style": "site.css", "folders": True}
    site = {"template": "book-theme", "title": TITLE, "options": options}
    text = yaml.safe_dump({"version": 1, "project": project, "site": site}, sort_keys=False, allow_unicode=True)
    return files.write(out / "myst.yml", text)


def _address() -> str:
    """The address of the published kit; "" as long as pyproject.toml names no owner."""
    return "" if "/OWNER/" in repository() else repository()


def _link(found: re.Match, page: Path, home: Path, pages: set[str], out: Path) -> str:
    """A link of a page for the site. Links to pages, pictures and numbers of the site stay; pictures and numbers are copied. A
    link to another file of the checkout becomes its published address, or only its text if there is none."""
    picture, text, target, anchor = found.groups()
    path = (page.parent / target).resolve()
    if path.exists() and path.is_relative_to(home) and (picture or path.suffix == ".csv"):
        copy = out / path.relative_to(home)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        return found[0]
    if path.is_relative_to(home) and path.relative_to(home).as_posix() in pages:
        return found[0]
    if not path.exists() or not path.is_relative_to(paths.ROOT):
        return found[0] if picture else text
    inside = path.relative_to(paths.ROOT).as_posix()
    return f"[{text}]({_address()}/blob/main/{inside}{anchor or ''})" if _address() else text


def _for_myst(text: str) -> str:
    """Return the page in MyST's Markdown.

    - A citation follows the first link to each paper; MyST shows it on hover and lists it at the end.
    - Names such as ``distractors.fit`` in the cells of tables become code: MyST would read them as web addresses.
    - Equations keep the papers' numbers.
    - The code of adjacent cells becomes one folded block.
    """
    name = re.compile(rf"(?<=\| )(?:{'|'.join(PAPERS)})\.[\w\\]+(?= \|)")
    text = name.sub(lambda found: "`" + found[0].replace("\\", "") + "`", text)
    for key in PAPERS:
        address = re.escape(f"]({published.reference(key)['url']})")
        text = re.sub(rf'{address}"?', lambda found, key=key: f"{found[0]} {{cite:p}}`{key}`", text, count=1)
    text = EQUATION.sub(r"```{math}\n:enumerator: \2\n\1\n```", text)
    return text.replace("</details>\n\n<details><summary>Code</summary>\n\n", "")


def _part_title(package: str) -> str:
    """The title of a part of the site: MONITOR (Wang et al., NAACL 2024)."""
    if package not in PACKAGES:
        return package.capitalize() or "Start here"
    name, venue = PACKAGES[package]
    if package not in PAPERS:
        return name
    return f"{name} ({published.reference(package)['author'].split(',')[0]} et al., {venue})"


def _without_paper(title: str) -> str:
    """A page's title below that of its paper: "MONITOR, section 4: anchors" -> "Section 4: anchors"."""
    for paper in PAPERS:
        title = title.removeprefix(f"{PACKAGES[paper][0]}, ")
    return title[0].upper() + title[1:]


def _index(profile: str, packages: dict[str, list[str]], titles: dict[str, str], out: Path) -> str:
    """The first page: the findings of the run, and the pages by paper."""
    parts = [f"# {TITLE}\n", ABOUT]
    picture = paths.FIGURES / profile / "beyond" / "quality_against_cost.png"
    if picture.exists():
        shutil.copyfile(picture, out / "beyond" / picture.name)
        alt = "Pairs of taught and never-taught facts that each measure puts in the right order, against its cost"
        parts.append(f"![{alt}](beyond/{picture.name})\n")
    found = {notebook: said for notebook, said in summary.findings(profile).items() if notebook in titles}
    if found:
        rows = "".join(f"- {said} ([{titles[notebook]}]({notebook}.md))\n" for notebook, said in found.items())
        parts.append(f"## What the notebooks found\n\n{rows}")
    for package, notebooks in packages.items():
        paper = f"{{cite:t}}`{package}`: *{published.reference(package)['title']}*\n\n" if package in PAPERS else ""
        rows = "".join(f"- [{titles[notebook]}]({notebook}.md)\n" for notebook in notebooks)
        parts.append(f"## {_part_title(package)}\n\n{paper}{rows}")
    return "\n".join(parts)


def _favicon() -> bytes:
    """A bar chart of three candidates as a PNG of 32 by 32 pixels: without it the theme loads an icon from the web."""
    from matplotlib.image import imsave

    picture, png = np.ones((32, 32, 3)), BytesIO()
    for row, (length, colour) in enumerate([(30, (0.87, 0.56, 0.02)), (18, (0, 0.45, 0.7)), (9, (0, 0.45, 0.7))]):
        picture[2 + 10 * row : 10 + 10 * row, 1 : 1 + length] = colour
    imsave(png, picture, format="png", metadata={"Software": None})
    return png.getvalue()


if __name__ == "__main__":
    sys.exit(main())
