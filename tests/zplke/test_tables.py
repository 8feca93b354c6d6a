"""Findings of ZP-LKE's tables: hand-made frames in, sentences out."""

from unittest import mock

import numpy as np
import pandas as pd
import pytest

from probelib import facts, lm, parameters, zplke
from probelib.errors import ProbeError
from probelib.zplke import tables

WORK = {"requested_tokens": [900, 300], "forwarded_tokens": [30, 10]}


def test_without_trees_their_nodes_are_not_reported():
    with_trees = tables.tokens_saved(pd.DataFrame(WORK | {"tree_nodes": [30.0, np.nan]}))
    assert with_trees == (
        "**30 times** fewer tokens are forwarded than requested; forwarded tokens per node of the prefix trees: 1.000."
    )
    without = tables.tokens_saved(pd.DataFrame(WORK | {"tree_nodes": [np.nan, np.nan]}))
    assert without == "**30 times** fewer tokens are forwarded than requested."


def test_an_encoder_decoder_cannot_continue_a_list():
    with pytest.raises(ProbeError, match="atlas-t5-2m is an encoder-decoder.*atlas-neox-2.4m"):
        lm.load_decoders(["atlas-neox-0.15m", "atlas-t5-2m"])


def test_relations_that_need_no_model_are_named():
    table = pd.DataFrame(
        {"name": ["capital", "spoken"], "base": [0.5, 0.1], "chance": 0.01, "copy": 0.2, "majority": 0.1}
    )
    assert "In 1 of 2 relations" in tables.finding9(table) and "(spoken)" in tables.finding9(table)
    assert "In all 1 relations" in tables.finding9(table.head(1))


def test_the_order_of_relations_is_compared_with_that_of_the_best_rule():
    table = pd.DataFrame({"name": list("abcde"), "base": [0.5, 0.4, 0.3, 0.2, 0.1], "chance": 0.01, "copy": 0.01})
    alike = table.assign(majority=[0.45, 0.35, 0.25, 0.15, 0.05])
    assert "r = 1.000" in tables.finding9(alike) and "partly that of how easily they are guessed" in tables.finding9(
        alike
    )
    unlike = table.assign(majority=[0.1, 0.3, 0.05, 0.2, 0.05])
    assert "partly" not in tables.finding9(unlike)


def test_table_9_has_an_interval_over_the_facts_of_each_relation():
    """By hand: two models know the same one of two capitals, and each another one of two languages: both means are 0.5, but over
    languages no fact differs from another one."""
    some = facts.load(relations=["P36", "P37"], n_facts=2)
    ids = some.facts["fact"].tolist()  # two languages, two capitals
    rows = [(m, f, r, 0, right) for m, rights in (("a", "1010"), ("b", "0110"), ("a-it", "1111"))
            for f, r, right in zip(ids, some.facts["relation"], map(int, rights), strict=True)]  # fmt: skip
    measured = pd.DataFrame(rows, columns=["model", "fact", "relation", "seed", "correct"])
    rules = pd.DataFrame({"chance": 0.01, "copy": 0.02, "majority": 0.1, "best rule": 0.1}, index=["P36", "P37"])
    table9 = tables.table9(some, rules, pd.DataFrame(index=["a", "b"]), measured)
    assert table9.shown.set_index("relation")["base"].to_dict() == {"P36": "0.500 [0.000, 1.000]", "P37": "0.500"}
    assert table9.frame["all"].tolist() == pytest.approx([2 / 3, 2 / 3])
    assert "over the 2 base models (base) on 2 facts per relation" in table9.caption
    assert "copy takes the longest option whose name is part of the subject's name" in table9.caption
    assert "drawn at random, so no agreement with the paper's order of relations is expected" in table9.caption


