"""Verdicts, and when a printed number agrees with a recomputed one."""

from probelib import published

HOLDS = "holds"
CAVEAT = "holds with a caveat"
FAILS = "does not hold"
OPEN = "cannot be decided from the tables"
VERDICTS = [HOLDS, CAVEAT, FAILS, OPEN]

Finding = tuple[dict, str]  # label -> number (or the names that are meant); verdict


def verdict(right: bool, caveat: bool = False) -> str:
    """HOLDS or FAILS; CAVEAT if the number is right but needs an explanation."""
    return FAILS if not right else CAVEAT if caveat else HOLDS


def rounds(value: float, printed: float, decimals: int = 3) -> bool:
    """Whether a value equals the printed one, which has ``decimals`` decimals, when rounded or
    truncated at its last digit.

    >>> rounds(0.8467, 0.847), rounds(0.8467, 0.846), rounds(0.8467, 0.845), rounds(0.8463, 0.847)
    (True, True, False, False)
    """
    value, digits = value * 10**decimals, round(printed * 10**decimals)
    cut_off = value * digits >= 0 and 0 <= abs(value) - abs(digits) < 1
    return cut_off or abs(value - digits) <= 0.5 + 1e-9  # a half that floats do not hold exactly


def stated(paper: str, name: str) -> float:
    """A number of a paper's text."""
    return float(published.table(f"{paper}/claims").set_index("claim")["value"][name])
