"""The boundary between prompt and continuation: which pairs the tokenizer would split
differently."""

from itertools import product

import numpy as np
import pytest
import transformers as hf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from probelib.lm.tokens import Tokens
from tests.lm import tiny

LETTERS = ["a", "b", "Ġ", "Ċ"]  # as byte-level tokenizers write a blank and a line break
WORDS = [("Ġ", "a"), ("a", "b")]


def tokenizer(merges: list[tuple[str, str]]):
    """A BPE of letters and these merges, which may join words: nothing splits the text before."""
    vocabulary = {token: i for i, token in enumerate([*LETTERS, *map("".join, merges)])}
    raw = Tokenizer(models.BPE(vocabulary, merges))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    return hf.PreTrainedTokenizerFast(tokenizer_object=raw)


@pytest.mark.parametrize(
    ("merges", "straddling"),
    [
        (WORDS, [(0, 1)]),  # "ab" is one token; " ab" is " a" and "b", "b a" is "b" and " a"
        ([*WORDS, ("b", "Ġa")], [(0, 1), (2, 0)]),  # "b a" is one token as well
    ],
)
def test_a_boundary_by_hand(merges, straddling):
    tokens = Tokens(tokenizer(merges), encoder_decoder=False)
    prompts, texts = ["a", "a a", "bb"], [" a", "b"]
    pairs = np.array(list(product(range(3), range(2)))).T
    found = tokens.straddling(prompts, texts, pairs)
    assert [tuple(pair) for pair in pairs[:, found].T.tolist()] == straddling


MADE = [(tokenizer(WORDS), "a", "b"), (tokenizer([*WORDS, ("b", "Ġa")]), "a", "b")]


@pytest.mark.parametrize(("made", "a", "b"), [(tiny.tokenizer(), "Par", "is"), *MADE])
def test_words_apart_are_words_together(made, a, b):
    """Every pair is flagged as its joined text says."""
    tokens = Tokens(made, encoder_decoder=False)
    forms = ["{a}", "{b}", "{a}{b}", "{a} {b}", "{b}{a}\n", "{a}{b} {a}{b}"]
    prompts = [form.format(a=a, b=b) for form in [*forms, "{b} ", "{a}  ", ""]]
    starts = ("", " ", "  ", "\n", " \n")
    texts = [before + form.format(a=a, b=b) for form in forms for before in starts]
    pairs = np.array(list(product(range(len(prompts)), range(len(texts))))).T
    ids = lambda text: tuple(tokens.tokenizer(text)["input_ids"])
    joins = lambda prompt, text: ids(prompt + text) != ids(prompt) + tokens.continuation(text)
    expected = [joins(prompts[p], texts[c]) for p, c in pairs.T]
    assert tokens.straddling(prompts, texts, pairs).tolist() == expected
    assert any(expected) and not all(expected)
