"""The audit's table and figures; ``claims``: ``audit.table``."""

import numpy as np
import pandas as pd

from probelib import report
from probelib.beyond.audit.claims import FAILS, VERDICTS
from probelib.report import Artifact

LOOKS = [("#029e73", ""), ("#ece133", "//"), ("#d55e00", "xx"), ("#cccccc", "..")]  # colour, hatch


def audit_verdicts(claims: pd.DataFrame) -> Artifact:
    """Verdicts per paper: one bar each, one part per verdict."""
    counts = claims.groupby(["paper", "verdict"], sort=False).size().unstack(fill_value=0)
    papers = list(dict.fromkeys(claims["paper"]))
    counts = counts.reindex(index=papers, columns=VERDICTS, fill_value=0)
    figure, axes = report.column(0.28 * len(counts) + 0.9)
    axis, left = axes[0, 0], np.zeros(len(counts))
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.75}
    for verdict, (colour, hatch) in zip(VERDICTS, LOOKS, strict=True):
        look = {"color": colour, "hatch": hatch, "edgecolor": "white", "label": verdict}
        bars = axis.barh(counts.index, counts[verdict], left=left, **look)
        shown = [n or "" for n in counts[verdict]]
        text = {"label_type": "center", "fontsize": report.SMALL, "color": "black", "bbox": box}
        axis.bar_label(bars, shown, **text)
        left = left + counts[verdict]
    axis.invert_yaxis()
    axis.set(xlabel="claims")
    handles = axis.get_legend_handles_labels()
    figure.legend(*handles, ncols=2, loc="outside upper center", fontsize=report.SMALL)
    return Artifact("beyond/audit_verdicts", counts.reset_index(), figure=figure)


def audit_failing(claims: pd.DataFrame) -> Artifact:
    """The claims that do not follow from their own tables."""
    failing = claims[claims["verdict"] == FAILS].drop(columns="verdict")
    return Artifact("beyond/audit_failing", failing)


def audited_claims(claims: pd.DataFrame) -> Artifact:
    """All claims with their verdicts."""
    return Artifact("beyond/audit", claims)
