"""python -m probelib.lm formats MODEL [MODEL ...]: the format in which a model answers."""

import argparse

from probelib.explore import formats
from probelib.paths import RUNS

parser = argparse.ArgumentParser(prog="python -m probelib.lm", description=__doc__)
parser.add_argument("command", choices=["formats"])
parser.add_argument("models", nargs="+", metavar="MODEL")
asked = parser.parse_args()
found = formats.formats_table(asked.models, RUNS / "mine" / "scores")
print(found.to_string(index=False, float_format="{:.2f}".format))
