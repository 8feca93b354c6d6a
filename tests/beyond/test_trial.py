"""The trial: pairs and concordance by hand, recomputed by loops, and what cannot win."""

import numpy as np
import pandas as pd
import pytest

from probelib import paths, stats
from probelib.beyond import artifacts
from probelib.beyond import trial as t

ARMS = {"rising": [0, 2, 8, 32], "fine": [0, 1, 4, 16], "constant": [8] * 4}


def square(facts: int = 4, groups: tuple = ("small",)) -> pd.DataFrame:
    """A trial of one relation per four facts of a kind: the arms turn over four sisters."""
    rows = []
    for group in groups:
        for sister in range(4):
            for i in range(facts):
                for kind, doses in ARMS.items():
                    arm = (i + sister) % 4
                    key = (f"{group}-{sister}", group, sister, f"{kind}{i}", f"P{i // 4}")
                    rows.append((*key, kind, arm, doses[arm], True))
                arm = (i + sister) % 4
                key = (f"{group}-{sister}", group, sister, f"contested{i}", f"P{i // 4}")
                rows.append((*key, "contested", arm, (8, 8, 64, 64)[arm], arm % 2 == 0))
    return pd.DataFrame(rows, columns=t.DESIGN)


def long(design: pd.DataFrame, **measures) -> pd.DataFrame:
    """Long values: one list per measure, in the order of the design."""
    rows = design[["model", "fact"]]
    parts = [rows.assign(measure=name, value=list(v)) for name, v in measures.items()]
    return pd.concat(parts, ignore_index=True).astype({"value": float})


def test_the_contrasts_of_a_latin_square():
    """Every fact has each of its arms in one sister: one pair per fact and contrast, but two facts
    of one relation in one model pair with all others."""
    design = square(4)
    found = t.contrasts(design)
    assert list(found)[0] == "8 against 0" and len(found["8 against 0"]) == 4
    assert {name: len(pairs) for name, pairs in found.items()} == {
        "8 against 0": 4, "1 against 0": 4, "2 against 0": 4, "4 against 0": 4, "16 against 0": 4,
        "32 against 0": 4, "16 against 4": 4, "right against wrong": 8, t.ONE_MODEL: 4,
    }  # fmt: skip
    for pairs in found.values():
        high, low = (design.iloc[pairs[side]].reset_index(drop=True) for side in pairs)
        more = (high["dose"] > low["dose"]) | (high["right"] & ~low["right"])
        assert more.all() and (high["relation"] == low["relation"]).all()
    high, low = (design.iloc[t.placebo_pairs(design)[side]] for side in ("higher", "lower"))
    assert len(high) == 4 * 6 and (high["dose"].to_numpy() == low["dose"].to_numpy()).all()


def test_a_measure_that_follows_the_dose_wins_and_one_that_follows_the_sister_does_not():
    design = square(8, ("small", "large"))
    values = long(design, dose=design["dose"], sister=design["corpus"])
    found = t.rank(values, design, t.contrasts(design)["8 against 0"], times=50).set_index(
        "measure"
    )
    assert found.loc["dose", "concordance"] == 1 and found.loc["sister", "concordance"] == 0.5
    assert found.loc["dose", "yes or no"] == 1 and found.loc["dose", "rank high"] < 2
    assert found.loc["sister", "behind"] == -0.5 and np.isnan(found.loc["dose", "behind"])
    noise = t.placebo(values, design, times=20).set_index("measure")
    assert (noise.loc["sister", ["lowest", "highest"]] == [0, 1]).all(), "a level of each sister"
    assert (noise.loc["dose", ["placebo", "lowest", "highest"]] == 0.5).all()


def test_ties_count_half_and_missing_values_not_at_all():
    design = square(4)
    pairs = t.contrasts(design)["8 against 0"]
    value = np.zeros(len(design))
    value[pairs["higher"][:2]] = 1
    value[pairs["higher"][3]] = np.nan
    [row] = t.rank(long(design, m=value).dropna(), design, pairs, times=5).to_dict("records")
    assert row["pairs"] == 3 and row["concordance"] == pytest.approx((1 + 1 + 0.5) / 3)


