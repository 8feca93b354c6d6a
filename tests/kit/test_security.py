"""What comes from data, models, servers and parameters is shown, never run; and nothing leaves its
place."""

import ast
import functools
import http.server
import json
import os
import re
import threading
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import transformers as hf
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib import ProbeError, files, lm, paths, report, store
from probelib.distractors.baselines import bert_score
from probelib.lm.remote import transport
from probelib.paths import ROOT
from probelib.report.sheets import read_csv
from probelib.runner import cli
from tests.conftest import PROFILE, run, write_plan
from tests.lm import tiny

# --- no pickle, no code from texts, no shell, no unpacking of archives, in any line of the kit and
# of its notebooks

MODULES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
MODULES |= {"jsonpickle", "tarfile", "zipfile"}
CALLS = {"eval", "exec", "compile", "__import__", "read_pickle", "to_pickle", "system", "popen"}
CALLS |= {"unpack_archive", "extractall"}
OWN = {"re.compile"}


def forbidden(source: str) -> list[str]:
    """What a piece of Python does that the kit never does."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            found += [f"import {name}" for name in names if name.split(".")[0] in MODULES]
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        given = {word.arg: ast.unparse(word.value) for word in node.keywords}
        last, whole = called.rsplit(".", 1)[-1], "." not in called
        safe = given.get("Loader", "")
        code = given.get("trust_remote_code", "False").split(".")[-1]
        model = last.endswith("from_pretrained") and "AutoModel" in called
        wrong = [
            last in (CALLS if whole else CALLS - {"eval", "compile"}) and called not in OWN,
            called.endswith("torch.load") and given.get("weights_only") != "True",
            called == "yaml.load" and "SafeLoader" not in safe,
            given.get("allow_pickle", "False") != "False",
            given.get("shell", "False") != "False",
            code not in ("False", "trust_remote_code"),
            model and given.get("use_safetensors") != "True",
        ]
        found += [called] * any(wrong)
    return found


@functools.cache
def sources() -> dict[str, str]:
    """Every file of the library, and every code cell of the notebooks."""
    there = {str(path): path.read_text() for path in sorted((ROOT / "probelib").rglob("*.py"))}
    for path in sorted(paths.NOTEBOOKS.rglob("*.ipynb")):
        code = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
        there |= {f"{path}, {cell.id}": cell.source for cell in code}
    return there


def test_nothing_is_unpickled_evaluated_or_unpacked():
    assert {name: what for name, source in sources().items() if (what := forbidden(source))} == {}
    assert len(sources()) > 100


@pytest.mark.parametrize(
    "source",
    ["import pickle", "from joblib import load", "torch.load(f)", "np.load(f, allow_pickle=True)",
     "eval(x)", "exec(x)", "yaml.load(f)", "yaml.load(f, Loader=yaml.Loader)", "pd.read_pickle(f)",
     "os.system(x)", "subprocess.run(x, shell=True)", "load(n, trust_remote_code=True)",
     "shutil.unpack_archive(f)", "t.extractall()", "AutoModelForCausalLM.from_pretrained(f)"],
)  # fmt: skip
def test_the_scan_sees(source):
    assert forbidden(source)


# --- no code that comes with a model


@pytest.fixture
def evil_model(tmp_path):
    """A model folder whose config names code of its own; the code leaves a trace when it is run."""
    folder = tmp_path / "evil"
    config = hf.LlamaConfig(**tiny.WIDE | {"vocab_size": len(tiny.tokenizer())})
    tiny.build(config).save_pretrained(folder)
    tiny.tokenizer().save_pretrained(folder)
    trace = tmp_path / "trace"
    leave = f"open({str(trace)!r}, 'w').close()"
    own = f"{leave}\nfrom transformers import *\nC = M = T = LlamaConfig\n"
    (folder / "evil.py").write_text(own)
    config = json.loads((folder / "config.json").read_text()) | {"model_type": "evil"}
    config["auto_map"] = {"AutoConfig": "evil.C", "AutoTokenizer": "evil.T"}
    config["auto_map"] |= dict.fromkeys(("AutoModelForCausalLM", "AutoModel"), "evil.M")
    (folder / "config.json").write_text(json.dumps(config))
    return folder, trace


def test_code_beside_a_model_is_not_run(evil_model):
    folder, trace = evil_model
    for ask in (
        lambda: lm.load(folder).logprobs(["Lima is"], [[" Paris"]]),
        lambda: bert_score(folder, ["a"], ["b"]),
        lambda: lm.load(f"http://127.0.0.1:9/v1#{folder}").logprobs(["Lima is"], [[" Paris"]]),
    ):
        with pytest.raises(ProbeError):
            ask()
    assert not trace.exists()


def test_pickled_weights_are_refused(evil_model):
    folder, _ = evil_model
    for path in folder.glob("*.safetensors"):
        path.rename(folder / "pytorch_model.bin")
    for ask in (lambda: lm.load(folder), lambda: bert_score(folder, ["a"], ["b"])):
        with pytest.raises(ProbeError, match="never loaded"):
            ask()


# --- keys


@pytest.fixture
def listener():
    """Servers that keep the headers of what they get, and answer as told."""
    running = []

    def start(status=200, headers=None):
        got = []

        class Keep(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                got.append(dict(self.headers))
                self.send_response(status)
                for name, value in ({"Content-Length": "2"} | (headers or {})).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"{}")

            do_GET = do_POST

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Keep)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        running.append(server)
        return f"http://127.0.0.1:{server.server_port}", got

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def test_a_key_goes_to_its_own_server_alone(listener, monkeypatch, tmp_path):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password netrc-secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("OPENAI_API_KEY", "openai-secret")
    (one, got_one), (other, got_other) = listener(), listener()
    monkeypatch.setenv("PROBELIB_KEYS", f"{one}=one-secret https://elsewhere=x")
    for server in (one, other):
        transport.fetch_json(f"{server}/v1", "chat/completions", {"model": "m"})
    assert got_one[0]["Authorization"] == "Bearer one-secret"
    assert "secret" not in str(got_other)
    assert transport.key("https://api.openai.com/v1") == "openai-secret"
    for name in ("http://api.openai.com/v1", "https://api.openai.com.evil.example/v1",
                 "https://api.openai.com:444/v1", "https://api.openai.com@evil.example/v1",
                 "https://evil.example/api.openai.com"):  # fmt: skip
        assert transport.key(name) is None, name


@pytest.mark.parametrize("status", [301, 307])
def test_neither_key_nor_prompt_follows_a_redirect(listener, monkeypatch, status):
    there, got = listener()
    here, _ = listener(status, {"Location": f"{there}/v1/completions"})
    monkeypatch.setenv("PROBELIB_KEYS", f"{here}=one-secret")
    with pytest.raises(ProbeError, match=f"redirects to {there}"):
        transport.fetch_json(f"{here}/v1", "completions", {"model": "m", "prompt": "p"})
    assert got == []


def test_keys_are_in_no_error_and_no_store(monkeypatch):
    monkeypatch.setenv("PROBELIB_KEYS", "http://127.0.0.1:9=one-secret")
    model = lm.load("http://127.0.0.1:9/v1#atlas-neox-0.15m")
    with pytest.raises(ProbeError) as error:
        transport.fetch_json("http://127.0.0.1:9/v1", "models")
    assert "secret" not in f"{error.value}{model.name}"
    for wrong in ("one-secret", "host=one-secret"):
        monkeypatch.setenv("PROBELIB_KEYS", wrong)
        with pytest.raises(ProbeError, match="PROBELIB_KEYS") as error:
            transport.key("http://127.0.0.1:9")
        assert "secret" not in str(error.value)


# --- file names


PATHS = ["..", ".", "", "../../etc/passwd", "/etc/passwd", "a/../../b", "\0", "C:\\x", "~root"]
PATHS.append("a" * 999)


@settings(deadline=None)
@given(st.text() | st.sampled_from(PATHS))
def test_a_name_made_from_any_text_stays_in_its_folder(name):
    made = files.slug(name)
    folder = Path("/somewhere/scores")
    assert made and made == Path(made).name and made not in (".", "..") and len(made.encode()) < 100
    assert Path(os.path.normpath(folder / made)).parent == folder


@settings(deadline=None)
@given(st.lists(st.text(), unique=True, min_size=2, max_size=2))
def test_two_names_never_share_a_file(pair):
    assert files.slug(pair[0]) != files.slug(pair[1])


def test_parts_of_hostile_names_stay_in_the_store(tmp_path):
    class Model:
        name = "../../../outside"

        def identity(self):
            return {}

    prompts = pd.DataFrame({"prompt": ["p"], "fact": ["f"], "relation": ["../../r"], "text": ["t"]})
    [part] = store.parts(Model(), prompts, None, tmp_path / "scores", "generate", {})
    assert part.path.resolve().is_relative_to((tmp_path / "scores").resolve())


# --- pages

CELLS = (
    """
