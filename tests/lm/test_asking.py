"""Asking an instruct model: drawn answers, chat templates, an OpenAI-style server, and what it all costs."""

import pytest

from probelib import lm
from probelib.errors import ProbeError
from probelib.lm.meter import measured
from tests.lm import tiny

PROMPTS = ["Paris is nice.", "The capital of Peru is"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return lm.load(tiny.folder(tmp_path_factory.mktemp("neox")))


def test_drawn_answers_differ_and_come_again_with_their_seed(model):
    ask = lambda seed, t=1.5: model.generate(PROMPTS, max_new_tokens=6, returned=3, temperature=t, seed=seed)
    first, again, other = ask(1), ask(1), ask(2)
    assert first[["prompt", "rank"]].values.tolist() == [[p, r] for p in (0, 1) for r in (0, 1, 2)]
    assert first["text"].tolist() == again["text"].tolist() != other["text"].tolist()
    assert first["text"].nunique() > 2
    cold = ask(3, 1e-4)["text"].tolist()
    assert cold[0] == cold[1] == cold[2] == model.generate(PROMPTS, max_new_tokens=6)["text"][0]


def test_drawing_takes_a_temperature(model):
    with pytest.raises(ProbeError, match="or give a temperature"):
        model.generate(PROMPTS, returned=3)
    for wrong in ({"temperature": 0}, {"temperature": 1.0, "beams": 2}):
        with pytest.raises(ProbeError, match="drawing takes"):
            model.generate(PROMPTS, **wrong)


def test_a_chat_turn_has_one_beginning_token(tmp_path):
    """Templates write the beginning token themselves, and the tokenizer would write it again."""
    folder = tiny.folder(tmp_path, bos=True)
    model = lm.load(folder)
    assert model.chat("Paris?") == "Paris?"  # no template: as it is
    model.tokenizer.chat_template = "{{ bos_token }}Q: {{ messages[0]['content'] }} A:"
    text = model.chat("Paris?")
    assert text == "Q: Paris? A:"
    ids = model.tokens.prompts([text])[0]
    assert ids.count(model.tokenizer.bos_token_id) == 1 and ids[0] == model.tokenizer.bos_token_id


def test_the_meter_sees_time_and_memory(model):
    idle = measured(model.device, lambda: None)
    busy = measured(model.device, lambda: bytearray(300_000_000))
    assert 0 <= idle["seconds"] < 1 and busy["peak_bytes"] > 300_000_000
    assert busy["peak_bytes"] - idle["peak_bytes"] > 150_000_000
    assert measured(model.device, lambda: None)["peak_bytes"] < busy["peak_bytes"]  # the mark begins anew each time
