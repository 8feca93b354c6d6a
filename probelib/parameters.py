"""The parameters cell of a notebook: what it declares, and which values it takes.

The cell is tagged ``parameters`` and holds one ``name = literal`` a line. The type is the default's, or what an
annotation or the head of the comment says: ``n_facts = "panel"  # int or str: how many``. A default of None about which
nothing is said takes anything.
"""

import ast
import io
import json
import re
import tokenize
from pathlib import Path

from probelib.errors import ProbeError

TYPES = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict, "None": type(None)}


def declared(path: Path) -> dict[str, set[type]]:
    """The parameters of the notebook, with the types each allows (an empty set: any). ProbeError if they cannot be read.

    The cell is parsed as Python: papermill.inspect_notebook goes line by line, and silently loses a parameter whose line
    holds a second "=" (in a text, in the comment) or an annotation with "|".
    """
    source = _cell(path)
    try:
        lines = ast.parse(source).body
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        comments = {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}
    except SyntaxError as error:
        raise ProbeError(f"{path}, parameters cell, line {error.lineno}: {error.msg}.") from None
    except (
        ValueError,
        RecursionError,
        MemoryError,
    ) as error:  # half a surrogate pair, a zero byte, nesting without end
        raise ProbeError(f"{path}, parameters cell: not Python that can be read ({error}).") from None
    found = {}
    for line in lines:
        try:
            target = line.target if isinstance(line, ast.AnnAssign) else line.targets[0]
            annotation = ast.unparse(line.annotation) if isinstance(line, ast.AnnAssign) else ""
            comment = comments.get(line.end_lineno, "").split(":")[0]
            found[target.id] = _types(ast.literal_eval(line.value), f"{annotation} {comment}")
        except (AttributeError, ValueError, TypeError):
            raise ProbeError(
                f"{path}, parameters cell: {ast.unparse(line)!r} is not `name = literal`; what is computed "
                "from parameters belongs in the next cell, which runs after they were set."
            ) from None
    return found


def defaults(path: Path) -> dict[str, object]:
    """The values that the parameters cell itself gives; ``declared`` says whether it can be read."""
    lines = ast.parse(_cell(path)).body
    targets = [line.target if isinstance(line, ast.AnnAssign) else line.targets[0] for line in lines]
    return {target.id: ast.literal_eval(line.value) for target, line in zip(targets, lines, strict=True)}


def check(value: object, allowed: set[type], where: str) -> None:
    """ProbeError if a parameter that allows these types cannot be set to ``value``; an int passes for a float."""
    allowed = allowed or set(TYPES.values())
    if type(value) not in allowed and not (type(value) is int and float in allowed):
        names = " or ".join(sorted(name for name, kind in TYPES.items() if kind in allowed))
        more = f" A list is written [{value}]." if list in allowed and type(value) in (str, int, float) else ""
        raise ProbeError(f"{where}: {value!r} is of type {type(value).__name__}, the notebook takes {names}.{more}")


def _cell(path: Path) -> str:
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
        sources = ["".join(cell["source"]) for cell in tagged]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ProbeError(f"{path} is not a notebook (JSON with cells).") from None
    if len(sources) != 1:
        raise ProbeError(f"{path} has {len(sources)} cells tagged `parameters`; it needs exactly one.")
    return sources[0]


def _types(default: object, hint: str) -> set[type]:
    """The default's type and those that the hint names (``int or str``, ``list[str]``); none if all is None."""
    hint = re.sub(r"\[.*\]|\bof \w+", "", hint)  # the items of a list are not checked
    named = {TYPES[word] for word in re.findall(r"\w+", hint) if word in TYPES}
    return {type(default), *named} if named - {type(None)} or default is not None else set()
