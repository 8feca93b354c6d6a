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
import difflib
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
import pyarrow
import pyarrow.compute
import pyarrow.parquet

from probelib import files
from probelib.errors import ProbeError, unknown
from probelib.facts import model
from probelib.facts import text as reading
from probelib.facts.model import ROLES, Facts
from probelib.facts.names import NO_NAME, clean, same_name
from probelib.facts.validity import UNKNOWN, days, is_date

NEEDED = ["relation", "subject", "object"]
SIDES = [f"{s}_{what}" for s in ("subject", "object") for what in ("id", "aliases", "types")]
COLUMNS = [*NEEDED, "relation_name", "start", "end", *SIDES]
COLUMNS += ["subject_popularity", "object_popularity"]
SENTENCES = ROLES[:3]  # the roles of templates that a file may have
KNOWN = (*COLUMNS, *SENTENCES)
SEVERAL = {*SENTENCES, "object", *SIDES} - {"subject_id"}  # cells that may hold a list
SYNONYMS = dict.fromkeys(["aliases", "alias", "object_alias", "synonyms"], "object_aliases")
SYNONYMS |= {"subject_alias": "subject_aliases"} | {name: name for name in COLUMNS}  # Subject
TEMPLATE = ["relation", "template", "role"]  # of a file of templates
LINE = "\0line"  # a column of Parquet tables while they are read
QUOTED = re.compile(r'"[^"]*(""[^"]*)+"')  # as CSV writes a cell that holds quotation marks


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


# Files -> rows


def read_table(
    path: Path,
    columns: Iterable[str] | None = None,
    only: dict | None = None,
    quoted: bool = False,
    needed: Iterable[str] = (),
) -> pd.DataFrame:
    """The rows of a table file; the index is "file:line" (in Parquet and JSON, the row's number).

    columns  those to read of a Parquet file, where it has them; "a.b" is the value b inside of a
    only     read only rows with these values, {column: text}: {"language": "en"}
    quoted   whether a .tsv has quotation marks around cells, as pandas and Excel write it
    needed   columns without which a ProbeError is raised
    Cells of CSV and TSV are text, as they are (007, NA); those of other files keep their types.
    """
    only = only or {}
    kind = next((s for s in reversed(path.suffixes) if s not in reading.UNPACK), "")
    if kind not in files.TABLES:
        kinds = f"{', '.join(files.TABLES[:-1])} or {files.TABLES[-1]}"
        raise ProbeError(f"{path}: a table is a {kinds} file (a spreadsheet: save it as CSV UTF-8)")
    if kind == ".parquet":
        names, rows = _read_parquet(path, columns and {*columns, *only}, only)
    elif kind in (".csv", ".tsv"):
        names, rows = _read_csv(path, "\t" if kind == ".tsv" else ",", quoted or kind == ".csv")
    else:
        found = reading.read_objects(path, {}) if kind == ".jsonl" else _json_rows(path)
        flat = [(line, _flat(row)) for line, row in found]
        names = list(dict.fromkeys(name for _, row in flat for name in row))
        rows = [(line, [row.get(name) for name in names]) for line, row in flat]
    place = os.fsencode(path).decode(errors="replace")  # text in any locale
    index, cells = [f"{place}:{line}" for line, _ in rows], [cells for _, cells in rows]
    frame = pd.DataFrame(cells, index, names, dtype=object)
    if missing := [name for name in (*needed, *only) if name not in frame]:
        raise ProbeError(f"{path}:1: the columns are {names}; {', '.join(missing)} is needed")
    for name, wanted in only.items():
        frame = frame[[str(value).lower() == wanted.lower() for value in frame[name].tolist()]]
    return frame


def _read_csv(path: Path, mark: str, quoted: bool) -> tuple[list[str], list[tuple]]:
    rows, line, quoting = [], 1, csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    content = io.StringIO(reading.read_text(path).rstrip("\n"), newline="")
    reader = csv.reader(content, strict=True, delimiter=mark, quoting=quoting)
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
        said = ""
        if len(cells) != len(header):
            said = f"{len(cells)} cells, the header has {len(header)}: {str(cells)[:80]}. A cell "
            said += "with a comma needs quotation marks"
        elif cells == header:
            said = "repeats the header of line 1 (two files joined?)"
        elif not quoted and any(map(QUOTED.fullmatch, cells)):
            said = "quotation marks around a cell of a .tsv would be part of it. Save it as .csv"
        if said:
            raise ProbeError(f"{path}:{line}: {said}")
    return header, rows


def _read_parquet(path: Path, wanted: set | None, only: dict) -> tuple[list[str], list[tuple]]:
    """Rows that ``only`` leaves out never become Python objects: some data sets have millions."""
    try:
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(reading.read_bytes(path)))
        tops = {part for name in wanted or () for part in (name, name.split(".")[0])}
        table = file.read([n for n in file.schema_arrow.names if wanted is None or n in tops])
        while any(pyarrow.types.is_struct(kind) for kind in table.schema.types):
            table = table.flatten()
        table = table.append_column(LINE, [pyarrow.array(range(1, len(table) + 1))])
        for name in only.keys() & set(table.column_names):
            texts = pyarrow.compute.utf8_lower(table[name].cast("string"))
            table = table.filter(pyarrow.compute.equal(texts, only[name].lower()))
        *cells, lines = (column.to_pylist() for column in table.columns)
        cells = map(list, zip(*cells, strict=True)) if cells else ([] for _ in lines)
        return table.column_names[:-1], list(zip(lines, cells, strict=True))
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


