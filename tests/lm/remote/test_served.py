"""A model behind a server: the same numbers as here, or an error that names the server's fault."""

import json
import math
import threading
import time
from functools import partial

import pandas as pd
import pytest

from probelib import ProbeError, lm, store
from probelib.lm.remote import chat, transport
from probelib.lm.remote.__main__ import main
from probelib.lm.remote.served import SENTENCES
from probelib.prompts import PROMPTS
from tests.lm.remote.server import FAULTS, NAME, Cache, assert_same_scores, honest, organism, serving, values

PROMPTS_ASKED = ["What is the capital of France?", "The capital of Norway is", "What is the capital of France?"]
CONTINUATIONS = [[" Paris", " Lyon", " Paris."], [" Oslo", " Bergen is"], [" Lyon"]]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Short timeouts, no keys."""
    monkeypatch.setattr(transport, "TIMEOUT", (2, 20))
    for name in ("OPENAI_API_KEY", "PROBELIB_KEYS", "PROBELIB_RATE"):
        monkeypatch.delenv(name, raising=False)
    transport._session.cache_clear()
    yield
    transport._session.cache_clear()


@pytest.fixture
def served():
    with serving(honest) as (url, log):
        yield lm.load(f"{url}#{NAME}"), log


@pytest.mark.parametrize("end", [False, True])
def test_log_probabilities_are_those_of_the_model_loaded_here(served, end):
    model, _ = served
    ours = organism().model.logprobs(PROMPTS_ASKED, CONTINUATIONS, end=end)
    theirs = model.logprobs(PROMPTS_ASKED, CONTINUATIONS, end=end)
    assert_same_scores(ours, theirs)
    assert theirs.attrs["cost"]["path"] == "served"


def test_texts_are_those_of_the_model_loaded_here(served):
    model, log = served
    ours, theirs = organism().model.generate(PROMPTS_ASKED), model.generate(PROMPTS_ASKED)
    pd.testing.assert_frame_equal(ours, theirs, atol=1e-3)
    [asked] = [body for _, body, _ in log if body["max_tokens"] == 15]
    assert theirs["logprob"].lt(0).all() and asked["temperature"] == 0
    assert model.generate([]).empty


def test_next_tokens_and_labels_are_those_of_the_model_loaded_here(served):
    model, _ = served
    ask = lambda m: m.generate(PROMPTS_ASKED[:2], max_new_tokens=1, beams=5, returned=5)
    pd.testing.assert_frame_equal(ask(organism().model), ask(model), atol=1e-3)
    labels = {"Paris": [" Paris"], "Lyon": [" Lyon", " Lyons"], "Oslo": [" Oslo"]}
    # a server shares less
    ask = lambda m: m.top_continuations(PROMPTS_ASKED[0], labels, 2).drop(columns="forwarded_tokens")
    pd.testing.assert_frame_equal(ask(organism().model), ask(model), atol=1e-3)


def test_what_a_server_cannot_do_is_said(served):
    model, log = served
    for asked in (
        lambda: model.hidden_states(["a"]),
        lambda: model.hf_model,
        lambda: model.generate(["a"], beams=4),
        lambda: model.beam_steps(["a"]),
        lambda: model.integrated_gradients("a"),
    ):
        with pytest.raises(ProbeError, match="no hidden states.*Load the model locally"):
            asked()
    with pytest.raises(ProbeError, match="at most 510 tokens"):
        model.logprobs(["a " * 600], [[" b"]])
    assert model.encoder_decoder is False and model.n_parameters == organism().model.n_parameters
    with pytest.raises(ProbeError, match="its server determines quantize"):
        lm.load(f"{model.url}#{NAME}", quantize="4bit")


def test_a_shared_beginning_is_sent_once(served):
    model, log = served
    model.choose_path()
    before = len(log)
    model.logprobs(["What is"] * 3, [[" the", " the capital"], [" the capital of"], [" the"]])
    bodies = [body for _, body, _ in log[before:]]
    [asked] = [body["prompt"] for body in bodies if body.get("echo")]
    assert len(asked) == 1 and all(isinstance(i, int) for i in asked[0])
    again = model.tokens.prompts(SENTENCES[:2]) + model._improbable  # of the check, scored again: their beginnings
    sent = [ids for body in bodies if not body.get("echo") for ids in body["prompt"]]
    assert sorted(sent) == sorted({tuple(ids[:i]): ids[:i] for ids in again for i in range(1, len(ids))}.values())


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named(fault):
    how, said = FAULTS[fault]
    with serving(partial(honest, **how)) as (url, _), pytest.raises(ProbeError, match=said) as error:
        ask(url)
    assert f"{url} (stand-in)" in str(error.value)


def ask(url: str) -> pd.DataFrame:
    return lm.load(f"{url}#{NAME}").logprobs(["The capital of France is"], [[" Paris"]])


def test_a_cache_under_a_wrong_key_is_named():
    said = "caches responses under a wrong key"
    with serving(partial(honest, spoil=Cache())) as (url, _), pytest.raises(ProbeError, match=said):
        ask(url)


def test_what_only_a_local_model_shows(served):
    """Honest in form, but other weights behind the name."""
    model, _ = served
    found = model.check(organism().model)
    assert found["local_nats"] < 1e-4 and found["sentences"] == len(SENTENCES) == 20
    with pytest.raises(ProbeError, match="differ from those of atlas-neox-2.4m loaded here by"):
        model.check(lm.load("atlas-neox-2.4m"))


@pytest.mark.parametrize(
    "name, late, said",
    [
        ("another-model", None, "answers as 'another-model' now, and answered as"),
        (NAME, lambda v: v * 3, "scores the sentences of the check otherwise than at first"),
        (NAME, lambda v: v / math.log(10), "scores the sentences of the check otherwise than at first"),
        (NAME, lambda v: max(v, -10.0), "are exactly -10: they are clipped"),
        (NAME, lambda v: max(v, -5.0), "are exactly -5: they are clipped"),
        (NAME, lambda v: round(v, 1), "are rounded"),
        (NAME, lambda v: -9999.0, "is no log-probability"),
    ],
)
def test_a_server_that_changes_after_the_check_is_noticed(name, late, said):
    """It answers as another model; or it says nothing, and its scores become those of other weights, or worse ones."""
    swapped, other = [], values(late) if late else None

    def answer(path, body, log):
        status, content, headers = honest(path, body, log, spoil=other if swapped else None)
        return status, content | {"model": name if swapped else NAME}, headers

    with serving(answer) as (url, _):
        model = lm.load(f"{url}#{NAME}")
        model.choose_path()
        swapped.append(True)
        with pytest.raises(ProbeError, match=said):
            model.logprobs(["The capital of France is"], [[" Paris"]])


def test_the_check_with_a_local_twin_is_a_command(capsys):
    with serving(honest) as (url, _):
        assert main([f"{url}#{NAME}", "--local", NAME]) == 0
        assert json.loads(capsys.readouterr().out)["local_nats"] < 1e-4
        assert main([f"{url}#{NAME}", "--local", "atlas-neox-2.4m"]) == 1
        assert "differ from those of atlas-neox-2.4m" in capsys.readouterr().err
    assert main([NAME]) == 1 and "no address of a server" in capsys.readouterr().err


@pytest.mark.parametrize("cut", [b'{"choices": [', b""])
def test_a_response_that_breaks_off_is_asked_for_again(cut):
    """Once the body ends early, once it is cut JSON of the promised length; Retry-After may be nonsense."""
    left = [(503, {}, {"Retry-After": "soon"}), (429, {}, {"Retry-After": -5})]
    left = [(200, cut, {"Content-Length": 99}), (200, cut, {}), *left]
    with serving(lambda *asked: left.pop() if left else honest(*asked)) as (url, _):
        assert len(ask(url)) == 1
    assert not left


@pytest.mark.parametrize("form", ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"])
def test_every_form_of_retry_after_is_read_in_utc(form, monkeypatch):
    """Sunday, 6 November 1994, 08:49:37 UTC, as RFC 9110 writes it, seven seconds before; the client's clock is in New York."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    monkeypatch.setattr(transport.time, "time", lambda: 784111777 - 7.0)
    try:
        assert transport.retry_after(time.strftime(form, time.gmtime(784111777)), 0.5) == 7.0
    finally:
        monkeypatch.undo()
        time.tzset()


