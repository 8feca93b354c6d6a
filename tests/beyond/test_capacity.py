"""Bits of knowledge in closed form."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probelib.beyond import capacity


def scores(*logprobs: float) -> pd.DataFrame:
    return pd.DataFrame(
        {"fact": "a", "prompt": "p", "gold": [True] + [False] * (len(logprobs) - 1), "logprob": logprobs}
    )


def test_a_guess_stores_nothing_and_certainty_all():
    """Sixteen equal options: 0 bits; all probability on the right one: log2 16 = 4 bits; half of it: 3 bits."""
    bits = lambda *logprobs: capacity.bits_by_likelihood(scores(*logprobs))["a"]
    assert bits(*[-7.0] * 16) == pytest.approx(0.0)
    assert bits(0.0, *[-900.0] * 15) == pytest.approx(4.0)
    assert bits(np.log(0.5), *[np.log(0.5 / 15)] * 15) == pytest.approx(3.0)


@given(st.floats(0, 1), st.integers(2, 200))
def test_choices_never_show_more_than_the_options_allow(accuracy, n):
    assert -1e-9 <= capacity.bits_by_choices(accuracy, n) <= np.log2(n) + 1e-9


def facts(model: str = "m", bits=(1.0, 1.0, 3.0, 3.0), exposures=(0, 0, 32, 64)) -> pd.DataFrame:
    rows = pd.DataFrame({"fact": list("abcd"), "bits": bits, "right": [0, 0, 1, 1], "exposures": exposures})
    return rows.assign(model=model, parameters=40, options=8)


def taught(*exposures: int) -> pd.DataFrame:
    return pd.DataFrame({"model": "m", "exposures": exposures})


def test_what_was_stored_by_hand():
    """Never-taught facts have 1 bit, those taught 32 times 3: two more bits for each of the 10 facts of the corpus."""
    levels = capacity.by_level(facts())
    assert levels["from"].tolist() == [0, 32] and levels["bits"].tolist() == [1.0, 3.0]
    assert levels["choices"].tolist() == [0.0, pytest.approx(3.0)]
    total = capacity.stored(facts(), taught(*[0] * 5, *[32] * 10)).iloc[0]
    assert (total["bits"], total["bits per parameter"], total["at most"]) == (20.0, 0.5, 30.0)
    quantized = capacity.stored(facts("4bit"), taught(*[0] * 5, *[32] * 10), of="m").iloc[0]
    assert quantized["bits"] == 20.0, "a quantized form was taught what its model was taught"


def test_a_confident_error_holds_no_bits():
    """Without the floor, one fact at -9 bits would make the mean of its level negative."""
    wrong = facts(bits=(-9.0, 1.0, -9.0, 3.0))
    assert capacity.by_level(wrong)["bits"].tolist() == [0.5, 1.5] and capacity.by_level(wrong)["misled"].tolist() == [
        0.5,
        0.5,
    ]
    assert capacity.stored(wrong, taught(*[32] * 10))["bits"].item() == 10.0


def test_the_reference_is_full_precision_whatever_comes_first():
    bits = pd.concat([facts("8bit", (1, 1, 2.5, 2.5)), facts("fp32")])
    artifact = capacity.capacity_precision(bits, taught(0, 32), "m")
    assert artifact.frame.set_index("precision")["kept"].to_dict() == {"8bit": 0.75, "fp32": 1.0}
    assert artifact.finding == "Of the bits that fp32 stores of the trial facts, 8bit keeps 75.0% [no interval]."
    assert "measured on n = 4 trial facts, times the 1 trial facts that" in artifact.caption
    assert "bits per parameter are a lower bound" in artifact.caption and "of 40 parameters" in artifact.caption
    assert artifact.shown["bits per parameter"].tolist() == ["0.03750", "0.05000"]  # 1.5 and 2 bits
    lost = pd.DataFrame({"precision": ["8bit", "nf4"], "kept high": [1.1, 0.9]})
    assert capacity._lost(lost) == " Significantly less than all: nf4."
    assert capacity._lost(lost[:1]) == " No loss is significant."
    other = capacity.capacity_precision(bits[bits["model"] == "8bit"], taught(0, 32), "m")
    assert other.frame["kept"].tolist() == [1.0] and other.finding == ""


@pytest.mark.parametrize(("bits", "ends", "meant"), [
    ((100.0, 200.0), (0.1, 0.4), "no estimate of a capacity"),
    ((100.0, 2000.0), (1.2, 1.4), "faster than parameters"),
    ((100.0, 1000.0), (0.5, 1.4), "is not excluded"),
    ((100.0, 1000.0), (np.nan, np.nan), "is not excluded"),
])  # fmt: skip
def test_the_finding_follows_the_exponent(bits, ends, meant):
    total = pd.DataFrame({"model": ["s", "l"], "parameters": [10, 100], "bits": bits, "low": 90.0, "high": 3000.0})
    fit = {"b": 0.3, "b_low": ends[0], "b_high": ends[1], "n": 2}
    finding = capacity.capacity_finding(total.assign(**{"at most": 4000.0}), fit)
    assert finding.startswith(f"Of the trial facts, l stores {bits[1]:,.0f} bits")
    assert f"{bits[1] / 4000:.0%} of the 4,000 that the taught ones are worth" in finding
    assert meant in finding and f"10 times the parameters of s hold {bits[1] / 100:.1f} times its bits" in finding


def test_the_picture_can_be_drawn():
    import matplotlib.pyplot as plt

    bits = pd.concat([facts(), facts("l", (1, 1.5, 2, 3)).assign(parameters=400)])
    corpus = pd.concat([taught(0, 32), taught(0, 32).assign(model="l")])
    artifact = capacity.capacity(capacity.by_level(bits), capacity.stored(bits, corpus))
    assert "over 4 trial facts" in artifact.caption and "all trial facts taught are worth" in artifact.caption
    assert artifact.figure.axes[1].get_ylabel() == "bits stored of trial facts"
    drawn = artifact.frame.query("panel == 'stored' and low > 0")
    assert len(drawn) and artifact.figure.axes[1].get_ylim()[0] < drawn["low"].min()
    assert set(artifact.frame["panel"]) == {"by exposures", "stored"} and artifact.alt == "m: 2 bits; l: 1 bits"
    plt.close("all")
