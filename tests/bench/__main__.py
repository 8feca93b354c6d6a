"""``python -m tests.bench [NAME ...]``: the benchmarks that are named, without a name all of them.

A benchmark is a module of this folder with a ``main()``. Several run one after another, each in a
process of its own, so that none finds another one's threads, caches or memory. ``campaign`` and
``fuzz`` run only if they are named, and take the remaining words.
"""

import importlib
import subprocess
import sys

from probelib.errors import ProbeError, unknown
from probelib.paths import ROOT

NAMES = ("waiting", "scoring", "real", "growth", "whole", "gpu")
NAMED = ("campaign", "fuzz")


def run(names: list[str]) -> int:
    """The exit status: 0 when every benchmark ran."""
    if names and names[0] in NAMED:
        return importlib.import_module(f"tests.bench.{names[0]}").main(names[1:])
    for name in names:
        if name not in NAMES:
            raise unknown("benchmark", name, [*NAMES, *NAMED])
    if len(names) == 1:
        importlib.import_module(f"tests.bench.{names[0]}").main()
        return 0
    command = [sys.executable, "-m", "tests.bench"]
    return max(subprocess.run([*command, name], cwd=ROOT).returncode for name in names or NAMES)


if __name__ == "__main__":
    try:
        sys.exit(run(sys.argv[1:]))
    except ProbeError as error:
        sys.exit(str(error))
