"""``./run_all.sh verify``: do the numbers of a run agree with the committed ones?

Compared are the CSV files of ``figures/<profile>``, column by column. Texts and whole numbers must
be equal, letter by letter (NA, "" and None differ). Other numbers may differ by ``SCORES``
(absolute below 1, relative above), the ends of intervals (``x low``, ``x high``) also by
``INTERVALS`` of the interval's width. Those that the plan lists as ``measured`` are left out.

Exit code: 0 everything agrees, 1 something differs, 2 cannot compare.
"""

import argparse
import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import paths
from probelib.errors import ProbeError
from probelib.report import sheets
from probelib.runner import plan, uptodate

SCORES = 1e-4
INTERVALS = 0.05  # three standard errors of a 2.5 % quantile of 2,000 bootstrap replicates
END = re.compile(r"(.* |)(low|high)")


def main(arguments: list[str] | None = None) -> int:
    """Compare and print the differences; return the exit code."""
    parser = argparse.ArgumentParser("run_all.sh verify", description=__doc__)
    parser.add_argument("--profile", default=plan.DEFAULT, help="whose figures: atlas (default)")
    profile = parser.parse_args(arguments).profile
    try:
        with uptodate.lock(profile):
            ours = from_folder(paths.FIGURES / profile)
        compared, found = compare_runs(plan.steps_of(plan.read(), profile), ours, from_git(profile))
    except ProbeError as error:
        print(error, file=sys.stderr)
        return 2
    differ = found["artifact"].nunique()
    print(found.to_string(index=False, float_format="%.3g") + "\n" if differ else "", end="")
    print(f"{compared - differ} of {compared} artifacts agree with the committed ones")
    return 1 if differ else 0


def compare_runs(steps: list, ours: dict, committed: dict) -> tuple[int, pd.DataFrame]:
    """(number of artifacts compared, differences: one row per artifact and column) of artifact ->
    content of its CSV file. Raise ProbeError if nothing is compared."""
    rows, planned = [], [name for step in steps for name in step.makes if name not in step.measured]
    compared = [name for name in planned if name in ours or name in committed]
    for artifact in compared:
        if artifact in ours and artifact in committed:
            found = differences(read(ours[artifact]), read(committed[artifact]))
        else:
            found = [("", "not committed" if artifact in ours else "not made here", 0, np.nan)]
        rows += [(artifact, *row) for row in found]
    if not compared:
        raise ProbeError("nothing to compare: neither side has any of these artifacts")
    columns = ["artifact", "column", "problem", "rows", "largest"]
    return len(compared), pd.DataFrame(rows, columns=columns)


def read(content: bytes) -> pd.DataFrame:
    """A CSV file as texts, exactly as they stand there."""
    if not content.strip():
        return pd.DataFrame()
    return pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)


def differences(ours: pd.DataFrame, committed: pd.DataFrame) -> list[tuple]:
    """Rows (column, problem, number of differing rows, largest distance) of two tables of texts."""
    if list(ours) != list(committed) or len(ours) != len(committed):
        return [("", "other rows or columns", abs(len(ours) - len(committed)), np.nan)]
    found = []
    for column in ours.columns[(ours != committed).any()]:
        mine, theirs = ours[column], committed[column]
        wrong, distance = mine != theirs, pd.Series(np.nan, mine.index)
        if is_inexact(mine, theirs):
            distance = (numbers(mine) - numbers(theirs)).abs()
            wrong &= ~(distance <= _allowed(committed, column))  # NaN: missing
        if wrong.any():
            found.append((column, "differs", int(wrong.sum()), distance[wrong].max()))
    return found


def is_inexact(*columns: pd.Series) -> bool:
    """Whether columns of texts hold numbers, as the kit writes them, and not only whole ones."""
    whole = pd.concat(columns).str.fullmatch(r"-?\d*").all()
    return not whole and all(map(sheets.holds_numbers, columns))


def numbers(column: pd.Series) -> pd.Series:
    """The numbers in a column of texts; "" is NaN."""
    return column.where(column != "", "nan").astype(float)


def _allowed(committed: pd.DataFrame, column: str) -> pd.Series:
    """The distance allowed in each row of a column of numbers."""
    values = numbers(committed[column])
    scores = SCORES * values.abs().replace(np.inf, 1).clip(1)
    end = END.fullmatch(column)
    other = end and end[1] + ("high" if end[2] == "low" else "low")
    if other not in committed or not is_inexact(committed[other], committed[column]):
        return scores
    width = (numbers(committed[other]) - values).abs().replace(np.inf, 0)
    return scores.clip(lower=(INTERVALS * width).fillna(0))


def from_folder(folder: Path) -> dict[str, bytes]:
    """artifact -> content of its CSV file in a folder such as figures/atlas."""
    if not folder.is_dir():
        raise ProbeError(f"{folder}: no such folder. Run the notebooks first")
    return {f"{p.parent.name}/{p.stem}": p.read_bytes() for p in sorted(folder.glob("*/*.csv"))}


def from_git(profile: str) -> dict[str, bytes]:
    """artifact -> content of its CSV file in the last commit of this checkout."""

    def git(*words: str) -> bytes:
        return subprocess.run(["git", "-C", str(paths.ROOT), *words], capture_output=True).stdout

    listed = git("ls-tree", "-r", "-z", "--name-only", "HEAD", f"figures/{profile}/").decode()
    names = [name for name in listed.split("\0") if name.endswith(".csv")]
    if not names:
        raise ProbeError(f"no committed figures of profile {profile!r} in {paths.ROOT}")
    return {"/".join(Path(n).with_suffix("").parts[-2:]): git("show", f"HEAD:{n}") for n in names}


if __name__ == "__main__":
    sys.exit(main())
