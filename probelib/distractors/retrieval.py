"""Distractors: the wrong objects that a fact is compared with (Ammar Khodja et al. 2025, 3.3).

A distractor o* of a fact (s, r, o) shares a type with o, shares no label with it, and is not right
for (s, r). All of them form the set Omega; a strategy takes n of them:

    random      any of them
    sem         the most similar to o in the knowledge base: cosine of TF-IDF vectors
    temp_sem    former right objects, the latest first; then as sem
    appropt     the most plausible for one model and sentence, by a beam over the trie of labels
    opt         the same, exactly [distractors, Eq. 4]: best-first search; the paper leaves it out

======================  ==============================  ========================================
                        the paper's released code       here
======================  ==============================  ========================================
o as own distractor     if (s, r, o) is a former fact   never
labels compared         main ones, upper case           all of both sides, NFC and case folded
random                  no seed; types weigh            uniform over Omega, seeded by the fact
sem                     approximate neighbours          exact cosine, ties by the order of rows
labels in the trie      main ones                       all
former values           not filtered                    only those in Omega
a fact that ended       reversed without a start        see ``facts.validity``
======================  ==============================  ========================================
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.sparse import csc_array, csr_array

from probelib.errors import ProbeError, check_sizes, unknown
from probelib.facts.graphs.graph import Graph, column_values, from_facts
from probelib.facts.model import Facts, keep, rng
from probelib.facts.validity import UNKNOWN, days, invalid

NAMES = {"random": "Random", "sem": "Sem", "temp_sem": "Temp+Sem", "appropt": "ApprOpt"}
NAMES["opt"] = "Opt"
TODAY = "2026-01-01"  # the day that counts as the present, at which the atlas holds
SAME = 5  # decimals of a similarity; entities that differ in later ones are equally similar
POPULOUS = 10  # an object without a type counts as having the types that most entities have


@dataclass(frozen=True)
class Knowledge:
    """What distractors are retrieved from. Entities are row numbers, keys outside."""

    graph: Graph  # its triples, entities, types
    facts: Facts  # those it was made from; KaRR draws other subjects and relations from them

    @cached_property
    def keys(self) -> pd.Index:
        """Keys of the entities, (E,)."""
        return pd.Index(self.graph.entities["entity"].to_pandas())

    @cached_property
    def labels(self) -> list[tuple[str, ...]]:
        """Labels of every entity, the main one first: NFC, stripped, without duplicates."""
        clean = lambda text: unicodedata.normalize("NFC", text or "").strip()
        names, aliases = (self.graph.entities[c].to_pylist() for c in ("label", "aliases"))
        every = [map(clean, (name, *(own or ()))) for name, own in zip(names, aliases, strict=True)]
        return [tuple(dict.fromkeys(filter(None, own))) for own in every]

    @cached_property
    def bearers(self) -> dict[str, list[int]]:
        """Case-folded label -> the entities that bear it."""
        found: dict[str, list[int]] = {}
        for entity, labels in enumerate(self.labels):
            for label in {label.casefold() for label in labels}:
                found.setdefault(label, []).append(entity)
        return found

    @cached_property
    def types(self) -> csr_array:
        """Types of the entities, (E, types) bool."""
        column = self.graph.types["type"].unify_dictionaries().combine_chunks()
        shape = (self.graph.entities.num_rows, len(column.dictionary))
        rows, codes = column_values(self.graph.types, "entity"), column.indices.to_numpy()
        return csr_array((np.ones(len(rows), bool), (rows, codes)), shape=shape)

    @cached_property
    def order(self) -> tuple[np.ndarray, np.ndarray]:
        """Triples sorted by (head, relation), and these pairs as sorted numbers."""
        pairs = self.graph.head.astype(np.int64) * self.graph.relations.num_rows
        pairs = pairs + self.graph.relation
        order = np.argsort(pairs, kind="stable")
        return order, pairs[order]

    @cached_property
    def of_type(self) -> csc_array:
        """``types`` in columns: the entities of each type."""
        return self.types.tocsc()

    @cached_property
    def dates(self) -> tuple[np.ndarray, np.ndarray]:
        """Start and end of every triple, "" where the source has none."""
        table, empty = self.graph.triples, np.full(len(self.graph), "", dtype=object)
        dated = lambda name: table[name].to_pandas().to_numpy(object)
        start, end = (dated(c) if c in table.column_names else empty for c in ("start", "end"))
        return start, end

    @cached_property
    def over(self) -> np.ndarray:
        """Triples that are certainly not valid at present, (T,) bool. As in ``facts.model.holds``,
        facts of one point in time (a prize) stay right, and facts without an end hold."""
        start, end = self.dates
        return invalid(start, end, TODAY) & (start != end) & (end != "")

    @cached_property
    def vectors(self) -> csr_array:
        """TF-IDF vectors of all entities, (E, features), rows of length 1; see ``bags``."""
        return tfidf(bags(self.graph))

    @cached_property
    def postings(self) -> csc_array:
        """``vectors`` in columns: the entities with each feature."""
        return self.vectors.tocsc()


def knowledge(facts: Facts) -> Knowledge:
    """The knowledge base of some facts, current and former ones. In data without types, the type of
    an object is its relation."""
    if not facts.entities["types"].map(bool).any():
        wrong = facts.distractors.merge(facts.facts[["fact", "relation"]], on="fact")
        rows = pd.concat([own[["object", "relation"]] for own in (facts.facts, wrong)])
        relations = rows.groupby("object")["relation"].unique().map(tuple)
        types = [relations.get(entity, ()) for entity in facts.entities["entity"]]
        facts = replace(facts, entities=facts.entities.assign(types=types))
    return Knowledge(from_facts(facts), facts)


def bags(graph: Graph) -> csr_array:
    """The features of every entity e, (E, features) of ones: e itself, and for each triple (e, r,
    o) the features r, o and (r, o)."""
    n, relations = graph.entities.num_rows, graph.relations.num_rows
    pairs, pair = np.unique(graph.relation.astype(np.int64) * n + graph.tail, return_inverse=True)
    rows = np.concatenate([np.arange(n), graph.head, graph.head, graph.head])
    columns = [np.arange(n), graph.tail, n + graph.relation, n + relations + pair]
    entries = (np.ones(len(rows), np.float32), (rows, np.concatenate(columns)))
    found = csr_array(entries, shape=(n, n + relations + len(pairs)))
    found.sum_duplicates()
    found.data[:] = 1  # a set, not a count
    return found


def tfidf(bags: csr_array) -> csr_array:
    """Weights ln((1 + N) / (1 + df)) + 1 of binary features, rows scaled to length 1."""
    from sklearn.feature_extraction.text import TfidfTransformer

    return csr_array(TfidfTransformer().fit_transform(bags))


def of_same_type(kb: Knowledge, entity: int) -> np.ndarray:
    """Entities that share a type with ``entity`` (itself included), sorted rows."""
    own = kb.types[[entity]].indices
    if not len(own):
        own = np.argsort(-kb.types.sum(axis=0), kind="stable")[:POPULOUS]
    return np.unique(kb.of_type[:, own].indices).astype(np.int64)


def values(kb: Knowledge, subject: int, relation: int) -> np.ndarray:
    """The triples (subject, relation, any), as row numbers of triples."""
    order, pairs = kb.order
    pair = subject * kb.graph.relations.num_rows + relation
    return order[np.searchsorted(pairs, pair) : np.searchsorted(pairs, pair, side="right")]


def excluded(kb: Knowledge, subject: int, relation: int, obj: int) -> np.ndarray:
    """Never distractors: o, what shares a label with it, and values of (s, r) that hold or may."""
    same = [e for label in kb.labels[obj] for e in kb.bearers[label.casefold()]]
    triples = values(kb, subject, relation)
    right = kb.graph.tail[triples[~kb.over[triples]]]
    return np.unique(np.concatenate([[obj], same, right]).astype(np.int64))


def omega(kb: Knowledge, subject: int, relation: int, obj: int) -> np.ndarray:
    """All distractors of a fact, sorted rows."""
    barred = excluded(kb, subject, relation, obj)
    return np.setdiff1d(of_same_type(kb, obj), barred, assume_unique=True)


def rows(kb: Knowledge, facts: pd.DataFrame) -> np.ndarray:
    """Subject, relation and object of facts as row numbers, (F, 3), or ProbeError if one is
    missing."""
    relations = pd.Index(kb.graph.relations["relation"].to_pandas())
    keys = {"subject": kb.keys, "relation": relations, "object": kb.keys}
    found = np.stack([own.get_indexer(facts[column]) for column, own in keys.items()], axis=1)
    if lost := facts["fact"][(found < 0).any(axis=1)].tolist():
        said = "facts have a subject, relation or object that the knowledge base does not hold"
        how = "build it from the data that the facts come from"
        raise ProbeError(f"{len(lost)} {said}, e.g. {lost[0]!r}; {how}")
    return found


def retrieve(kb: Knowledge, facts: pd.DataFrame, strategy: str, n: int, seed: int = 0):
    """``n`` distractors per fact by a strategy that needs no model: ``fact``, ``rank`` (from 1),
    ``candidate`` (key), ``former`` (whether it used to be right). A fact with fewer gets them all.

    ``strategy``: "random" (seeded by the fact's id and ``seed``), "sem" or "temp_sem"."""
    check_sizes(n_distractors=n)
    if strategy not in ("random", "sem", "temp_sem"):
        raise unknown("strategy without a model", strategy, ["random", "sem", "temp_sem"])
    found = []
    for fact, (subject, relation, obj) in zip(facts["fact"], rows(kb, facts), strict=True):
        space, before = omega(kb, subject, relation, obj), np.zeros(0, np.int64)
        if strategy == "temp_sem":
            before = former_values(kb, subject, relation, obj)
        if strategy == "random":
            drawn = rng(seed, fact).permutation(space)[:n]
        else:
            drawn = np.r_[before, nearest(kb, obj, np.setdiff1d(space, before), n)][:n]
        found += [(fact, rank, e, rank <= len(before)) for rank, e in enumerate(drawn, 1)]
    frame = pd.DataFrame(found, columns=["fact", "rank", "candidate", "former"])
    return frame.assign(candidate=kb.keys[frame["candidate"].to_numpy(dtype=int)])


def nearest(kb: Knowledge, obj: int, among: np.ndarray, n: int) -> np.ndarray:
    """The ``n`` entities of ``among`` most similar to ``obj`` (cosine), best first; ties by row."""
    own = kb.vectors[[obj]]
    similarity = (kb.postings[:, own.indices] @ own.data)[among].round(SAME)
    if n < len(among):  # nothing below the n-th best can count
        among = among[(keep := similarity >= np.partition(similarity, -n)[-n])]
        similarity = similarity[keep]
    return among[np.argsort(-similarity, kind="stable")[:n]]


def former_values(kb: Knowledge, subject: int, relation: int, obj: int) -> np.ndarray:
    """Temporal distractors: former values of (s, r), the nearest to the present first (by the
    middle of their interval); those with an unknown start or end come last."""
    triples = values(kb, subject, relation)
    triples = triples[kb.over[triples]]
    if not len(triples):  # most facts: Omega is spared
        return np.zeros(0, np.int64)
    start, end = (dates[triples] for dates in kb.dates)
    known = ~(np.isin(start, ["", UNKNOWN]) | np.isin(end, ["", UNKNOWN]))
    middle = (days(start)[0] + days(end)[1]) / 2
    away = np.where(known, np.abs(middle - days([TODAY])[0][0]), np.inf)
    tails = kb.graph.tail[triples]
    tails = pd.unique(tails[np.lexsort((tails, away))]).astype(np.int64)
    return tails[np.isin(tails, omega(kb, subject, relation, obj))]


def has_former(kb: Knowledge, facts: pd.DataFrame) -> pd.Series:
    """Whether each fact has a temporal distractor: the set S' of the paper."""
    found = [len(former_values(kb, *own)) > 0 for own in rows(kb, facts)]
    return pd.Series(found, index=facts.index, dtype=bool)


def former_taught(facts: pd.DataFrame, lists: pd.DataFrame, manifest: pd.DataFrame):
    """fact -> exposure count of the former object that leads its list of Temp+Sem (facts that have
    one). ``manifest``: what the model was taught (``taught.manifest``)."""
    triple = ["relation", "subject", "object"]
    stated = manifest.groupby(triple)[["exposures", "dated"]].sum().sum(axis=1)
    first = lists[(lists["rank"] == 1) & lists["former"]].set_index("fact")["candidate"]
    before = facts.set_index("fact").loc[first.index, triple].assign(object=first)
    counts = stated.reindex(pd.MultiIndex.from_frame(before), fill_value=0)
    return pd.Series(counts.to_numpy(), first.index)


def spread_facts(facts: Facts, n: int, seed: int = 0) -> Facts:
    """``n`` facts sampled with the seed, first one per relation."""
    draws = facts.facts["fact"].map(lambda fact: rng(seed, "optimum", fact).random())
    turn = draws.groupby(facts.facts["relation"]).rank() + draws
    return keep(facts, turn.rank(method="first") <= n)


def searches(kb: Knowledge, facts: pd.DataFrame, prompts: pd.DataFrame, n: int, ending: str = ""):
    """The arguments of ``store.search`` for the ``n`` most plausible distractors after every
    prompt: the prompts with ``space`` (a name; of the same types, the same) and ``wanted`` (n, plus
    labels of o and excluded values, which may rank above them); and space -> {candidate: [labels,
    each after a blank]}. ``ending``: text after every label (``measures.ENDINGS``)."""
    check_sizes(n_distractors=n)
    place, spaces, members = {}, {}, {}
    for fact, (subject, relation, obj) in zip(facts["fact"], rows(kb, facts), strict=True):
        name = " | ".join(map(str, sorted(kb.types[[obj]].indices.tolist())))
        if name not in spaces:
            members[name] = of_same_type(kb, obj)
            named = [e for e in members[name].tolist() if kb.labels[e]]
            texts = [[f" {label}{ending}" for label in kb.labels[e]] for e in named]
            spaces[name] = dict(zip(kb.keys[named], texts, strict=True))
        barred = np.isin(excluded(kb, subject, relation, obj), members[name]).sum()
        place[fact] = (name, n + int(barred) + len(kb.labels[obj]))
    asked = prompts[prompts["fact"].isin(place)]
    space, wanted = ([place[fact][i] for fact in asked["fact"]] for i in (0, 1))
    return asked.assign(space=space, wanted=wanted), spaces


def allowed(kb: Knowledge, facts: pd.DataFrame, found: pd.DataFrame, n: int, by: str = "logprob"):
    """The first ``n`` candidates of ``store.search`` that belong to Omega, ranked from 1.
    ``by``: "logprob": by plausibility (Eq. 4); "label_logprob": by the best label, as in a beam."""
    numbers = zip(facts["fact"], rows(kb, facts), strict=True)
    barred = {fact: set(kb.keys[excluded(kb, *own)]) for fact, own in numbers}
    keep = [c not in barred[f] for f, c in zip(found["fact"], found["candidate"], strict=True)]
    kept = found[keep].sort_values(["prompt", by], ascending=[True, False], kind="stable")
    kept = kept.assign(rank=kept.groupby("prompt", sort=False).cumcount() + 1)
    return kept[kept["rank"] <= n].reset_index(drop=True)


def candidates(kb: Knowledge, facts: pd.DataFrame, lists: Iterable[pd.DataFrame], ending: str = ""):
    """The candidates of ``store.score``: every object and every distractor of its fact, one row per
    label: ``fact``, ``candidate``, ``label``."""
    pairs = facts[["fact", "object"]].set_axis(["fact", "candidate"], axis=1)
    pairs = pd.concat([pairs, *(own[["fact", "candidate"]] for own in lists)]).drop_duplicates()
    place = {fact: i for i, fact in enumerate(facts["fact"])}
    pairs = pairs.assign(place=pairs["fact"].map(place))
    pairs = pairs.sort_values(["place", "candidate"], kind="stable").drop(columns="place")
    entities = kb.keys.get_indexer(pairs["candidate"])
    pairs["label"] = [[f"{label}{ending}" for label in kb.labels[e]] for e in entities]
    return pairs.explode("label").dropna().reset_index(drop=True)
