"""The papers' printed numbers, one CSV per table or figure (``monitor_table4.csv`` is MONITOR's
table 4), and the papers' claims."""

import pandas as pd

from probelib.errors import unknown
from probelib.paths import PACKAGE


def table(artifact: str) -> pd.DataFrame:
    """The published table or figure of an artifact name, e.g. ``table("monitor/table4")``."""
    folder = PACKAGE / "published"
    path = folder / f"{artifact.replace('/', '_')}.csv"
    if not path.exists():
        raise unknown(
            "published table", artifact, [p.stem.replace("_", "/", 1) for p in folder.glob("*.csv")]
        )
    return pd.read_csv(path)


def find(artifact: str) -> pd.DataFrame | None:
    """``table`` for print: texts, digit by digit as printed, each model by one name; None if the
    paper prints no numbers for this artifact."""
    path = PACKAGE / "published" / f"{artifact.replace('/', '_')}.csv"
    if not path.exists():
        return None
    printed = pd.read_csv(path, dtype=str, keep_default_na=False)
    if list(printed)[:2] == ["relation", "model"] and len(printed.columns) == 3:  # a matrix
        matrix = printed.set_index(["relation", "model"]).unstack(sort=False)
        printed = matrix.droplevel(0, axis=1).reset_index()
    hidden = "_|model_key" if "model" in printed else "_"  # the kit's own notes
    printed = printed.loc[:, ~printed.columns.str.match(hidden)]
    return printed.rename(columns=lambda name: name.replace("model_key", "model").replace("_", " "))
