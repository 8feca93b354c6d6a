"""The parameters cell of a notebook: what it declares, and which values it takes.

The cell is tagged ``parameters`` and holds one ``name = literal`` per line. An annotation says
which types it takes, as papermill shows it: ``n_facts: "int or str" = "panel"``; without one it
takes the default's type (None: any). Values that rarely change are in one dictionary, ``settings``:
``complete`` checks it against a paper's dataclass of defaults.
"""

import ast
import json
import math
import re
import typing
from collections.abc import Iterator
from pathlib import Path

from probelib.errors import ProbeError, unknown

TYPES = {"str": str, "int": int, "float": float, "bool": bool, "list": list, "dict": dict}
TYPES["None"] = type(None)
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$")  # of JSON
WORDS = {"null": None, "true": True, "false": False}


def parse_yaml(text: str, where: str = ""):
    """YAML in which only JSON's numbers, null, true and false are no texts: 010, 1:30, 0x10, 1_0,
    No and dates are texts. Raise ProbeError, which names ``where``, also for a duplicate key.

    >>> parse_yaml("{a: 10, b: 010, c: 1:30, d: No, e: [1e-3, null, 2020-01-01]}")
    {'a': 10, 'b': '010', 'c': '1:30', 'd': 'No', 'e': [0.001, None, '2020-01-01']}
    """
    import yaml

    class OwnSafeLoader(yaml.SafeLoader):
        yaml_implicit_resolvers = {"<": [("tag:yaml.org,2002:merge", re.compile("<<$"))]}
        merged = set()  # mappings whose << is resolved: they hold the keys of both, own ones last

        def flatten_mapping(self, node):  # called for every mapping, again for one that is merged
            if node in self.merged:
                return
            self.merged.add(node)
            keys = [key.value for key, _ in node.value]
            if twice := [key for i, (key, _) in enumerate(node.value) if key.value in keys[:i]]:
                problem = f"duplicate key {twice[0].value!r}; keep one"
                raise yaml.constructor.ConstructorError(None, None, problem, twice[0].start_mark)
            super().flatten_mapping(node)

    def scalar(loader, node):
        return node.value if node.style else from_text(node.value or "null")

    OwnSafeLoader.add_constructor("tag:yaml.org,2002:str", scalar)
    try:
        return yaml.load(text, Loader=OwnSafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise ProbeError(f"{where or repr(text)} is not YAML: {reason}") from None


def from_text(text: str, allowed: set[type] = frozenset()):
    """A value as typed on a command line: JSON's numbers and words, ``[...]`` and ``{...}`` as in
    ``parse_yaml``; all else is text, as is everything (but null) where only text is allowed.

    >>> from_text("10"), from_text("010"), from_text("1984", {str}), from_text("No", {bool})
    (10, '010', '1984', 'No')
    """
    none = type(None)
    if allowed and allowed <= {str, none}:
        return None if text == "null" and none in allowed else text
    if text in WORDS:
        return WORDS[text]
    if text[:1] in ("[", "{"):
        return parse_yaml(text)
    if NUMBER.match(text) and len(text) < 400 and math.isfinite(number := json.loads(text)):
        return number
    return text


def declared(path: Path) -> dict[str, set[type]]:
    """The parameters of a notebook with the types that each accepts (an empty set: any). Raise
    ProbeError if they cannot be read. The cell is parsed as Python: papermill.inspect_notebook
    silently loses a parameter whose line holds a second "=" or an annotation with "|"."""
    found = {}
    for name, annotation, value in _lines(path):
        words = re.findall(r"\w+", re.sub(r"\[.*?\]|\bof \w+", "", annotation))  # no types of items
        if wrong := [word for word in words if word not in (*TYPES, "or")]:
            raise unknown(f"type ({path}, parameters cell: {name})", wrong[0], TYPES)
        named = {TYPES[word] for word in words if word != "or"}
        found[name] = {type(value), *named} if named or value is not None else set()
    return found


def defaults(path: Path) -> dict[str, object]:
    """The default values in the parameters cell. Raise ProbeError if they cannot be read."""
    return {name: value for name, _, value in _lines(path)}


def _lines(path: Path) -> Iterator[tuple[str, str, object]]:
    """Name, annotation (or "") and default of every line of the parameters cell."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
        sources = ["".join(cell["source"]) for cell in tagged]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ProbeError(f"{path} is not a notebook (JSON with cells).") from None
    if len(sources) != 1:
        said = f"{path} has {len(sources)} cells tagged `parameters`; it needs exactly one."
        raise ProbeError(said)
    try:
        body = ast.parse(sources[0]).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ProbeError(f"{path}, parameters cell: not Python ({error}).") from None
    for line in body:
        try:
            typed = isinstance(line, ast.AnnAssign)
            name = (line.target if typed else line.targets[0]).id
            annotation = ast.unparse(line.annotation) if typed else ""
            yield name, annotation, ast.literal_eval(line.value)
        except (AttributeError, ValueError, TypeError):
            raise ProbeError(
                f"{path}, parameters cell: {ast.unparse(line)!r} is not `name = literal`; what is "
                "computed from parameters belongs in the next cell, which runs after they were set."
            ) from None


def check(value: object, allowed: set[type], where: str) -> None:
    """Raise ProbeError unless ``value`` is of an allowed type; an int counts as a float."""
    allowed = allowed or set(TYPES.values())
    if type(value) in allowed or (type(value) is int and float in allowed):
        return
    names = " or ".join(sorted(name for name, kind in TYPES.items() if kind in allowed))
    raise ProbeError(
        f"{where}: {value!r} is of type {type(value).__name__}, the notebook takes {names}. A list "
        f"is written [a, b]; {', '.join(WORDS)} in small letters, without quotes."
    )


def complete(kind: type, given: dict):
    """A paper's settings (``kind``, a dataclass of defaults) with the given values. Raise
    ProbeError for an unknown name or a wrong type."""
    hints, values = typing.get_type_hints(kind), {}
    for name, value in given.items():
        if name not in hints:
            raise unknown("setting", name, hints)
        value = list(value) if isinstance(value, tuple) else value
        items = typing.get_origin(hints[name]) is tuple
        allowed = {list} if items else set(typing.get_args(hints[name]) or (hints[name],))
        check(value, allowed, f"settings, {name}")
        values[name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)
