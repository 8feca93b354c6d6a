"""Text written side by side in one cache is the text that transformers writes prompt by prompt."""

import numpy as np
import pytest
import torch

from probelib.lm.decode.generation import beam_search, generate_ids
from probelib.lm.decode.shared_cache import SharedCache
from probelib.lm.tree import Tree
from tests.lm import tiny

TOLERANCE = 1e-4  # summed log-prob, nats; what is seen is below 2e-5. Token ids are equal
NEW = 6


def prompts(seed: int = 0) -> list[list[int]]:
    """Long shared beginnings, one that is the beginning of others, one twice, some that share
    nothing."""
    draw = lambda n: [int(t) for t in np.random.default_rng(seed + n).integers(3, tiny.V, n)]
    prefix = draw(20)
    long = [prefix + draw(n) for n in (3, 1, 3, 4)]
    return [*long[:2], draw(5), prefix[:10], long[2], draw(2), long[3]]


def transformers_writes(
    model, ids: list[int], beams: int, ends: list[int]
) -> tuple[list[list[int]], list[float]]:
    """The same question to transformers: one prompt, nothing padded, no cache shared."""
    inputs = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids)).long()}
    how = {"max_new_tokens": NEW, "num_beams": beams, "num_return_sequences": beams}
    how |= {"do_sample": False, "length_penalty": 0.0, "pad_token_id": 0, "eos_token_id": ends}
    said = model.generate(**inputs, **how, return_dict_in_generate=True, output_scores=True)
    beam = getattr(said, "beam_indices", None)
    scores = model.compute_transition_scores(said.sequences, said.scores, beam, beams == 1)
    texts = [row[len(ids) :].tolist() for row in said.sequences]
    cut = lambda text: min((at for at, t in enumerate(text) if t in ends), default=NEW) + 1
    texts = [text[: cut(text)] for text in texts]
    return texts, [row[: len(text)].sum().item() for row, text in zip(scores, texts, strict=True)]


@pytest.mark.parametrize("family", tiny.SOME_DECODERS)
@pytest.mark.parametrize(("beams", "several"), [(1, False), (3, False), (3, True)])
def test_writing_side_by_side_is_writing_alone(family, beams, several):
    model, asked = tiny.build(tiny.DECODERS[family]()), prompts()
    # so that some texts end by themselves, in one or two ways
    ends = [transformers_writes(model, asked[0], 1, [-1])[0][0][3]]
    ends += [transformers_writes(model, asked[-1], 1, [-1])[0][0][1]] if several else []
    for budget in (8, 64, 4096):  # small pieces and many caches; some; all in one row
        found, cost = generate_ids(model, asked, NEW, beams, ends, 32, budget)
        for ids, own in zip(asked, found, strict=True):
            texts, sums = transformers_writes(model, ids, beams, ends)
            assert [tokens for tokens, _ in own] == texts
            assert [sum(scores) for _, scores in own] == pytest.approx(sums, abs=TOLERANCE)
    assert any(tokens[-1] in ends for own in found for tokens, _ in own)
    if beams == 1:
        # the last one is never forwarded
        written = sum(len(tokens) - 1 for own in found for tokens, _ in own)
        assert cost["forwarded_tokens"] == len(Tree(asked).token) + written
        assert cost["forwards"] <= NEW


def test_ends_crowd_no_beam_out():
    """Two beams, ends 0 and 1. In the second step three of the four best continuations end; the
    beam behind 6 goes on all the same, and writes the second best text."""
    says = {
        (): ([-0.1, -0.2, -5, -6, -7, -8], [5, 6, 7, 8, 9, 10]),
        (5,): ([-0.1, -1, -1.1, -3, -4, -5], [10, 0, 1, 11, 13, 14]),
        (6,): ([-1.05, -1.06, -2, -9, -10, -11], [0, 1, 12, 11, 13, 14]),
        (5, 10): ([-9, -10, -11, -12, -13, -14], [20, 21, 22, 23, 24, 25]),
        (6, 12): ([-0.1, -10, -11, -12, -13, -14], [22, 21, 20, 23, 24, 25]),
    }
    search, written = beam_search(0, says[()], 3, 2, {0, 1}), {0: ()}
    try:
        asked = next(search)
        while True:
            answers = []
            for token, place in asked:
                written[len(written)] = (*written[place], token)
                answers.append((len(written) - 1, says[written[len(written) - 1]]))
            asked = search.send(answers)
    except StopIteration as end:
        assert [tokens for tokens, _ in end.value] == [[5, 0], [6, 12, 22]]


def test_a_row_grows_anywhere():
    """A token behind an inner one of another branch: the same log-probs as its own sequence."""
    model = tiny.build(tiny.DECODERS["llama"]())
    row = SharedCache(model)
    row.prefill([[5, 6, 7], [5, 8]], budget=2)
    logprobs = row.extend([20, 21, 22], [1, 4, -1], [0, 1, 2])  # 5 6 20; 5 6 20 21; 22
    for sequence, ours in zip(([5, 6, 20], [5, 6, 20, 21], [22]), logprobs, strict=True):
        with torch.inference_mode():
            alone = torch.log_softmax(model(torch.tensor([sequence])).logits[0, -1], -1)
        assert torch.allclose(ours, alone, atol=1e-4)
    assert [len(path) for path in row.above] == [1, 2, 3, 2, 3, 4, 1] and row.forwards == 3
