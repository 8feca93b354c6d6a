"""Every family of the installed transformers is scored exactly or refused with a named error; see
``families``."""

import pytest

from tests.lm import families

# the tree, repeated states, ALiBi; masked models; encoder-decoders; text of multimodal models
EXACT = ["llama", "gpt2", "qwen3_moe", "lfm2", "bloom", "rwkv"]
SOME = [(("causal", name), "exact") for name in EXACT]
SOME += [(("causal", name), "refused") for name in ("bert", "xlnet", "prophetnet")]
SOME += [(("masked", name), "exact") for name in ("roberta", "distilbert")]
SOME += [(("seq2seq", "fsmt"), "refused"), (("multimodal", "llava"), "exact")]


@pytest.mark.parametrize(("family", "outcome"), SOME)
def test_some_families_are_exact_or_refused(family, outcome):
    row = families.in_a_process(*family)
    assert row["outcome"] == outcome, row


@pytest.mark.slow
def test_no_family_is_wrong_or_fails_without_a_named_error():
    rows = {family: families.in_a_process(*family) for family in families.kinds()}
    bad = [each for each in rows.items() if each[1]["outcome"] in ("WRONG", "RAW ERROR")]
    assert not bad, bad
    exact = [family for family, row in rows.items() if row["outcome"] == "exact"]
    assert sum(kind == "causal" for kind, _ in exact) >= 150
