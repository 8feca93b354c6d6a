"""What the tests of models need: a small model of each kind, as a user would bring it."""

import pytest
import transformers as hf

from probelib import lm
from probelib.lm import names
from tests.lm import tiny


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """No display names of other tests: their folders have the same last two parts."""
    monkeypatch.setattr(names, "_sources", {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.folder(tmp_path_factory.mktemp("neox"))


@pytest.fixture(scope="module")
def model(folder):
    return lm.load(folder)


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    config = hf.T5Config(**tiny.T5 | {"vocab_size": 320}, eos_token_id=1, pad_token_id=0)
    return lm.load(tiny.folder(tmp_path_factory.mktemp("t5"), config))
