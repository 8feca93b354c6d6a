"""A whole knowledge graph read by judges (GraphEval, step 3): millions of statements, one forward each.

    triples of a part -> corruptions -> statements -> hidden states -> answers of the judges -> a part on disk

A part is a range of the graph's rows. It is written once, under its final name, when it is complete; its name contains a key
of everything that changes a number. A killed run resumes with the first missing part and ends with the same bytes. Memory is
needed for one part and for the graph's index only, whatever the size of the graph.
"""

import hashlib
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
from tqdm.auto import tqdm

from probelib import facts, files, store
from probelib.errors import ProbeError, check_sizes
from probelib.facts.graphs.corruptions import Spelled, askable, corruptions, spelled
from probelib.facts.graphs.graph import (
    SLOTS,
    SYNTHETIC,
    Graph,
    check_source,
    from_facts,
    make_table,
    open_graph,
    relation_types,
    synthetic,
)
from probelib.facts.model import rng
from probelib.grapheval.measures import TYPED, by_type, eq2
from probelib.lm.version import scoring
from probelib.prompts import statement

if TYPE_CHECKING:  # torch takes seconds to import
    from probelib.grapheval.judge import Judge, Reader

PART = 20_000  # triples
DEFAULT_TEMPLATE = "The {relation} of [X] is [Y]."
ANSWERS = ("true", "false", "idk")


# From a graph to statements


@dataclass(frozen=True)
class VerbalizedGraph:
    """A graph whose triples can be written as statements: they hold today, and have labels and a template for their relation.

    graph      the triples that are evaluated, and the relations that have a template
    known      all triples of these relations, including those that cannot be evaluated: no corruption is one of them
    templates  [relations], with [X] and [Y]
    left_out   ``reason``, ``relation``, ``triples``: what of the source cannot be evaluated
    triples    number of triples of the source
    """

    graph: Graph
    known: Graph
    templates: list[str]
    left_out: pd.DataFrame
    triples: int

    @property
    def coverage(self) -> float:
        """Share of the triples that can be evaluated."""
        return 1 - int(self.left_out["triples"].sum()) / self.triples


def open_verbalized(
    source: str, folder: Path, templates: str | None = None, n_triples: int | None = None, seed: int = 0
) -> VerbalizedGraph:
    """Load a graph by name (``load_graph``) and verbalize it. Relations without a template get ``DEFAULT_TEMPLATE`` if neither
    the graph nor the file ``templates`` (CSV: relation, template) has any."""
    graph, known = load_graph(source, folder, seed)
    known = pd.read_csv(Path(templates).expanduser()) if templates else known
    return verbalize(graph, known, None if len(known) else DEFAULT_TEMPLATE, n_triples, seed)


def load_graph(source: str = "atlas", folder: str | Path | None = None, seed: int = 0) -> tuple[Graph, pd.DataFrame]:
    """Load a graph by name, and the statement templates that come with it (``relation``, ``template``; may be empty).

    source     "atlas" (the shipped facts that hold today); "synthetic:100000" (generated triples); the folder of a graph
               (``graph.write_graph``); or a DBpedia dump (.ttl, .nt, also .bz2 and .gz), read into ``folder``
    seed       of the generated triples
    """
    check_source(source)
    templates = pd.DataFrame(columns=["relation", "template"])
    if source == "atlas":
        known = facts.load(n_facts="all", n_distractors=0)
        rows = known.templates[(known.templates["role"] == "statement") & (known.templates["number"] == 1)]
        graph, templates = from_facts(known), rows[["relation", "template"]].reset_index(drop=True)
    elif source.startswith(SYNTHETIC):
        graph = synthetic(int(source.removeprefix(SYNTHETIC)), seed=seed)
    elif Path(source).is_dir():
        graph = open_graph(source)
    else:
        if folder is None:
            raise ProbeError(f"{source}: a dump is read into a folder; give folder=...")
        from probelib.facts.graphs.dbpedia import read_dbpedia

        graph = read_dbpedia(source, folder)
    return graph, templates


