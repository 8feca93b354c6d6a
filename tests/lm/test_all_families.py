"""Every family of the installed transformers is scored exactly or refused with a named error; see
``families``."""

import pytest

from tests.lm import families

FAST = ["llama", "gpt2", "qwen3_moe", "lfm2", "bloom"]  # decoders: tree, repeated state, ALiBi
SOME = [("causal", name) for name in FAST] + [
    ("causal", "bert"),
    ("causal", "xlnet"),
    ("causal", "rwkv"),
]
SOME += [
    ("masked", "roberta"),
    ("masked", "distilbert"),
    ("seq2seq", "fsmt"),
    ("multimodal", "llava"),
]


@pytest.mark.parametrize(("kind", "name"), SOME)
def test_some_families_are_exact_or_refused(kind, name):
    row = families.in_a_process(kind, name)
    assert row["outcome"] == ("refused" if name in ("bert", "xlnet", "fsmt") else "exact"), row


def test_a_sweep_of_some_types_keeps_the_other_rows():
    """The types of a log replace their rows; a table of another version of transformers is not
    read."""
    llama = {
        "kind": "causal",
        "type": "llama",
        "outcome": "exact",
        "path": "tree",
        "error": 6.3e-6,
        "note": "",
    }
    bert = {
        "kind": "causal",
        "type": "bert",
        "outcome": "refused",
        "path": "",
        "error": None,
        "note": "a | b",
    }
    before = families.table([llama, bert])
    assert (
        families.table([], before) == before
        and "| causal | bert | refused |  |  | a / b |\n" in before
    )
    after = families.table([llama | {"outcome": "WRONG", "error": 2.5}], before)
    assert (
        "| causal | llama | WRONG | tree | 2.5e+00 |  |\n" in after
        and families.read_table(after)["causal", "bert"]
    )
    assert families.read_table(before.replace("transformers ", "transformers 1.")) == {}


@pytest.mark.slow
def test_no_family_is_wrong_or_fails_without_a_named_error():
    rows = [families.in_a_process(*family) for family in families.kinds()]
    bad = [row for row in rows if row["outcome"] in ("WRONG", "RAW ERROR")]
    assert not bad, bad
    assert sum(row["outcome"] == "exact" and row["kind"] == "causal" for row in rows) >= 150
    families.TABLE.write_text(families.table(rows))
