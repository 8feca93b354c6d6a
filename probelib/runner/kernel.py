"""A notebook, executed by papermill in a thread; its cells run in a kernel, a process of its own.

On Linux without a GPU, kernels of this machine are forks of one process that has imported
``LIBRARIES``: each saves eight seconds of a core. Elsewhere each kernel imports them."""

import asyncio
import contextlib
import logging
import multiprocessing.resource_tracker
import os
import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from subprocess import DEVNULL
from types import SimpleNamespace
from typing import Any

import nbformat
import papermill
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelspec import make_ipkernel_cmd
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner
from nbclient.exceptions import DeadKernelError

from probelib import files
from probelib.lm.internals.memory import NO_MEMORY

LIBRARIES = ["transformers.models.auto.modeling_auto", "transformers.models.llama.modeling_llama"]
LIBRARIES += ["ipykernel.kernelapp", "papermill", "scipy.stats", "seaborn"]
logging.getLogger("papermill").setLevel(logging.CRITICAL)  # ``execute`` says why it failed
OUT_OF_MEMORY = "most likely out of memory: fewer --jobs, a smaller batch or --quantize"


class OwnKernelManager(AsyncKernelManager):
    """Starts kernels with the running python, not the "python3" of the user's Jupyter folders. Not
    by ``ipykernel_launcher``, which drops the working directory from PYTHONPATH: it may be this
    checkout. Quiet: else each kernel warns that its sockets here are not encrypted."""

    environment, fork, state = dict[str, str](), False, dict[str, Any]()  # see ``execute``
    argv = make_ipkernel_cmd("ipykernel", extra_arguments=["--IPKernelApp.log_level=CRITICAL"])
    kernel_spec = KernelSpec(argv=argv)

    def __init__(self, **options: Any):
        super().__init__(**options)
        self.provisioner = _Starter(kernel_id="", kernel_spec=self.kernel_spec, parent=self)


class _Starter(LocalProvisioner):
    async def launch_kernel(self, cmd: list[str], **how: Any) -> Any:
        manager: Any = self.parent
        how["env"] |= manager.environment
        if not manager.fork:
            await super().launch_kernel(cmd, **how, stdout=DEVNULL, stderr=DEVNULL)
        else:
            multiprocessing.resource_tracker.ensure_running()  # it unblocks the signal
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C is for the runner
            multiprocessing.set_forkserver_preload(LIBRARIES)
            fork: Any = _Fork(target=_live, args=(cmd, how["env"], os.getcwd()))
            fork.start()
            self.process, self.pid, self.pgid = fork, fork.pid, fork.pid
        manager.state["pid"] = self.pid
        return self.connection_info


class _Fork(ForkServerProcess):
    """A fork with the names of a ``subprocess.Popen``."""

    stdin = stdout = stderr = None
    poll, wait = (lambda self: self.exitcode), ForkServerProcess.join
    send_signal = lambda self, number: None  # asked for when its group is gone


def _live(command: list[str], environment: dict, cwd: str) -> None:
    """The life of a fork: the kernel of ``command``, which writes nothing to a terminal."""
    os.setsid()
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    runner: Any = multiprocessing.parent_process()
    end = lambda: os.killpg(runner.join() or 0, signal.SIGKILL)  # all of it, with the runner
    threading.Thread(target=end, daemon=True).start()
    os.environ.update(environment)
    os.chdir(cwd)
    multiprocessing.set_start_method(None, force=True)  # the default again
    IPKernelApp.launch_instance(command[command.index("ipykernel") + 1 :])


async def execute(environment: dict, fork: bool, job: dict, state: dict) -> str | None:
    """Execute a notebook, in a kernel that is a fork or not; return None, or the failure in a line.
    ``job``: ``source`` and ``target`` (paths), ``parameters``, ``cwd``. ``state`` is kept up to
    date: ``cell`` (number of the one that runs, 0 at first), its progress ``bar``, ``notebook``,
    ``pid`` (of the kernel) and, on Linux, its peak memory in ``gigabytes``."""
    own = {"environment": environment, "fork": fork, "state": state}
    run = lambda: _execute(type("StepKernelManager", (OwnKernelManager,), own), state, **job)
    # not ``to_thread``: it copies a context in which nbclient may have left another loop
    work = asyncio.get_running_loop().run_in_executor(ThreadPoolExecutor(1), run)
    try:
        return await asyncio.shield(work)
    finally:  # a thread cannot be stopped: it ends when its kernel has
        while not work.done():  # also if there is no kernel yet, or another signal comes
            with contextlib.suppress(ProcessLookupError, KeyError, asyncio.CancelledError):
                await asyncio.wait([work], timeout=0.1)
                os.killpg(state["pid"], signal.SIGKILL)


def _execute(manager: type, state: dict, source: str, target: str, parameters: dict, cwd: str):
    def on_words(text: str) -> None:
        if bars := re.findall(r"[^\r\n]+\d<[^\r\n]*\]", text):
            state["bar"] = bars[-1]

    def after_cell(**_: object) -> None:
        about = Path(f"/proc/{state['pid']}/status")
        if about.exists() and (peak := re.search(r"VmHWM:\s+(\d+) kB", about.read_text())):
            state["gigabytes"] = int(peak[1]) / 1e6

    how: dict[str, Any] = {"kernel_name": "python3", "language": "python", "cwd": cwd}
    how |= {"progress_bar": False, "start_timeout": 120, "request_save_on_cell_execute": False}
    how |= {"on_cell_execute": lambda **_: state.update(cell=state["cell"] + 1, bar="")}
    how |= {"on_cell_executed": after_cell, "on_notebook_start": state.update}
    how |= {"kernel_manager_class": manager, "coalesce_streams": True}  # for nbclient
    how |= {"stderr_file": SimpleNamespace(write=on_words, flush=lambda: None)}
    path = target.replace("{", "{{").replace("}", "}}")  # papermill calls str.format
    try:
        notebook = papermill.execute_notebook(files.read_notebook(source), path, parameters, **how)
    except papermill.PapermillExecutionError as error:
        said = f"{error.ename}: {' '.join(str(error.evalue).split())[:500]}"
        if re.search(rf"^(OutOf)?MemoryError|{NO_MEMORY}", said):
            said += f" ({OUT_OF_MEMORY})"
        return f"cell {state['cell']}: {said}"
    except Exception as error:  # then papermill does not save the notebook
        if "notebook" in state:  # its kernel did start
            nbformat.write(state["notebook"], target)
        killed = f"kernel killed; {OUT_OF_MEMORY}"
        said = killed if isinstance(error, DeadKernelError) else repr(error)
        return f"cell {state['cell']}: {said}"
    # papermill marks cells after sys.exit() or an interrupt as completed
    code = [c for c in notebook.cells if c.cell_type == "code" and c.source.strip()]
    ran = sum(cell.execution_count is not None for cell in code)
    return f"cell {ran + 1}: never ran" if ran < len(code) else None
