"""Do the published numbers hold? Every claim that the printed tables allow to check, recomputed.

    audit.table()                       paper, where, claim, published, statistic, recomputed,
                                        verdict, why, computed by
    audit.code_of("grapheval.density")  the function that computes a verdict

``published/audit.yaml`` holds what is said, one module per paper the checks: a function returns
numbers and a verdict, which follows from the numbers, so that a corrected table changes it. A
verdict says whether the printed tables support a claim, within their rounding. It says nothing
about the model runs, which no table can show: "does not hold" may be a slip in a caption, and
"holds" does not prove that the number was measured well.
"""

import inspect
from functools import cache
from numbers import Integral
from typing import NamedTuple

import numpy as np
import pandas as pd
import yaml

from probelib import report
from probelib.beyond.audit import distractors, grapheval, monitor, zplke
from probelib.beyond.audit.verdicts import CAVEAT, FAILS, HOLDS, OPEN, VERDICTS, Finding
from probelib.errors import texts_of, unknown
from probelib.paths import PACKAGE
from probelib.report import Artifact

PAPERS = {"monitor": monitor, "zplke": zplke, "distractors": distractors, "grapheval": grapheval}
LOOKS = [("#029e73", ""), ("#ece133", "//"), ("#d55e00", "xx"), ("#cccccc", "..")]  # colour, hatch


class AuditedClaim(NamedTuple):
    """A published statement (an entry of audit.yaml), checked by ``check(*args)`` of its paper."""

    where: str
    claim: str
    published: str
    statistic: str
    why: str
    check: str | None = None
    args: tuple = ()


@cache
def claims() -> dict[str, AuditedClaim]:
    """paper.key -> claim, in the order of the papers."""
    papers = yaml.safe_load((PACKAGE / "published" / "audit.yaml").read_text(encoding="utf-8"))
    return {
        f"{paper}.{key}": AuditedClaim(**entry)
        for paper in PAPERS
        for key, entry in papers[paper].items()
    }


def _check(name: str):
    """The function that checks a claim."""
    paper, key = name.split(".")
    return getattr(PAPERS[paper], claims()[name].check or key)


def finding(name: str) -> Finding:
    """(numbers, verdict) of the claim of this name (column "computed by")."""
    return _check(name)(*claims()[name].args)


def code_of(name: str) -> str:
    """The code that computes the verdict of this name (column "computed by")."""
    if name not in claims():
        raise unknown("check", name, claims())
    return inspect.getsource(_check(name))


def table(papers: list[str] | None = None) -> pd.DataFrame:
    """The findings on the claims of some papers (None: all), in the papers' order."""
    papers = list(PAPERS) if papers is None else texts_of("papers", papers)
    for paper in papers:
        if paper not in PAPERS:
            raise unknown("paper", paper, PAPERS)
    rows = []
    for name, claim in claims().items():
        if (paper := name.split(".")[0]) in papers:
            numbers, found = finding(name)
            said = claim._asdict() | {"recomputed": as_cell(numbers), "verdict": found}
            rows.append({"paper": paper, **said, "computed by": name})
    columns = ["paper", "where", "claim", "published", "statistic", "recomputed", "verdict", "why"]
    return pd.DataFrame(rows)[[*columns, "computed by"]]


def as_cell(numbers: dict) -> str:
    """Numbers and names with their labels, as one cell of a table.

    >>> as_cell({"r": -0.84667, "n": 1200, "models": ["a", "b"], "others": []})
    'r -0.8467; n 1,200; models a, b; others none'
    """
    return "; ".join(f"{label} {_cell(value)}" for label, value in numbers.items()) or "–"


def _cell(value) -> str:
    if isinstance(value, (list, pd.Index, pd.Series)):
        return ", ".join(map(_cell, value)) or "none"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, Integral) else f"{value:.4g}"


def audit_verdicts(claims: pd.DataFrame) -> Artifact:
    """Verdicts per paper: one bar each, one part per verdict; ``claims``: ``table``."""
    counts = pd.crosstab(claims["paper"], claims["verdict"])
    counts = counts.reindex(index=claims["paper"].unique(), columns=VERDICTS, fill_value=0)
    counts.index.name, counts.columns.name = "paper", "verdict"
    figure, axes = report.column(0.28 * len(counts) + 0.9)
    axis, left = axes[0, 0], np.zeros(len(counts))
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.75}
    text = {"label_type": "center", "fontsize": report.SMALL, "color": "black", "bbox": box}
    for verdict, (colour, hatch) in zip(VERDICTS, LOOKS, strict=True):
        look = {"color": colour, "hatch": hatch, "edgecolor": "white", "label": verdict}
        bars = axis.barh(counts.index, counts[verdict], left=left, **look)
        axis.bar_label(bars, [n or "" for n in counts[verdict]], **text)
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
