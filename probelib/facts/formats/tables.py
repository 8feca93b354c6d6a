"""Any table of triples, and how triples become the frames of ``Facts``.

A table is a CSV, TSV, Parquet, JSON or JSON Lines file with one triple per row and named columns:

===================================  =====================================================================================
``relation subject object``          needed: what the relation is called (P36), and the labels of subject and object
``relation_name``                    a name to read (capital); default: ``relation``
``subject_id object_id``             an id; labels with the same id are names of one thing (``assemble`` says how); one of
                                     the form Q90 is a Wikidata id
``subject_aliases object_aliases``   other labels, separated by "|", or a list
``subject_types object_types``       types, the specific one first, separated by "|". If no object of a
                                     relation has any, its objects are of one type
``start end``                        when the fact holds: a year or a date (1990-10-03). A fact with an end, even a future one, is
                                     not scored. Both equal: a point in time (an award), which stays right; a term within one
                                     year is 2005 to 2005-12-31
===================================  =====================================================================================

Other columns are ignored. Templates of facts.csv may be in facts.templates.csv, one per row:
``relation`` and ``template``, which is a question about [X] ("What is the capital of [X]?"), a sentence that stops before its
object ("The capital of [X] is"), or a whole one ("The capital of [X] is [Y].", which serves as both).

All readers of this folder that start from triples end in ``assemble``.
"""

import json
import re
import warnings
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from probelib import files
from probelib.errors import ProbeError
from probelib.facts.formats.rows import cell_text, read_table, value_at
from probelib.facts.model import DISTRACTORS, ENTITIES, FACTS, RELATIONS, TEMPLATES, Facts, holds, validate
from probelib.facts.text import is_a, number_in, read_json
from probelib.facts.validity import UNKNOWN, days, is_date

NEEDED = ["relation", "subject", "object"]
SIDES = [f"{side}_{what}" for side in ("subject", "object") for what in ("id", "aliases", "types")]
OPTIONAL = ["relation_name", "start", "end", *SIDES]
WIKIDATA = re.compile(r"Q\d+")
ROLES = ["question", "cloze", "statement"]
SEVERAL = {*ROLES, "object", *SIDES} - {"subject_id"}  # cells that may hold a list


class Entity(NamedTuple):
    """What a source says of a subject or an object."""

    label: str
    id: str = ""
    aliases: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


class Triple(NamedTuple):
    """One fact as a source states it; ``line`` is its line number, ``wrong`` the distractors that it names."""

    relation: str
    subject: Entity
    object: Entity
    line: int
    start: str = ""
    end: str = ""
    wrong: tuple[Entity, ...] = ()


def read_triples(path: str | Path, columns: dict[str, str] | None = None) -> Facts:
    """The facts of a table, with the templates of the file beside it, if there is one (see the docstring of this module).

    columns   mapping of the kit's columns to those of the file (``Columns``): {"subject": "head", "relation": "=P36"}
    """
    path, found = Path(path), Found()
    read_rows(path, Columns(columns or {}), found)
    found.templates |= dict.fromkeys(_read_templates(path, set(found.names)))
    return found.facts(f"table:{path.name}")


class Columns:
    """Which column of a file holds what.

    given   name of the kit -> column of the file, where they differ; "a.b" looks into nested objects. Names are those of the
            module's docstring, and ``question``, ``cloze`` and ``statement``: texts that become templates. Such a text holds its
            subject, [X] or {} exactly once. "=TEXT" in place of a column is the same in every row; with a name that is not the
            kit's, only rows with TEXT in that column are read ({"language": "=en"}). Without a relation, each question is a
            relation of its own
    """

    def __init__(self, given: dict[str, str], relation: str = "", relations: dict[str, str] | None = None):
        known, constant = [*NEEDED, *OPTIONAL, *ROLES], lambda column: column.startswith("=")
        if odd := [name for name, column in given.items() if name not in known and not constant(column)]:
            raise ProbeError(f"columns names {odd}; the kit's columns are {known}")
        self.constants = {name: column[1:] for name, column in given.items() if name in known and constant(column)}
        self.constants |= {"relation": relation} if relation else {}
        self.only = {name: column[1:] for name, column in given.items() if name not in known}
        self.where = {name: given.get(name, name) for name in (*NEEDED, *OPTIONAL) if name not in self.constants}
        self.where |= {role: given[role] for role in ROLES if role in given and role not in self.constants}
        self.roles = [role for role in ROLES if role in given]
        free = {*self.constants, "relation"} if "question" in given and "relation" not in given else self.constants
        self.needed = {self.where[name] for name in NEEDED if name not in free}
        self.needed |= {self.where[name] for name in given if name in self.where}
        self.relations = relations or {}  # name in the file -> id

    def cells(self, path: Path, line: int, row: dict) -> dict[str, tuple[str, ...]]:
        """The texts of a row by the kit's names: none for an empty cell, several for a list."""
        cells = {name: _texts(path, line, name, column, value_at(row, column)) for name, column in self.where.items()}
        return cells | {name: (text,) for name, text in self.constants.items()}


