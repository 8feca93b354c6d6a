"""Do the published numbers hold? Every claim that the printed tables allow to recompute, recomputed.

    audit.table()                           paper, where, claim, published, recomputed, verdict, why, computed by
    audit.code_of("grapheval.density")    the function that computes a verdict

A verdict says whether the printed tables support a claim, within their rounding. It says nothing about the model runs, which no
table can show: "does not hold" may be a slip in a caption, and "holds" does not prove that the number was measured well.
"""

import inspect

import pandas as pd

from probelib.beyond.audit import distractors, grapheval, monitor, zplke
from probelib.beyond.audit.artifacts import audit_failing, audit_verdicts, audited_claims
from probelib.beyond.audit.claims import CAVEAT, CLAIMS, FAILS, HOLDS, OPEN, VERDICTS, Claim
from probelib.errors import texts_of, unknown

PAPERS = ["monitor", "zplke", "distractors", "grapheval"]


def table(papers: list[str] | None = None) -> pd.DataFrame:
    """The findings on the claims of some papers (None: all), in the papers' order."""
    papers = PAPERS if papers is None else texts_of("papers", papers)
    for paper in papers:
        if paper not in PAPERS:
            raise unknown("paper", paper, PAPERS)
    rows = []
    for one in sorted(CLAIMS, key=lambda one: PAPERS.index(one.paper)):
        if one.paper in papers:
            recomputed, found, why = one.check()
            rows.append(
                (
                    one.paper,
                    one.where,
                    one.claim,
                    one.published,
                    recomputed,
                    found,
                    why,
                    name_of(one),
                )
            )
    columns = [
        "paper",
        "where",
        "claim",
        "published",
        "recomputed",
        "verdict",
        "why",
        "computed by",
    ]
    return pd.DataFrame(rows, columns=columns)


def name_of(claim: Claim) -> str:
    """Paper and function of a check, the argument of ``code_of``."""
    return f"{claim.paper}.{claim.check.__name__}"


def code_of(name: str) -> str:
    """The code of the check of this name (column "computed by"), without the sentence that it checks."""
    checks = {name_of(claim): claim.check for claim in CLAIMS}
    if name not in checks:
        raise unknown("check", name, checks)
    return inspect.getsource(checks[name])
