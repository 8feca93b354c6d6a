"""Seconds from "Run All" to the first result of every notebook, with the parameters that stand in it.

    python -m tests.benchmarks.first_result [NOTEBOOK ...]

A result is any output but a progress bar. Besides wall time, the processor time of the kernel is shown: it says what an idle
machine takes. Each notebook writes to a folder that is deleted, so nothing is found in a store.
"""

import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import psutil
from nbclient import NotebookClient

from probelib import paths
from probelib.runner import plan
from probelib.runner.kernel import OwnKernelManager


class Shown(Exception):
    """A cell has shown something."""


def first_result(path: Path) -> tuple[int, float, float]:
    """(number of the cell that shows the first result, seconds of wall time, seconds of processor time)."""
    notebook, used, count = nbformat.read(path, as_version=4), 0.0, 0
    client = NotebookClient(
        notebook,
        kernel_manager_class=OwnKernelManager,
        kernel_name="python3",
        timeout=None,
        resources={"metadata": {"path": str(path.parent)}},
    )

    def look(cell, **_):
        nonlocal used, count
        count += 1
        if any(output.output_type != "error" and output.get("name") != "stderr" for output in cell.outputs):
            spent = psutil.Process(client.km.provisioner.pid).cpu_times()
            used = spent.user + spent.system
            raise Shown

    client.on_cell_executed = look
    start = time.monotonic()
    with contextlib.suppress(Shown):
        client.execute()
    return count, time.monotonic() - start, used


def print_table(names: list[str]) -> None:
    steps = plan.read().steps
    print("| notebook | cell | wall time, s | processor time, s |\n|---|---|---|---|")
    for step in steps:
        if names and step.notebook not in names:
            continue
        with tempfile.TemporaryDirectory() as out:
            os.environ |= {"PROBELIB_OUT": out, "PYTHONPATH": str(paths.ROOT)}
            cell, wall, used = first_result(step.path)
        print(f"| {step.notebook} | {cell} | {wall:.1f} | {used:.1f} |", flush=True)


if __name__ == "__main__":
    print_table(sys.argv[1:])