class Found:
    """What has been read so far: triples, names of relations, templates."""

    def __init__(self):
        self.triples: list[Triple] = []
        self.names: dict[str, str] = {}
        self.templates: dict[tuple[str, str, str], None] = {}  # (relation, role, template), each once, in order

    def facts(self, source: str) -> Facts:
        """Return the ``Facts``. If no object of a relation has a type, all get the same one: distractors share a type."""
        typed = {t.relation for t in self.triples if t.object.types}
        alike = lambda t: t._replace(object=t.object._replace(types=(f"object of {t.relation}",)))
        triples = [t if t.relation in typed else alike(t) for t in self.triples]
        return assemble(triples, source, self.templates, self.names)


def read_rows(path: Path, columns: Columns, found: Found, quoted: bool = False) -> None:
    """Add the facts of a file to ``found``, one per object of a row. Warn of rows that repeat another, and of texts that cannot
    be templates."""
    first, repeated, unusable = {}, [], []  # a row's cells -> its line; lines
    for line, row in read_table(path, columns.needed, columns.where.values(), columns.only, quoted):
        cells = columns.cells(path, line, row)
        templates = [(role, _template(text, role, cells)) for role in columns.roles for text in cells.pop(role)]
        unusable += [line] * (None in (text for _, text in templates))
        templates = [(role, text) for role, text in templates if text]
        if columns.roles and not cells["relation"] and "relation" not in columns.needed:
            if not templates:
                continue
            cells["relation"] = (templates[0][1],)
        relation = " ".join(cells["relation"])
        cells["relation"] = (columns.relations.get(relation, relation),)
        cells["relation_name"] = cells["relation_name"] or (relation,)
        templates += [("statement", f"{text} [Y].") for role, text in templates if role == "cloze"]
        found.templates |= dict.fromkeys((cells["relation"][0], role, text) for role, text in templates)
        if first.setdefault(tuple(cells.values()), line) != line:
            repeated.append(line)
            continue
        found.triples += _triples(path, line, cells)
        found.names.setdefault(cells["relation"][0], cells["relation_name"][0])
    if repeated and not columns.roles:
        said = f"{path}:{repeated[0]}: {len(repeated)} rows repeat an earlier row; each is counted once"
        warnings.warn(said, stacklevel=3)
    if unusable:
        said = f"{path}:{unusable[0]}: {len(unusable)} rows have a text that does not name its subject exactly once"
        warnings.warn(f"{said}; it becomes no template", stacklevel=3)


def _texts(path: Path, line: int, name: str, column: str, value) -> tuple[str, ...]:
    """The texts of a cell. Aliases and types may be separated by "|", or be a list in JSON."""
    if isinstance(value, str) and name.endswith(("aliases", "types")):
        value = value.split("|") if (found := _json_list(value)) is None else found
    several = isinstance(value, list) and name in SEVERAL
    texts = [cell_text(path, line, column, each) for each in (value if several else [value])]
    ids = [text.rpartition("/")[2] if name.endswith("_id") and "://" in text else text for text in texts]
    return tuple(text for text in ids if text)


def _json_list(text: str) -> list | None:
    try:
        return json.loads(text) if text.lstrip().startswith("[") else None
    except (ValueError, RecursionError):
        return None


def _template(text: str, role: str, cells: dict[str, tuple[str, ...]]) -> str | None:
    """A text with [X] in place of its subject; None if the subject is not there exactly once, or if [Y] is misplaced."""
    text, subject = text.replace("{}", "[X]"), " ".join(cells["subject"])
    if "[X]" not in text and subject and text.count(subject) == 1:
        text = text.replace(subject, "[X]")
    good = text.count("[X]") == 1 and text.count("[Y]") == (role == "statement")
    return text if good else None


