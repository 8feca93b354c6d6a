"""The kit's one error, and the help it gives."""

import contextlib
import difflib
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping

LISTED = 20  # known names in a message
# control characters -> their pictures (ESC: "␛"); C1 controls and text directions -> "\ufffd"
PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {0x7F: 0x2421}
PICTURES |= dict.fromkeys((*range(0x80, 0xA0), *range(0x202A, 0x202F)), 0xFFFD)
PICTURES |= dict.fromkeys(range(0x2066, 0x206A), 0xFFFD)


def printable(text: object) -> str:
    """Text for a terminal: texts of data, models and servers cannot move the cursor or hide a line.

    >>> printable("Paris\\x1b[2J")
    'Paris␛[2J'
    """
    return str(text).translate(PICTURES)


class ProbeError(Exception):
    """An error that the user can fix: bad input, a missing file, an unsupported request. The
    message says what is wrong, where, what is allowed and what to try."""

    def __str__(self) -> str:
        return printable(super().__str__())

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in a notebook: one sentence in place of a long traceback."""
        return [f"{type(self).__name__}: {self}"]


def unknown(kind: str, name: str, known: Iterable, meaning: Mapping | None = None) -> ProbeError:
    """The error for a name that does not exist: ``unknown model 'atlas-neox-2'; did you mean
    atlas-neox-2.4m? Known: ...``.

    meaning   the meaning of each known name ({"P36": "capital"}): shown and searched, too
    """
    known, meaning = sorted(map(str, known)), meaning or {}
    texts = {meaning[each]: each for each in known if each in meaning}
    texts |= {each: each for each in known}
    close = difflib.get_close_matches(str(name), texts, n=3, cutoff=0.5)
    near = dict.fromkeys(texts[text] for text in close)
    shown = lambda some: [f"{each} ({meaning[each]})" if each in meaning else each for each in some]
    hint = f"; did you mean {' or '.join(shown(near))}?" if near else ";"
    more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
    return ProbeError(
        f"unknown {kind} {name!r}{hint} Known: {', '.join(shown(known[:LISTED])) or 'none'}{more}."
    )


def command(work: Callable[[list[str] | None], None]) -> Callable[..., int]:
    """``work(arguments)`` as a command with an exit code: 1 after a ProbeError, said on stderr."""

    @functools.wraps(work)
    def main(arguments: list[str] | None = None) -> int:
        try:
            work(arguments)
        except ProbeError as error:
            print(error, file=sys.stderr)
            return 1
        return 0

    return main


@contextlib.contextmanager
def extra(name: str) -> Iterator[None]:
    """Context manager for imports that only one feature needs: the error names its extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ProbeError(
            f"{error.name} is not installed: pip install -e '.[{name}]' in the checkout does it"
        ) from None


def texts_of(what: str, given: Iterable) -> list[str]:
    """The given texts as a list. Raise ProbeError for anything else, also a single text."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        one = str(given)[:60]
        raise ProbeError(f"{what}: {one!r} is given; a list of texts is needed: [{one!r}]")
    texts = list(given)
    for text in texts:
        if not isinstance(text, str):
            raise ProbeError(
                f"{what}: {text!r} is of type {type(text).__name__}; a list of texts is needed"
            )
    return texts


def check_sizes(**sizes: int) -> None:
    """Raise ProbeError for a number of facts, options, ... that is not an integer of at least 1."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ProbeError(f"{name}={size!r}; an integer of at least 1 is needed")
