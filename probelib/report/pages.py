"""What a run shows.

figures/<profile>/monitor/sec5_results.md   the executed notebook, with claims; code folded
figures/<profile>/claims.md                 every claim of the papers, and what came out here
runs/<profile>/report.html                  the pages in one file: no network, no script
"""

import base64
import html
import json
import re
from functools import partial
from os.path import relpath
from pathlib import Path

import pandas as pd
from jinja2 import Environment, PackageLoader

from probelib import files, paths, published
from probelib.errors import printable
from probelib.report import claims
from probelib.report.sheets import holds_numbers, read_csv
from probelib.report.shown import (
    ARTIFACT,
    PAPERS,
    artifact_title,
    escape_cell,
    escape_markdown,
    markdown_rows,
    one_line,
)

BESIDE = {"SmolLM2": "real", "1.2M": "larger", "SmolLM2 taught": "taught"}  # column -> profile
COMMITTED = {"the organisms": "atlas"} | BESIDE
LONGEST = 30  # rows of a table that are shown unfolded
TEMPLATES = Environment(loader=PackageLoader("probelib", "report"), trim_blocks=True)
TEMPLATES.filters |= {"title": artifact_title, "md": escape_markdown, "line": one_line}


def book(profile: str, steps: list, status: dict[str, str], about: dict[str, list]) -> Path:
    """Write all pages of a profile; return the path of the HTML page, which names those that fail.
    ``steps``: of the plan; ``status``: how each ended; ``about``: name -> texts, for the head."""
    parts = [_section(profile, step) for step in steps]
    if found := write_claims(profile, steps):
        parts.insert(0, _standalone(found.read_text(encoding="utf-8"), found.parent))
    front = TEMPLATES.get_template("front.md.j2")
    parts.insert(0, to_html(front.render(steps=steps, status=status, about=about)))
    body = TEMPLATES.get_template("book.html.j2").render(profile=profile, parts=parts)
    return files.write(paths.RUNS / profile / "report.html", printable(body) + "\n")


def _section(profile: str, step) -> str:
    """The page of a step as HTML; a page that fails says how to make it again."""
    folder = page_path(profile, step.notebook).parent
    try:
        page = write_page(profile, step)
        text = page.read_text(encoding="utf-8") if page else f"# {step.title}\n\nNot made yet."
        shown = _standalone(text, folder)
    except Exception as error:  # a damaged notebook or record must not cost the other pages
        again = f"./run_all.sh --profile {profile} --only {step.notebook} --force"
        text = f"# {step.title}\n\nThis page failed ({type(error).__name__}: {error}). Again: "
        shown = _standalone(escape_markdown(f"{text}`{again}`"), folder)
    return f"<section id='{step.notebook}'>{shown}</section>"


def _standalone(text: str, folder: Path) -> str:
    """A page's Markdown as HTML: pictures inside it, links to other files as plain text."""
    said = lambda m: "" if m[2] in ("all columns", "The notebook") else m[1] + m[2] + m[3]
    page = to_html(re.sub(r"(?<!!)(\(?)\[([^\]]*)\]\((?!https?:|#)[^)]*\)(\)?)", said, text))

    def inline(found: re.Match) -> str:
        picture = base64.b64encode((folder / html.unescape(found[1])).read_bytes()).decode()
        return f'<img src="data:image/png;base64,{picture}"'

    return re.sub(r'<img src="([^":]+\.png)"', inline, page)


def to_html(text: str) -> str:
    """Markdown as HTML, its formulas as MathML, which a browser draws without a script."""
    from latex2mathml.converter import convert
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    def typed(body: str, display: str = "inline") -> str:
        try:
            return convert(body, display=display)
        except Exception:  # no formula; the converter has no error class of its own
            return html.escape(body)

    renderer = IPythonRenderer(escape=False)
    renderer.inline_math, renderer.block_math = typed, partial(typed, display="block")
    return MarkdownWithMath(renderer=renderer).render(text)


def write_page(profile: str, step) -> Path | None:
    """Write the Markdown page of an executed notebook; None if it was not executed."""
    source = paths.RUNS / profile / "notebooks" / f"{step.notebook}.ipynb"
    if not source.exists():
        return None
    target = page_path(profile, step.notebook)
    # links are relative to the page's place in the kit, also if it is written elsewhere
    in_kit = paths.NOTEBOOKS.parent / "figures" / target.parent.relative_to(paths.FIGURES)
    parts, code = [], []  # code of the cells since the last fold

    def fold() -> None:
        if code:
            block = fenced("\n".join(code), "python")
            parts.append(f"<details><summary>Code</summary>\n\n{block}\n\n</details>")
        code.clear()

    for cell in files.read_notebook(source).cells:
        if cell.cell_type == "markdown":
            if re.match(r"#+ ", cell.source):
                fold()
            parts.append(cell.source)
        elif cell.cell_type == "code":
            code.append(cell.source)
            parts += _outputs(cell.outputs, profile, target.parent)
    fold()
    body = _with_summary("\n\n".join(parts), profile, step)
    return files.write(target, printable(_relinked(body, step.notebook, in_kit)).strip() + "\n")


