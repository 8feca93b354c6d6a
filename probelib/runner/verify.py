"""``./run_all.sh verify``: do the numbers of a run agree with the committed ones, as closely as the plan states?

Compared are the CSV files of ``figures/<profile>``, column by column: text and whole numbers exactly, the ends of intervals
(columns that end in low or high) within a share of the interval's width, other numbers within a distance that is absolute
below 1 and relative above. The plan's ``tolerances`` hold the two limits, a step's ``fragile`` wider ones for single
artifacts. Artifacts that a step lists as ``measured`` (seconds, memory) are not compared.

The committed numbers are those of the last commit, or of the folder or summary ``--against``. A summary (``--summary FILE``
writes it) holds, per column, a digest of text and whole numbers, and the mean and spread of other numbers. Differences are
written to ``runs/<profile>/verify.csv`` and shown in the report.

Exit code: 0 everything agrees, 1 something differs, 2 cannot compare.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import files, paths
from probelib.errors import ProbeError
from probelib.report import pages, sheets
from probelib.runner import plan, uptodate

END = re.compile(r"^(?P<name>.*?)(?P<gap>[ _,]*)(?P<side>low|high)$")  # a column with an end of an interval
FOUND = ["artifact", "column", "problem", "rows", "largest", "allowed"]


def main(arguments: list[str] | None = None) -> int:
    """Compare, print and write the differences; return the exit code."""
    parser = argparse.ArgumentParser(
        "run_all.sh verify", description="Compare a run's numbers with the committed ones."
    )
    add = parser.add_argument
    add("--profile", default="atlas", help="whose figures are compared: atlas (default), smoke, ...")
    add("--against", type=Path, metavar="PATH", help="a folder such as figures/atlas, or a summary; default: HEAD's")
    add("--summary", type=Path, metavar="FILE", help="write a summary of the run, and compare nothing")
    add("--only", nargs="+", metavar="NAME", help="notebooks, papers or artifacts; default: everything")
    args = parser.parse_args(arguments)
    try:
        whole = plan.read()
        chosen = plan.matching(whole, args.only) if args.only else {step.notebook for step in whole.steps}
        steps = [step for step in whole.steps if step.notebook in chosen]
        if args.summary:
            return write_summary(steps, from_folder(paths.FIGURES / args.profile), args.summary)
        committed = from_path(args.against) if args.against else from_git(args.profile)
        ours = from_folder(paths.FIGURES / args.profile)
        if args.against and args.against.is_file():
            ours = {artifact: _row(summary(content)) for artifact, content in ours.items()}
        compared, found = compare_runs(steps, whole.tolerances, ours, committed)
    except ProbeError as error:
        print(error, file=sys.stderr)
        return 2
    files.write(paths.RUNS / args.profile / "verify.csv", sheets.to_csv(found, float_format="%.3g"))
    renew_report(args.profile, whole)
    differ = found["artifact"].nunique()
    print(found.to_string(index=False, float_format="%.3g") + "\n" if differ else "", end="")
    print(f"{compared - differ} of {compared} artifacts agree with the committed ones")
    return 1 if differ else 0


def renew_report(profile: str, whole: plan.Plan) -> None:
    """Write the profile's report again, if it exists: a page that it shows or links has changed."""
    if (paths.RUNS / profile / "report.html").exists():
        status = dict.fromkeys((step.notebook for step in whole.steps), "not run now")
        pages.book(profile, whole.steps, status, uptodate.written(profile))
        uptodate.write_report(profile)


def compare_runs(steps: list, tolerances: dict, ours: dict, committed: dict) -> tuple[int, pd.DataFrame]:
    """(number of artifacts compared, differences: one row per artifact and column, see ``FOUND``).

    ours, committed   artifact -> content of its CSV file. An artifact that only one side has counts as a difference

    Raise ProbeError if nothing is compared.
    """
    rows, compared = [], 0
    for step in steps:
        for artifact in sorted(set(step.makes) - set(step.measured)):
            pair = ours.get(artifact), committed.get(artifact)
            if pair == (None, None):
                continue
            compared += 1
            if None in pair:
                rows.append((artifact, "", "not made here" if pair[0] is None else "not committed", 0, np.nan, np.nan))
            elif pair[0] != pair[1]:
                limits = tolerances | {"scores": step.fragile.get(artifact, tolerances["scores"])}
                rows += [(artifact, *row) for row in differences(*map(_frame, pair), limits)]
    if not compared:
        raise ProbeError("nothing to compare: neither side has any of these artifacts. Run the notebooks first")
    return compared, pd.DataFrame(rows, columns=FOUND)