def test_an_independent_recomputation_with_loops_agrees():
    design = square(8, ("small", "large"))
    draw = np.random.default_rng(1)
    fine = np.log1p(design["dose"]) + draw.normal(0, 2, len(design))
    value = dict(zip(zip(design["model"], design["fact"], strict=True), fine, strict=True))
    rows = list(design.itertuples(index=False))
    won = [
        float(value[a.model, a.fact] > value[b.model, b.fact])
        for a in rows for b in rows
        if (a.kind, b.kind, a.dose, b.dose) == ("rising", "rising", 8, 0)
        and a.model == b.model and a.relation == b.relation
    ]  # fmt: skip
    found = t.rank(long(design, m=fine), design, t.contrasts(design)[t.ONE_MODEL], times=5)
    assert found["pairs"][0] == len(won) and found["concordance"][0] == pytest.approx(np.mean(won))


def test_levels_win_nothing_as_yes_or_no():
    """A fine measure and the same cut at its best place separate alike; the cut is found on other
    facts, so noise is not fitted: pure noise stays at one half."""
    design = square(40)
    draw, dose = np.random.default_rng(2), design["dose"].to_numpy()
    fine = (dose >= 8) + draw.normal(0, 0.1, len(dose))
    values = long(design, fine=fine, cut=fine > 0.5, noise=draw.normal(size=len(dose)))
    pairs = t.contrasts(design)["8 against 0"]
    found = t.rank(values, design, pairs, times=50).set_index("measure")
    assert found.loc["fine", "yes or no"] == found.loc["cut", "yes or no"] > 0.95
    assert abs(found.loc["noise", "yes or no"] - 0.5) < 0.1


