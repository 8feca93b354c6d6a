"""GraphEval's formulas: worked examples, invariants, edges."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probelib import stats
from probelib.grapheval import measures
from probelib.grapheval.measures import METRICS, Answer, Outcome, eq2

T, F, K = Answer


def answered(*triples, model: str = "m") -> pd.DataFrame:
    """Answers to triples and to their corruptions: (answer, answers to corruptions) per triple."""
    answers = [[first, *others] for first, others in triples]
    rows = [(t, n, int(a)) for t, own in enumerate(answers) for n, a in enumerate(own)]
    rows = pd.DataFrame(rows, columns=["triple", "negative", "answer"])
    known = {"model": model, "true": rows["negative"] == 0, "unparsed": 0}
    return rows.assign(**known, relation="r" + (rows["triple"] % 2).astype(str))


@pytest.mark.parametrize(
    ("positive", "negatives", "intended", "released"),
    [  # truthful, informative, correct
        (T, [F], (1, 1, 1), (0, 1, 0)),
        (T, [T], (0, 1, 0), (1, 1, 1)),
        (F, [F], (0, 1, 0), (0, 1, 0)),
        (K, [K], (1, 0, 0), (1, 0, 0)),
        (T, [F, T, K], (2 / 3, 2 / 3, 1 / 3), (2 / 3, 2 / 3, 1 / 3)),
        (K, [F, F], (1, 0, 0), (0, 0, 0)),
        (T, [], (1, 1, 1), (1, 1, 1)),
    ],
)
def test_one_triple_by_hand(positive, negatives, intended, released):
    rows = answered((positive, negatives))
    assert eq2(rows)[METRICS].iloc[0].tolist() == pytest.approx(intended)
    assert eq2(rows, "released")[METRICS].iloc[0].tolist() == pytest.approx(released)


answers = st.sampled_from([0, 1, 2])
triples = st.lists(st.tuples(answers, st.lists(answers, max_size=4)), min_size=1, max_size=20)


@settings(deadline=None, max_examples=60)
@given(triples)
def test_correct_adds_nothing_and_released_exchanges_true_and_false_on_corruptions(some):
    rows, swap = eq2(answered(*some)), {0: 1, 1: 0, 2: 2}
    expected = np.maximum(0, rows["truthful"] + rows["informative"] - 1)
    assert rows["correct"].to_numpy() == pytest.approx(expected.to_numpy())
    assert rows[METRICS].min(axis=None) >= 0 and rows[METRICS].max(axis=None) <= 1
    exchanged = answered(*[(a, [swap[n] for n in others]) for a, others in some])
    assert eq2(answered(*some), "released")[METRICS].equals(eq2(exchanged)[METRICS])


def test_eq2_takes_rows_in_any_order():
    rows = answered((T, [F]), (K, [T, F]), (F, []))
    again = eq2(rows.sample(frac=1, random_state=1)).sort_values("triple", ignore_index=True)
    pd.testing.assert_frame_equal(again, eq2(rows))


def test_outcome_and_its_inverse():
    answer, true = np.tile([0, 1, 2], 2), np.repeat([True, False], 3)
    outcomes = measures.outcome(answer, true)
    assert outcomes.tolist() == [0, 1, 2, 1, 0, 2] and outcomes[0] == Outcome.RIGHT
    assert measures.outcome(outcomes, true).tolist() == answer.tolist()


def test_a_tie_of_the_judge_is_idk_on_every_processor():
    """Noise of the last bits turns no decision around; a margin beyond the tie is a decision."""
    near = np.array([[0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [0.5 + 3e-5, 0.5 - 3e-5, 0.0]])
    noise = np.random.default_rng(0).normal(0, 2e-6, (50, 3, 3))
    assert (measures.likeliest_answers(near + noise) == [K, K, T]).all()


def test_answers_that_ignore_the_statement_are_mirrored_as_often_as_correct():
    scored = measures.score_triples(answered((T, [F]), (F, [T]), (F, [F]), (F, [K])))
    assert scored["mirror"].tolist() == [0, 1, 0, 0] and scored["lead"].tolist() == [1, 0, 0.5, 0.5]
    assert scored["relation"].tolist() == ["r0", "r1", "r0", "r1"]
    careless = measures.score_triples(answered(*[(a, [b]) for a in Answer for b in Answer]))
    assert careless["mirror"].mean() == pytest.approx(careless["correct"].mean())
    assert measures.score_triples(answered((T, []), (F, [])))["mirror"].isna().all()


def test_means_and_their_intervals():
    assert measures.score_interval([1] * 10)["low"] == pytest.approx(0.7225, abs=1e-3)  # Wilson
    thirds = measures.score_interval(np.tile([0, 1 / 3, 1], 100))
    assert thirds["low"] < thirds["mean"] < thirds["high"] < 0.55
    alike = measures.score_interval([1 / 3] * 60)  # no replicate would differ
    assert alike["low"] == pytest.approx(stats.wilson(20, 60)[0])
    assert np.isnan(measures.score_interval([])["mean"])
    floor = measures.paired_change([0, 0, 0], [0, 0, 0])
    assert floor["value"] == 0 and np.isnan([floor["low"], floor["high"]]).all()
    change = measures.paired_change([0, 0, 0, 1], [1, 1, 0, 1])
    assert list(change.values()) == pytest.approx([0.5, -0.066, 1.066, 4], abs=1e-3)


def test_a_biased_judge_is_corrected_by_answers():
    generator = np.random.default_rng(1)
    truth = generator.random(20_000) < 0.3
    judged = np.where(generator.random(20_000) < 0.2, 1.0, truth)  # says 1 too often: 0.44
    covered = 0
    for _ in range(100):
        sample = generator.choice(20_000, 800, replace=False)
        fixed = measures.prediction_powered(judged, judged[sample], truth[sample])
        covered += fixed["low"] < truth.mean() < fixed["high"]
    assert judged.mean() > 0.42 and covered >= 88
    assert np.isnan(measures.prediction_powered(judged, [], [])["mean"])
    never = measures.prediction_powered([0.0] * 50, [0.0] * 4, [0.0, 0.0, 0.0, 1.0])
    assert 0 == never["low"] <= never["mean"] <= never["high"] <= 1  # clipped
    unseen = measures.prediction_powered([0.0, 1.0] * 500, [1.0, 0.0], [1.0, 0.0])
    assert unseen["mean"] == 0.5 and np.isnan([unseen["low"], unseen["high"]]).all()


def test_table_2_scores_a_model_four_ways():
    """Judge: all right. The model's own answers: always yes. The held-out error takes all back."""
    labels = answered(*[(T, [T])] * 6).assign(predicted=[T, F] * 6)
    labels["split"] = np.where(labels["triple"] < 3, "train", "validation")
    graph_answers = labels.assign(answer=labels["predicted"])
    judged, released = (measures.score_triples(graph_answers, v) for v in ("intended", "released"))
    table = measures.score_models(labels, judged, released).set_index("scored by")
    assert table["correct"].tolist() == [1, 0, 0, 0] and table["n"].tolist() == [6, 6, 6, 3]
    assert table.loc["judge", "correct low"] < 1 and (table["right"] == 6).all()
    assert table.loc["judge", "above mirror"] == 1 and table["above mirror"].notna().sum() == 2
    errors = measures.judge_errors(labels)
    assert errors["value"].to_dict() == {"m, truthful": 1, "m, informative": 0, "m, correct": 1}