def verbalize(
    graph: Graph,
    templates: pd.DataFrame,
    default_template: str | None = None,
    n_triples: int | None = None,
    seed: int = 0,
) -> VerbalizedGraph:
    """Select the triples of a graph that can be written as true statements; name and count the others.

    templates         ``relation`` (key or label), ``template`` with [X] and [Y] or with {head} and {tail}
    default_template  for relations without one, e.g. ``DEFAULT_TEMPLATE``; None: they are left out
    n_triples         number of triples to draw from these with ``seed`` (None: all)
    """
    if n_triples is not None:
        check_sizes(n_triples=n_triples)
    own = _templates_of(graph, templates, default_template)
    has_template = np.array([t is not None for t in own], dtype=bool)
    filters = {"relation without a template": has_template[graph.relation]} | askable(graph)
    keep, left_out = _apply(graph, filters)
    if not keep.any():
        reasons = left_out.groupby("reason")["triples"].sum().to_dict()
        raise ProbeError(f"none of the {len(graph)} triples can be evaluated: {reasons}")
    if n_triples is not None:
        keep[rng(seed, "triples").permutation(np.flatnonzero(keep))[n_triples:]] = False
    parts = (_reduced(graph, mask, has_template) for mask in (keep, has_template[graph.relation]))
    return VerbalizedGraph(*parts, [t for t in own if t is not None], left_out, len(graph))


def _templates_of(graph: Graph, templates: pd.DataFrame, default: str | None) -> list[str | None]:
    """The template of each relation of the graph."""
    known = {r: _with_slots(r, t) for r, t in templates[["relation", "template"]].itertuples(index=False)}
    keys, labels = graph.relations["relation"].to_pylist(), graph.relations["label"].to_pylist()
    own = [known.get(key) or known.get(label) for key, label in zip(keys, labels, strict=True)]
    if not default:
        return own
    filled = [default.replace("{relation}", label or key) for key, label in zip(keys, labels, strict=True)]
    return [template or _with_slots("default", other) for template, other in zip(own, filled, strict=True)]


def _apply(graph: Graph, filters: dict[str, np.ndarray]) -> tuple[np.ndarray, pd.DataFrame]:
    """Which triples pass all filters, (triples,) bool, and the number that each filter leaves out, by relation."""
    keys = graph.relations["relation"].to_pylist()
    keep, rows = np.ones(len(graph), bool), []
    for reason, good in filters.items():
        counts = np.bincount(graph.relation[keep & ~good], minlength=len(keys))
        rows += [(reason, keys[r], int(counts[r])) for r in np.flatnonzero(counts)]
        keep &= good
    return keep, pd.DataFrame(rows, columns=["reason", "relation", "triples"])


def _with_slots(relation: str, template: str) -> str:
    """A template with [X] and [Y], each once."""
    template = template.replace("{head}", "[X]").replace("{tail}", "[Y]")
    if template.count("[X]") != 1 or template.count("[Y]") != 1:
        raise ProbeError(
            f"relation {relation!r}: the template {template!r} must hold one [X] ({{head}}) and one [Y] ({{tail}})"
        )
    return template


def _reduced(graph: Graph, keep: np.ndarray, relations: np.ndarray) -> Graph:
    """The graph with a subset of its triples and relations; entities stay. The graph itself if all are kept."""
    if keep.all() and relations.all():
        return graph
    number = np.cumsum(relations) - 1  # new row number of each relation
    triples = {"head": graph.head[keep], "relation": number[graph.relation[keep]], "tail": graph.tail[keep]}
    return replace(graph, triples=make_table("triples", triples), relations=graph.relations.filter(pa.array(relations)))


def to_statements(kg: VerbalizedGraph, triples: pd.DataFrame) -> list[str]:
    """Triples (``head``, ``relation``, ``tail``: row numbers) as sentences."""
    names = [kg.graph.entities["label"].take(pa.array(triples[c].to_numpy())).to_pylist() for c in ("head", "tail")]
    return [statement(kg.templates[r], h, t) for r, h, t in zip(triples["relation"].tolist(), *names, strict=True)]


def sample_statements(
    kg: VerbalizedGraph, n: int, n_corrupted: int = 1, hard: bool = False, seed: int = 0
) -> pd.DataFrame:
    """Sample ``n`` triples uniformly, and ``n_corrupted`` corruptions of each: the statements to be labelled.

    returns  one row per statement: ``prompt`` (its id), ``triple``, ``negative``, ``relation`` (key of the triple's own),
             ``slot``, ``true``, ``text``, ``split`` ("train", or "validation" for 30 % of the triples, drawn with seed 42; a
             triple and its corruptions are in the same split)

    The corruptions are those of ``judge_triples`` with the same seed, so that its rows can be compared with these.
    """
    if not 0 < n <= len(kg.graph):
        raise ProbeError(
            f"{n} triples to label: a number from 1 to {len(kg.graph)}, the triples of the graph, is needed"
        )
    rows = np.sort(rng(seed, "labels").permutation(len(kg.graph))[:n])
    frame = _with_corruptions(kg.graph, rows, n_corrupted, hard, seed, spelled(kg.known))
    held = rng(42, "split").permutation(rows)[: round(0.3 * len(rows))]
    keys = np.array(kg.graph.relations["relation"].to_pylist(), dtype=object)
    return pd.DataFrame(
        {
            "prompt": [f"{t}.{k}" for t, k in zip(frame["triple"], frame["negative"], strict=True)],
            "triple": frame["triple"],
            "negative": frame["negative"],
            "relation": keys[kg.graph.relation[frame["triple"]]],
            "slot": frame["slot"],
            "true": frame["negative"] == 0,
            "text": to_statements(kg, frame),
            "split": np.where(frame["triple"].isin(held), "validation", "train"),
        }
    )


