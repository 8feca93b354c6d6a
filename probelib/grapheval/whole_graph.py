"""A whole knowledge graph read by judges (GraphEval, step 3): millions of statements, one forward
each, in parts. A part is a range of the graph's rows, written once, when it is complete; its name
contains a key of everything that changes a number. A killed run resumes with the first missing part
and ends with the same bytes.
"""

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
from tqdm import tqdm

from probelib import facts, files, store
from probelib.errors import ProbeError, check_sizes
from probelib.facts.formats import read_pageviews
from probelib.facts.graphs import graph as graphs
from probelib.facts.graphs.corruptions import Spelled, askable, corruptions, spelled
from probelib.facts.graphs.dumps import read_dbpedia
from probelib.facts.graphs.graph import SLOTS, Graph
from probelib.facts.model import rng
from probelib.facts.table import read_table
from probelib.grapheval.measures import TYPED, by_type, likeliest_answers
from probelib.lm.version import scoring
from probelib.prompts import fill

if TYPE_CHECKING:  # torch takes seconds to import
    from probelib.grapheval.judge import Judge, Reader

DEFAULT_TEMPLATE = "The {relation} of [X] is [Y]."
PART = 20_000  # triples
ANSWERS = ("true", "false", "idk")


@dataclass(frozen=True)
class VerbalizedGraph:
    """A graph whose triples can be written as statements: they hold today, have labels, and a
    template for their relation."""

    graph: Graph
    known: Graph  # all triples of these relations: no corruption is one
    templates: list[str]  # [relations], with [X] and [Y]
    left_out: pd.DataFrame  # what cannot be evaluated: ``reason``, ``relation``, ``triples``
    triples: int  # of the source

    @property
    def coverage(self) -> float:
        """Share of the triples that can be evaluated."""
        return 1 - int(self.left_out["triples"].sum()) / self.triples


@dataclass(frozen=True)
class Pass:
    """How judges read a graph."""

    n_corrupted: int = 1  # corruptions per triple, seeded by its row
    hard: bool = False  # see ``graphs.corruptions.corrupt``
    seed: int = 0
    size: int = PART  # triples per part
    most: int | None = None  # parts to compute in this call; None: all


def open_verbalized(
    source: str, folder: Path, templates: str | None = None, n_triples=None, seed: int = 0
) -> VerbalizedGraph:
    """Load a graph by name (``load_graph``) and verbalize it. Relations without a template get
    ``DEFAULT_TEMPLATE`` if neither the graph nor the table ``templates`` (a file) has any."""
    graph, known = load_graph(source, folder)
    if templates:
        known = read_table(Path(templates).expanduser(), needed=("relation", "template"))
    return verbalize(graph, known, None if len(known) else DEFAULT_TEMPLATE, n_triples, seed)


def load_graph(source: str, folder: Path | None = None) -> tuple[Graph, pd.DataFrame]:
    """A graph ("atlas"; "table:FACTS.csv"; a graph's folder; a DBpedia dump, which is read into
    ``folder``, with the dumps instance-types* beside it), and the templates that it brings
    (``relation``, ``template``; may be empty)."""
    graphs.check_source(source)
    if source == "atlas" or source.startswith("table:"):
        data, _, table = source.partition(":")
        known = facts.load(data, table or None, n_facts="all", n_distractors=0)
        one = (known.templates["role"] == "statement") & (known.templates["number"] == 1)
        rows = known.templates.loc[one, ["relation", "template"]]
        return graphs.from_facts(known), rows.reset_index(drop=True)
    if Path(source).is_dir():
        graph = graphs.open_graph(source)
    elif folder is None:
        raise ProbeError(f"{source}: a dump is read into a folder; give folder=...")
    else:
        graph = read_dbpedia(source, folder, sorted(Path(source).parent.glob("instance-types*")))
    return graph, pd.DataFrame(columns=["relation", "template"])