def test_a_type_is_a_mean_of_relations():
    scores = pd.DataFrame({"relation": [*"aaaaaaaaab"], **dict.fromkeys(METRICS, [1.0] * 9 + [0])})
    types = {"relation": ["a", "b"], "head_type": "city", "tail_type": ["country", "river"]}
    types = pd.DataFrame(types)
    row = measures.by_type(scores, types, "head").query(f"metric == '{METRICS[0]}'").iloc[0]
    assert (row["score"], row["relations"], row["triples"]) == (0.5, 2, 10)  # over triples: 0.9
    assert (row["score low"], row["score high"]) == pytest.approx(stats.wilson(1.8, 3.6))
    assert set(measures.by_type(scores, types, "tail")["type"]) == {"country", "river"}
    none = measures.by_type(scores[scores["relation"] == "b"], types, "head").iloc[1]
    assert none["score"] == none["score low"] == 0 and none["score high"] > 0.5  # of one triple
    assert np.isnan(none["error"]) and row["error"] == 0.5  # of three: std(1, 0, 0) / sqrt(3)
    scores, types = (pd.concat([t, t.tail(1).assign(relation="c")]) for t in (scores, types))
    three = measures.by_type(scores, types, "head").iloc[1]
    assert (three["relations"], three["error"]) == (3, pytest.approx(1 / 3))


