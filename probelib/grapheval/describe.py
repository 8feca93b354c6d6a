"""Describe a verbalized graph: its size, its relations, and the degree, popularity and exposure count of its triples."""

from pathlib import Path

import numpy as np
import pandas as pd

from probelib import facts
from probelib.facts.formats import read_pageviews
from probelib.facts.graphs.graph import Graph, degrees, statistics, to_facts
from probelib.grapheval.whole_graph import VerbalizedGraph


def graph_statistics(kg: VerbalizedGraph) -> dict:
    """Statistics of the graph (table 1): ``graph.statistics``, with ``graph``, ``coverage``, ``median degree`` and
    ``highest degree`` (of the entities that are in a triple)."""
    degree = degrees(kg.graph)
    known = {"graph": kg.graph.about["source"]} | statistics(kg.graph) | {"coverage": kg.coverage}
    return known | {"median degree": float(np.median(degree[degree > 0])), "highest degree": int(degree.max())}


def most_frequent(kg: VerbalizedGraph, n: int = 30) -> pd.DataFrame:
    """The ``n`` most frequent relations (table 5): ``relation``, ``name``, ``template``, ``count``; the index is the row number
    of the relation in the graph."""
    keys, names = (kg.graph.relations[column].to_pylist() for column in ("relation", "label"))
    counts = np.bincount(kg.graph.relation, minlength=len(keys))
    table = pd.DataFrame({"relation": keys, "name": names, "template": kg.templates, "count": counts})
    return table.sort_values(["count", "relation"], ascending=[False, True]).head(n)


def samples_for_template(kg: VerbalizedGraph, n: int = 4) -> list[tuple]:
    """Three triples of each of the ``n`` most frequent relations: (relation, pairs of names, template), for
    ``scores.write_template``."""
    names, samples = kg.graph.relations["label"].to_pylist(), []
    for row in most_frequent(kg).index[:n]:
        rows = to_facts(kg.graph, np.flatnonzero(kg.graph.relation == row)[:3])
        pairs = list(zip(rows.label(rows.facts["subject"]), rows.label(rows.facts["object"]), strict=True))
        samples.append((str(names[row]), pairs, kg.templates[row]))
    return samples


def about_triples(
    kg: VerbalizedGraph, source: str, pageviews: str | None = None, taught: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return one row per triple of ``kg.graph`` (figure 8): ``D`` and, if known, ``P`` and ``E``.

    D  mean degree of head and tail
    P  mean popularity of head and tail, of one of them if only one is known, NaN if neither is. Page views if a file is given;
       otherwise, for the atlas, its authors' estimate from 1 to 5
    E  number of exposures of the fact in the training data of the shipped models; only for the atlas

    taught  ``organisms.taught.manifest``: relation, subject, object, exposures; None: no E
    """
    head, tail = kg.graph.head, kg.graph.tail
    degree, popular = degrees(kg.known), entity_popularity(kg.graph, source, pageviews)
    means = pd.DataFrame([popular[head], popular[tail]]).mean()
    about = pd.DataFrame({"D": (degree[head] + degree[tail]) / 2, "P": means.to_numpy()})
    if source == "atlas" and taught is not None:
        about["E"] = exposures_of_triples(kg.graph, taught)
    return about.dropna(axis=1, how="all")


def entity_popularity(graph: Graph, source: str, pageviews: str | None = None) -> np.ndarray:
    """Popularity of every entity, (entities,) float; NaN where it is not known."""
    if pageviews:
        views = read_pageviews(Path(pageviews).expanduser()).set_index("entity")["views"]
        return views.reindex(graph.entities["label"].to_pylist()).to_numpy(dtype=float)
    known = {}
    if source == "atlas":
        known = dict(facts.atlas().entities[["entity", "popularity"]].itertuples(index=False))
    return np.array([known.get(key) or np.nan for key in graph.entities["entity"].to_pylist()], dtype=float)


def exposures_of_triples(graph: Graph, taught: pd.DataFrame) -> np.ndarray:
    """Number of exposures of every triple, (triples,) float. A fact that held twice has two rows in ``taught``, but reads as one
    statement."""
    counts = taught.groupby(["relation", "subject", "object"])["exposures"].sum()
    entity, relation = (
        np.array(table[column].to_pylist(), dtype=object)
        for table, column in ((graph.entities, "entity"), (graph.relations, "relation"))
    )
    triples = zip(relation[graph.relation], entity[graph.head], entity[graph.tail], strict=True)
    return counts.reindex(list(triples)).to_numpy()


def note_on_popularity(kg: VerbalizedGraph, source: str, pageviews: str | None = None) -> str:
    """A sentence: how many triples have an unknown popularity at one end or at both; "" if none."""
    unknown = np.isnan(entity_popularity(kg.graph, source, pageviews))
    ends = unknown[kg.graph.head].astype(int) + unknown[kg.graph.tail]
    if not ends.any():
        return ""
    return (
        f"Of {len(ends):,} triples {(ends == 1).sum():,} have one end of unknown popularity: their P is that of the "
        f"other. {(ends == 2).sum():,} have two, hence no P, and do not enter its correlations."
    )
