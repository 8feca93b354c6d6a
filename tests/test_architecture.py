"""The order of the packages (see the docstring of ``probelib``): which module may import which.

All imports are read from the source with ``ast``, those inside functions included, so a late import
cannot break the order unnoticed."""

import ast
import graphlib
from collections import defaultdict
from functools import cache
from typing import NamedTuple

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
# libraries that functions may import, and why
LATE = {
    "torch": "seconds of start-up time",
    "transformers": "seconds of start-up time",
    "tokenizers": "start-up time",
    "safetensors": "its submodule safetensors.torch imports torch",
    **dict.fromkeys(("bert_score", "captum"), "import torch"),
    "rouge_score": "seconds of start-up time (nltk)",
    "bitsandbytes": "imports torch; only for quantized models",
    "huggingface_hub": "start-up time",
    "matplotlib": "start-up time; only drawing needs it",
    "seaborn": "imports matplotlib",
    "scipy": "start-up time of its submodules",
    "sklearn": "start-up time",
    "IPython": "start-up time; only notebooks need it",
    "ipywidgets": "only notebooks need it",
    "nbformat": "start-up time",
    "nbconvert": "start-up time",
    "jinja2": "start-up time",
    "requests": "start-up time; only models behind servers need it",
    "urllib3": "comes with requests",
    "yaml": "`run_all.sh --help` works before anything is installed",
    "platform": "only for a message",
    **dict.fromkeys(("hashlib", "importlib", "sys"), "of a function that runs in another process"),
    "pandas": "most of a second; the command line lists and checks a plan without it",
    **dict.fromkeys(
        ("dask", "distributed", "gguf", "msgspec", "peft", "pyoxigraph"),
        "an extra, see pyproject.toml",
    ),
}


class Import(NamedTuple):
    module: str
    target: str  # a module of probelib, or a library
    late: bool  # inside a function


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
def imports() -> list[Import]:
    """All imports but those for type checkers only."""
    found = []

    def visit(module: str, node: ast.AST, late: bool) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import):
            found.extend(Import(module, name.name, late) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                below = f"{node.module}.{name.name}"
                found.append(Import(module, below if below in sources() else node.module, late))
        for child in ast.iter_child_nodes(node):
            visit(
                module,
                child,
                late or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)),
            )

    for module, tree in sources().items():
        visit(module, tree, late=False)
    return found


def own() -> list[Import]:
    return [each for each in imports() if each.target.split(".")[0] == "probelib"]


def package(module: str) -> str:
    """The name below ``probelib``; "" for ``probelib`` itself."""
    return (module.split(".") + [""])[1]


def purpose(module: str) -> str:
    """The name of a module directly in a package."""
    return module.split(".")[2] if module.count(".") == 2 else ""


def test_imports_follow_the_order_of_the_packages():
    wrong = {
        f"{module} -> {target}"
        for module, target, _ in own()
        if package(module) not in ("", package(target))
        and package(target)
        and package(target) not in ALLOWED[package(module)]
    }
    assert not wrong, f"imports against the order of the packages: {sorted(wrong)}"


def test_modules_of_a_paper_keep_to_their_purpose():
    """Measures are pure, artifacts never touch a model."""
    wrong = {
        f"{module} -> {target}"
        for module, target, _ in own()
        if package(module) in PAPERS and package(target) != package(module)
        if package(target) not in MODULES.get(purpose(module), {package(target)})
    }
    assert not wrong, f"imports that the module's purpose forbids: {sorted(wrong)}"


def test_no_cycles():
    """Of imports between modules, those in functions included. A package's __init__ counts only
    where it is imported itself."""
    edges = defaultdict(set)
    for module, target, _ in own():
        if module != target:
            edges[module].add(target)
    tuple(
        graphlib.TopologicalSorter(edges).static_order()
    )  # raises CycleError, which names the cycle


@cache
def loads(module: str) -> set[str]:
    """The libraries of ``LATE`` that importing a module loads."""
    found = set()
    for each in imports():
        if each.module == module and not each.late:
            found |= {each.target.split(".")[0]} & set(LATE)
            found |= (
                loads(each.target) if each.target in sources() and each.target != module else set()
            )
    return found


def test_functions_import_only_for_start_up_time():
    """What a function imports is a library of ``LATE``, or a module of the kit that loads one which
    the importing module does not load itself."""
    wrong = set()
    for module, target, late in imports():
        if not late:
            continue
        if target in sources():
            wrong |= set() if loads(target) - loads(module) else {f"{module} -> {target}"}
        else:
            wrong |= set() if target.split(".")[0] in LATE else {f"{module} -> {target}"}
    assert not wrong, f"imports inside functions without a reason: {sorted(wrong)}"


# verbs and short names that are called with their module: files.write, store.write
SHARED = set(
    [
        "main",
        "load",
        "read",
        "write",
        "check",
        "score",
        "generate",
        "search",
        "build",
        "train",
        "measure",
        "table",
        "choose",
        "digest",
        "find",
        "interval",
        "lists",
        "magnitude",
        "margin",
        "printed",
        "read_yaml",
        "statements",
        "Claim",
    ]
)


def test_public_names_are_unique():
    """Of functions and classes, so that a name has one definition. Exceptions: the papers'
    artifacts are named as in their papers."""
    places = defaultdict(set)
    for module, tree in sources().items():
        if module.endswith(".artifacts"):
            continue
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                places[node.name].add(module)
    twice = {name for name, modules in places.items() if len(modules) > 1 and name not in SHARED}
    assert not twice, f"names that several modules have: {sorted(twice)}"


def test_every_paper_has_the_same_files():
    wanted = [f"{paper}/{name}.py" for paper in PAPERS for name in ("__init__", *MODULES)]
    assert not [path for path in wanted if not (PACKAGE / path).is_file()], "files that are missing"
    for paper in (*PAPERS, "beyond"):
        for folder in (ROOT / "notebooks", ROOT / "tests"):
            assert (folder / paper).is_dir(), folder / paper