def _with_summary(body: str, profile: str, step) -> str:
    """The page with the claims of its artifacts at the top, each with a link, and the same page of
    the committed profiles."""
    made, folder = paths.FIGURES / profile, page_path(profile, step.notebook).parent
    files_of = {name: made / f"{name}.json" for name in step.makes}
    records = {name: json.loads(f.read_text("utf-8")) for name, f in files_of.items() if f.exists()}
    there = [(n, o, page_path(o, step.notebook)) for n, o in COMMITTED.items() if o != profile]
    others = [(name, o, relpath(page, folder)) for name, o, page in there if page.exists()]
    if not records and not others:
        return body
    summary = TEMPLATES.get_template("summary.md.j2").render(records=records, others=others)
    head, *rest = re.split(r"(?m)^(?=## |### )", body, maxsplit=1)
    return "\n".join([head, summary, *rest])


def _outputs(outputs: list, profile: str, folder: Path) -> list[str]:
    """The outputs of a cell as Markdown: artifacts, Markdown and printed text alone."""
    shown = []
    for output in outputs:
        if artifact := output.get("metadata", {}).get(ARTIFACT):
            shown.append(artifact_markdown(profile, artifact, folder))
        elif "data" in output and "text/markdown" in output.data:
            shown.append(output.data["text/markdown"])
        elif output.get("name") == "stdout":
            shown.append(fenced(output.text.strip("\n")))
    return shown


def fenced(text: str, language: str = "text") -> str:
    """Text as a block of code, its fence longer than any backticks in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def page_path(profile: str, notebook: str) -> Path:
    """figures/<profile>/<notebook>.md"""
    return paths.FIGURES / profile / f"{notebook}.md"


def artifact_markdown(profile: str, artifact: str, folder: Path, picture: bool = True) -> str:
    """A table or figure and all that is said of it; links are from ``folder``."""
    stem = paths.FIGURES / profile / artifact
    record = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
    if record["kind"] == "figure":
        alt = escape_markdown(one_line(record["alt"])).replace("]", "\\]")
        shown = f"![{alt}]({relpath(stem.with_suffix('.png'), folder)})" if picture else ""
    else:
        content = (record["shown"] or "").encode() or stem.with_suffix(".csv").read_bytes()
        shown = table_markdown(read_csv(content), record["decimals"], record["bold"])
    printed = published.find(artifact)
    printed = None if printed is None else table_markdown(printed.fillna(""), None)
    values = {"name": artifact, "record": record, "shown": shown, "printed": printed}
    values["csv"] = relpath(stem.with_suffix(".csv"), folder)
    return TEMPLATES.get_template("artifact.md.j2").render(values).strip()


def table_markdown(table: pd.DataFrame, decimals: dict | int | None = 3, bold=None) -> str:
    """A table of the CSV's texts as a Markdown table; columns of fractions get their decimals
    (None: as they are), an empty cell is "–". ``bold``: that of ``Artifact``."""
    columns: dict = {}
    for name, texts in table.astype(str).items():
        numeric = decimals is not None and holds_numbers(texts)
        count = lambda text: f"{float(text):,.0f}" if text[4:] else text or "–"
        if numeric and texts.str.contains(r"\.|e-").any():
            columns[name] = [claims.cell(float(text or "nan"), decimals, name) for text in texts]
        else:
            columns[name] = [count(t) if numeric else escape_cell(t) or "–" for t in texts]
        for row in (bold or {}).get(name, []):
            columns[name][row] = f"**{columns[name][row]}**"
    lines = markdown_rows([map(escape_cell, columns), *zip(*columns.values(), strict=True)])
    folded = f"<details><summary>{len(table)} rows</summary>\n\n{lines}\n\n</details>"
    return lines if len(table) <= LONGEST else folded


def write_claims(profile: str, steps: list) -> Path | None:
    """Write the page of claims of a profile from the artifacts' files; None if none was made."""
    file_of = lambda folder, name: paths.FIGURES / folder / f"{name}.claims.csv"
    own = ((n, step.notebook) for step in steps for n in step.makes if n.split("/")[0] in PAPERS)
    made = [each for each in own if file_of(profile, each[0]).exists()]
    there = lambda other: any(file_of(other, name).exists() for name, _ in made)
    beside = {name: other for name, other in BESIDE.items() if other != profile and there(other)}
    none, papers = pd.DataFrame(columns=claims.COLUMNS), {name: [] for name in PAPERS}
    for artifact, notebook in made:
        files_of = [file_of(folder, artifact) for folder in (profile, *beside.values())]
        tables = [pd.read_csv(path) if path.exists() else none for path in files_of]
        for key in dict.fromkeys(tables[0]["key"]):
            about = claims.texts(artifact).claims[key]
            own = [table[table["key"] == key] for table in tables]  # empty: cannot be shown there
            here = [claims.result(each, about) if len(each) else "–" for each in own]
            papers[artifact.split("/")[0]].append((about, artifact, notebook, here))
    page = TEMPLATES.get_template("claims.md.j2").render(papers=papers, names=PAPERS, beside=beside)
    return files.write(paths.FIGURES / profile / "claims.md", page) if made else None


def _relinked(body: str, notebook: str, folder: Path) -> str:
    """Rewrite a notebook's links for a page in ``folder``; the one to this page leads back."""
    home = (paths.NOTEBOOKS / notebook).parent
    back = f"[The notebook]({relpath(paths.NOTEBOOKS / f'{notebook}.ipynb', folder)})"
    body = re.sub(r"\[Results of the (?:default run|study)\]\([^)]*\)", back, body)

    def relative(found: re.Match) -> str:
        target = home / found[2]
        place = f"({relpath(target, folder)}{found[3] or ''})"
        return found[1] + place if target.exists() else found[0]

    return re.sub(r"(\[[^\]]*\])\(([^)#:\s]+)(#[^)]*)?\)", relative, body)
