"""What the artifacts claim: verdicts, the published counts, what cannot be tested."""

import pandas as pd
import pytest

from probelib import published, report, stats
from probelib.distractors import artifacts


def outcomes(*rows) -> pd.DataFrame:
    names = [(f"f{i}", f"c{i}") for i in range(len(rows))]
    index = pd.MultiIndex.from_tuples(names, names=["fact", "prompt"])
    return pd.DataFrame(rows, index=index, columns=range(1, len(rows[0]) + 1))


def verdicts(artifact: report.Artifact) -> dict:
    return {(r.key, r.case): (round(r.value, 3), r.verdict) for r in artifact.claims.itertuples()}


EASY, HARD = outcomes(*[[1, 1]] * 8), outcomes(*[[0, 0]] * 5, *[[1, 0]] * 3)


def test_former_objects_count_where_they_were_read():
    """Temp+Sem is harder for f0 to f4; these and f5 were taught their former object."""
    own = {"random": EASY, "sem": EASY, "temp_sem": HARD, "appropt": HARD}
    former = pd.Series([4] * 6 + [0, 0], [f"f{i}" for i in range(8)])
    made = artifacts.figure2(own, former)
    assert verdicts(made)["former", ""] == (-0.625, "shown")
    assert verdicts(made)["stated", ""] == (-0.833, "shown")
    sizes = made.frame.set_index("strategy")["facts"]
    assert sizes["Sem"].tolist() == [8, 8] and sizes["Sem, former object stated"].tolist() == [6, 6]
    assert set(artifacts.figure2(own).claims["key"]) == {"former"}


@pytest.mark.parametrize(
    ("last", "gain", "expected"),
    [(15, 0.0, "not testable here"), (40, -0.05, "shown"), (40, 0.05, "reversed")],
)
def test_whether_fifteen_distractors_suffice(last, gain, expected):
    """``gain``: tau at the last n minus tau at 15, give or take .01. The level is .01."""
    rows = [(s, n) for s in ("Random", "Temp+Sem", "ApprOpt") for n in (1, 15, last)]
    table = pd.DataFrame(rows, columns=["strategy", "n"]).drop_duplicates()
    table = table.assign(tau=0.5, facts=9, **{"tau low": 0.4, "tau high": 0.6, "to last": gain})
    table = table.assign(**{"to last low": gain - 0.01, "to last high": gain + 0.01})
    assert verdicts(artifacts.figure3(table))["enough", ""][1] == expected


def test_models_of_one_size_say_what_the_fit_needs(monkeypatch):
    monkeypatch.setitem(EASY.attrs, "parameters", 7)
    assert "needs" in artifacts.figure8({"ApprOpt": {"a": EASY, "a@4bit": EASY}}).shown


def test_tables_5_and_6_are_the_papers_but_for_one_interval():
    """The interval of no blunders is wider than theirs, which is that of 152 sentences."""
    counts, n = artifacts.count_errors()
    tables = artifacts.table5(counts, n), artifacts.table6(counts, n)
    ours = [t.frame[["percent", "percent low", "percent high"]].round(1) for t in tables]
    columns = ["proportion_pct", "wilson_lo_pct", "wilson_hi_pct"]
    theirs = [published.table(t.name)[columns].abs().to_numpy() for t in tables]
    assert ours[0].to_numpy() == pytest.approx(theirs[0])
    assert ours[1].to_numpy()[[0, 2]] == pytest.approx(theirs[1][[0, 2]])
    assert (ours[1].loc[1].tolist(), theirs[1][1].tolist()) == ([0, 0, 4.8], [0, 0, 2.5])
    assert 100 * stats.wilson(0, 152)[1] == pytest.approx(2.46, abs=0.01)
