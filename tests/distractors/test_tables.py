"""The tables of the Distractors paper: sentences from tables made by hand."""

import numpy as np
import pandas as pd

from probelib.distractors import tables
from probelib.distractors.measures import Calibrations
from probelib.distractors.scores import Sample
from probelib.distractors.settings import DistractorSettings, Study

NAN = np.nan


def agreement(**columns) -> pd.DataFrame:
    table = pd.DataFrame({"measure": ["KaRR", "ROUGE-L", "Dist. ApprOpt"], "low": 0.1, "high": 0.5})
    return table.assign(**{name.replace("p_holm", "p (Holm)"): values for name, values in columns.items()})


def test_the_best_measure_and_those_that_do_not_differ_from_it():
    table = agreement(tau=[0.1, 0.4, NAN], p_holm=[0.3, NAN, 0.01])
    finding = tables.finding3(table)
    assert finding.startswith("**ROUGE-L** agrees best, tau 0.400 [0.100, 0.500]. 1 of 2 other measures")
    assert finding.endswith("KaRR.")
    assert tables.finding3(agreement(tau=[NAN] * 3, p_holm=[NAN] * 3)) == ""


def test_a_measure_without_a_kappa_is_not_ranked():
    """Of four measures one has neither tau nor kappa, one no tau: two are compared with the best by kappa."""
    names = ["KaRR", "Dist. ApprOpt", "ROUGE-L", "Precision@n"]
    numbers = {"tau": [0.5, NAN, 0.7, NAN], "kappa": [0.8, 0.2, 0.4, NAN], "p (Holm)": [NAN, 0.01, 0.5, NAN]}
    table = pd.DataFrame({"measure": names, "levels": 3, "kappa, low": 0.1, "kappa, high": 0.9} | numbers)
    assert "place 3 of 3 by kappa; 1 of the 2 others do not differ" in tables.place_by_kappa(table)
    assert "has no kappa" in tables.place_by_kappa(table, "Precision@n")
    finding = tables.finding4(table)
    assert "By tau **ROUGE-L**" in finding and "by kappa **KaRR** (0.80 [0.10, 0.90])" in finding
    assert tables.finding4(table.assign(kappa=NAN)) == ""


STUDY = Study("m", "ratings: of people", DistractorSettings())


def test_tables_for_print_hold_intervals_in_the_cells_of_their_values():
    table = pd.DataFrame(
        {"measure": ["KaRR"], "tau": 0.5, "low": 0.4, "high": 0.6, "yes": 0.3, "flips": 0.1, "kappa": 0.8}
    )
    table = table.assign(levels=3, n=9, **{"p (Holm)": 0.2, "flips, low": 0.0, "flips, high": 0.2})
    table = table.assign(**{"kappa, low": 0.7, "kappa, high": 0.9})
    row = {"measure": "KaRR", "tau": "0.50 [0.40, 0.60]", "flips": "0.10 [0.00, 0.20]", "kappa": "0.80 [0.70, 0.90]"}
    shown = tables.table4(table, 9, STUDY).shown
    assert shown.iloc[0].to_dict() == row | {"levels": 3, "n": 9, "p (Holm)": 0.2}
    ended = pd.DataFrame(
        {"strategy": ["Sem"], "end": "none", "Min@5": 0.5, "change": 0.1, "low": 0.0, "high": 0.2, "facts": 7}
    )
    ended = tables.endings(ended, STUDY).shown
    assert ended.iloc[0].tolist() == ["Sem", "none", 0.5, "0.100 [0.000, 0.200]", 7]


def test_costs_name_the_machine():
    names = ["Precision@n", "Dist. Random", "Dist. ApprOpt"]
    costs = pd.DataFrame(
        {"measure": names, "tokens": [1.0, 10, 20], "ms": [1.0, 5, 9], "ms, low": 0.5, "ms, high": 9.5}
    )
    made = tables.table1(costs, STUDY, 4, "Chip (2 threads)")
    assert "m on Chip (2 threads): tokens" in made.caption and made.shown["ms per fact"][0] == "1.0 [0.5, 9.5]"
    assert "n = 4 facts" in made.caption and "The judge reads beams of width 5; its row" in made.caption
    assert made.frame["fastest"].tolist() == [0.5] * 3 and "fastest" not in made.shown
    assert set(tables.PROPERTIES) <= set(made.frame) and set(tables.PROPERTIES.values()) <= set(made.shown)


def test_table_9_has_a_column_per_fold():
    rows = [(1, "n=1", 0.1, 0.2, 40, 0), (2, "n=5", 0.1, 0.34, 41, 0)]
    columns = ["fold", "configuration", "training", "tau", "n", "undefined"]
    calibrated = Calibrations({}, np.arange(81.0), 0, {"A": pd.DataFrame(rows, columns=columns)})
    made = tables.table9(calibrated)
    assert made.shown.to_dict("records") == [{"measure": "A", "fold 1": "n=1 (0.20)", "fold 2": "n=5 (0.34)"}]
    assert "40 to 41 facts per fold" in made.caption
    calibrated.chosen["A"]["n"] = 40
    assert "; 40 facts per fold" in tables.table9(calibrated).caption


def test_costs_are_compared_with_random_distractors():
    costs = {"measure": ["Dist. Random", "Dist. ApprOpt"], "tokens a fact": [10.0, 45.0], "ms a fact": [2.0, 6.0]}
    costs |= {"fastest": [1.0, 5.0], "slowest": [3.0, 7.0]}
    finding = tables.cost_finding(pd.DataFrame(costs), 20)
    assert finding.startswith(
        "Dist. Random is the cheapest measure (2.0 ms per fact [1.0, 3.0]), Dist. ApprOpt the most expensive (6.0 ms"
    )
    assert "4.5 times the tokens" in finding and "3.0 times as long" in finding and "judge" not in finding
    judged = pd.DataFrame(costs).replace({"measure": {"Dist. Random": "LLM-as-a-judge"}})
    finding = tables.cost_finding(pd.concat([pd.DataFrame(costs), judged[:1]]), 20)
    assert finding.endswith("its judge was GPT-3.5.")


