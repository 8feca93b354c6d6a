"""Published data sets: addresses, licences, and ``fetch``, which downloads them.

>>> from probelib.facts import downloads
>>> downloads.registry()["data"].unique().tolist()
['fktc', 'trex_mc', 'human_ratings', 'verbalization', 'wikifactdiff', 'karr', 'dbpedia', 'wikidata', 'bear_gpt2']

``fetch("fktc")`` downloads what is missing and returns the folder, ``$PROBELIB_DATA/fktc`` (by default in the user's cache
folder). Files that were put there by hand are used like downloaded ones. If a file's SHA-256 is known, the file is accepted
only with that digest. An interrupted download continues where it stopped, also in a later call.

``downloads.yaml`` is the registry; a lab may keep its own in the same form:

    name of the data set:
      purpose: what it is for
      licence: its licence
      note: why a file has no checksum or no address, if so
      urls: [https://.../{file}]            # tried in this order; an empty list: manual download only
      files:
        name.json: {sha256: ..., bytes: 113094, urls: [...]}    # each if known; urls only if they differ
"""

import hashlib
import os
import re
from contextlib import closing
from functools import partial
from glob import escape
from pathlib import Path

import pandas as pd
import requests
from filelock import FileLock
from tqdm.auto import tqdm

from probelib.errors import ProbeError, extra, unknown
from probelib.facts.text import check_object, check_texts, read_yaml
from probelib.paths import PACKAGE

with extra("downloads"):
    import pooch

REGISTRY = PACKAGE / "facts" / "downloads.yaml"
DATA = Path(os.environ.get("PROBELIB_DATA") or pooch.os_cache("probelib"))
TRIES = 5  # times that one address may break off before the next one is asked
TIMEOUT = 30  # seconds without an answer
CHUNK = 1 << 16  # bytes; an incomplete chunk is lost when a connection breaks
SHA256 = re.compile(r"[0-9a-f]{64}")
COLUMNS = ["data", "file", "bytes", "licence", "purpose", "note", "sha256", "urls"]


def registry(path: Path = REGISTRY) -> pd.DataFrame:
    """One row per file: ``data`` (its data set), ``file``, ``bytes`` (0: unknown), ``licence``, ``purpose``, ``note``, ``sha256``
    ("": unknown, see ``note``), ``urls`` (tuple; empty: manual download only)."""
    rows = []
    for data, entry in read_yaml(path).items():
        if data in ("", ".", "..") or data != Path(str(data)).name:
            raise ProbeError(f"{path}: {data!r} is not a folder name")
        entry = {"note": ""} | check_object(f"{path}: {data}", entry, {})
        keys = dict.fromkeys(("purpose", "licence", "note"), str) | {"urls": list, "files": dict}
        check_object(f"{path}: {data}", entry, keys)
        for file, known in entry["files"].items():
            rows.append((data, file, *_check_file(f"{path}: {data}: {file}", file, known, entry)))
    return pd.DataFrame(rows, columns=COLUMNS)


def _check_file(where: str, file: str, known, entry: dict) -> tuple:
    """The columns of one file that follow its name."""
    known = {"bytes": 0, "sha256": "", "urls": entry["urls"]} | check_object(where, known, {})
    check_object(where, known, {"bytes": int, "sha256": str})
    urls, checksum = check_texts(where, "urls", known["urls"]), known["sha256"]
    if file in ("", ".", "..") or file != Path(str(file)).name:
        raise ProbeError(f"{where}: {file!r} is not a file name")
    if checksum and not SHA256.fullmatch(checksum):
        raise ProbeError(f"{where}: {checksum!r} is not a SHA-256 in hexadecimal digits")
    if not (checksum and urls) and not entry["note"]:
        raise ProbeError(f"{where}: no sha256 or no urls, and no note says why")
    urls = tuple(url.replace("{file}", file) for url in urls)
    return known["bytes"], entry["licence"], entry["purpose"], entry["note"], checksum, urls


