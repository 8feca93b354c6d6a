"""Figures and tables with their provenance: what a notebook shows, and where it is saved.

    figures/<profile>/monitor/table4.csv .tex .html     full precision, LaTeX (booktabs), HTML
    figures/<profile>/monitor/figure11.png .pdf .csv    the picture, and the numbers it shows
    figures/<profile>/monitor/table4.json               caption and provenance

A text that a spreadsheet would compute, such as "=1+1", has an apostrophe before it in the CSV
(``report.sheets``).

The same run gives the same bytes: files contain no time and no random ids.
"""

import json
import os
import platform
import re
import subprocess
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from probelib import __version__, files, parameters, paths, store
from probelib.errors import ProbeError, printable
from probelib.report.artifact import Artifact
from probelib.report.charts import literal, use_style
from probelib.report.sheets import to_csv
from probelib.report.shown import display_artifact, picture, styled

PACKAGES = ["bitsandbytes", "numpy", "pandas", "scipy", "torch", "transformers"]


class Section:
    """The products of one notebook: where they go, and the provenance that all of them share.

    name     "monitor/sec5_results"
    profile  the folder below ``figures`` and ``runs``: "mine" for a notebook that a person opens,
             so that exploring never touches what the runner made, which passes "smoke", "atlas"
    facts    the facts that are scored (``facts.Facts``); None if no model is prompted
    values   ``globals()`` of the notebook, from which ``parameters_of`` selects

    ``section.scores`` is the folder of this profile's store. The records of the artifacts name the
    models of all scores that the store reads from now on; ``add`` notes further models."""

    def __init__(self, name: str, profile: str, facts, values: dict):
        self.name, self.folder = name, paths.FIGURES / files.slug(profile)
        self.scores = paths.RUNS / files.slug(profile) / "scores"
        self.provenance = {
            "notebook": name,
            "profile": profile,
            "parameters": parameters_of(name, values),
            "versions": versions(),
            "facts": None,
            "models": [],
        }
        if facts is not None:
            about = {"source": facts.source, "digest": facts.digest(), "facts": len(facts.facts)}
            self.provenance["facts"] = about | {"relations": len(facts.relations)}
        self._read = store.record_models()
        use_style()

    def add(self, scores: pd.DataFrame) -> pd.DataFrame:
        """Note the models of scores that do not come from the store (``.attrs["models"]``); return
        the scores."""
        known = self.provenance["models"]
        known += [m for m in scores.attrs.get("models", []) if m not in known]
        return scores

    def show(self, artifact: Artifact) -> None:
        """Show a table or figure in the notebook with its caption, the printed values and the
        finding, and save all of it."""
        self.save(artifact)
        display_artifact(artifact, self._path(artifact.name).with_suffix(".png"), self.scope())

    def save(self, artifact: Artifact) -> None:
        """Write the files of an artifact: numbers (CSV), picture (PNG, PDF) or table (HTML, LaTeX),
        and its record (JSON)."""
        path = self._path(artifact.name)
        files.write(path.with_suffix(".csv"), to_csv(artifact.frame, float_format="%.9g"))
        if artifact.claims is not None:
            claimed = to_csv(artifact.claims, float_format="%.9g")
            files.write(path.with_suffix(".claims.csv"), claimed)
        shown = artifact.table()
        if artifact.figure is None:
            table = partial(styled, shown, artifact.decimals, artifact.bold())
            files.write(path.with_suffix(".html"), table().to_html())
            latex = table("latex").to_latex(hrules=True, convert_css=True)
            files.write(path.with_suffix(".tex"), printable(latex))  # stops at control characters
        else:
            literal(artifact.figure)
            for suffix, date in ((".png", "Software"), (".pdf", "CreationDate")):
                drawn = picture(artifact.figure, suffix[1:], metadata={date: None})
                files.write(path.with_suffix(suffix), drawn)
        what = {
            "artifact": artifact.name,
            "kind": "table" if artifact.figure is None else "figure",
            "caption": artifact.caption,
            "finding": artifact.finding,
            "alt": artifact.alt,
            "decimals": artifact.decimals,
            "bold": artifact.bold(),
            "scope": self.scope(),
            "shown": None if shown.equals(artifact.frame) else to_csv(shown, float_format="%.9g"),
        }
        added = self.provenance["models"]
        models = {"models": [*(m for m in self._read if m not in added), *added]}
        files.write_json(path.with_suffix(".json"), what | self.provenance | models)

    def scope(self) -> str:
        """The line below every artifact: whose scores, on which facts."""
        about, parts = self.provenance["facts"], []
        names = {m["model"] for m in [*self._read, *self.provenance["models"]]}
        if names:
            parts.append(f"{len(names)} models" if len(names) > 1 else min(names))
        if about:
            n, relations = about["facts"], about["relations"]
            parts.append(f"{n:,} facts of {relations} relations ({about['source']})")
        return " · ".join([*parts, f"profile {self.provenance['profile']}"])

    def _path(self, artifact: str) -> Path:
        parts = artifact.split("/")
        if len(parts) != 2 or not all(parts):
            wanted = "expected paper/artifact, such as monitor/table4"
            raise ProbeError(f"artifact {artifact!r}: {wanted}")
        return self.folder / files.slug(parts[0]) / files.slug(parts[1])


def parameters_of(name: str, values: dict) -> dict:
    """The parameters of a run: those of ``values`` that the notebook declares, except ``profile``.
    A notebook outside the kit's folder passes a dictionary instead of ``globals()``.

    The current values are read, so a notebook makes its section before it changes a parameter
    (except for display names of models). Only the last part of an absolute path is kept: the user's
    folders are private, and change no result."""
    notebook = paths.NOTEBOOKS / f"{name}.ipynb"
    if not notebook.exists() and "__name__" in values:
        example = "{'n_facts': n_facts, ...}"
        raise ProbeError(
            f"{notebook} does not exist, so its parameters are unknown; give them: {example}"
        )
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


def machine(device) -> str:
    """The name of a torch device, for a table of speeds: the GPU's, or the processor's with the
    number of threads."""
    import torch

    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    info = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*:\s*(.+)", info.read_text() if info.exists() else "")
    name = named[1] if named else platform.processor() or platform.machine()
    return f"{name} ({torch.get_num_threads()} thread{'s' * (torch.get_num_threads() > 1)})"


@cache
def versions() -> dict[str, str]:
    """Versions of the libraries that compute numbers, and the commit of the library (with "+" if it
    was edited since)."""
    at, pipes = ["git", "-C", str(paths.ROOT)], {"capture_output": True, "text": True}
    git = lambda *words: subprocess.run([*at, *words], **pipes).stdout.strip()
    commit = git("rev-parse", "--short", "HEAD") or "no git"
    edited = git("status", "--porcelain", "--untracked-files=no", "probelib", "notebooks")
    own = {"probelib": __version__, "commit": commit + "+" * bool(edited)}
    return own | {name: version(name) for name in PACKAGES}


def read_record(path: Path) -> dict:
    """The record (JSON) of an artifact. Raise ProbeError if it is missing or damaged."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if missing := {"kind", "caption", "finding", "alt", "decimals"} - record.keys():
            raise ValueError(f"it lacks {', '.join(sorted(missing))}")
        return record
    except (OSError, ValueError, AttributeError) as error:
        said = f"no readable record of an artifact ({error}); make it again with --force"
        raise ProbeError(f"{path}: {said}") from error
