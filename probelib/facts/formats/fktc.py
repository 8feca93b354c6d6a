"""FKTC, MONITOR's data (Wang et al. 2024): one JSON Lines file per relation.

Line 1 is a header with the prompt frames; every other line is a fact with five distractors (as in the released files):

    {"relations": ["What language is the official language of [X]?", ...]}
    {"subject": "Haiti", "object": "French", "taxonomy": ["Welsh", "Russian", "Irish", "Finnish", "Hawaiian"]}

Entities have no ids in these files: the stripped label is the key. The released P17 frames do not say "country", unlike the
seven templates printed in the paper (appendix A.1).
"""

from pathlib import Path

from probelib.errors import ProbeError
from probelib.facts.formats.tables import Entity, Triple, assemble
from probelib.facts.model import Facts
from probelib.facts.shipped import atlas
from probelib.facts.text import check_object, check_texts, parse_json, read_text, relation_files


def read_fktc(folder: str | Path, relations: list[str] | None = None) -> Facts:
    """The FKTC files of a folder. Duplicate (subject, object) lines (12 in the release) get ids that end in their line number.

    relations   the ones to read (default: every ``P*-subclass.json``). Raise ProbeError if a file is missing
    """
    folder = Path(folder)
    # the real P276 file is called P276-subclass..json: the relation is what comes before the first "-"
    files = relation_files(folder, r"(P\d+)-subclass.*\.json", relations)
    triples, frames = [], []
    for relation, path in files.items():
        header, facts = _read_file(path, relation)
        frames += [(relation, "question", frame) for frame in header]
        triples += facts
    names = atlas().relations.set_index("relation")["name"].to_dict() | {"P1412": "languages spoken"}
    return assemble(triples, f"fktc:{folder.name}", frames, names)


def _read_file(path: Path, relation: str) -> tuple[list[str], list[Triple]]:
    """The frames and the facts."""
    lines = read_text(path).rstrip("\n").split("\n")
    header = check_object(f"{path}:1", parse_json(path, lines[0]), {"relations": list}, exact=True)["relations"]
    if not header or not all(isinstance(frame, str) and frame.count("[X]") == 1 for frame in header):
        raise ProbeError(f"{path}:1: `relations` must be a list of prompt frames with [X] exactly once each")
    triples, keys = [], {"subject": str, "object": str, "taxonomy": list}
    for number, line in enumerate(lines[1:], 2):
        row = check_object(f"{path}:{number}", parse_json(path, line, number), keys, exact=True)
        wrong = tuple(map(Entity, check_texts(f"{path}:{number}", "taxonomy", row["taxonomy"])))
        subject, obj = Entity(row["subject"].strip()), Entity(row["object"].strip())
        if not subject.label or not obj.label:
            raise ProbeError(f"{path}:{number}: an empty subject or object")
        triples.append(Triple(relation, subject, obj, number, wrong=wrong))
    if not triples:
        raise ProbeError(f"{path}:2: no facts after the header")
    return header, triples