def fetch(name: str, folder: str | Path | None = None, registry_file: Path = REGISTRY) -> Path:
    """Download the missing files of a data set and return its folder; for "fktc/P17-subclass.json", download that file only and
    return its path.

    folder          parent folder of the data sets (default: ``DATA``)
    registry_file   another registry than the kit's
    Raises ProbeError if a file is neither there nor can be downloaded. The message says why, where to put it by hand, and its
    licence.
    """
    files = registry(registry_file)
    data, _, file = name.partition("/")
    if data not in set(files["data"]):
        raise unknown("data set", data, files["data"].unique())
    files = files[files["data"] == data]
    if file and file not in set(files["file"]):
        raise unknown(f"file of {data}", file, files["file"])
    home = Path(folder or DATA) / data
    for row in files.itertuples():
        if file in ("", row.file):
            _fetch_file(row, home)
    return home / file


def _fetch_file(row, home: Path) -> None:
    """Download one file (a row of the registry) to ``home`` unless it is there."""
    target, failures = home / row.file, []
    if _is_good(target, row.sha256):
        return
    if target.is_dir():
        raise ProbeError(f"{target}: a folder, where a file is needed")
    if target.exists():
        failures.append("the file there has another SHA-256")
    try:
        home.mkdir(parents=True, exist_ok=True)
        with FileLock(home / f".{row.file}.lock"):  # a second job that fetches the same file waits, and finds it
            if _is_good(target, row.sha256):
                return
            checksum, download = f"sha256:{row.sha256}" if row.sha256 else None, partial(_download, f".{row.file}.")
            for url in row.urls:
                try:
                    pooch.retrieve(url, checksum, fname=row.file, path=home, downloader=download)
                    for part in home.glob(f".{escape(row.file)}.*.part"):  # of broken downloads of earlier versions
                        part.unlink()
                    return
                except (ValueError, requests.RequestException) as error:  # ValueError: another checksum
                    failures.append(f"{url}: {error}")
    except OSError as error:
        failures.append(f"{home}: {error.strerror or error}")
    raise ProbeError(
        f"{row.data}/{row.file} cannot be downloaded: {'; '.join(failures) or row.note}.\n"
        f"Put the file {row.file} by hand into {home} "
        f"(from {', '.join(row.urls) or 'wherever it is kept'}; licence: {row.licence}; SHA-256: {row.sha256 or 'not known'})"
    )


def _is_good(target: Path, sha256: str) -> bool:
    return target.is_file() and (not sha256 or pooch.file_hash(str(target)) == sha256)


def _download(prefix: str, url: str, target: str, _pooch=None) -> None:
    """Download one address into a file (called by pooch); parts of broken downloads have names that start with ``prefix``."""
    for _ in range(TRIES):
        if part := _continue(url, Path(target).parent / prefix):
            return os.replace(part, target)
    raise requests.ConnectionError(f"broke off {TRIES} times")


def _continue(url: str, prefix: Path) -> Path | None:
    """Continue a download and return the finished part; None if the connection broke.

    The name of the part is made of the address and of the version and size that the server reports: bytes of another
    version are never continued.
    """
    with closing(_open(url)) as response:
        version = [url, *(response.headers.get(name, "") for name in ("ETag", "Last-Modified", "Content-Length"))]
        total = int(response.headers.get("Content-Length", 0))
        part = prefix.with_name(f"{prefix.name}{hashlib.sha256(repr(version).encode()).hexdigest()[:16]}.part")
        had = part.stat().st_size if part.exists() else 0
        if not had:
            return _append(response, part, 0, total)
    if had == total:
        return part
    with closing(_open(url, {"Range": f"bytes={had}-"})) as response:
        return _append(response, part, had if response.status_code == 206 else 0, total)


def _open(url: str, headers: dict | None = None) -> requests.Response:
    plain = {"Accept-Encoding": "identity"}  # so that Content-Length counts the bytes that arrive
    response = requests.get(url, stream=True, timeout=TIMEOUT, headers=plain | (headers or {}))
    response.raise_for_status()
    return response


def _append(response: requests.Response, part: Path, had: int, total: int) -> Path | None:
    name = part.name.lstrip(".").rsplit(".", 2)[0]
    bar = tqdm(desc=name, total=total or None, initial=had, unit="B", unit_scale=True, leave=False)
    with bar, open(part, "r+b" if had else "wb") as file:
        file.seek(had)
        try:
            for chunk in response.iter_content(CHUNK):
                bar.update(file.write(chunk))
        except requests.RequestException:
            return None
        return part if not total or file.tell() == total else None
