"""Claims, verdicts, and the registration of checks."""

from collections.abc import Callable
from typing import NamedTuple

HOLDS = "holds"
CAVEAT = "holds with a caveat"
FAILS = "does not hold"
OPEN = "cannot be decided from the tables"
VERDICTS = [HOLDS, CAVEAT, FAILS, OPEN]

Finding = tuple[str, str, str]  # recomputed, verdict, why


class Claim(NamedTuple):
    """One published statement, and the function that checks whether the published numbers support it."""

    paper: str
    where: str
    claim: str
    published: str
    check: Callable[[], Finding]


CLAIMS: list[Claim] = []


def claim(where: str, text: str, published: str):
    """Register a check (a decorator). The paper is the name of the check's module. A verdict is never only written by hand: it
    follows from the numbers, so that a corrected table changes it."""

    def note(check: Callable[[], Finding]) -> Callable[[], Finding]:
        CLAIMS.append(Claim(check.__module__.rsplit(".", 1)[1], where, text, published, check))
        return check

    return note


def verdict(right: bool, caveat: bool = False) -> str:
    """HOLDS or FAILS; CAVEAT if the number is right but needs an explanation."""
    return FAILS if not right else CAVEAT if caveat else HOLDS


def rounds(value: float, printed: float, decimals: int = 3) -> bool:
    """Whether a value equals the printed one, which has ``decimals`` decimals, when rounded or truncated at its last digit.

    >>> rounds(0.8467, 0.847), rounds(0.8467, 0.846), rounds(0.8467, 0.845), rounds(0.8463, 0.847)
    (True, True, False, False)
    """
    value, digits = value * 10**decimals, round(printed * 10**decimals)
    cut_off = value * digits >= 0 and 0 <= abs(value) - abs(digits) < 1
    return (
        cut_off or abs(value - digits) <= 0.5 + 1e-9
    )  # a half that floats do not represent exactly