def _with_corruptions(graph: Graph, rows: np.ndarray, n: int, hard: bool, seed: int, read: Spelled) -> pd.DataFrame:
    """Triples and ``n`` corruptions of each: ``triple``, ``head``, ``relation``, ``tail``, ``slot``, ``negative``."""
    slots = {slot: getattr(graph, slot)[rows] for slot in SLOTS}
    true = pd.DataFrame({"triple": rows, **slots, "slot": -1, "negative": 0})
    false = corruptions(graph, rows, n, hard, seed, read)
    false["negative"] = false.groupby("triple").cumcount() + 1
    return pd.concat([true, false], ignore_index=True)


# From statements to answers on disk


def judge_graph(
    readers: dict[str, "Reader"], judges: dict[str, "Judge"], kg: VerbalizedGraph, folder: Path, **options
) -> dict[str, list[store.Part]]:
    """Let every model's judge read the whole graph; return the finished parts by model. Judges with one reader share a pass.

    readers, judges  by model;  options: of ``judge_triples``
    """
    runs = {}
    for reader in dict.fromkeys(readers.values()):
        models = [model for model, own in readers.items() if own is reader]
        parts = judge_triples(reader, {model: judges[model] for model in models}, kg, folder, **options)
        runs |= dict.fromkeys(models, parts)
    return {model: runs[model] for model in readers}


def judge_triples(
    reader: "Reader",
    judges: dict[str, "Judge"],
    kg: VerbalizedGraph,
    folder: Path,
    n_corrupted: int = 1,
    hard: bool = False,
    seed: int = 0,
    size: int = PART,
    most: int | None = None,
) -> list[store.Part]:
    """Predict the answers to every triple of a graph and to its corruptions; only missing parts are computed.

    reader       reads the states that the judges were trained on
    judges       name -> judge: one forward serves them all
    n_corrupted  corruptions per triple, seeded by its row; ``hard``: see ``graph.corrupt``
    size         triples per part
    most         parts to compute in this call (None: all): the next call resumes

    A part holds ``triple`` (row number in ``kg.graph``), ``negative`` (0: the triple itself, 1..: its corruptions),
    ``relation`` (row number of the triple's own), ``slot`` (what was replaced: 0 head, 1 relation, 2 tail; -1 nothing) and, per
    judge, the probabilities of its answers: ``<name>|true``, ``<name>|false``, ``<name>|idk``.
    """
    from probelib.grapheval.judge import check

    for judge in judges.values():
        check(judge, reader)
    home = folder / f"{files.slug(reader.model.name)}-{_run_key(reader, judges, kg, [n_corrupted, hard, seed])}"
    n = len(kg.graph)
    ranges = [(first, min(first + size, n)) for first in range(0, n, size)]
    parts = [store.Part(home / f"{first:010d}-{last:010d}.parquet", str(first)) for first, last in ranges]
    unfinished = [part for part in parts if not part.finished()]
    missing, done = unfinished[:most], n - sum(map(_n_triples, unfinished))
    bar = tqdm(total=n, initial=done, desc=reader.model.name, unit=" facts", unit_scale=True, disable=not missing)
    read = spelled(kg.known) if missing else None
    with bar:
        for part in missing:
            store.write(part, *_compute(part, reader, judges, kg, read, n_corrupted, hard, seed))
            bar.update(_n_triples(part))
    return parts


def _run_key(reader: "Reader", judges: dict[str, "Judge"], kg: VerbalizedGraph, options: list) -> str:
    """16 hex digits of everything that changes a number of a run."""
    from probelib.grapheval.judge import judge_digest

    judged = {name: judge_digest(judge) for name, judge in judges.items()}
    what = [scoring(), reader.identity(), judged, kg.templates]
    triples = "".join(dict.fromkeys(map(graph_digest, (kg.graph, kg.known))))
    return files.sha256(json.dumps([*what, triples, *options], sort_keys=True).encode())[:16]


