"""The papers' data in their own files.

``fktc`` (MONITOR)    ``P37-subclass.json``, JSON Lines: line 1 has the prompt frames
                      ({"relations": [...]}), the others a fact with five distractors each
``bear`` [bear]       ``P36.jsonl``, one fact per line; ``metadata_relations.json``: the templates
                      and the answer space, whose other members are the distractors
``trex_mc`` (ZP-LKE)  ``test-*.parquet``: 100 train and 400 test rows per relation, each with 99
                      wrong options as the text of a Python list
"""

import ast
import re
from pathlib import Path

import pandas as pd

from probelib.errors import ProbeError, unknown
from probelib.facts import table
from probelib.facts import text as reading
from probelib.facts.model import Facts, choose, tuples
from probelib.facts.shipped import atlas
from probelib.facts.table import Entity, Triple, assemble
from probelib.facts.text import check_object, check_texts, is_a, read_json, read_objects

OPTIONS = 100  # of multiple choice, with the right answer


def files_of(folder: Path, pattern: str, relations: list[str] | None = None) -> dict[Path, str]:
    """The files that match a pattern -> the relation that their names begin with, by relation (P9
    comes before P10). Raise ProbeError if one is missing."""
    if not folder.is_dir():
        raise ProbeError(f"{folder}: no such folder")
    found = {path: re.split("[-.]", path.name)[0] for path in sorted(folder.glob(pattern))}
    missing = set(relations or ()) - set(found.values())
    if missing or not found:
        names = ", ".join(sorted(path.name for path in folder.iterdir())[:9]) or "none"
        which = f" for {min(missing)}" if missing else ""
        raise ProbeError(f"{folder}: no file {pattern}{which} there; found: {names}")
    if len(set(found.values())) < len(found):
        raise ProbeError(f"{folder}: two files for one relation: {sorted(found.values())}")
    wanted = [each for each in found.items() if each[1] in (relations or found.values())]
    return dict(sorted(wanted, key=lambda each: (reading.number_in(each[1]), each[1])))


def read_fktc(folder: str | Path, relations: list[str] | None = None) -> Facts:
    """MONITOR's FKTC files. Duplicate (subject, object) lines (12 in the release) get ids that end
    in their line number. The released P17 frames do not say "country", unlike the paper's."""
    folder, triples, frames = Path(folder), [], []
    # the released P276 file is called P276-subclass..json
    for path, relation in files_of(folder, "*-subclass*.json", relations).items():
        (_, header), *rows = read_objects(path, {})
        header = check_object(f"{path}:1", header, {"relations": list})["relations"]
        if not header or not all(isinstance(f, str) and f.count("[X]") == 1 for f in header):
            said = "`relations` must be a list of frames with [X] exactly once each"
            raise ProbeError(f"{path}:1: {said}")
        if not rows:
            raise ProbeError(f"{path}:2: no facts after the header")
        frames += [(relation, "question", frame) for frame in header]
        for line, row in rows:
            where = f"{path}:{line}"
            check_object(where, row, {"subject": str, "object": str, "taxonomy": list})
            wrong = tuple(map(Entity, check_texts(where, "taxonomy", row["taxonomy"])))
            ends = (Entity(row["subject"]), Entity(row["object"]))
            triples.append(Triple(where, relation, *ends, wrong=wrong))
    names = dict(tuples(atlas().relations, "relation", "name"))
    return assemble(triples, f"fktc:{folder.name}", frames, names | {"P1412": "languages spoken"})


