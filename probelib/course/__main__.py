"""``python -m probelib.course``, or ``./run_all.sh course``: make the copies and the slides of the labs, and grade."""

import argparse
import sys
from pathlib import Path

from probelib.course import otter
from probelib.course.build import build, labs
from probelib.course.grade import marks
from probelib.errors import ProbeError


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return the exit code."""
    parser = argparse.ArgumentParser(
        "run_all.sh course",
        description="Make a student's copy, an instructor's copy and slides of every lab. The slides show the output of the "
        "solved labs, so these are executed (half a minute each). With --grade: marks for labs that were handed in.",
    )
    add = parser.add_argument
    out = "the folder for student/, instructor/, slides/ and index.html; with --grade: the CSV file"
    add("--out", type=Path, required=True, help=out)
    add("--only", nargs="+", metavar="LAB", help="some labs (lab1 or lab1_log_probability); default: all")
    add("--student-only", action="store_true", help="a folder to hand out: no instructor's copies, no slides")
    force = "overwrite copies that were changed since they were made, or a file of marks"
    add("--force", action="store_true", help=force)
    readme = "see notebooks/exercises/README.md"
    grade = f"run every notebook in FOLDER (other people's code: {readme}), one row per exercise"
    add("--grade", type=Path, metavar="FOLDER", help=grade)
    add("--otter", action="store_true", help=f"also write the checks as tests of otter-grader, {readme}")
    add("--profile", help="atlas (default), or smoke: smaller models and fewer facts in the slides")
    add(
        "--reveal",
        metavar="URL",
        help="where the slides find reveal.js: an address such as https://unpkg.com/reveal.js@6; default: copied beside the "
        "slides from the package pyreveal, so that they need no network",
    )
    args = parser.parse_args(arguments)
    for name in ("only", "student_only", "otter", "profile", "reveal") if args.grade else ():
        if getattr(args, name):
            parser.error(f"--grade takes no --{name.replace('_', '-')}")
    try:
        if args.grade:
            made = marks(args.grade, args.out, args.force)
        else:
            made = build(args.out, args.only, args.profile or "atlas", args.reveal, args.student_only, args.force)
            if args.otter:
                print(f"course: {otter.write_tests(labs(args.only), args.out)}")
        print(f"course: {made}")
    except ProbeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
