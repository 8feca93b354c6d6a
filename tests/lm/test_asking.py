"""Asking an instruct model: drawn answers, chat templates, an OpenAI-style server, and what it all
costs."""

import pytest

from probelib import lm
from probelib.errors import ProbeError
from probelib.lm.internals.memory import measured
from tests.lm import tiny

PROMPTS = ["Paris is nice.", "The capital of Peru is"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return lm.load(tiny.folder(tmp_path_factory.mktemp("neox")))


def test_generation_arguments_that_conflict_are_refused(model):
    with pytest.raises(ProbeError, match="at most one text per beam"):
        model.generate(PROMPTS, returned=3)
    with pytest.raises(ProbeError, match="1 or more"):
        model.generate(PROMPTS, max_new_tokens=0)


def test_a_chat_turn_has_one_beginning_token(tmp_path):
    """Templates write the beginning token themselves, and the tokenizer would write it again."""
    folder = tiny.folder(tmp_path, bos=True)
    model = lm.load(folder)
    assert model.chat("Paris?") == "Paris?"  # no template: as it is
    model.tokenizer.chat_template = (
        "{{ bos_token }}Q: {{ messages[0]['content'] }} A:"
        "{% for turn in messages[1:] %}{{ turn['content'] }}{% endfor %}"
    )
    text = model.chat("Paris?")
    assert text == "Q: Paris? A:"
    ids = model.tokens.prompts([text])[0]
    assert ids.count(model.tokenizer.bos_token_id) == 1 and ids[0] == model.tokenizer.bos_token_id


def test_the_meter_sees_time_and_memory(model):
    idle = measured(model.device, lambda: None)
    busy = measured(model.device, lambda: bytearray(300_000_000))
    assert 0 <= idle["seconds"] < 1 and busy["peak_bytes"] > 300_000_000
    assert busy["peak_bytes"] - idle["peak_bytes"] > 150_000_000
    assert (
        measured(model.device, lambda: None)["peak_bytes"] < busy["peak_bytes"]
    )  # the mark begins anew each time
