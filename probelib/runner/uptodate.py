"""Which steps are up to date: those whose inputs and products are unchanged.

runs/<profile>/done/<notebook>.json, written last, holds what ``inputs`` and ``products`` say, the
keys of the needed steps, and the seconds."""

import contextlib
import glob
import json
import os
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

import filelock

from probelib import files, paths
from probelib.errors import ProbeError
from probelib.lm.names import is_id, split_revision, split_variant
from probelib.lm.version import LIBRARIES as SCORING_LIBRARIES
from probelib.runner.plan import Step

LIBRARIES = (*SCORING_LIBRARIES, "numpy", "scipy", "pandas", "scikit-learn", "matplotlib")
# parameters whose values are names for ``lm.load``
MODELS = ["models", "seeds", "tuned", "encoder_decoders", "masked"]
MODELS += ["model_name", "studied", "judge"]
SUFFIXES = (".csv", ".claims.csv", ".json", ".html", ".tex", ".png", ".pdf")
# in this process: why Hugging Face is not asked again; state of a file -> its digest
_offline: list[str] = []
_digests: dict[tuple, str] = {}


def inputs(steps: Iterable[Step], settings: dict[str, dict]) -> dict[str, dict]:
    """Notebook -> everything that changes its products, except the notebooks that it needs."""
    versions, found = {name: version(name) for name in LIBRARIES}, {}
    kept = lambda f: f.is_file() and f.suffix != ".md" and "__pycache__" not in f.parts
    own = filter(kept, sorted(paths.PACKAGE.rglob("*")))
    library = {str(file.relative_to(paths.PACKAGE)): _sha256(file) for file in own}
    everywhere = {"versions": versions, "library": library}
    for step in steps:
        cells = json.loads(step.path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        values = settings[step.notebook]
        about = {"parameters": values, "files": outside(values)}
        found[step.notebook] = about | {"notebook": {"code": _digest(code)}} | everywhere
    return found


def outside(values: dict) -> dict[str, str]:
    """What the values name, as ``lm.load`` and ``facts.load`` read them, with its digest: files
    and folders by their contents, Hugging Face ids by their commit."""
    found: dict[str, str] = {}
    todo = [(value, name in MODELS) for name, value in values.items()]
    while todo:
        value, is_model = todo.pop()
        if not isinstance(value, str):
            held = value.values() if isinstance(value, dict) else value
            todo += [(each, is_model) for each in held] if isinstance(held, Iterable) else []
            continue
        for name in named(value) - found.keys():
            path = Path(os.path.expanduser(name))
            if os.path.exists(path):  # also of a text that is too long for a path
                found[name] = _digest([(str(file), _sha256(file)) for file in inside(path)])
                todo += [(base, True) for base in _bases(path)]
            elif is_model and (commit := _commit(name)):
                found[name] = commit
    return found


def named(text: str) -> set[str]:
    """What a text may name: both sides of every "=", the tokenizer behind the # of an address,
    data before "?", without a variant, and each unchanged."""
    parts = text.split("=")
    cuts = [(i, j) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1)]
    found = {"=".join(parts[i:j]) for i, j in cuts}
    found |= {name.partition("#")[2] for name in found} | {name.split("?")[0] for name in found}
    return (found | {split_variant(name)[0] for name in found}) - {""}


def inside(path: Path) -> list[Path]:
    """A file (with the templates of a table), or all files in a folder that no run writes."""
    below = glob.glob(f"{glob.escape(str(path))}/**", recursive=True)
    there = map(Path, below) if path.is_dir() else [path, files.templates_path(path)]
    made = {paths.RUNS, paths.FIGURES}
    return [each for each in sorted(there) if each.is_file() and not made & {*each.parents}]


