"""Any table of triples, and how triples become the frames of ``Facts``.

A table is a CSV, TSV, Parquet, JSON or JSON Lines file with one triple per row and named columns:

=============================  ===================================================================
``relation subject object``    needed: what the relation is called (P36), labels of both ends
``relation_name``              a name to read (capital); default: ``relation``
``subject_id object_id``       an id; labels with the same id are names of one thing (``assemble``
                               says how); one of the form Q90 is a Wikidata id
``subject_aliases``            other labels, separated by "|", or a list; ``object_aliases`` may be
                               called ``aliases``, ``alias`` or ``synonyms``
``subject_types``              types, the specific one first, separated by "|" (``object_types``).
                               If no object of a relation has any, its objects are of one type
``subject_popularity``         a whole number, such as page views (``object_popularity``)
``start end``                  when the fact holds: a year or a date (1990-10-03). A fact with an
                               end, even a future one, is not scored. Both equal: a point in time
                               (an award), which stays right; a term within one year is 2005 to
                               2005-12-31
=============================  ===================================================================

A warning names other columns. Templates of facts.csv may be in facts.templates.csv (or .tsv, ...),
one per row: ``relation`` and ``template``, which is a question about [X] ("What is the capital of
[X]?"), a sentence that stops before its object ("The capital of [X] is"), or a whole one ("The
capital of [X] is [Y].", which serves as both). A column ``role`` says which, where the text does
not ("Question: Which city is the capital of [X]? Answer:" is a ``question``).

All readers end in ``assemble``, which checks every triple.
"""

import csv
import io
import json
import os
import re
import warnings
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow.parquet

from probelib import files
from probelib.errors import ProbeError, unknown
from probelib.facts import model
from probelib.facts import text as reading
from probelib.facts.model import ROLES, Facts
from probelib.facts.names import NO_NAME, clean, same_name
from probelib.facts.validity import UNKNOWN, days, is_date

NEEDED = ["relation", "subject", "object"]
LISTS = [f"{side}_{what}" for side in ("subject", "object") for what in ("aliases", "types")]
COLUMNS = [*NEEDED, "relation_name", "start", "end", "subject_id", "object_id", *LISTS]
COLUMNS += ["subject_popularity", "object_popularity"]
SYNONYMS = dict.fromkeys(["aliases", "alias", "synonyms"], "object_aliases")
SYNONYMS |= {name: name for name in COLUMNS}  # Subject
TEMPLATE = ["relation", "template", "role"]  # of a file of templates


class Entity(NamedTuple):
    """What a source says of a subject or an object."""

    label: str
    id: str = ""
    aliases: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    popularity: int = 0


class Triple(NamedTuple):
    """One fact as a source states it, at ``where`` (file:line); ``wrong`` are its distractors."""

    where: str
    relation: str
    subject: Entity
    object: Entity
    start: str = ""
    end: str = ""
    wrong: tuple[Entity, ...] = ()


def read_table(path: Path, needed: Iterable[str] = ()) -> pd.DataFrame:
    """The rows of a table file; the index is "file:line" (in Parquet and JSON, the row's number).
    Cells of CSV and TSV are text, as they are (007, NA); those of other files keep their types.

    needed   columns without which a ProbeError is raised
    """
    kind = next((s for s in reversed(path.suffixes) if s not in reading.UNPACK), "")
    if kind not in files.TABLES:
        kinds = f"{', '.join(files.TABLES[:-1])} or {files.TABLES[-1]}"
        raise ProbeError(f"{path}: a table is a {kinds} file (a spreadsheet: save it as CSV UTF-8)")
    if kind == ".parquet":
        names, rows = _read_parquet(path)
    elif kind in (".csv", ".tsv"):
        names, rows = _read_csv(path, "\t" if kind == ".tsv" else ",")
    else:
        found = reading.read_objects(path, {}) if kind == ".jsonl" else _json_rows(path)
        names = list(dict.fromkeys(name for _, row in found for name in row))
        rows = [(line, [row.get(name) for name in names]) for line, row in found]
    place = os.fsencode(path).decode(errors="replace")  # text in any locale
    index, cells = [f"{place}:{line}" for line, _ in rows], [cells for _, cells in rows]
    if missing := [name for name in needed if name not in names]:
        raise ProbeError(f"{path}:1: the columns are {names}; {', '.join(missing)} is needed")
    return pd.DataFrame(cells, index, names, dtype=object)


