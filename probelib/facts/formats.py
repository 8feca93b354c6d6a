"""Published data sets: ``datasets.yaml`` maps the columns of most; others have a reader here.

An entry of ``datasets.yaml``:

    popqa:
      hub: akariasai/PopQA           # data=hub:... downloads it; data=popqa reads a folder
      files: test.tsv                # below the folder; {relation} in a name is the relation
      columns: {subject: subj, ...}  # name of the kit: column of the file (``table.triples_of``)
      relations: {occupation: P106}  # where the atlas has another name
      templates: {files: ..., ...}   # statements in files of their own: their keys; or questions
      revision: ...                  # on the Hub, where it is not main
      quoted: true                   # a .tsv with quotation marks around cells
      only_questions: true           # questions without relations: for MONITOR only

``fktc`` (MONITOR)    ``P37-subclass.json``, JSON Lines: line 1 has the prompt frames
                      ({"relations": [...]}), the others a fact with five distractors each
``bear`` [bear]       ``P36.jsonl``, one fact per line; ``metadata_relations.json``: the templates
                      and the answer space, whose other members are the distractors
``trex_mc`` (ZP-LKE)  ``test-*.parquet``: 100 train and 400 test rows per relation, each with 99
                      wrong options as the text of a Python list
"""

import ast
import re
from functools import cache, partial
from pathlib import Path

import pandas as pd

from probelib.errors import ProbeError, unknown
from probelib.facts import table
from probelib.facts import text as reading
from probelib.facts.model import Facts, choose, tuples
from probelib.facts.shipped import atlas
from probelib.facts.table import Entity, Triple, assemble
from probelib.facts.text import check_object, check_texts, is_a, read_json, read_objects
from probelib.files import TABLES
from probelib.paths import PACKAGE

HUB = re.compile(r"hub:([\w.-]+/[\w.-]+)(?:@([\w.%-]+))?(?:/(.+))?")
SPLITS = {"train": 100, "test": 400}  # T-REx-MC: rows per relation
OPTIONS = 100  # with the right answer


@cache
def maps() -> dict[str, dict]:
    """name -> its entry in ``datasets.yaml``."""
    return reading.read_yaml(PACKAGE / "facts" / "datasets.yaml")


def files_of(folder: Path, pattern: str, relations: list[str] | None = None) -> dict[Path, str]:
    """The files that match a pattern such as "TREx/{relation}.jsonl", compressed or not -> the
    relation, by relation (P9 comes before P10); "" if the pattern has none. Raise ProbeError if one
    is missing."""
    if folder.is_file():
        return {folder: ""}
    if not folder.is_dir():
        raise ProbeError(f"{folder}: no such folder")
    inside = re.escape(pattern).replace(r"\{relation\}", "(?P<relation>[^/]+)")
    inside = inside.replace(r"\*\*/", "(?:.*/)?").replace(r"\*", ".*") + r"(\.gz|\.bz2)?"
    found, wanted = {}, set(relations or ()) if "{relation}" in pattern else set()
    for path in sorted(folder.glob(pattern.replace("{relation}", "*") + "*")):
        if match := re.fullmatch(inside, path.relative_to(folder).as_posix()):
            relation = match.groupdict().get("relation", "")
            if relation and relation in found.values():
                raise ProbeError(f"{folder}: two files for {relation}")
            if relation in wanted or not wanted:
                found[path] = relation
    missing = wanted - set(found.values())
    if missing or not found:
        place = (folder / pattern).parent if (folder / pattern).parent.is_dir() else folder
        names = ", ".join(sorted(path.name for path in place.iterdir())[:9]) or "none"
        which = f" for {min(missing)}" if missing else ""
        raise ProbeError(f"{folder}: no file {pattern}{which} there; found: {names}")
    return dict(sorted(found.items(), key=lambda each: (reading.number_in(each[1]), *each[::-1])))


# Data sets that datasets.yaml describes


def read_dataset(name: str, folder: str | Path, relations: list[str] | None = None) -> Facts:
    """The facts of a data set of ``datasets.yaml`` in a folder (or in its one file)."""
    return _read(maps()[name], Path(folder), relations, f"{name}:{Path(folder).name}")


