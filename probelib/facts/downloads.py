"""Published data sets: addresses, licences, and ``fetch``, which downloads them.

>>> from probelib.facts import downloads
>>> list(downloads.registry())[:4]
['fktc', 'trex_mc', 'human_ratings', 'verbalization']

``fetch("fktc")`` downloads what is missing and returns the folder, ``$PROBELIB_DATA/fktc`` (by
default in the user's cache folder). Files that were put there by hand are used like downloaded
ones. If a file's SHA-256 is known, the file is accepted only with that digest.
"""

import os
import time
from pathlib import Path

import requests

from probelib.errors import ProbeError, extra, unknown
from probelib.facts.text import read_yaml
from probelib.paths import PACKAGE

with extra("downloads"):
    import pooch

MOST_BYTES, MOST_SECONDS = 1 << 38, 24 * 3600  # of one file: some answers have no end
REGISTRY = PACKAGE / "facts" / "downloads.yaml"
DATA = Path(os.environ.get("PROBELIB_DATA") or pooch.os_cache("probelib"))


def registry() -> dict[str, dict]:
    """Data set -> ``purpose``, ``licence``, ``urls``, ``files``, ... (``downloads.yaml``)."""
    return read_yaml(REGISTRY)


def fetch(name: str, folder: str | Path | None = None) -> Path:
    """Download the missing files of a data set and return its folder; for "fktc/P17-subclass.json",
    download that file only and return its path.

    folder   parent folder of the data sets (default: ``DATA``)
    Raise ProbeError if a file is neither there nor can be downloaded. The message says why, where
    to put it by hand, and its licence.
    """
    known, (data, _, file) = registry(), name.partition("/")
    if data not in known:
        raise unknown("data set", data, known)
    files = known[data]["files"]
    if file and file not in files:
        raise unknown(f"file of {data}", file, files)
    for each in [file] if file else files:
        _fetch_file(each, known[data] | files[each], Path(folder or DATA) / data)
    return Path(folder or DATA) / name


def _fetch_file(file: str, about: dict, home: Path) -> None:
    """Download one file to ``home`` unless it is there."""
    failures, checksum = [], about.get("sha256")
    if (home / file).is_file() and not checksum:
        return
    known = f"sha256:{checksum}" if checksum else None
    urls = [url.replace("{file}", file) for url in about["urls"]]
    for url in urls or [""]:
        try:  # pooch keeps a file that is there with the right digest
            pooch.retrieve(url, known, fname=file, path=home, downloader=_download)
            return
        except (ValueError, requests.RequestException, OSError) as error:  # ValueError: checksum
            failures.append(f"{url}: {error}" if url else about.get("note", "no address is known"))
    raise ProbeError(
        f"{home.name}/{file} cannot be downloaded: {'; '.join(failures)}.\n"
        f"Put the file {file} by hand into {home} (from {', '.join(urls) or 'where it is kept'}; "
        f"licence: {about['licence']}; SHA-256: {checksum or 'not known'})"
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
