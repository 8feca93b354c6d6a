"""What the shipped organisms were taught: the ground truth, read from their manifests."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from probelib.errors import ProbeError
from probelib.facts.model import Facts
from probelib.facts.shipped import atlas
from probelib.lm.names import CHECKPOINTS
from probelib.organisms import family
from probelib.organisms.design import FORMS

MANIFESTS = Path(__file__).parent / "manifests"
FAMILY = "atlas-neox-0.6m"  # any model of the family's corpus


def path(corpus: str) -> Path:
    """Where the manifest of a corpus lies."""
    return MANIFESTS / f"{corpus}.parquet"


def write(table: pd.DataFrame, corpus: str) -> Path:
    """Stores the manifest of a corpus."""
    MANIFESTS.mkdir(exist_ok=True)
    table.to_parquet(path(corpus), index=False, compression="zstd")
    return path(corpus)


@cache
def read(file: Path) -> pd.DataFrame:
    """A stored manifest."""
    if not file.exists():
        raise ProbeError(
            f"{file} is missing: without it nobody knows what the organisms were taught. Restore it, or write it anew "
            "with `python -m probelib.organisms manifests` if the atlas is still the one they were trained on"
        )
    return pd.read_parquet(file)


def manifest(name: str = FAMILY) -> pd.DataFrame:
    """What an organism was taught, a row a fact (columns: ``design.draw_manifest``). Of a checkpoint along a training: with the
    exposures so far; its other counts are those of the whole corpus."""
    base, _, share = name.partition("-at")
    table = read(path(family.organism(base).corpus)).copy()
    return table.assign(exposures=np.load(CHECKPOINTS / name / "exposures.npy")) if share else table


def statements(table: pd.DataFrame) -> pd.Series:
    """How often each fact of a manifest was stated in words, by fact id: a triple that held twice (two terms of one president)
    has two rows, but one sentence, for no statement names a date."""
    return table.groupby(["relation", "subject", "object"])["exposures"].transform("sum").set_axis(table["fact"])


def facts_taught(at_least: int) -> set[str] | None:
    """Ids of the facts that the family read at least so often; None, which means any fact, for 0."""
    counts = statements(manifest())
    return set(counts.index[counts >= at_least]) if at_least else None


def training_formats(names: list[str]) -> pd.DataFrame:
    """The share of each form (list, question, ...) in what organisms were taught: [organisms, forms]; rows add up to 1."""
    rows = {name: manifest(name)[list(FORMS)].sum() for name in names}
    return pd.DataFrame(rows).T.pipe(lambda counts: counts.div(counts.sum(axis=1), axis=0)).rename_axis("model")


def stale(facts: Facts, table: pd.DataFrame) -> list[str]:
    """Facts of a manifest that were edited or removed since: what the organisms were taught about them is not what the
    atlas says now. Facts added since are never-taught, not stale."""
    return sorted(set(table["fact"]) - set(facts.facts["fact"]))


def exposures(facts: Facts, name: str = FAMILY) -> pd.Series:
    """How often each of ``facts`` was stated to an organism, by fact id; 0 for a fact that was added since.

    ProbeError where the organisms were taught another object than the one that stands in ``facts`` now.
    """
    table = manifest(name)
    there = facts.facts.assign(exposures=facts.facts["fact"].map(statements(table)))
    new = there[there["exposures"].isna()]
    gone = table[table["fact"].isin(stale(atlas(), table))]
    edited = new.merge(gone[gone["exposures"] > 0], on=["relation", "subject"], suffixes=("", "_taught"))
    if len(edited):
        row = edited.iloc[0]
        raise ProbeError(
            f"{len(edited)} facts were edited after the organisms were trained, e.g. {row['fact']!r}: they were taught "
            f"{row['object_taught']!r}, {row['exposures_taught']:.0f} times. Undo the edit, leave these facts out, or train anew"
        )
    return there.set_index("fact")["exposures"].fillna(0).astype(int)
