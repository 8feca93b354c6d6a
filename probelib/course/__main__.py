"""``python -m probelib.course``, in the kit ``./run_all.sh course``: makes the copies and the slides of the labs."""

import argparse
import sys
from pathlib import Path

from probelib.course.build import build
from probelib.errors import ProbeError


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says; returns the exit code."""
    parser = argparse.ArgumentParser(
        "run_all.sh course",
        description="Make of every lab a student's copy, an instructor's copy and slides. The slides show what the solved labs "
        "print and plot, so that these are executed (about half a minute each).",
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="DIR", help="where student/, instructor/, slides/ and index.html go")
    add("--only", nargs="+", metavar="LAB", help="some labs (lab1_log_probability); default: all")
    add("--profile", default="atlas", help="atlas (default), or smoke: smaller models and fewer facts in the slides")
    add(
        "--reveal",
        metavar="URL",
        help="where the slides find reveal.js: an address such as https://unpkg.com/reveal.js@6; default: copied beside the "
        "slides from the package pyreveal, so that they need no network",
    )
    args = parser.parse_args(arguments)
    try:
        print(f"course: {build(args.out, args.only, args.profile, args.reveal)}")
    except ProbeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
