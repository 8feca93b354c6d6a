"""Which generated texts count as the right answer."""

import pandas as pd
import pytest

from probelib.monitor.scores import decide, extract, matches

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
    assert [matches(text, gold, done) for text in texts] == [verdict] * len(texts)


def test_generated_text_decides_what_teacher_forcing_leaves_open():
    columns = {"prompt": list("abc"), "label": "Paris", "greedy_text": [" Par", " Rome", " Par"]}
    scores = pd.DataFrame(columns | {"greedy_done": False})
    generated = pd.DataFrame({"prompt": ["a"], "text": [" Paris. And"]})
    assert decide(scores).tolist() == [None, False, None]
    assert decide(scores, generated).tolist() == [True, False, None]


def test_an_answer_is_cut_at_the_first_stop():
    texts = ["\n Paris. It", " New York, USA", "  ", "."]
    assert list(map(extract, texts)) == ["Paris", "New York", "", ""]
