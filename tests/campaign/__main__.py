"""``python -m tests.campaign``: runs disturbed on purpose; afterwards a plain run ends with the same bytes, or says why not.

Every fault's number of tries is an option, WORK.FAULT=TRIES; without any, the whole campaign (hours):

    python -m tests.campaign notebook.kill=3 shard.kill=3 training.kill=2 --seed 1

Every try is a row of tests/campaign/tries.csv (appended as it ends); record.csv and record.png sum them up.
"""

import argparse
import csv
import random
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path

from probelib import store
from tests.campaign.downloads import broken_answers, broken_download
from tests.campaign.faults import FAULTS, Impossible
from tests.campaign.works import Work, finish, prepare, reasoned, works

HERE = Path(__file__).parent
WHOLE = {
    "notebook": {"kill": 100, "kill_any": 20, "terminate": 20, "full": 20, "read_only": 3, "flip": 100,
                 "unfinished_flip": 20, "twice": 10, "clock": 10},
    "shard": {"kill": 20, "terminate": 5, "full": 10, "read_only": 3, "flip": 20, "unfinished_flip": 20, "twice": 10,
              "clock": 5},
    "scores": {"full": 30, "read_only": 30, "twice": 30, "clock": 30, "memory": 30, "cgroup": 30},
    "training": {"kill": 30, "terminate": 5, "full": 5, "read_only": 2, "unfinished_flip": 10, "clock": 3},
    "smoke": {"kill": 5, "flip": 20},
    "download": {"cut": 100},
    "served": {"cut": 30},
}  # fmt: skip
LOOKS = {
    "survived, bytes equal": "#0173b2",
    "refused with the reason": "#56b4e9",
    "defects": "#d55e00",
    "not possible": "0.8",
}
NETWORK = {"download": broken_download, "served": broken_answers}
COLUMNS = ("work", "fault", "seed", "outcome", "bytes", "what")


def one_try(work: Work, fault, seed: int, seconds: float, whole: Path, folder: Path) -> tuple[str, str, str]:
    """(outcome, bytes, what was done): disturb, run plainly, compare with the undisturbed run in ``whole``."""
    out = folder / "out"
    out.mkdir()
    try:
        what = fault(work, out, random.Random(seed), seconds, whole)
    except Impossible as error:
        return "not possible", "", str(error)
    except AssertionError as error:
        return "DEFECT", "", str(error)
    code, last = finish(work, out)
    if code:
        return ("refused" if reasoned(out) else "DEFECT"), "", f"{what}; then: {last[-300:]}"
    left = _still_flipped(out)
    unread = left and left.parent.parent.name == "scores" and not _finished(left)
    ours, theirs = work.products(out), work.products(whole)
    differ = [name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]
    if differ and not (unread and differ == [str(left.relative_to(out))]):
        return "DEFECT", "different", f"{what}; {len(differ)} differ, e.g. {differ[0]}"
    if left and not unread:
        return "DEFECT", "equal", f"{what}; the changed bit is still there"
    return "survived", "equal", what + "; not read again, and refused where it is" * bool(left)


def _still_flipped(out: Path) -> Path | None:
    """The file in which a changed bit still is."""
    flipped = out.with_name("out.flipped")
    if not flipped.exists():
        return None
    there = (file for file in out.rglob("*") if file.is_file() and file.read_bytes() == flipped.read_bytes())
    return next(there, None)


def _finished(file: Path) -> bool:
    """Whether the store would read the part that a file belongs to. A finished step does not read its scores again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return store.Part(file.with_suffix(".parquet"), "").finished()


def campaign(tries: dict[str, dict[str, int]], seed: int, steps: int, table: Path) -> int:
    """The number of defects."""
    defects, every = 0, works(steps)
    prepare()
    for name, faults in tries.items():
        with tempfile.TemporaryDirectory() as folder:
            whole = Path(folder) / "whole"
            whole.mkdir()
            started = time.monotonic()
            if name not in NETWORK:
                code, last = finish(every[name], whole)
                assert code == 0, f"the undisturbed run of {name} failed: {last}"
            seconds = time.monotonic() - started
            for fault, number in faults.items():
                for i in range(number):
                    own = Path(folder) / f"{fault}{i}"
                    own.mkdir()
                    number_of_try = seed + i
                    if name in NETWORK:
                        outcome = NETWORK[name](number_of_try, own)
                    else:
                        outcome = one_try(every[name], FAULTS[fault], number_of_try, seconds, whole, own)
                    defects += outcome[0] == "DEFECT"
                    row = (name, fault, number_of_try, *outcome)
                    print(*row, sep=" | ", flush=True)
                    _append(table, row)
                    shutil.rmtree(own, ignore_errors=True)
    return defects


def _append(table: Path, row: tuple) -> None:
    new = not table.exists()
    with open(table, "a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        writer.writerow([str(value).replace("\n", " ") for value in row])


def summary(table: Path) -> list[tuple]:
    """Rows: work, fault, times tried, survived with the same bytes, refused with a reason, defects, not possible."""
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    kinds = dict.fromkeys((row["work"], row["fault"]) for row in rows)
    outcomes = ("survived", "refused", "DEFECT", "not possible")
    return [
        (*kind, len(own), *(sum(row["outcome"] == outcome for row in own) for outcome in outcomes))
        for kind in kinds
        for own in [[row for row in rows if (row["work"], row["fault"]) == kind]]
    ]


def picture(rows: list[tuple], path: Path) -> None:
    """Bars of the tries of every work and fault, by outcome."""
    import matplotlib.pyplot as plt

    from probelib.report import use_style

    use_style()
    figure, axis = plt.subplots(figsize=(6.3, 0.6 + 0.2 * len(rows)))
    names, left = [f"{row[0]}: {row[1]}" for row in rows], [0] * len(rows)
    for column, (label, colour) in enumerate(LOOKS.items(), 3):
        values = [row[column] for row in rows]
        axis.barh(names, values, left=left, label=label, color=colour)
        left = [a + b for a, b in zip(left, values, strict=True)]
    axis.set(xlabel="tries", ylim=(len(rows) - 0.4, -0.6))
    axis.legend()
    figure.savefig(path, dpi=90, metadata={"Software": None})


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__.split("\n")[0])
    parser.add_argument("tries", nargs="*", metavar="WORK.FAULT=TRIES", help="default: the whole campaign")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60, help="of the training that is disturbed")
    parser.add_argument("--table", type=Path, default=HERE / "tries.csv")
    given = parser.parse_args()
    wanted: dict[str, dict[str, int]] = {}
    for each in given.tries:
        name, _, number = each.partition("=")
        work, _, fault = name.partition(".")
        if fault not in WHOLE.get(work, {}) and not (work in works() and fault in FAULTS) or not number.isdigit():
            parser.error(
                f"{each!r}: WORK.FAULT=TRIES, works {', '.join(WHOLE)}, faults {', '.join(FAULTS)} (of download and served: cut)"
            )
        wanted.setdefault(work, {})[fault] = int(number)
    defects = campaign(wanted or WHOLE, given.seed, given.steps, given.table)
    with open(given.table.with_name("record.csv"), "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("work", "fault", "tried", *LOOKS))
        writer.writerows(summary(given.table))
    picture(summary(given.table), given.table.with_name("record.png"))
    print(given.table.with_name("record.csv").read_text())
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
