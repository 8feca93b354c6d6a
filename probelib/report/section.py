"""``Artifact``: a table or figure. ``Section``: those of a notebook with their provenance, saved as

    figures/<profile>/monitor/table4.csv .tex .html     full precision, LaTeX (booktabs), HTML
    figures/<profile>/monitor/figure11.png .pdf .csv    the picture, and the numbers it shows
    figures/<profile>/monitor/table4.json               caption and provenance

Files contain no time and no random ids: the same run gives the same bytes."""

import os
import subprocess
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from probelib import __version__, files, parameters, paths, store
from probelib.errors import ProbeError, printable
from probelib.facts.model import Facts
from probelib.report import claims, pages, shown
from probelib.report.charts import use_style
from probelib.report.sheets import to_csv

PACKAGES = ["bitsandbytes", "numpy", "pandas", "scipy", "torch", "transformers"]
PIXELS = 110  # per inch of a figure in a notebook; its file has more, for print


@dataclass(frozen=True)
class Artifact:
    """One table or figure of a paper. What is said about it stands in ``published/claims.yaml``,
    under its name.

    name     "monitor/table4": the paper's folder, then the artifact
    frame    the numbers of the table or of the figure, in full precision, as the CSV holds them;
             the ends of the interval of a column x are "x low" and "x high", and print in its cell
    claims   ``claims.check(name, ...)``: the claims that it tests; None for an illustration
    figure   a matplotlib figure; None for a table
    best     of a table: column -> "min" or "max"; the best value is bold
    shown    of a table too wide or too long to print: the table to print instead
    """

    name: str
    frame: pd.DataFrame
    claims: pd.DataFrame | None = None
    figure: Any = None
    best: dict[str, str] = field(default_factory=dict)
    shown: pd.DataFrame | None = None

    def table(self) -> pd.DataFrame:
        """The table that a reader sees."""
        texts = claims.texts(self.name)
        if self.shown is not None:
            return claims.printed(self.shown, texts.decimals)
        kept = texts.columns or list(self.frame)
        ends = [f"{name}{end}" for name in kept for end in (" low", " high")]
        wanted = dict.fromkeys([*kept, *(end for end in ends if end in self.frame)])
        return claims.printed(self.frame[list(wanted)], texts.decimals)

    def bold(self) -> dict[str, list[int]]:
        """The cells in bold: column -> row numbers (from 0) of the ``best`` value of the frame."""
        best = {name: getattr(self.frame[name], which)() for name, which in self.best.items()}
        return {name: np.flatnonzero(self.frame[name] == best[name]).tolist() for name in best}


def lacking(name: str, frame: pd.DataFrame) -> Artifact:
    """A table or figure that the chosen models cannot show; one line says what it needs."""
    return Artifact(name, frame, shown=pd.DataFrame({"needs": [claims.texts(name).needs]}))


