"""CSV files that a spreadsheet opens safely: no text in them is read as a formula.

A spreadsheet computes a cell that begins with =, +, - or @, which may open an address or start a
program. ``to_csv`` writes an apostrophe before such a text, also after a semicolon, which separates
cells in many countries. ``read_csv`` removes it again, and keeps texts that pandas would read as
numbers, such as a generated " 1936."."""

import io
import re

import pandas as pd

FORMULA = re.compile(r"(^|;)(?='*(?:[=@\t]|[+-](?![+-]*$|[\d.]+(?:e[+-]?\d+)?$)))", re.IGNORECASE)
NUMBER = re.compile(r"-?(?:(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]\d+)?|inf)")  # as ``to_csv`` writes one
ESCAPED = re.compile(FORMULA.pattern.replace("(?=", "'(?=", 1), re.IGNORECASE)


def to_csv(frame: pd.DataFrame, **options) -> str:
    """A table as CSV, without its index; ``options`` as in ``DataFrame.to_csv``.

    >>> to_csv(pd.DataFrame({"label": ["=1+1", "Paris", "-0.5"], "change": [-1.5, 0.0, 2.0]}))
    "label,change\\n'=1+1,-1.5\\nParis,0.0\\n-0.5,2.0\\n"
    """
    # pandas quotes no "\r", at which readers begin a new row
    unbroken = _texts(frame, re.compile("\r\n?"), "\n")
    return _texts(unbroken, FORMULA, r"\1'").to_csv(index=False, **options)


def read_csv(content: bytes, **options) -> pd.DataFrame:
    """The table that ``to_csv`` wrote; ``options`` as in ``pandas.read_csv``.

    >>> read_csv(b"output,share\\n 1936.,0.5\\n 1934.,1\\n")["output"].tolist()
    [' 1936.', ' 1934.']
    """
    table = pd.read_csv(io.BytesIO(content), **options)
    written = pd.read_csv(io.BytesIO(content), **options | {"dtype": str})
    for i, kind in enumerate(table.dtypes):
        number = pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)
        if number and not holds_numbers(written.iloc[:, i].dropna()):
            table.isetitem(i, written.iloc[:, i])
    return _texts(table, ESCAPED, r"\1")


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
