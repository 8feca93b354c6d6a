"""Writing files so that a kill, a full disk or a second process leaves the old file or the new."""

import hashlib
import json
import os
import re
from pathlib import Path

from probelib.errors import ProbeError


def write(path: Path, content: bytes | str, lasting: bool = True) -> Path:
    """Write a file under a temporary name in the same folder and rename it.

    lasting   wait until the disk has it: not needed for files whose checksum is kept
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True) if temporary.parent.is_dir() else None
        raise ProbeError(f"{path} cannot be written: {error.strerror}") from error
    return path


def write_json(path: Path, data: dict, seal: bool = False, lasting: bool = True) -> Path:
    """A dictionary as JSON, keys in their order, one final newline; ``lasting`` as in ``write``.

    seal   with a digest of its content, so that ``read_sealed`` detects any change
    """
    if seal:
        content = json.dumps(data, sort_keys=True, default=str)
        data = data | {"digest": sha256(content.encode())}
    return write(path, json.dumps(data, indent=1, ensure_ascii=False, default=str) + "\n", lasting)


def read_sealed(path: Path) -> dict | None:
    """What ``write_json`` sealed; None if the file is missing or was changed."""
    try:
        record = json.loads(path.read_bytes())
        digest, content = record.pop("digest"), json.dumps(record, sort_keys=True, default=str)
        return record if digest == sha256(content.encode()) else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def sha256(content: bytes | Path) -> str:
    """Hex digest of bytes or of a file."""
    if isinstance(content, Path):
        with open(content, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    return hashlib.sha256(content).hexdigest()


def read_notebook(path: str | Path):
    """A notebook, without the metadata of widgets that were saved without their state (by Colab):
    nbconvert and papermill fail on them."""
    import nbformat  # here, because most users of this module read no notebooks

    notebook = nbformat.read(path, as_version=4)
    widgets = notebook.metadata.get("widgets", {})
    if any("state" not in held for held in widgets.values()):
        del notebook.metadata["widgets"]
    return notebook


TABLES = (".csv", ".tsv", ".parquet", ".jsonl", ".json")  # kinds of files that hold a table


def templates_path(table: Path) -> Path:
    """The path of the templates of a table of facts, of any kind: facts.templates.csv
    (or .tsv, ...) in the folder of facts.csv, facts.jsonl, facts.json.gz, ..."""
    kinds = "|".join(map(re.escape, TABLES))
    stem = re.sub(rf"({kinds})(\.\w+)?$", "", table.name)
    paths = [table.with_name(f"{stem}.templates{kind}") for kind in TABLES]
    return next((path for path in paths if path.exists()), paths[0])


def slug(name: str) -> str:
    """A file name made from any text (a model id, a fact): it cannot leave its folder, and two
    names never share one."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:60]
    return safe if safe == name and safe else f"{safe or 'x'}-{sha256(name.encode())[:8]}"
