"""``./run_all.sh site --out DIR``: the pages of a profile as a MyST project, which Jupyter Book 2 builds.

    npm install mystmd && cd DIR && npx myst start       # or: npx myst build --html

One page per executed notebook of the plan, with its pictures, a table of contents by paper, links between the pages, and the
bibliography. Links to code and tables lead to the repository that ``pyproject.toml`` names; without an owner they are text.
"""

import argparse
import re
import shutil
import sys
from functools import partial
from pathlib import Path

import yaml

from probelib import files, paths, published
from probelib.errors import ProbeError
from probelib.overview.index import repository
from probelib.runner import plan

PAPERS = ("monitor", "zplke", "distractors", "grapheval")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says; return the exit code."""
    parser = argparse.ArgumentParser("run_all.sh site", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--profile", default="atlas", help="the pages in figures/<profile> (default: atlas)")
    args = parser.parse_args(arguments)
    try:
        print(write_site(args.out, args.profile))
    except ProbeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def write_site(out: Path, profile: str = "atlas") -> Path:
    """Write the project; return the path of its myst.yml. Raise ProbeError if the profile has no pages."""
    home = (paths.FIGURES / profile).resolve()
    steps = [step for step in plan.read().steps if (home / f"{step.notebook}.md").exists()]
    if not steps:
        raise ProbeError(f"{home} has no pages; ./run_all.sh --profile {profile} makes them")
    pages = {f"{step.notebook}.md" for step in steps}
    for step in steps:
        page = home / f"{step.notebook}.md"
        text = LINK.sub(partial(_link, page=page, home=home, pages=pages, out=out), page.read_text(encoding="utf-8"))
        files.write(out / f"{step.notebook}.md", _for_myst(text))
    shutil.copyfile(paths.PACKAGE / "published" / "references.bib", out / "references.bib")
    files.write(out / "index.md", _index(steps))
    rooms = {step.notebook.rpartition("/")[0]: [] for step in steps}
    for step in steps:
        rooms[step.notebook.rpartition("/")[0]].append({"file": f"{step.notebook}.md", "title": step.title})
    title = lambda room: published.reference(room)["title"] if room in PAPERS else room.capitalize() or "Start here"
    parts = [{"title": title(room), "children": children} for room, children in rooms.items()]
    project = {"title": "probelib", "bibliography": ["references.bib"], "toc": [{"file": "index.md"}, *parts]}
    project |= {"github": _address()} if _address() else {}
    site = {"template": "book-theme", "title": "What do language models know as fact?"}
    text = yaml.safe_dump({"version": 1, "project": project, "site": site}, sort_keys=False, allow_unicode=True)
    return files.write(out / "myst.yml", text)


def _address() -> str:
    """Where the kit is published; "" as long as pyproject.toml names no owner."""
    return "" if "/OWNER/" in repository() else repository()


def _link(found: re.Match, page: Path, home: Path, pages: set[str], out: Path) -> str:
    """A link of a page. Those to pages and pictures of the site stay, and pictures are copied. One to a file of the checkout
    becomes its address, or its text alone where it has none."""
    picture, text, target, anchor = found.groups()
    path = (page.parent / target).resolve()
    if picture and path.exists():
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
    """The page with a citation behind the first link to each paper, which MyST shows on hover and lists at the end. Names such as
    ``distractors.fit`` in the cells of tables become code: MyST would take them for addresses on the web.
    """
    name = re.compile(rf"(?<=\| )(?:{'|'.join(PAPERS)})\.[\w\\]+(?= \|)")
    text = name.sub(lambda found: "`" + found[0].replace("\\", "") + "`", text)
    for key in PAPERS:
        address = f"]({published.reference(key)['url']})"
        text = text.replace(address, f"{address} {{cite:p}}`{key}`", 1)
    return text


def _index(steps: list) -> str:
    rows = "".join(f"- [{step.title}]({step.notebook}.md)\n" for step in steps)
    papers = "".join(f"- {{cite:t}}`{paper}`\n" for paper in PAPERS)
    return f"# What do language models know as fact?\n\nThe papers:\n\n{papers}\nPages:\n\n{rows}"


if __name__ == "__main__":
    sys.exit(main())