def _bases(path: Path) -> list[str]:
    """The base model that an adapter's folder names: unchanged, and beside the adapter."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        adapter = json.loads((path / "adapter_config.json").read_text(encoding="utf-8"))
        base = str(adapter["base_model_name_or_path"])
        return [base, *map(str, (Path(base).absolute(), path / base, path.parent / base))]
    return []


@cache
def _commit(name: str) -> str | None:
    """The commit of a model on Hugging Face, or in its cache if nobody answers."""
    from huggingface_hub import HfApi, constants, errors

    if not is_id(name):
        return None
    name, revision, _ = split_revision(name)
    if not _offline and not constants.HF_HUB_OFFLINE:
        try:
            return HfApi().repo_info(name, revision=revision, timeout=5).sha
        except errors.HfHubHTTPError:  # there is no such id, or it is gated
            pass
        except Exception as error:  # no network: whatever the HTTP library raises
            _offline.append(str(error))
    cached = Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "refs"
    with contextlib.suppress(OSError):
        return (cached / (revision or "main")).read_text()
    return None


def _sha256(file: Path) -> str:
    """Digest of a file, which is read again in this process if its state changed."""
    stat = file.stat()
    state = (file, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    if state not in _digests:
        _digests[state] = files.sha256(file)
    return _digests[state]


def why(profile: str, steps: list[Step], now: dict, force: set[str]) -> dict[str, str | None]:
    """Why each step has to run; None if it is up to date. ``steps`` come after their needs."""
    reasons: dict[str, str | None] = {}
    for step in steps:
        changes = _changes(profile, step, now[step.notebook], reasons)
        reasons[step.notebook] = "forced" if step.notebook in force else next(changes, None)
    return reasons


def _changes(profile: str, step: Step, now: dict, reasons: dict) -> Iterator[str]:
    """What changed since the step succeeded, or that it never did, in words."""
    then, made = read(profile, step.notebook), products(profile, step)
    if not then:
        failed = executed_path(profile, step.notebook, ".failed").exists()
        yield "failed last time" if failed else "never ran"
        return
    yield from changed_inputs(then, now)
    yield from (f"needs {need}, which runs" for need in step.needs if reasons[need])
    moved = _different(then["needs"], {need: _key(profile, need) for need in step.needs})
    yield from (f"needs {need}, which changed" for need in moved)
    if not executed_path(profile, step.notebook).exists():
        yield "product missing: executed notebook"
    # `missing`: an artifact that was added to the plan
    for name in [*_different(then["products"], made), *missing(profile, step)]:
        yield f"product {'changed' if name in made else 'missing'}: {name}"


def products(profile: str, step: Step) -> dict[str, str]:
    """Digest of every file of the step's artifacts, by path below figures/<profile>. Pages of
    notebooks, and a user's files in the same folder, are no products and are never deleted."""
    folder = paths.FIGURES / profile
    there = [folder / f"{artifact}{suffix}" for artifact in step.makes for suffix in SUFFIXES]
    return {str(file.relative_to(folder)): files.sha256(file) for file in there if file.exists()}


def missing(profile: str, step: Step) -> list[str]:
    """The artifacts that the step should have made and that have no file."""
    made = {file.split(".")[0] for file in products(profile, step)}
    return [name for name in step.makes if name not in made]


def write(profile: str, step: Step, now: dict, seconds: float) -> None:
    """Record that the step succeeded."""
    made = {"products": products(profile, step), "seconds": seconds}
    made["needs"] = {need: _key(profile, need) for need in step.needs}
    files.write_json(_file(profile, step.notebook), now | made, seal=True)


def executed_path(profile: str, notebook: str, suffix: str = "") -> Path:
    """Path of the executed notebook; ``suffix`` .failed or .partial: of one without success."""
    return paths.RUNS / profile / "notebooks" / f"{notebook}{suffix}.ipynb"


def clear(profile: str, step: Step) -> None:
    """Delete the step's marker, executed notebook, products and page, and what a kill left."""
    there = [executed_path(profile, step.notebook, suffix) for suffix in ("", ".partial")]
    made = [*products(profile, step), f"{step.notebook}.md"]
    there += [paths.FIGURES / profile / file for file in made]
    for file in (_file(profile, step.notebook), *there):
        file.unlink(missing_ok=True)


def lock(profile: str) -> filelock.AcquireReturnProxy:
    """Lock the profile; the lock ends with the process, even if it is killed."""
    file = paths.RUNS / profile / "lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        return filelock.FileLock(file).acquire(blocking=False)
    except filelock.Timeout:
        said = f"another run of profile {profile} is in progress ({file} is locked)"
        raise ProbeError(f"{said}; wait until it ends, or stop it.") from None


def changed_inputs(then: dict, now: dict) -> Iterator[str]:
    """What differs between two ``inputs`` of a step, in words."""
    for what, value in now.items():
        if moved := _different(then.get(what, {}), value):
            yield f"{what} changed: {', '.join(moved[:3])}"


def _different(old: dict, new: dict) -> list[str]:
    """The names whose values differ."""
    return [n for n in sorted({*old, *new}) if _digest(old.get(n)) != _digest(new.get(n))]


def read(profile: str, notebook: str) -> dict:
    """What ``write`` recorded; {} if the step never succeeded or the record was changed."""
    return files.read_sealed(_file(profile, notebook)) or {}


def _file(profile: str, notebook: str) -> Path:
    return paths.RUNS / profile / "done" / f"{notebook}.json"


def _key(profile: str, notebook: str) -> str:
    """A digest of a finished step with its products, for the records of steps that need it."""
    return _digest({k: v for k, v in read(profile, notebook).items() if k != "seconds"})


def _digest(value: object) -> str:
    return files.sha256(json.dumps(value, sort_keys=True).encode())