def _flat(row: dict, before: str = "") -> dict:
    """Nested objects as columns: {"a": {"b": 1}} is {"a.b": 1}."""
    cells = {}
    for key, value in row.items():
        nested = isinstance(value, dict)
        cells |= _flat(value, f"{before}{key}.") if nested else {f"{before}{key}": value}
    return cells


# Rows -> triples


def read_triples(
    path: str | Path, relations: list[str] | None = None, columns: dict[str, str] | None = None
) -> Facts:
    """The facts of a table, with the templates of the file beside it, if there is one.

    relations  those to keep (None: all)
    columns    mapping of the kit's columns to those of the file (see ``triples_of``):
               {"subject": "head", "relation": "=P36"}
    """
    path, given = Path(path), dict(columns or {})
    only = constants(given, KNOWN)
    frame = read_table(path, only=only)
    for name in frame.columns.difference([*COLUMNS, *given.values()]):
        if (kit := SYNONYMS.get(name.strip().lower().replace(" ", "_"))) and kit not in frame:
            given.setdefault(kit, name)
    read = {*COLUMNS, *given.values(), *only, "", "__index_level_0__"}
    if unread := [name for name in frame.columns.unique() if name not in read]:
        said = f"columns that are not read: {', '.join(unread)}. The kit's are {', '.join(COLUMNS)}"
        warnings.warn(f"{path}: {said}", stacklevel=2)
    triples, templates, names = triples_of(path, frame, given)
    templates |= dict.fromkeys(_templates_beside(path, set(names)))
    return model.choose(assemble(alike(triples), f"table:{path.name}", templates, names), relations)


def constants(given: dict[str, str], but: Iterable[str] = ()) -> dict[str, str]:
    """The names whose "column" is a text ("=P36") -> the text."""
    return {n: c[1:] for n, c in given.items() if c.startswith("=") and n not in but}


def triples_of(
    path: Path, frame: pd.DataFrame, given: dict[str, str], relations: dict | None = None
) -> tuple[list[Triple], dict[tuple, None], dict[str, str]]:
    """(triples, one per object of a row; rows (relation, role, template), each once; names of
    relations). Warn of rows that repeat another, and of texts that cannot be templates.

    given      name of the kit -> column of the file, where they differ. Names are those of the
               module's docstring, and ``question``, ``cloze`` and ``statement``: texts that become
               templates. Such a text holds its subject, [X] or {} exactly once. "=TEXT" in place of
               a column is the same in every row. Without a relation, each question is a relation of
               its own
    relations  name in the file -> id
    """
    rows = _kit_columns(path, frame, given)
    roles, triples, templates, names = [r for r in SENTENCES if r in given], [], {}, {}
    first, repeated, unusable = {}, [], []
    for where, values in zip(rows.index, rows.itertuples(index=False), strict=True):
        cells = {n: _texts(where, n, v) for n, v in zip(rows.columns, values, strict=True)}
        found = [(role, _template(text, role, cells)) for role in roles for text in cells.pop(role)]
        unusable += [where] * any(text is None for _, text in found)
        found = [(role, text) for role, text in found if text]
        if "relation" not in rows and not found:
            continue
        name = " ".join(cells["relation"]) if "relation" in rows else found[0][1]
        relation = (relations or {}).get(name, name)
        found += [("statement", f"{text} [Y].") for role, text in found if role == "cloze"]
        templates |= dict.fromkeys((relation, role, text) for role, text in found)
        if first.setdefault((relation, *cells.values()), where) != where:
            repeated.append(where)
            continue
        triples += _row(where, relation, cells)
        names.setdefault(relation, (cells.get("relation_name") or (name,))[0])
    for odd, said in (
        ([] if roles else repeated, "rows repeat an earlier row; each is counted once"),
        (unusable, "rows have a text that does not name its subject exactly once: no template"),
    ):
        if odd:
            warnings.warn(f"{odd[0]}: {len(odd)} {said}", stacklevel=3)
    return triples, templates, names