def test_replicates_are_those_of_a_resampled_design(monkeypatch):
    """One relation and one corpus: facts alone are drawn, as many times as the weights say."""
    rows = [
        ("m", "g", "c", f"f{i}", "P", "", 0, dose, True) for i, dose in enumerate([0, 0, 64, 64])
    ]
    design = pd.DataFrame(rows, columns=t.DESIGN)
    value = np.array([0.1, 0.4, 0.3, 0.9])
    pairs = t.contrasts(design)[t.ONE_MODEL]
    found = t.resampled(t.ordered(value[:, None], pairs), design, pairs, 20, seed=3).ravel()
    for replicate, weight in zip(found, stats.resample_counts(4, 20, 4).astype(int), strict=True):
        again = np.repeat(np.arange(4), weight)
        if len(set(again // 2)) == 2:
            assert replicate == pytest.approx(stats.auc(value[again], again >= 2))
        else:
            assert np.isnan(replicate)


def test_what_a_measure_adds_to_controls():
    design = square(40, ("small", "large"))
    draw, dose = np.random.default_rng(4), np.log1p(design["dose"])
    values = long(
        design,
        control=dose + draw.normal(0, 3, len(dose)),
        other=dose + draw.normal(0, 3, len(dose)),
    )
    copy = values[values["measure"] == "control"].assign(measure="copy")
    values, pairs = pd.concat([values, copy]), t.contrasts(design)["8 against 0"]
    found = t.added(values, design, pairs, ["control"]).set_index("measure")["added"]
    assert found["other"] > 0.03 and abs(found["copy"]) < 0.02


def test_seeds_spread_where_they_disagree_and_corpora_where_sisters_do():
    """A second training on the first corpus that knows the opposite; all sisters know the same."""
    design = square(8)
    again = design[design["model"] == "small-0"].assign(model="again", group="again")
    design = pd.concat([design, again], ignore_index=True)
    sign = np.where(design["model"] == "again", -1, 1)
    values = long(design, dose=sign * design["dose"], same=design["dose"])
    found = t.spread(values, design, ["small-0", "again"]).set_index("measure")
    assert found["one model"].tolist() == [1, 1] and found["sd of corpora"].tolist() == [0, 0]
    assert found.loc["dose", "sd of seeds"] == pytest.approx(np.std([1, 0], ddof=1))
    assert found.loc["same", ["sd of seeds", "lowest", "highest"]].tolist() == [0, 0.5, 0.5]
    assert found.loc["dose", "lowest"] < 0.1 and found.loc["dose", "highest"] > 0.9


def test_a_change_is_paired():
    design = square(4)
    pairs = t.contrasts(design)["8 against 0"]
    before, after = design["dose"].to_numpy(float), design["dose"].to_numpy(float)
    after[pairs["higher"][0]] = -1
    found = t.change(long(design, m=before), long(design, m=after), design, pairs).iloc[0]
    assert (found["before"], found["after"], found["change"]) == (1, 0.75, -0.25)
    assert found["n"] == 8 and found["mean change"] == pytest.approx(-9 / 8)


def test_a_design_without_pairs_says_what_to_do():
    design = square(4).query("dose == 8")
    with pytest.raises(t.ProbeError, match="Take more facts"):
        t.contrasts(design[design["right"]])


def test_the_difference_of_two_groups_by_hand():
    rows = pd.DataFrame({"fact": list("abcdef"), "value": [0.0, 0, 1, 1, 1, 1]})
    rows = rows.assign(model="m", measure="x")
    found = t.difference(rows, pd.Index(["a", "b"]), pd.Index(["c", "d", "e"])).iloc[0]
    assert found[["one", "other", "difference", "n one"]].tolist() == [0, 1, -1, 2]


NAMED = ["PMI", "Log-probability", "Probability", "ZP probability", "Primary anchor", "KaRR"]
NAMED += ["Avg@n ApprOpt", "Avg@n Random", "Min@n ApprOpt", "MONITOR", "ZP choice", "Familiarity"]
BEDS = {"0.6M": "study", "1.2M": "larger", "SmolLM2": "taught"}


def test_the_results_in_the_plan_are_those_of_the_profiles():
    files = {b: paths.ROOT / f"figures/{own}/beyond/ground_truth.csv" for b, own in BEDS.items()}
    of = {b: pd.read_csv(f).set_index(["contrast", "measure"])[t.SHARE] for b, f in files.items()}
    shown = [("8 against 0", b) for b in of] + [("right against wrong", b) for b in [*of][::2]]
    lines = [["measure", *map(", ".join, shown)], ["---"] * 6]
    cell = "{:.2f} [{:.2f}, {:.2f}]".format
    rows = lambda name: [name, *(cell(*of[b].loc[(c, name)]) for c, b in shown)]
    lines += map(rows, [*NAMED, "Object prior"])
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    text = (paths.PACKAGE / "beyond" / "trial.md").read_text(encoding="utf-8")
    assert table in text, table
    inside, tied = [], []
    for file in [*files.values()][:2]:  # of the organisms
        own, noise = pd.read_csv(file), pd.read_csv(file.with_name("placebo.csv"))
        own = own[own["contrast"].eq("8 against 0") & ~own["control"]].set_index("measure")
        share = own["concordance"] <= noise.set_index("measure")["highest"].loc[own.index]
        inside.append(f"{share.sum()} of {len(own)}")
        tied.append((own["behind high"] >= 0).sum())
    assert f"{inside[0]} measures at 0.6M and {inside[1]} at 1.2M" in text
    assert tied == [14, 8] and "ties with fourteen others at 0.6M and with eight at 1.2M" in text


@pytest.mark.parametrize(("bed", "missed"), [("0.6M", False), ("SmolLM2", True)])
def test_where_a_control_beats_chance_the_primary_contrast_shows_nothing(bed, missed):
    ranked = pd.read_csv(paths.ROOT / f"figures/{BEDS[bed]}/beyond/ground_truth.csv")
    claims = artifacts.ground_truth(ranked.assign(bed=bed)).claims.set_index("key")
    assert (claims.loc["sees", "missed"] == "controls at one half").eq(missed).all()
    assert (claims.loc["wrong", "missed"] == "").all()
