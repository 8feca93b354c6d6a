"""CSV files that a spreadsheet opens safely: no text in them is read as a formula.

A spreadsheet computes a cell that begins with =, +, - or @, which may open an address or start a
program. ``to_csv`` writes an apostrophe before such a text, also after a semicolon, which separates
cells in many countries; ``read_csv`` removes it again."""

import io
import re

import pandas as pd

FORMULA = re.compile(r"(^|;)(?='*(?:[=@\t]|[+-](?![+-]*$|[\d.]+(?:e[+-]?\d+)?$)))", re.IGNORECASE)
NUMBER = re.compile(r"-?(?:(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]\d+)?|inf)")  # as ``to_csv`` writes one
ESCAPED = re.compile(FORMULA.pattern.replace("(?=", "'(?=", 1), re.IGNORECASE)


def to_csv(frame: pd.DataFrame, **options) -> str:
    """A table as CSV, without its index; ``options`` as in ``DataFrame.to_csv``."""
    # pandas quotes no "\r", at which readers begin a new row
    unbroken = _texts(frame, re.compile("\r\n?"), "\n")
    return _texts(unbroken, FORMULA, r"\1'").to_csv(index=False, **options)


def read_csv(content: bytes) -> pd.DataFrame:
    """The cells that ``to_csv`` wrote, as texts: " 1936." is no number; an empty one is ""."""
    written = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
    return _texts(written, ESCAPED, r"\1")


def holds_numbers(texts: pd.Series) -> bool:
    """Whether all texts are numbers as ``to_csv`` writes them; empty ones do not count."""
    return all(NUMBER.fullmatch(text) for text in texts if text)


def _texts(frame: pd.DataFrame, pattern: re.Pattern, by: str) -> pd.DataFrame:
    """The table with a pattern replaced in every text and column name."""
    replace = lambda value: pattern.sub(by, value) if isinstance(value, str) else value
    changed = frame.copy(deep=False)
    for i, kind in enumerate(frame.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            changed.isetitem(i, frame.iloc[:, i].map(replace))
    return changed.rename(columns=replace)
