"""Where tools of the field were seen to be wrong, ours is right: each test sets the trap and holds
the answer against one naked forward of the joined token ids."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lm import tiny


def ids(model, text: str) -> list[int]:
    return model.tokenizer(text)["input_ids"]


def by_hand(model, prompt: str, answer: str) -> list[float]:
    return tiny.by_hand(model.hf_model, ids(model, prompt), ids(model, answer))


def test_one_text_split_in_two_places_is_two_questions(model):
    """A harness's logits cache is keyed by the joined tokens: the shorter continuation gets rows of
    the longer one."""
    prompts, answers = ["The capital", "The capital of"], [" of Peru", " Peru"]
    first, second = (ids(model, p) + ids(model, a) for p, a in zip(prompts, answers, strict=True))
    assert first == second
    right = [sum(by_hand(model, p, a)) for p, a in zip(prompts, answers, strict=True)]
    for order in ([0, 1], [1, 0]):
        rows = model.logprobs([prompts[i] for i in order], [[answers[i]] for i in order])
        assert rows["logprob"].tolist() == pytest.approx([right[i] for i in order], abs=1e-4)
    assert abs(right[0] - right[1]) > 1  # the trap is set: one score for both would be wrong by far


WORDS = ["capital", "of", "Peru", "is", "Lima", "France", "nice", "Oslo"]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(WORDS), min_size=3, max_size=6), st.data())
def test_all_splits_of_one_text_obey_the_chain_rule(model, words, data):
    """log P(b c | a) = log P(b | a) + log P(c | a b), with all three asked in one call."""
    cut = data.draw(st.integers(1, len(words) - 2))
    again = data.draw(st.integers(cut + 1, len(words) - 1))
    text = lambda start, end: "".join(f" {word}" for word in words[start:end])
    a, b, c = text(0, cut), text(cut, again), text(again, len(words))
    whole, first, second = model.logprobs([a, a, a + b], [[b + c], [b], [c]])["logprob"]
    assert whole == pytest.approx(first + second, abs=1e-4)
