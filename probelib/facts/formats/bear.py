"""BEAR (Wiland et al. 2024 [bear]), and the scores that lm-pub-quiz computes on it.

The data set, a folder with ``metadata_relations.json`` and one JSON Lines file per relation (``P36.jsonl``), one fact per line:

    {"P36": {"templates": ["The capital of [X] is [Y].", ...], "answer_space_labels": ["Kolkata", ...],
             "answer_space_ids": ["Q1348", ...]}, ...}

    {"sub_id": "Q1356", "sub_label": "West Bengal", "sub_aliases": ["WB"], "obj_id": "Q1348", "obj_label": "Kolkata",
     "answer_idx": 0}

The results, a folder with ``metadata_results.json`` (the same per relation, and ``model_name_or_path``, ``reduction``,
``template_index``) and one JSON Lines file per relation (``P36_results.jsonl``) with one score per candidate, in the order of the
answer space:

    {"instance": 3, "sub_id": "Q1356", "sub_label": "West Bengal", "answer_idx": 0, "pll_scores": [-28.07, -35.06, ...]}
"""

from pathlib import Path

import pandas as pd

from probelib.errors import ProbeError, unknown
from probelib.facts.formats.tables import Entity, Triple, assemble, statements
from probelib.facts.model import Facts
from probelib.facts.text import check_object, check_texts, is_a, read_json, read_objects, relation_files

FACT = ("sub_id", "sub_label", "obj_id", "obj_label")
RESULTS = ["model", "relation", "template", "fact", "subject", "subject_label", "gold", "candidate", "label", "logprob"]


def read_bear(folder: str | Path, relations: list[str] | None = None) -> Facts:
    """The facts of BEAR (or of BEAR-big); every other member of the answer space is a distractor of the fact, in its order.

    relations   the ones to read (default: all that the metadata describe). Raise ProbeError if a file is missing
    Templates: each is a ``statement``; one that ends in its object is a ``cloze`` too. lm-pub-quiz scores statement 1.
    """
    folder = Path(folder)
    path = folder / "metadata_relations.json"
    described = _read_metadata(path, {})
    files = _files(folder, r"(P\d+)\.jsonl", relations, path, described)
    triples, templates = [], []
    for relation, file in files.items():
        space = _answer_space(path, relation, described[relation])
        templates += statements(relation, described[relation]["templates"], str(path))
        facts = read_objects(file, dict.fromkeys(FACT, str), FACT)
        triples += [_triple(f"{file}:{line}", relation, line, row, space) for line, row in facts]
    return assemble(triples, f"bear:{folder.name}", templates)


def _triple(where: str, relation: str, line: int, row: dict, space: list[Entity]) -> Triple:
    aliases = check_texts(where, "sub_aliases", row.get("sub_aliases", []))
    subject, obj = Entity(row["sub_label"], row["sub_id"], tuple(aliases)), Entity(row["obj_label"], row["obj_id"])
    index = row.get("answer_idx", space.index(obj) if obj in space else None)
    if not is_a(index, int) or not 0 <= index < len(space) or space[index] != obj:
        raise ProbeError(f"{where}: {obj.id} {obj.label!r} is not number {index} of the answer space of {relation}")
    return Triple(relation, subject, obj, line, wrong=tuple(other for other in space if other != obj))


def read_bear_results(folder: str | Path, relations: list[str] | None = None) -> pd.DataFrame:
    """Scores of lm-pub-quiz: one row per (fact, candidate), in the order of files and lines.

    model       its name in the metadata
    template    number of the template scored (statement 1, ...)
    fact        ``relation:subject:gold``, the id that ``read_bear`` gives it; ``subject``, ``gold`` (the right answer) and
                ``candidate`` (the answer scored) are Wikidata ids, with ``subject_label`` and ``label``
    logprob     log-probability (nats, 0 or less) of the *whole statement* with this candidate, summed over its tokens

    Only results with ``reduction`` "sum" are read: means and token scores are not log-probabilities of statements.
    """
    folder = Path(folder)
    path = folder / "metadata_results.json"
    described = _read_metadata(path, {"model_name_or_path": str, "reduction": str, "template_index": int})
    files = _files(folder, r"(P\d+)_results\.jsonl", relations, path, described)
    rows = []
    for relation, file in files.items():
        rows += _read_results(file, path, relation, described[relation])
    return pd.DataFrame(rows, columns=RESULTS)


def _read_results(path: Path, metadata: Path, relation: str, described: dict) -> list[tuple]:
    if described["reduction"] != "sum":
        raise ProbeError(f"{metadata}: {relation} has reduction {described['reduction']!r}; only 'sum' can be read")
    template = described["template_index"] + 1
    if not 1 <= template <= len(described["templates"]):
        raise ProbeError(f"{metadata}: {relation} has no template with index {template - 1}")
    space, seen, rows = _answer_space(metadata, relation, described), {}, []
    keys = {"instance": int, "sub_id": str, "sub_label": str, "answer_idx": int, "pll_scores": list}
    for line, row in read_objects(path, keys, ("sub_id", "sub_label")):
        instance, index, subject = row["instance"], row["answer_idx"], row["sub_id"]
        if seen.setdefault(instance, line) != line:
            raise ProbeError(f"{path}:{line}: instance {instance} is already in line {seen[instance]}")
        if not 0 <= index < len(space):
            raise ProbeError(f"{path}:{line}: answer_idx {index}; the answer space has {len(space)} members")
        gold, scores = space[index].id, _check_scores(f"{path}:{line}", row["pll_scores"], len(space))
        fact = f"{relation}:{subject}:{gold}"
        start = (described["model_name_or_path"], relation, template, fact, subject, row["sub_label"], gold)
        rows += [(*start, member.id, member.label, score) for member, score in zip(space, scores, strict=True)]
    return rows


def _check_scores(where: str, scores: list, n: int) -> list[float]:
    if len(scores) != n:
        raise ProbeError(f"{where}: {len(scores)} scores for an answer space of {n}")
    for score in scores:
        if not is_a(score, int | float) or not -1e300 < score <= 0:
            raise ProbeError(f"{where}: {score!r} is not a log-probability (a number that is 0 or less)")
    return [float(score) for score in scores]


def _read_metadata(path: Path, keys: dict) -> dict[str, dict]:
    """relation -> what the metadata file says of it."""
    keys = {"templates": list, "answer_space_labels": list, "answer_space_ids": list} | keys
    described = check_object(f"{path}:1", read_json(path), {})
    if not described:
        raise ProbeError(f"{path}: no relations")
    for relation, entry in described.items():
        check_object(f"{path}: {relation}", entry, keys)
    return described


def _files(folder: Path, name: str, relations: list[str] | None, path: Path, described: dict) -> dict[str, Path]:
    for relation in relations or []:
        if relation not in described:
            raise unknown(f"relation in {path}", relation, described)
    return relation_files(folder, name, relations or list(described))


def _answer_space(path: Path, relation: str, described: dict) -> list[Entity]:
    names = ("answer_space_labels", "answer_space_ids")
    labels, ids = (check_texts(f"{path}: {relation}", name, described[name]) for name in names)
    if not labels or len(labels) != len(ids) or len(set(ids)) != len(ids):
        raise ProbeError(
            f"{path}: the answer space of {relation} has {len(labels)} labels and {len(set(ids))} distinct ids of {len(ids)}; "
            "as many of both are needed, and each id once"
        )
    return [Entity(label, entity) for label, entity in zip(labels, ids, strict=True)]