def verbalize(
    graph: Graph, templates: pd.DataFrame, default_template=None, n_triples=None, seed: int = 0
) -> VerbalizedGraph:
    """Select the triples of a graph that can be written as true statements; count the others.

    templates         ``relation`` (key or label), ``template`` with [X] and [Y] ({head}, {tail})
    default_template  for relations without one, e.g. ``DEFAULT_TEMPLATE``; None: they are left out
    n_triples         number of triples to draw from these with ``seed`` (None: all)
    """
    if n_triples is not None:
        check_sizes(n_triples=n_triples)
    rows = templates[["relation", "template"]]
    if len(twice := rows["relation"][rows["relation"].duplicated()]):
        raise ProbeError(f"relation {twice.iloc[0]!r} has two templates; give one")
    known, own = _slotted(dict(rows.itertuples(index=False))), []
    keys, labels = (graph.relations[c].to_pylist() for c in ("relation", "label"))
    for key, label in zip(keys, labels, strict=True):
        template = known.get(key) or known.get(label)
        if default_template and not template:
            template = _slotted({key: default_template.replace("{relation}", label or key)})[key]
        own.append(template)
    sayable = np.array([t is not None for t in own], dtype=bool)
    keep, reasons = np.ones(len(graph), bool), []
    filters = {"relation without a template": sayable[graph.relation]} | askable(graph)
    for reason, good in filters.items():
        counts = np.bincount(graph.relation[keep & ~good], minlength=len(keys))
        reasons += [(reason, keys[r], int(counts[r])) for r in np.flatnonzero(counts)]
        keep &= good
    left_out = pd.DataFrame(reasons, columns=["reason", "relation", "triples"])
    if not keep.any():
        counts = left_out.groupby("reason")["triples"].sum().to_dict()
        raise ProbeError(f"none of the {len(graph)} triples can be evaluated: {counts}")
    if n_triples is not None:
        keep[rng(seed, "triples").permutation(np.flatnonzero(keep))[n_triples:]] = False
    parts = (_reduced(graph, mask, sayable) for mask in (keep, sayable[graph.relation]))
    return VerbalizedGraph(*parts, [t for t in own if t is not None], left_out, len(graph))


def _slotted(templates: dict[str, str]) -> dict[str, str]:
    """Templates by relation with [X] and [Y], each once."""
    found = {}
    for relation, template in templates.items():
        slots = template.replace("{head}", "[X]").replace("{tail}", "[Y]")
        if slots.count("[X]") != 1 or slots.count("[Y]") != 1:
            needed = "must hold one [X] ({head}) and one [Y] ({tail})"
            raise ProbeError(f"relation {relation!r}: the template {template!r} {needed}")
        found[relation] = slots
    return found


def _reduced(graph: Graph, keep: np.ndarray, relations: np.ndarray) -> Graph:
    """The graph with a subset of its triples and relations; itself if all are kept."""
    if keep.all() and relations.all():
        return graph
    number = np.cumsum(relations) - 1  # new row number of each relation
    triples = {"head": graph.head[keep], "relation": number[graph.relation[keep]]}
    table = graphs.make_table("triples", triples | {"tail": graph.tail[keep]})
    return replace(graph, triples=table, relations=graph.relations.filter(pa.array(relations)))


def provenance(kg: VerbalizedGraph, sample: pd.DataFrame) -> dict:
    """What the records of a notebook say of the triples of a ``sample_statements``."""
    triples = sample["triple"].unique()
    digest = files.sha256("\n".join(sample["text"]).encode())[:16]
    about = {"source": kg.graph.about["source"], "digest": digest, "facts": len(triples)}
    return about | {"relations": len(np.unique(kg.graph.relation[triples]))}


def to_statements(kg: VerbalizedGraph, triples: pd.DataFrame) -> list[str]:
    """Triples (``head``, ``relation``, ``tail``: row numbers) as sentences."""
    label = kg.graph.entities["label"]
    ends = (label.take(pa.array(triples[c].to_numpy())).to_pylist() for c in ("head", "tail"))
    rows = zip(triples["relation"].tolist(), *ends, strict=True)
    return [fill(kg.templates[r], head, tail) for r, head, tail in rows]


def sample_statements(kg: VerbalizedGraph, n: int, n_corrupted=1, hard=False, seed=0):
    """Sample ``n`` triples uniformly (all, if there are fewer), to be labelled, and the
    ``n_corrupted`` corruptions of each that ``judge_graph`` reads with the same seed.

    Return one row per statement: ``prompt`` (its id), ``triple``, ``negative``, ``relation`` (key
    of the triple's own), ``slot``, ``true``, ``text``, ``split`` ("train", or "validation" for 30 %
    of the triples, drawn with seed 42; a triple and its corruptions are in the same split).
    """
    check_sizes(n_labels=n)
    rows = np.sort(rng(seed, "labels").permutation(len(kg.graph))[:n])
    frame = _with_corruptions(kg.graph, rows, Pass(n_corrupted, hard, seed), spelled(kg.known))
    held = rng(42, "split").permutation(rows)[: round(0.3 * len(rows))]
    keys = np.array(kg.graph.relations["relation"].to_pylist(), dtype=object)
    frame = frame.assign(
        prompt=frame["triple"].astype(str) + "." + frame["negative"].astype(str),
        text=to_statements(kg, frame),
        relation=keys[kg.graph.relation[frame["triple"]]],
        true=frame["negative"] == 0,
        split=np.where(frame["triple"].isin(held), "validation", "train"),
    )
    return frame[["prompt", "triple", "negative", "relation", "slot", "true", "text", "split"]]