def test_relations_that_most_models_know_best_are_named_with_their_place_among_the_guessed():
    table = pd.DataFrame({"best 1": ["a", "a"], "best 2": ["b", "c"], "worst: tied": [0, 2]})
    found = tables.finding10(table, pd.Series({"a": 0.1, "b": 0.3, "c": 0.0}), 2)
    assert "*a* (2 models; place 2 of 3 by" in found and "In 1 models the worst 2 are tied" in found


@pytest.mark.parametrize(
    ("lost", "said"),
    [(0, "unlike in the paper"), (9, "as in the paper, the list gets fewer facts right after 4 incorrect")],
)
def test_table_1_says_whether_incorrect_pairs_harm_as_in_the_paper(lost, said):
    columns = ["estimator", "context", "right", "lost", "gained", "p (Holm)"]
    rows = [("prompted", "2 correct", 20, 0, 0, np.nan), ("prompted", "2 unknown", 20, 1, 1, 1.0)]
    rows += [("zero-prompt", "4 correct", 20, 0, 0, np.nan), ("zero-prompt", "4 incorrect", 20 - lost, lost, 0, 0.02)]
    found = tables.finding1(pd.DataFrame(rows, columns=columns), 60)
    assert (
        said in found
        and "As in the paper, incorrect or unknown examples do not significantly harm the sentence" in found
    )
    assert found.startswith("Right answers for 60 facts: prompted 2 correct 20, 2 unknown 20; zero-prompt")


def test_the_award_year_of_a_laureate_is_in_table_3():
    laureates = facts.load(relations=["P569"], n_facts="all")
    table = zplke.table3(laureates, facts.atlas()).frame.set_index("Name")
    assert table.loc["Wilhelm Röntgen", "Award year"] == "1901"
    assert "also has the gender, which the atlas does not hold" in zplke.table3(laureates, facts.atlas()).caption


def test_without_exposure_counts_nothing_is_said_about_them():
    measured = pd.DataFrame({"fact": ["a", "b", "c", "d"]})
    assert tables.taught_in_words(measured, None) == ""
    said = tables.taught_in_words(measured, pd.Series({"a": 0, "b": 0, "c": 1, "d": 40}))
    assert said.startswith(" 50% of the facts were never taught") and "over the 1 facts taught 16 times" in said


def test_rankings_are_compared_only_where_the_models_differ():
    rows = {"a": [0.25, 0.25, 0.0], "b": [0.25, 0.3, 0.0], "c": [0.27, 0.25, 0.0]}
    table = pd.DataFrame(rows, index=pd.Index(["blank", "comma", "as released"], name="decision"))
    measured = pd.DataFrame({"fact": range(60), "shots": 50})
    alike = tables.sensitivity(table, measured)
    assert "Kendall's tau" not in alike.frame and "0.16 to 0.37" in alike.caption
    assert "by any other decision is +0.05 (*comma*, b)" in alike.finding
    assert "Kendall's tau" in tables.sensitivity(table.assign(c=[0.9, 0.9, 0.0]), measured).frame


def test_eta_beside_independence_or_nothing():
    """By hand: of 40 % right answers, guessing one of 20 options gives up to an eighth, so eta above 0.875 would be all."""
    columns = ["family", "accuracy", "eta", "low", "high", "expected", "reversed"]
    row = pd.DataFrame([("neox", 0.4, 0.75, 0.7, 0.8, 0.5, 0.6)], columns=columns)
    assert tables.finding2(row, 0.05).startswith(
        "neox: η = 0.75 [0.70, 0.80], independent models 0.50, reversed 0.60. In 1 of 1"
    )
    assert "(guessing, which gives at most 12% of a" in tables.finding2(row, 0.05)
    assert "In 0 of 1 families" in tables.finding2(row.assign(high=0.9), 0.05)
    assert tables.finding2(row.head(0), 0.05).startswith("No family has two models")


def test_fine_tuned_models_below_their_base_are_counted():
    said = tables.finding11(tuned_pairs(), 0.8)
    assert "1 of 2 fine-tuned models score below" in said and "; 1 of the differences" in said
    assert tables.finding11(tuned_pairs().head(0), 0.8).startswith("No fine-tuned model with its base")


