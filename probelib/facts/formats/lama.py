"""LAMA's T-REx part (Petroni et al. 2019 [lama]): one JSON Lines file per relation, and one with the templates.

``data/relations.jsonl``, one relation per line; ``description`` and ``type`` (N-1, ...) are not read:

    {"relation": "P19", "template": "[X] was born in [Y] .", "label": "place of birth", "description": "...", "type": "N-1"}

``data/TREx/P19.jsonl``, one fact per line; ``uuid`` and ``evidences`` (sentences of Wikipedia with the object masked) are not
read:

    {"uuid": "...", "obj_uri": "Q90", "obj_label": "Paris", "sub_uri": "Q1001", "sub_label": "...", "predicate_id": "P19",
     "evidences": [{"sub_surface": "...", "obj_surface": "Paris", "masked_sentence": "... [MASK] ..."}]}
"""

from pathlib import Path

from probelib.errors import ProbeError, unknown
from probelib.facts.formats.tables import Entity, Triple, assemble, statements
from probelib.facts.model import Facts
from probelib.facts.text import read_objects, relation_files

FACT = ("predicate_id", "sub_uri", "sub_label", "obj_uri", "obj_label")


def read_lama(folder: str | Path, relations: list[str] | None = None) -> Facts:
    """The facts of LAMA's T-REx files; ``folder`` holds ``relations.jsonl`` and ``TREx/P17.jsonl``, ... (or is ``TREx`` itself).

    relations   the ones to read (default: every file). Raise ProbeError if a file is missing
    Templates: each is a ``statement`` as it is in the file; one that ends in its object is a ``cloze`` too.
    """
    folder = Path(folder)
    home = folder.parent if folder.name == "TREx" else folder
    files = relation_files(home / "TREx", r"(P\d+)\.jsonl", relations)
    described = _read_relations(home / "relations.jsonl")
    triples, templates = [], []
    for relation, path in files.items():
        if relation not in described:
            raise unknown(f"relation of {path}", relation, described)
        templates += described[relation][1]
        triples += _read_facts(path, relation)
    names = {relation: name for relation, (name, _) in described.items()}
    return assemble(triples, f"lama:{home.name}", templates, names)


def _read_relations(path: Path) -> dict[str, tuple[str, list[tuple]]]:
    """relation -> its name and its template rows."""
    described = {}
    for line, row in read_objects(path, dict.fromkeys(("relation", "template", "label"), str), ("relation", "label")):
        relation = row["relation"]
        if relation in described:
            raise ProbeError(f"{path}:{line}: relation {relation} is described twice")
        described[relation] = row["label"], statements(relation, [row["template"]], f"{path}:{line}")
    return described


def _read_facts(path: Path, relation: str) -> list[Triple]:
    triples = []
    for line, row in read_objects(path, dict.fromkeys(FACT, str), FACT):
        if row["predicate_id"] != relation:
            raise ProbeError(f"{path}:{line}: a fact of relation {row['predicate_id']} in the file of {relation}")
        subject, obj = Entity(row["sub_label"], row["sub_uri"]), Entity(row["obj_label"], row["obj_uri"])
        triples.append(Triple(relation, subject, obj, line))
    return triples
