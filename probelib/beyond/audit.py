"""Do the published numbers hold? What the four papers state, against their own printed tables.

``published/audit.yaml`` holds every claim with the recomputed numbers and the verdict. A verdict
says whether the printed tables support a claim, within their rounding. It says nothing about the
model runs, which no table can show: "does not hold" may be a slip in a caption, and "holds" does
not prove that the number was measured well.
"""

import numpy as np
import pandas as pd

from probelib import report
from probelib.errors import texts_of, unknown
from probelib.facts.text import read_yaml
from probelib.paths import PACKAGE
from probelib.report import Artifact

FAILS = "does not hold"
LOOKS = {  # verdict -> colour and hatch of its part of a bar
    "holds": ("#029e73", ""),
    "holds with a caveat": ("#ece133", "//"),
    FAILS: ("#d55e00", "xx"),
    "cannot be decided from the tables": ("#cccccc", ".."),
}
COLUMNS = ["where", "claim", "published", "statistic", "recomputed", "verdict", "why"]


def table(papers: list[str] | None = None) -> pd.DataFrame:
    """The claims of some papers (None: all): ``paper`` and ``COLUMNS``, all texts."""
    entries = read_yaml(PACKAGE / "published" / "audit.yaml")
    papers = list(entries) if papers is None else texts_of("papers", papers)
    if odd := [paper for paper in papers if paper not in entries]:
        raise unknown("paper", odd[0], entries)
    parts = {paper: pd.DataFrame(entries[paper].values()) for paper in entries if paper in papers}
    return pd.concat(parts, names=["paper"])[COLUMNS].reset_index("paper").reset_index(drop=True)


def audit_verdicts(claims: pd.DataFrame) -> Artifact:
    """Verdicts per paper: one bar each, one part per verdict; ``claims``: ``table``."""
    counts = pd.crosstab(claims["paper"], claims["verdict"])
    counts = counts.reindex(index=claims["paper"].unique(), columns=list(LOOKS), fill_value=0)
    counts = counts.rename(index=report.PAPERS).rename_axis(index="paper", columns="verdict")
    figure, axes = report.subplots(report.COLUMN, 0.28 * len(counts) + 0.9)
    axis, left = axes[0, 0], np.zeros(len(counts))
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.75}
    text = {"label_type": "center", "fontsize": report.SMALL, "color": "black", "bbox": box}
    for verdict, (colour, hatch) in LOOKS.items():
        look = {"color": colour, "hatch": hatch, "edgecolor": "white", "label": verdict}
        bars = axis.barh(counts.index, counts[verdict], left=left, **look)
        axis.bar_label(bars, [n or "" for n in counts[verdict]], **text)
        left = left + counts[verdict]
    axis.invert_yaxis()
    axis.set(xlabel="claims")
    handles = axis.get_legend_handles_labels()
    figure.legend(*handles, ncols=2, loc="outside upper center", fontsize=report.SMALL)
    return Artifact("beyond/audit_verdicts", counts.reset_index(), figure=figure)
