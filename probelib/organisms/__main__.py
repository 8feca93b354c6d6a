"""``python -m probelib.organisms train | check | manifests | panel``: how the shipped files were
made."""

import argparse
import sys

from probelib import files
from probelib.errors import ProbeError
from probelib.facts.shipped import ATLAS, read_atlas
from probelib.organisms import behaviour, check, design, taught, train
from probelib.organisms.family import FAMILY, organism


def main() -> int:
    """Run the command; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m probelib.organisms", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    trains = commands.add_parser("train", help="train organisms and overwrite their checkpoints")
    trains.add_argument("names", nargs="*", metavar="NAME", help=", ".join(FAMILY))
    trains.add_argument("--all", action="store_true", help="the whole family")
    jobs = "models that train at the same time, one thread each (default: one per core; 1 on a GPU)"
    trains.add_argument("--jobs", type=int, help=jobs)
    commands.add_parser("manifests", help="write manifests/*.parquet: what each corpus states")
    commands.add_parser("panel", help="draw the panel of facts again (facts/atlas/panel.tsv)")
    checks = commands.add_parser("check", help="compare what is shipped with the current atlas")
    behave = "measure the behaviour of organisms instead (default: of all)"
    checks.add_argument("--behaviour", nargs="*", metavar="NAME", help=behave)
    given = parser.parse_args()
    if given.command == "train" and bool(given.names) == given.all:
        trains.error("which? Name organisms, or give --all")
    try:
        if given.command == "train":
            for folder in train.train_all(list(FAMILY) if given.all else given.names, given.jobs):
                print(folder)
        elif given.command == "manifests":
            for corpus in design.CORPORA:
                print(taught.write(design.draw_manifest(read_atlas(), corpus), corpus))
        elif given.command == "panel":
            table = design.panel(read_atlas(), taught.manifest())
            files.write(
                ATLAS / "panel.tsv", table.to_csv(sep="\t", index=False, lineterminator="\n")
            )
        elif given.behaviour is not None:
            every = [name for name in FAMILY if name.count("-") < 3 or name.endswith("-it")]
            names = given.behaviour or every
            found = behaviour.measure(names, read_atlas())
            sizes = {name: organism(name).layers * organism(name).width ** 2 for name in names}
            required = behaviour.requirements(found, sizes)
            print(required.to_string())
            return int(not required["met"].all())
        elif problems := check.changes_since_training():
            print("\n".join(problems))
            return 1
        else:
            print("the organisms are what their records say")
    except ProbeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