from probelib import report
import matplotlib.pyplot as plt, pandas as pd
from probelib.report import claims
told = {"caption": text, "alt": text, "claims": {"k": {"claim": text, "statistic": text}}}
claims._entries = lambda: {"p/table1": told, "p/figure1": told}
section = report.Section("p/hostile", profile, None, {"text": text})
found = claims.check("p/table1", k={"value": 1, "low": 0.5, "high": 2})
frame = pd.DataFrame({text: [text, "plain"], "value": [1, 2]}).rename_axis(columns=text)
section.show(report.Artifact("p/table1", frame, found))
figure, axis = plt.subplots()
axis.plot([1, 2], label=text)
axis.set(title=text, xlabel="50 $ # 60 $", ylabel="$$")
axis.legend()""",
    """
section.show(report.Artifact("p/figure1", frame, figure=figure))
report.say(f"Found **{text}** here.")
print(text)
frame
""",
    "frame.set_index(text).style.format(precision=1)",
)  # the figure is drawn at the end of the first cell, before it is an artifact
SCRIPT = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>\">"
    "<svg onload=window.hacked=3> ![x](http://127.0.0.1:9/pixel.png) [y](javascript:window.hacked=4"
    ") $x<sub>_&amp; {x} | = $$ 50 $ # 60 $ ```` <|endoftext|> \x1b[2J\x1b]0;title\x07 \u202e"
)


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory):
    """A real run whose parameter, fact labels, captions and title are hostile; gives its folder."""
    out = tmp_path_factory.mktemp("hostile")
    steps = [{"notebook": "p/hostile", "makes": ["p/table1", "p/figure1"], "title": SCRIPT}]
    cells = [PROFILE + '\ntext = ""  # str: what is shown', *CELLS]
    plan = write_plan(out / "plan", {"p/hostile": cells}, steps)
    assert "ok" in run(out, "--plan", str(plan), "--set", f"text={SCRIPT}")
    return out


def test_a_real_run_shows_scripts_and_runs_none(hostile_run):
    text = (hostile_run / "runs/smoke/report.html").read_text()
    assert "&lt;script&gt;window.hacked" in text and "default-src 'none'" in text
    assert not re.search(r"<script>window\.hacked|<img src=x|<svg onload", text)
    assert "<script" not in (hostile_run / "figures/smoke/p/table1.html").read_text()
    frame = read_csv((hostile_run / "figures/smoke/p/table1.csv").read_bytes())
    assert frame.columns[0] == SCRIPT == frame[SCRIPT][0]  # the data are the text, as it is
    latex = (hostile_run / "figures/smoke/p/table1.tex").read_text()
    assert "\x1b" not in latex and "\\$\\$ 50 \\$ \\# 60 \\$" in latex and r"\_\&amp" in latex


def test_a_markdown_page_shows_links_tags_and_fences_as_text(hostile_run):
    page = (hostile_run / "figures/smoke/p/hostile.md").read_text()
    # what stands in a block of code is text
    outside = re.sub(r"(?ms)^(`{3,})\w*\n.*?^\1$", "", page)
    assert "\x1b" not in page and "<script>" in page and "window.hacked" in outside
    bad = r"<script|<img|<svg|(?<!\\)!\[x|\]\((?:http|java)|(?<!\\)\$|\w://127"
    assert not re.search(bad, outside)


def test_no_text_moves_the_cursor_of_a_terminal(capsys):
    told = "a\x1b[2Jb\rc\x9b\u202ed\te\nf"
    cli._print_table(("head",), [(told,)])
    print(ProbeError(told))
    said = capsys.readouterr().out
    assert said.count("a␛[2Jb␍c\ufffd\ufffdd\te\nf") == 2 and "\x1b" not in said


def test_sentences_of_a_notebook_hold_no_tags(monkeypatch):
    """Nor is a text that begins with an address fetched, as IPython's ``Markdown`` does."""
    import urllib.request

    from IPython import display

    shown = []
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: pytest.fail("fetched"))
    monkeypatch.setattr(display, "display", lambda data, raw: shown.append(data["text/markdown"]))
    for text, said in (
        ("M*A*S*H, Ke$ha of my_own_run", "M\\*A\\*S\\*H, Ke\\$ha of my\\_own\\_run"),
        ("http://a.b or www.c.d", "http\\://a.b or www\\.c.d"),
        ("*so* **it** `is_a*b` 5 * 6", "*so* **it** `is_a*b` 5 * 6"),
        ("p < 0.05, <b>x</b> <!-- --> a<1", "p < 0.05, &lt;b>x&lt;/b> &lt;!-- --> a<1"),
        ("![x](y) [y](z) $ 5", "!\\[x]\\(y) [y]\\(z) \\$ 5"),
    ):
        report.say(text)
        assert shown.pop() == said
