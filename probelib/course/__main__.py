"""``python -m probelib.course``, or ``./run_all.sh course``: copies of labs, and marks."""

import argparse
import sys
from pathlib import Path

from probelib.course.build import build
from probelib.course.classroom import write_page
from probelib.course.grade import marks
from probelib.errors import command


@command
def main(words: list[str] | None = None) -> None:
    """Run the command; the exit code is 1 after an error."""
    parser = argparse.ArgumentParser(
        "run_all.sh course",
        description="Make a student's and an instructor's copy of every lab, and a page in which "
        "a model runs. With --grade: marks for labs that were handed in.",
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="a folder; with --grade the CSV file")
    add("--only", nargs="+", metavar="LAB", help="some labs (lab1); default: all")
    add("--student-only", action="store_true", help="a folder to hand out: no instructor's copies")
    add("--force", action="store_true", help="overwrite copies that differ, or a file of marks")
    grade = "run every notebook in FOLDER (other people's code), one row per exercise"
    add("--grade", type=Path, metavar="FOLDER", help=grade)
    args = parser.parse_args(words)
    if args.grade and (args.only or args.student_only):
        parser.error("--grade takes no --only and no --student-only")
    if args.grade:
        made = marks(args.grade, args.out, args.force)
    else:
        made = build(args.out, args.only, args.student_only, args.force)
        if not args.only:
            write_page(args.out / "classroom.html")
    print(f"course: {made}")


if __name__ == "__main__":
    sys.exit(main())
