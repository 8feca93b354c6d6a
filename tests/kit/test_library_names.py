"""Every dotted name of a library in the source exists: also those that only a GPU reaches."""

import ast
import importlib

import numpy
import pandas
import scipy
import torch
import transformers

from probelib.paths import PACKAGE

LIBRARIES = {"torch": torch, "np": numpy, "pd": pandas, "scipy": scipy}
LIBRARIES["transformers"] = transformers


def chains(source: str) -> set[tuple[int, tuple[str, ...]]]:
    """(line, names) of every dotted chain, such as ("torch", "cuda", "is_available")."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        names, line = [], getattr(node, "lineno", 0)
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if names and isinstance(node, ast.Name):
            found.add((line, (node.id, *names[::-1])))
    return found


def missing(names: tuple[str, ...]) -> bool:
    """Whether a library has no such name, as an attribute or a module."""
    thing = LIBRARIES[names[0]]
    for name in names[1:]:
        try:
            part = getattr(thing, name, None)
            thing = part or importlib.import_module(f"{thing.__name__}.{name}")
        except (ImportError, AttributeError):
            return not hasattr(thing, name)  # a constant such as 0 ends a chain
    return False


def test_every_dotted_name_of_a_library_exists():
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for line, names in sorted(chains(path.read_text(encoding="utf-8"))):
            if names[0] in LIBRARIES and missing(names):
                wrong.append(f"{path.relative_to(PACKAGE)}:{line}: {'.'.join(names)}")
    assert wrong == []


def test_a_wrong_name_is_found():
    (found,) = (names for _, names in chains("torch.cuda.getdevice_name(0)") if len(names) > 2)
    assert missing(found) and not missing(("torch", "cuda", "get_device_name"))
