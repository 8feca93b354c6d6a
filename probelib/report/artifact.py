"""``Artifact``: one table or figure, with its caption, finding and published values."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Artifact:
    """One table or figure of a paper: ``tables`` and ``figures`` of its package return it, and ``Section.show`` shows it.

    name        "monitor/table4": the paper's folder, then the artifact
    frame       the numbers of the table or of the figure, in full precision, as the CSV holds them
    caption     what is shown, of which models and facts, what the bars are, how to read it
    finding     one claim with its numbers, in Markdown; "" where there is nothing to report
    figure      a matplotlib figure; None for a table
    alt         of a figure: its description in words, for a reader who cannot see it
    published   the values that the paper prints, shown beside ours; None if it prints none
    decimals    decimals shown in a table, for all columns or by column; the CSV keeps nine significant digits
    best        of a table: column -> "min" or "max"; the best value is bold, on every page
    shown       of a table too wide to print: the most important columns, in the same rows or in fewer, each interval in the cell
                of its value (``shown.with_interval``); None shows the frame. The CSV always holds the frame
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
        """The cells in bold: column -> row numbers (from 0) of the ``best`` value of the frame."""
        ends = {column: getattr(self.frame[column], which)() for column, which in self.best.items()}
        return {column: np.flatnonzero(self.frame[column] == end).tolist() for column, end in ends.items()}
