"""The page that the report opens with: read from the artifacts' files, and from nothing else."""

import numpy as np
import pandas as pd
import pytest

from probelib import paths
from probelib.report import summary


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Writes an artifact's numbers where the page looks for them."""
    monkeypatch.setattr(paths, "FIGURES", tmp_path)

    def write(artifact: str, **columns):
        path = tmp_path / "smoke" / f"{artifact}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(columns).to_csv(path, index=False)
        return path

    return write


def test_reported_against_ours_by_hand(made):
    made("grapheval/table3", **{"answers of": ["a", "a", "b", "b"], "f1": [0.25, 0.75, 0.5, 0.25]})
    what, reported, ours, sign = summary.key_numbers("smoke", "grapheval/table3")
    assert what == "largest change of F1 by the states that are read" and ours == 0.5 and sign == ""
    assert reported == pytest.approx(0.022)  # .844 to .866: LLaMA-2-70B's answers
    made("monitor/table4", **{"MONITOR": [1.0, 2.0, 3.0], "avg acc": [3.0, 2.0, 1.0]})
    assert summary.key_numbers("smoke", "monitor/table4")[2:] == (pytest.approx(-1), "same")
    made("monitor/table4", **{"MONITOR": [1.0, 2.0, 3.0], "avg acc": [1.0, 2.0, 3.0]})
    assert summary.key_numbers("smoke", "monitor/table4")[2:] == (pytest.approx(1), "opposite")


def test_facts_per_relation_are_the_papers(made):
    """The paper has 16,167 facts in 20 relations; its released files have 810 per relation."""
    made("monitor/table9", facts=[12, 14])
    assert summary.key_numbers("smoke", "monitor/table9")[1:3] == (pytest.approx(808.35), 13)


def test_informative_is_compared_from_the_smallest_to_the_largest_model(made):
    """In print .550 for LLaMA-2-7B and .007 for 70B; here by the judge, whatever the order of the rows."""
    ways, sizes = ["judge", "own answers"] * 2, [9, 9, 5, 5]
    made("grapheval/table2", informative=[0.25, 0.1, 0.5, 0.6], parameters=sizes, **{"scored by": ways})
    _, reported, ours, sign = summary.key_numbers("smoke", "grapheval/table2")
    assert reported == pytest.approx(-0.543) and ours == -0.25 and sign == "same"


def test_figure_3_compares_the_gold_object_with_itself(made):
    """Not the first bars: after the distractor another object is the most probable one."""
    bars = {"text": ["p", "p", "f", "n", "n"], "gold": [True, False, True, False, True]}
    made("monitor/figure3", **bars, probability=[0.9, 0.1, 0.5, 0.8, 0.2])
    assert summary.key_numbers("smoke", "monitor/figure3")[2:] == (pytest.approx(0.7), "same")


def test_what_cannot_be_compared(made):
    assert summary.key_numbers("smoke", "grapheval/table3") is None  # not made
    made("grapheval/table3", precision=[0.5])  # of another form
    _, reported, ours, _ = summary.key_numbers("smoke", "grapheval/table3")
    assert reported > 0 and np.isnan(ours)
    made("grapheval/figure1", f1=[0.5])  # has no key number
    assert summary.key_numbers("smoke", "grapheval/figure1") is None
    made("grapheval/table3", f1=[]).write_text("\n")  # without a number in it
    assert summary.frame("smoke", "grapheval/table3") is None


@pytest.mark.parametrize("artifact", summary.KEYS)
def test_every_key_reads_what_was_printed(artifact):
    """And what the default profile made, where that is committed."""
    key = summary.KEYS[artifact]
    assert np.isfinite(key.reported(artifact))
    found = summary.key_numbers("atlas", artifact)
    assert found is None or np.isfinite(found[2])


def test_one_sentence_a_notebook(made):
    assert summary.findings("smoke") == {}
    made("beyond/ground_truth", measure=["B", "A", "C"], concordance=[0.6, 0.55, 0.5], low=[0.5, 0.4, 0.4], high=[0.7, 0.6, 0.6],
         pairs=[9, 9, 9], control=[False, False, True], **{"tokens a fact": [1234.4, 5, 1]})  # fmt: skip
    made("beyond/agreement", alike=[0.5, 0.7])
    change = {"precision": ["8bit", "4bit", "4bit"], "measure": ["P", "P", "A"], "difference": [-0.01, -0.05, -0.2]}
    ends = {"low": [-0.02, -0.06, -0.3], "high": [0, -0.04, 0], "p": [float("nan"), float("nan"), 0.04]}
    made("beyond/quantization_change", n=20, **change, **ends)
    made("beyond/audit", verdict=["holds", "holds", "does not hold"])
    truth, agree, change, audit = summary.findings("smoke").values()
    assert truth.startswith("Of 2 measures, B puts most pairs")
    assert "60.0% [50.0%, 70.0%], n = 9 pairs), for 1,234 tokens" in truth
    assert truth.endswith("C, a control that does not test the fact, reaches 50.0%.")
    assert "order 60.0% of the pairs of facts alike" in agree
    assert change == "Quantization to 4bit changes P by -0.050 [-0.060, -0.040] on the same 20 facts."
    assert audit == "Of 3 published claims that were held against the printed tables, 2 hold, 1 do not hold."


def test_measures_that_tie_at_the_top_are_all_named(made):
    """The cheapest first; a measure without pairs is not counted."""
    nan = float("nan")
    made("beyond/ground_truth", measure=["B", "A", "C", "D"], concordance=[1, 1, 0.5, nan], low=[0.701, 0.701, 0.4, nan],
         high=[1, 1, 0.6, nan], pairs=[9, 9, 9, 0], control=[False, False, True, False],
         **{"tokens a fact": [1234.4, 5, 1, 2]})  # fmt: skip
    (truth,) = summary.findings("smoke").values()
    assert truth.startswith("Of 2 measures, A puts most pairs")
    assert "(100.0% [70.1%, 100.0%], n = 9 pairs), for 5 tokens per fact; so do B." in truth


def test_a_sign_that_is_not_significant_is_not_called_the_same(made):
    made("monitor/table6", MONITOR=[0.1, 0.2, 0.3, 0.4], std=[3.0, 1.0, 4.0, 2.0])  # r = 0
    assert summary.key_numbers("smoke", "monitor/table6").sign == "not decided"
    made("monitor/table6", MONITOR=[0.1, 0.2, 0.3, 0.4], std=[1.0, 2.0, 3.1, 4.0])
    assert summary.key_numbers("smoke", "monitor/table6").sign == "same"
