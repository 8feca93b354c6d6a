"""What the papers claim, held against a run. ``published/claims.yaml`` holds what is said: per
artifact its caption, alternative text and claims. Code adds estimates with intervals only, and
``check`` gives the verdicts:

    check("monitor/table3", right=cases(table, "Δ [Y]"), wrong=cases(table, "Δ [Y_]"))
"""

import re
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import yaml

from probelib.errors import unknown
from probelib.paths import PACKAGE

VERDICTS = ("shown", "reversed", "undecided", "no interval", "not testable here")
ESTIMATES = ["value", "low", "high", "n", "missed"]
COLUMNS = ["key", "claim", "statistic", "printed", "case", *ESTIMATES[:-1], "verdict", "missed"]
FEWEST = 6  # cases; of fewer not even all of one sign are significant (two-sided, 5 %)


class Claim(NamedTuple):
    """A claim of an artifact; the head of ``claims.yaml`` says what its keys mean, and an unknown
    one raises TypeError."""

    claim: str
    statistic: str
    quote: str = ""
    section: str = ""
    sign: int = 1
    level: float = 0.0
    printed: float = np.nan
    cases: str = "models"
    decimals: int = 2
    mixed: bool = False


class Texts(NamedTuple):
    """An artifact's entry in ``claims.yaml``, whose head says what its keys mean."""

    caption: str
    alt: str = ""
    claims: dict[str, Claim] = {}
    needs: str = ""
    columns: tuple = ()
    decimals: dict[str, int] | int = 3


@cache
def _entries() -> dict[str, dict]:
    text = (PACKAGE / "published" / "claims.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def artifacts() -> list[str]:
    """The names of all artifacts with an entry."""
    return [name for name in _entries() if "/" in name]


def texts(artifact: str) -> Texts:
    """The texts of an artifact. Raise ProbeError if it has none."""
    if artifact not in _entries():
        raise unknown("artifact in published/claims.yaml", artifact, artifacts())
    entry = _entries()[artifact]
    made = {key: Claim(**about) for key, about in entry.get("claims", {}).items()}
    return Texts(**entry | {"claims": made})


def verdict(low: float, high: float, sign: int = 1, level: float = 0.0) -> str:
    """What a 95 % interval says about the claim that a number lies above ``level`` (``sign`` 1) or
    below it (-1): one of ``VERDICTS``."""
    if not np.isfinite([low, high]).all():
        return "no interval"
    if low <= level <= high:
        return "undecided"
    return "shown" if (low > level) == (sign > 0) else "reversed"


def check(artifact: str, **estimates) -> pd.DataFrame:
    """The claims of an artifact with their estimates and verdicts, ``COLUMNS``: a row per claim and
    case. ``estimates``: key of the claim -> its estimate, a mapping of ``value`` (or ``r``,
    ``tau``), ``low``, ``high`` and ``n``; or a frame of these, one row per case, whose index names
    the cases. ``missed``: the requirement of ``02_models`` that a case misses, so that the claim is
    not testable on it."""
    of, rows = texts(artifact), []
    for key, found in estimates.items():
        if key not in of.claims:
            raise unknown(f"claim of {artifact}", key, of.claims)
        about, single = of.claims[key], not isinstance(found, pd.DataFrame)
        table = pd.DataFrame([dict(found)], index=[""]) if single else found
        table = table.rename(columns={"r": "value", "tau": "value"}).reindex(columns=ESTIMATES)
        for case, value, low, high, n, missed in table.itertuples():
            said = verdict(low, high, about.sign, about.level)
            missed = "" if pd.isna(missed) else missed
            missed = missed or ("larger n" if n < FEWEST and said != "no interval" else "")
            told = (key, about.claim, about.statistic, about.printed)
            said = VERDICTS[-1] if missed else said
            rows.append((*told, case, value, low, high, n, said, missed))
    return pd.DataFrame(rows, columns=COLUMNS)


def interval(name: str, values, of) -> dict[str, float]:
    """The columns ``name``, ``name low``, ``name high`` of a mean; ``of``: of ``stats``."""
    low, high = of(values)
    return {name: np.mean(values), f"{name} low": low, f"{name} high": high}


def cases(table: pd.DataFrame, name: str, index="model", n: str | None = None) -> pd.DataFrame:
    """The columns of a number and its interval as estimates for ``check``, one case per row, named
    by column ``index``; ``n``: the column of their numbers of facts or other units."""
    columns = {name: "value", f"{name} low": "low", f"{name} high": "high"}
    columns |= {n: "n"} if n else {}
    return table.set_index(index)[list(columns)].rename(columns=columns)


def result(own: pd.DataFrame, about: Claim) -> str:
    """The estimate and verdict of one claim (``own``: its rows of ``check``). Several cases are
    counted by verdict, never outvoted."""
    why = ", ".join(filter(None, dict.fromkeys(own["missed"].fillna(""))))
    reason = f" (needs {why})" if why else ""
    if len(own) == 1:
        value, low, high, n = own.iloc[0][["value", "low", "high", "n"]]
        found = cell(value, about.decimals, ends=(low, high))
        found += f", n = {n:,.0f}" if pd.notna(n) else ""
        return f"{about.statistic} = {found}: {own['verdict'].iloc[0]}{reason}"
    counts = own["verdict"].value_counts().reindex(VERDICTS).dropna().astype(int)
    listed = ", ".join(f"{word} {count}" for word, count in counts.items())
    one = about.cases == "models" and own["case"].str.partition("@")[0].nunique() == 1
    over = f"over {len(own)} {'variants of one model' if one else about.cases}"
    mean = "" if about.mixed else f" = {cell(own['value'].mean(), about.decimals)}"
    return f"{about.statistic}{mean} {over}: {listed}{reason}"


def sentences(claims: pd.DataFrame, artifact: str) -> list[str]:
    """Each claim with the paper's value and its result, in Markdown."""
    of, lines = texts(artifact), []
    for key, own in claims.reindex(columns=COLUMNS).groupby("key", sort=False):
        about = of.claims[key]
        paper = "" if pd.isna(about.printed) else f" Paper: {about.printed:g}."
        lines.append(f"**{about.claim}**{paper} Here: {result(own, about)}.")
    return lines


def printed(table: pd.DataFrame, decimals: dict[str, int] | int = 3) -> pd.DataFrame:
    """A table for print: ``x``, ``x low`` and ``x high`` become one column, 0.50 [0.25, 0.75]."""
    shown = table.copy()
    for name in [column for column in table if {f"{column} low", f"{column} high"} <= set(table)]:
        ends = table[[name, f"{name} low", f"{name} high"]].to_numpy(float)
        shown[name] = [cell(row[0], decimals, name, row[1:]) for row in ends]
        shown = shown.drop(columns=[f"{name} low", f"{name} high"])
    return shown.rename(columns={"parameters": "parameters without embeddings"})


def cell(value: float, decimals: dict | int, column: str = "", ends=(np.nan, np.nan)) -> str:
    """A number for print with its ``Texts.decimals`` and the ends of its interval; NaN is a dash, a
    small p is no 0."""
    digits = decimals.get(column, 3) if isinstance(decimals, dict) else decimals
    least = 10.0**-digits if re.search(r"\bp\b", str(column)) else 0
    text = f"under {least:.{digits}f}" if 0 <= value < least else f"{value:z.{digits}f}"
    text += f" [{ends[0]:z.{digits}f}, {ends[1]:z.{digits}f}]" if np.isfinite(ends).all() else ""
    return "–" if pd.isna(value) else text
