"""Published data sets: ``datasets.yaml`` maps the columns of most; others have a reader here.

An entry of ``datasets.yaml``:

    popqa:
      hub: akariasai/PopQA           # data=hub:... downloads it; data=popqa reads a folder
      files: test.tsv                # below the folder; {relation} in a name is the relation
      columns: {subject: subj, ...}  # name of the kit: column of the file (``table.triples_of``)
      relations: {occupation: P106}  # where the atlas has another name
      templates: {files: ..., ...}   # templates in files of their own: their columns; or questions
      revision: ...                  # on the Hub, where it is not main
      quoted: true                   # a .tsv with quotation marks around cells
      only_questions: true           # questions without relations: for MONITOR only

``lama`` [lama]       ``TREx/P19.jsonl``, one fact per line; ``relations.jsonl``: the templates
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
from probelib.facts.model import Facts, choose
from probelib.facts.shipped import atlas
from probelib.facts.table import Entity, Triple, assemble, read_table, statements
from probelib.facts.text import (
    check_object,
    check_relations,
    check_texts,
    is_a,
    number_in,
    read_json,
    read_objects,
    read_yaml,
)
from probelib.files import TABLES
from probelib.paths import PACKAGE

HUB = re.compile(r"hub:([\w.-]+/[\w.-]+)(?:@([\w.%-]+))?(?:/(.+))?")
SPLITS = {"train": 100, "test": 400}  # T-REx-MC: rows per relation
OPTIONS = 100  # with the right answer
RESULTS = ["model", "relation", "template", "fact", "subject", "subject_label", "gold", "candidate"]
RESULTS += ["label", "logprob"]


@cache
def maps() -> dict[str, dict]:
    """name -> its entry in ``datasets.yaml``."""
    return read_yaml(PACKAGE / "facts" / "datasets.yaml")


def parse_columns(text: str) -> dict[str, str]:
    """``subject:s,relation:=P36`` as a mapping."""
    pairs = [pair.partition(":") for pair in text.split(",") if pair.strip()]
    if wrong := [name for name, _, column in pairs if not (name.strip() and column.strip())]:
        raise ProbeError(
            f"columns: {wrong[0]!r} names no column; write subject:s,relation:prop,object:o"
        )
    return {name.strip(): column.strip() for name, _, column in pairs}


def files_of(folder: Path, pattern: str, relations: list[str] | None = None) -> dict[Path, str]:
    """The files that match a pattern such as "TREx/{relation}.jsonl", compressed or not -> the
    relation, by relation (P9 comes before P10); "" if the pattern has none. Raise ProbeError if one
    is missing."""
    if folder.is_file():
        return {folder: ""}
    if not folder.is_dir():
        raise ProbeError(f"{folder}: no such folder")
    inside = re.escape(pattern).replace(r"\{relation\}", "(?P<relation>[^/]+)")
    inside = inside.replace(r"\*\*/", "(?:.*/)?").replace(r"\*", ".*")
    name = re.compile(rf"{inside}(\.gz|\.bz2|\.xz)?")
    found = {}
    for path in sorted(folder.glob(pattern.replace("{relation}", "*") + "*")):
        if match := name.fullmatch(path.relative_to(folder).as_posix()):
            found[path] = match.groupdict().get("relation", "")
    there = list(found.values())
    if "{relation}" in pattern and (twice := [r for r in there if there.count(r) > 1]):
        raise ProbeError(f"{folder}: two files for {twice[0]}")
    if relations and "{relation}" in pattern:
        if missing := [relation for relation in relations if relation not in there]:
            said = f"no file for {missing[0]}; files are named like {pattern}"
            raise ProbeError(f"{folder}: {said}, found: {', '.join(sorted(there)) or 'none'}")
        found = {path: relation for path, relation in found.items() if relation in relations}
    if not found:
        names = sorted(path.name for path in folder.iterdir())[:5]
        raise ProbeError(f"{folder}: no file {pattern} there; found: {', '.join(names) or 'none'}")
    return dict(sorted(found.items(), key=lambda each: (number_in(each[1]), each[1], each[0])))


# Data sets that datasets.yaml describes


def read_dataset(name: str, folder: str | Path, relations: list[str] | None = None) -> Facts:
    """The facts of a data set of ``datasets.yaml`` in a folder (or in its one file)."""
    return _read(maps()[name], Path(folder), relations, f"{name}:{Path(folder).name}")


def _read(entry: dict, folder: Path, relations: list[str] | None, source: str) -> Facts:
    triples, templates, names = [], {}, {}
    for path, relation in files_of(folder, entry["files"], relations).items():
        given = entry["columns"] | ({"relation": f"={relation}"} if relation else {})
        only = {n: c[1:] for n, c in given.items() if n not in (*table.COLUMNS, *table.SENTENCES)}
        columns = {*table.COLUMNS, *given.values()} - {f"={text}" for text in only.values()}
        frame = read_table(path, columns, only, entry.get("quoted", False))
        more, texts, called = table.triples_of(path, frame, given, entry.get("relations"))
        triples, templates, names = triples + more, templates | texts, called | names
    about = entry.get("templates", {})
    templates |= {(r, "question", text): None for r in names for text in about.get("question", ())}
    for path, own in files_of(folder, about["files"]).items() if "files" in about else ():
        for line, row in read_objects(path, {}):
            relation = own or row.get(about.get("relation"))
            if relation in names:
                texts = statements(relation, [row.get(about["statement"])], f"{path}:{line}")
                templates |= dict.fromkeys(texts)
    return choose(assemble(table.alike(triples), source, templates, names), relations)


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

    ``datasets.yaml`` knows the columns of some; ``columns`` add to them. Data in the format of BEAR
    are read as BEAR. FILES is a file, a folder or a pattern (data/test-*.parquet), if there are
    several. A slash in a revision is written %2F.
    """
    if not (match := HUB.fullmatch(data)):
        raise ProbeError(
            f"data={data}: hub:OWNER/NAME is expected, with @REVISION and /FILES if needed"
        )
    repo, revision, inside = match.groups()
    entry = next((entry for entry in maps().values() if entry.get("hub") == repo), {"columns": {}})
    entry = entry | {"columns": entry["columns"] | columns} | ({"files": inside} if inside else {})
    revision = (revision or entry.get("revision", "main")).replace("%2F", "/")
    named = [each["files"] for each in (entry, entry.get("templates", {})) if "files" in each]
    named = [pattern.replace("{relation}", "*") for pattern in named]
    kinds = [f"*{kind}" for kind in TABLES]
    folder = _download(repo, revision, [*named, *(f"{name}/*" for name in named)] or kinds)
    described = sorted(folder.rglob(f"{inside or ''}/metadata_relations.json".lstrip("/")))
    if described and not entry["columns"]:
        if len(described) > 1:
            names = [path.parent.relative_to(folder).as_posix() for path in described]
            raise ProbeError(
                f"{data} holds {', '.join(names)}: name one, as in hub:{repo}/{names[0]}"
            )
        return read_bear(described[0].parent, relations)
    below = entry.get("files", ".")
    if "files" not in entry or (folder / below).is_dir():
        paths = [path for kind in TABLES for path in sorted((folder / below).rglob(f"*{kind}"))]
        if len({path.suffix for path in paths}) != 1:
            names = (
                ", ".join(sorted(path.relative_to(folder).as_posix() for path in paths)) or "none"
            )
            raise ProbeError(f"{data}: its tables are {names}; name one or a pattern: {data}/FILE")
        entry["files"] = f"{below}/**/*{paths[0].suffix}".removeprefix("./")
    return _read(entry, folder, relations, f"hub:{repo}@{folder.name[:12]}")


