"""``Artifact``: one table or figure. What is said about it stands in ``published/claims.yaml``,
under its name."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from probelib import published
from probelib.report import claims


@dataclass(frozen=True)
class Artifact:
    """One table or figure of a paper, as ``artifacts`` of its package returns it and
    ``Section.show`` shows it.

    name     "monitor/table4": the paper's folder, then the artifact
    frame    the numbers of the table or of the figure, in full precision, as the CSV holds them;
             the ends of the interval of a column x are "x low" and "x high", and print in its cell
    claims   ``claims.check(name, ...)``: the claims that it tests; None for an illustration
    figure   a matplotlib figure; None for a table
    best     of a table: column -> "min" or "max"; the best value is bold
    shown    of a table too wide or too long to print: the table to print instead
    """

    name: str
    frame: pd.DataFrame
    claims: pd.DataFrame | None = None
    figure: Any = None
    best: dict[str, str] = field(default_factory=dict)
    shown: pd.DataFrame | None = None

    @property
    def caption(self) -> str:
        return claims.texts(self.name).caption

    @property
    def alt(self) -> str:
        """Of a figure: its description in words, for a reader who cannot see it."""
        return claims.texts(self.name).alt

    @property
    def decimals(self) -> dict[str, int] | int:
        return claims.texts(self.name).decimals

    @property
    def finding(self) -> str:
        """The claims with their results, in Markdown; "" for an illustration."""
        return "" if self.claims is None else " ".join(claims.sentences(self.claims, self.name))

    @property
    def published(self) -> pd.DataFrame | None:
        """The values that the paper prints; None if it prints none."""
        return published.find(self.name)

    def table(self) -> pd.DataFrame:
        """The table that a reader sees."""
        table = self.frame if self.shown is None else self.shown
        kept = list(claims.texts(self.name).columns) if self.shown is None else []
        kept = kept or list(table)
        ends = [f"{name}{end}" for name in kept for end in (" low", " high")]
        wanted = dict.fromkeys([*kept, *(end for end in ends if end in table)])
        return claims.printed(table[list(wanted)], self.decimals)

    def bold(self) -> dict[str, list[int]]:
        """The cells in bold: column -> row numbers (from 0) of the ``best`` value of the frame."""
        found = {}
        for column, which in self.best.items():
            values = self.frame[column]
            found[column] = np.flatnonzero(values == getattr(values, which)()).tolist()
        return found
