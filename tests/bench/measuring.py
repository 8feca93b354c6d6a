"""What benchmarks share: work in a process of its own, one row per measurement, and their tables in
README.md."""

import multiprocessing
import platform
import re
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import files
from probelib.errors import ProbeError

README = Path(__file__).with_name("README.md")


def alone(work: Callable, *arguments) -> dict:
    """What a function returns in a process of its own, its CPU seconds (all threads) and the
    process's peak memory (GiB)."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_measured, work, arguments).result()


def _measured(work: Callable, arguments: tuple) -> dict:
    start = time.process_time()
    result = work(*arguments)
    seconds = time.process_time() - start
    return {
        "result": result,
        "seconds": seconds,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def exponent(sizes, values) -> float:
    """The b of values ~ sizes ** b, by least squares over the logarithms."""
    return round(float(np.polyfit(np.log(sizes), np.log(values), 1)[0]), 2)


def write_table(
    name: str, table: pd.DataFrame, decimals: dict, file: Path = README, about: str | None = None
) -> None:
    """Print a table, and replace what stands between the two markers of a benchmark by date,
    machine and table.

    decimals   column of numbers -> digits shown
    about      the line before the table (None: today's date and this machine)
    """
    # here, because it would add to the memory that is measured
    from probelib.report.pages import table_markdown

    text = file.read_text(encoding="utf-8")
    digits = {column: decimals.get(column, 0) for column in table}
    between = re.compile(f"(<!-- {name} -->\n).*(<!-- /{name} -->)", re.DOTALL)
    if not between.search(text):
        raise ProbeError(
            f"{file} has no lines <!-- {name} --> and <!-- /{name} -->: the table is written there"
        )
    rows = re.sub(r"\\([*`_])", r"\1", table_markdown(table.astype(str), digits))
    written = f"{about or f'{date.today()}, {machine()}'}:\n\n{rows}\n\n"
    print(f"\n{name}: {written}", end="", flush=True)
    files.write(file, between.sub(lambda found: found[1] + written + found[2], text))


def machine() -> str:
    """Processor, and versions of what computes."""
    file = Path("/proc/cpuinfo")
    about = file.read_text(encoding="utf-8") if file.exists() else ""
    processor = re.search(r"model name\s*: (.*)", about)
    libraries = ", ".join(f"{library} {version(library)}" for library in ("torch", "transformers"))
    name = processor[1] if processor else platform.machine()
    return f"{name}, Python {platform.python_version()}, {libraries}"
