"""Which steps are up to date: those whose inputs and products are unchanged.

runs/<profile>/done/<notebook>.json holds digests of the notebook's code cells and of the library files that they use, versions
of other libraries, the parameters, digests of the files that parameters name (the user's models and facts), the keys of the
needed steps, the digest of every product file, and the seconds. It is written last.
"""

import glob
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable
from importlib.metadata import version
from pathlib import Path

from probelib import files, paths
from probelib.lm.names import with_base
from probelib.lm.version import LIBRARIES as SCORING_LIBRARIES
from probelib.runner.plan import Step

LIBRARIES = (*SCORING_LIBRARIES, "numpy", "scipy", "pandas", "scikit-learn", "matplotlib")
SUFFIXES = (".csv", ".json", ".html", ".published.html", ".tex", ".png", ".pdf")  # of an artifact's files
READ_WHOLE = 50_000_000  # bytes
IMPORT = re.compile(r"^[ \t]*(?:from|import) (probelib[\w.]*)(?: import (\([^)]*\)|[^\n]*))?", re.M)
READ = re.compile(r'PACKAGE((?: / "[^"]+")+)')


def inputs(steps: list[Step], settings: dict[str, dict]) -> dict[str, dict]:
    """Notebook -> everything that changes its products, except the notebooks that it needs: code cells, library files that they
    use, versions of ``LIBRARIES``, parameters, files that parameters name."""
    digests, versions, found = digest_files(), libraries(), {}
    used = uses(list(digests))
    for step in steps:
        code = _code(step.path)
        found[step.notebook] = {
            "notebook": _digest(code),
            "library": {file: digests[file] for file in reached("\n".join(code), used)},
            "versions": versions,
            "parameters": settings[step.notebook],
            "outside": outside(settings[step.notebook].values()),
        }
    return found


def libraries() -> dict[str, str]:
    """Versions of the libraries that compute numbers."""
    return {name: version(name) for name in LIBRARIES}


