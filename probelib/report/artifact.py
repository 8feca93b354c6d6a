"""``Artifact``: one table or figure, with everything that a reader needs beside it."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Artifact:
    """One table or figure of a paper, as a room's ``tables`` and ``figures`` return it and ``Section.show`` shows it.

    name        "monitor/table4": the paper's folder, then the artifact
    frame       the numbers of the table or behind the figure, in full precision: what the CSV holds
    caption     what is shown, of which models and facts, what the bars are, how to read it
    finding     one claim with its numbers, in Markdown; "" where there is nothing to report
    figure      a matplotlib figure; None for a table
    alt         of a figure: the same in words, for a reader who cannot see it
    published   the values that the paper prints, shown beside ours; None where it prints none
    decimals    digits shown of a table, for all columns or by column; the CSV keeps nine significant digits
    best        of a table: column -> "min" or "max"; the best value is bold, on every page
    shown       of a table too wide to print: the columns that matter, in the same rows or in fewer, an interval in the cell of
                its value (``shown.with_interval``); None shows the frame. The CSV always holds the frame
    """

    name: str
    frame: pd.DataFrame
    caption: str
    finding: str = ""
    figure: Any = None
    alt: str = ""
    published: pd.DataFrame | None = None
    decimals: dict[str, int] | int = 3
    best: dict[str, str] = field(default_factory=dict)
    shown: pd.DataFrame | None = None

    def table(self) -> pd.DataFrame:
        """The table that a reader sees."""
        return self.frame if self.shown is None else self.shown

    def bold(self) -> dict[str, list[int]]:
        """The cells in bold: column -> numbers of its rows (from 0) that hold the ``best`` value of the frame."""
        ends = {column: getattr(self.frame[column], which)() for column, which in self.best.items()}
        return {column: np.flatnonzero(self.frame[column] == end).tolist() for column, end in ends.items()}
