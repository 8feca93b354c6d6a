"""A model behind a server: the same numbers as here, or an error that names the server's fault."""

import itertools
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest

from probelib import ProbeError, lm, store
from probelib.lm.internals.gradients import integrated_gradients
from probelib.lm.remote import transport
from probelib.lm.remote.served import ChatModel
from probelib.prompts import PROMPTS
from tests.lm.remote.server import FAULTS, NAME, honest, organism, serving, values

ASKED = [
    "What is the capital of France?",
    "The capital of Norway is",
    "What is the capital of France?",
]
CONTINUATIONS = [[" Paris", " Lyon", " Paris."], [" Oslo", " Bergen is"], [" Lyon"]]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Short timeouts, no keys."""
    monkeypatch.setattr(transport, "TIMEOUT", (2, 20))
    for name in ("OPENAI_API_KEY", "PROBELIB_KEYS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def served():
    with serving(honest) as (url, log):
        yield lm.load(f"{url}#{NAME}"), log


def ask(url: str) -> pd.DataFrame:
    return lm.load(f"{url}#{NAME}").logprobs(["The capital of France is"], [[" Paris"]])


@pytest.mark.parametrize("end", [False, True])
def test_log_probabilities_are_those_of_the_model_loaded_here(served, end):
    ours = organism().logprobs(ASKED, CONTINUATIONS, end=end)
    theirs = served[0].logprobs(ASKED, CONTINUATIONS, end=end)
    for mine, other in zip(ours["token_logprobs"], theirs["token_logprobs"], strict=True):
        assert other == pytest.approx(mine, abs=1e-4) and other.dtype == np.float32
    np.testing.assert_allclose(ours["eos_logprob"], theirs["eos_logprob"], atol=1e-4)
    same = ["prompt", "candidate", "n_tokens", "greedy", "greedy_text", "greedy_done", "note"]
    pd.testing.assert_frame_equal(ours[same], theirs[same])
    assert theirs.attrs["cost"]["path"] == "served"


def test_texts_next_tokens_and_labels_are_those_of_the_model_loaded_here(served):
    model, log = served
    labels = {"Paris": [" Paris"], "Lyon": [" Lyon", " Lyons"], "Oslo": [" Oslo"]}
    for verb in (
        lambda m: m.generate(ASKED),
        lambda m: m.generate(ASKED[:2], max_new_tokens=1, beams=5, returned=5),
        lambda m: m.top_continuations(ASKED[0], labels, 2).drop(columns="forwarded_tokens"),
    ):
        pd.testing.assert_frame_equal(verb(organism()), verb(model), atol=1e-3)
    assert {body["temperature"] for _, body, _ in log if body["max_tokens"] == 15} == {0}
    assert model.generate([]).empty


def test_requests_that_a_server_cannot_answer_are_refused(served):
    model, _ = served
    for asked in (
        lambda: model.hidden_states(["a"]),
        lambda: model.hf_model,
        lambda: model.generate(["a"], beams=4),
        lambda: integrated_gradients(model, "a"),
    ):
        with pytest.raises(ProbeError, match="no hidden states.*Load the model locally"):
            asked()
    with pytest.raises(ProbeError, match="at most 510 tokens"):
        model.logprobs(["a " * 600], [[" b"]])
    with pytest.raises(ProbeError, match="its server determines quantize"):
        lm.load(f"{model.url}#{NAME}", quantize="4bit")
    with pytest.raises(ProbeError, match="nothing: the tokenizer cannot be read"):
        lm.load(f"{model.url}#./nothing").tokenizer  # noqa: B018


@pytest.mark.parametrize(("how", "said"), FAULTS, ids=[said for _, said in FAULTS])
def test_each_fault_is_named(how, said):
    with (
        serving(partial(honest, **how)) as (url, _),
        pytest.raises(ProbeError, match=said) as error,
    ):
        ask(url)
    assert f"{url} (stand-in)" in str(error.value)


@pytest.mark.parametrize(
    ("name", "late", "said"),
    [
        ("another-model", None, "answers as 'another-model' now, and answered as"),
        (NAME, lambda v: v * 3, "were others at the check"),
        (NAME, lambda v: max(v, -5.0), "were others at the check"),
        (NAME, lambda v: -9999.0, "no log-probability"),
    ],
)
def test_a_server_that_changes_after_the_check_is_noticed(name, late, said):
    """It answers as another model; or it says nothing, and its scores become those of other
    weights."""
    swapped, other = [], values(late) if late else None

    def answer(path, body, log):
        status, content, headers = honest(path, body, log, spoil=other if swapped else None)
        return status, content | {"model": name if swapped else NAME}, headers

    with serving(answer) as (url, _):
        model = lm.load(f"{url}#{NAME}")
        model.choose_path()
        swapped.append(True)
        for verb in (lambda: model.logprobs("Lima is", " a"), lambda: model.generate("Lima is")):
            with pytest.raises(ProbeError, match=said):
                verb()


def test_identity_is_measured(served):
    """Other weights, another template or pre-tokenizer behind one name are another model."""
    first, again, template, split = (lm.load(f"{served[0].url}#{NAME}") for _ in range(4))
    assert first.identity() == again.identity() and len(first.identity()["probe"]) == 20
    template.tokenizer.chat_template = "{{ messages[0]['content'] }}"
    split.tokenizer.backend_tokenizer.normalizer = None
    split.tokenizer.backend_tokenizer.pre_tokenizer = None
    ours = first.identity()["tokenizer"]
    assert ours != template.identity()["tokenizer"] != split.identity()["tokenizer"] != ours
    with serving(partial(honest, spoil=values(lambda v: v * 1.01))) as (url, _):
        assert lm.load(f"{url}#{NAME}").identity()["probe"] != first.identity()["probe"]


def test_the_store_names_server_and_model(tmp_path, served):
    row = ("p", "f", "P36", "cloze", 1, "none", -1, "The capital of France is")
    asked = pd.DataFrame([row], columns=PROMPTS)
    wanted = pd.DataFrame({"fact": "f", "candidate": ["Paris", "Rome"], "label": ["Paris", "Rome"]})
    name = f"{served[0].url}#{NAME}"
    rows = store.score(lm.load(name), asked, wanted, tmp_path)
    pd.testing.assert_frame_equal(rows, store.score(lm.load(name), asked, wanted, tmp_path))
    about = rows.attrs["models"][0]
    assert set(rows["model"]) == {lm.short_names(name)} and about["endpoint"] == served[0].url
    assert about["check"]["nats"] < 1e-4 and len(list(tmp_path.rglob("*.parquet"))) == 1
    with serving(honest) as (other, _):  # another address: another key
        store.score(lm.load(f"{other}#{NAME}"), asked, wanted, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("cut", [b'{"choices": [', b""])
def test_a_response_that_breaks_off_or_is_refused_is_requested_again(cut):
    """Once the body ends early, once it is cut JSON of the promised length; then a busy server."""
    left = [(503, {}, {"Retry-After": 0}), (429, {}, {}), (500, {}, {})]
    left = [(200, cut, {"Content-Length": 99}), (200, cut, {}), *left]
    with serving(lambda *asked: left.pop() if left else honest(*asked)) as (url, _):
        assert len(ask(url)) == 1
    assert not left


def drip():
    while True:
        yield b" "
        time.sleep(0.01)


ENDLESS = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((500, {"error": "overloaded"}, {}), "status 500: .*overloaded"),
        ((400, {"error": "unknown field"}, {}), "status 400: .*unknown field"),
        ((401, {}, {}), "set its key with PROBELIB_KEYS"),
        ((200, b"<html>", {}), "no response"),
        ((200, {"choices": "?"}, {}), "without choices"),
        ((200, b"{}", {"Content-Length": 99}), "no response"),
        ((503, {}, {}), "status 503"),
        ((200, drip, ENDLESS), "takes more than 0.3 seconds"),
        ((200, partial(itertools.repeat, b" " * 10**5), ENDLESS), "longer than 1000000 bytes"),
    ],
)
def test_what_stays_wrong_is_an_error(answer, said, monkeypatch):
    monkeypatch.setattr(transport, "TOTAL", 0.3 if answer[1] is drip else 60)
    monkeypatch.setattr(transport, "BYTES", 10**6)
    status, content, headers = answer
    reply = lambda *_: (status, content() if callable(content) else content, headers)
    with serving(reply) as (url, log), pytest.raises(ProbeError, match=said):
        ask(url)
    assert len(log) <= transport.TRIES * 2  # two batches of the check


def test_a_server_that_is_silent_absent_or_another_is_named(monkeypatch):
    with pytest.raises(ProbeError, match="Is the server running"):
        ask("http://127.0.0.1:9/v1")
    with (
        serving(honest, models=("other",)) as (url, _),
        pytest.raises(ProbeError, match="serves other"),
    ):
        ask(url)
    monkeypatch.setattr(transport, "TIMEOUT", (0.2, 0.2))
    silent, said = lambda *_: (time.sleep(2), (200, {}, {}))[1], "timed out"
    with serving(silent) as (url, log), pytest.raises(ProbeError, match=said):
        ask(url)
    assert len(log) <= 4  # two batches, each sent twice


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("http://localhost:8000/v1", "names no model"),
        ("http://localhost:8000/v1#", "names no model"),
        ("http://user:secret@localhost:8000/v1#m", "contains a user"),
        ("https://host/v1?key=secret#m", "contains a user"),
        ("http://#m", "not a valid address"),
        ("http://host:99999/v1#m", "not a valid address"),
        ("http://ho st/v1#m", "not a valid address"),
        ("http://host\n/v1#m", "not a valid address"),
    ],
)
def test_addresses_that_are_none(name, said):
    with pytest.raises(ProbeError, match=said) as error:
        lm.load(name)
    assert "secret" not in str(error.value)


def test_a_chat_model_that_returns_no_text_or_is_swapped_is_noticed():
    """Its content is null where it thought until its tokens ran out: that is not the text
    "None"."""
    says = lambda text, name: (
        200,
        {"model": name, "choices": [{"message": {"content": text}}]},
        {},
    )
    answers = [says("4", "first"), says("4", "second"), says(None, "first")]
    with serving(lambda *_: answers.pop(0)) as (url, _):
        model = ChatModel("m", url)
        assert model.generate(["2 + 2"])["text"].tolist() == ["4"]
        with pytest.raises(ProbeError, match="answers as 'second' now, and as 'first' before"):
            model.generate(["2 + 2"])
        with pytest.raises(ProbeError, match="'m' returns no text .max_tokens=7.*None"):
            model.generate(["2 + 2"], max_new_tokens=7)
