"""How the course checks an answer: every right one passes; a wrong one gets one sentence on what is
wrong and where to look.

A ``Check`` calls the student's function on a few cases and compares the results with those of the
right function. Common mistakes are functions, too: an answer that agrees with one of them is
recognised. The cases and the messages are in ``exercises.yaml``.

    mean = Check("lab.mean", np.mean, [([1.0, 2.0, 6.0],)], median=np.median)
    mean(answer)          # prints "✓ answer is right." or raises NotYet
"""

import copy
import reprlib
import textwrap
import traceback
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from IPython import get_ipython

from probelib.errors import ProbeError
from probelib.parameters import parse_yaml

TOLERANCE = 1e-5  # relative and absolute: float32 passes, another formula fails
SHORT = 8  # most values that a message shows; of longer results it shows the first wrong value
EMPTY = "is still empty: put your code in the place of `raise NotImplementedError`"


class NotYet(ProbeError):
    """An answer that is not right yet. A notebook shows its message and no traceback."""

    def _render_traceback_(self) -> list[str]:
        return textwrap.wrap(f"✗ {self}", 100)


def say_what_is_missing(shell, kind, error, trace, tb_offset=None) -> None:
    """IPython's hook: one line for a cell that needs an empty exercise or its result."""
    frames = traceback.extract_tb(trace)[1:]
    if kind is NotImplementedError:
        print(f"✗ Not yet: {frames[-1].name} {EMPTY}.")
    elif frames and all(frame.name.startswith("<") for frame in frames):  # in the cell itself
        print(f"✗ Not yet: {error}; an exercise above is still empty, or a cell was not run.")
    else:
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)


if get_ipython():
    get_ipython().set_custom_exc((NotImplementedError, NameError), say_what_is_missing)


EXERCISES = parse_yaml((Path(__file__).parent / "exercises.yaml").read_text(encoding="utf-8"))


class Check:
    """The check of one exercise; calling it checks a student's function.

    name       "lab1.choose": the key of the exercise in ``exercises.yaml``
    right      the library's function, or the model solution
    cases      the arguments of each call, unless they stand there
    form       brings right answers of several forms into one
    mistakes   key of its explanation there -> the wrong function, or the options that make
               ``right`` wrong
    """

    def __init__(
        self, name: str, right: Callable, cases: Sequence[Sequence] = (), /, *,
        form: Callable = lambda value: value, **mistakes: Callable | dict,
    ):  # fmt: skip
        lab, exercise = name.split(".")
        self.hints = dict(EXERCISES[lab][exercise])
        array = lambda value: np.array(value) if isinstance(value, list) else value
        arrays = [tuple(map(array, case)) for case in self.hints.pop("arrays", [])]
        self.cases = cases or self.hints.pop("cases", arrays)
        self.tolerance = self.hints.pop("tolerance", TOLERANCE)
        of = lambda wrong: partial(right, **wrong) if isinstance(wrong, dict) else wrong
        self.right, self.form = right, form
        self.mistakes = {key: of(wrong) for key, wrong in mistakes.items()}

    def __call__(self, answer: Callable) -> None:
        """Print that the answer is right, or raise ``NotYet``."""
        if not callable(answer):
            raise NotYet(f"a function is expected here, not {shown(answer)}: pass it uncalled.")
        name = getattr(answer, "__name__", "your function")
        look = f"look at this: {self.hints['look']}"
        got = [call(answer, case, name, look) for case in self.cases]
        for case, problem in zip(self.cases, self._compared(got, self.right), strict=True):
            if problem:
                agree = (k for k, f in self.mistakes.items() if not any(self._compared(got, f)))
                why = self.hints.get(next(agree, None), look)
                raise NotYet(f"{name}({', '.join(map(shown, case))}) {problem}; {why}.")
        print(f"✓ {name} is right.")

    def _compared(self, got: list, function: Callable) -> list[str | None]:
        """For each case, how the result differs from that of ``function``, or None."""
        with np.errstate(all="ignore"):  # of a mistake such as log(0)
            wanted = [function(*copy.deepcopy(case)) for case in self.cases]
        pairs = zip(map(self.form, got), map(self.form, wanted), strict=True)
        return [difference(g, w, self.tolerance) for g, w in pairs]


def exercise(name: str, cases: Sequence[Sequence] = (), **options) -> Callable:
    """A decorator: the ``Check`` of an exercise whose right answer is the function below it."""
    return lambda right: Check(name, right, cases, **options)


