"""Check the shipped facts; download published data."""

import argparse
import sys

import pandas as pd

from probelib.errors import command
from probelib.facts import check
from probelib.facts.model import current
from probelib.facts.shipped import read_atlas


@command
def main(words: list[str] | None = None) -> None:
    """Run one command; the exit code is 1 after an error, or if the atlas has problems."""
    parser = argparse.ArgumentParser(prog="python -m probelib.facts", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="counts and problems of the shipped atlas")
    fetcher = commands.add_parser("fetch", help="download a published data set, or list them")
    fetcher.add_argument("name", nargs="?", help="fktc, or one file: fktc/P17-subclass.json")
    given = parser.parse_args(words)
    if given.command == "fetch":
        from probelib.facts import downloads  # needs the packages of an extra

        about = pd.DataFrame(downloads.registry()).T[["licence", "purpose"]]
        print(downloads.fetch(given.name) if given.name else about.to_string())
        return
    atlas = read_atlas()
    found, wrong = check.problems(atlas), check.wrong_distractors(current(atlas), atlas)
    print(check.counts(atlas).to_string(index=False, float_format="{:.2f}".format))
    print(f"\n{len(atlas.facts):,} facts, {len(atlas.entities):,} entities")
    print(f"{wrong} wrong distractors", *found or ["no problems"], sep="\n")
    if found:
        sys.exit(1)


if __name__ == "__main__":
    sys.exit(main())
