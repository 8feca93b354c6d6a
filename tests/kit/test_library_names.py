"""Every dotted name of a library in the source exists: also those that only a GPU reaches."""

import ast
import pydoc
import re

from probelib.paths import PACKAGE

DOTTED = re.compile(r"(?:torch|np|pd|scipy|transformers)(?:\.\w+)+")


def missing(source: str) -> set[str]:
    """The dotted names of libraries that do not exist."""
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute))
    names = {name for name in map(ast.unparse, nodes) if DOTTED.fullmatch(name)}
    whole = {re.sub("^np", "numpy", re.sub("^pd", "pandas", name)) for name in names}
    return {name for name in whole if not exists(*name.rpartition("."))}


def exists(parent: str, _: str, name: str) -> bool:
    """Also of an attribute that is None, such as torch.version.cuda without a GPU."""
    return hasattr(pydoc.locate(parent), name) or pydoc.locate(f"{parent}.{name}") is not None


def test_every_dotted_name_of_a_library_exists():
    sources = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    assert missing(sources) == set()


def test_a_wrong_name_is_found():
    wrong = "torch.cuda.getdevice_name"
    assert missing(f"{wrong}(torch.cuda.get_device_name(torch.version.cuda))") == {wrong}
