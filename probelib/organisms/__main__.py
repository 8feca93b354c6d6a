"""``python -m probelib.organisms train | check``: how the shipped models were made."""

import argparse
import sys

from probelib.errors import command
from probelib.organisms import train
from probelib.organisms.family import FAMILY


@command
def main(words: list[str] | None = None) -> None:
    """Run the command; the exit code is 1 after an error, or if what is shipped was changed."""
    parser = argparse.ArgumentParser(prog="python -m probelib.organisms", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    trains = commands.add_parser("train", help="train organisms and overwrite their checkpoints")
    trains.add_argument("names", nargs="*", metavar="NAME", help=", ".join(FAMILY))
    trains.add_argument("--all", action="store_true", help="the whole family")
    jobs = "models that train at the same time, one thread each (default: one per core; 1 on a GPU)"
    trains.add_argument("--jobs", type=int, help=jobs)
    commands.add_parser("check", help="compare what is shipped with its records and the atlas")
    given = parser.parse_args(words)
    if given.command == "train":
        if bool(given.names) == given.all:
            trains.error("which? Name organisms, or give --all")
        for folder in train.train_all(list(FAMILY) if given.all else given.names, given.jobs):
            print(folder)
    elif problems := train.changes_since_training():
        print("\n".join(problems))
        sys.exit(1)
    else:
        print("the organisms are what their records say")


if __name__ == "__main__":
    sys.exit(main())