def _download(repo: str, revision: str, patterns: list[str]) -> Path:
    """The folder of a snapshot with the files of these patterns; its name is the commit."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    from requests import RequestException

    try:
        options = {"repo_type": "dataset", "revision": revision, "allow_patterns": patterns}
        return Path(snapshot_download(repo, **options))
    except (HfHubHTTPError, LocalEntryNotFoundError, RequestException, OSError) as error:
        said = " ".join(str(error).split())[:300].rstrip(".")
        known = [name for name, entry in maps().items() if entry.get("hub") == repo]
        how = f"data={known[0]} folder=FOLDER" if known else "data=table folder=FILE columns=..."
        raise ProbeError(
            f"hub:{repo}@{revision} cannot be downloaded: {said}. Check the name and the network, "
            f"or download its files elsewhere and read them with {how}"
        ) from error


# Data sets with a reader of their own


def read_lama(folder: str | Path, relations: list[str] | None = None) -> Facts:
    """LAMA's T-REx files; ``folder`` holds ``relations.jsonl`` and ``TREx`` (or is ``TREx``
    itself). A template is a ``statement``; one that ends in its object is a ``cloze``, too."""
    folder, triples, templates, names = Path(folder), [], [], {}
    home = folder.parent if folder.name == "TREx" else folder
    files, about = files_of(home / "TREx", "{relation}.jsonl", relations), home / "relations.jsonl"
    for line, row in read_objects(about, dict.fromkeys(("relation", "template", "label"), str)):
        if row["relation"] in names:
            raise ProbeError(f"{about}:{line}: relation {row['relation']} is described twice")
        names[row["relation"]] = row["label"].strip()
        own = statements(row["relation"], [row["template"]], f"{about}:{line}")
        templates += own if row["relation"] in files.values() else []
    keys = dict.fromkeys(("predicate_id", "sub_uri", "sub_label", "obj_uri", "obj_label"), str)
    for path, relation in files.items():
        if relation not in names:
            raise unknown(f"relation of {path}", relation, names)
        for line, row in read_objects(path, keys):
            if row["predicate_id"] != relation:
                said = f"a fact of relation {row['predicate_id']} in the file of {relation}"
                raise ProbeError(f"{path}:{line}: {said}")
            ends = [
                Entity(row[f"{side}_label"], row[f"{side}_uri"].strip()) for side in ("sub", "obj")
            ]
            triples.append(Triple(f"{path}:{line}", relation, *ends))
    templates.sort(key=lambda row: list(files.values()).index(row[0]))
    return assemble(triples, f"lama:{home.name}", templates, names)


def read_fktc(folder: str | Path, relations: list[str] | None = None) -> Facts:
    """MONITOR's FKTC files. Duplicate (subject, object) lines (12 in the release) get ids that end
    in their line number. The released P17 frames do not say "country", unlike those in the
    paper."""
    folder, triples, frames = Path(folder), [], []
    keys = {"subject": str, "object": str, "taxonomy": list}
    # the released P276 file is called P276-subclass..json
    for path, relation in files_of(folder, "{relation}-subclass*.json", relations).items():
        (_, header), *rows = read_objects(path, {})
        header = check_object(f"{path}:1", header, {"relations": list}, exact=True)["relations"]
        if not header or not all(isinstance(f, str) and f.count("[X]") == 1 for f in header):
            raise ProbeError(
                f"{path}:1: `relations` must be a list of frames with [X] exactly once each"
            )
        if not rows:
            raise ProbeError(f"{path}:2: no facts after the header")
        frames += [(relation, "question", frame) for frame in header]
        for line, row in rows:
            where = f"{path}:{line}"
            check_object(where, row, keys, exact=True)
            wrong = tuple(map(Entity, check_texts(where, "taxonomy", row["taxonomy"])))
            ends = (Entity(row["subject"]), Entity(row["object"]))
            triples.append(Triple(where, relation, *ends, wrong=wrong))
    names = dict(zip(*(atlas().relations[name] for name in ("relation", "name")), strict=True))
    return assemble(triples, f"fktc:{folder.name}", frames, names | {"P1412": "languages spoken"})


def read_trex_mc(folder: str | Path, split: str = "test") -> Facts:
    """One split of T-REx-MC, its wrong options as distractors.

    A relation is named by its Wikidata property if ``relationID_names.json`` has it, otherwise by
    its name. Options that equal the right answer are left out, and duplicates count once. A fact
    whose list cannot be read has no distractors.
    """
    folder, triples, called, known = Path(folder), [], {}, {}
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    if len(files := sorted(folder.glob(f"{split}*.parquet"))) != 1:
        raise ProbeError(f"{folder}: one file {split}-*.parquet is needed, found {len(files)}")
    path = folder / "relationID_names.json"
    for number, pair in (
        check_object(f"{path}:1", read_json(path), {}).items() if path.exists() else ()
    ):
        pair = check_texts(f"{path}: {number!r}", "the value", pair)
        if not number.isdecimal() or len(pair) != 2:
            raise ProbeError(f'{path}: {number!r}: {pair}; {{"1": ["P17", "country"]}} is needed')
        known[int(number)] = pair[0]
    columns = {"Relation_ID": int} | dict.fromkeys(("Relation Name", "Subject", "Object"), str)
    columns |= {"Multiple Choices": str}
    rows = read_table(files[0], columns)
    for where, cells in zip(rows.index, rows.to_dict("records"), strict=True):
        number, name, subject, obj, text = (check_object(where, cells, columns)[n] for n in columns)
        if known and number not in known:
            raise unknown(f"relation at {where}", number, known)
        relation, name, obj = known.get(number, name.strip()), name.strip(), obj.strip()
        try:
            options = check_texts(where, "options", ast.literal_eval(text))
            "".join(options).encode()  # half a surrogate pair is no text
        except (ProbeError, ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            options = []
        wrong = tuple(Entity(option) for option in dict.fromkeys(options) if option != obj)
        triples.append(Triple(where, relation, Entity(subject), Entity(obj), wrong=wrong))
        called.setdefault(relation, name)
    return assemble(triples, f"trex-mc:{split}", names=called)


def read_bear(folder: str | Path, relations: list[str] | None = None) -> Facts:
    """BEAR or BEAR-big; the other members of the answer space are a fact's distractors, in their
    order. Each template is a ``statement``; lm-pub-quiz scores statement 1."""
    folder, triples, templates = Path(folder), [], []
    keys = dict.fromkeys(("sub_id", "sub_label", "obj_id", "obj_label"), str)
    files, about, spaces = _described(
        folder, "metadata_relations.json", "{relation}.jsonl", relations, {}
    )
    for path, relation in files.items():
        space = spaces[relation]
        templates += statements(relation, about[relation]["templates"], str(path))
        for line, row in read_objects(path, keys):
            where, obj = f"{path}:{line}", Entity(row["obj_label"].strip(), row["obj_id"])
            index = row.get("answer_idx", space.index(obj) if obj in space else None)
            if not is_a(index, int) or not 0 <= index < len(space) or space[index] != obj:
                said = f"is not number {index} of the answer space of {relation}"
                raise ProbeError(f"{where}: {obj.id} {obj.label!r} {said}")
            aliases = tuple(check_texts(where, "sub_aliases", row.get("sub_aliases", [])))
            subject, wrong = (
                Entity(row["sub_label"], row["sub_id"], aliases),
                [o for o in space if o != obj],
            )
            triples.append(Triple(where, relation, subject, obj, wrong=tuple(wrong)))
    return assemble(triples, f"bear:{folder.name}", templates)


def _described(
    folder: Path, metadata: str, pattern: str, relations: list[str] | None, keys: dict
) -> tuple[dict[Path, str], dict[str, dict], dict[str, list[Entity]]]:
    """BEAR's (files -> relation, what the metadata say of each relation, its answer space)."""
    path, spaces = folder / metadata, {}
    about = check_object(f"{path}:1", read_json(path), {})
    for relation in check_relations(relations) or ():
        if relation not in about:
            raise unknown(f"relation in {path}", relation, about)
    if not about:
        raise ProbeError(f"{path}: no relations")
    names = ("answer_space_labels", "answer_space_ids")
    for relation, entry in about.items():
        where = f"{path}: {relation}"
        check_object(where, entry, {"templates": list} | dict.fromkeys(names, list) | keys)
        labels, ids = (check_texts(where, name, entry[name]) for name in names)
        if not labels or len(labels) != len(ids) or len(set(ids)) != len(ids):
            said = f"{len(labels)} labels and {len(set(ids))} distinct ids of {len(ids)}"
            wanted = "as many of both are needed, and each id once"
            raise ProbeError(f"{path}: the answer space of {relation} has {said}; {wanted}")
        spaces[relation] = [Entity(*pair) for pair in zip(labels, ids, strict=True)]
    return files_of(folder, pattern, relations or list(about)), about, spaces