def _read(entry: dict, folder: Path, relations: list[str] | None, source: str) -> Facts:
    triples, templates, names = [], {}, {}
    for path, relation in files_of(folder, entry["files"], relations).items():
        given = entry["columns"] | ({"relation": f"={relation}"} if relation else {})
        only = table.constants(given, table.KNOWN)
        columns = {*table.COLUMNS, *given.values()} - {f"={word}" for word in only.values()}
        frame = table.read_table(path, columns, only, entry.get("quoted", False))
        more, texts, called = table.triples_of(path, frame, given, entry.get("relations"))
        triples, templates, names = triples + more, templates | texts, names | called
    about = entry.get("templates", {})
    templates |= {(r, "question", one): None for r in names for one in about.get("question", ())}
    for path, own in files_of(folder, about["files"]).items() if "files" in about else ():
        for line, row in read_objects(path, {}):
            if (relation := own or row.get(about.get("relation"))) in names:
                text = _statement(f"{path}:{line}", relation, row.get(about["statement"]))
                templates[relation, "statement", text] = None
                names[relation] = row.get(about.get("name")) or names[relation]
    return choose(assemble(table.alike(triples), source, templates, names), relations)


def _statement(where: str, relation: str, text: object) -> str:
    if not isinstance(text, str) or text.count("[X]") != 1 or text.count("[Y]") != 1:
        said = f"a template of {relation} needs [X] and [Y], each once: {text!r}"
        raise ProbeError(f"{where}: {said}")
    return text


def require_relations(facts: Facts) -> None:
    """Raise ProbeError for facts of a data set with ``only_questions``: answers to its other
    questions are neither plausible wrong options of a question nor examples of its relation."""
    odd = {name: entry for name, entry in maps().items() if entry.get("only_questions")}
    sources = [*(f"{name}:" for name in odd), *(f"hub:{entry['hub']}@" for entry in odd.values())]
    if facts.source.startswith(tuple(sources)):
        raise ProbeError(
            f"{facts.source} has questions without relations, so nothing says which other answers "
            "are plausible wrong options or examples. It is for MONITOR: --only monitor. Multiple "
            "choice, lists of examples and distractors need facts with relations, for example "
            f"{', '.join(name for name in maps() if name not in odd)}"
        )


