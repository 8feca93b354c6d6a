"""Which generated texts count as the right answer."""

import pandas as pd
import pytest

from probelib.monitor import answers


@pytest.mark.parametrize(
    ("answer", "done", "verdict"),
    [
        (" Paris.", False, True),
        (" paris, of course", False, True),
        (" Paris", True, True),
        (" Paris", False, None),
        (" Par", False, None),
        ("", False, None),
        (" Parisian", False, False),
        (" Rome", False, False),
        ("", True, False),
        (" in Paris", False, False),
    ],
)
def test_what_counts_as_the_right_answer(answer, done, verdict):
    assert answers.matches(answer, "Paris", done) is verdict


def test_an_answer_with_a_full_stop_in_it():
    assert answers.matches(" Washington, D.C. is", "Washington, D.C.", False) is False
    assert answers.matches(" Washington, D.C.\n", "Washington, D.C.", False) is True


def test_generated_text_decides_what_teacher_forcing_leaves_open():
    columns = {"prompt": list("abc"), "label": "Paris", "greedy_text": [" Par", " Rome", " Par"]}
    scores = pd.DataFrame(columns | {"greedy_done": False})
    generated = pd.DataFrame({"prompt": ["a"], "text": [" Paris. And"]})
    assert answers.decide(scores).tolist() == [None, False, None]
    assert answers.decide(scores, generated).tolist() == [True, False, None]


def test_an_accent_is_one_however_it_is_encoded():
    """One character or two; but no accent is another letter."""
    composed, decomposed, plain = "S\u00e3o", "Sa\u0303o", "Sao"
    assert answers.matches(composed, decomposed) and answers.matches(decomposed, composed)
    assert not answers.matches(decomposed, plain) and not answers.matches(plain, composed)


def test_a_beginning_that_ends_before_an_accent_is_open():
    for gold in ("S\u00e3o Paulo", "Sa\u0303o Paulo"):
        assert answers.matches("Sa", gold, done=False) is None
        assert answers.matches("Sa", gold) is False
        assert answers.matches("Sai", gold, done=False) is False


@pytest.mark.parametrize(
    ("text", "answer"),
    [("\n Paris. It", "Paris"), (" New York, USA", "New York"), ("  ", ""), (".", "")],
)
def test_an_answer_is_cut_at_the_first_stop(text, answer):
    assert answers.extract(text) == answer
