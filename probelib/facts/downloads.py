"""Published data sets: addresses, licences, and ``fetch``, which downloads them.

>>> from probelib.facts import downloads
>>> downloads.registry()["data"].unique().tolist()[:4]
['fktc', 'trex_mc', 'human_ratings', 'verbalization']

``fetch("fktc")`` downloads what is missing and returns the folder, ``$PROBELIB_DATA/fktc`` (by
default in the user's cache folder). Files that were put there by hand are used like downloaded
ones. If a file's SHA-256 is known, the file is accepted only with that digest. ``downloads.yaml``
is the registry, and says itself what an entry holds.
"""

import os
import time
from pathlib import Path

import pandas as pd
import requests

from probelib.errors import ProbeError, extra, unknown
from probelib.facts.text import read_yaml
from probelib.paths import PACKAGE

with extra("downloads"):
    import pooch

REGISTRY = PACKAGE / "facts" / "downloads.yaml"
DATA = Path(os.environ.get("PROBELIB_DATA") or pooch.os_cache("probelib"))
MOST_BYTES, MOST_SECONDS = 1 << 38, 24 * 3600  # of one file: some answers have no end
COLUMNS = ["data", "file", "licence", "purpose", "note", "bytes", "sha256", "urls"]


def registry() -> pd.DataFrame:
    """One row per file: ``data`` (its data set), ``file``, ``licence``, ``purpose``, ``note``,
    ``bytes`` (0: unknown), ``sha256`` ("": unknown), ``urls`` (tuple; empty: manual download
    only)."""
    rows = []
    for data, entry in read_yaml(REGISTRY).items():
        for file, known in entry["files"].items():
            own = {"bytes": 0, "sha256": "", "note": ""} | entry | known
            urls = tuple(url.replace("{file}", file) for url in own["urls"])
            rows.append(own | {"data": data, "file": file, "urls": urls})
    return pd.DataFrame(rows)[COLUMNS]


def fetch(name: str, folder: str | Path | None = None) -> Path:
    """Download the missing files of a data set and return its folder; for "fktc/P17-subclass.json",
    download that file only and return its path.

    folder   parent folder of the data sets (default: ``DATA``)
    Raise ProbeError if a file is neither there nor can be downloaded. The message says why, where
    to put it by hand, and its licence.
    """
    files, (data, _, file) = registry(), name.partition("/")
    if data not in set(files["data"]):
        raise unknown("data set", data, files["data"].unique())
    files = files[files["data"] == data]
    if file and file not in set(files["file"]):
        raise unknown(f"file of {data}", file, files["file"])
    for row in files[[file in ("", each) for each in files["file"]]].itertuples():
        _fetch_file(row, Path(folder or DATA) / data)
    return Path(folder or DATA) / name


def _fetch_file(row, home: Path) -> None:
    """Download one file (a row of the registry) to ``home`` unless it is there."""
    failures, known = [], f"sha256:{row.sha256}" if row.sha256 else None
    if (home / row.file).is_file() and not known:
        return
    for url in row.urls or [""]:
        try:  # pooch keeps a file that is there with the right digest
            pooch.retrieve(url, known, fname=row.file, path=home, downloader=_download)
            return
        except (ValueError, requests.RequestException, OSError) as error:  # ValueError: checksum
            failures.append(f"{url}: {error}" if url else row.note)
    raise ProbeError(
        f"{row.data}/{row.file} cannot be downloaded: {'; '.join(failures)}.\n"
        f"Put the file {row.file} by hand into {home} (from "
        f"{', '.join(row.urls) or 'wherever it is kept'}; licence: {row.licence}; SHA-256: "
        f"{row.sha256 or 'not known'})"
    )


def _download(url: str, target: str, _pooch) -> None:
    """What pooch calls: one address into a file, within ``MOST_BYTES`` and ``MOST_SECONDS``."""
    plain = {"Accept-Encoding": "identity"}  # Content-Length then counts the bytes that arrive
    end = time.monotonic() + MOST_SECONDS
    with requests.get(url, stream=True, timeout=30, headers=plain) as answer:
        answer.raise_for_status()
        total = int(answer.headers.get("Content-Length", 0))
        with open(target, "wb") as file:
            for chunk in answer.iter_content(1 << 16):
                file.write(chunk)
                if file.tell() > (total or MOST_BYTES) or time.monotonic() > end:
                    said = f"more than {total or MOST_BYTES} bytes, or too slow"
                    raise requests.ConnectionError(said)
            if file.tell() < total:
                raise requests.ConnectionError(f"broke off after {file.tell()} of {total} bytes")
