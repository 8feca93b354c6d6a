"""The size of a model that is not loaded, by its name, and the time and memory that work takes."""

import math
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from probelib.lm.internals.folders import count_parameters, stored_quantization, weight_files
from probelib.lm.names import CHECKPOINTS, split_variant

NO_MEMORY = "allocate memory|bad_alloc|could not create a primitive"  # errors of torch, C++, oneDNN
SIZE = r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)(b|m)(\d*)(?![a-z0-9])"  # in a name


def parameters(name: str) -> float | None:
    """Parameters of a model by its files if they are here, else by its name; None if neither tells.

    >>> parameters("bigscience/bloomz-1b1"), parameters("mistralai/Mixtral-8x7B-v0.1")
    (1100000000.0, 56000000000.0)
    """
    name, _ = split_variant(name)
    folder = CHECKPOINTS / name if (CHECKPOINTS / name).is_dir() else Path(name)
    if weight_files(folder) and not stored_quantization(folder):
        return float(count_parameters(folder))
    if not (match := re.search(SIZE, name.rsplit("/", 1)[-1].lower())):
        return None
    experts, whole, unit, decimals = match.groups()
    if "." in whole and decimals:  # 1.5b2 may mean 1.5 or 1.52 billion
        return None
    number = float(f"{whole}.{decimals}" if decimals else whole)
    return number * (1e9 if unit == "b" else 1e6) * int(experts or 1)


def measured(device, work: Callable[[], object]) -> dict[str, float]:
    """``seconds`` of ``work()``, pending GPU work included, and ``peak_bytes``: the most memory in
    use meanwhile, weights included (of the GPU; on a CPU of the process, NaN if the system does not
    report it). Call ``work`` once before, so that nothing is loaded in the measured time."""
    import torch

    gpu = torch.cuda if device.type == "cuda" else None
    if gpu:
        gpu.synchronize(device)
        gpu.reset_peak_memory_stats(device)
    else:  # Linux: reset the high-water mark; otherwise it is that since the process started
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
    started, peak = time.perf_counter(), math.nan
    work()
    if gpu:
        gpu.synchronize(device)
    seconds = time.perf_counter() - started
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
        peak = float(found[1]) * 1024 if found else math.nan
    peak = float(gpu.max_memory_allocated(device)) if gpu else peak
    return {"seconds": seconds, "peak_bytes": peak}
