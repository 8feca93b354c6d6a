"""What benchmarks share: work in a process of its own, and one row a measurement."""

import multiprocessing
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor


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