def _with_corruptions(graph: Graph, rows: np.ndarray, how: Pass, read: Spelled) -> pd.DataFrame:
    """Triples and their corruptions: ``triple``, SLOTS, ``slot``, ``negative``."""
    slots = {slot: getattr(graph, slot)[rows] for slot in SLOTS}
    true = pd.DataFrame({"triple": rows, **slots, "slot": -1, "negative": 0})
    false = corruptions(graph, rows, how.n_corrupted, how.hard, how.seed, read)
    false["negative"] = false.groupby("triple").cumcount() + 1
    return pd.concat([true, false], ignore_index=True)


def judge_graph(
    readers: dict[str, "Reader"], judges: dict[str, "Judge"], kg: VerbalizedGraph, folder, **how
) -> dict[str, list[store.Part]]:
    """Predict every model's answers to every triple of a graph and to its corruptions, and return
    the parts by model. Only missing parts are computed; judges with one reader share a forward.

    readers, judges  by model;  how: fields of ``Pass``

    A part holds ``triple`` and ``relation`` (row numbers in ``kg.graph``), ``negative`` (0: the
    triple itself, 1..: its corruptions), ``slot`` (what was replaced: 0 head, 1 relation, 2 tail;
    -1 nothing) and, for each model, ``<model>|true``, ``<model>|false``, ``<model>|idk``.
    """
    from probelib.grapheval.judge import check

    how, n, runs = Pass(**how), len(kg.graph), {}
    digests = "".join(dict.fromkeys(map(graph_digest, (kg.graph, kg.known))))
    ranges = [(first, min(first + how.size, n)) for first in range(0, n, how.size)]
    for reader in dict.fromkeys(readers.values()):
        own = {model: judges[model] for model, its in readers.items() if its is reader}
        for judge in own.values():
            check(judge, reader)
        judged = {model: judge.digest() for model, judge in own.items()}
        options = [how.n_corrupted, how.hard, how.seed]
        what = [scoring(), reader.identity(), judged, kg.templates, digests, *options]
        key = files.sha256(json.dumps(what, sort_keys=True).encode())[:16]
        home = folder / f"{files.slug(reader.model.name)}-{key}"
        parts = [store.Part(home / f"{a:010d}-{b:010d}.parquet", f"{a}-{b}") for a, b in ranges]
        runs |= dict.fromkeys(own, parts)
        missing = [i for i, part in enumerate(parts) if not part.finished()]
        read = spelled(kg.known) if missing else None
        done = n - sum(ranges[i][1] - ranges[i][0] for i in missing)
        look = {"desc": reader.model.name, "unit": " facts", "unit_scale": True}
        with tqdm(total=n, initial=done, disable=not missing, **look) as bar:
            for i in missing[: how.most]:
                rows = np.arange(*ranges[i])
                store.write(parts[i], *_compute(rows, reader, own, kg, how, read))
                bar.update(len(rows))
    return {model: runs[model] for model in readers}


def _compute(rows, reader, judges, kg: VerbalizedGraph, how: Pass, read: Spelled):
    """The content of a part and its record."""
    from probelib.grapheval.judge import predict

    started = time.perf_counter()
    frame = _with_corruptions(kg.graph, rows, how, read)
    states, cost = reader.states(to_statements(kg, frame))  # [statements, D]
    kinds = {"triple": np.int32, "negative": np.int8, "slot": np.int8}
    kept = frame[list(kinds)].astype(kinds)
    kept["relation"] = kg.graph.relation[frame["triple"]].astype(np.int32)
    for name, judge in judges.items():
        probabilities = predict(judge, states, frame["negative"] == 0)
        kept[[f"{name}|{answer}" for answer in ANSWERS]] = probabilities.astype(np.float32)
    cost = cost | {"statements": len(frame), "seconds": time.perf_counter() - started}
    return kept, {"cost": cost, "model": reader.model.identity()}


def graph_digest(graph: Graph) -> str:
    """16 hex digits of a graph's triples, labels and relations, independent of its folder."""
    columns = [graph.triples[slot] for slot in SLOTS] + [graph.entities["label"]]
    columns += [graph.relations[c] for c in ("relation", "label")]
    hashes = [pd.util.hash_array(column.to_pandas().to_numpy()) for column in columns]
    return files.sha256(b"".join(own.tobytes() for own in hashes))[:16]


