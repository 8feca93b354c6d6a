"""ZP-LKE's inputs and examples, and the scores of real models."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from probelib import facts, lm, parameters, prompts, store
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


def replace(kind: str, where=(1,), pool=None):
    """Examples of P36 with those at ``where`` replaced."""
    pool = pool or facts.load(relations=["P36"], n_facts="all")
    return scores.replaced(prompts.sample_examples(pool, None, 1), kind, where, pool)


def borders(n: int | None = None):
    """The facts of P47, or its first n."""
    every = facts.choose(facts.atlas(), ["P47"])
    return every if n is None else facts.pick(every, every.facts["fact"].head(n))


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
    (lambda a, p: replace("false"), "kind of example.*false.*incorrect"),
    (lambda a, p: replace("incorrect", pool=borders(1)), "every object of P47 is right"),
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


def test_replaced_examples(capitals):
    _, pool = capitals
    examples = prompts.sample_examples(pool, None, 30)
    where = scores.positions(30, 8, True, free=14, seed=3)
    assert len(set(where)) == 8 and scores.positions(200, 40, False) == list(range(81, 121))
    for seed in range(20):  # a star that is untouched, behind one that is untouched
        assert not {13, 14} & set(scores.positions(30, 8, True, free=14, seed=seed))
    wrong, invented = (scores.replaced(examples, k, where, pool) for k in ("incorrect", "unknown"))
    touched = examples["position"].isin(where)
    for frame in (wrong, invented):
        pd.testing.assert_frame_equal(frame[~touched], examples[~touched])
    assert (wrong["subject"] == examples["subject"]).all()
    assert (wrong["object"] != examples["object"])[touched].all()
    assert not set(invented["subject"][touched]) & set(pool.label(pool.facts["subject"]))
    assert invented["subject"].is_unique and (invented["kind"] == "unknown").sum() == 8
    sequences = scores.sequences(examples, pool, 8, star=14)
    assert list(sequences) == ["correct", *scores.CONTEXTS]
    assert all((own["kind"] != "correct").sum() == 8 for own in list(sequences.values())[1:])


def test_an_incorrect_example_is_right_by_no_other_fact_either():
    """Austria has eight neighbours: none of them makes an incorrect example of it."""
    every = borders()
    labels = [every.label(every.facts[role]) for role in ("subject", "object")]
    right = set(zip(*labels, strict=True))
    for seed in range(5):
        examples = prompts.sample_examples(every, None, 40, seed)
        wrong = scores.replaced(examples, "incorrect", range(1, 41), every, seed)
        assert right.isdisjoint(zip(wrong["subject"], wrong["object"], strict=True))
        assert right.issuperset(zip(examples["subject"], examples["object"], strict=True))


def test_options_hold_the_right_object_once(capitals):
    asked, _ = capitals
    options = prompts.options(asked)
    sizes = options.groupby("fact").size()  # two towns of one name are one option
    assert sizes.between(98, 100).all() and not options.duplicated(["fact", "label"]).any()
    gold = dict(zip(asked.facts["fact"], asked.facts["object"], strict=True))
    right = options["candidate"] == options["fact"].map(gold)
    at = options.groupby("fact").cumcount()[right]
    assert len(at) == 6 and at.nunique() > 1  # its place is drawn
    broken = asked.distractors.assign(object=asked.distractors["fact"].map(gold))
    said = r"gold object .* among the wrong options \(6 such facts\)"
    with pytest.raises(ProbeError, match=said):
        prompts.options(facts.Facts(**vars(asked) | {"distractors": broken}))


# ---- with real models


# without, with a start token
@pytest.mark.parametrize("name", ["atlas-neox-0.15m", "atlas-llama-0.6m"])
def test_a_sequence_gives_every_object_its_probability_in_its_running_context(name, tmp_path):
    model = lm.load(name)
    examples = prompts.sample_examples(facts.load(relations=["P36"], n_facts="all"), None, 6)
    frame = scores.sequence(examples, "correct")
    pairs = [f"{x} {y}" for x, y in zip(examples["subject"], examples["object"], strict=True)]
    assert frame["text"].iloc[2] == f"{pairs[0]} {pairs[1]} {examples['subject'][2]}"
    options = examples.assign(candidate=examples["object"], label=examples["object"])
    rows = store.score(model, frame, options[["fact", "candidate", "label"]], tmp_path)
    objects = [[f" {o}"] for o in examples["object"]]
    plain = model.logprobs(frame["text"].tolist(), objects, path="plain")
    np.testing.assert_allclose(rows["logprob"], plain["logprob"], atol=1e-4)
