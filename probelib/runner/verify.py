"""``./run_all.sh verify``: do the numbers of a run agree with the committed ones?

Compared are the CSV files of ``figures/<profile>``, column by column. Texts and whole numbers must
be equal, letter by letter (NA, "" and None differ). Other numbers may differ by a distance that is
absolute below 1 and relative above, the ends of intervals (``x low``, ``x high``) also by a share
of the interval's width. The plan's ``tolerances`` hold the two limits; artifacts that a step lists
as ``measured`` are not compared. Differences are written to ``runs/<profile>/verify.csv``.

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

from probelib import files, paths
from probelib.errors import ProbeError
from probelib.report import sheets
from probelib.runner import plan, uptodate

END = re.compile(r"(.* |)(low|high)")
FOUND = ["artifact", "column", "problem", "rows", "largest", "allowed"]


def main(arguments: list[str] | None = None) -> int:
    """Compare, print and write the differences; return the exit code."""
    what = "Compare a run's numbers with the committed ones."
    parser = argparse.ArgumentParser("run_all.sh verify", description=what)
    add = parser.add_argument
    add("--profile", default=plan.DEFAULT, help="whose figures: atlas (default), smoke, ...")
    add("--against", type=Path, metavar="FOLDER", help="default: the last commit's figures")
    add("--only", nargs="+", metavar="NAME", help="notebooks, papers or artifacts")
    args = parser.parse_args(arguments)
    try:
        whole = plan.read()
        steps = plan.steps_of(whole, args.profile)
        if args.only:
            chosen = plan.matching(whole, args.only)
            steps = [step for step in whole.steps if step.notebook in chosen]
        with uptodate.lock(args.profile, shared=True):
            ours = from_folder(paths.FIGURES / args.profile)
            committed = from_folder(args.against) if args.against else from_git(args.profile)
            compared, found = compare_runs(steps, whole.tolerances, ours, committed)
            target = paths.RUNS / args.profile / "verify.csv"
            files.write(target, sheets.to_csv(found, float_format="%.3g"))
    except ProbeError as error:
        print(error, file=sys.stderr)
        return 2
    differ = found["artifact"].nunique()
    print(found.to_string(index=False, float_format="%.3g") + "\n" if differ else "", end="")
    print(f"{compared - differ} of {compared} artifacts agree with the committed ones")
    return 1 if differ else 0


def compare_runs(
    steps: list, tolerances: dict, ours: dict[str, bytes], committed: dict[str, bytes]
) -> tuple[int, pd.DataFrame]:
    """(number of artifacts compared, differences: one row per artifact and column, ``FOUND``).

    ours, committed   artifact -> content of its CSV file. One that only one side has differs

    Raise ProbeError if nothing is compared.
    """
    rows, compared = [], 0
    for step in steps:
        for artifact in sorted({*step.makes} - {*step.measured} & (ours.keys() | committed.keys())):
            compared += 1
            if artifact in ours and artifact in committed:
                found = differences(read(ours[artifact]), read(committed[artifact]), tolerances)
            else:
                problem = "not committed" if artifact in ours else "not made here"
                found = [("", problem, 0, np.nan, np.nan)]
            rows += [(artifact, *row) for row in found]
    if not compared:
        raise ProbeError("nothing to compare: neither side has any of these artifacts")
    return compared, pd.DataFrame(rows, columns=FOUND)


def read(content: bytes) -> pd.DataFrame:
    """A CSV file as texts, exactly as they stand there."""
    if not content.strip():
        return pd.DataFrame()
    return pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)


def differences(ours: pd.DataFrame, committed: pd.DataFrame, limits: dict) -> list[tuple]:
    """Rows (column, problem, number of differing rows, largest distance, distance allowed there)
    of two tables of texts.

    limits   ``scores`` (distance, relative above 1) and ``intervals`` (share of the width)
    """
    if list(ours) != list(committed) or len(ours) != len(committed):
        tables = (ours, committed)
        shape = "; ".join(f"{len(t)} rows, columns {', '.join(map(str, t))}" for t in tables)
        return [("", f"other shape: {shape}", abs(len(ours) - len(committed)), np.nan, np.nan)]
    found = []
    for column in map(str, ours):
        mine, theirs = ours[column], committed[column]
        wrong = (mine != theirs).to_numpy()
        distance, allowed = np.full(len(wrong), np.nan), np.zeros(len(wrong))
        if wrong.any() and is_inexact(mine, theirs):
            here, there = numbers(mine), numbers(theirs)
            distance = np.where(wrong & (here != there), np.abs(here - there), 0.0)
            allowed = _allowed(committed, column, limits)
            wrong = wrong & ~(distance <= allowed)  # NaN: a number against a missing one
        if wrong.any():
            worst = int(np.argmax(np.where(wrong, np.nan_to_num(distance - allowed), -np.inf)))
            row = (int(wrong.sum()), float(distance[worst]), float(allowed[worst]))
            found.append((column, "differs", *row))
    return found


def is_inexact(*columns: pd.Series) -> bool:
    """Whether columns of texts hold numbers, as the kit writes them, and not only whole ones."""
    whole = all(column.str.fullmatch(r"-?\d*").all() for column in columns)
    return not whole and all(map(sheets.holds_numbers, columns))


def numbers(column: pd.Series) -> np.ndarray:
    """The numbers in a column of texts, (rows,); "" is NaN."""
    return column.where(column != "", "nan").to_numpy(float)


def _allowed(committed: pd.DataFrame, column: str, limits: dict) -> np.ndarray:
    """The distance allowed in each row of a column of numbers, (rows,)."""
    values = numbers(committed[column])
    scores = limits["scores"] * np.maximum(1.0, np.nan_to_num(np.abs(values), posinf=1.0))
    end = END.fullmatch(column)
    other = end and end[1] + ("high" if end[2] == "low" else "low")
    if other not in committed or not is_inexact(committed[other], committed[column]):
        return scores
    width = np.abs(numbers(committed[other]) - values)
    return np.maximum(scores, limits["intervals"] * np.nan_to_num(width, posinf=0.0))


def from_folder(folder: Path) -> dict[str, bytes]:
    """artifact -> content of its CSV file in a folder such as figures/atlas."""
    if not folder.is_dir():
        raise ProbeError(f"{folder}: no such folder. Run the notebooks, or name one by --against")
    return {f"{p.parent.name}/{p.stem}": p.read_bytes() for p in sorted(folder.glob("*/*.csv"))}


def from_git(profile: str) -> dict[str, bytes]:
    """artifact -> content of its CSV file in the last commit of this checkout."""

    def git(*words: str) -> bytes:
        return subprocess.run(["git", "-C", str(paths.ROOT), *words], capture_output=True).stdout

    listed = git("ls-tree", "-r", "-z", "--name-only", "HEAD", f"figures/{profile}/").decode()
    names = [name for name in listed.split("\0") if name.endswith(".csv")]
    if not names:
        raise ProbeError(
            f"no committed figures of profile {profile!r} in {paths.ROOT}; name others by --against"
        )
    return {"/".join(Path(n).with_suffix("").parts[-2:]): git("show", f"HEAD:{n}") for n in names}


if __name__ == "__main__":
    sys.exit(main())