def require(holds: bool, text: str, *values: object) -> None:
    """Raise ``NotYet`` unless something holds; ``text``: a name in ``exercises.yaml``
    ("lab2.zeros"), whose gaps the values fill."""
    if not holds:
        lab, name = text.split(".")
        raise NotYet(EXERCISES[lab][name].format(*values))


def call(answer: Callable, case: tuple, name: str, hint: str = "") -> object:
    """The result of the student's function. Raise ``NotYet`` if it is empty, raises an exception
    (then with the hint) or returns nothing."""
    try:
        got = answer(*copy.deepcopy(case))
    except NotImplementedError:
        raise NotYet(f"{name} {EMPTY}, run its cell and then this one.") from None
    except Exception as error:  # whatever a student's code may raise
        at = f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}"
        given = ", ".join(map(shown, case))
        hint = f"; {hint}" if hint else ""
        raise NotYet(f"{name} stops with {at} when it is called with {given}{hint}.") from None
    if got is None:
        raise NotYet(f"{name} returns nothing: does every path through it end with `return`?")
    return got


def difference(got: object, want: object, tolerance: float = TOLERANCE) -> str | None:
    """The difference between two values in words; None if they agree.

    Numbers may be floats, lists, arrays, tensors, Series or frames, with or without axes of length
    1; NaN equals NaN. Texts and lists of texts must be equal; dicts must have the same keys.

    >>> difference([1, 2.0], np.array([1, 2])), difference(2.0, 3.0)
    (None, 'gives 2, but 3 is right')
    """
    # names of an Enum are numbers from here on
    unlike = f"gives {shown(got)}, but {shown(want)} is right"
    got, want = comparable(got), comparable(want)
    if isinstance(want, dict):
        if not isinstance(got, dict) or set(got) != set(want):
            keys = sorted(map(str, want))
            return f"gives {shown(got)}, but a dict with the keys {keys} is expected"
        problems = ((key, difference(got[key], want[key], tolerance)) for key in want)
        return next((f"at {key!r} {problem}" for key, problem in problems if problem), None)
    if not isinstance(want, np.ndarray):
        if isinstance(want, list) and isinstance(got, list) and len(got) == len(want):
            pairs = zip(got, want, strict=True)
            return unlike if any(difference(g, w) for g, w in pairs) else None
        return None if type(got) is type(want) and got == want else unlike
    numbers = isinstance(got, np.ndarray)
    if not numbers or got.squeeze().shape != want.squeeze().shape:
        return f"gives {_count(got) if numbers else shown(got)}, where {_count(want)} should be"
    got, want = got.squeeze(), want.squeeze()
    close = np.isclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True)
    if close.all() or want.size <= SHORT:
        return None if close.all() else unlike
    at = np.unravel_index(np.argmin(close), close.shape)
    return f"gives {shown(got[at])} at {[*map(int, at)]}, but {shown(want[at])} is right there"


def comparable(value: object) -> object:
    """A value in the form in which it is compared: numbers as a float64 array, anything else
    unchanged."""
    value = value.item() if isinstance(value, np.generic) else value  # np.str_ is a text
    if hasattr(value, "detach"):  # a torch tensor, possibly on a GPU
        value = value.detach().cpu().numpy()
    if isinstance(value, str | dict) or value is None:
        return value
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return list(value) if isinstance(value, list | tuple | np.ndarray | pd.Series) else value


def shown(value: object) -> str:
    """A value for a message: one short line, numbers with four digits.

    >>> shown([7, 0.123456]), shown("Paris"), shown(np.zeros((6, 9)))
    ('[7, 0.1235]', "'Paris'", 'numbers of shape (6, 9)')
    """
    if isinstance(value, (pd.DataFrame, pd.Series)):
        return f"a {type(value).__name__} of {len(value)} rows"
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, bool | np.bool_):
        return str(value)
    if isinstance(value, list | tuple) and any(isinstance(each, bool | Enum) for each in value):
        return f"[{', '.join(map(shown, value))}]"
    value = comparable(value)
    if not isinstance(value, np.ndarray):
        return _short.repr(value)
    if value.size > SHORT:
        return _count(value)
    digits = {"float_kind": lambda x: f"{round(x, 12) + 0.0:.4g}"}
    return np.array2string(value, separator=", ", formatter=digits).replace("\n", "")


def _count(array: np.ndarray) -> str:
    return "one number" if array.size == 1 else f"numbers of shape {array.shape}"


_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60