def write_triples(facts: Facts, path: str | Path) -> Path:
    """Write facts as a table that ``read_triples`` reads, CSV or Parquet by the suffix of the path, in their order.

    Keys of entities are written as ids, so that keys, labels, aliases, types and dates are read back; distractors, popularity
    and Wikidata ids that are not the key are not. Templates are written beside the table, where there are any.
    """
    path = Path(path)
    if path.suffix not in (".csv", ".parquet"):
        raise ProbeError(f"{path}: facts are written to a .csv or a .parquet file")
    entities = facts.entities.set_index("entity")
    if odd := [name for column in ("aliases", "types") for names in entities[column] for name in names if "|" in name]:
        raise ProbeError(f"{path}: the name {odd[0]!r} contains '|', which separates the names in a cell; rename it")
    rows = facts.facts
    name = rows["relation"].map(facts.relations.set_index("relation")["name"])
    columns = {"relation": rows["relation"], "relation_name": name, "start": rows["start"], "end": rows["end"]}
    for side in ("subject", "object"):
        about = entities.loc[rows[side]]
        columns[side], columns[f"{side}_id"] = about["label"].to_numpy(), rows[side]
        for what in ("aliases", "types"):
            columns[f"{side}_{what}"] = ["|".join(names) for names in about[what]]
    _write_table(path, pd.DataFrame(columns))
    templates = facts.templates[facts.templates["role"].isin(ROLES)]
    if len(templates):
        _write_table(files.templates_path(path), templates[["relation", "template"]])
    return path


def _write_table(path: Path, table: pd.DataFrame) -> None:
    if path.suffix == ".parquet":
        files.write(path, table.to_parquet())
        return
    text = table.to_csv(index=False)
    if "\r" in text:
        raise ProbeError(f"{path}: a cell contains a carriage return, which no CSV reader keeps; write a .parquet file")
    files.write(path, text)


def _read_templates(table: Path, relations: set[str]) -> list[tuple[str, str, str]]:
    """Rows (relation, role, template) of the templates beside a table; none without such a file."""
    path, found = files.templates_path(table), []
    for line, row in read_table(path, ["relation", "template"]) if path.exists() else []:
        relation, text = row["relation"].strip(), row["template"].strip()
        if relation not in relations:
            known = ", ".join(sorted(relations))
            raise ProbeError(f"{path}:{line}: {table.name} has no relation {relation!r}; it has {known}")
        if text.count("[X]") != 1 or text.count("[Y]") > 1:
            raise ProbeError(f"{path}:{line}: {text!r} needs [X] (the subject) exactly once, and [Y] at most once")
        role = "statement" if "[Y]" in text else "question" if text.endswith("?") else "cloze"
        found.append((relation, role, text))
    return found


def _triples(path: Path, line: int, cells: dict[str, tuple[str, ...]]) -> list[Triple]:
    """One fact per object of a row."""
    where = f"{path}:{line}"
    if empty := [name for name in NEEDED if not "".join(cells[name])]:
        raise ProbeError(f"{where}: an empty {' and '.join(empty)}; fill it in, or delete the row")
    start, end = ("".join(cells[name]) for name in ("start", "end"))
    for name, date in (("start", start), ("end", end)):
        if date not in ("", UNKNOWN) and not is_date(date):
            raise ProbeError(f"{where}: {name} {date!r}; a year, a month (1990-10), a day (1990-10-03) or ? is needed")
    if not {"", UNKNOWN} & {start, end} and days([end])[1] < days([start])[0]:
        raise ProbeError(f"{where}: it ends ({end}) before it starts ({start})")
    labels, ids, aliases = cells["object"], cells["object_id"], cells["object_aliases"]
    if len(ids) not in (0, len(labels)):
        raise ProbeError(f"{where}: {len(ids)} object_ids for {len(labels)} objects; give one per object, or none")
    subject_id = "".join(cells["subject_id"])
    subject = Entity(cells["subject"][0], subject_id, cells["subject_aliases"], cells["subject_types"])
    own = aliases if len(labels) == 1 else ()  # with several objects, it is unknown which one an alias belongs to
    return [
        Triple(cells["relation"][0], subject, Entity(label, id, own, cells["object_types"]), line, start, end)
        for label, id in zip(labels, ids or [""] * len(labels), strict=True)
    ]


def assemble(
    triples: list[Triple], source: str, templates: Iterable[tuple] = (), names: dict[str, str] | None = None
) -> Facts:
    """``Facts`` from triples: the last step of the readers.

    templates   rows (relation, role, template); a statement that ends in its object is a ``cloze``, too
    names       relation -> its name

    An entity's key is its id, or its label if it has no id. An id with several labels ("the Philippines" as an object,
    "Philippines" as a subject) gives one entity per label, so that every text reads as in the source: the first (objects
    come first) has the id as its key, the next ``Q928:Philippines``, and each has the others' labels as aliases.
    A fact's id is ``relation:subject:object`` in ids (labels where there are none); a repeated one gets its line.
    A relation is functional if no subject has two objects that still hold.
    """
    entities = _Entities()
    objects = [(entities.key(t.object), [entities.key(wrong) for wrong in t.wrong]) for t in triples]
    facts, distractors, seen = [], [], set()
    for t, (obj, wrong) in zip(triples, objects, strict=True):
        fact = f"{t.relation}:{t.subject.id or t.subject.label}:{t.object.id or t.object.label}"
        fact = f"{fact}:line{t.line}" if fact in seen else fact
        seen.add(fact)
        facts.append((fact, t.relation, entities.key(t.subject), obj, t.start, t.end))
        distractors += [(fact, number, key) for number, key in enumerate(wrong, 1)]
    facts = pd.DataFrame(facts, columns=FACTS)
    distractors = pd.DataFrame(distractors, columns=DISTRACTORS)
    relations = relation_frame(facts, names or {})
    return validate(Facts(facts, entities.frame(), relations, template_frame(templates), distractors, source))


