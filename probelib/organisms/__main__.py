"""``python -m probelib.organisms train | check | manifests | panel``: how the shipped files were made."""

import argparse
import sys

from probelib import files
from probelib.errors import ProbeError
from probelib.facts.shipped import ATLAS, read_atlas
from probelib.lm.names import organisms
from probelib.organisms import design, taught
from probelib.organisms.family import FAMILY, organism


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m probelib.organisms", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="train organisms and overwrite their checkpoints")
    train.add_argument("names", nargs="*", metavar="NAME", help=", ".join(FAMILY))
    train.add_argument("--all", action="store_true", help="the whole family")
    jobs = "models that train at the same time, one thread each (default: the number of CPU cores; 1 on a GPU)"
    train.add_argument("--jobs", type=int, help=jobs)
    commands.add_parser("manifests", help="write manifests/*.parquet: what each corpus states, and how often")
    commands.add_parser("panel", help="draw the panel of facts again (facts/atlas/panel.tsv)")
    check = commands.add_parser("check", help="compare checkpoints, manifests and corpora with the current atlas")
    behave = "measure the behaviour of organisms instead (default: of all)"
    check.add_argument("--behaviour", nargs="*", metavar="NAME", help=behave)
    arguments = parser.parse_args()
    if arguments.command == "train" and bool(arguments.names) == arguments.all:
        train.error("which? Name organisms, or give --all")
    try:
        return _run(arguments)
    except ProbeError as error:
        print(error, file=sys.stderr)
        return 1


def _run(arguments: argparse.Namespace) -> int:
    """Run one command; return the exit code."""
    if arguments.command == "train":
        from probelib.organisms.train import train_all

        for folder in train_all(list(FAMILY) if arguments.all else arguments.names, arguments.jobs):
            print(folder)
    elif arguments.command == "manifests":
        facts = read_atlas()
        for corpus in design.CORPORA:
            print(taught.write(design.draw_manifest(facts, corpus), corpus))
    elif arguments.command == "panel":
        table = design.panel(read_atlas(), taught.manifest())
        lines = ["\t".join(row) for row in [table.columns, *table.itertuples(index=False)]]
        files.write(ATLAS / "panel.tsv", "\n".join(lines) + "\n")
    elif arguments.behaviour is not None:
        default = [name for name in FAMILY if name.count("-") < 3 or name.endswith("-it")]
        return _behaviour(arguments.behaviour or default)
    else:
        from probelib.organisms.check import changes_since_training

        found = changes_since_training()
        print("\n".join(found) or f"{len(organisms())} organisms are what their records say")
        return int(bool(found))
    return 0


def _behaviour(names: list[str]) -> int:
    """Print the behaviour of organisms and the requirements of the design; return 1 if a requirement is missed."""
    from probelib.organisms import behaviour

    found = behaviour.measure(names, read_atlas())
    for part, frame in found.items():
        if part == "famous":
            frame = frame.groupby("model", sort=False)[["right", "type_right"]].sum()
        print(f"{part}\n{frame.round(3).to_string()}\n")
    sizes = {name: organism(name).layers * organism(name).width ** 2 for name in names}
    required = behaviour.requirements(found, sizes)
    print(required.to_string())
    return int(not required["met"].all())


if __name__ == "__main__":
    sys.exit(main())
