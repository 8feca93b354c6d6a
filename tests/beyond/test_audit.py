"""The audit: enough claims, each with its source; every claim that is said not to hold is
recomputed here from the printed tables."""

import numpy as np
import pytest
import scipy

from probelib import published, stats
from probelib.beyond import audit
from probelib.errors import ProbeError


@pytest.fixture(scope="module")
def claims():
    return audit.table()


def test_every_claim_has_its_place_and_a_verdict(claims):
    assert claims["paper"].unique().tolist() == ["monitor", "zplke", "distractors", "grapheval"]
    assert claims["verdict"].value_counts()[list(audit.LOOKS)].tolist() == [47, 28, 20, 18]
    filled = claims[audit.COLUMNS].map(lambda text: isinstance(text, str) and text != "")
    assert filled.all(axis=None)
    assert not claims.duplicated(["paper", "where", "claim"]).any()


printed = published.table


def by(name: str, key: str, column: str):
    return printed(name).set_index(key)[column]


def curve(figure: str):
    rows = printed("distractors/figures").query("figure == @figure")
    return rows.pivot(index="x", columns="series", values="y")


def monitor_of_relations():
    """Sum of MONITOR over the 20 relations of table 10 by the mean of table 4, per model."""
    total = printed("monitor/table10").groupby("model")["MONITOR"].sum()
    return total / by("monitor/table4", "model", "MONITOR")[total.index]


def bounds_of_accuracy():
    """Models whose highest and lowest accuracy of table 5 is beyond the one of table 4."""
    t5 = printed("monitor/table5").groupby("model_key")["avg_acc"].agg(["max", "min"])
    t4 = printed("monitor/table4").set_index("model_key").loc[t5.index]
    return int((t5["max"] > t4["max_acc"]).sum()), int((t5["min"] < t4["min_acc"]).sum())


def whole_counts(values, n: int, within: float) -> int:
    counts = values * n
    return int(((counts - counts.round()).abs() < within).sum())


def largest_gap_of_table2() -> float:
    t2 = printed("zplke/table2").replace({"family": {"Llama-2": "Llama2"}})
    known, ends = by("zplke/table8", "model", "avg_accuracy"), ("smallest", "largest")
    names = {end: t2["family"] + "-" + t2[f"{end}_params"].str.upper() for end in ends}
    return max(np.abs(t2[f"{e}_accuracy"] - known[names[e]].to_numpy()).max() for e in ends)


def largest_gap_of_table11() -> float:
    t11 = printed("zplke/table11")
    names = t11["base_model"].replace({"Mixtral-7Bx8": "Mixtral-8x7B"})
    known = names.map(by("zplke/table8", "model", "avg_accuracy"))
    return (t11["base_accuracy"] - known).abs().max()


def gap_of_tuned(first: str, second: str) -> float:
    known = by("zplke/table8", "_table7_simplified_name", "avg_accuracy")
    rows = printed("zplke/table11").query("base_model in ('Llama2-7B', 'Llama2-13B')")
    names = rows["base_model"] + "-" + rows["ft_type"].map({"FT-1": first, "FT-2": second})
    return (rows["ft_accuracy"] - names.map(known)).abs().mean()


def equal_cells() -> int:
    t = printed("distractors/table9").set_index("strategy")
    t = t[["agg", "num_distractors", "fold", "tau_test"]]
    pair = [t.loc[name].reset_index(drop=True) for name in ("Sem", "Temp+Sem")]
    return int((pair[0] == pair[1]).to_numpy().sum())


def above_table3() -> dict:
    t3 = by("distractors/table3", "measure", "mean_tau").rename({"BERT-score": "BERT-Score"})
    off = (curve("fig4").loc[5.0] - t3).dropna()
    return off[off > 0.01].round(3).to_dict()


def p_of_spread() -> float:
    t = printed("monitor/table6")
    return scipy.stats.pearsonr(t["MONITOR"], t["std"]).pvalue


def graph(column: str) -> int:
    return int(printed("grapheval/table1")[column].iloc[0])


TRIPLES, ENTITIES = graph("triples"), graph("entities")
FIG3, FIG5, FIG6, FIG8 = (curve(f"fig{n}") for n in ("3", "5", "6_pct", "8"))
RECOMPUTED = {  # beginning of a claim that does not hold -> numbers of its cell
    "MONITOR and the spread of accuracy are correlated: p": lambda: [p_of_spread()],
    "MONITOR is the mean": lambda: monitor_of_relations().round(2).agg(["min", "max"]),
    "max and min are over": bounds_of_accuracy,
    "base accuracy is over the 969": lambda: [
        whole_counts(by("monitor/table6", "model", "base_acc") / 100, 969, 0.005)
    ],
    "relation accuracies are averages over all 49": lambda: [
        whole_counts(printed("zplke/table9")["avg_accuracy"], 400 * n, 1e-4) for n in (35, 49)
    ],
    "both report the same accuracies": lambda: [largest_gap_of_table2()],
    "both report the same accuracies of base": lambda: [largest_gap_of_table11()],
    "FT1 and FT2 mean the same": lambda: [gap_of_tuned("FT1", "FT2"), gap_of_tuned("FT2", "FT1")],
    "Falcon-instruct-7B": lambda: [scipy.stats.binomtest(121, 20000, 0.01).pvalue],
    "three human-written": lambda: printed("zplke/table6")[["hgp", "mmp"]].notna().sum(),
    "Sem was evaluated": lambda: [equal_cells()],
    "no blunder in 77": lambda: [100 * stats.wilson(0, 77)[1]],
    "the log-linear fit": lambda: [stats.pearson(np.log(FIG8.index), FIG8["Avg@20"])["r"] ** 2],
    "Random and Temp+Sem have": lambda: FIG3[["Random", "Temp+Sem"]].idxmax(),
    "decoding measures profit most": lambda: [FIG6.loc[5.0, "Dist. ApprOpt"]],
    "the figures are cross-validated": above_table3,
    "Precision@n gains nothing": lambda: [precision_gain()],
    "every curve is a mean over S": lambda: (FIG5.loc[29.0] - FIG5.loc[28.0]).dropna(),
    "average degree": lambda: [2 * TRIPLES / ENTITIES],
    "density": lambda: [TRIPLES / (ENTITIES * (ENTITIES - 1))],
}


def precision_gain() -> float:
    t = curve("fig4")["Precision@n"]
    return 100 * ((t[5.0] + 1) / (t[1.0] + 1) - 1)


def test_what_does_not_hold_is_recomputed(claims):
    failing = claims[claims["verdict"] == audit.FAILS].set_index("claim")["recomputed"]
    named = {max((n for n in RECOMPUTED if c.startswith(n)), key=len): c for c in failing.index}
    assert set(named) == set(RECOMPUTED) and len(failing) == len(named)
    for name, compute in RECOMPUTED.items():
        found = compute()
        for number in found.values() if isinstance(found, dict) else found:
            assert f"{number:.4g}" in failing[named[name]], (name, number)


def test_papers_are_chosen_by_name():
    assert set(audit.table(["zplke"])["paper"]) == {"zplke"}
    for wrong, message in ((["monitr"], "did you mean monitor"), ("monitor", "a list of texts")):
        with pytest.raises(ProbeError, match=message):
            audit.table(wrong)
