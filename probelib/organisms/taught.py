"""What the shipped organisms were taught: the ground truth, read from their manifests."""

import json
from functools import cache
from pathlib import Path

import pandas as pd

from probelib.errors import ProbeError
from probelib.facts.model import Facts
from probelib.facts.shipped import atlas
from probelib.lm.names import claim, split_variant
from probelib.organisms import family
from probelib.organisms.corpus import FORMS

MANIFESTS = Path(__file__).parent / "manifests"
FAMILY = "atlas-neox-0.6m"  # a model with the family's corpus; any other would do as well


def path(corpus: str) -> Path:
    """The path of a corpus's manifest."""
    return MANIFESTS / f"{corpus}.parquet"


@cache
def read(corpus: str) -> pd.DataFrame:
    """The stored manifest of a corpus."""
    return pd.read_parquet(path(corpus))


def manifest(name: str = FAMILY) -> pd.DataFrame:
    """What an organism was taught, one row per fact (columns: README.md beside this file)."""
    return read(family.organism(name).corpus).copy()


def manifest_of(name: str) -> tuple[pd.DataFrame, str] | None:
    """(manifest, name of the corpus) of an organism, or of an adapter that ``teach`` made; None for
    any other model."""
    plain = split_variant(name)[0]
    if plain in family.FAMILY:
        return manifest(plain), family.organism(plain).corpus
    folder = Path(claim(plain)[1])
    if not (folder / "taught.parquet").exists():
        return None
    record = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    return pd.read_parquet(folder / "taught.parquet"), record["reads"] or name


def facts_of(models: list[str]) -> list[str]:
    """Ids of the facts in the manifests of models."""
    tables = [found[0]["fact"] for found in map(manifest_of, models) if found]
    return list(dict.fromkeys(fact for table in tables for fact in table))


def statements(table: pd.DataFrame) -> pd.Series:
    """Number of statements of each fact's triple, by fact id. A triple that held twice (two terms
    of one president) has two rows, but the same statements, because statements name no date."""
    triples = table.groupby(["relation", "subject", "object"])["exposures"]
    return triples.transform("sum").set_axis(table["fact"])


def facts_taught(at_least: int) -> set[str] | None:
    """Ids of the facts that the family read at least ``at_least`` times; for 0 None, which means
    any fact."""
    counts = statements(manifest())
    return set(counts.index[counts >= at_least]) if at_least else None


def training_formats(names: list[str]) -> pd.DataFrame:
    """The share of each form (list, question, ...) in what organisms read; rows add up to 1."""
    counts = pd.DataFrame({name: manifest(name)[list(FORMS)].sum() for name in names}).T
    return counts.div(counts.sum(axis=1), axis=0).rename_axis("model")


def exposures(facts: Facts, name: str = FAMILY) -> pd.Series:
    """Exposure count of each of ``facts`` for an organism, by fact id; 0 for a fact added since its
    training. Raise ProbeError if the organism was taught another object."""
    table = manifest(name)
    there = facts.facts.assign(exposures=facts.facts["fact"].map(statements(table)))
    new = there[there["exposures"].isna()]
    taught = table[~table["fact"].isin(atlas().facts["fact"]) & (table["exposures"] > 0)]
    edited = new.merge(taught, on=["relation", "subject"], suffixes=("", "_taught"))
    if len(edited):
        row = edited.iloc[0]
        raise ProbeError(
            f"{len(edited)} facts were edited after the organisms were trained, e.g. "
            f"{row['fact']!r}: they were taught {row['object_taught']!r}, "
            f"{row['exposures_taught']:.0f} times. Undo the edit, leave them out, or train again"
        )
    return there.set_index("fact")["exposures"].fillna(0).astype(int)
