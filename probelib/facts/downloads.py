"""Published data sets: addresses, licences, and ``fetch``, which downloads them.

>>> from probelib.facts import downloads
>>> downloads.registry()["data"].unique().tolist()[:4]
['fktc', 'trex_mc', 'human_ratings', 'verbalization']

``fetch("fktc")`` downloads what is missing and returns the folder, ``$PROBELIB_DATA/fktc`` (by
default in the user's cache folder). Files that were put there by hand are used like downloaded
ones. If a file's SHA-256 is known, the file is accepted only with that digest.

``downloads.yaml`` is the registry; a lab may keep its own in the same form:

    name of the data set:
      purpose: what it is for
      licence: its licence
      note: why a file has no checksum or no address, if so
      urls: [https://.../{file}]            # tried in this order; empty: manual download only
      files:
        name.json: {sha256: ..., bytes: 113094, urls: [...]}    # each if known
"""

import os
import re
import time
from pathlib import Path

import pandas as pd
import requests

from probelib.errors import ProbeError, extra, unknown
from probelib.facts.text import check_object, check_texts, read_yaml
from probelib.paths import PACKAGE

with extra("downloads"):
    import pooch

REGISTRY = PACKAGE / "facts" / "downloads.yaml"
DATA = Path(os.environ.get("PROBELIB_DATA") or pooch.os_cache("probelib"))
MOST_BYTES, MOST_SECONDS = 1 << 38, 24 * 3600  # of one file: some answers have no end
COLUMNS = ["data", "file", "bytes", "licence", "purpose", "note", "sha256", "urls"]


def registry(path: Path = REGISTRY) -> pd.DataFrame:
    """One row per file: ``data`` (its data set), ``file``, ``bytes`` (0: unknown), ``licence``,
    ``purpose``, ``note``, ``sha256`` ("": unknown, see ``note``), ``urls`` (tuple; empty: manual
    download only)."""
    rows = []
    for data, entry in read_yaml(path).items():
        entry = {"note": ""} | check_object(f"{path}: {data}", entry, {})
        texts = dict.fromkeys(("purpose", "licence", "note"), str)
        check_object(f"{path}: {data}", entry, texts | {"urls": list, "files": dict})
        for file, known in entry["files"].items():
            where = f"{path}: {data}: {file}"
            known = {"bytes": 0, "sha256": "", "urls": entry["urls"]} | check_object(
                where, known, {}
            )
            check_object(where, known, {"bytes": int, "sha256": str})
            for name in (data, file):
                if name in ("", ".", "..") or name != Path(str(name)).name:
                    raise ProbeError(f"{where}: {name!r} is not a name of a file or folder")
            if known["sha256"] and not re.fullmatch("[0-9a-f]{64}", known["sha256"]):
                raise ProbeError(f"{where}: {known['sha256']!r} is not a SHA-256")
            urls = check_texts(where, "urls", known["urls"])
            if not (known["sha256"] and urls) and not entry["note"]:
                raise ProbeError(f"{where}: no sha256 or no urls, and no note says why")
            urls = tuple(url.replace("{file}", file) for url in urls)
            about = (entry["licence"], entry["purpose"], entry["note"])
            rows.append((data, file, known["bytes"], *about, known["sha256"], urls))
    return pd.DataFrame(rows, columns=COLUMNS)


def fetch(name: str, folder: str | Path | None = None, registry_file: Path = REGISTRY) -> Path:
    """Download the missing files of a data set and return its folder; for "fktc/P17-subclass.json",
    download that file only and return its path.

    folder          parent folder of the data sets (default: ``DATA``)
    registry_file   another registry than the kit's
    Raise ProbeError if a file is neither there nor can be downloaded. The message says why, where
    to put it by hand, and its licence.
    """
    files = registry(registry_file)
    data, _, file = name.partition("/")
    if data not in set(files["data"]):
        raise unknown("data set", data, files["data"].unique())
    files = files[files["data"] == data]
    if file and file not in set(files["file"]):
        raise unknown(f"file of {data}", file, files["file"])
    for row in files.itertuples():
        if file in ("", row.file):
            _fetch_file(row, Path(folder or DATA) / data)
    return Path(folder or DATA) / name


def _fetch_file(row, home: Path) -> None:
    """Download one file (a row of the registry) to ``home`` unless it is there."""
    target, failures = home / row.file, []
    if target.is_file():
        if not row.sha256 or pooch.file_hash(str(target)) == row.sha256:
            return
        failures.append("the file there has another SHA-256")
    for url in row.urls:
        try:
            checksum = f"sha256:{row.sha256}" if row.sha256 else None
            pooch.retrieve(url, checksum, fname=row.file, path=home, downloader=_download)
            return
        except (ValueError, requests.RequestException, OSError) as error:  # ValueError: checksum
            failures.append(f"{url}: {error}")
    raise ProbeError(
        f"{row.data}/{row.file} cannot be downloaded: {'; '.join(failures) or row.note}.\n"
        f"Put the file {row.file} by hand into {home} (from "
        f"{', '.join(row.urls) or 'wherever it is kept'}; licence: {row.licence}; SHA-256: "
        f"{row.sha256 or 'not known'})"
    )


def _download(url: str, target: str, _pooch) -> None:
    """What pooch calls: one address into a file, within ``MOST_BYTES`` and ``MOST_SECONDS``."""
    plain = {"Accept-Encoding": "identity"}  # Content-Length then counts the bytes that arrive
    end = time.monotonic() + MOST_SECONDS
    with (
        requests.get(url, stream=True, timeout=30, headers=plain) as answer,
        open(target, "wb") as file,
    ):
        answer.raise_for_status()
        total = int(answer.headers.get("Content-Length", 0))
        for chunk in answer.iter_content(1 << 16):
            file.write(chunk)
            if file.tell() > (total or MOST_BYTES) or time.monotonic() > end:
                raise requests.ConnectionError(
                    f"more than {total or MOST_BYTES} bytes, or too slow"
                )
        if file.tell() < total:
            raise requests.ConnectionError(f"broke off after {file.tell()} of {total} bytes")
