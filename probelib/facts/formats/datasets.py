"""Published data sets, read by a mapping of their columns in ``datasets.yaml``: from a folder, or from the Hugging Face Hub.

An entry of ``datasets.yaml``:

    popqa:
      hub: akariasai/PopQA             # data=hub:akariasai/PopQA downloads it; data=popqa reads a folder
      files: test.tsv                  # below the folder; {relation} in a name is the relation
      columns: {subject: subj, ...}    # name of the kit: column of the file (``tables.Columns``)
      relations: {occupation: P106}    # where the atlas has another name
      templates: {files: ..., ...}     # templates in files of their own: their columns; or questions for every relation
      revision: ...                    # on the Hub, where it is not main
      quoted: true                     # a .tsv with quotation marks around cells
      only_questions: true             # questions without relations: for MONITOR only (``require_relations``)
"""

import re
from functools import cache
from pathlib import Path

from probelib.errors import ProbeError, unknown
from probelib.facts.formats.bear import read_bear
from probelib.facts.formats.rows import READERS, read_table
from probelib.facts.formats.tables import Columns, Found, read_rows, statements
from probelib.facts.model import Facts, choose
from probelib.facts.text import number_in, read_yaml
from probelib.paths import PACKAGE

HUB = re.compile(r"hub:([\w.-]+/[\w.-]+)(?:@([\w.%-]+))?(?:/(.+))?")
TABLES = [f"*{suffix}" for suffix in READERS]


@cache
def maps() -> dict[str, dict]:
    """name -> its entry in ``datasets.yaml``."""
    return read_yaml(PACKAGE / "facts" / "formats" / "datasets.yaml")


def parse_columns(text: str) -> dict[str, str]:
    """``subject:s,relation:=P36`` as a mapping."""
    pairs = [pair.partition(":") for pair in text.split(",") if pair.strip()]
    if wrong := [name for name, colon, column in pairs if not (name.strip() and column.strip())]:
        raise ProbeError(f"columns: {wrong[0]!r} names no column; write subject:s,relation:prop,object:o")
    return {name.strip(): column.strip() for name, _, column in pairs}


def read_dataset(name: str, folder: str | Path, relations: list[str] | None = None) -> Facts:
    """The facts of a data set of ``datasets.yaml`` in a folder (or in its one file)."""
    return _read(maps()[name], Path(folder), relations, f"{name}:{Path(folder).name}")


def read_hub(data: str, columns: dict[str, str], relations: list[str] | None = None) -> Facts:
    """The facts of ``hub:OWNER/NAME[@REVISION][/FILES]``, a data set of the Hugging Face Hub that is downloaded once.

    ``datasets.yaml`` knows the columns of some; ``columns`` add to them. Data in the format of BEAR are read as BEAR. FILES is a
    file, a folder or a pattern (data/test-*.parquet), if there are several. A slash in a revision is written %2F.
    """
    if not (match := HUB.fullmatch(data)):
        raise ProbeError(f"data={data}: hub:OWNER/NAME is expected, with @REVISION and /FILES where needed")
    repo, revision, inside = match.groups()
    entry = next((entry for entry in maps().values() if entry.get("hub") == repo), {"columns": {}})
    entry = entry | {"columns": entry["columns"] | columns} | ({"files": inside} if inside else {})
    revision = (revision or entry.get("revision", "main")).replace("%2F", "/")
    named = [each["files"] for each in (entry, entry.get("templates", {})) if "files" in each]
    patterns = [pattern.replace("{relation}", "*") for pattern in named]
    folder = _download(repo, revision, [*patterns, *(f"{pattern}/*" for pattern in patterns)] or TABLES)
    described = sorted(folder.rglob(f"{inside or ''}/metadata_relations.json".lstrip("/")))
    if described and not entry["columns"]:
        if len(described) > 1:
            names = [path.parent.relative_to(folder).as_posix() for path in described]
            raise ProbeError(f"{data} holds {', '.join(names)}: name one, as in hub:{repo}/{names[0]}")
        return read_bear(described[0].parent, relations)
    if "files" not in entry or (folder / entry["files"]).is_dir():
        entry["files"] = _one_kind(data, folder, entry.get("files", "."))
    return _read(entry, folder, relations, f"hub:{repo}@{folder.name[:12]}")