def digest_files() -> dict[str, str]:
    """Digest of every file of the library, by its path below ``probelib``."""
    package = sorted(file for file in paths.PACKAGE.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return {file.relative_to(paths.PACKAGE).as_posix(): files.sha256(file) for file in package}


def uses(there: list[str]) -> dict[str, set[str]]:
    """Module -> the files among ``there`` (all files of the library) that it imports or reads, except itself."""
    modules = [file for file in there if file.endswith(".py")]
    return {file: _names((paths.PACKAGE / file).read_text(encoding="utf-8"), there, file) for file in modules}


def reached(code: str, used: dict[str, set[str]]) -> list[str]:
    """The files of the library that code imports or reads, directly or through others."""
    there = [*used, *{file for own in used.values() for file in own}]
    found, todo = set(), _names(code, sorted(set(there)), "")
    while todo:
        file = todo.pop()
        found.add(file)
        todo |= used.get(file, set()) - found
    return sorted(found)


def _names(code: str, there: list[str], own: str) -> set[str]:
    """The files among ``there`` that a piece of code names: imported modules with their parent packages, and files at
    PACKAGE / "a" / "b". Code that imports by computed names (``import_module``) may use every module of its folder."""
    found, known = set(), set(there)
    for base, names in IMPORT.findall(code):
        for name in re.findall(r"\w+", names.split("#")[0]) or [""]:
            path = f"{base}.{name}".strip(".").split(".")[1:]
            for depth in range(len(path) + 1):
                stem = "/".join(path[:depth])
                found |= {f"{stem}.py", f"{stem}/__init__.py".lstrip("/")}
    if own and "import_module(" in code:
        home = f"{Path(own).parent.as_posix()}/"
        found |= {file for file in there if file.startswith(home) and file.endswith(".py")}
    for place in READ.findall(code):
        stem = "/".join(re.findall(r'"([^"]+)"', place))
        found |= {file for file in there if file == stem or file.startswith(f"{stem}/")}
    return {file for file in found & known if not file.endswith(".md")} - {own}


def outside(values: Iterable) -> dict[str, str]:
    """Each file or folder that the values name by its absolute path (the user's models and facts) -> a digest of its files' names
    and contents. For files above ``READ_WHOLE`` bytes, size and time replace the content, because reading gigabytes takes
    minutes. The templates of a table of facts are included."""
    texts = [text for value in values for text in (value if isinstance(value, list) else [value])]
    named = {part for text in texts if isinstance(text, str) for part in (text, *with_base(text))}
    found = {}
    for path in sorted(name for name in named if os.path.isabs(name) and os.path.exists(name)):
        inside = glob.glob(f"{glob.escape(path)}/**", recursive=True)
        there = inside if os.path.isdir(path) else [path, str(files.templates_path(Path(path)))]
        found[path] = _digest([(file, _content(Path(file))) for file in sorted(there) if os.path.isfile(file)])
    return found


def _content(file: Path) -> str:
    stat = file.stat()
    return files.sha256(file) if stat.st_size <= READ_WHOLE else f"{stat.st_size} bytes, {stat.st_mtime_ns}"


def library() -> str:
    """Digest of all files of the library, and of the versions of ``LIBRARIES``."""
    return _digest([digest_files(), libraries()])


def why(profile: str, steps: list[Step], now: dict[str, dict], force: Collection[str]) -> dict[str, str | None]:
    """Why each step has to run; None if it is up to date. ``steps`` come after their needs."""
    reasons: dict[str, str | None] = {}
    for step in steps:
        then = _read(profile, step.notebook)
        runs = [need for need in step.needs if reasons[need]]
        if step.notebook in force:
            reason = "forced"
        elif then is None:
            failed = executed_path(profile, step.notebook, ".failed").exists()
            reason = "failed last time" if failed else "never ran"
        else:
            changed = [need for need in step.needs if then["needs"].get(need) != _key(profile, need)]
            reason = (
                _changed_input(then, now[step.notebook])
                or (f"needs {runs[0]}, which runs" if runs else None)
                or (f"needs {changed[0]}, which changed" if changed else None)
                or _changed_product(profile, step, then)
            )
        reasons[step.notebook] = reason
    return reasons


def products(profile: str, step: Step) -> dict[str, str]:
    """Digest of every file of the step's artifacts, by path below figures/<profile>. Pages of notebooks, and a user's files in
    the same folder, are not products and are never deleted."""
    folder = paths.FIGURES / profile
    return {
        str(file.relative_to(folder)): files.sha256(file)
        for artifact in step.makes
        for file in sorted(folder.glob(f"{artifact}.*"))
        if file.name.removeprefix(artifact.rsplit("/")[-1]) in SUFFIXES
    }


def missing(profile: str, step: Step) -> list[str]:
    """The artifacts that the step should have made and that have no file."""
    made = products(profile, step)
    return [artifact for artifact in step.makes if not any(file.startswith(f"{artifact}.") for file in made)]


def write(profile: str, step: Step, now: dict, seconds: float) -> None:
    """Record that the step succeeded."""
    needs = {need: _key(profile, need) for need in step.needs}
    made = {"products": products(profile, step), "executed": files.sha256(executed_path(profile, step.notebook))}
    told = {**now, "needs": needs, **made, "seconds": seconds}
    files.write_json(_file(profile, step.notebook), files.sealed(json.loads(json.dumps(told))))


def seconds(profile: str, notebook: str) -> float | None:
    """Seconds of the notebook's last successful run; None if unknown."""
    return (_read(profile, notebook) or {}).get("seconds")


def executed_path(profile: str, notebook: str, suffix: str = "") -> Path:
    """Path of the executed notebook; with ``suffix`` .failed or .partial, that of a run that did not succeed."""
    return paths.RUNS / profile / "notebooks" / f"{notebook}{suffix}.ipynb"


def reported(profile: str) -> bool:
    """Whether the report and its pages exist and are unchanged."""
    return bool(told := written(profile)) and told == _pages(profile)


def written(profile: str) -> dict[str, str]:
    """Checksums of the report and its pages when they were written; {} if unknown."""
    try:
        told = json.loads((paths.RUNS / profile / "report.json").read_text(encoding="utf-8"))
        return told if isinstance(told, dict) else {}
    except (OSError, ValueError):
        return {}


def write_report(profile: str) -> None:
    """Record that the report was written."""
    files.write_json(paths.RUNS / profile / "report.json", _pages(profile))


def _pages(profile: str) -> dict[str, str]:
    home = paths.RUNS / profile
    pages = [home / "report.html", *sorted((home / "html").rglob("*.html"))]
    return {str(page.relative_to(home)): files.sha256(page) for page in pages}


def clear(profile: str, step: Step) -> None:
    """Delete the step's marker, executed notebook and products, and the remains of a killed run."""
    for suffix in ("", ".partial"):
        executed_path(profile, step.notebook, suffix).unlink(missing_ok=True)
    _file(profile, step.notebook).unlink(missing_ok=True)
    for file in products(profile, step):
        (paths.FIGURES / profile / file).unlink(missing_ok=True)


def _changed_input(then: dict, now: dict) -> str | None:
    for what, key in (("parameters", "parameters"), ("files", "outside")):
        if changed := _different(then[key], now[key]):
            return f"{what} changed: {', '.join(changed)}"
    if then["notebook"] != now["notebook"]:
        return "notebook changed"
    old, new = then["versions"], now["versions"]
    if moved := [f"{name} {old.get(name, '?')} -> {new[name]}" for name in new if old.get(name) != new[name]]:
        return f"other versions: {', '.join(moved)}"
    moved = _different(then["library"], now["library"])
    more = f" and {len(moved) - 3} more" if len(moved) > 3 else ""
    return f"library changed: {', '.join(moved[:3])}{more}" if moved else None


def _different(old: dict, new: dict) -> list[str]:
    """The names whose values differ."""
    return [name for name in sorted({*old, *new}) if _digest(old.get(name)) != _digest(new.get(name))]


def _changed_product(profile: str, step: Step, then: dict) -> str | None:
    made = products(profile, step)
    if changed := _different(then["products"], made):
        return f"product {'changed' if changed[0] in made else 'missing'}: {changed[0]}"
    if lacking := missing(profile, step):  # an artifact that was added to the plan
        return f"product missing: {lacking[0]}"
    notebook = executed_path(profile, step.notebook)
    if not notebook.exists():
        return "executed notebook missing"
    return None if then.get("executed") == files.sha256(notebook) else "executed notebook changed"


def _file(profile: str, notebook: str) -> Path:
    return paths.RUNS / profile / "done" / f"{notebook}.json"


def _read(profile: str, notebook: str) -> dict | None:
    return files.read_sealed(_file(profile, notebook))


def _key(profile: str, notebook: str) -> str:
    """A digest of a finished step with its products, which the records of the steps that need it contain."""
    told = _read(profile, notebook) or {}
    return _digest({key: value for key, value in told.items() if key not in ("seconds", "executed", "digest")})


def _code(notebook: Path) -> list[str]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