class _Entities:
    """The entities read so far, one per pair of id and label."""

    def __init__(self):
        self.keys: dict[tuple[str, str], str] = {}
        self.rows: dict[str, tuple[Entity, dict, dict]] = {}  # key -> entity, its aliases, its types (in order)
        self.labels: dict[str, dict] = {}  # id -> its labels

    def key(self, entity: Entity) -> str:
        pair = (entity.id, entity.label)
        if pair not in self.keys:
            key = entity.id or entity.label
            while key in self.rows:
                key += f":{entity.label}"
            self.keys[pair] = key
            self.rows[key] = entity, {}, {}
            if entity.id:
                self.labels.setdefault(entity.id, {})[entity.label] = None
        _, aliases, types = self.rows[self.keys[pair]]
        aliases.update(dict.fromkeys(entity.aliases))
        types.update(dict.fromkeys(entity.types))
        return self.keys[pair]

    def frame(self) -> pd.DataFrame:
        rows = []
        for key, (entity, aliases, types) in self.rows.items():
            names = tuple(name for name in self.labels.get(entity.id, {}) | aliases if name != entity.label)
            shared = len(self.labels.get(entity.id, ())) > 1
            wikidata = entity.id if shared or WIKIDATA.fullmatch(entity.id) else ""
            rows.append((key, entity.label, wikidata, names, tuple(types), 0))
        return pd.DataFrame(rows, columns=ENTITIES)


def relation_frame(facts: pd.DataFrame, names: dict[str, str]) -> pd.DataFrame:
    """The relations of some facts, by number. A relation is functional if no subject has two objects that hold."""
    several = facts[holds(facts)].groupby(["relation", "subject"])["object"].nunique().groupby("relation").max() > 1
    relations = sorted(facts["relation"].unique(), key=lambda r: (number_in(r), r))
    rows = [(r, names.get(r, r), "", "", not several.get(r, False)) for r in relations]
    return pd.DataFrame(rows, columns=RELATIONS)


def template_frame(rows: Iterable[tuple[str, str, str]]) -> pd.DataFrame:
    """The templates of ``assemble``, numbered by relation and role."""
    texts = {}
    for relation, role, text in rows:
        texts.setdefault((relation, role), []).append(text)
        if role == "statement" and (cloze := cut(text)):
            texts.setdefault((relation, "cloze"), []).append(cloze)
    numbered = []
    for relation, role in product(dict.fromkeys(relation for relation, _ in texts), ROLES):
        own = texts.get((relation, role), [])
        own = dict.fromkeys(own) if role == "cloze" else own  # a cloze may stand beside its statement
        numbered += [(relation, role, number, text) for number, text in enumerate(own, 1)]
    return pd.DataFrame(numbered, columns=TEMPLATES)


def statements(relation: str, texts: Iterable[str], where: str) -> list[tuple[str, str, str]]:
    """Rows (relation, "statement", template) of texts with one [X] and one [Y]; ``where`` names them in an error message."""
    for text in texts:
        if not isinstance(text, str) or text.count("[X]") != 1 or text.count("[Y]") != 1:
            raise ProbeError(f"{where}: a template of {relation} needs [X] and [Y], each once: {text!r}")
    return [(relation, "statement", text) for text in texts]


def cut(text: str) -> str | None:
    """A statement template, cut before its object; None if more than a full stop follows the object.

    >>> cut("[X] was born in [Y] .")
    '[X] was born in'
    """
    before, _, after = text.partition("[Y]")
    return before.rstrip() if not after.strip(" .") and "[X]" in before else None


def read_pageviews(path: str | Path) -> pd.DataFrame:
    """Page views (GraphEval's popularity), a JSON object {name of an entity: views}: columns ``entity`` and ``views`` (views in
    the period that the file covers, 0 or more)."""
    path = Path(path)
    views = read_json(path)
    if not isinstance(views, dict):
        raise ProbeError(f"{path}:1: an object {{name: views}} is needed, found {type(views).__name__}")
    for name, number in views.items():
        if not name.strip() or not is_a(number, int) or not 0 <= number < 2**63:
            raise ProbeError(f"{path}: {name!r}: {number!r}; a name and an integer that is 0 or more are needed")
    return pd.DataFrame({"entity": list(views), "views": pd.array(list(views.values()), dtype="int64")})