def tuned_pairs() -> pd.DataFrame:
    """Two bases with their tuned models: of the first pair, eta lies above independence."""
    table = pd.DataFrame({"accuracy": [0.5, 0.4], "accuracy of it": [0.4, 0.45], "p (Holm)": [0.01, 0.5]})
    eta = {"eta": [0.7, 0.3], "low": [0.6, 0.2], "high": [0.8, 0.4], "expected": [0.5, 0.4]}
    return table.assign(base=["a", "b"], tuned=["a-it", "b-it"], **eta)


def test_eta_of_fine_tuned_models_is_held_against_independence():
    said = tables.finding11(tuned_pairs(), 0.8)
    assert said.startswith("a-it in a: η = 0.70 [0.60, 0.80], independent models 0.50; b-it in b: η = 0.30")
    assert "(mean η 0.50, in the paper 0.80). In 1 of 2 pairs" in said


def test_the_smallest_and_largest_model_of_a_family():
    described = pd.DataFrame({"model": ["a-1m", "a-2m", "a-3m", "b-1m"], "parameters": [10, 20, 30, 10]})
    assert tables.family_ends(described["model"], described) == {"a": ("a-1m", "a-3m")}


def test_exposure_counts_of_other_models_are_not_known():
    some = facts.load(relations=["P36"], n_facts=2)
    assert tables.known_where_taught(some, pd.DataFrame(), pd.DataFrame(), None).endswith("is not known.")


def test_a_base_is_named_or_guessed():
    assert zplke.bases(["m", "n"], ["m-it", "x=n", "z-it"]) == {"m-it": "m", "x": "n", "z-it": ""}


def test_unknown_settings_raise():
    assert vars(parameters.complete(zplke.ModelsSettings, {"draws": 5})) == {"n_examples": 50, "draws": 5, "seed": 0}
    with pytest.raises(ProbeError, match="drawz"):
        parameters.complete(zplke.ModelsSettings, {"drawz": 5})


def test_table_1_shows_a_fact_for_which_the_examples_matter():
    """Of two facts that four correct examples bring out, the one that fewer of the other inputs do; a fact that they do not bring
    out comes last."""
    some = facts.load(relations=["P569"], n_facts=3)
    ids = some.facts["fact"].tolist()  # two languages, two capitals
    contexts = [("zp", "4 correct"), ("zp", "1 correct"), ("cloze", "none")]
    inputs = pd.DataFrame(
        [(f"{f}|{c}", f, role, c) for f in ids for role, c in contexts], columns=["prompt", "fact", "role", "context"]
    )
    right = [True, True, True, True, False, True, False, False, False]
    chosen = tables.telling_fact(inputs.assign(right=right), some)
    assert chosen.facts["fact"].tolist() == [ids[1]]


def test_the_entropy_is_shown_in_as_many_digits_as_tell_it_from_what_is_expected():
    """0.9902 against 0.9899: equal in three decimals, sound by the fourth."""
    run = {"below": 1.0, "invalid": 0.0, "ties": 0.0, "entropy": 0.9902, "expected": 0.9899}
    with mock.patch.object(tables.measures, "run_health", return_value=run):
        artifact = tables.health(pd.DataFrame({"model": ["m"]}))
    assert artifact.decimals["entropy"] == artifact.decimals["expected"] == 4
    assert artifact.finding == "All 1 runs are sound."


def test_the_dates_of_table_5_are_years():
    some = facts.load(relations=["P569"], n_facts=2)
    rows = [(fact, "x", "1900") for fact in some.facts["fact"]]
    artifact = zplke.table5(some, pd.DataFrame(rows, columns=["fact", "candidate", "label"]))
    assert artifact.frame["Object"].str.fullmatch(r"\d{4}").all()
    assert artifact.caption.endswith("Dates are full in the paper, years here.")
