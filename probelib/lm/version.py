"""What computes scores, as part of every store key; it needs no torch."""

import ast
import hashlib
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from probelib.errors import ProbeError

LIBRARIES = ("torch", "transformers", "tokenizers", "bitsandbytes")
# files of ``lm`` that compute nothing that a store holds; every other one, also a new one, counts
NO_SCORES = ("__init__.py", "memory.py", "names.py", "version.py", "gradients.py")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


# read again when a library's __init__.py was replaced (``state``): reading takes milliseconds
_version = cache(lambda name, state: version(name).split("+")[0])


def on_disk(folder: Path = Path(__file__).parent) -> tuple[dict[str, bytes], dict[str, str]]:
    """Name -> content of the files that compute scores; library -> its version."""
    paths = sorted((*folder.rglob("*.py"), *folder.rglob("*.yaml")))
    found = (path for path in paths if path.name not in NO_SCORES)
    sources = {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}
    origins = {name: vars(find_spec(name))["origin"] for name in LIBRARIES}
    return sources, {n: _version(n, Path(file).stat()[:7]) for n, file in origins.items()}


# as they are when this process imports the core: later changes on the disk are not what runs
AT_IMPORT, VERSIONS = on_disk()


@cache
def scoring() -> dict[str, str]:
    """``code``: digest of the core's source without comments, docstrings and layout; and the
    libraries' versions without their builds (2.7.0+cpu is 2.7.0)."""
    return {"code": _digest(AT_IMPORT)} | VERSIONS


def check_unchanged() -> None:
    """Raise ProbeError if the code or a library was exchanged on the disk since the import."""
    sources, versions = on_disk()
    changed = [f"{n} {VERSIONS[n]} -> {now}" for n, now in versions.items() if now != VERSIONS[n]]
    if sources != AT_IMPORT and _digest(sources) != scoring()["code"]:
        changed.append("the code of probelib.lm")
    if changed:
        said = "exchanged while this process runs; restart it (the kernel)"
        raise ProbeError(f"{', '.join(changed)}: {said}")


def _digest(sources: dict[str, bytes]) -> str:
    sha = hashlib.sha256()
    for name, content in sources.items():
        tree = ast.parse(content if name.endswith(".py") else repr(content))
        for node in ast.walk(tree):
            if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        sha.update(f"{name}\n{ast.unparse(tree)}\n".encode())
    return sha.hexdigest()[:16]