def test_significant_changes_of_an_ending_are_named():
    rows = [["Random", "eos", 0.5, 0.0, NAN, NAN, 9], ["Random", "punct", 0.6, 0.1, 0.05, 0.15, 9]]
    table = pd.DataFrame(rows, columns=["strategy", "end", "Min@20", "change", "low", "high", "facts"])
    said = tables.endings_finding(table)
    assert said.startswith(
        "Without the end-of-sequence token Min@20 is significantly higher in 1 and lower in 0 of 1 comp"
    )
    assert said.endswith("makes the test harder ('punct' with Random +0.100 [0.050, 0.150]).")
    assert "makes the test easier" in tables.endings_finding(table.assign(low=[NAN, -0.2], high=[NAN, -0.1]))
    assert tables.endings_finding(table.head(1)).startswith("None of 0 comparisons")


def test_the_paper_and_the_facts_in_words():
    assert "LLM-as-a-judge leads with 0.29" in tables.chance_in_the_paper()
    calibrated = Calibrations({}, np.arange(9.0), 2, {})
    assert "on the 9 of 11 rated facts" in tables.facts_used(calibrated, pd.Series([True, False, False]))
    assert tables.facts_used(calibrated, pd.Series([True, False, False])).endswith("former object: 1 of 3.")
    assert tables.judge_accuracy(None).startswith("No judge")
    judged = pd.DataFrame({"value": [1.0, 1.0, 0.0, 0.0], "truth": [1.0, 0.0, 0.0, 0.0]})
    assert "on 75% of 4 texts; it calls 50% right, 25% are. Cohen's kappa is 0.50" in tables.judge_accuracy(judged)


def test_only_configurations_that_were_chosen_are_named():
    """A changes with the fold, C does not, B has nothing to choose; then ApprOpt takes Avg, in the paper Min."""
    picks = ["n=1", "n=5", "–", "–", "w=1", "w=1"]
    table = pd.DataFrame({"measure": list("AABBCC"), "configuration": picks})
    said = "The same configuration is chosen on every fold for C; it changes with the fold for A (n=1 / n=5)."
    assert tables.finding9(table) == said
    appropt = pd.DataFrame({"measure": "Dist. ApprOpt", "configuration": ["Avg@20", "Avg@40"]})
    assert tables.finding9(appropt).endswith(" ApprOpt takes Avg here, Min in the paper.")


def test_no_table_is_without_its_printed_one():
    assert tables.table2().published is not None and set(tables.published_error_shares()) == set(tables.FLAWS)
    counts = tables.count_errors()
    assert tables.table5(counts).frame.set_index("error")["sentences"]["sub_deter"] == 11
    table6 = tables.table6(counts)
    assert table6.frame["sentences"].tolist() == [35, 0, 42]
    assert table6.finding.endswith("gives (0.0, 4.8). A bound of 2.5 takes 147 to 152 sentences without a blunder.")


def test_shares_of_a_search_have_intervals_and_those_of_facts_wilsons():
    """The strongest distractor is found for 2 of 4 facts; the exact search finds it by construction."""
    found = pd.DataFrame({"search": ["beam", "exact"], "width": [20, NAN], "found": [0.25, 1], "strongest": [0.5, 1]})
    found = found.assign(
        **{"found, low": [0.1, NAN], "found, high": [0.4, NAN], "tokens, low": [8, 2], "tokens, high": 99}
    )
    study = Study("m", "", DistractorSettings(n_distractors=70))
    made = tables.search_width(found.assign(**{"tokens": [9.0, 33], "all labels": 99.0}), 5, 4, study)
    assert made.caption.startswith("Search for the 5 most plausible distractors of n = 4 facts, m, one cloze sentence")
    assert "ApprOpt in figure 1 and in *Optimum* searches with width 70, its number of distractors." in made.caption
    assert made.shown["strongest"].tolist() == ["0.50 [0.15, 0.85]", "1.00"]
    assert made.shown["found"].tolist() == ["0.25 [0.10, 0.40]", "1.00"] and made.shown["tokens"][0] == "9 [8, 99]"
    assert made.frame["strongest"].tolist() == [0.5, 1]
    assert "by a beam of width 20 0.25 [0.10, 0.40] with 9 tokens per fact (median), of width 20 0.25" in made.finding
    assert made.finding.endswith("The exact search finds all with 33 tokens, 33% of the 99 that all labels have.")


def test_table_7_names_its_fact_its_beam_and_what_the_beam_missed():
    lists = {"random": ["r"], "sem": ["s"], "temp_sem": ["t"], "appropt": ["a", "b"], "opt": ["o", "b"]}
    sample = Sample("France, capital, Paris", "The capital is", lists, 17, {"appropt": -9.0, "opt": -4.5})
    artifact = tables.table7(sample, "m", n=2)
    assert '"France, capital, Paris"' in artifact.caption and "beam of width 17" in artifact.caption
    assert (
        "share 1 of 2 names. Opt's first, o, has a log plausibility of -4.5 nats, ApprOpt's first, a, -9.0."
        in artifact.finding
    )
    assert "keeps the 17 most probable prefixes" in artifact.finding
    same = sample._replace(lists=lists | {"appropt": ["o", "b"]})
    assert "prefixes" not in tables.finding7(same)
