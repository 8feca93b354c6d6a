"""The faults. Each disturbs a work in a folder, and says what was done; the plain run that follows is the judge."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psutil

from tests.campaign.works import Work, family, finish, gone, reasoned, said, start
from tests.conftest import ROOT

MOUNTS = os.geteuid() == 0 and shutil.which("mount") is not None


class Impossible(Exception):
    """The fault cannot be made on this machine."""


def kill(work: Work, out: Path, chance: random.Random, seconds: float, whole: Path) -> str:
    """kill -9 of the process that was started, at a random moment."""
    return _signal(work, out, chance, seconds, signal.SIGKILL, lambda members: members[0])


def kill_any(work: Work, out: Path, chance: random.Random, seconds: float, whole: Path) -> str:
    """kill -9 of the kernel, of the process that drives it, or of a worker: what happens when memory runs out."""
    return _signal(work, out, chance, seconds, signal.SIGKILL, lambda members: chance.choice(members[1:] or members))


def terminate(work: Work, out: Path, chance: random.Random, seconds: float, whole: Path) -> str:
    """SIGTERM, as a cluster sends it."""
    return _signal(work, out, chance, seconds, signal.SIGTERM, lambda members: members[0])


def _signal(work, out, chance, seconds, number, choose, **environment) -> str:
    for longest in (
        seconds,
        seconds / 2,
        seconds / 4,
        seconds / 8,
    ):  # on a busy machine the first run may have been slow
        process, moment = start(work, out, **environment), chance.uniform(0, longest)
        time.sleep(moment)
        members = family(process)
        if members and process.poll() is None:
            break
        process.wait()
        shutil.rmtree(out)
        out.mkdir()
    else:
        raise Impossible("it ended before it could be disturbed, four times")
    victim = choose(members)
    words = victim.cmdline() if victim.is_running() else []
    name = "the process" if victim.pid == process.pid else " ".join(words[1:4])[:60]
    victim.send_signal(number)
    gone(members, process)
    return f"{number.name} to {name} after {moment:.1f} s"


def full(work: Work, out: Path, chance: random.Random, seconds: float, whole: Path) -> str:
    """A disk that fills up: it holds a random share of what the work writes."""
    need = sum(file.stat().st_size for file in whole.rglob("*") if file.is_file())
    size = max(4096, int(chance.uniform(0.05, 0.9) * need))
    with _disk(out, f"size={size}"):
        code, last = finish(work, out, TMPDIR=str(out.parent))
        _refused(out, code, last)
        _mount("-o", "remount,size=1g", str(out))
        rest = out.with_name("rest")
        shutil.copytree(out, rest)
    shutil.copytree(rest, out, dirs_exist_ok=True)
    shutil.rmtree(rest)
    return f"a disk of {size} bytes: {last[-120:]}"


def read_only(work: Work, out: Path, chance: random.Random, seconds: float, whole: Path) -> str:
    """A folder that cannot be written."""
    with _disk(out, "size=64m"):
        _mount("-o", "remount,ro", str(out))
        code, last = finish(work, out)
        _refused(out, code, last)
    return f"read-only: {last[-120:]}"


def flip(work: Work, out: Path, chance: random.Random, seconds: float, whole: Path) -> str:
    """One bit of one file changed, of a random kind of those that a finished run leaves; the bit must not stay."""
    shutil.copytree(whole, out, dirs_exist_ok=True)
    kinds: dict[str, list[Path]] = {}
    for file in sorted(out.rglob("*")):
        if file.is_file() and file.stat().st_size and file.suffix not in ("", ".lock", ".log"):
            kinds.setdefault(f"{file.relative_to(out).parts[0]}/{_kind(file, out)}*{file.suffix}", []).append(file)
    kind = chance.choice(sorted(kinds))
    return flip_bit(chance.choice(kinds[kind]), chance, out)


def _kind(file: Path, out: Path) -> str:
    parts = file.relative_to(out).parts
    return parts[2] + "/" if parts[0] == "runs" and len(parts) > 3 else ""


def flip_bit(file: Path, chance: random.Random, out: Path) -> str:
    """Changes a bit in place, date and all else as it was."""
    content, before = bytearray(file.read_bytes()), file.stat()
    at = chance.randrange(len(content))
    content[at] ^= 1 << chance.randrange(8)
    file.write_bytes(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    out.with_name(f"{out.name}.flipped").write_bytes(bytes(content))
    return f"bit {at} of {file.relative_to(out)}"


def unfinished_flip(work: Work, out: Path, chance: random.Random, seconds: float, whole: Path) -> str:
    """A kill, and then a changed bit in something that it left."""
    told = kill(work, out, chance, seconds, whole)
    left = [file for file in sorted(out.rglob("*")) if file.is_file() and file.stat().st_size and file.suffix != ".log"]
    return f"{told}, {flip_bit(chance.choice(left), chance, out)}" if left else told


def twice(work: Work, out: Path, chance: random.Random, seconds: float, whole: Path) -> str:
    """Two runs at once on one store: one works, the other refuses or waits."""
    first = start(work, out)
    time.sleep(moment := chance.uniform(0, seconds / 2))
    second = start(work, out)
    codes = sorted([first.wait(), second.wait()])
    assert codes[0] == 0, f"neither ended well: {codes}, {said(out)[-1:]}"
    return f"the second after {moment:.1f} s, exit codes {codes}"


def memory(work: Work, out: Path, chance: random.Random, seconds: float, whole: Path) -> str:
    """No more memory from a random moment on (what ``ulimit -v`` does): it ends with a reason, or needed no more."""
    process, moment = start(work, out), chance.uniform(0, seconds / 3)
    time.sleep(moment)
    spare, members = int(chance.choice([0, 1e6, 16e6]) * chance.random()), family(process)
    for member in members:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.rlimit(psutil.RLIMIT_AS, (limit := member.memory_info().vms + spare, limit))
    return f"{spare / 1e6:.0f} MB left after {moment:.1f} s: {_ended(process, members, out)}"


def cgroup(work: Work, out: Path, chance: random.Random, seconds: float, whole: Path) -> str:
    """A container with too little memory from a random moment on: the system kills what takes too much (needs root)."""
    first = Path("/sys/fs/cgroup/memory")
    group = (first if first.exists() else first.parent) / f"campaign-{os.getpid()}"
    process, moment = start(work, out), chance.uniform(0, seconds / 2)
    spare = int(10 ** chance.uniform(5, 7.5))
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if first.exists() else "memory.max")).write_text(str(spare))
        time.sleep(moment)
        members = family(process)
        for member in members:
            with contextlib.suppress(ProcessLookupError):
                (group / "cgroup.procs").write_text(str(member.pid))
        return f"{spare / 1e6:.1f} MB more in a container after {moment:.1f} s: {_ended(process, members, out)}"
    except OSError as error:
        process.wait()
        raise Impossible(f"cgroup: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            group.rmdir()


def _ended(process, members: list[psutil.Process], out: Path) -> str:
    """How a work ended that lacked memory: within a minute or two, killed by the system, well, or with a reason."""
    until = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    hung = process.poll() is None
    for member in members:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    code = process.wait()
    assert not hung, f"no end within two minutes: {said(out)[-1:]}"
    assert code in (0, -signal.SIGKILL) or reasoned(out), f"no reason: {said(out)[-1:]}"
    return f"exit code {code}" + (f", {said(out)[-1][-90:]}" if code > 0 else "")


CLOCK = """
import random, time
_real, _start, _chance = time.time, time.time(), random.Random({seed})
def jumping():
    return _real() + _chance.choice([0, 0, -86400 * 400, 86400 * 400, 3600, -3600])