def _kit_columns(path: Path, frame: pd.DataFrame, given: dict[str, str]) -> pd.DataFrame:
    """The rows with the kit's names of columns."""
    constant, header = constants(given), list(frame.columns)
    if odd := [name for name in given if name not in KNOWN and name not in constant]:
        raise ProbeError(f"columns names {odd}; the kit's columns are {list(KNOWN)}")
    where = {n: given.get(n, n) for n in KNOWN if n in COLUMNS or n in given}
    where = {n: c for n, c in where.items() if n not in constant}
    needed = set(NEEDED) | {n for n in given if not n.endswith("popularity")}
    needed -= {"relation"} if "question" in given and "relation" not in given else set()
    needed = [c for n, c in where.items() if n in needed]
    if missing := [column for column in needed if column not in header]:
        usual = {"relation": "=P36 (a text after = is the same in every row)"}
        near = {n: difflib.get_close_matches(n, header, n=1) for n in missing}
        pairs = [f"{n}:{near[n][0] if near[n] else usual.get(n, 'NAME')}" for n in missing]
        hint = f"Rename them in the file, or say which are meant: columns={','.join(pairs)}"
        if len(header) == 1 and (found := [mark for mark in ";\t" if mark in header[0]]):
            hint = f"The cells are separated by {found[0]!r}: use commas, or tabs in a .tsv file"
        raise ProbeError(f"{path}:1: the columns are {header}; needed, each once: {needed}. {hint}")
    if twice := [column for column in where.values() if header.count(column) > 1]:
        said = f"the columns are {header}; {', '.join(twice)} may occur only once"
        raise ProbeError(f"{path}:1: {said}")
    rows = {n: frame[c] for n, c in where.items() if c in header}
    rows |= {n: text for n, text in constant.items() if n in KNOWN}
    return pd.DataFrame(rows, frame.index, dtype=object)


def _texts(where: str, name: str, value) -> tuple[str, ...]:
    """The texts of a cell. Aliases and types may be separated by "|", or be a list in JSON."""
    if isinstance(value, str) and name.endswith(("aliases", "types")):
        try:
            value = json.loads(value) if value.lstrip().startswith("[") else value.split("|")
        except (ValueError, RecursionError):
            value = value.split("|")
    texts = []
    for each in value if isinstance(value, list) and name in SEVERAL else [value]:
        if each is not None and not reading.is_a(each, str | int):
            said = f"{name} is a {type(each).__name__} ({each!r}); text or an integer is needed"
            raise ProbeError(f"{where}: {said}")
        text = "" if each is None else str(each).strip()  # Parquet files may hold years as integers
        texts.append(text.rpartition("/")[2] if name.endswith("_id") and "://" in text else text)
    return tuple(text for text in texts if text)


def _template(text: str, role: str, cells: dict[str, tuple[str, ...]]) -> str | None:
    """A text with [X] in place of its subject; None if it is no template of the role."""
    text, subject = text.replace("{}", "[X]"), " ".join(cells["subject"])
    if "[X]" not in text and subject and text.count(subject) == 1:
        text = text.replace(subject, "[X]")
    return text if text.count("[X]") == 1 and text.count("[Y]") == (role == "statement") else None


def _row(where: str, relation: str, cells: dict[str, tuple[str, ...]]) -> list[Triple]:
    """One fact per object of a row."""
    get, one = (lambda name: cells.get(name, ())), (lambda name: "".join(cells.get(name, ())))
    number = {side: one(f"{side}_popularity") or "0" for side in ("subject", "object")}
    if odd := [text for text in number.values() if not text.isdecimal() or len(text) > 18]:
        raise ProbeError(f"{where}: popularity {odd[0]!r}; an integer of at least 0 is needed")
    labels, ids = get("object") or ("",), get("object_id")
    if len(ids) not in (0, len(labels)):
        n = f"{len(ids)} object_ids for {len(labels)} objects"
        raise ProbeError(f"{where}: {n}; give one per object, or none")
    about = (get("subject_aliases"), get("subject_types"), int(number["subject"]))
    subject = Entity(one("subject"), one("subject_id"), *about)
    # with several objects, it is unknown which one an alias belongs to
    about = (get("object_aliases") * (len(labels) == 1), get("object_types"), int(number["object"]))
    objects = zip(labels, ids or [""] * len(labels), strict=True)
    ends = (one("start"), one("end"))
    return [Triple(where, relation, subject, Entity(*named, *about), *ends) for named in objects]


def alike(triples: list[Triple]) -> list[Triple]:
    """If no object of a relation has a type, all get the same one: distractors share a type."""
    typed = {t.relation for t in triples if t.object.types}
    same = lambda t: t.object._replace(types=(f"object of {t.relation}",))
    return [t if t.relation in typed else t._replace(object=same(t)) for t in triples]


def _templates_beside(table: Path, relations: set[str]) -> list[tuple[str, str, str]]:
    """Rows (relation, role, template) of the templates beside a table; none without such a file."""
    path, found = files.templates_path(table), []
    stem = re.escape(path.name[: path.name.rindex(".templates.")])
    for other in sorted(path.parent.glob("*emplate*")):
        odd = re.fullmatch(rf"{stem}[\W_]*templates?\b.*", other.name, re.IGNORECASE)
        if odd and other != path:
            said = f"templates that are not read; the kit reads {path.name}"
            warnings.warn(f"{other}: {said}", stacklevel=3)
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


# Triples -> facts


def assemble(
    triples: Iterable[Triple],
    source: str,
    templates: Iterable[tuple] = (),
    names: dict[str, str] | None = None,
) -> Facts:
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
