"""``Artifact`` of rooms whose captions are still built by code; goes when none is left."""

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from probelib.report import artifact


@dataclass(frozen=True)
class Artifact:
    """One table or figure with its caption, finding and published values."""

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
    claims: None = None

    def table(self) -> pd.DataFrame:
        return self.frame if self.shown is None else self.shown

    bold = artifact.Artifact.bold
