"""The order of the packages (see the docstring of ``probelib``): which module may import which.

All imports are read from the source with ``ast``, those inside functions included, so a late import
cannot break the order unnoticed."""

import ast
import graphlib
from collections import defaultdict
from functools import cache

import pytest

from probelib.paths import PACKAGE, ROOT

pytestmark = pytest.mark.fast

BASE = {"errors", "files", "paths", "parameters"}
PAPERS = {"monitor", "zplke", "distractors", "grapheval"}
PAPER = BASE | {"facts", "prompts", "lm", "store", "stats", "published", "report"}
EVERYTHING = PAPER | PAPERS | {"beyond", "organisms"}
# package or module of probelib -> those that its modules may import, besides each other
ALLOWED = {
    "errors": set(),
    "paths": set(),
    "files": {"errors"},
    "parameters": {"errors"},
    "facts": BASE,
    "prompts": BASE | {"facts"},
    "lm": BASE,  # knows neither facts nor papers
    "stats": {"errors"},
    "store": BASE | {"lm"},
    "published": BASE,
    "report": BASE | {"facts", "lm", "store", "stats", "published"},
    "organisms": BASE | {"facts", "prompts", "lm", "stats"},
    **dict.fromkeys(PAPERS, PAPER),  # papers never import each other
    "beyond": EVERYTHING,
    "runner": BASE | {"facts", "lm", "store", "report"},  # knows papers only through the plan
    "explore": EVERYTHING,
    "course": EVERYTHING | {"runner"},
    "integrations": EVERYTHING,  # nothing imports it
}
# modules of every paper's package -> what they may import from outside the package
MODULES = {
    "scores": BASE | {"facts", "prompts", "lm", "store"},
    "measures": {"errors", "files", "stats"},
    "artifacts": BASE | {"facts", "prompts", "lm", "stats", "published", "report"},
}


@cache
def sources() -> dict[str, ast.Module]:
    """All modules of the library by their dotted name."""
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in PACKAGE.rglob("*.py")
    }
    return {
        name.removesuffix(".__init__"): ast.parse(path.read_text()) for name, path in files.items()
    }


@cache
def imports() -> list[tuple[str, str]]:
    """(module, imported module of probelib), imports inside functions included; but not those for
    type checkers only."""
    found = []

    def visit(module: str, node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import):
            found.extend((module, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                below = f"{node.module}.{name.name}"
                found.append((module, below if below in sources() else node.module))
        for child in ast.iter_child_nodes(node):
            visit(module, child)

    for module, tree in sources().items():
        visit(module, tree)
    return [pair for pair in found if pair[1].split(".")[0] == "probelib"]


def package(module: str) -> str:
    """The name below ``probelib``; "" for ``probelib`` itself."""
    return (module.split(".") + [""])[1]


def purpose(module: str) -> str:
    """The name of a module directly in a package."""
    return module.split(".")[2] if module.count(".") == 2 else ""


def test_imports_follow_the_order_of_the_packages():
    wrong = {
        f"{module} -> {target}"
        for module, target in imports()
        if package(module) not in ("", package(target))
        and package(target)
        and package(target) not in ALLOWED[package(module)]
        and not module.endswith(".__main__")  # a command, which nothing imports
    }
    assert not wrong, f"imports against the order of the packages: {sorted(wrong)}"


def test_modules_of_a_paper_keep_to_their_purpose():
    """Measures are pure, artifacts never touch a model."""
    wrong = {
        f"{module} -> {target}"
        for module, target in imports()
        if package(module) in PAPERS and package(target) != package(module)
        if package(target) not in MODULES.get(purpose(module), {package(target)})
    }
    assert not wrong, f"imports that the module's purpose forbids: {sorted(wrong)}"


def test_no_cycles():
    """Of imports between modules, those in functions included. A package's __init__ counts only
    where it is imported itself."""
    edges = defaultdict(set)
    for module, target in imports():
        if module != target:
            edges[module].add(target)
    # raises CycleError, which names the cycle
    tuple(graphlib.TopologicalSorter(edges).static_order())