def read_trex_mc(folder: str | Path, relations=None, split: str = "test") -> Facts:
    """One split of T-REx-MC ("test" or "train"), its wrong options as distractors.

    A relation is named by its Wikidata property if ``relationID_names.json`` has it, otherwise by
    its name. Options that equal the right answer are left out, and duplicates count once. A fact
    whose list cannot be read has no distractors."""
    folder, triples, names = Path(folder), [], {}
    ids = folder / "relationID_names.json"
    known = check_object(f"{ids}:1", read_json(ids), {}) if ids.exists() else {}
    columns = {"Relation_ID": int} | dict.fromkeys(("Relation Name", "Subject", "Object"), str)
    columns |= {"Multiple Choices": str}
    rows = table.read_table(folder / f"{split}-00000-of-00001.parquet", columns)[[*columns]]
    for where, cells in zip(rows.index, rows.to_dict("records"), strict=True):
        number, name, subject, obj, options = check_object(where, cells, columns).values()
        if known and str(number) not in known:
            raise unknown(f"relation at {where}", number, known)
        name, obj = name.strip(), obj.strip()
        relation = (known.get(str(number)) or [name])[0]
        try:
            options = check_texts(where, "options", ast.literal_eval(options))
            "".join(options).encode()  # half a surrogate pair is no text
        except (ProbeError, ValueError, SyntaxError, TypeError):
            options = []
        wrong = tuple(Entity(option) for option in dict.fromkeys(options) if option != obj)
        triples.append(Triple(where, relation, Entity(subject), Entity(obj), wrong=wrong))
        names.setdefault(relation, name)
    return choose(assemble(triples, f"trex-mc:{split}", names=names), relations)


def read_bear(folder: str | Path, relations: list[str] | None = None) -> Facts:
    """BEAR or BEAR-big; the other members of the answer space are a fact's distractors, in their
    order. Each template is a ``statement``; lm-pub-quiz scores statement 1."""
    folder, triples, templates = Path(folder), [], []
    path, lists = folder / "metadata_relations.json", ("answer_space_labels", "answer_space_ids")
    about = check_object(f"{path}:1", read_json(path), {})
    if missing := [relation for relation in relations or () if relation not in about]:
        raise unknown(f"relation in {path}", missing[0], about)
    keys = dict.fromkeys(("sub_id", "sub_label", "obj_id", "obj_label"), str)
    for file, relation in files_of(folder, "*.jsonl", relations or list(about)).items():
        where = f"{path}: {relation}"
        entry = check_object(where, about[relation], dict.fromkeys(("templates", *lists), list))
        labels, ids = (check_texts(where, name, entry[name]) for name in lists)
        if not labels or len(labels) != len(ids) or len(set(ids)) != len(ids):
            said = f"{len(labels)} labels and {len(set(ids))} distinct ids of {len(ids)}"
            raise ProbeError(f"{where}: the answer space has {said}; one id per label, each once")
        for text in check_texts(where, "templates", entry["templates"]):
            if text.count("[X]") != 1 or text.count("[Y]") != 1:
                raise ProbeError(f"{where}: a template needs [X] and [Y], each once: {text!r}")
            templates.append((relation, "statement", text))
        space = [Entity(*pair) for pair in zip(labels, ids, strict=True)]
        for line, row in read_objects(file, keys):
            where, obj = f"{file}:{line}", Entity(row["obj_label"].strip(), row["obj_id"])
            index = row.get("answer_idx", space.index(obj) if obj in space else None)
            if not is_a(index, int) or obj not in space or space.index(obj) != index:
                said = f"is not number {index} of the answer space of {relation}"
                raise ProbeError(f"{where}: {obj.id} {obj.label!r} {said}")
            aliases = tuple(check_texts(where, "sub_aliases", row.get("sub_aliases", [])))
            subject = Entity(row["sub_label"], row["sub_id"], aliases)
            wrong = tuple(other for other in space if other != obj)
            triples.append(Triple(where, relation, subject, obj, wrong=wrong))
    return assemble(triples, f"bear:{folder.name}", templates)


def read_pageviews(path: str | Path) -> pd.Series:
    """Page views (GraphEval's popularity), a JSON object {name of an entity: views}: the views (0
    or more, in the period that the file covers) by name."""
    views = check_object(f"{path}:1", read_json(Path(path)), {})
    for name, number in views.items():
        if not name.strip() or not is_a(number, int) or not 0 <= number < 2**63:
            said = "a name and an integer of at least 0 are needed"
            raise ProbeError(f"{path}: {name!r}: {number!r}; {said}")
    return pd.Series(views, dtype="int64")


READERS = {"fktc": read_fktc, "trex_mc": read_trex_mc, "bear": read_bear}
READERS |= {"table": table.read_triples}