def _read_csv(path: Path, mark: str) -> tuple[list[str], list[tuple]]:
    rows, line = [], 1
    content = io.StringIO(reading.read_text(path).rstrip("\n"), newline="")
    reader = csv.reader(content, strict=True, delimiter=mark)
    try:
        for cells in reader:
            rows.append((line, cells))
            line = reader.line_num + 1  # a quoted cell may run over several lines
    except csv.Error as error:
        raise ProbeError(f"{path}:{line}: {error}") from error
    if not rows:
        raise ProbeError(f"{path}:1: an empty file; its first line names the columns")
    (_, header), *rows = rows
    for line, cells in rows:
        if len(cells) != len(header):
            said = f"{len(cells)} cells, the header has {len(header)}: {str(cells)[:80]}. A cell "
            raise ProbeError(f"{path}:{line}: {said}with a comma needs quotation marks")
        if cells == header:
            raise ProbeError(f"{path}:{line}: repeats the header of line 1 (two files joined?)")
    return header, rows


def _read_parquet(path: Path) -> tuple[list[str], list[tuple]]:
    try:
        buffer = pyarrow.BufferReader(reading.read_bytes(path))
        table = pyarrow.parquet.ParquetFile(buffer).read()
        cells = zip(*(column.to_pylist() for column in table.columns), strict=True)
        return table.column_names, list(enumerate(cells, 1))
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        raise ProbeError(f"{path}: not a readable Parquet file: {str(error)[:200]}") from error


def _json_rows(path: Path) -> list[tuple[int, dict]]:
    """The rows of a JSON file: a list of objects, or an object that holds one, under any key."""
    found = reading.read_json(path)
    found = list(found.values()) if isinstance(found, dict) else [found]
    lists = [value for value in found if isinstance(value, list) and value]
    if len(lists) != 1:
        raise ProbeError(f"{path}:1: a list of objects is needed, or an object with one such list")
    return [(n, reading.check_object(f"{path}:{n}", row, {})) for n, row in enumerate(lists[0], 1)]


def read_triples(path: str | Path, relations=None, columns: dict | None = None) -> Facts:
    """The facts of a table, with the templates of the file beside it, if there is one. Rows that
    repeat another count once, with a warning.

    relations  those to keep (None: all)
    columns    the kit's column -> that of the file, where they differ; "=TEXT" is the same text in
               every row: {"subject": "head", "relation": "=P36"}
    """
    path, given = Path(path), dict(columns or {})
    frame = read_table(path)
    frame = frame.assign(**{column: column[1:] for column in given.values() if column[:1] == "="})
    where, triples, names = _columns(path, list(frame), given), [], {}
    first, repeated = {}, []
    for at, *values in frame[list(where.values())].itertuples(name=None):
        cells = {name: _texts(at, name, v) for name, v in zip(where, values, strict=True)}
        if first.setdefault(tuple(cells.values()), at) != at:
            repeated.append(at)
            continue
        triples.append(_triple(at, cells))
        names.setdefault(triples[-1].relation, "".join(cells.get("relation_name", ())))
    if repeated:
        said = f"{len(repeated)} rows repeat an earlier row; each is counted once"
        warnings.warn(f"{repeated[0]}: {said}", stacklevel=2)
    names = {relation: name or relation for relation, name in names.items()}
    templates = dict.fromkeys(_templates_beside(path, set(names)))
    return model.choose(assemble(alike(triples), f"table:{path.name}", templates, names), relations)


def _columns(path: Path, header: list[str], given: dict[str, str]) -> dict[str, str]:
    """The kit's column -> that of the file; a warning names those that are not read."""
    if odd := [name for name in given if name not in COLUMNS]:
        raise ProbeError(f"columns names {odd}; the kit's columns are {COLUMNS}")
    usual = {SYNONYMS.get(name.strip().lower().replace(" ", "_")): name for name in header}
    where = {name: name if name in header else usual.get(name, name) for name in COLUMNS} | given
    needed = [where[name] for name in dict.fromkeys([*NEEDED, *given])]
    if missing := [column for column in needed if column not in header]:
        raise ProbeError(
            f"{path}:1: the columns are {header}; needed: {needed}, so {missing} are missing. "
            "Rename them, or say which are meant: columns=subject:HEAD,relation:=P36,object:TAIL "
            "(a text after = is the same in every row). Commas separate cells, tabs in a .tsv"
        )
    where = {name: column for name, column in where.items() if column in header}
    if twice := [column for column in where.values() if header.count(column) > 1]:
        raise ProbeError(f"{path}:1: the columns are {header}; {twice} may occur only once")
    if unread := {*header} - {*where.values(), "exposures", "", "__index_level_0__"}:
        said = f"columns that are not read: {', '.join(sorted(unread))}. The kit's are {COLUMNS}"
        warnings.warn(f"{path}: {said}", stacklevel=3)
    return where


