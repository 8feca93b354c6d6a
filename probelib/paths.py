"""Folders of the package, the notebooks and the outputs. No other module derives a path from its
own file, and none depends on the working directory."""

import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent  # the checkout (an editable install)
# otherwise installed from a wheel, which brings the notebooks
CLONE = (ROOT / "notebooks" / "plan.yaml").exists()
NOTEBOOKS = ROOT / "notebooks" if CLONE else Path(sys.prefix) / "share" / "probelib" / "notebooks"
OUT = Path(os.environ.get("PROBELIB_OUT", ROOT if CLONE else ".")).resolve()  # products go here
RUNS = OUT / "runs"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "probelib")
CHECKS = CACHE / "checks"  # self-checks that passed
FIGURES = OUT / "figures"
