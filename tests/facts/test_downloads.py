"""Downloads from a server on loopback that breaks off and lies; the command line of facts."""

import contextlib
import http.server
import json
import threading

import pytest

from probelib.errors import ProbeError
from probelib.facts import downloads
from probelib.files import sha256

CONTENT = bytes(range(256)) * 2000
CHECKSUM = sha256(CONTENT)
ENTRY = {"purpose": "a test", "licence": "CC0-1.0", "note": "none is known", "urls": []}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path == "/none":
            self.send_error(404)
            return
        self.send_response(200)
        if self.path != "/endless":
            self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        own = {"/bad": b"?" + CONTENT[1:], "/half": CONTENT[:99], "/endless": CONTENT * 9}
        with contextlib.suppress(OSError):
            self.wfile.write(own.get(self.path, CONTENT))
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def fetch(tmp_path, server, monkeypatch):
    """A function that fetches the one file of a registry, from some paths of the server."""

    def get(*paths, checksum=CHECKSUM, name="set/good.bin"):
        urls = [f"http://127.0.0.1:{server.server_port}/{path}" for path in paths]
        known = {"urls": urls, "sha256": checksum}
        text = json.dumps({"set": ENTRY | {"files": {"good.bin": known}}})
        (tmp_path / "registry.yaml").write_text(text)
        monkeypatch.setattr(downloads, "REGISTRY", tmp_path / "registry.yaml")
        return downloads.fetch(name, tmp_path / "data")

    return get


def test_a_file_is_downloaded_once_and_mirrors_take_over(server, fetch, tmp_path):
    assert fetch("good", name="set") == tmp_path / "data" / "set"
    assert fetch("good").read_bytes() == CONTENT and server.asked == ["/good"]
    fetch("good").write_bytes(b"half of it")
    assert fetch("bad", "half", "none", "good").read_bytes() == CONTENT
    assert server.asked == ["/good", "/bad", "/half", "/none", "/good"]


def test_what_nothing_helps_is_said_with_what_to_put_where(fetch, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "MOST_BYTES", len(CONTENT))
    home = tmp_path / "data" / "set"
    for path, says in (("none", "404"), ("half", ""), ("endless", "more than 512000 bytes")):
        with pytest.raises(ProbeError, match=f"set/good.bin cannot.*{says}") as error:
            fetch(path, checksum="")
        said = f"Put the file good.bin by hand into {home}"
        assert said in str(error.value) and "CC0-1.0" in str(error.value)
    home.mkdir(parents=True, exist_ok=True)
    (home / "good.bin").write_bytes(CONTENT)
    assert fetch("none").read_bytes() == fetch(checksum="").read_bytes() == CONTENT
    for name, says in (("sat", "did you mean set"), ("set/god.bin", "did you mean good.bin")):
        with pytest.raises(ProbeError, match=says):
            fetch("good", name=name)


def test_the_registry_of_the_kit():
    known = downloads.registry()
    sizes = [file["bytes"] for file in known["fktc"]["files"].values()]
    assert len(sizes) == 20 and sum(sizes) == 1_952_305
    for data in known.values():
        for file in data["files"].values():
            about = data | file
            assert all(url.startswith("https://") and "{file}" in url for url in about["urls"])
            assert about["licence"] and about.get("note") or len(about["sha256"]) == 64
