"""The budget of the house: lines per room, and what its rules forbid. Every number here is only
ever lowered; a feature that needs lines names what it replaces. See CONTRIBUTING.md, "Taste"."""

import ast
from functools import cache

import pytest

from probelib.paths import PACKAGE, ROOT

pytestmark = pytest.mark.fast

ROOMS = {
    "": 1369,
    "beyond": 1958,
    "course": 1298,
    "distractors": 1548,
    "explore": 768,
    "facts": 1997,
    "grapheval": 1579,
    "integrations": 191,
    "lm": 3730,
    "monitor": 1379,
    "organisms": 1391,
    "published": 33,
    "report": 968,
    "runner": 1224,
    "zplke": 1329,
}
TESTS, BENCH = 12902, 1404
SENTENCES, ARGUMENTS, WIDE = 0, 7, 0
PAPERS = ("monitor", "zplke", "distractors", "grapheval", "beyond")


@cache
def lines_of(folder: str) -> dict[str, int]:
    """Room (a package of the folder; "" for its own modules) -> lines of Python."""
    found: dict[str, int] = {}
    for path in (ROOT / folder).rglob("*.py"):
        parts = path.relative_to(ROOT / folder).parts
        room = parts[0] if len(parts) > 1 else ""
        found[room] = found.get(room, 0) + path.read_text(encoding="utf-8").count("\n")
    return found


@cache
def functions(rooms: tuple[str, ...] = ("",)) -> list[tuple[str, ast.FunctionDef]]:
    """(place, function) of all functions of the library, or of some rooms."""
    paths = [path for room in rooms for path in (PACKAGE / room).rglob("*.py")]
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node)
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def test_no_room_grows():
    now = lines_of("probelib")
    assert set(now) == set(ROOMS), "a room without a budget, or a budget without a room"
    assert {room: n for room, n in now.items() if n > ROOMS[room]} == {}


def test_the_tests_do_not_grow():
    now = lines_of("tests")
    assert sum(now.values()) - now["bench"] <= TESTS
    assert now["bench"] <= BENCH


def test_no_sentence_is_built():
    """No function of a paper's room returns a text made by an f-string: captions and claims are
    static, numbers are tables."""
    built = [
        place
        for place, node in functions(PAPERS)
        if ast.unparse(node.returns or ast.Constant(None)) == "str"
        and any(isinstance(part, ast.JoinedStr) for part in ast.walk(node))
    ]
    assert len(built) <= SENTENCES, built


def test_at_most_six_arguments():
    named = lambda args: {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    many = [place for place, node in functions() if len(named(node.args) - {"self", "cls"}) > 6]
    assert len(many) <= ARGUMENTS, many


@pytest.mark.parametrize("folder", ["probelib", "tests"])
def test_lines_have_at_most_100_columns(folder):
    wide = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 100
    ]
    assert len(wide) <= WIDE, wide[:20]
