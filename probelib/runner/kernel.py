"""A notebook in a process of its own: ``python -m probelib.runner.kernel`` executes one.

The job (the arguments of ``execute``) comes on stdin as a line of JSON. stdin stays open: when it
closes, the runner has stopped or died, and the notebook ends with it. Events go to stdout as lines
of JSON: ``{"cell": 3}`` (the third cell that runs), ``{"bar": "smollm2: 40%|..."}`` (its progress)
and, last, ``{"error": null, "gigabytes": 1.2}`` (the failure in one line; peak memory).
"""

import contextlib
import json
import os
import re
import resource
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import papermill
import psutil
from ipykernel.kernelspec import make_ipkernel_cmd
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import DeadKernelError

from probelib import files
from probelib.lm.internals.memory import NO_MEMORY

OUT_OF_MEMORY = "most likely out of memory: fewer --jobs, a smaller batch or --quantize"


class OwnKernelManager(AsyncKernelManager):
    """Starts kernels with the running python, not the "python3" of the user's Jupyter folders. Not
    by ``ipykernel_launcher``, which drops the working directory from PYTHONPATH: it may be this
    checkout. Errors only: else each kernel warns that its sockets here are not encrypted."""

    kernel_spec = KernelSpec(
        argv=make_ipkernel_cmd("ipykernel", extra_arguments=["--IPKernelApp.log_level=ERROR"])
    )


def main() -> None:
    events = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # other output to stdout, also that of the kernel, must not mix with events
    send = lambda **event: print(json.dumps(event), file=events)
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_runner, daemon=True).start()
    error = execute(**job, send=send)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # kilobytes, bytes on macOS
    send(error=error, gigabytes=peak / (1e9 if sys.platform == "darwin" else 1e6))


def execute(source: str, target: str, parameters: dict, cwd: str, send: Callable) -> str | None:
    """Execute ``source`` in ``cwd`` with ``parameters`` into ``target``; return None, or the
    failure in a line. Sent are ``cell=3, bar=""`` before the third cell that runs, and its bar."""
    count = 0

    def on_cell(**_: object) -> None:
        nonlocal count
        count += 1
        send(cell=count, bar="")

    def on_words(text: str) -> None:
        if bars := re.findall(r"[^\r\n]+\d<[^\r\n]*\]", text):
            send(bar=bars[-1])

    how: dict[str, Any] = {"kernel_name": "python3", "language": "python", "cwd": cwd}
    how |= {"progress_bar": False, "start_timeout": 120, "on_cell_execute": on_cell}
    how |= {"kernel_manager_class": OwnKernelManager, "coalesce_streams": True}  # for nbclient
    how |= {"stderr_file": SimpleNamespace(write=on_words, flush=lambda: None)}
    path = target.replace("{", "{{").replace("}", "}}")  # papermill calls str.format
    try:
        notebook = papermill.execute_notebook(files.read_notebook(source), path, parameters, **how)
    except papermill.PapermillExecutionError as error:
        said = f"{error.ename}: {' '.join(str(error.evalue).split())[:500]}"
        if re.search(rf"^(OutOf)?MemoryError|{NO_MEMORY}", said):
            said += f" ({OUT_OF_MEMORY})"
        return f"cell {count}: {said}"
    except DeadKernelError:
        return f"cell {count}: kernel killed; {OUT_OF_MEMORY}"
    except OSError as error:
        return f"cannot write {error.filename or target}: {error.strerror or error}"
    except RuntimeError as error:
        return f"the kernel did not start: {error}"
    # papermill marks cells after sys.exit() or an interrupt as completed
    code = [c for c in notebook.cells if c.cell_type == "code" and c.source.strip()]
    ran = sum(cell.execution_count is not None for cell in code)
    return f"cell {ran + 1}: never ran" if ran < len(code) else None


def _end_with_runner() -> None:
    os.read(0, 1)  # nothing more is sent: this returns when the runner is gone
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            process.kill()
    os._exit(1)


if __name__ == "__main__":
    main()
