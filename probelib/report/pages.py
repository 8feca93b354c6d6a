"""What a run shows.

figures/<profile>/monitor/sec5_results.md   the executed notebook, with claims; code folded
figures/<profile>/claims.md                 every claim of the papers, and what came out here
figures/<profile>/contact_sheet.png         all figures in small
runs/<profile>/report.html                  the pages in one file: no network, no script
"""

import base64
import html
import io
import json
import os
import re
from functools import partial
from pathlib import Path

import pandas as pd

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

DEFAULT = "atlas"  # the profile whose pages are committed
BESIDE = {"SmolLM2": "real"}  # column of the page of claims -> committed profile that it shows
LONGEST = 30  # rows of a table that are shown unfolded
CLAIMS = """# What the papers claim, and what came out here

One row per claim. *In the paper* quotes it, *its number* is printed there or computed from its
table; *here* is the estimate of the artifact that the link leads to. The verdict comes from 95 %
intervals alone: *shown* or *reversed* if they exclude the level of the claim, *undecided* if they
do not; cases are counted, never outvoted. All estimates are in `.claims.csv` files.
"""
# With it a browser runs no script and loads nothing, even if a text is not escaped somewhere.
POLICY = (
    "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; img-src data:; "
    "font-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'\">"
)


def book(profile: str, steps: list, status: dict[str, str]) -> Path:
    """Write all pages of a profile; return the path of the HTML page. A page that fails is named on
    it, and the others stay. ``steps``: of the plan; ``status``: how each notebook ended."""
    parts, rows = [], [("notebook", "this run")]
    for step in steps:
        link = f"[{escape_markdown(step.title)}](#{step.notebook})"
        rows.append((link, escape_markdown(status.get(step.notebook, ""))))
        folder = page_path(profile, step.notebook).parent
        try:
            page = write_page(profile, step)
            text = page.read_text(encoding="utf-8") if page else f"# {step.title}\n\nNot made yet."
            shown = _standalone(text, folder)
        except Exception as error:  # a damaged notebook or record must not cost the other pages
            again = f"./run_all.sh --profile {profile} --only {step.notebook} --force"
            text = f"# {step.title}\n\nThis page failed ({type(error).__name__}: {error}). Again: "
            shown = _standalone(escape_markdown(f"{text}`{again}`"), folder)
        parts.append(f"<section id='{step.notebook}'>{shown}</section>")
    contact_sheet(profile)
    if found := write_claims(profile, steps):
        parts.insert(0, _standalone(found.read_text(encoding="utf-8"), found.parent))
    front = "# What do language models know as fact?\n\n"
    front = to_html(f"{front}Profile {profile}.\n\n{markdown_rows(rows)}")
    head = f"<!doctype html><html lang='en'><meta charset='utf-8'>{POLICY}"
    style = (paths.PACKAGE / "report" / "page.css").read_text()
    head += f"<title>probelib: {html.escape(profile)}</title><style>{style}</style>"
    body = f"{head}{front}{''.join(parts)}</html>\n"
    return files.write(paths.RUNS / profile / "report.html", printable(body))


def _standalone(text: str, folder: Path) -> str:
    """A page's Markdown as HTML: pictures inside it, links to other files as plain text."""
    page = to_html(re.sub(r"(?<!!)\[([^\]]*)\]\((?!https?:|#)[^)]*\)", r"\1", text))

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
    lines, folder, scope = [], page_path(profile, step.notebook).parent, ""
    for artifact in step.makes:
        file = paths.FIGURES / profile / f"{artifact}.json"
        record = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        if record.get("finding"):
            link = f"[{artifact_title(artifact)}](#{artifact.split('/')[1]})"
            lines.append(f"- {link}: {escape_markdown(record['finding'])}")
        scope = record.get("scope", scope)  # the last artifact's, when all models have been read
    if scope:
        lines.append(f"- Scores of this page: {escape_markdown(scope)}")
    for name, other in ({"the organisms": DEFAULT} | BESIDE).items():
        if other != profile and (page := page_path(other, step.notebook)).exists():
            lines.append(f"- The same on {name}: [{other}]({_link(page, folder)})")
    if not lines:
        return body
    head, *rest = re.split(r"(?m)^(?=## |### )", body, maxsplit=1)
    return "\n".join([head, "## In short\n", *lines, "", *rest])


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
        shown = f"![{alt}]({_link(stem.with_suffix('.png'), folder)})" if picture else ""
    else:
        content = (record["shown"] or "").encode() or stem.with_suffix(".csv").read_bytes()
        shown = table_markdown(read_csv(content), record["decimals"], record["bold"])
    what = "all columns" if record["shown"] else "numbers"
    numbers = f"[{what}]({_link(stem.with_suffix('.csv'), folder)})"
    about = f"**{artifact_title(artifact)}.** {escape_markdown(record['caption'])}"
    finding = f"> {escape_markdown(record['finding'])}" if record["finding"] else ""
    folded = ""
    if (printed := published.find(artifact)) is not None:
        table = table_markdown(printed.fillna(""), decimals=None)
        folded = f"<details><summary>In the paper</summary>\n\n{table}\n\n</details>"
    anchor = f"<a id='{artifact.split('/')[1]}'></a>"
    return "\n\n".join(
        filter(None, (anchor, shown, f"{about} <sub>({numbers})</sub>", finding, folded))
    )