def read_hub(data: str, columns: dict[str, str], relations: list[str] | None = None) -> Facts:
    """The facts of ``hub:OWNER/NAME[@REVISION][/FILES]``, a data set of the Hugging Face Hub that
    is downloaded once.

    ``datasets.yaml`` knows the columns of some; ``columns`` add to them. FILES is a file or a
    pattern (data/test-*.parquet), if there are several. A slash in a revision is written %2F.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    from requests import RequestException

    if not (match := HUB.fullmatch(data)):
        form = "hub:OWNER/NAME is expected, with @REVISION and /FILES if needed"
        raise ProbeError(f"data={data}: {form}")
    repo, revision, inside = match.groups()
    entry = next((entry for entry in maps().values() if entry.get("hub") == repo), {"columns": {}})
    entry = entry | {"columns": entry["columns"] | columns} | ({"files": inside} if inside else {})
    revision = (revision or entry.get("revision", "main")).replace("%2F", "/")
    wanted = [entry["files"]] if "files" in entry else [f"*{kind}" for kind in TABLES]
    options = {"repo_type": "dataset", "revision": revision, "allow_patterns": wanted}
    try:
        folder = Path(snapshot_download(repo, **options))  # its name is the commit
    except (HfHubHTTPError, LocalEntryNotFoundError, RequestException, OSError) as error:
        said = " ".join(str(error).split())[:300].rstrip(".")
        how = "Check the name and the network, or download its files elsewhere and read them with"
        how += " data=NAME folder=FOLDER (a name of datasets.yaml) or data=table folder=FILE"
        raise ProbeError(f"hub:{repo}@{revision} cannot be downloaded: {said}. {how}") from error
    if "files" not in entry:
        paths = sorted(p for kind in TABLES for p in folder.rglob(f"*{kind}"))
        names = [path.relative_to(folder).as_posix() for path in paths]
        if len({path.suffix for path in paths}) != 1:
            said = f"its tables are {', '.join(names) or 'none'}; name one or a pattern"
            raise ProbeError(f"{data}: {said}: {data}/FILE")
        entry["files"] = f"**/*{paths[0].suffix}"
    return _read(entry, folder, relations, f"hub:{repo}@{folder.name[:12]}")


# Data sets with a reader of their own


def read_fktc(folder: str | Path, relations: list[str] | None = None) -> Facts:
    """MONITOR's FKTC files. Duplicate (subject, object) lines (12 in the release) get ids that end
    in their line number. The released P17 frames do not say "country", unlike those in the
    paper."""
    folder, triples, frames = Path(folder), [], []
    # the released P276 file is called P276-subclass..json
    for path, relation in files_of(folder, "{relation}-subclass*.json", relations).items():
        (_, header), *rows = read_objects(path, {})
        header = check_object(f"{path}:1", header, {"relations": list}, exact=True)["relations"]
        if not header or not all(isinstance(f, str) and f.count("[X]") == 1 for f in header):
            said = "`relations` must be a list of frames with [X] exactly once each"
            raise ProbeError(f"{path}:1: {said}")
        if not rows:
            raise ProbeError(f"{path}:2: no facts after the header")
        frames += [(relation, "question", frame) for frame in header]
        for line, row in rows:
            where = f"{path}:{line}"
            check_object(where, row, {"subject": str, "object": str, "taxonomy": list}, exact=True)
            wrong = tuple(map(Entity, check_texts(where, "taxonomy", row["taxonomy"])))
            ends = (Entity(row["subject"]), Entity(row["object"]))
            triples.append(Triple(where, relation, *ends, wrong=wrong))
    names = dict(tuples(atlas().relations, "relation", "name"))
    return assemble(triples, f"fktc:{folder.name}", frames, names | {"P1412": "languages spoken"})


def read_trex_mc(folder: str | Path, split: str = "test") -> Facts:
    """One split of T-REx-MC, its wrong options as distractors.

    A relation is named by its Wikidata property if ``relationID_names.json`` has it, otherwise by
    its name. Options that equal the right answer are left out, and duplicates count once. A fact
    whose list cannot be read has no distractors.
    """
    folder, triples, names = Path(folder), [], {}
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    (path,) = files_of(folder, f"{split}-00000-of-00001.parquet")
    ids = folder / "relationID_names.json"
    known = check_object(f"{ids}:1", read_json(ids), {}) if ids.exists() else {}
    columns = {"Relation_ID": int} | dict.fromkeys(("Relation Name", "Subject", "Object"), str)
    rows = table.read_table(path, columns := columns | {"Multiple Choices": str})
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
    return assemble(triples, f"trex-mc:{split}", names=names)


def read_bear(folder: str | Path, relations: list[str] | None = None) -> Facts:
    """BEAR or BEAR-big; the other members of the answer space are a fact's distractors, in their
    order. Each template is a ``statement``; lm-pub-quiz scores statement 1."""
    folder, triples, templates = Path(folder), [], []
    path, lists = folder / "metadata_relations.json", ("answer_space_labels", "answer_space_ids")
    about = check_object(f"{path}:1", read_json(path), {})
    if missing := [relation for relation in relations or () if relation not in about]:
        raise unknown(f"relation in {path}", missing[0], about)
    keys = dict.fromkeys(("sub_id", "sub_label", "obj_id", "obj_label"), str)
    for file, relation in files_of(folder, "{relation}.jsonl", relations or list(about)).items():
        where = f"{path}: {relation}"
        entry = check_object(where, about[relation], dict.fromkeys(("templates", *lists), list))
        labels, ids = (check_texts(where, name, entry[name]) for name in lists)
        if not labels or len(labels) != len(ids) or len(set(ids)) != len(ids):
            said = f"{len(labels)} labels and {len(set(ids))} distinct ids of {len(ids)}"
            raise ProbeError(f"{where}: the answer space has {said}; one id per label, each once")
        space = [Entity(*pair) for pair in zip(labels, ids, strict=True)]
        texts = [_statement(where, relation, text) for text in entry["templates"]]
        templates += [(relation, "statement", text) for text in texts]
        for line, row in read_objects(file, keys):
            where, obj = f"{file}:{line}", Entity(row["obj_label"].strip(), row["obj_id"])
            index = row.get("answer_idx", space.index(obj) if obj in space else None)
            if not is_a(index, int) or not 0 <= index < len(space) or space[index] != obj:
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


READERS = {"fktc": read_fktc, "bear": read_bear, "table": table.read_triples}
READERS |= {"trex_mc": lambda folder, relations: choose(read_trex_mc(folder), relations)}
READERS |= {name: partial(read_dataset, name) for name in maps()}