def _texts(where: str, name: str, value) -> tuple[str, ...]:
    """The texts of a cell. Aliases and types may be separated by "|", or be a list in JSON."""
    if isinstance(value, str) and name in LISTS:
        try:
            value = json.loads(value) if value.lstrip().startswith("[") else value.split("|")
        except (ValueError, RecursionError):
            value = value.split("|")
    texts = []
    for each in value if isinstance(value, list) and name in LISTS else [value]:
        if each is not None and not reading.is_a(each, str | int):
            said = f"{name} is a {type(each).__name__} ({each!r}); text or an integer is needed"
            raise ProbeError(f"{where}: {said}")
        text = "" if each is None else str(each).strip()  # Parquet files may hold years as integers
        texts.append(text.rpartition("/")[2] if name.endswith("_id") and "://" in text else text)
    return tuple(text for text in texts if text)


def _triple(where: str, cells: dict[str, tuple[str, ...]]) -> Triple:
    """The fact of a row."""
    one = lambda name: "".join(cells.get(name, ()))
    ends = []
    for side in ("subject", "object"):
        number = one(f"{side}_popularity") or "0"
        if not number.isdecimal() or len(number) > 18:
            raise ProbeError(f"{where}: popularity {number!r}; an integer of at least 0 is needed")
        about = (cells.get(f"{side}_aliases", ()), cells.get(f"{side}_types", ()), int(number))
        ends.append(Entity(one(side), one(f"{side}_id"), *about))
    return Triple(where, one("relation"), *ends, one("start"), one("end"))


def alike(triples: list[Triple]) -> list[Triple]:
    """If no object of a relation has a type, all get the same one: distractors share a type."""
    typed = {t.relation for t in triples if t.object.types}
    same = lambda t: t.object._replace(types=(f"object of {t.relation}",))
    return [t if t.relation in typed else t._replace(object=same(t)) for t in triples]


def _templates_beside(table: Path, relations: set[str]) -> list[tuple[str, str, str]]:
    """Rows (relation, role, template) of the templates beside a table; none without such a file."""
    path, found = files.templates_path(table), []
    if not path.exists():
        return []
    frame = read_table(path, needed=("relation", "template")).reindex(columns=TEMPLATE).fillna("")
    for where, *cells in frame.itertuples():
        relation, text, role = (str(cell).strip() for cell in cells)
        usual = "statement" if "[Y]" in text else "question" if text.endswith("?") else "cloze"
        if relation not in relations:
            known = ", ".join(sorted(relations))
            raise ProbeError(f"{where}: {table.name} has no relation {relation!r}; it has {known}")
        if (role := role or usual) not in ROLES:
            raise unknown(f"role at {where}", role, ROLES)
        if text.count("[X]") != 1 or text.count("[Y]") != (role == "statement"):
            wanted = "needs [X] (the subject) exactly once, and [Y] once in a statement alone"
            raise ProbeError(f"{where}: {text!r}, a {role}, {wanted}")
        found.append((relation, role, text))
    return found


def assemble(triples: Iterable[Triple], source: str, templates=(), names: dict | None = None):
    """``Facts`` from triples: the last step of the readers. Names are written as ``names.clean``
    does. Raise ProbeError for a triple that is no fact; warn of names that are none, or changed.

    templates   rows (relation, role, template); a statement that ends in its object is a ``cloze``,
                too
    names       relation -> its name

    An entity's key is its id, or its label if it has no id. An id with several labels gives one
    entity per label, so that every text reads as in the source: the first (objects come first) has
    the id as its key, the next ``Q928:Philippines``; each has the others' labels as aliases. A
    fact's id is ``relation:subject:object`` in ids (or labels); a repeated one gets its line.
    """
    triples, rows, distractors, seen = _checked(triples), [], [], set()
    named = [entity for t in triples for entity in (t.object, *t.wrong)]
    keys, entities = _entities(named + [t.subject for t in triples], source)
    key_of = lambda entity: keys[entity.id, entity.label]
    for t in triples:
        fact = f"{t.relation}:{t.subject.id or t.subject.label}:{t.object.id or t.object.label}"
        fact = f"{fact}:line{t.where.rpartition(':')[2]}" if fact in seen else fact
        seen.add(fact)
        rows.append((fact, t.relation, key_of(t.subject), key_of(t.object), t.start, t.end))
        distractors += [(fact, number, key_of(o)) for number, o in enumerate(t.wrong, 1)]
    facts = pd.DataFrame(rows, columns=model.FACTS)
    wrong = pd.DataFrame(distractors, columns=model.DISTRACTORS)
    relations, texts = relation_frame(facts, names or {}), _template_frame(templates)
    return model.validate(Facts(facts, entities, relations, texts, wrong, source))