def read_bear_results(folder: str | Path, relations: list[str] | None = None) -> pd.DataFrame:
    """Scores of lm-pub-quiz on BEAR: one row per (fact, candidate), in the order of files and
    lines.

    The folder has ``metadata_results.json`` and ``P36_results.jsonl``, ..., with one score per
    member of the answer space: {"instance": 3, "sub_id": "Q1356", "sub_label": ..., "answer_idx":
    0, "pll_scores": [-28.07, ...]}. Only results with ``reduction`` "sum" are read: means and token
    scores are not log-probabilities of statements.

    model       its name in the metadata
    template    number of the template scored (statement 1, ...)
    fact        ``relation:subject:gold``, the id that ``read_bear`` gives it; ``subject``, ``gold``
                (the right answer) and ``candidate`` are Wikidata ids, with ``subject_label`` and
                ``label``
    logprob     log-probability (nats) of the *whole statement* with this candidate
    """
    rows, run = [], {"model_name_or_path": str, "reduction": str, "template_index": int}
    found = _described(
        Path(folder), "metadata_results.json", "{relation}_results.jsonl", relations, run
    )
    keys = {"sub_id": str, "sub_label": str, "answer_idx": int, "pll_scores": list}
    for path, relation in found[0].items():
        about, space, seen = found[1][relation], found[2][relation], {}
        template = about["template_index"] + 1
        if about["reduction"] != "sum" or not 1 <= template <= len(about["templates"]):
            said = f"reduction {about['reduction']!r} of template {template}"
            raise ProbeError(f"{path}: {said}; only 'sum', of a template that exists, can be read")
        for line, row in read_objects(path, keys):
            where, index, scores = f"{path}:{line}", row["answer_idx"], row["pll_scores"]
            if seen.setdefault(instance := str(row.get("instance", line)), line) != line:
                raise ProbeError(
                    f"{where}: instance {instance} is already in line {seen[instance]}"
                )
            if not 0 <= index < len(space) or len(scores) != len(space):
                said = f"answer_idx {index} and {len(scores)} scores"
                raise ProbeError(f"{where}: {said}; the answer space has {len(space)} members")
            if odd := [s for s in scores if not is_a(s, int | float) or not -1e300 < s <= 0]:
                raise ProbeError(f"{where}: {odd[0]!r} is not a log-probability (0 or less)")
            subject, gold = row["sub_id"].strip(), space[index].id
            start = (
                about["model_name_or_path"],
                relation,
                template,
                f"{relation}:{subject}:{gold}",
            )
            start += (subject, row["sub_label"].strip(), gold)
            pairs = zip(space, scores, strict=True)
            rows += [(*start, other.id, other.label, float(score)) for other, score in pairs]
    return pd.DataFrame(rows, columns=RESULTS)


def read_pageviews(path: str | Path) -> pd.DataFrame:
    """Page views (GraphEval's popularity), a JSON object {name of an entity: views}: columns
    ``entity`` and ``views`` (0 or more, in the period that the file covers)."""
    path = Path(path)
    views = check_object(f"{path}:1", read_json(path), {})
    for name, number in views.items():
        if not name.strip() or not is_a(number, int) or not 0 <= number < 2**63:
            raise ProbeError(
                f"{path}: {name!r}: {number!r}; a name and an integer of at least 0 are needed"
            )
    return pd.DataFrame(
        {"entity": list(views), "views": pd.array(list(views.values()), dtype="int64")}
    )


READERS = {"fktc": read_fktc, "lama": read_lama, "bear": read_bear}
READERS |= {"trex_mc": lambda folder, relations: choose(read_trex_mc(folder), relations)}
READERS |= {
    "table": lambda path, relations, columns=None: choose(
        table.read_triples(path, columns), relations
    )
}
READERS |= {name: partial(read_dataset, name) for name in maps()}