def differences(ours: pd.DataFrame, committed: pd.DataFrame, limits: dict) -> list[tuple]:
    """Rows (column, problem, number of rows that differ, largest distance, distance allowed there) of two tables.

    limits   ``scores`` (distance, relative above 1) and ``intervals`` (share of the width)
    """
    if list(ours) != list(committed) or len(ours) != len(committed):
        shape = "; ".join(f"{len(table)} rows, columns {', '.join(table)}" for table in (ours, committed))
        return [("", f"other shape: {shape}", abs(len(ours) - len(committed)), np.nan, np.nan)]
    found = []
    for column in ours:
        mine, theirs = ours[column], committed[column]
        numbers = all(map(pd.api.types.is_numeric_dtype, (mine, theirs)))
        if not numbers or not any(map(pd.api.types.is_float_dtype, (mine, theirs))):
            wrong = ~((mine == theirs) | (mine.isna() & theirs.isna()))
            found += [(column, "differs", int(wrong.sum()), np.nan, 0.0)] if wrong.any() else []
            continue
        mine, theirs = mine.to_numpy(float), theirs.to_numpy(float)
        same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
        allowed = _allowed(committed, column, limits)
        distance = np.where(same, 0.0, np.nan_to_num(np.abs(mine - theirs), nan=np.inf))
        wrong = distance > allowed
        if wrong.any():
            worst = int(np.argmax(np.where(wrong, distance - allowed, -np.inf)))
            found.append((column, "differs", int(wrong.sum()), float(distance[worst]), float(allowed[worst])))
    return found


def _allowed(committed: pd.DataFrame, column: str, limits: dict) -> np.ndarray:
    """The distance allowed in each row of a column of numbers, (rows,)."""
    values = committed[column].to_numpy(float)
    scores = limits["scores"] * np.maximum(1.0, np.nan_to_num(np.abs(values), posinf=1.0))
    end = END.match(column)
    other = end and f"{end['name']}{end['gap']}{'high' if end['side'] == 'low' else 'low'}"
    if not end or other not in committed:
        return scores
    width = np.abs(committed[other].to_numpy(float) - values)
    return np.maximum(scores, limits["intervals"] * np.nan_to_num(width, posinf=0.0))


def _frame(content: bytes) -> pd.DataFrame:
    return sheets.read_csv(content, low_memory=False) if content.strip() else pd.DataFrame()


def summary(content: bytes) -> dict[str, int | float | str]:
    """Summary of a CSV file: its number of rows; per column the mean and spread (of fractions) or a digest (of everything else).

    >>> summary(b"tau,low,high\\n0.5,0.25,0.75\\n1.5,1.0,2.0\\n")
    {'number of rows': 2, 'tau': 1.0, 'spread of tau': 0.5, 'low': 0.625, 'high': 1.375}
    """
    frame = _frame(content)
    numbers: dict = {"number of rows": len(frame)}
    for column, values in frame.items():
        if not pd.api.types.is_float_dtype(values):
            numbers[column] = f"sha256:{files.sha256(values.to_csv(index=False).encode())[:16]}"
            continue
        numbers[column] = _short(values.mean())
        if not END.match(column):
            numbers[f"spread of {column}"] = _short(values.std(ddof=0))
        if values.isna().any():
            numbers[f"missing in {column}"] = int(values.isna().sum())
    return numbers


def _short(number: float) -> float:
    return float(f"{number:.9g}")


def write_summary(steps: list, ours: dict[str, bytes], file: Path) -> int:
    """Write the summary of all artifacts that are compared; return 0."""
    compared = [artifact for step in steps for artifact in sorted(set(step.makes) - set(step.measured))]
    files.write_json(file, {artifact: summary(ours[artifact]) for artifact in compared if artifact in ours})
    return 0


def _row(numbers: dict) -> bytes:
    return sheets.to_csv(pd.DataFrame([numbers]), float_format="%.9g").encode()


def from_path(path: Path) -> dict[str, bytes]:
    """artifact -> content of its CSV file, from a folder, or from a summary (as CSV files of one row)."""
    if not path.is_file():
        return from_folder(path)
    try:
        return {artifact: _row(numbers) for artifact, numbers in json.loads(path.read_text(encoding="utf-8")).items()}
    except (ValueError, AttributeError) as error:
        raise ProbeError(f"{path}: not a summary ({error}); write one with --summary") from error


def from_folder(folder: Path) -> dict[str, bytes]:
    """artifact -> content of its CSV file in a folder such as figures/atlas."""
    if not folder.is_dir():
        raise ProbeError(f"{folder}: no such folder. Run the notebooks first, or name one that exists with --against")
    return {f"{path.parent.name}/{path.stem}": path.read_bytes() for path in sorted(folder.glob("*/*.csv"))}


def from_git(profile: str) -> dict[str, bytes]:
    """artifact -> content of its CSV file in the last commit of this checkout."""
    git = lambda *words: subprocess.run(["git", "-C", str(paths.ROOT), *words], capture_output=True)
    listed = git("ls-tree", "-r", "-z", "--name-only", "HEAD", f"figures/{profile}/")
    names = [name for name in listed.stdout.decode().split("\0") if name.endswith(".csv")]
    if not names:
        raise ProbeError(f"no committed figures of profile {profile!r} in {paths.ROOT}; name a folder with --against")
    return {"/".join(Path(name).with_suffix("").parts[-2:]): git("show", f"HEAD:{name}").stdout for name in names}


if __name__ == "__main__":
    sys.exit(main())
