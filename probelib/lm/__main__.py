"""python -m probelib.lm formats MODEL [MODEL ...]: the format in which a model answers.
Shares of 40 facts: answered, by any text; likeliest, the object is more probable than five wrong
ones; begins, contains, exact, the text has the object. Add the best format: MODEL@shots.
"""

import argparse

from probelib.explore.formats import RULES, formats_table
from probelib.paths import RUNS

parser = argparse.ArgumentParser(prog="python -m probelib.lm", description=__doc__)
parser.add_argument("command", choices=["formats"])
parser.add_argument("models", nargs="+", metavar="MODEL")
asked = parser.parse_args()
found = formats_table(asked.models, RUNS / "mine" / "scores")
shown = found[["model", "format", "n", "answered", "likeliest", *RULES]]
print(shown.to_string(index=False, float_format="{:.2f}".format), __doc__.partition("\n")[2])