def graph_answers(runs: dict[str, list[store.Part]]) -> pd.DataFrame:
    """The judges' answers in finished parts (model -> parts): ``model``, ``triple``, ``negative``,
    ``relation``, ``slot``, ``answer`` (``likeliest_answers``), ``probability`` (the largest)."""
    frames, rows = [], ["triple", "negative", "relation", "slot"]
    for model, parts in runs.items():
        columns = [f"{model}|{answer}" for answer in ANSWERS]
        for part in parts:
            if not part.finished():
                raise ProbeError(f"{part.path} is not finished: run judge_graph() to completion")
            table = pyarrow.parquet.read_table(part.path, columns=[*rows, *columns]).to_pandas()
            p = table[columns].to_numpy()
            known = {"answer": likeliest_answers(p), "probability": p.max(axis=1), "model": model}
            frames.append(table[rows].assign(**known))
    return pd.concat(frames, ignore_index=True)


def scores_by_type(kg: VerbalizedGraph, scored: pd.DataFrame, seed: int = 0, metrics=TYPED):
    """``measures.by_type`` per model, for heads and for tails, with ``model`` and ``side``.
    ``scored``: ``measures.score_triples`` of ``graph_answers``."""
    types, frames = graphs.relation_types(kg.graph), []
    keys = np.array(kg.graph.relations["relation"].to_pylist(), dtype=object)
    groups = scored.assign(relation=keys[scored["relation"]]).groupby("model", sort=False)
    for model, rows in groups:
        for side in ("head", "tail"):
            typed = by_type(rows, types, side, seed, metrics)
            frames.append(typed.assign(model=model, side=side))
    return pd.concat(frames, ignore_index=True)


def most_frequent(kg: VerbalizedGraph, n: int = 30) -> pd.DataFrame:
    """The ``n`` most frequent relations (table 5): ``relation``, ``name``, ``template``, ``count``,
    ``percent`` (of the triples); the index is the row number of the relation in the graph."""
    keys, names = (kg.graph.relations[column].to_pylist() for column in ("relation", "label"))
    counts = np.bincount(kg.graph.relation, minlength=len(keys))
    columns = {"relation": keys, "name": names, "template": kg.templates, "count": counts}
    columns["percent"] = 100 * counts / len(kg.graph)
    return pd.DataFrame(columns).sort_values(["count", "relation"], ascending=[False, True]).head(n)


def samples_for_template(kg: VerbalizedGraph) -> list[tuple]:
    """Three triples of each of the four most frequent relations: (relation, pairs of names,
    template with {head} and {tail})."""
    samples, label = [], kg.graph.entities["label"]
    for row, relation in most_frequent(kg, 4).iterrows():
        own = np.flatnonzero(kg.graph.relation == row)[:3]
        ends = (kg.graph.head[own], kg.graph.tail[own])
        ends = (label.take(pa.array(end)).to_pylist() for end in ends)
        template = relation["template"].replace("[X]", "{head}").replace("[Y]", "{tail}")
        samples.append((str(relation["name"]), list(zip(*ends, strict=True)), template))
    return samples


def about_triples(kg: VerbalizedGraph, source: str, pageviews: str | None = None, taught=None):
    """One row per triple of ``kg.graph`` (figure 8): ``D`` and, if known, ``P`` and ``E``.

    D  mean degree of head and tail
    P  mean popularity of head and tail, of one of them if only one is known, NaN if neither is:
       page views if a file is given; else, for the atlas, its authors' estimate from 1 to 5
    E  exposures of the fact (``taught``: ``organisms.taught.manifest``), only for the atlas; those
       of a fact that held twice are summed
    """
    graph, degree = kg.graph, graphs.degrees(kg.known)
    mean = lambda of: pd.DataFrame([of[graph.head], of[graph.tail]]).mean()
    entity, label = (graph.entities[column].to_pylist() for column in ("entity", "label"))
    popularity = np.full(len(entity), np.nan)
    if pageviews:
        views = read_pageviews(Path(pageviews).expanduser())
        popularity = views.reindex(label).to_numpy(dtype=float)
    elif source == "atlas":
        known = facts.atlas().entities.set_index("entity")["popularity"].replace(0, np.nan)
        popularity = known.reindex(entity).to_numpy(dtype=float)
    about = pd.DataFrame({"D": mean(degree), "P": mean(popularity)})
    if source == "atlas" and taught is not None:
        counts = taught.groupby(["relation", "subject", "object"])["exposures"].sum()
        names = np.array(entity, dtype=object)
        relation = np.array(graph.relations["relation"].to_pylist(), dtype=object)[graph.relation]
        triples = zip(relation, names[graph.head], names[graph.tail], strict=True)
        about["E"] = counts.reindex(list(triples)).to_numpy()
    return about.dropna(axis=1, how="all")
