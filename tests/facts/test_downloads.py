"""Downloads from a server on loopback that breaks off and lies; the command line of facts."""

import contextlib
import http.server
import json
import threading

import pytest
import yaml

from probelib import facts
from probelib.errors import ProbeError
from probelib.facts import downloads
from probelib.facts.__main__ import main
from probelib.facts.table import read_triples
from probelib.files import sha256
from tests.facts import test_formats
from tests.facts.graphs import test_dbpedia, test_wikidata

CONTENT = bytes(range(256)) * 2000
CHECKSUM = sha256(CONTENT)


class Server(http.server.ThreadingHTTPServer):
    """Serves ``files``; ``breaks``: after how many bytes the next answers break off; ``asked``:
    paths."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.breaks, self.asked = {"/good.bin": CONTENT}, [], []

    def url(self, path):
        return f"http://127.0.0.1:{self.server_port}{path}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path not in self.server.files:
            return self.send_error(404)
        content = self.server.files[self.path]
        self.send_response(200)
        if self.path != "/endless.bin":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(content[: self.server.breaks.pop(0) if self.server.breaks else None])
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def fetch(tmp_path, server):
    """A function that fetches the one file of a registry, from some paths of the server."""

    def get(*paths, checksum=CHECKSUM, note="", name="set/good.bin"):
        known = {"urls": [server.url(path) for path in paths]} | (
            {"sha256": checksum} if checksum else {}
        )
        entry = {"purpose": "a test", "licence": "CC0-1.0", "note": note, "urls": []}
        (tmp_path / "registry.yaml").write_text(
            yaml.safe_dump({"set": entry | {"files": {"good.bin": known}}})
        )
        return downloads.fetch(name, tmp_path / "data", tmp_path / "registry.yaml")

    return get


def test_a_file_is_downloaded_once_and_a_wrong_one_is_replaced(server, fetch, tmp_path):
    assert fetch("/good.bin", name="set") == tmp_path / "data" / "set"
    assert fetch("/good.bin").read_bytes() == CONTENT and server.asked == ["/good.bin"]
    fetch("/good.bin").write_bytes(b"half of it")
    assert fetch("/good.bin").read_bytes() == CONTENT and len(server.asked) == 2


def test_a_mirror_takes_over_from_a_corrupted_a_missing_and_a_broken_file(server, fetch):
    server.files["/bad.bin"], server.breaks = CONTENT[:-1] + b"?", [None, 99]
    assert fetch("/bad.bin", "/good.bin", "/none.bin", "/good.bin").read_bytes() == CONTENT
    assert server.asked == ["/bad.bin", "/good.bin", "/none.bin", "/good.bin"]


def test_without_a_checksum_a_truncated_file_is_refused(server, fetch):
    server.breaks = [10]
    with pytest.raises(ProbeError, match="set/good.bin cannot be downloaded"):
        fetch("/good.bin", checksum=None, note="none is published")
    assert fetch("/good.bin", checksum=None, note="none is published").read_bytes() == CONTENT


def test_an_answer_without_an_end_is_cut_off(server, fetch, monkeypatch):
    server.files["/endless.bin"] = CONTENT * 9
    monkeypatch.setattr(downloads, "MOST_BYTES", len(CONTENT))
    with pytest.raises(ProbeError, match="more than 512000 bytes"):
        fetch("/endless.bin")
    monkeypatch.setattr(downloads, "MOST_SECONDS", -1)
    with pytest.raises(ProbeError, match="too slow"):
        fetch("/good.bin")


def test_when_nothing_helps_the_message_says_what_to_put_where(server, fetch, tmp_path):
    server.files["/bad.bin"] = b"other bytes"
    with pytest.raises(ProbeError) as error:
        fetch("/bad.bin", "/none.bin")
    said, home = str(error.value), tmp_path / "data" / "set"
    assert "404" in said and sha256(CONTENT) in said and "CC0-1.0" in said
    assert f"Put the file good.bin by hand into {home}" in said and not list(home.glob("good*"))
    home.mkdir(parents=True, exist_ok=True)
    (home / "good.bin").write_bytes(CONTENT)
    assert fetch("/none.bin").read_bytes() == CONTENT
    for name, says in (("sat", "did you mean set"), ("set/god.bin", "did you mean good.bin")):
        with pytest.raises(ProbeError, match=says):
            fetch("/good.bin", name=name)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("set: 3", "set: an object is needed: 3"),
        ("set: {licence: b}", "set: an object with purpose"),
        (
            "set: {purpose: a, licence: b, urls: [], files: {f: {}}}",
            "f: no sha256 or no urls, and no note",
        ),
        (
            "set: {purpose: a, licence: b, urls: [], files: {f: {sha256: abc}}}",
            "'abc' is not a SHA-256",
        ),
        (
            "set: {purpose: a, licence: b, urls: [1], files: {f: {}}}",
            "urls must be a list of non-empty texts",
        ),
        ("set: {purpose: a, licence: b, urls: [], files: {../f: {}}}", "'../f' is not a name"),
        ("- set", "a mapping"),
    ],
)
def test_a_bad_registry_is_named(tmp_path, entry, says):
    (tmp_path / "registry.yaml").write_text(entry)
    with pytest.raises(ProbeError, match=f"registry.yaml.*{says}"):
        downloads.registry(tmp_path / "registry.yaml")


def test_the_registry_of_the_kit():
    files = downloads.registry()
    fktc = files[files["data"] == "fktc"]
    assert len(fktc) == 20 and fktc["bytes"].sum() == 1_952_305
    assert files["purpose"].str.len().min() > 20 and files["licence"].str.len().min() > 0
    rows = files[["file", "urls"]].values
    assert all(
        url.startswith("https://") and url.endswith(file) for file, urls in rows for url in urls
    )
    unchecked = files[(files["sha256"] == "") | (files["urls"].map(len) == 0)]
    assert (unchecked["note"] != "").all()


# The command line


def write_wikidata(folder):
    rows = ",\n".join(json.dumps(row) for row in (test_wikidata.GERMANY, test_wikidata.BERLIN))
    (folder / "dump.json").write_text(f"[\n{rows}\n]\n")
    return folder / "dump.json"


def write_dbpedia(folder):
    (folder / "objects.ttl").write_text(test_dbpedia.OBJECTS)
    return folder / "objects.ttl"


def write_fktc(folder):
    return test_formats.write(folder, test_formats.HEADER, test_formats.HAITI)


FORMATS = {"fktc": write_fktc, "wikidata": write_wikidata, "dbpedia": write_dbpedia}
FORMATS |= {"lama": lambda folder: test_formats.write_lama(folder, test_formats.BORN)}


@pytest.mark.parametrize("data", FORMATS)
def test_a_format_becomes_a_table(data, tmp_path, capsys):
    out, path = tmp_path / "out.csv", FORMATS[data](tmp_path)
    assert main(["convert", "--from", data, str(path), "--out", str(out)]) == 0
    read = read_triples(out)
    assert len(read.facts) > 0 and f"{len(read.facts)} facts of" in capsys.readouterr().out


def test_what_is_converted_is_loaded_with_its_templates(tmp_path):
    (tmp_path / "counts.json").write_text(json.dumps({"P37": {"[X] speaks [Y].": 3}}))
    given = ["--out", str(tmp_path / "out.parquet"), "--templates", str(tmp_path / "counts.json")]
    assert (
        main(["convert", "--from", "fktc", str(write_fktc(tmp_path)), "--relations", "P37", *given])
        == 0
    )
    texts = (
        facts.load("table", tmp_path / "out.parquet")
        .templates.groupby("role")["template"]
        .agg(list)
    )
    assert texts["question"] == test_formats.HEADER["relations"] and texts["statement"] == [
        "[X] speaks [Y]."
    ]


def test_problems_are_one_line(tmp_path, capsys):
    path, out = str(write_dbpedia(tmp_path)), ["--out", str(tmp_path / "x.csv")]
    for words, says in (
        (["convert", "--from", "lame", path, *out], "unknown format 'lame'; did you mean lama or"),
        (["convert", "--from", "dbpedia", path, *out, "--relations", "P99999"], "unknown relation"),
        (["convert", "--from", "dbpedia", path, "--out", "x.xlsx"], "a .csv or a .parquet file"),
        (["fetch", "fkct"], "did you mean fktc"),
    ):
        assert main(words) == 1 and says in capsys.readouterr().err
    assert main(["fetch"]) == 0 and "fktc" in capsys.readouterr().out
