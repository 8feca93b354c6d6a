"""What teacher forcing says about greedy decoding, held against greedy decoding itself; names."""

import pytest

from probelib import facts, lm, prompts
from probelib.errors import ProbeError
from probelib.monitor import scores


@pytest.mark.parametrize("name", ["atlas-neox-0.15m", "atlas-llama-0.6m"])
def test_flags_decide_as_generation_does(name):
    """Every verdict from the scores is the verdict on the generated text."""
    asked = facts.load(relations=["P37", "P30", "P1412"], n_facts=8)
    framed, gold = prompts.with_contexts(asked), prompts.gold(asked)
    framed = framed[(framed["template"] <= 2)].reset_index(drop=True)
    label = framed["fact"].map(dict(zip(gold["fact"], gold["label"], strict=True)))
    model = lm.load(name)
    rows = model.logprobs(framed["text"].tolist(), [[f" {each}"] for each in label], end=True)
    rows = rows.assign(prompt=framed["prompt"], label=label)
    written = model.generate(framed["text"].tolist(), max_new_tokens=15)
    truth = list(map(scores.matches, written["text"], label))
    decided = scores.decide(rows).tolist()
    assert all(verdict in (None, right) for verdict, right in zip(decided, truth, strict=True))
    # there is something to decide
    assert decided.count(None) < 0.2 * len(truth) and sum(truth) > 20
    assert scores.decide(rows, written.assign(prompt=framed["prompt"])).tolist() == truth


def test_two_models_of_one_display_name_are_refused(tmp_path, monkeypatch):
    """A folder of training runs may hold two models of one name: none may replace the other."""
    model = lm.load("atlas-neox-0.15m")
    monkeypatch.setattr(scores.lm, "load", lambda source, **options: model)
    with pytest.raises(ProbeError, match="'one' and 'other' have the same display name.*Rename"):
        scores.score(["one", "other"], facts.load(relations=["P30"], n_facts=1), tmp_path)