class Section:
    """The artifacts of one notebook: where they go, and the provenance that all of them share.

    name     "monitor/sec5_results"
    profile  the folder below ``figures`` and ``runs``; "mine" for a notebook that a person opens
    facts    the facts that are scored (``Facts``, or what their record says); None: no facts
    values   ``globals()`` of the notebook, from which ``parameters_of`` selects

    ``section.scores`` is the folder of this profile's store. The records of the artifacts name the
    models of all scores that the store reads from now on; ``add`` notes further models."""

    def __init__(self, name: str, profile: str, facts, values: dict):
        self.folder = paths.FIGURES / files.slug(profile)
        self.scores = paths.RUNS / files.slug(profile) / "scores"
        self.provenance = {"notebook": name, "profile": profile, "versions": versions()}
        self.provenance |= {"parameters": parameters_of(name, values), "facts": facts}
        if isinstance(facts, Facts):
            about = {"source": facts.source, "digest": facts.digest(), "facts": len(facts.facts)}
            self.provenance["facts"] = about | {"relations": len(facts.relations)}
        self._read = store.record_models()
        use_style()

    def add(self, scores: pd.DataFrame) -> pd.DataFrame:
        """Note the models of scores that do not come from the store (``.attrs["models"]``); return
        the scores."""
        self._read += [m for m in scores.attrs.get("models", []) if m not in self._read]
        return scores

    def show(self, artifact: Artifact) -> None:
        """Save a table or figure, and show it in the notebook as on its page."""
        from IPython.display import display

        path = self.save(artifact)
        if artifact.figure is not None:
            import matplotlib.pyplot as plt

            size = {"image/png": {"width": round(PIXELS * artifact.figure.get_size_inches()[0])}}
            data = {"image/png": path.with_suffix(".png").read_bytes()}
            data["text/plain"] = claims.texts(artifact.name).alt
            display(data, raw=True, metadata=size)
            plt.close(artifact.figure)  # otherwise it is drawn again at the end of the cell
        here = (paths.NOTEBOOKS / self.provenance["notebook"]).parent
        text = pages.artifact_markdown(self.folder.name, artifact.name, here, picture=False)
        about = {shown.ARTIFACT: artifact.name}
        display({"text/markdown": text, "text/plain": text}, raw=True, metadata=about)

    def save(self, artifact: Artifact) -> Path:
        """Write the files of an artifact: numbers (CSV), picture (PNG, PDF) or table (HTML, LaTeX),
        and its record (JSON), whose path is returned."""
        path = self.folder.joinpath(*map(files.slug, artifact.name.split("/")))
        texts, table = claims.texts(artifact.name), artifact.table()
        csv = partial(to_csv, float_format="%.9g")
        files.write(path.with_suffix(".csv"), csv(artifact.frame))
        sentences = list[str]()
        if artifact.claims is not None:
            sentences = claims.sentences(artifact.claims, artifact.name)
            files.write(path.with_suffix(".claims.csv"), csv(artifact.claims))
        if artifact.figure is None:
            style = partial(shown.styled, table, texts.decimals, artifact.bold())
            files.write(path.with_suffix(".html"), style().to_html())
            latex = style("latex").to_latex(hrules=True, convert_css=True)
            files.write(path.with_suffix(".tex"), printable(latex))  # stops at control characters
        else:
            engine = artifact.figure.get_layout_engine()
            for suffix, date in ((".png", "Software"), (".pdf", "CreationDate")):
                drawn = shown.picture(artifact.figure, suffix[1:], metadata={date: None})
                files.write(path.with_suffix(suffix), drawn)
                # the PDF has the layout of the PNG
                artifact.figure.set_layout_engine("none" if suffix == ".png" else engine or "none")
        what = {"artifact": artifact.name, "kind": "figure" if artifact.figure else "table"}
        what |= {"caption": texts.caption, "finding": " ".join(sentences), "alt": texts.alt}
        what |= {"decimals": texts.decimals, "bold": artifact.bold()}
        what["shown"] = None if table.equals(artifact.frame) else csv(table)
        record = what | self.provenance | {"models": self._read}
        return files.write_json(path.with_suffix(".json"), record)


def parameters_of(name: str, values: dict) -> dict:
    """The parameters of a run: those of ``values`` that the notebook declares, except ``profile``
    (outside the kit's folder: all). A notebook makes its section before it changes one. Only the
    last part of an absolute path is kept: the user's folders are private, and change no result."""
    notebook = paths.NOTEBOOKS / f"{name}.ipynb"
    if not notebook.exists() and "__name__" in values:
        said = f"{notebook} does not exist, so its parameters are unknown; give them: "
        raise ProbeError(said + "{'n_facts': n_facts, ...}")
    names = parameters.declared(notebook) if notebook.exists() else values
    return {key: _placeless(values[key]) for key in names if key in values and key != "profile"}


def _placeless(value):
    if isinstance(value, list):
        return [_placeless(each) for each in value]
    if isinstance(value, dict):
        return {name: _placeless(each) for name, each in value.items()}
    if not isinstance(value, str):
        return value
    own = lambda half: os.path.isabs(os.path.expanduser(half))
    return "=".join(Path(half).name if own(half) else half for half in value.split("="))


@cache
def versions() -> dict[str, str]:
    """Versions of the libraries that compute numbers, and the kit's commit (+ if edited since)."""
    at, pipes = ["git", "-C", str(paths.ROOT)], {"capture_output": True, "text": True}
    git = lambda *words: subprocess.run([*at, *words], **pipes).stdout.strip()
    commit = git("rev-parse", "--short", "HEAD") or "no git"
    edited = git("status", "--porcelain", "--untracked-files=no", "probelib", "notebooks")
    own = {"probelib": __version__, "commit": commit + "+" * bool(edited)}
    return own | {name: version(name) for name in PACKAGES}
