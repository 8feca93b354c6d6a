"""One Markdown page per notebook, which GitHub shows without running anything: text, equations, tables, pictures, findings.

figures/<profile>/monitor/sec5_results.md   the executed notebook; its code is folded
figures/README.md                           the index of the default profile's pages
"""

import html
import os
import re
from functools import cache
from pathlib import Path

import pandas as pd

from probelib import files, paths
from probelib.errors import ProbeError, printable
from probelib.report import summary
from probelib.report.section import read_record
from probelib.report.sheets import holds_numbers, read_csv
from probelib.report.shown import ARTIFACT, artifact_title, digits, escape_markdown, heading, markdown_rows, one_line

LONGEST = 30  # rows of a table that are shown unfolded
TEMPLATE = """{%- extends 'markdown/index.md.j2' -%}
{% block input %}
<details><summary>Code</summary>

```python
{{ cell.source }}
```

</details>
{% endblock input %}
{% block stream %}
{{ output.text | strip_ansi | trim("\n") | fenced }}
{% endblock stream %}
{% block data_text scoped %}
{{ output.data['text/plain'] | strip_ansi | trim("\n") | fenced }}
{% endblock data_text %}
{% block error %}
{% endblock error %}
"""
INDEX = """# Tables and figures

Every page is an executed notebook of the default profile, its code folded away: question, equations, tables, pictures with
captions, the values that the paper prints, findings. `./run_all.sh` writes these pages; the numbers of every table and
figure are beside it as CSV. All claims of the four papers, with what came out here and why: [phenomena](atlas/phenomena.md).

"""
COMPARED = """
## Reported and ours

One number of each table or figure for which the paper prints one. The models and the facts are others, so what can be compared is
the sign and the size of an effect; where the sign is opposite, the page says why.

"""


def write_page(profile: str, step) -> Path | None:
    """Write the Markdown page of an executed notebook; None if it was not executed.

    step   of the plan: ``notebook``, ``makes``
    """
    source = paths.RUNS / profile / "notebooks" / f"{step.notebook}.ipynb"
    if not source.exists():
        return None
    target = page_path(profile, step.notebook)
    # links are relative to the page's place in the kit, also if it is written elsewhere
    in_kit = paths.NOTEBOOKS.parent / "figures" / target.parent.relative_to(paths.FIGURES)
    notebook = files.read_notebook(source)
    notebook.cells = [_as_markdown(cell, profile, target.parent) for cell in notebook.cells]
    body, _ = _exporter().from_notebook_node(notebook)
    body = re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in body.split("\n")))
    return files.write(target, printable(_relinked(body, step.notebook, in_kit)).strip() + "\n")


@cache
def _exporter():
    from jinja2 import DictLoader
    from nbconvert import MarkdownExporter

    exporter = MarkdownExporter(extra_loaders=[DictLoader({"page.md.j2": TEMPLATE})], template_file="page.md.j2")
    exporter.register_filter("fenced", fenced)
    return exporter


def fenced(text: str) -> str:
    """Text as a fenced block of code, with a fence longer than any backticks in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def write_index(profile: str, steps: list) -> Path:
    """Write figures/README.md: the pages of a profile with their tables and figures."""
    pages = [("page", "tables and figures")]
    for step in steps:
        page = page_path(profile, step.notebook)
        if page.exists():
            names = ", ".join(map(artifact_title, step.makes))
            pages.append((f"[{step.title}]({page.relative_to(paths.FIGURES).as_posix()})", names))
    compared = [("artifact", "key number", "paper", "here", "sign")]
    for artifact in (artifact for step in steps for artifact in step.makes):
        if key := summary.key_numbers(profile, artifact):
            compared.append(map(escape_markdown, [artifact, *summary.in_cells(key)]))
    text = f"{INDEX}{markdown_rows(pages)}\n" + f"{COMPARED}{markdown_rows(compared)}\n" * (len(compared) > 1)
    return files.write(paths.FIGURES / "README.md", text)


def page_path(profile: str, notebook: str) -> Path:
    """figures/<profile>/<notebook>.md"""
    return paths.FIGURES / profile / f"{notebook}.md"


def artifact_markdown(profile: str, artifact: str, folder: Path) -> str:
    """A table or figure as Markdown, for a page in ``folder``: picture or table, caption, finding."""
    stem = paths.FIGURES / profile / artifact
    record = read_record(stem.with_suffix(".json"))
    selected = record.get("shown")
    if record["kind"] == "figure":
        alt = escape_markdown(one_line(record["alt"])).replace("]", "\\]")
        shown = f"![{alt}]({_link(stem.with_suffix('.png'), folder)})"
    else:
        content = selected.encode() if selected else stem.with_suffix(".csv").read_bytes()
        table = read_csv(content, keep_default_na=False, dtype=str)
        shown = table_markdown(table, record["decimals"], record.get("bold"))
    numbers = f"[{'all columns' if selected else 'numbers'}]({_link(stem.with_suffix('.csv'), folder)})"
    caption = f"**{artifact_title(artifact)}.** {escape_markdown(record['caption'])} ({numbers})"
    finding = f"> **Finding.** {escape_markdown(record['finding'])}" if record["finding"] else ""
    return "\n\n".join(filter(None, (shown, caption, finding, _compared(profile, artifact))))


def _compared(profile: str, artifact: str) -> str:
    """The paper's key number beside ours, as a line; "" if there is none."""
    key = summary.key_numbers(profile, artifact)
    if key is None:
        return ""
    what, reported, ours, sign = map(escape_markdown, summary.in_cells(key))
    return f"*{what[0].upper()}{what[1:]}: {reported} in the paper, {ours} here{f' ({sign} sign)' * bool(sign)}.*"


