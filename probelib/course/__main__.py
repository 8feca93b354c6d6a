"""``python -m probelib.course``, or ``./run_all.sh course``: copies and slides of labs; marks."""

import argparse
import sys
from pathlib import Path

from probelib.course.build import build
from probelib.course.grade import marks
from probelib.errors import ProbeError


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return the exit code."""
    parser = argparse.ArgumentParser(
        "run_all.sh course",
        description="Make a student's copy, an instructor's copy and slides of every lab. The "
        "slides show the output of the solved labs, so these are executed (half a minute each). "
        "With --grade: marks for labs that were handed in.",
    )
    add = parser.add_argument
    out = "the folder for student/, instructor/, slides/, index.html; with --grade: the CSV file"
    add("--out", type=Path, required=True, help=out)
    only = "some labs (lab1 or lab1_log_probability); default: all"
    add("--only", nargs="+", metavar="LAB", help=only)
    hand_out = "a folder to hand out: no instructor's copies, no slides"
    add("--student-only", action="store_true", help=hand_out)
    add("--solutions", action="store_true", help="slides with the solutions and the answers")
    force = "overwrite copies that were changed since they were made, or a file of marks"
    add("--force", action="store_true", help=force)
    grade = "run every notebook in FOLDER (other people's code), one row per exercise"
    add("--grade", type=Path, metavar="FOLDER", help=grade)
    profile = "atlas (default), or smoke: smaller models and fewer facts in the slides"
    add("--profile", help=profile)
    args = parser.parse_args(arguments)
    for name in ("only", "student_only", "solutions", "profile") if args.grade else ():
        if getattr(args, name):
            parser.error(f"--grade takes no --{name.replace('_', '-')}")
    try:
        if args.grade:
            made = marks(args.grade, args.out, args.force)
        elif args.student_only:
            made = build(args.out, args.only, None, force=args.force)
        else:
            made = build(args.out, args.only, args.profile or "atlas", args.solutions, args.force)
        print(f"course: {made}")
    except ProbeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
