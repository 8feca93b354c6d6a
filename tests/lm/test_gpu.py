"""The core on a GPU gives what it gives on a CPU: ``./run_all.sh test -m gpu`` on a machine that
has one.

float32 there and here differ by the order of sums alone; half precision and quantization are held
against full precision on the same card.
"""

import numpy as np
import pytest
import torch

from probelib import lm
from probelib.lm.plain import score_plain
from probelib.lm.tree import score_tree
from tests.lm import tiny
from tests.lm.test_tree import largest_difference, requests

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available(), reason="needs a CUDA device, and `-m gpu`: see conftest.py"
    ),
]
GPU_TOLERANCE = 3e-4  # summed log-prob, nats
ANSWERS = [[" Paris", " Lima", " Oslo"], [" Madrid", " Paris"], [" Italy"]]
PROMPTS = ["What is the capital of France?", "What is the capital of Spain?", "Berlin Germany Rome"]


@pytest.mark.parametrize("family", tiny.DECODERS)
def test_the_tree_on_the_gpu_is_the_plain_path_on_the_cpu(family):
    model = tiny.build(tiny.DECODERS[family]())
    contexts, branches = requests()
    plain, _, _ = score_plain(model, contexts, branches)
    model = model.to("cuda")
    for budget in (4, 384):
        fast, _, _ = score_tree(model, contexts, branches, budget)
        assert largest_difference(fast, plain) <= GPU_TOLERANCE


@pytest.mark.parametrize("family", tiny.DECODERS)
def test_the_tree_in_bfloat16_is_as_near_as_the_plain_path_is(family):
    """Both are held against float32: packing must not cost more than bfloat16 itself does (its
    rounding is 1/256)."""
    model = tiny.build(tiny.DECODERS[family]()).to("cuda")
    contexts, branches = requests()
    exact, _, _ = score_plain(model, contexts, branches)
    model = model.bfloat16()
    plain, _, _ = score_plain(model, contexts, branches)
    fast, _, _ = score_tree(model, contexts, branches, 384)
    off = lambda some: np.nanmean(np.abs(np.concatenate(some) - np.concatenate(exact)))
    assert off(fast) <= 1.5 * off(plain) + 0.01


def test_all_verbs_answer_as_on_the_cpu(folder):
    cpu, gpu = (lm.load(folder, device=device, dtype="float32") for device in ("cpu", "cuda"))
    scores = [one.logprobs(PROMPTS, ANSWERS, end=True) for one in (cpu, gpu)]
    columns = ["logprob", "eos_logprob"]
    assert np.allclose(scores[0][columns], scores[1][columns], rtol=0, atol=GPU_TOLERANCE)
    assert (scores[0]["greedy_text"] == scores[1]["greedy_text"]).all()
    for beams in (1, 3):
        texts = [one.generate(PROMPTS, beams=beams, max_new_tokens=8) for one in (cpu, gpu)]
        assert (texts[0]["text"] == texts[1]["text"]).all()
    states = [one.hidden_states(PROMPTS, "Berlin Germany")[0] for one in (cpu, gpu)]
    assert np.abs(states[0] - states[1]).max() <= 1e-3
    labels = {word: [f" {word}"] for word in ("Paris", "Lima", "Oslo", "Madrid", "Italy", "Rome")}
    for how in ("best_first", "beam"):
        found = [one.top_continuations(PROMPTS[0], labels, 3, method=how) for one in (cpu, gpu)]
        assert found[0]["candidate"].tolist() == found[1]["candidate"].tolist()


def test_the_same_call_gives_the_same_bytes(folder):
    one = lm.load(folder)
    assert one.dtype == "bfloat16" and one.device.type == "cuda" and one.choose_path() == "tree"
    assert one.budget == 8192 and one.rows(16, one.budget) == 16  # it is narrow
    first, again = (one.logprobs(PROMPTS, ANSWERS)["logprob"].tolist() for _ in range(2))
    assert first == again


@pytest.mark.parametrize(("quantize", "off"), [("8bit", 0.5), ("4bit", 3.0)])
def test_quantized(folder, quantize, off):
    """Every layer is quantized, path and order change nothing beyond rounding, and the scores stay
    near the full model's."""
    full, small = lm.load(folder, dtype="bfloat16"), lm.load(folder, quantize=quantize)
    theirs, ours = (one.logprobs(PROMPTS, ANSWERS)["logprob"].to_numpy() for one in (full, small))
    assert small.describe()["quantized_modules"] == 8
    assert np.abs(ours - theirs).max() <= off
    plain = small.logprobs(PROMPTS, ANSWERS, path="plain")["logprob"].to_numpy()
    assert np.abs(ours - plain).max() <= 0.5


def test_a_full_card_halves_the_row_and_the_scores_stay(folder):
    """The card is filled but for so little that a long row does not fit: the budget shrinks and is
    kept, the scores are the same."""
    one = lm.load(folder, dtype="float32")
    cities, questions = ("Paris", "Lima", "Oslo", "Rome"), ("What is", "Where is", "Is Nice")
    words = [f" {a} and {b} Germany Italy" for a in "bcdfghjklm" for b in cities]
    prompts = [f"{a} the capital of {b}?" for a in questions for b in words]
    one.budget = 256
    expected = one.logprobs(prompts, [words] * len(prompts))
    assert expected.attrs["cost"]["forwarded_tokens"] > 3 * 8192
    one.budget = whole = 8192  # a mask of 8,192 x 8,192 in float32 alone takes 256 MiB
    torch.cuda.empty_cache()
    room = torch.cuda.memory_reserved()
    total = torch.cuda.get_device_properties(0).total_memory
    try:
        torch.cuda.set_per_process_memory_fraction((room + 100 * 2**20) / total)
        rows = one.logprobs(prompts, [words] * len(prompts))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert rows.attrs["cost"]["budget"] == one.budget < whole
    assert np.allclose(rows["logprob"], expected["logprob"], rtol=0, atol=GPU_TOLERANCE)