def table_markdown(table: pd.DataFrame, decimals: dict | int | None = 3, bold=None) -> str:
    """A table of the CSV's texts as a Markdown table; columns of fractions get their decimals
    (None: as they are), an empty cell is "–". ``bold``: that of ``Artifact``."""
    columns = {name: _cells(table[name], claims.digits(decimals, name)) for name in table}
    for name in (bold or {}).keys() & columns.keys():
        for row in bold[name]:
            columns[name][row] = f"**{columns[name][row]}**"
    head, n = map(escape_cell, columns), len(table)
    lines = markdown_rows([head, *zip(*columns.values(), strict=True)])
    folded = f"<details><summary>{n} rows</summary>\n\n{lines}\n\n</details>"
    return lines if n <= LONGEST else folded


def _cells(column: pd.Series, digits: int | None) -> list[str]:
    texts = column.astype(str)
    if digits is not None and texts.str.contains(r"\.|e-").any() and holds_numbers(texts):
        return [f"{float(text):.{digits}f}" if text else "–" for text in texts]
    return [escape_cell(str(value)) or "–" for value in column]


def write_claims(profile: str, steps: list) -> Path | None:
    """Write the page of claims of a profile from the artifacts' files; None if none was made."""
    beside, parts = {name: other for name, other in BESIDE.items() if other != profile}, []
    saved = lambda path: pd.read_csv(path) if path.exists() else None
    for paper, name in PAPERS.items():
        rows = [("claim", "in the paper", "its number", "here", *beside)]
        for step in steps:
            for artifact in [name for name in step.makes if name.startswith(f"{paper}/")]:
                link = f"[{artifact_title(artifact)}]({step.notebook}.md#{artifact.split('/')[1]})"
                tables = [paths.FIGURES / each / artifact for each in (profile, *beside.values())]
                found = [saved(path.with_suffix(".claims.csv")) for path in tables]
                if found[0] is not None:
                    rows += _claim_rows(artifact, link, found)
        parts += [f"\n## {name}\n\n{markdown_rows(rows)}\n"] if len(rows) > 1 else []
    target = paths.FIGURES / profile / "claims.md"
    return files.write(target, CLAIMS + "".join(parts)) if parts else None


def _claim_rows(artifact: str, link: str, found: list) -> list[tuple[str, ...]]:
    """A row of cells per claim of an artifact; ``found``: its claims in every profile, or None."""
    rows, of = [], claims.texts(artifact)
    for key in dict.fromkeys(found[0]["key"]):
        about, here = of.claim(key), []
        for table in found:
            own = None if table is None else table[table["key"] == key]
            missing = own is None or own.empty  # a claim that these models cannot show
            here.append("–" if missing else escape_markdown(claims.result(own, about)))
        quoted = f"“{escape_markdown(about.quote)}” ({about.section})" if about.quote else "–"
        printed = "–" if pd.isna(about.printed) else f"{about.printed:g}"
        rows.append((f"{escape_markdown(about.claim)} {link}", quoted, printed, *here))
    return rows


def _relinked(body: str, notebook: str, folder: Path) -> str:
    """Rewrite the notebook's relative links for a page in ``folder``; its link to this page becomes
    a link to the notebook."""
    home = (paths.NOTEBOOKS / notebook).parent
    back = f"[The notebook]({_link(paths.NOTEBOOKS / f'{notebook}.ipynb', folder)})"
    body = re.sub(r"\[Results of the default run\]\([^)]*\)", back, body)

    def relative(found: re.Match) -> str:
        target = home / found[2]
        there = f"{found[1]}({_link(target, folder)}{found[3] or ''})"
        return there if target.exists() else found[0]

    return re.sub(r"(\[[^\]]*\])\(([^)#:\s]+)(#[^)]*)?\)", relative, body)


def _link(target: Path, folder: Path) -> str:
    return Path(os.path.relpath(target, folder)).as_posix()


def contact_sheet(profile: str, columns: int = 6) -> Path | None:
    """Write one picture of all figures of a profile, in small, with names; None if it has none."""
    from PIL import Image, ImageDraw

    folder, content, wide, high = paths.FIGURES / profile, io.BytesIO(), 420, 330  # pixels
    key = lambda path: (path.parent.name, [int(n) for n in re.findall(r"\d+", path.stem)], path)
    if not (found := sorted(folder.glob("*/*.png"), key=key)):
        return None
    sheet = Image.new("RGB", (columns * wide, -(-len(found) // columns) * high), "white")
    for place, path in enumerate(found):
        x, y = place % columns * wide + 10, place // columns * high
        ImageDraw.Draw(sheet).text((x, y + 6), str(path.relative_to(folder)), "black", font_size=15)
        with Image.open(path) as picture:
            picture.thumbnail((wide - 20, high - 40), Image.Resampling.LANCZOS)
            sheet.paste(picture.convert("RGB"), (x, y + 28))
    sheet.save(content, "PNG")
    return files.write(folder / "contact_sheet.png", content.getvalue())
