"""ZP-LKE's artifacts: what they choose, what they compare, and what is not testable."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from probelib import facts
from probelib.zplke import artifacts


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def verdicts(artifact) -> dict[str, list[str]]:
    return artifact.claims.groupby("key")["verdict"].agg(list).to_dict()


def answers(rights: dict[tuple[str, str], str], some) -> pd.DataFrame:
    """``measures.answers_of_inputs``: (estimator, context) -> right (1) or wrong (0) per fact."""
    rows = [
        (fact, estimator, context, "zp" if estimator == "zero-prompt" else "cloze", value == "1")
        for (estimator, context), values in rights.items()
        for fact, value in zip(some.facts["fact"], values, strict=True)
    ]
    frame = pd.DataFrame(rows, columns=["fact", "estimator", "context", "role", "right"])
    return frame.assign(text="input " + frame["context"], output=" 1901.")


@pytest.mark.parametrize(("model", "testable"), [("atlas-neox-5m", False), ("gpt2", True)])
def test_what_a_model_cannot_show_is_not_testable(model, testable):
    """Sixty facts; incorrect pairs lose 20. The shipped models do not read the pairs of a list."""
    some = facts.load(relations=["P569"], n_facts=60)
    rights = {("prompted", "2 correct"): "1" * 60, ("prompted", "2 incorrect"): "1" * 60}
    rights |= {("zero-prompt", "1 correct"): "1" * 50 + "0" * 10}
    rights |= {
        ("zero-prompt", "4 correct"): "1" * 60,
        ("zero-prompt", "4 incorrect"): "1" * 40 + "0" * 20,
    }
    rows = answers(rights, some)
    artifact = artifacts.table1(rows, facts.pick(some, some.facts["fact"].head(1)), model)
    found = verdicts(artifact)
    assert found["lists"] == ["shown", "shown" if testable else "not testable here"]
    assert found["prompts"] == ["shown"]  # at most 6 % lost, by the interval
    assert artifact.frame["right of 60"].tolist() == [60, 60, 50, 60, 40]


def measured_pairs() -> pd.DataFrame:
    """A base that knows 6 of 10 facts in each of five relations, and a tuned one that knows 3."""
    known = {"a-2m": 6, "a-1m": 3, "a-2m-it": 3}
    rows = [(m, f"P{r}", f"{r}-{f}", 0, f < n) for m, n in known.items()
            for r in range(5) for f in range(10 - (r == 0))]  # fmt: skip
    return pd.DataFrame(rows, columns=["model", "relation", "fact", "seed", "correct"])


def test_smallest_and_largest_of_a_family_and_pairs_with_their_base():
    measured = measured_pairs()
    described = pd.DataFrame({"model": ["a-2m", "a-1m", "b-1m"], "parameters": [20, 10, 5]})
    matrix = pd.DataFrame(index=["a-2m", "a-1m", "b-1m"])
    table = artifacts.table2(measured, matrix, described)
    assert table.frame[["smallest", "largest", "eta"]].values.tolist() == [["a-1m", "a-2m", 1.0]]
    assert verdicts(table) == {
        "lacks": ["no interval"],
        "shares": ["shown"],
    }  # one draw: no ceiling
    assert artifacts.table2(measured, matrix.iloc[[2]], described).frame.empty
    tuned = artifacts.table11(measured, {"a-2m-it": "a-2m", "z-it": ""}).frame.iloc[0]
    assert (tuned["base"], tuned["eta"]) == ("a-2m", 1) and tuned["accuracy"] > tuned[
        "accuracy of it"
    ]
    assert tuned["p (Holm)"] == pytest.approx(2 / 2**15)
    figure = artifacts.figure9(measured, {"a-2m-it": "a-2m"})
    assert figure.frame["difference"].tolist() == pytest.approx([-0.30667], abs=1e-5)
    assert verdicts(figure) == {"lower": ["shown"]}
    assert artifacts.figure9(measured, {"z-it": ""}).frame.empty