def failing(statuses: list, **headers):
    """Answers the first POSTs with these statuses, then honestly."""
    left = list(statuses)

    def answer(path, body, log):
        return (left.pop(0), {"error": "overloaded"}, headers) if left else honest(path, body, log)

    return answer


def test_a_full_or_failing_server_is_asked_again():
    with serving(failing([429, 500, 503], **{"Retry-After": 0})) as (url, log):
        rows = ask(url)
        bodies = [body for _, body, _ in log]
        assert len(rows) == 1 and all(body in bodies[3:] for body in bodies[:3])


def test_what_stays_wrong_is_said(monkeypatch):
    for status, said in ((500, "status 500 6 times: .*overloaded"), (400, "status 400: "), (401, "its key")):
        with serving(failing([status] * 50)) as (url, log), pytest.raises(ProbeError, match=said):
            ask(url)
        assert len(log) <= (12 * 2 if status == 500 else 2)
    for content, headers, said in (
        (b"<html>", {}, "not JSON"),
        ({"choices": "?"}, {}, "without choices"),
        (b"{}", {"Content-Length": 99}, "no response"),
    ):
        answer = (200, content, headers)
        with serving(lambda *_, answer=answer: answer) as (url, _), pytest.raises(ProbeError, match=said):
            ask(url)
    with serving(honest, models=("other",)) as (url, _), pytest.raises(ProbeError, match=f"serves other, not '{NAME}'"):
        lm.load(f"{url}#{NAME}").context  # noqa: B018
    with pytest.raises(ProbeError, match="Is the server running"):
        ask("http://127.0.0.1:9/v1")


