"""Which generated texts count as the right answer."""

import pandas as pd
import pytest

from probelib.monitor import answers

COMPOSED, DECOMPOSED = "S\u00e3o", "Sa\u0303o"  # one character with its accent, or two


@pytest.mark.parametrize(
    ("answer", "gold", "done", "verdict"),
    [
        (" Paris.", "Paris", False, True),
        (" paris, of course", "Paris", False, True),
        (" Paris", "Paris", True, True),
        (" Paris", "Paris", False, None),
        (" Par", "Paris", False, None),
        ("", "Paris", False, None),
        (" Parisian", "Paris", False, False),
        (" Rome", "Paris", False, False),
        ("", "Paris", True, False),
        (" in Paris", "Paris", False, False),
        (" Washington, D.C. is", "Washington, D.C.", False, False),
        (" Washington, D.C.\n", "Washington, D.C.", False, True),
        (COMPOSED, DECOMPOSED, True, True),
        (DECOMPOSED, COMPOSED, True, True),
        ("Sao", COMPOSED, True, False),  # no accent is another letter
        (DECOMPOSED, "Sao", True, False),
        *[("Sa", f"{sao} Paulo", False, None) for sao in (COMPOSED, DECOMPOSED)],
        *[("Sa", f"{sao} Paulo", True, False) for sao in (COMPOSED, DECOMPOSED)],
        *[("Sai", f"{sao} Paulo", False, False) for sao in (COMPOSED, DECOMPOSED)],
    ],
)
def test_what_counts_as_the_right_answer(answer, gold, done, verdict):
    assert answers.matches(answer, gold, done) is verdict


def test_generated_text_decides_what_teacher_forcing_leaves_open():
    columns = {"prompt": list("abc"), "label": "Paris", "greedy_text": [" Par", " Rome", " Par"]}
    scores = pd.DataFrame(columns | {"greedy_done": False})
    generated = pd.DataFrame({"prompt": ["a"], "text": [" Paris. And"]})
    assert answers.decide(scores).tolist() == [None, False, None]
    assert answers.decide(scores, generated).tolist() == [True, False, None]


def test_an_answer_is_cut_at_the_first_stop():
    texts = ["\n Paris. It", " New York, USA", "  ", "."]
    assert list(map(answers.extract, texts)) == ["Paris", "New York", "", ""]
