"""What benchmarks share: work in a process of its own, one row per measurement, and their tables in README.md."""

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


def row(what: str, value: float, unit: str, wanted: float | None, less: bool = False) -> dict:
    """A measurement: ``what``, ``value``, ``unit``, ``wanted`` (None: nothing promised), ``ratio`` (value to wanted, turned so
    that 1 or more is good)."""
    ratio = None if wanted is None else wanted / value if less else value / wanted
    return {"what": what, "value": value, "unit": unit, "wanted": wanted, "ratio": ratio}


def show(rows: list[dict]) -> None:
    """Prints measurements, a line each."""
    print("what | value | wanted | ratio (1 or more: reached)")
    for one in rows:
        wanted, ratio = ("-", "-") if one["wanted"] is None else (f"{one['wanted']:,}", f"{one['ratio']:.2f}")
        print(f"{one['what']} | {one['value']:,.2f} {one['unit']} | {wanted} | {ratio}")


def alone(work: Callable, *arguments) -> dict:
    """What a function returns in a process of its own, its CPU seconds (all threads) and the process's peak memory (GiB)."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_measured, work, arguments).result()


def _measured(work: Callable, arguments: tuple) -> dict:
    start = time.process_time()
    result = work(*arguments)
    seconds = time.process_time() - start
    return {"result": result, "seconds": seconds, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def exponent(sizes, values) -> float:
    """The b of values ~ sizes ** b, by least squares over the logarithms."""
    return round(float(np.polyfit(np.log(sizes), np.log(values), 1)[0]), 2)


def write_table(name: str, table: pd.DataFrame, decimals: dict[str, int], file: Path = README) -> None:
    """Replace what stands between the two markers of a benchmark by today's date, the machine and a table.

    decimals   column of numbers -> digits shown
    """
    from probelib.report.markdown import table_markdown  # here, because it would add to the memory that is measured

    text, digits = file.read_text(encoding="utf-8"), {column: decimals.get(column, 0) for column in table}
    between = re.compile(f"(<!-- {name} -->\n).*(<!-- /{name} -->)", re.DOTALL)
    if not between.search(text):
        raise ProbeError(
            f"{file} has no lines <!-- {name} --> and <!-- /{name} -->, between which the table is written"
        )
    written = f"{date.today()}, {machine()}:\n\n{table_markdown(table.astype(str), digits)}\n\n"
    files.write(file, between.sub(lambda found: found[1] + written + found[2], text))


def machine() -> str:
    """Processor, and versions of what computes."""
    about = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    processor = re.search(r"model name\s*: (.*)", about)
    libraries = ", ".join(f"{library} {version(library)}" for library in ("torch", "transformers"))
    return f"{processor[1] if processor else platform.machine()}, Python {platform.python_version()}, {libraries}"