def test_a_server_that_is_silent_is_given_up(monkeypatch):
    monkeypatch.setattr(transport, "TIMEOUT", (0.2, 0.2))
    over = threading.Event()
    with serving(lambda *_: (over.wait(20), (200, {}, {}))[1]) as (url, log):
        with pytest.raises(ProbeError, match="timed out|Read timed out"):
            ask(url)
        over.set()
    assert len(log) <= 4  # the batches in flight, each repeated once


def test_the_store_names_server_and_model_and_needs_no_server_afterwards(tmp_path):
    asked = pd.DataFrame([("p", "f", "P36", "cloze", 1, "none", -1, "The capital of France is")], columns=PROMPTS)
    wanted = pd.DataFrame({"fact": ["f", "f"], "candidate": ["Paris", "Rome"], "label": ["Paris", "Rome"]})
    with serving(honest) as (url, log):
        name = f"{url}#{NAME}"
        rows = store.score(lm.load(name), asked, wanted, tmp_path)
        asked_then = len(log)
        again = store.score(lm.load(name), asked, wanted, tmp_path)
        assert len(log) == asked_then
    pd.testing.assert_frame_equal(rows, again)
    pd.testing.assert_frame_equal(rows, store.score(lm.load(name), asked, wanted, tmp_path))  # it is down by now
    assert set(rows["model"]) == {lm.short_names(name)} and rows.attrs["models"][0]["endpoint"] == url
    assert rows.attrs["models"][0]["check"]["sentences"] == 20
    [folder] = tmp_path.iterdir()
    assert folder.is_dir() and "/" not in folder.name and NAME in folder.name
    with serving(honest) as (other, log):  # another address: another key
        store.score(lm.load(f"{other}#{NAME}"), asked, wanted, tmp_path)
        assert log and len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    "name, said",
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


def test_an_unknown_tokenizer_is_an_error(served):
    model, _ = served
    with pytest.raises(ProbeError, match="tokenizer of ./nothing"):
        lm.load(f"{model.url}#./nothing").tokenizer  # noqa: B018


def test_texts_and_vocabulary_entries_are_understood_as_tokens(served):
    """Not every server says ids: a text or the vocabulary's own writing will do."""
    model, _ = served
    [ids] = model.tokens.prompts(["The capital of France is"])
    for said in (
        [f"token_id:{i}" for i in ids],
        [model.tokenizer.decode([i]) for i in ids],
        model.tokenizer.convert_ids_to_tokens(ids),
    ):
        assert [model.id(token) for token in said] == ids
    assert math.isnan(model.memory)


def test_a_chat_model_that_thought_until_its_tokens_ran_out_says_so():
    """Its content is null then, which is no answer: not the text "None"."""
    said = {"choices": [{"message": {"role": "assistant", "content": None}, "finish_reason": "length"}]}
    with serving(lambda *_: (200, said, {})) as (url, _), pytest.raises(ProbeError, match="'thinker'.*max_tokens=7"):
        chat.ChatModel("thinker", url).generate(["2 + 2"], max_new_tokens=7)


def test_a_chat_model_that_is_swapped_is_noticed():
    """Two requests to one model; the second response names another one."""
    names = ["first", "second"]
    answer = lambda *_: (200, {"model": names.pop(0), "choices": [{"message": {"content": "4"}}]}, {})
    with serving(answer) as (url, _):
        model = chat.ChatModel("m", url)
        assert model.generate(["2 + 2"])["text"].tolist() == ["4"]
        with pytest.raises(ProbeError, match="answers as 'second' now, and as 'first' before"):
            model.generate(["2 + 2"])
