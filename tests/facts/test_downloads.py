"""Downloads from a server on loopback that breaks off, lies, moves and comes back."""

import contextlib
import http.server
import threading

import pytest
import yaml

from probelib.errors import ProbeError
from probelib.facts import downloads
from probelib.files import sha256

CONTENT = bytes(range(256)) * 2000
CHECKSUM = sha256(CONTENT)
K = downloads.CHUNK


class Server(http.server.ThreadingHTTPServer):
    """Serves ``files``; ``breaks`` says after how many bytes the next answers break off; ``asked`` keeps (path, Range)."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.breaks, self.asked = {"/good.bin": CONTENT}, [], []
        self.resumes, self.version = True, "1"

    def url(self, path):
        return f"http://127.0.0.1:{self.server_port}{path}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        wanted, server = self.headers.get("Range"), self.server
        server.asked.append((self.path, wanted))
        if self.path not in server.files:
            return self.send_error(404)
        content, start = server.files[self.path], 0
        if wanted and server.resumes:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("ETag", server.version)
        self.end_headers()
        end = server.breaks.pop(0) if server.breaks else len(content)
        with contextlib.suppress(OSError):
            self.wfile.write(content[start:end])
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
def registry(tmp_path, server):
    """A function that writes a registry of one data set, "set", and returns its path."""

    def write(*paths, checksum=CHECKSUM, name="good.bin", note=""):
        known = {"urls": [server.url(path) for path in paths]} | ({"sha256": checksum} if checksum else {})
        entry = {"purpose": "a test", "licence": "CC0-1.0", "note": note, "urls": [], "files": {name: known}}
        path = tmp_path / "registry.yaml"
        path.write_text(yaml.safe_dump({"set": entry}))
        return path

    return write


def parts(tmp_path):
    return [path for path in (tmp_path / "data" / "set").iterdir() if path.suffix == ".part"]


def test_a_file_is_downloaded_once(server, registry, tmp_path):
    path = registry("/good.bin")
    assert downloads.fetch("set", tmp_path / "data", path) == tmp_path / "data" / "set"
    assert (tmp_path / "data" / "set" / "good.bin").read_bytes() == CONTENT and not parts(tmp_path)
    assert downloads.fetch("set/good.bin", tmp_path / "data", path) == tmp_path / "data" / "set" / "good.bin"
    assert server.asked == [("/good.bin", None)]


def test_a_broken_download_is_resumed_where_it_broke(server, registry, tmp_path):
    server.breaks = [3 * K + 9, 1, 5 * K]  # the second answer is only looked at: it says that the version is the same
    downloads.fetch("set", tmp_path / "data", registry("/good.bin"))
    assert (tmp_path / "data" / "set" / "good.bin").read_bytes() == CONTENT
    assert [wanted for _, wanted in server.asked] == [None, None, f"bytes={3 * K}-", None, f"bytes={5 * K}-"]


def test_a_broken_download_is_resumed_by_the_next_call_but_not_with_another_version(
    server, registry, tmp_path, monkeypatch
):
    monkeypatch.setattr(downloads, "TRIES", 1)
    path, target = registry("/good.bin"), tmp_path / "data" / "set" / "good.bin"
    server.breaks = [4 * K]
    with pytest.raises(ProbeError, match="broke off 1 times"):
        downloads.fetch("set", tmp_path / "data", path)
    assert not target.exists() and [p.stat().st_size for p in parts(tmp_path)] == [4 * K]
    server.version, server.breaks = "2", [2 * K]
    with pytest.raises(ProbeError, match="broke off"):
        downloads.fetch("set", tmp_path / "data", path)
    assert sorted(p.stat().st_size for p in parts(tmp_path)) == [2 * K, 4 * K]
    downloads.fetch("set", tmp_path / "data", path)
    assert (
        target.read_bytes() == CONTENT and server.asked[-1] == ("/good.bin", f"bytes={2 * K}-") and not parts(tmp_path)
    )


def test_a_server_that_cannot_resume_sends_the_file_again(server, registry, tmp_path):
    server.resumes, server.breaks = False, [4 * K]
    downloads.fetch("set", tmp_path / "data", registry("/good.bin"))
    assert (tmp_path / "data" / "set" / "good.bin").read_bytes() == CONTENT


def test_a_mirror_takes_over_from_a_corrupted_a_missing_and_an_always_broken_file(server, registry, tmp_path):
    server.files["/bad.bin"] = CONTENT[:-1] + b"?"
    downloads.fetch("set", tmp_path / "data", registry("/bad.bin", "/none.bin", "/good.bin"))
    assert (tmp_path / "data" / "set" / "good.bin").read_bytes() == CONTENT
    assert [path for path, _ in server.asked] == ["/bad.bin", "/none.bin", "/good.bin"]


def test_when_nothing_helps_the_message_says_what_to_put_where(server, registry, tmp_path):
    server.files["/bad.bin"] = b"other bytes"
    with pytest.raises(ProbeError) as error:
        downloads.fetch("set", tmp_path / "data", registry("/bad.bin", "/none.bin"))
    said = str(error.value)
    assert (
        "set/good.bin cannot be downloaded" in said and "404" in said and sha256(CONTENT) in said and "CC0-1.0" in said
    )
    assert f"Put the file good.bin by hand into {tmp_path / 'data' / 'set'}" in said
    assert list((tmp_path / "data" / "set").glob("good*")) == [] and not parts(tmp_path)


def test_no_network_and_the_file_put_there_by_hand(server, registry, tmp_path):
    path, home = registry("/good.bin"), tmp_path / "data" / "set"
    path.write_text(path.read_text().replace(str(server.server_port), "9"))  # nobody listens there
    with pytest.raises(ProbeError, match="Put the file good.bin by hand into"):
        downloads.fetch("set", tmp_path / "data", path)
    (home / "good.bin").write_bytes(b"another file")
    with pytest.raises(ProbeError, match="the file there has another SHA-256"):
        downloads.fetch("set", tmp_path / "data", path)
    (home / "good.bin").write_bytes(CONTENT)
    assert downloads.fetch("set/good.bin", tmp_path / "data", path).read_bytes() == CONTENT


def test_a_wrong_file_is_replaced(registry, tmp_path):
    path, target = registry("/good.bin"), tmp_path / "data" / "set" / "good.bin"
    target.parent.mkdir(parents=True)
    target.write_bytes(b"half of it")
    downloads.fetch("set", tmp_path / "data", path)
    assert target.read_bytes() == CONTENT


def test_without_a_checksum_a_truncated_file_is_still_refused(server, registry, tmp_path):
    path = registry("/good.bin", checksum=None, note="none is published")
    server.breaks = [10] * 20
    with pytest.raises(ProbeError, match="broke off 5 times"):
        downloads.fetch("set", tmp_path / "data", path)
    server.breaks = []
    downloads.fetch("set", tmp_path / "data", path)
    assert (tmp_path / "data" / "set" / "good.bin").read_bytes() == CONTENT


def test_a_file_to_be_had_by_hand_only(registry, tmp_path):
    with pytest.raises(
        ProbeError, match="set/good.bin cannot be downloaded: ask the authors.\nPut the file good.bin by hand"
    ):
        downloads.fetch("set", tmp_path / "data", registry(note="ask the authors"))


def test_two_at_once_want_the_same_file(server, registry, tmp_path):
    path, results = registry("/good.bin"), []
    jobs = [
        threading.Thread(target=lambda: results.append(downloads.fetch("set/good.bin", tmp_path / "data", path)))
        for _ in range(4)
    ]
    [job.start() for job in jobs]
    [job.join() for job in jobs]
    assert [result.read_bytes() == CONTENT for result in results] == [True] * 4 and len(server.asked) == 1


def test_a_folder_in_the_way_and_a_folder_that_cannot_be(registry, tmp_path):
    (tmp_path / "data" / "set" / "good.bin").mkdir(parents=True)
    with pytest.raises(ProbeError, match="good.bin: a folder, where a file is needed"):
        downloads.fetch("set", tmp_path / "data", registry("/good.bin"))
    (tmp_path / "file").write_text("")
    with pytest.raises(ProbeError, match="cannot be downloaded: .*file/set"):
        downloads.fetch("set", tmp_path / "file", registry("/good.bin"))


def test_names_that_do_not_exist(registry, tmp_path):
    path = registry("/good.bin")
    for name, says in (("sat", "unknown data set 'sat'; did you mean set"), ("set/god.bin", "did you mean good.bin")):
        with pytest.raises(ProbeError, match=says):
            downloads.fetch(name, tmp_path, path)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("set: 3", "set: an object is needed: 3"),
        ("set: {licence: b}", "set: an object with purpose"),
        ("set: {purpose: a, licence: b, urls: [], files: {f: {}}}", "f: no sha256 or no urls, and no note"),
        ("set: {purpose: a, licence: b, urls: [], files: {f: {sha256: abc}}}", "'abc' is not a SHA-256"),
        ("set: {purpose: a, licence: b, urls: [1], files: {f: {}}}", "urls must be a list of non-empty texts"),
        ("set: {purpose: a, licence: b, urls: [], files: {../f: {}}}", "'../f' is not a file name"),
        ("set: {purpose: a, licence: b, note: c, urls: [], files: {f: {bytes: many}}}", "bytes"),
        ("- set", "a mapping"),
    ],
)
def test_a_bad_registry_is_named(tmp_path, entry, says):
    (tmp_path / "registry.yaml").write_text(entry)
    with pytest.raises(ProbeError, match=f"registry.yaml.*{says}"):
        downloads.registry(tmp_path / "registry.yaml")


def test_the_registry_of_the_kit():
    files = downloads.registry()
    assert files.groupby("data").size()["fktc"] == 20 and files[files["data"] == "fktc"]["bytes"].sum() == 1_952_305
    assert files["purpose"].str.len().min() > 20 and files["licence"].str.len().min() > 0
    assert all(
        url.startswith("https://") and url.endswith(f) for f, urls in files[["file", "urls"]].values for url in urls
    )
    unchecked = files[(files["sha256"] == "") | (files["urls"].map(len) == 0)]
    assert (unchecked["note"] != "").all()
    assert set(files[files["urls"].map(len) == 0]["data"]) == {"wikidata"}