def table_markdown(
    table: pd.DataFrame, decimals: dict[str, int] | int = 3, bold: dict[str, list[int]] | None = None
) -> str:
    """A table of the CSV's texts as a Markdown table; columns of fractions get their decimals, an empty cell is "–".

    bold    column -> numbers of its rows in bold (``Artifact.bold``)

    >>> print(table_markdown(pd.DataFrame({"model": ["a|b", "c"], "r": ["-0.81234", "0.5"]}), bold={"r": [1]}))
    | model | r |
    |---|---|
    | a\\|b | -0.812 |
    | c | **0.500** |
    """
    columns = [[escape_markdown(heading(name)), *_cells(table[name], digits(decimals, name))] for name in table]
    for name, rows in (bold or {}).items():
        cells = columns[list(table).index(name)]
        for row in rows:
            cells[row + 1] = f"**{cells[row + 1]}**"
    lines, n = markdown_rows(zip(*columns, strict=True)), len(table)
    return lines if n <= LONGEST else f"<details><summary>{n} rows</summary>\n\n{lines}\n\n</details>"


def _cells(column: pd.Series, digits: int) -> list[str]:
    texts = column.astype(str)
    if texts.str.contains(r"\.|e-").any() and holds_numbers(texts):
        return [f"{float(text):.{digits}f}" if text else "–" for text in texts]
    return [escape_markdown(str(value)) or "–" for value in column]


def _as_markdown(cell, profile: str, folder: Path):
    """A cell with outputs for a Markdown page: artifacts as pictures and tables, other frames as text, no progress bars."""
    if cell.cell_type != "code":
        return cell
    outputs = []
    for output in without_bars(cell.outputs):
        artifact, part = (output.get("metadata", {}).get(key) for key in (ARTIFACT, "part"))
        if artifact and part == "body":
            try:
                output.data = {"text/markdown": artifact_markdown(profile, artifact, folder)}
            except (ProbeError, OSError, ValueError) as error:
                output.data = {"text/markdown": f"*{artifact} is damaged: {escape_markdown(str(error))}*"}
        elif artifact and part == "published":
            table = fenced(output.data["text/plain"])
            folded = f"<details><summary>The values that the paper prints</summary>\n\n{table}\n\n</details>"
            output.data = {"text/markdown": folded}
        elif artifact:
            continue  # caption and finding come with the body
        elif "data" in output:
            output.data = _readable(output.data)
        outputs.append(output)
    cell.outputs = outputs
    return cell


def _readable(data: dict) -> dict:
    """The formats of an output without HTML; if its plain text is only an object's name, the text of the HTML instead.

    >>> _readable({"text/plain": "<IPython.core.display.HTML object>", "text/html": "<b>Known</b> by 3&nbsp;<img alt='x'>"})
    {'text/markdown': 'Known by 3'}
    """
    page = data.get("text/html", "")
    data = {form: content for form, content in data.items() if form != "text/html"}
    nameless = re.fullmatch(r"<[\w.]+( object)?( at 0x\w+)?>", data.get("text/plain", ""))
    if nameless and page and "text/markdown" not in data:
        page = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.S)
        return {"text/markdown": escape_markdown(one_line(html.unescape(re.sub(r"<[^>]*>", " ", page))))}
    return data


def without_bars(outputs: list) -> list:
    """Outputs of a cell without finished progress bars; anything else on the standard error stream stays."""
    for output in outputs:
        if output.get("name") == "stderr":
            lines = re.split(r"[\r\n]", output.text)
            output.text = "\n".join(line for line in lines if line.strip() and "%|" not in line)
    return [output for output in outputs if output.get("text") != ""]


def _relinked(body: str, notebook: str, folder: Path) -> str:
    """Rewrite the notebook's relative links for a page in ``folder``; its link to this page becomes a link to the notebook."""
    home = (paths.NOTEBOOKS / notebook).parent
    back = f"[The notebook]({_link(paths.NOTEBOOKS / f'{notebook}.ipynb', folder)})"
    body = re.sub(r"\[Results of the default run\]\([^)]*\)", back, body)

    def relative(found: re.Match) -> str:
        target = home / found[2]
        return f"{found[1]}({_link(target, folder)}{found[3] or ''})" if target.exists() else found[0]

    return re.sub(r"(\[[^\]]*\])\(([^)#:\s]+)(#[^)]*)?\)", relative, body)


def _link(target: Path, folder: Path) -> str:
    return Path(os.path.relpath(target, folder)).as_posix()
