"""How long a piece of work takes and how much memory it needs at most, measured fairly: the device waits for nothing."""

import resource
import time
from collections.abc import Callable


def measured(device, work: Callable[[], object]) -> dict[str, float]:
    """``seconds`` of the clock (everything sent to the device is done, tokenization included), ``peak_bytes``: the most memory
    in use meanwhile, weights included. On a GPU its own; on a CPU that of the process, NaN where the system cannot say.

    Call ``work`` once before, so that nothing is loaded or compiled in the measured time.
    """
    _forget_peak(device)
    started = _clock(device)
    work()
    return {"seconds": _clock(device) - started, "peak_bytes": _peak(device)}


def _clock(device) -> float:
    """Seconds, after everything that was sent to the device is done."""
    if device.type == "cuda":
        import torch

        torch.cuda.synchronize(device)
    return time.perf_counter()


def _forget_peak(device) -> None:
    if device.type == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats(device)
        return
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # Linux: the high-water mark begins anew
    except OSError:
        pass  # then the mark of the whole process is reported


def _peak(device) -> float:
    if device.type == "cuda":
        import torch

        return float(torch.cuda.max_memory_allocated(device))
    try:
        with open("/proc/self/status") as file:
            return next(float(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024
