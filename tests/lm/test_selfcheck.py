"""The self-check in half precision: rounding, which flips experts of mixtures, is no reason to
leave the tree; a wrong mask is."""

import shutil
from unittest import mock

import numpy as np
import pytest
import torch
import transformers as hf

from probelib import lm, paths
from probelib.lm import families, selfcheck
from tests.lm import tiny

SIZES = tiny.GROUPED | {"vocab_size": len(tiny.tokenizer()), "sliding_window": 8}
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
CONFIGS = {
    "mixtral": lambda: hf.MixtralConfig(**SIZES, num_local_experts=4),
    "gpt_oss": lambda: hf.GptOssConfig(
        **SIZES, head_dim=16, num_local_experts=4, num_experts_per_tok=2, rope_parameters=ROPE
    ),
    "mistral": lambda: hf.MistralConfig(**SIZES),
}
HALVES = [torch.bfloat16, torch.float16]


def without_window(hf_model, visible, query, key):
    """Every token attends to all of its ancestors, however far."""
    return torch.where(visible, 0, torch.finfo(hf_model.dtype).min).to(hf_model.dtype)[None, None]


def without_tree(hf_model, visible, query, key, right=families._mask):
    """Every token attends to all earlier tokens of the row, also to those of other branches."""
    earlier = torch.ones_like(visible).tril(visible.shape[1] - len(visible))
    return right(hf_model, earlier, query, key)


SABOTAGED = {"window": without_window, "tree": without_tree}


@pytest.fixture(autouse=True)
def only_the_tree(monkeypatch):
    """One path less to check."""
    monkeypatch.setattr("probelib.lm.model.PATHS", ("tree", "plain", "alone"))


def small(family: str, dtype, scale: float):
    """A model in memory whose weights have the standard deviation ``scale``."""
    hf_model = tiny.build(CONFIGS[family]())
    for parameter in hf_model.parameters():
        parameter.data *= scale / 0.25 if parameter.dim() > 1 else 1
    model = lm.load(hf_model.to(dtype), tiny.tokenizer())
    model.budget, model.n_parameters = 32, 1e8  # a shorter check, as if of a large model
    return model


def settings(families_, dtypes, scales):
    return [(f, d, s) for f in families_ for d in dtypes for s in scales]


SLOW = [
    pytest.param(*each, marks=() if each == ("mixtral", torch.bfloat16, 0.25) else pytest.mark.slow)
    for each in settings(CONFIGS, [torch.float32, *HALVES], (0.1, 0.25))
]


@pytest.mark.filterwarnings("ignore:.*is scored on the path")
@pytest.mark.parametrize(("family", "dtype", "scale"), SLOW)
def test_the_right_mask_passes_and_sabotaged_ones_are_caught(family, dtype, scale, capsys):
    """18 right masks, 36 sabotaged ones: three families and precisions, two scales of weights."""
    model = small(family, dtype, scale)
    before = {name: tensor.clone() for name, tensor in model.hf_model.state_dict().items()}
    assert model.choose_path() == "tree" and "comparing its paths" in capsys.readouterr().err
    for name, tensor in model.hf_model.state_dict().items():
        assert tensor.dtype == before[name].dtype and tensor.equal(before[name])
    for wrong in SABOTAGED.values():
        model.path = None
        with mock.patch.object(families, "_mask", wrong):
            assert model.choose_path() != "tree"
        assert model.why.startswith("tree: it changes log-probabilities")


@pytest.mark.parametrize(("batch", "tree"), [(0, 2e-4), (1e-4, 6e-4), (8e-4, 2e-3), (1, 2e-4)])
def test_the_tree_may_move_float32_by_what_the_order_of_sums_does(batch, tree, monkeypatch):
    """4 times what padded batches do, from 1e-4 to 1e-3 nats, if their padding is right (1e-3)."""
    for moved, fits in ((tree, False), (tree / 2.1, True)):
        by = zip(("alone", "plain", "tree"), (0, batch, moved), strict=True)
        scores = {path: [np.array([-9.0 - nats])] for path, nats in by}
        monkeypatch.setattr(selfcheck, "_scores", lambda *_, own=scores: own)
        assert (selfcheck._why_not(small("mistral", torch.float32, 0.1), "tree", 32) == "") == fits


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*is scored on the path")
@pytest.mark.parametrize(("family", "dtype", "scale"), settings(CONFIGS, HALVES, (0.1, 0.25)))
def test_sabotaged_masks_are_caught_without_the_referee(family, dtype, scale, monkeypatch):
    """Where memory does not hold the weights in float32, a quantile of the differences decides."""
    monkeypatch.setattr(selfcheck.psutil, "virtual_memory", lambda: mock.Mock(available=0))
    model = small(family, dtype, scale)
    for wrong in SABOTAGED.values():
        model.path = None
        with mock.patch.object(families, "_mask", wrong):
            assert model.choose_path() != "tree"


def test_a_check_that_passed_is_not_repeated(tmp_path, monkeypatch):
    """Until something changes that it depends on. Failures are not kept: memory may be short."""
    checked, found = [], {}
    monkeypatch.setattr(selfcheck, "failures", lambda model: checked.append(1) or dict(found))
    monkeypatch.setattr(paths, "CHECKS", tmp_path / "checks")
    folder, other = tiny.folder(tmp_path / "one"), tiny.folder(tmp_path / "other", bos=True)
    checks = lambda model: (checked.clear(), model.choose_path(), len(checked))[2]
    assert [checks(lm.load(folder)) for _ in range(3)] == [1, 0, 0]
    assert [checks(lm.load(other)) for _ in range(2)] == [1, 0]  # other weights
    model = lm.load(folder)
    model.hf_model.get_input_embeddings().weight.data *= 1.5
    assert checks(model) == 1
    model = lm.load(folder)
    model.hf_model.set_attn_implementation("eager")
    assert checks(model) == 1
    model = lm.load(folder)
    model.budget = 32
    assert checks(model) == 1 and checks(lm.load(folder, dtype="bfloat16")) == 1
    found["tree"] = "RuntimeError: no memory"
    monkeypatch.setattr(selfcheck, "scoring", lambda: {"code": "another"})
    for _ in range(2):
        with pytest.warns(UserWarning, match="scored on the path 'plain', not.*no memory"):
            assert checks(lm.load(folder)) == 1
    found.clear()
    shutil.rmtree(tmp_path / "checks")
    (tmp_path / "checks").write_text("a file, so that nothing can be noted")
    assert [checks(lm.load(folder)) for _ in range(2)] == [1, 1]
