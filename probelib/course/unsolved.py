"""Run All continues after an exercise that is not solved yet: each cell that needs it prints one line instead of running.

An exercise is unsolved while its function ends in ``return ...``. IPython passes every cell to ``Unsolved`` before it runs it.
"""

import ast
import dis
from types import CodeType

from IPython import get_ipython


class Unsolved:
    """The exercises of a notebook that are still empty, and the names that wait for them; an AST transformer of IPython."""

    def __init__(self):
        self.exercises: list[str] = []  # in the order of the notebook
        self.waiting: dict[str, list[str]] = {}  # name that is not defined yet -> the exercises that it waits for

    def visit(self, cell: ast.Module) -> ast.Module:
        """The cell itself, or, if it needs an unsolved exercise, a cell that prints a message."""
        try:
            read, made = names(compile(cell, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
        except SyntaxError:  # IPython explains it
            return cell
        needed = {exercise for name in read for exercise in self.waiting.get(name, [])}
        missing = [exercise for exercise in self.exercises if exercise in needed]
        self._note(cell, made, missing)
        defines_only = all(isinstance(line, ast.FunctionDef | ast.Import | ast.ImportFrom) for line in cell.body)
        return cell if not missing or defines_only else ast.parse(f"print({message(missing)!r})")

    def _note(self, cell: ast.Module, made: set[str], missing: list[str]) -> None:
        """Note that the names that a cell defines or changes wait for ``missing``, and that its stubs are unsolved exercises."""
        stubs = [line.name for line in cell.body if isinstance(line, ast.FunctionDef) and _is_stub(line)]
        self.exercises = [name for name in self.exercises if name not in made] + stubs
        self.waiting = {name: waits for name, waits in self.waiting.items() if name not in made}
        changed = {
            node.value.id
            for node in ast.walk(cell)
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
        }
        if missing:
            self.waiting |= dict.fromkeys(made | changed, missing)
        self.waiting |= {name: [name] for name in stubs}


def names(code: CodeType, made: frozenset[str] = frozenset()) -> tuple[set[str], set[str]]:
    """(read, made): the global names that code reads before it defines them, and those that it defines.

    >>> names(compile("y = x + len([a for a in y])", "", "exec"))[1]
    {'y'}
    """
    read, made = set(), set(made)
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_NAME", "LOAD_GLOBAL") and step.argval not in made:
            read.add(step.argval)
        elif step.opname == "STORE_NAME":
            made.add(step.argval)
        elif isinstance(step.argval, CodeType):  # a function, a lambda, a comprehension
            read |= names(step.argval, frozenset(made))[0]
    return read, made


def message(exercises: list[str]) -> str:
    """The message of a cell in place of its result.

    >>> message(["root"])
    '✗ Not yet: root is still empty. Put your code in the place of `...`.'
    >>> message(["distance", "root", "monitor"])
    '✗ Not yet: distance, root and monitor are still empty.'
    """
    *others, last = exercises
    if others:
        return f"✗ Not yet: {', '.join(others)} and {last} are still empty."
    return f"✗ Not yet: {last} is still empty. Put your code in the place of `...`."


def watch() -> None:
    """Make IPython, if it runs, pass every cell to one ``Unsolved``."""
    shell = get_ipython()
    if shell and not any(isinstance(own, Unsolved) for own in shell.ast_transformers):
        shell.ast_transformers.append(Unsolved())


def _is_stub(function: ast.FunctionDef) -> bool:
    last = function.body[-1]
    return isinstance(last, ast.Return) and isinstance(last.value, ast.Constant) and last.value.value is ...
