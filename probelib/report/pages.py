"""The HTML book of a profile: one self-contained page with every table and figure, and the executed notebooks beside it.

runs/<profile>/report.html              no network, no script; pictures are inside the page
runs/<profile>/html/<notebook>.html     the executed notebooks, linked from the page
"""

import base64
import html
import json
import re
import warnings
from functools import cache
from pathlib import Path

from probelib import files, paths, published
from probelib.errors import ProbeError
from probelib.report import links, markdown, phenomena, summary
from probelib.report.mathml import typeset
from probelib.report.section import read_record
from probelib.report.sheets import read_csv
from probelib.report.shown import ARTIFACT, artifact_title

PAPERS = {
    "monitor": ("MONITOR", "NAACL 2024"),
    "zplke": ("ZP-LKE", "WSDM 2025"),
    "distractors": ("Distractors", "COLING 2025"),
    "grapheval": ("GraphEval", "arXiv 2024"),
    "tour": ("The tour", "One fact, one model, by hand and with the library"),
    "facts": ("Facts", "The atlas: the facts that the models are tested on"),
    "explore": ("Explore", "One fact, one model, four papers"),
    "models": ("The organisms", "Small models whose knowledge is known"),
    "beyond": ("Beyond the papers", "Which measures can be trusted"),
}
DEFAULT = "atlas"  # the profile whose pages are committed
# With it a browser runs no script and loads nothing, even if a text from data or models is not escaped somewhere.
POLICY = (
    "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; img-src data:; font-src data:; "
    "style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'\">"
)
STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; color: #1d2733; margin: 0 auto; max-width: 62rem; padding: 2rem 1.25rem 5rem }
h1 { font-size: 1.9rem; margin-bottom: .2rem } h2 { margin-top: 3rem; border-bottom: 2px solid #0173b2; padding-bottom: .2rem }
h3 { margin: 2.4rem 0 .4rem; font-size: 1.05rem } a { color: #01588a } .quiet { color: #5b6875; font-size: .9rem }
nav ul { columns: 2; padding-left: 1.2rem } figure { margin: .6rem 0 }
img { max-width: min(100%, 42rem) } .scroll { overflow-x: auto }
table { border-collapse: collapse; font-size: .84rem; font-variant-numeric: tabular-nums; margin: .5rem 0 }
th { text-align: left; border-bottom: 1.5px solid #1d2733; padding: .25rem .7rem .25rem 0; vertical-align: bottom }
td { border-bottom: 1px solid #e3e8ed; padding: .2rem .7rem .2rem 0; white-space: nowrap } .caption { margin: .2rem 0 .5rem }
.beside { display: flex; gap: 2.5rem; flex-wrap: wrap; align-items: flex-start } .beside > div { min-width: 0; max-width: 100% }
table.wrap td { white-space: normal }
@media (min-width: 48rem) { table.wrap td:first-child { white-space: nowrap } }
@media (max-width: 30rem) { nav ul { columns: 1 } h1 { font-size: 1.5rem }
  table.wrap tr { display: block; border-bottom: 1px solid #e3e8ed; padding: .3rem 0 }
  table.wrap th, table.wrap td:empty { display: none }
  table.wrap td { display: block; border: 0; overflow-wrap: anywhere } table.wrap td:first-child { font-weight: 600 }
  .key td:nth-child(4)::before { content: "reported: " } .key td:nth-child(5)::before { content: "ours: " }
  .key td:nth-child(6)::before { content: "sign: " } }
details { font-size: .85rem; margin: .4rem 0 } pre { background: #f4f6f8; padding: .7rem; overflow-x: auto; font-size: .78rem }
.missing { color: #a33c00 }
"""


def book(profile: str, steps: list, status: dict[str, str], written: dict[str, str]) -> Path:
    """Write the page of a profile and return its path.

    steps    the plan's steps: ``notebook``, ``title``, ``makes``
    status   how each notebook ended in this run; shown on the page
    written  checksums of the pages when the last report was written (``uptodate.written``): unchanged pages are kept
    """
    notebooks = {step.notebook: link for step in steps if (link := _notebook(profile, step, written))}
    known = links.facts_on_page(profile)
    for step in steps:
        try:
            markdown.write_page(profile, step)
        except Exception as error:  # the other pages and the report do not depend on it
            warnings.warn(f"{step.notebook}: no page ({type(error).__name__}: {error})", stacklevel=2)
    phenomena.write_phenomena(profile, steps)
    if profile == DEFAULT:
        markdown.write_index(profile, steps)
    papers: dict[str, list[str]] = {}
    contents = []
    for step in steps:
        made = _made(profile, step)
        for artifact in made:
            paper = artifact.split("/")[0]
            papers.setdefault(paper, []).append(_artifact(profile, artifact, step, notebooks, known))
            contents.append(f"<li>{_to(artifact)}</li>")
        if missing := [artifact for artifact in step.makes if artifact not in made]:
            papers.setdefault(missing[0].split("/")[0], []).append(_missing(profile, step, missing))
    body = "".join(
        f"<h2 id='{paper}'>{_e(_title(paper)[0])}</h2><p class='quiet'>{_subtitle(paper)}</p>{''.join(parts)}"
        for paper, parts in papers.items()
    )
    page = f"""<!doctype html><html lang="en"><meta charset="utf-8">{POLICY}
<meta name="viewport" content="width=device-width">
<title>probelib: {_e(profile)}</title><style>{STYLE}</style>
<h1>What do language models know as fact?</h1>
<p class="quiet">Profile <b>{_e(profile)}</b>: every table and figure, as the notebooks made it.
{_link(links.PAGE if known else None, "Browse every answer")}, fact by fact:
<code>./run_all.sh browse --profile {_e(profile)}</code> writes that page.</p>
{_front(profile, steps)}{_steps(steps, status, notebooks)}{_verified(profile)}<nav><ul>{"".join(contents)}</ul></nav>{body}</html>
"""
    return files.write(paths.RUNS / profile / "report.html", page)


def _made(profile: str, step) -> list[str]:
    """The artifacts of a notebook that have a record."""
    return [each for each in step.makes if (paths.FIGURES / profile / each).with_suffix(".json").exists()]


def _missing(profile: str, step, artifacts: list[str]) -> str:
    names = ", ".join(map(artifact_title, artifacts))
    command = f"./run_all.sh --profile {_e(profile)} --only {_e(step.notebook)}"
    return f"<p class='missing'>Not made yet: {_e(names)}. <code>{command}</code> makes them.</p>"


def _e(text) -> str:
    """Escaped text: texts from data or models are shown, never interpreted."""
    return html.escape(str(text))


def _title(paper: str) -> tuple[str, str]:
    return PAPERS.get(paper, (paper, ""))


def _subtitle(paper: str) -> str:
    """The line below a part's heading; for one of the four papers its linked reference."""
    if paper not in list(PAPERS)[:4]:
        return _e(_title(paper)[1])
    entry = published.reference(paper)
    first = entry["author"].split(",")[0]
    return f"<a href='{_e(entry['url'])}'>{_e(entry['title'])}</a> ({_e(first)} et al., {_e(_title(paper)[1])})"


def _front(profile: str, steps: list) -> str:
    """The headline figure, the findings, and the papers' artifacts with the reported number beside ours."""

    stem, made = paths.FIGURES / profile / summary.HEADLINE, {a for step in steps for a in step.makes}
    shown, headline = "", _record_if_whole(stem) if summary.HEADLINE in made else None
    if headline and stem.with_suffix(".png").exists():
        shown = f"{_picture(stem, headline['alt'])}<p class='caption'>{_e(headline['caption'])}</p>"
    found = " ".join(summary.findings(profile).values())
    of_papers = [step for step in steps for a in step.makes[:1] if a.split("/")[0] in list(PAPERS)[:4]]
    n, rows = sum(len(step.makes) for step in of_papers), []
    for artifact in (a for step in of_papers for a in _made(profile, step)):
        record = _record_if_whole(paths.FIGURES / profile / artifact)
        caption = record["caption"] if record else "Damaged."
        caption = caption if len(caption) < 110 else caption[:110].rsplit(" ", 1)[0] + " …"
        key = summary.key_numbers(profile, artifact)
        cells = [_e(caption), *(map(_e, summary.in_cells(key)) if key else [""] * 4)]
        rows.append(f"<tr><td>{_to(artifact)}</td>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    head = "<tr><th>artifact<th>what it shows<th>key number<th>reported<th>ours<th>sign</tr>"
    note = "<p class='quiet'>Other models, other facts: what can be compared is the sign and the size of an effect.</p>"
    table = f"<details open><summary>{len(rows)} of {n} tables and figures of the papers, reported and ours</summary>"
    listed = f"<div class='scroll'><table class='wrap key'>{head}{''.join(rows)}</table></div>"
    return f"{shown}<p>{_e(found)}</p>{table}{note}{listed}</details>"


def _record_if_whole(stem: Path) -> dict | None:
    try:
        return read_record(stem.with_suffix(".json"))
    except ProbeError:  # missing or damaged, as its own entry on the page says
        return None


def _picture(stem: Path, alt: str) -> str:
    picture = base64.b64encode(stem.with_suffix(".png").read_bytes()).decode()
    return f"<figure><img alt='{_e(alt)}' src='data:image/png;base64,{picture}'></figure>"


def _to(artifact: str) -> str:
    """The link to an artifact on the page."""
    return f"<a href='#{_e(artifact)}'>{_e(_title(artifact.split('/')[0])[0])}, {_e(artifact_title(artifact))}</a>"


def _steps(steps: list, status: dict[str, str], notebooks: dict[str, str]) -> str:
    rows = "".join(
        f"<tr><td>{_link(notebooks.get(step.notebook), step.notebook)}</td><td>{_e(step.title)}</td>"
        f"<td>{_e(status.get(step.notebook, ''))}</td></tr>"
        for step in steps
    )
    head = "<tr><th>notebook<th>what it does<th>this run</tr>"
    table = f"<div class='scroll'><table class='wrap'>{head}{rows}</table></div>"
    return f"<details open><summary>Notebooks</summary>{table}</details>"


def _verified(profile: str) -> str:
    """The result of ``./run_all.sh verify``: columns that differ from the committed figures. "" if it was not run."""
    found = paths.RUNS / profile / "verify.csv"
    if not found.exists():
        return ""
    table = read_csv(found.read_bytes())
    what = f"{table['artifact'].nunique()} artifacts differ" if len(table) else "all artifacts agree"
    rows = table.to_html(index=False, na_rep="–", border=0) if len(table) else ""
    return f"<details><summary>Compared with the committed figures: {what}</summary><div class='scroll'>{rows}</div></details>"


def _link(target: str | None, text: str) -> str:
    return f"<a href='{_e(target)}'>{_e(text)}</a>" if target else _e(text)


def _artifact(profile: str, artifact: str, step, notebooks: dict[str, str], known: set[str]) -> str:
    """One table or figure; for a damaged one, the command that makes it again.

    notebooks   links to the executed notebooks
    known       names of the facts on the page of ``probelib.browse``
    """
    stem = paths.FIGURES / profile / artifact
    source = f"<span class='quiet'>{_link(notebooks.get(step.notebook), step.notebook)}</span>"
    head = f"<h3 id='{_e(artifact)}'>{_e(artifact_title(artifact))} {source}</h3>"
    command = f"./run_all.sh --profile {_e(profile)} --only {_e(artifact)}"
    try:
        return head + _shown(stem, read_record(stem.with_suffix(".json")), known)
    except (ProbeError, OSError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        return f"{head}<p class='missing'>Damaged ({_e(what)}). Make it again: <code>{command} --force</code></p>"


def _shown(stem: Path, record: dict, known: set[str]) -> str:
    """Caption, picture or table, the printed values beside it, finding, provenance."""
    caption = f"<p class='caption'>{_e(record['caption'])}</p>"
    if record["kind"] == "figure":
        shown = _picture(stem, record["alt"])
    else:
        table = stem.with_suffix(".html").read_text(encoding="utf-8")
        shown = f"<div class='scroll'>{links.link_facts(table, known)}</div>"
    if (printed := stem.with_suffix(".published.html")).exists():
        shown = (
            f"<div class='beside'><div><b class='quiet'>This run</b>{shown}</div><div><b class='quiet'>As published</b>"
            f"<div class='scroll'>{printed.read_text(encoding='utf-8')}</div></div></div>"
        )
    said = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", _e(record["finding"]))  # of Markdown only emphasis is kept
    finding = f"<p><b>Finding.</b> {said}</p>" if said else ""
    provenance = {key: value for key, value in record.items() if key not in ("caption", "finding", "alt", "kind")}
    return (
        f"{caption}{shown}{finding}<details><summary>How it was made</summary>"
        f"<pre>{_e(json.dumps(provenance, indent=1, ensure_ascii=False))}</pre></details>"
    )


def _notebook(profile: str, step, written: dict[str, str]) -> str | None:
    """Convert an executed notebook to a page that needs no network; return the link to it, or None if the notebook is missing.

    An undamaged page with the digest of this notebook is kept.
    """
    name = step.notebook
    source = paths.RUNS / profile / "notebooks" / f"{name}.ipynb"
    if not source.exists():
        return None
    target = paths.RUNS / profile / "html" / f"{name}.html"
    stamp = f"<meta name='source' content='{files.sha256(source)}'>"
    intact = target.exists() and written.get(f"html/{name}.html") == files.sha256(target)
    if not intact or stamp not in target.read_text(encoding="utf-8"):
        try:
            notebook = typeset(_described(files.read_notebook(source)))
            page, _ = _exporter().from_notebook_node(notebook, {"metadata": {"name": source.stem}})
        except Exception as error:  # the other pages and the report do not depend on it
            warnings.warn(f"{name}: no page ({type(error).__name__}: {error})", stacklevel=2)
            return None
        files.write(target, page.replace("<head>", f"<head>{POLICY}{stamp}", 1))
    return f"html/{name}.html"


@cache
def _exporter():
    """nbconvert's exporter to HTML, made once: compiling its templates takes longer than writing a page."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(exclude_input_prompt=True, exclude_output_prompt=True)
    for url in ("mathjax_url", "require_js_url", "jquery_url", "mermaid_js_url", "widget_renderer_url"):
        setattr(exporter, url, "")
    return exporter


def _described(notebook):
    """The notebook without progress bars, and with the alt text of every artifact's picture, which nbconvert would drop."""
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        cell.outputs = markdown.without_bars(cell.outputs)
        for output in cell.outputs:
            if output.get("metadata", {}).get(ARTIFACT) and "image/png" in output.data:
                words, picture = _e(output.metadata["alt"]), output.data.pop("image/png").strip()
                output.data["text/html"] = f'<img alt="{words}" src="data:image/png;base64,{picture}">'
    return notebook
