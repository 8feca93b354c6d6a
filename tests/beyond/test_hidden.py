"""The probe: it finds a truth that is there, and held-out facts keep it from learning answers by heart."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from probelib.beyond import hidden


def test_pairs_by_hand():
    scores = pd.DataFrame({"fact": list("aaabb"), "right": [1, 0, 0, 1, 0], "score": [3.0, 1.0, 2.0, 0.0, 1.0]})
    found = hidden.pairs_in_order(scores.astype({"right": bool}))
    assert found["K"].tolist() == [1.0, 0.0] and found["K*"].tolist() == [1.0, 0.0]


def test_a_truth_in_the_states_is_found_on_held_out_facts():
    draw = np.random.default_rng(0)
    right = np.arange(200) % 2 == 0
    states = draw.normal(size=(200, 8))
    states[:, 0] += 4 * right
    score = hidden.probe_scores(states, states, right, np.arange(200) // 2)
    assert (score[right] > score[~right]).mean() > 0.9


def test_what_belongs_to_a_unit_alone_does_not_leak():
    """Each fact has a state of its own and a random label: a probe fitted on the fact knows it, one that is not does not."""
    draw = np.random.default_rng(1)
    unit = np.repeat(np.arange(60), 4)
    states, label = draw.normal(size=(60, 50))[unit], (draw.random(60) < 0.5)[unit]
    held, leaked = (hidden.probe_scores(states, states, label, by) for by in (unit, np.arange(240)))
    right = lambda score: ((score > 0) == label).mean()
    assert right(leaked) > 0.8 and right(held) < 0.7


def test_the_score_of_other_states_uses_the_same_folds():
    draw = np.random.default_rng(2)
    right, states = np.arange(80) % 2 == 0, draw.normal(size=(80, 4)) + np.arange(80)[:, None] % 2
    assert np.allclose(hidden.probe_scores(states, states, right, np.arange(80)),
                       hidden.probe_scores(states, states.copy(), right, np.arange(80)))  # fmt: skip


def scored(probe: float, unknown: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Facts w0 to w5 taught 8 times with wrong answers, r taught 8 times with a right one, o taught 64 times, n never."""
    facts = [*(f"w{i}" for i in range(6)), "r", "o", "n"]
    likely = dict.fromkeys(facts, 0.2) | {"r": 1.0, "o": 1.0}
    noise = dict(zip(facts, np.linspace(-0.1, 0.1, len(facts)), strict=True))
    rows = [("m", hidden.LIKELY, f, likely[f]) for f in facts] + [("m", hidden.OBJECT, f, unknown) for f in facts]
    rows += [("m", hidden.PROBE, f, probe + noise[f]) for f in facts]
    table = pd.DataFrame(rows, columns=["model", "scorer", "fact", "K"])
    table["K*"] = (table["K"] == 1).astype(float)
    return table, pd.DataFrame({"model": "m", "fact": facts, "exposures": [8] * 7 + [64, 0]})


def test_facts_by_how_often_they_were_taught():
    rows = hidden.by_teaching(*scored(0.8, 0.5))
    few, wrong = "taught 2 to 16 times", "taught 2 to 16 times, answer wrong"
    likely = rows[rows["scorer"] == hidden.LIKELY]["facts"].value_counts().to_dict()
    assert likely == {few: 7, wrong: 6, "never taught": 1, "taught 32 times or more": 1}


def test_the_finding_follows_the_interval():
    artifact = hidden.hidden_knowledge(*scored(0.8, 0.5))
    known, labels = artifact.finding, [tick.get_text() for tick in artifact.figure.axes[0].get_xticklabels()]
    assert [label.rsplit("\n", 1)[1] for label in labels] == ["n = 1", "n = 7", "n = 6", "n = 1"]
    assert known.endswith("So the states hold knowledge of these facts that the answers do not show.")
    assert "put these shares of the pairs in order: 76.2% and 50.0% in m (n = 6 facts). Over the 6 facts" in known
    assert known.startswith(
        "On facts taught 2 to 16 times (n = 7, mean over models), log-probability puts 31.4% [20.0%,"
    )
    assert artifact.caption.startswith("m, one panel each.")
    assert "So no hidden knowledge is found" in hidden.hidden_knowledge(*scored(0.5, 0.5)).finding
    table, design = scored(0.8, 0.5)
    assert "Too few" in hidden.hidden_knowledge(table, design.assign(exposures=[64] * 8 + [0])).finding
    plt.close("all")


def test_the_shares_of_each_model_are_those_of_the_picture():
    """Model k answers w3, w4 and w5 rightly, and its probe orders every pair of the others: m has six wrong facts, k three."""
    table, design = scored(0.8, 0.5)
    second = table.assign(model="k")
    right = second["fact"].isin(["w3", "w4", "w5"]) & (second["scorer"] == hidden.LIKELY)
    second.loc[right, ["K", "K*"]] = 1.0
    second.loc[second["scorer"] == hidden.PROBE, "K"] = 1.0
    artifact = hidden.hidden_knowledge(pd.concat([table, second]), pd.concat([design, design.assign(model="k")]))
    shown = artifact.frame.query("facts == 'taught 2 to 16 times, answer wrong'").set_index(["model", "scorer"])
    assert shown.loc[("k", hidden.PROBE), ["n", "K"]].tolist() == [3, 1.0] and shown.loc[("m", hidden.PROBE), "n"] == 6
    assert (
        "76.2% and 50.0% in m (n = 6 facts); 100.0% and 50.0% in k (n = 3 facts). Over the 6 facts" in artifact.finding
    )
    by_hand = 100 * np.mean([(0.7 + 1) / 2, (0.725 + 1) / 2, (0.75 + 1) / 2, 0.775, 0.8, 0.825]) - 50
    assert f"the difference is {by_hand:+.1f} percentage points [" in artifact.finding
    plt.close("all")
