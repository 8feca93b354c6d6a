"""Notebooks in processes of their own: the runner starts ``python -m probelib.runner.kernel`` for each of its --jobs.

Jobs come on stdin, one line of JSON each. Every job runs in a fork of this process, and its Jupyter kernel in a fork of that.
So torch, transformers and pandas are imported once, which takes ten seconds, and notebooks share no state. Where forks are not
safe (macOS), the process ends after one job. stdin stays open: when it closes, the runner has stopped or died, and the job ends
together with its kernel. Events go to stdout, one JSON object per line: ``{"cell": 3}`` (the third cell that runs, as in
``In [3]``), ``{"text": ...}`` (the latest line on the notebook's stderr: a progress bar), ``{"error": null}`` or the failure in
one line, and ``{"code": 0}`` when the job's process has ended.
"""

import contextlib
import gc
import importlib
import json
import os
import re
import resource
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import IO

if __name__ == "__main__":
    # without it jsonschema does not spend a second on a grammar of IRIs, which no notebook contains
    sys.modules["rfc3987_syntax"] = None
    import tqdm.auto  # noqa: F401  (before ipykernel: progress bars are text here, which the runner's status line shows)

import ipykernel.kernelapp
import papermill
import psutil
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import DeadKernelError
from traitlets import default

from probelib.lm.internals.memory import NO_MEMORY

OUT_OF_MEMORY = "most likely out of memory: fewer --jobs, a smaller batch or --quantize"
FEW_FILES = 256  # open files; a kernel and its libraries need about a hundred
FORKS = sys.platform == "linux"
# modules that most notebooks import; none of them uses a GPU at import
SHARED = (
    "matplotlib_inline.backend_inline",
    "probelib.report",
    "scipy.stats",
    "seaborn",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.gpt_neox.modeling_gpt_neox",
    "transformers.models.llama.modeling_llama",
    "transformers.models.t5.modeling_t5",
)


class OwnKernelManager(AsyncKernelManager):
    """A kernel manager that starts kernels with the running python, not with the "python3" of the user's Jupyter folders."""

    forked: "ForkedKernel | None" = None  # a fork of this process that waits to become the kernel

    @default("kernel_spec_manager")
    def _without_installed_specs(self) -> KernelSpecManager:
        return KernelSpecManager(kernel_dirs=[])

    async def _async_launch_kernel(self, kernel_cmd: list[str], **options: object) -> None:
        """jupyter_client's hook: start the waiting fork, or a new process if there is none. The kernel logs errors only:
        otherwise it warns each time that its sockets on this machine are not encrypted."""
        kernel_cmd = [*kernel_cmd, "--IPKernelApp.log_level=ERROR"]
        fork, OwnKernelManager.forked = self.forked, None
        if fork is None:
            return await super()._async_launch_kernel(kernel_cmd, **options)
        fork.start(kernel_cmd, options)
        self.provisioner.process, self.provisioner.pid, self.provisioner.pgid = fork, fork.pid, fork.pid