time.time = jumping
"""


def clock(work: Work, out: Path, chance: random.Random, seconds: float, whole: Path) -> str:
    """A clock that jumps by an hour or a year, back and forth, in all Python processes, until a kill; then the times of all
    files are set by up to a year into the past or the future."""
    site = out.with_name("site")
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(CLOCK.format(seed=chance.randrange(1000)))
    told = _signal(
        work, out, chance, seconds, signal.SIGKILL, lambda members: members[0], PYTHONPATH=f"{site}{os.pathsep}{ROOT}"
    )
    for file in sorted(out.rglob("*")):
        os.utime(file, (then := time.time() + chance.uniform(-1, 1) * 86400 * 365, then))
    return f"a jumping clock, {told}, files with other times"


def _refused(out: Path, code: int, last: str) -> None:
    assert code, "it ended well on a disk that cannot hold its products"
    assert reasoned(out), f"a traceback, not a reason: {last}"


class _disk:
    """A small disk in memory at a folder, as long as the block lasts."""

    def __init__(self, at: Path, option: str):
        self.at, self.option = at, option

    def __enter__(self):
        if not MOUNTS:
            raise Impossible("mounting a small disk needs root")
        self.at.mkdir(exist_ok=True)
        _mount("-t", "tmpfs", "-o", self.option, "none", str(self.at))

    def __exit__(self, *_):
        subprocess.run(["umount", str(self.at)], check=False)


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise Impossible(f"mount: {done.stderr.strip()}")


FAULTS = {
    "kill": kill,
    "kill_any": kill_any,
    "terminate": terminate,
    "full": full,
    "read_only": read_only,
    "flip": flip,
    "unfinished_flip": unfinished_flip,
    "twice": twice,
    "clock": clock,
    "memory": memory,
    "cgroup": cgroup,
}
