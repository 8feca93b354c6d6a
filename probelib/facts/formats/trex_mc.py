"""T-REx-MC, the data of ZP-LKE (Wu et al. 2025): one Parquet file per split, 100 train and 400 test rows per relation.

Its columns: ``Relation_ID`` (a number of the data set's own; ``relationID_names.json`` beside the splits says
{"1": ["P17", "country"], ...}), ``Relation Name`` (capital), ``Subject``, ``Object`` (the right answer) and ``Multiple Choices``
(the 99 wrong options, as the text of a Python list). ``Title`` and ``Text`` (a page of Wikipedia) are not read.
"""

import ast
from pathlib import Path

from probelib.errors import ProbeError, unknown
from probelib.facts.formats.rows import read_table
from probelib.facts.formats.tables import Entity, Triple, assemble
from probelib.facts.model import Facts
from probelib.facts.text import check_object, check_texts, read_json

SPLITS = {"train": 100, "test": 400}  # rows per relation
OPTIONS = 100  # with the right answer
COLUMNS = {"Relation_ID": int, "Relation Name": str, "Subject": str, "Object": str, "Multiple Choices": str}


def read_trex_mc(folder: str | Path, split: str = "test") -> Facts:
    """The facts of one split, their wrong options as distractors; ``folder`` holds ``train-*.parquet`` and ``test-*.parquet``.

    A relation is named by its Wikidata property if ``relationID_names.json`` has it, otherwise by its name. Labels are
    stripped. Options that equal the right answer are left out, and duplicates count once. A fact whose list cannot be read has
    no distractors.
    """
    folder = Path(folder)
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    files = sorted(folder.glob(f"{split}*.parquet"))
    if len(files) != 1:
        raise ProbeError(f"{folder}: one file {split}-*.parquet is needed, found {len(files)}")
    names = folder / "relationID_names.json"
    properties = _read_names(names) if names.exists() else {}
    triples, called = [], {}
    for line, cells in read_table(files[0], (), COLUMNS):
        triple, name = _row(f"{files[0]}:{line}", line, cells, properties)
        triples.append(triple)
        called.setdefault(triple.relation, name)
    return assemble(triples, f"trex-mc:{split}", names=called)


def _row(where: str, line: int, cells: dict, properties: dict[int, str]) -> tuple[Triple, str]:
    """The fact of a row, and the name of its relation."""
    check_object(where, cells, COLUMNS)
    subject, obj, name = (cells[column].strip() for column in ("Subject", "Object", "Relation Name"))
    if not (subject and obj and name):
        raise ProbeError(f"{where}: an empty subject, object or relation name")
    number = cells["Relation_ID"]
    if properties and number not in properties:
        raise unknown(f"relation at {where}", number, properties)
    options = dict.fromkeys(option.strip() for option in _options(cells["Multiple Choices"]))
    wrong = tuple(Entity(option) for option in options if option != obj)
    return Triple(properties.get(number, name), Entity(subject), Entity(obj), line, wrong=wrong), name


def _options(text: str) -> list[str]:
    """The list in a text, a Python literal; [] if it is anything but a list of non-empty texts."""
    try:
        options = ast.literal_eval(text)
        good = isinstance(options, list) and all(option.encode().strip() for option in options)
    except (ValueError, SyntaxError, TypeError, AttributeError, MemoryError, RecursionError):  # no text has no .encode
        return []
    return options if good else []


def _read_names(path: Path) -> dict[int, str]:
    """Relation number -> Wikidata property."""
    properties = {}
    for number, pair in check_object(f"{path}:1", read_json(path), {}).items():
        pair = check_texts(f"{path}: {number!r}", "the value", pair)
        if not number.isdecimal() or len(number) > 9 or len(pair) != 2:
            raise ProbeError(f'{path}: {number!r}: {pair}; {{"1": ["P17", "country"]}} is needed')
        properties[int(number)] = pair[0]
    return properties
