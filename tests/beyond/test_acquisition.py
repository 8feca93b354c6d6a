"""Seen first, forgotten, effectivity: three checkpoints, by hand."""

import pandas as pd
import pytest

from probelib import stats
from probelib.beyond import acquisition

ORDER = ["m-at10", "m-at50", "m"]
DOSE = {"a": [1, 8, 32], "b": [1, 16, 16], "n": [0, 0, 0], "o": [0, 0, 0]}
VALUE = {"a": [0.0, 5.0, 6.0], "b": [5.0, 5.0, 0.0], "n": [1.0, 1.0, 1.0], "o": [0.0, 0.0, 0.0]}


def frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    rows = [(model, fact, i) for i, model in enumerate(ORDER) for fact in DOSE]
    design = pd.DataFrame([(m, "g", f, "P", DOSE[f][i]) for m, f, i in rows], columns=acquisition.c.DESIGN)
    values = pd.DataFrame([(m, f, "x", VALUE[f][i]) for m, f, i in rows], columns=["model", "fact", "measure", "value"])
    return values, design


def test_by_hand():
    """a is seen from the second on; b at once, and is forgotten at the last. Rises per new exposure: a 5/7, 1/24; b 0/15."""
    values, design = frames()
    found = acquisition.along(acquisition.seen_facts(values, design), ORDER).iloc[0]
    assert (found["facts"], found["seen"], found["first seen"], found["forgotten"]) == (2, 0.5, 2.0, 0.5)
    assert found["effectivity"] == pytest.approx((5 / 7 + 1 / 24 + 0) / 3)
    assert found["ever seen"] == 2 and (found["forgotten low"], found["forgotten high"]) == stats.wilson(1, 2)
    only_b, only_a = 0, (5 / 7 + 1 / 24) / 2  # the two extreme bootstrap samples
    assert (found["effectivity low"], found["effectivity high"]) == pytest.approx((only_b, only_a))


def test_a_fact_that_is_never_seen_has_no_first_checkpoint():
    values, design = frames()
    found = acquisition.along(acquisition.seen_facts(values.assign(value=0.0), design), ORDER).iloc[0]
    assert found["seen"] == 0 and pd.isna(found["first seen"]) and pd.isna(found["forgotten"])


def test_the_pairs_are_the_same_at_every_checkpoint():
    """a and b against n and o. First: a ties with o and is below n, b is above both: 2.5 of 4. Second: 4. Last: a 2, b 0.5."""
    values, design = frames()
    curves = acquisition.along_pairs(values, design, ORDER, ["x"], 0)
    assert curves["pairs"].tolist() == [4, 4, 4] and curves["concordance"].tolist() == [0.625, 1.0, 0.625]
    shares = acquisition.shares_seen(values, design, ORDER, "x").set_index(["exposures", "checkpoint"])["share"]
    assert shares["9-32"].tolist() == [0.5, 1.0, 0.5] and "33 and more" not in shares


def test_the_finding_names_the_order_in_which_measures_leave_one_half():
    rows = [("A", "m-at10", 0.7, 0.4), ("A", "m", 0.9, 0.8), ("B", "m-at10", 0.8, 0.6), ("B", "m", 0.7, 0.6)]
    rows += [("C", "m-at10", 0.5, 0.4), ("C", "m", 0.6, 0.5)]
    curves = pd.DataFrame(rows, columns=["measure", "checkpoint", "concordance", "low"])
    assert acquisition.acquisition_finding(curves, ["m-at10", "m"]) == (
        "The interval lies above one half for the first time: B from 10 % on; A from 100 % on; never: C. At the last checkpoint "
        "the shares of pairs in order go from 60.0% (C) to 90.0% (A)."
    )


def test_the_artifacts_say_what_they_show():
    import matplotlib.pyplot as plt

    values, design = frames()
    artifact = acquisition.acquisition(values, design, ORDER, ["x"])
    assert "62.5% (x)" in artifact.finding and set(artifact.frame["panel"]) == {"concordance", "seen"}
    assert "fact taught 16 times or more" in artifact.caption and "(9-32: n = 2 facts)" in artifact.caption
    often = design.assign(exposures=design["exposures"].replace(16, 64))
    assert "fact taught 32 times or more" in acquisition.acquisition(values, often, ORDER, ["x"]).caption
    seen = acquisition.seen_facts(values, design)
    made = acquisition.first_seen(acquisition.along(seen, ORDER), ORDER, seen)
    assert "x is the first: from checkpoint 2.00 [no interval] of 3 on" in made.finding
    assert made.shown["seen"][0] == "0.50 [0.09, 0.91]"
    assert "the n = 2 taught facts (every fact with an exposure; taught 16 to 32 times by the last" in made.caption
    plt.close("all")


def test_a_measure_that_sees_less_than_half_is_not_said_to_see_first():
    """Noise sees two facts of forty, both early; Late sees the facts of Early two checkpoints after it."""
    rows = [("Noise", f, m, float(f < 2)) for f in range(40) for m in ORDER]
    rows += [("Early", f, m, float(f < 30 and (m != "m-at10" or f > 20))) for f in range(40) for m in ORDER]
    rows += [("Late", f, m, float(f < 30 and m == "m")) for f in range(40) for m in ORDER]
    seen = pd.DataFrame(rows, columns=["measure", "fact", "model", "seen"]).assign(value=0.0, exposures=1)
    table = acquisition.along(seen, ORDER)
    assert table["measure"].tolist() == ["Early", "Late", "Noise"] and table["first seen"].tolist() == [1.7, 3.0, 1.0]
    assert table["later"].tolist()[1] == pytest.approx(1.3) and table["later"].isna().tolist() == [True, False, True]
    made = acquisition.first_seen(table, ORDER, seen)
    finding = made.finding
    assert made.shown["later"][0] == "–" and made.shown["later"][1].startswith("1.30 [")
    assert finding.startswith(
        "Of the 2 measures (of 3) that see at least half of the facts at the end, Early is the first"
    )
    assert "1 of the 1 others are later, by 1.30 to 1.30 checkpoints; not significantly later: none." in finding
    none = acquisition.first_seen(table[2:], ORDER, seen).finding
    assert none == "No measure sees half of the facts at the last checkpoint, so none of 1 is called the first."
