"""ZP-LKE's inputs and examples."""

from types import SimpleNamespace

import pandas as pd
import pytest

from probelib import facts, lm, parameters, prompts
from probelib.errors import ProbeError
from probelib.zplke import scores


@pytest.fixture(scope="module")
def capitals():
    return facts.multiple_choice(relations=["P36"], n_facts=6)


def test_examples_are_the_same_for_all_facts_and_nested(capitals):
    asked, pool = capitals
    draw = lambda n, seed: prompts.sample_examples(pool, asked, n, seed)
    long, again, other = draw(20, 0), draw(5, 0), draw(20, 1)
    pd.testing.assert_frame_equal(long.head(5), again)
    assert set(long["fact"]) != set(other["fact"]) and long["subject"].is_unique
    assert not set(long["subject"]) & set(asked.label(asked.facts["subject"]))
    frame = prompts.many_shots(asked, long, 5)
    last = again["object"].iloc[-1]
    assert len(frame) == 6 and len({text.rsplit(last, 1)[0] for text in frame["text"]}) == 1
    assert len(prompts.many_shots(asked, long, role="hgp")) == 6 * 3
    both = scores.shared_examples(asked, pool, (), 5, 2)
    pd.testing.assert_frame_equal(both[both["seed"] == 0], again)


def replace(kind: str, pool):
    """The first example of a pool, replaced."""
    return scores.replaced(prompts.sample_examples(pool, None, 1), kind, (1,), pool)


def borders(n: int = 10**6):
    """The first facts of P47."""
    every = facts.choose(facts.atlas(), ["P47"])
    return facts.pick(every, every.facts["fact"].head(n))


def everywhere(n):
    asked = facts.load(relations=["P30", "P36", "P37", "P38", "P47"], n_facts="all")
    return prompts.sample_examples(facts.without_subjects(asked, asked), asked, n)


BAD = [
    (lambda a, p: prompts.many_shot([], "C", variant="realeased"), "variant.*realeased.*released"),
    (lambda a, p: prompts.sample_examples(facts.load(relations=["P36"], n_facts="all"), a, 5),
     r"6 facts of the pool have a subject that is also scored.*facts.without_subjects"),
    (lambda a, p: prompts.sample_examples(p, a, 100_000), "P36 has .* Take"),
    (lambda a, p: everywhere(50), r"smaller: .* has 0, .*score fewer facts \(n_facts"),
    *[(lambda a, p, n=n: prompts.sample_examples(p, a, n), f"n_examples={n!r}; an integer of")
      for n in (0, -1, 2.0, True, "all")],
    (lambda a, p: replace("false", p), "kind of example.*false.*incorrect"),
    (lambda a, p: replace("incorrect", borders(1)), "every object of P47 is right"),
    (lambda a, p: scores.positions(30, 30, True), "30 of 30 positions"),
    (lambda a, p: scores.with_prompts(borders(2)), "relation with prompts.*P47"),
    (lambda a, p: lm.load_decoders(["atlas-t5-2m"]), "atlas-t5-2m is an encoder-decoder"),
    (lambda a, p: parameters.complete(scores.ModelsSettings, {"drawz": 5}), "drawz"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_says_what_is_wrong(capitals, call, message):
    with pytest.raises(ProbeError, match=message):
        call(*capitals)


def test_an_input_longer_than_the_context_says_how_many_examples_fit(capitals):
    asked, pool = capitals
    examples = pd.concat([prompts.sample_examples(pool, asked, 50, seed) for seed in (0, 1)])
    words = lambda texts: [text.split() for text in texts]
    reader = SimpleNamespace(context=60, tokens=SimpleNamespace(encode=words, prompts=words))
    fits = scores.fit_examples("max", examples, asked, reader)
    texts = lambda n: words(prompts.many_shots(asked, examples, n)["text"])
    longest = lambda n: max(map(len, texts(n)))
    assert longest(fits) <= 60 - 16 < longest(fits + 1)
    assert scores.fit_examples(3, examples, asked, reader) == 3
    said = f"at most {fits} examples of relation P36 .* fit into the 60 tokens.*'max'"
    with pytest.raises(ProbeError, match=said):
        scores.fit_examples(50, examples, asked, reader)


def test_replaced_examples():
    """Austria has eight neighbours: none of them makes an incorrect example of it."""
    pool = borders()
    examples = prompts.sample_examples(pool, None, 30)
    where = scores.positions(30, 8, True, free=14, seed=3)
    assert len(set(where)) == 8 and scores.positions(200, 40, False) == list(range(81, 121))
    for seed in range(20):  # a star that is untouched, behind one that is untouched
        assert not {13, 14} & set(scores.positions(30, 8, True, free=14, seed=seed))
    subjects, objects = (pool.label(pool.facts[role]) for role in ("subject", "object"))
    right = set(zip(subjects, objects, strict=True))
    sequences = scores.sequences(examples, pool, 8, star=14)
    assert list(sequences) == ["correct", *scores.CONTEXTS]
    for context, own in list(sequences.items())[1:]:
        touched = own["kind"] != "correct"
        pd.testing.assert_frame_equal(own[~touched], examples[~touched])
        new = own[touched]
        assert len(new) == 8 and new["subject"].is_unique
        if "incorrect" in context:
            assert (new["subject"] == examples["subject"][touched]).all()
            assert right.isdisjoint(zip(new["subject"], new["object"], strict=True))
        else:
            assert not set(new["subject"]) & set(subjects)


def test_options_hold_the_right_object_once(capitals):
    asked, _ = capitals
    options = prompts.options(asked)
    sizes = options.groupby("fact").size()  # two towns of one name are one option
    assert sizes.between(98, 100).all() and not options.duplicated(["fact", "label"]).any()
    gold = dict(zip(asked.facts["fact"], asked.facts["object"], strict=True))
    at = options.groupby("fact").cumcount()[options["candidate"] == options["fact"].map(gold)]
    assert len(at) == 6 and at.nunique() > 1  # its place is drawn
    broken = asked.distractors.assign(object=asked.distractors["fact"].map(gold))
    said = r"gold object .* among the wrong options \(6 such facts\)"
    with pytest.raises(ProbeError, match=said):
        prompts.options(facts.Facts(**vars(asked) | {"distractors": broken}))


def test_a_sequence_gives_every_object_its_running_context(capitals):
    examples = prompts.sample_examples(capitals[1], None, 6)
    pairs = [f"{x} {y}" for x, y in zip(examples["subject"], examples["object"], strict=True)]
    text = scores.sequence(examples, "correct")["text"]
    assert text[0] == examples["subject"][0] and len(text) == 6
    assert text[2] == f"{pairs[0]} {pairs[1]} {examples['subject'][2]}"