def require_relations(facts: Facts) -> None:
    """Raise ProbeError for facts of a data set with ``only_questions``: answers to its other questions are neither plausible
    wrong options of a question nor examples of its relation."""
    names = [name for name, entry in maps().items() if entry.get("only_questions")]
    sources = [f"{name}:" for name in names] + [f"hub:{maps()[name]['hub']}@" for name in names]
    if facts.source.startswith(tuple(sources)):
        others = ", ".join(name for name in maps() if name not in names)
        raise ProbeError(
            f"{facts.source} has questions without relations, so nothing says which other answers are plausible wrong options "
            f"or examples. It is for MONITOR: --only monitor. Multiple choice, lists of examples and distractors need facts "
            f"with relations, for example {others}"
        )


def _download(repo: str, revision: str, patterns: list[str]) -> Path:
    """The folder of a snapshot with the files of these patterns; its name is the commit."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    from requests import RequestException

    try:
        return Path(snapshot_download(repo, repo_type="dataset", revision=revision, allow_patterns=patterns))
    except (HfHubHTTPError, LocalEntryNotFoundError, RequestException, OSError) as error:
        said = " ".join(str(error).split())[:300].rstrip(".")
        known = [name for name, entry in maps().items() if entry.get("hub") == repo]
        how = f"data={known[0]} folder=FOLDER" if known else "data=table folder=FILE columns=..."
        raise ProbeError(
            f"hub:{repo}@{revision} cannot be downloaded: {said}. Check the name and the network, or download its files "
            f"elsewhere and read them with {how}"
        ) from error


def _one_kind(data: str, folder: Path, below: str) -> str:
    """The pattern of all tables below a folder of a snapshot. Raise ProbeError if they are of several kinds, or if there are
    none."""
    kinds = {suffix: sorted((folder / below).rglob(f"*{suffix}")) for suffix in READERS}
    kinds = {suffix: paths for suffix, paths in kinds.items() if paths}
    if len(kinds) != 1:
        names = sorted(path.relative_to(folder).as_posix() for paths in kinds.values() for path in paths)
        raise ProbeError(f"{data}: its tables are {', '.join(names) or 'none'}; name one or a pattern: {data}/FILE")
    return f"{below}/**/*{next(iter(kinds))}".removeprefix("./")


def _read(entry: dict, folder: Path, relations: list[str] | None, source: str) -> Facts:
    found = Found()
    for relation, path in _files(folder, entry["files"], relations):
        columns = Columns(entry["columns"], relation, entry.get("relations"))
        read_rows(path, columns, found, entry.get("quoted", False))
    if "templates" in entry:
        found.templates |= dict.fromkeys(_templates(entry["templates"], folder, list(found.names)))
    return choose(found.facts(source), relations)


def _templates(entry: dict, folder: Path, relations: list[str]) -> list[tuple[str, str, str]]:
    """Rows (relation, role, template) for these relations: questions for all, or statements from files."""
    rows = [(relation, "question", text) for relation in relations for text in entry.get("question", ())]
    if "files" not in entry:
        return rows
    for own, path in _files(folder, entry["files"]):
        column = entry["statement"]
        for line, row in read_table(path, {column, entry.get("relation", column)}):
            relation = own or row[entry["relation"]]
            rows += statements(relation, [row[column]], f"{path}:{line}") if relation in relations else []
    return rows


def _files(folder: Path, pattern: str, relations: list[str] | None = None) -> list[tuple[str, Path]]:
    """(relation, file) of the files that match a pattern, by relation; "" where {relation} is not part of it."""
    if folder.is_file():
        return [("", folder)]
    name = re.compile(re.escape(pattern).replace(r"\{relation\}", r"(?P<relation>[^/]+)").replace(r"\*", ".*"))
    found = []
    for path in sorted(folder.glob(pattern.replace("{relation}", "*"))) if folder.is_dir() else ():
        match = name.fullmatch(path.relative_to(folder).as_posix())
        found.append((match["relation"] if match and "{relation}" in pattern else "", path))
    if not found:
        there = sorted(path.name for path in folder.iterdir())[:5] if folder.is_dir() else []
        raise ProbeError(f"{folder}: no file {pattern} there; found: {', '.join(there) or 'none'}")
    if relations and "{relation}" in pattern:
        if missing := [relation for relation in relations if relation not in dict(found)]:
            raise unknown(f"relation of {folder}", missing[0], dict(found))
        found = [each for each in found if each[0] in relations]
    return sorted(found, key=lambda each: (number_in(each[0]), each))