class ForkedKernel:
    """A fork that becomes a Jupyter kernel; to ``jupyter_client`` it looks like a ``subprocess.Popen``.

    It is forked before this process has threads and sockets, and waits until the kernel's command is known.
    """

    stdin = stdout = stderr = None

    def __init__(self, events: IO):
        self.returncode = None
        waiting, self._command = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid:
            os.close(waiting)
            return
        os.close(self._command)
        events.close()
        os.setsid()  # signals to the kernel's group must not reach the process that watches it
        with open(waiting) as stream:
            line = stream.readline()
        if line:
            _become_kernel(json.loads(line) | {"parent": parent})
        sys.exit()

    def start(self, command: list[str], options: dict) -> None:
        """``command`` and ``options`` as ``subprocess.Popen`` would get them."""
        arguments = command[command.index("ipykernel_launcher") + 1 :]
        launch = {
            "argv": arguments,
            "env": dict(options.get("env") or os.environ),
            "cwd": options.get("cwd") or os.getcwd(),
        }
        with open(self._command, "w") as stream:
            stream.write(json.dumps(launch) + "\n")

    def poll(self, options: int = os.WNOHANG) -> int | None:
        if self.returncode is None and (ended := os.waitpid(self.pid, options))[0]:
            self.returncode = os.waitstatus_to_exitcode(ended[1])
        return self.returncode

    def wait(self) -> int:
        return self.poll(0)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def _become_kernel(launch: dict) -> None:
    """Run a Jupyter kernel in this process until it is told to stop, as ``python -m ipykernel_launcher`` would."""
    os.environ.clear()
    os.environ.update(launch["env"])
    os.chdir(launch["cwd"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parent = f"--IPKernelApp.parent_handle={launch['parent']}"  # the kernel ends with that process
    ipykernel.kernelapp.launch_new_instance([*launch["argv"], parent])


def main() -> None:
    events = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # other output to stdout, also that of the kernel, must not mix with events

    def send(**event: object) -> None:
        print(json.dumps(event), file=events)

    while line := sys.stdin.readline():
        job = json.loads(line)
        if not FORKS:
            return _run(job, send)
        _import_shared(job["source"])
        child = os.fork()
        if not child:
            OwnKernelManager.forked = ForkedKernel(events)
            return _run(job, send)
        send(code=os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def _run(job: dict, send: Callable) -> None:
    threading.Thread(target=_end_with_runner, daemon=True).start()
    send(error=execute(job["source"], job["target"], job["parameters"], send))


def _import_shared(source: str) -> None:
    """Before the first notebook that loads models, import ``SHARED``. A failing import is reported by the notebook."""
    if re.search(r"from probelib import .*\blm\b", Path(source).read_text(encoding="utf-8", errors="ignore")):
        os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")  # as kernels have it
        for name in SHARED:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        gc.freeze()  # the garbage collectors of the forks skip these objects


def execute(source: str, target: str, parameters: dict, send: Callable) -> str | None:
    """Execute ``source`` with ``parameters`` into ``target``; return None, or the failure in one line."""
    count = 0

    def on_cell(**_: object) -> None:
        nonlocal count
        count += 1
        send(cell=count, text="")

    def on_stderr(text: str) -> None:  # a progress bar redraws itself after "\r"
        lines = text.replace("\r", "\n").split("\n")
        send(text=next((line.strip() for line in reversed(lines) if line.strip()), "")[:200])

    for attempt in (1, 2):
        try:
            notebook = papermill.execute_notebook(
                _literal(source),
                _literal(target),
                parameters,
                kernel_name="python3",
                language="python",
                cwd=os.path.dirname(source),
                progress_bar=False,
                start_timeout=120,
                # the rest goes through to nbclient
                kernel_manager_class=OwnKernelManager,
                coalesce_streams=True,
                on_cell_execute=on_cell,
                stderr_file=SimpleNamespace(write=on_stderr, flush=lambda: None),
            )
            return _skipped_cell(notebook)
        except papermill.PapermillExecutionError as error:
            said = " ".join(str(error.evalue).split())[:500]
            return f"cell {count}: {error.ename}: {said}{hint(error.ename, said)}"
        except DeadKernelError:
            return f"cell {count}: kernel killed; {OUT_OF_MEMORY}{limits()}"
        except OSError as error:
            return f"cannot write {error.filename or target}: {error.strerror or error}"
        except RuntimeError as error:
            if count or attempt == 2:  # a kernel that did not start gets a second chance: its port may be taken
                return f"the kernel did not start: {error}{limits()}"


def hint(kind: str, said: str) -> str:
    """Advice on a notebook's error for lack of memory or of open files; "" for any other error."""
    if kind in ("OutOfMemoryError", "MemoryError") or re.search(NO_MEMORY, said):
        return f" ({OUT_OF_MEMORY}){limits()}"
    return limits() if not said.strip(";") or "Too many open files" in said else ""


def limits() -> str:
    """The limits of the shell that a notebook may have reached; "" if there are none."""
    memory, opened = (resource.getrlimit(which)[0] for which in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE))
    found = [f"memory to {memory / 1e9:.2g} GB (ulimit -v)"] if memory != resource.RLIM_INFINITY else []
    found += [f"open files to {opened} (ulimit -n)"] if 0 <= opened < FEW_FILES else []
    return f"; this shell limits {' and '.join(found)}" if found else ""


def _skipped_cell(notebook: dict) -> str | None:
    """The first cell that never ran, as an error message; None if all ran. (papermill marks such cells as completed after
    sys.exit() or an interrupt; their execution counts show it.)"""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    for number, cell in enumerate(cells, 1):
        if cell.execution_count is None:
            return f"cell {number}: never ran, since the notebook stopped before it"


def _literal(path: str) -> str:
    """A path with doubled braces: papermill puts parameters into paths with str.format."""
    return path.replace("{", "{{").replace("}", "}}")


def _end_with_runner() -> None:
    while os.read(0, 1):
        pass
    for process in psutil.Process().children(recursive=True):
        process.kill()
    os._exit(1)


if __name__ == "__main__":
    main()
