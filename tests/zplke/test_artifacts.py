"""ZP-LKE's artifacts: what they choose, what they compare, and what is not testable."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from probelib.zplke import artifacts


def verdicts(artifact) -> dict[str, list[str]]:
    plt.close("all")
    return artifact.claims.groupby("key")["verdict"].agg(list).to_dict()


def measured_pairs() -> pd.DataFrame:
    """A base that knows 6 of 10 facts in each of five relations, and a tuned one that knows 3."""
    known = {"a-2m": 6, "a-1m": 3, "a-2m-it": 3}
    rows = [(m, f"P{r}", f"{r}-{f}", 0, f < n) for m, n in known.items()
            for r in range(5) for f in range(10 - (r == 0))]  # fmt: skip
    return pd.DataFrame(rows, columns=["model", "relation", "fact", "seed", "correct"])


def test_smallest_and_largest_of_a_family_and_pairs_with_their_base(monkeypatch):
    monkeypatch.setattr("probelib.report.claims.FEWEST", 5)  # relations
    measured = measured_pairs()
    described = pd.DataFrame({"model": ["a-2m", "a-1m", "b-1m"], "parameters": [20, 10, 5]})
    matrix = pd.DataFrame(index=["a-2m", "a-1m", "b-1m"])
    table = artifacts.table2(measured, matrix, described)
    assert table.frame[["smallest", "largest", "eta"]].values.tolist() == [["a-1m", "a-2m", 1.0]]
    assert verdicts(table) == {"lacks": ["no interval"], "shares": ["shown"]}  # no ceiling
    assert artifacts.table2(measured, matrix.iloc[[2]], described).frame.empty
    tuned = artifacts.table11(measured, {"a-2m-it": "a-2m", "z-it": ""}).frame.iloc[0]
    assert (tuned["base"], tuned["eta"]) == ("a-2m", 1)
    assert tuned["accuracy of base"] > tuned["accuracy of tuned"]
    assert tuned["p (Holm)"] == pytest.approx(2 / 2**15)
    figure = artifacts.figure9(measured, {"a-2m-it": "a-2m"})
    assert figure.frame["difference"].tolist() == pytest.approx([-0.30667], abs=1e-5)
    assert verdicts(figure) == {"lower": ["shown"]}
    assert artifacts.figure9(measured, {"z-it": ""}).frame.empty