def _n_triples(part: store.Part) -> int:
    first, last = map(int, part.path.stem.split("-"))
    return last - first


def _compute(part, reader, judges, kg: VerbalizedGraph, read: Spelled, n_corrupted: int, hard: bool, seed: int):
    """The rows of a part and their cost: seconds in total and in the model's forward, statements, forwarded tokens."""
    from probelib.grapheval.judge import predict

    started = time.perf_counter()
    rows = np.arange(*map(int, part.path.stem.split("-")))
    frame = _with_corruptions(kg.graph, rows, n_corrupted, hard, seed, read)
    states, cost = reader.states(to_statements(kg, frame))  # [statements, D]
    kept = frame[["triple", "negative", "slot"]].astype({"triple": np.int32, "negative": np.int8, "slot": np.int8})
    kept["relation"] = kg.graph.relation[frame["triple"]].astype(np.int32)
    for name, judge in judges.items():
        probabilities = predict(judge, states, frame["negative"] == 0)
        kept[[f"{name}|{answer}" for answer in ANSWERS]] = probabilities.astype(np.float32)
    cost = cost | {"statements": len(frame), "seconds": time.perf_counter() - started}
    return kept, {"cost": cost, "model": reader.model.identity()}


def graph_digest(graph: Graph) -> str:
    """16 hex digits of a graph's triples, labels and relations, independent of its folder."""
    sha = hashlib.sha256()
    columns = [graph.triples[slot] for slot in SLOTS] + [graph.entities["label"]]
    for column in columns + [graph.relations[c] for c in ("relation", "label")]:
        for chunk in column.chunks:
            sha.update(f"{chunk.type} {chunk.offset} {len(chunk)}".encode())
            for buffer in filter(None, chunk.buffers()):
                sha.update(buffer)
    return sha.hexdigest()[:16]


# Reading the parts


def judged_answers(part: store.Part, name: str) -> pd.DataFrame:
    """A judge's answers in a part: ``triple``, ``negative``, ``relation``, ``slot``, ``answer``, ``probability`` (of it)."""
    if not part.finished():
        raise ProbeError(
            f"{part.path} is not finished: some triples are not evaluated. Run judge_triples() to completion"
        )
    columns = [f"{name}|{answer}" for answer in ANSWERS]
    rows = ["triple", "negative", "relation", "slot"]
    frame = pyarrow.parquet.read_table(part.path, columns=[*rows, *columns]).to_pandas()
    probabilities = frame[columns].to_numpy()
    return frame[rows].assign(answer=probabilities.argmax(axis=1), probability=probabilities.max(axis=1))


def judged_scores(
    parts: Iterable[store.Part], name: str, variant: str = "intended", **options
) -> Iterator[pd.DataFrame]:
    """Eq. 2 of every triple, part by part (a triple and its corruptions are in one part): the columns of ``measures.eq2`` and
    ``relation`` (row number). Concatenate them if they fit in memory, else sum them."""
    for part in parts:
        answers = judged_answers(part, name)
        relation = answers[answers["negative"] == 0].set_index("triple")["relation"]
        frame = eq2(answers, variant, **options)
        yield frame.assign(relation=frame["triple"].map(relation))


def graph_answers(runs: dict[str, list[store.Part]]) -> pd.DataFrame:
    """``judged_answers`` of all parts and models, with ``model``."""
    frames = [judged_answers(part, model).assign(model=model) for model, parts in runs.items() for part in parts]
    return pd.concat(frames, ignore_index=True)


def graph_scores(runs: dict[str, list[store.Part]], variant: str = "intended", **options) -> pd.DataFrame:
    """``judged_scores`` of all parts and models, with ``model``."""
    frames = [
        scores.assign(model=model)
        for model, parts in runs.items()
        for scores in judged_scores(parts, model, variant, **options)
    ]
    return pd.concat(frames, ignore_index=True)


def scores_by_type(
    kg: VerbalizedGraph, scored: pd.DataFrame, seed: int = 0, metrics: tuple[str, ...] = TYPED
) -> pd.DataFrame:
    """``measures.by_type`` per model, for heads and for tails: with ``model`` and ``side``.

    scored  ``graph_scores``
    """
    types = relation_types(kg.graph)
    keys = np.array(kg.graph.relations["relation"].to_pylist(), dtype=object)
    frames = [
        by_type(rows, types, side, seed=seed, metrics=metrics).assign(model=model, side=side)
        for model, rows in scored.assign(relation=keys[scored["relation"]]).groupby("model", sort=False)
        for side in ("head", "tail")
    ]
    return pd.concat(frames, ignore_index=True)