def test_correct_by_type_stands_beside_its_mirror_image():
    """City: Correct on one of two triples, mirrored on the other. River: Correct on both."""
    rows = answered((T, [F]), (T, [F]), (F, [T]), (T, [F]))  # relations r0, r1, r0, r1
    scored = measures.score_triples(rows)
    types = {"relation": ["r0", "r1"], "head_type": ["city", "river"], "tail_type": "x"}
    known, types = {"model": "m", "side": "head"}, pd.DataFrame(types)
    mirrors = measures.by_type(scored, types, "head", metrics=("mirror", "lead")).assign(**known)
    typed = measures.by_type(scored, types, "head").assign(**known)
    found = measures.beside_mirror(typed, mirrors).set_index("type")
    assert found["mirror"].to_dict() == {"city": 0.5, "river": 0}
    assert found["above"].to_dict() == {"city": 0, "river": 1}
    assert found["above low"]["city"] < 0 < found["above high"]["city"]


def test_correlations_of_rows_that_both_define():
    gaps = pd.DataFrame({"x": [1, 2, 3, 4, 50.0], "y": [1, np.nan, np.nan, 2, 9]})
    found = measures.correlate(gaps, list("abbac")).iloc[0]
    expected = np.corrcoef([1, 4, 50], [1, 2, 9])[0, 1]
    assert (found["x"], found["y"], found["n"], found["relations"]) == ("y", "x", 3, 2)
    assert found["pearson"] == pytest.approx(expected)
    assert np.isnan(measures.correlate(gaps.assign(y=1), list("abbac"))["pearson"][0])


def test_triples_of_one_relation_are_no_independent_cases():
    """20 relations of 100 triples, alike within a relation: the interval is that of 20 cases; the
    mean of two models has the relations of its triples."""
    generator, relation = np.random.default_rng(0), np.repeat(np.arange(20), 100)
    degree, score = (generator.random(20)[relation] for _ in range(2))
    one = pd.DataFrame({"triple": range(2000), "relation": relation, "correct": score})
    one = one.assign(truthful=score, informative=-score)
    scored, about = pd.concat([one.assign(model=m) for m in "mn"]), pd.DataFrame({"D": degree})
    linked = measures.correlate_models(scored, about)
    found = linked[(linked["x"] == "D") & (linked["y"] == "C")]
    degree, score = about["D"][::100], scored["correct"].iloc[:2000:100]
    ends = stats.percentile_interval(stats.pearson_replicates(degree, score, range(20)))
    intervals = found[["pearson low", "pearson high"]].to_numpy()
    assert intervals == pytest.approx(np.tile(ends, (3, 1))) and set(found["relations"]) == {20}
    naive = stats.pearson(about["D"], scored["correct"].iloc[:2000])
    assert ends[1] - ends[0] > 6 * (naive["high"] - naive["low"])
    assert measures.correlate_models(scored.assign(relation=0), about)["pearson low"].isna().all()


def test_quality_by_hand():
    """Class 0: 2 of 3 found, 2 of 2 said; class 1: 1 of 1 found, 1 of 2 said; no class 2."""
    row = measures.judge_quality([0, 0, 0, 1], [0, 0, 1, 1])
    assert row["precision"] == pytest.approx(3 / 4 + 1 / 4 / 2) and row["recall"] == 3 / 4
    row = measures.judge_quality([2] * 8 + [0, 1], measures.majority([2, 2, 0], 10))
    found = [row[score] for score in ("precision", "recall", "f1")]
    assert found == pytest.approx([0.64, 0.80, 0.7111], abs=1e-4)
    assert row["precision low"] < 0.64 < row["precision high"]
    assert np.isnan(measures.judge_quality([], [])["f1"])


def test_the_judge_is_paired_with_what_reads_the_same_prompt():
    """Of two statements the soft prompt gets both right, the instruction one, others none."""
    rows = [("judge, instruction", "s", 0, [1, 0]), ("judge, instruction", "m", 0, [1, 1])]
    rows += [("judge, soft prompt", "s", 0, [1, 1]), ("judge, soft prompt", "s", 1, [1, 0])]
    rows += [("logits, instruction", "s", 0, [0, 0]), ("majority, truth known", "", 0, [0, 0])]
    predicted = pd.DataFrame(rows, columns=["by", "states of", "seed", "predicted"])
    predicted = predicted.assign(**{"answers of": "m", "truth": 1})
    predicted["statement"] = [["a", "b"]] * len(rows)
    predicted = predicted.explode(["predicted", "statement"]).astype({"predicted": int})
    found = measures.judge_differences(predicted, pd.Series({"m": "s"}))
    assert {name: own["value"].to_dict() for name, own in found.items()} == {
        "encoder": {"m": 0.25},
        "logits": {"m": 0.5},
        "substitute": {"m from s": 0.5},
        "majority": {"m from s": 0.5, "m from m": 1},
    }
    quality = measures.held_out_quality(predicted, ["by", "states of"]).set_index("by")["recall"]
    assert quality["judge, soft prompt"] == 0.75 and quality["majority, truth known"] == 0
