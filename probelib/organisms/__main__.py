"""``python -m probelib.organisms train | teach``: how the shipped models were made, and how any
model is taught facts."""

import argparse
import sys
from pathlib import Path

from probelib.errors import command
from probelib.organisms import teach, train
from probelib.organisms.family import FAMILY
from probelib.organisms.trial import SISTERS


@command
def main(words: list[str] | None = None) -> None:
    """Run the command; the exit code is 1 after an error."""
    parser = argparse.ArgumentParser(prog="python -m probelib.organisms", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    trains = commands.add_parser("train", help="train organisms and overwrite their checkpoints")
    trains.add_argument("names", nargs="+", metavar="NAME", help=", ".join(FAMILY))
    teaches = commands.add_parser("teach", help="teach a model facts: a LoRA adapter")
    teaches.add_argument("model", help="any decoder that lm.load loads from a folder")
    teaches.add_argument("table", type=Path, help="facts, and how often each is read (exposures)")
    teaches.add_argument("--out", required=True, type=Path, help="folder of the adapter")
    teaches.add_argument("--sister", choices=SISTERS, help="by the trial's arms (beyond/trial.md)")
    given = parser.parse_args(words)
    if given.command == "train":
        for folder in train.train_all(given.names):
            print(folder)
    else:
        print(teach.teach(given.model, given.table, given.out, given.sister))


if __name__ == "__main__":
    sys.exit(main())