def _checked(triples: Iterable[Triple]) -> list[Triple]:
    """The triples with clean names; the one place where they are validated."""
    changed, odd, found = {}, {}, []

    def cleaned(entity: Entity, where: str) -> Entity:
        label, aliases = clean(entity.label), tuple(filter(None, map(clean, entity.aliases)))
        if label != entity.label.strip():
            changed.setdefault(entity.label, f"{where}: {entity.label!r}, read as {label!r}")
        if NO_NAME.fullmatch(label):
            odd.setdefault(label, f"{where}: {label!r}")
        return entity._replace(label=label, aliases=aliases)

    for t in triples:
        subject, obj = cleaned(t.subject, t.where), cleaned(t.object, t.where)
        parts = {"relation": t.relation.strip(), "subject": subject.label, "object": obj.label}
        if empty := [name for name, text in parts.items() if not text]:
            said = f"an empty {' and '.join(empty)}; fill it in, or delete the row"
            raise ProbeError(f"{t.where}: {said}")
        for name, date in (("start", t.start), ("end", t.end)):
            if date not in ("", UNKNOWN) and not is_date(date):
                allowed = "a year, a month (1990-10), a day (1990-10-03) or ? is needed"
                raise ProbeError(f"{t.where}: {name} {date!r}; {allowed}")
        if not {"", UNKNOWN} & {t.start, t.end} and days([t.end])[1] < days([t.start])[0]:
            raise ProbeError(f"{t.where}: it ends ({t.end}) before it starts ({t.start})")
        wrong = tuple(cleaned(o, t.where) for o in t.wrong)
        found.append(t._replace(subject=subject, object=obj, wrong=wrong))
    for texts, what in ((odd, "labels are no names"), (changed, "labels are written differently")):
        if texts:
            first = next(iter(texts.values()))
            warnings.warn(f"{len(texts)} {what}; the first is at {first}", stacklevel=4)
    return found


def _entities(entities: Iterable[Entity], source: str) -> tuple[dict, pd.DataFrame]:
    """((id, label) -> key, the frame): one entity per pair of id and label."""
    keys, about, labels, spelled = {}, {}, {}, {}
    for entity in entities:
        pair = (entity.id, entity.label)
        if pair not in keys:
            key = entity.id or entity.label
            while key in about:
                key += f":{entity.label}"
            keys[pair], about[key] = key, (entity, {}, {})
            labels.setdefault(entity.id, {})[entity.label] = None
            spelled.setdefault(same_name(entity.label), {})[entity.label] = None
        _, aliases, types = about[keys[pair]]
        aliases.update(dict.fromkeys(entity.aliases))
        types.update(dict.fromkeys(entity.types))
    rows = []
    for key, (entity, aliases, types) in about.items():
        known = labels[entity.id] if entity.id else {}
        names = tuple(name for name in known | aliases if name != entity.label)
        wikidata = entity.id if len(known) > 1 or re.fullmatch(r"Q\d+", entity.id) else ""
        rows.append((key, entity.label, wikidata, names, tuple(types), entity.popularity))
    if several := [list(texts) for texts in spelled.values() if len(texts) > 1]:
        said = f"{len(several)} names are spelled in several ways and count as one each; the first"
        said += f" are {several[0][0]!r} and {several[0][1]!r}"
        warnings.warn(f"{source}: {said}", stacklevel=4)
    return keys, pd.DataFrame(rows, columns=model.ENTITIES)


def relation_frame(facts: pd.DataFrame, names: dict[str, str]) -> pd.DataFrame:
    """The relations of some facts, by number. One is functional if no subject has two objects."""
    held = facts[model.holds(facts)].groupby(["relation", "subject"])["object"].nunique()
    several = held.groupby("relation").max() > 1
    relations = sorted(facts["relation"].unique(), key=lambda r: (reading.number_in(r), r))
    rows = [(r, names.get(r, r), "", "", not several.get(r, False)) for r in relations]
    return pd.DataFrame(rows, columns=model.RELATIONS)


def _template_frame(rows: Iterable[tuple[str, str, str]]) -> pd.DataFrame:
    """The templates of ``assemble``, numbered by relation and role. "[X] was born in [Y]." is a
    cloze, too: "[X] was born in"."""
    texts, numbered = {}, []
    for relation, role, text in rows:
        texts.setdefault((relation, role), []).append(text)
        before, _, after = text.partition("[Y]")
        if role == "statement" and "[X]" in before and not after.strip(" ."):
            texts.setdefault((relation, "cloze"), []).append(before.rstrip())
    for relation, role in product(dict.fromkeys(relation for relation, _ in texts), ROLES):
        own = texts.get((relation, role), [])
        own = dict.fromkeys(own) if role == "cloze" else own  # it may stand beside its statement
        numbered += [(relation, role, number, text) for number, text in enumerate(own, 1)]
    return pd.DataFrame(numbered, columns=model.TEMPLATES)
