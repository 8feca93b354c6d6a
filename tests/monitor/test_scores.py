"""Which generated texts are right; teacher forcing against greedy decoding itself; names."""

import pandas as pd
import pytest

from probelib import facts, lm, prompts
from probelib.errors import ProbeError
from probelib.monitor import scores

COMPOSED, DECOMPOSED = "S\u00e3o", "Sa\u0303o"  # one character with its accent, or two


@pytest.mark.parametrize(
    ("gold", "done", "verdict", "texts"),
    [
        ("Paris", False, True, [" Paris.", " paris, of course"]),
        ("Paris", False, None, [" Paris", " Par", ""]),
        ("Paris", False, False, [" Parisian", " Rome", " in Paris"]),
        ("Paris", True, True, [" Paris"]),
        ("Paris", True, False, [""]),
        ("Washington, D.C.", False, True, [" Washington, D.C.\n"]),
        ("Washington, D.C.", False, False, [" Washington, D.C. is"]),
        (COMPOSED, True, True, [DECOMPOSED]),
        (DECOMPOSED, True, True, [COMPOSED]),
        (COMPOSED, True, False, ["Sao"]),  # no accent is another letter
        ("Sao", True, False, [DECOMPOSED]),
        (f"{COMPOSED} Paulo", False, None, ["Sa"]),  # the accent may follow
        (f"{DECOMPOSED} Paulo", False, None, ["Sa"]),
        (f"{DECOMPOSED} Paulo", False, False, ["Sai"]),
        (f"{DECOMPOSED} Paulo", True, False, ["Sa"]),
    ],
)
def test_what_counts_as_the_right_answer(gold, done, verdict, texts):
    assert [scores.matches(text, gold, done) for text in texts] == [verdict] * len(texts)


def test_generated_text_decides_what_teacher_forcing_leaves_open():
    columns = {"prompt": list("abc"), "label": "Paris", "greedy_text": [" Par", " Rome", " Par"]}
    rows = pd.DataFrame(columns | {"greedy_done": False})
    generated = pd.DataFrame({"prompt": ["a"], "text": [" Paris. And"]})
    assert scores.decide(rows).tolist() == [None, False, None]
    assert scores.decide(rows, generated).tolist() == [True, False, None]


def test_an_answer_is_cut_at_the_first_stop():
    texts = ["\n Paris. It", " New York, USA", "  ", "."]
    assert list(map(scores.extract, texts)) == ["Paris", "New York", "", ""]


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
