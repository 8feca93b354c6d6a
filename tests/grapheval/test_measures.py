"""GraphEval: worked examples, invariants, edge cases."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from probelib import grapheval as ge
from probelib import published, stats
from probelib.errors import ProbeError
from probelib.facts.graphs import graph
from probelib.grapheval import Answer, Outcome, measures

T, F, K = Answer.TRUE, Answer.FALSE, Answer.IDK


def asked(*triples) -> pd.DataFrame:
    """(answer to the triple, answers to its corruptions) a triple."""
    rows = [
        {"triple": i, "negative": j, "answer": int(a)}
        for i, (a, n) in enumerate(triples)
        for j, a in enumerate([a, *n])
    ]
    return pd.DataFrame(rows)


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
    rows = asked((positive, negatives))
    assert ge.eq2(rows)[ge.METRICS].iloc[0].tolist() == pytest.approx(intended)
    assert ge.eq2(rows, "released")[ge.METRICS].iloc[0].tolist() == pytest.approx(released)


@pytest.mark.parametrize(
    ("model", "counts", "intended", "released"),
    [
        ("always yes", (3, 3, 0), (0, 1, 0), (1, 1, 1)),
        ("always right", (6, 0, 0), (1, 1, 1), (0, 1, 0)),
        ("always IDK", (0, 0, 6), (1, 0, 0), (1, 0, 0)),
        ("always no", (3, 3, 0), (0, 1, 0), (0, 1, 0)),
    ],
)
def test_models_that_need_no_model(model, counts, intended, released):
    pair = {"always yes": (T, [T]), "always right": (T, [F]), "always IDK": (K, [K]), "always no": (F, [F])}[model]
    rows = asked(*[pair] * 3)
    outcomes = ge.outcome(rows["answer"], rows["negative"] == 0)
    assert tuple(np.bincount(outcomes, minlength=3)) == counts
    for variant, wanted in (("intended", intended), ("released", released)):
        assert tuple(ge.eq2(rows, variant)[ge.METRICS].mean()) == wanted


answers = st.sampled_from([0, 1, 2])
graphs = st.lists(st.tuples(answers, st.lists(answers, max_size=4)), min_size=1, max_size=20)


@settings(deadline=None, max_examples=60)
@given(graphs, st.sampled_from(["intended", "released"]))
def test_correct_adds_nothing_to_the_other_two(triples, variant):
    rows = ge.eq2(asked(*triples), variant)
    expected = np.maximum(0, rows["truthful"] + rows["informative"] - 1)
    assert rows["correct"].to_numpy() == pytest.approx(expected.to_numpy())
    assert rows[ge.METRICS].min(axis=None) >= 0 and rows[ge.METRICS].max(axis=None) <= 1


@settings(deadline=None, max_examples=60)
@given(graphs)
def test_released_is_intended_with_right_and_wrong_exchanged_on_corruptions(triples):
    swap = {0: 1, 1: 0, 2: 2}
    exchanged = asked(*[(a, [swap[n] for n in ns]) for a, ns in triples])
    assert ge.eq2(asked(*triples), "released")[ge.METRICS].equals(ge.eq2(exchanged)[ge.METRICS])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(answers, answers), min_size=1, max_size=40))
def test_shares_of_outcomes_bound_the_metrics(pairs):
    rows = asked(*[(a, [n]) for a, n in pairs])
    shares = np.bincount(ge.outcome(rows["answer"], rows["negative"] == 0), minlength=3) / len(rows)
    for metric, (low, high) in ge.eq2_bounds(*shares).items():
        assert low - 1e-9 <= ge.eq2(rows)[metric].mean() <= high + 1e-9


def test_the_order_of_the_rows_does_not_matter():
    rows = asked((T, [F]), (K, [T, F]), (F, []))
    again = ge.eq2(rows.sample(frac=1, random_state=1)).sort_values("triple", ignore_index=True)
    pd.testing.assert_frame_equal(again, ge.eq2(rows))


def test_a_true_triple_called_false_as_the_paper_tells_it():
    rows = asked((F, [F]))
    assert ge.eq2(rows)["informative"].tolist() == [1]
    assert ge.eq2(rows, false_scores_zero=True)[ge.METRICS].iloc[0].tolist() == [0, 0, 0]


def test_an_unevaluated_triple_is_no_answer():
    rows = asked((T, [F]), (T, [F])).assign(answer=[0, 1, ge.UNEVALUATED, 1])
    assert ge.eq2(rows)["triple"].tolist() == [0]
    released = ge.eq2(rows, unevaluated="idk")  # the released code's second defect
    assert released[ge.METRICS].iloc[1].tolist() == [1, 0, 0]


def test_two_answers_to_one_triple_are_refused():
    with pytest.raises(ProbeError, match="two answers"):
        ge.eq2(pd.concat([asked((T, [])), asked((F, []))]))
    with pytest.raises(ProbeError, match="variant of Eq. 2 'relased'; did you mean released"):
        ge.eq2(asked((T, [])), "relased")


@pytest.mark.parametrize(
    ("text", "kit", "released"),
    [
        (" Yes, the statement is true.", T, T),
        (" No, the statement is false.", F, F),
        (" I don't know.", K, None),
        ("No, the statement is not true.", F, T),
        ("I don't know whether it is true or false.", K, T),
        ("I’m not sure if that is true", K, T),
        ("yes", T, None),
        ("False.", F, None),
        ("The statement is true. It is not false.", T, T),
        ("This is incorrect", F, None),
        ("The statement is correct.", T, None),
        ("The statement is not correct.", F, None),
        ("I don't think it is correct", None, None),
        ("I cannot say that is correct", None, None),
        ("Nothing in it is correct", None, None),
        ("It is incorrect to call it correct", F, None),
        ("The answer is true.", T, T),
        ("I think the statement is false.", F, F),
        ("I think the statement is true.", T, T),
        ("It's true.", T, T),
        ("I don't think it is false.", None, F),
        ("It is unclear whether it is true.", None, T),
        ("No, Elvis Presley is not known as the Queen of Pop.", F, F),
        ("It is not yet known.", K, None),
        ("It is not known to be true.", K, T),
        ("It is not known for certain.", K, None),
        ("There is no evidence that the statement is true.", None, T),
        ("It is unlikely that this is true.", None, T),
        ("The opposite is true.", None, T),
        ("It is not Paris, so the statement is false.", F, F),
        ("Norway is a country", None, None),
        ("Yesterday", None, None),
        ("", None, None),
        ("\n\nIt cannot be determined.", K, None),
        ('"No."', F, F),
    ],
)
def test_what_a_text_answers(text, kit, released):
    assert ge.parse_answer(text) is kit or ge.parse_answer(text) == kit
    assert ge.parse_answer(text, "released") == released


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (" 1944. Yes, the statement is true.", T),
        (" Paris. No, the statement is false.", F),
        (" I don't know.", K),
        (" St. Louis. Yes, the statement is true.", T),
        (" True Detective. No, the statement is false.", F),
        (" No, the statement is false.", F),  # nothing recalled
        (" Yes.", T),
        (" True Romance.", None),
        (" Paris.", None),
        (" Paris. Lyon. Nice.", None),
        ("", None),
    ],
)
def test_the_verdict_comes_after_the_recalled_object(text, answer):
    found = ge.parse_answer(text, "recalled")
    assert found == answer and (found is None) == (answer is None)


@pytest.mark.parametrize(("asks", "majority"), [("TTF", T), ("TFK", K), ("FFK", F), ("KKT", K), ("TTT", T), ("T", T)])
def test_votes(asks, majority):
    assert ge.majority_vote([{"T": T, "F": F, "K": K}[a] for a in asks]) == majority


def test_labels_count_what_could_not_be_read():
    texts = [" Yes.", "Well", " No.", " Yes.", " true", "?"]
    generated = pd.DataFrame({"prompt": ["a", "b", "c", "c", "c", "b"], "rank": [0, 0, 0, 1, 2, 1], "text": texts})
    rows = ge.label_texts(generated).set_index("prompt")
    assert rows["answer"].to_dict() == {"a": T, "b": K, "c": T}
    assert rows["unparsed"].to_dict() == {"a": 0, "b": 2, "c": 0} and rows["n_texts"].to_dict() == {
        "a": 1,
        "b": 2,
        "c": 3,
    }


def test_outcome_and_its_inverse():
    answer, true = np.tile([0, 1, 2], 2), np.repeat([True, False], 3)
    assert ge.outcome(answer, true).tolist() == [0, 1, 2, 1, 0, 2]
    assert ge.answer_from_outcome(ge.outcome(answer, true), true).tolist() == answer.tolist()
    assert ge.outcome([T], [True])[0] == Outcome.RIGHT


def test_a_constant_judge_on_eight_of_ten():
    truth, said = [2] * 8 + [0, 1], ge.majority([2, 2, 0], 10)
    row = ge.judge_quality(truth, said)
    assert (row["precision"], row["recall"], row["f1"]) == pytest.approx((0.64, 0.80, 0.7111), abs=1e-4)
    assert row["macro_f1"] == pytest.approx(0.8889 / 3, abs=1e-4) and row["recall low"] < 0.8 < row["recall high"]
    assert row["precision low"] < 0.64 < row["precision high"] and row["f1 low"] < 0.7111 < row["f1 high"]


def test_quality_by_hand():
    """Class 0: 2 of 3 found, 2 of 2 said; class 1: 1 of 1 found, 1 of 2 said; class 2 does not occur, and is not averaged."""
    row = ge.judge_quality([0, 0, 0, 1], [0, 0, 1, 1])
    assert row["precision"] == pytest.approx(3 / 4 * 1 + 1 / 4 * 1 / 2) and row["recall"] == 3 / 4
    assert row["macro_f1"] == pytest.approx((4 / 5 + 2 / 3) / 2)
    assert np.isnan(ge.judge_quality([], [])["f1"])


@pytest.mark.parametrize("seed", range(3))
def test_quality_equals_scikit_learn_s(seed):
    draw = np.random.default_rng(seed)
    truth, said = draw.integers(3, size=(2, 40))
    weighted = precision_recall_fscore_support(truth, said, average="weighted", zero_division=0)[:3]
    row = ge.judge_quality(truth, said)
    assert [row[score] for score in ("precision", "recall", "f1")] == pytest.approx(weighted, abs=1e-12)


def test_the_baseline_that_reads_nothing_but_the_truth():
    training, true = [0, 0, 1, 1, 1, 2], [True, True, True, False, False, False]
    assert ge.majority_given_truth(training, true, [True, False]).tolist() == [0, 1]


def test_published_counts_cannot_give_the_published_metrics():
    """LLaMA-2-7B: Correct is at most .475 by its own labels, and .516 is printed."""
    row = published.table("grapheval/table2").set_index("model").loc["LLaMA-2-7B"]
    low_high = ge.eq2_bounds(*(row[["n_true", "n_false", "n_idk"]].astype(float) / 4000))
    assert low_high["correct"][1] == pytest.approx(0.475, abs=1e-3) and row["correct"] > 0.5
    assert low_high["truthful"] == pytest.approx((0.228, 0.614), abs=1e-3)
    assert low_high["informative"] == pytest.approx((0.723, 0.861), abs=1e-3)


def test_published_statistics():
    row = published.table("grapheval/table1").iloc[0]
    assert 2 * row["triples"] / row["entities"] == pytest.approx(6.865, abs=1e-3)
    assert row["triples"] / row["entities"] / (row["entities"] - 1) == pytest.approx(6.965e-7, rel=1e-3)
    assert published.table("grapheval/table5")["count"].sum() == 11_160_850
    assert (published.table("grapheval/table2")[["n_true", "n_false", "n_idk"]].sum(axis=1) == 4000).all()


def test_a_type_is_a_mean_of_relations():
    scores = pd.DataFrame({"relation": ["a"] * 9 + ["b"], **{m: [1.0] * 9 + [0.0] for m in ge.METRICS}})
    types = pd.DataFrame({"relation": ["a", "b"], "head_type": ["city", "city"], "tail_type": ["country", "river"]})
    row = ge.by_type(scores, types, "head").query("metric == 'average'").iloc[0]
    assert (row["score"], row["relations"], row["triples"]) == (0.5, 2, 10)  # the mean over triples would be 0.9
    assert set(ge.by_type(scores, types, "tail")["type"]) == {"country", "river"}
    with pytest.raises(ProbeError, match="unknown side"):
        ge.by_type(scores, types, "left")
    none = ge.by_type(scores[scores["relation"] == "b"], types, "head").iloc[0]
    assert none["score"] == none["low"] == 0 and none["high"] > 0.5  # one triple, answered wrongly, proves little
    assert (row["low"], row["high"]) == stats.wilson(
        2, 4
    )  # no draw differs; 2² / (1/9 + 1/1) = 3.6 triples of one weight
    row = ge.by_type(scores.replace({m: {1.0: 1 / 3, 0.0: 1 / 3} for m in ge.METRICS}), types, "tail").iloc[0]
    assert row["low"] < row["score"] < row["high"]


def test_answers_that_ignore_the_statement_are_correct_as_often_as_contrary():
    said = lambda pairs: pd.DataFrame(
        [(triple, side, answer) for triple, pair in enumerate(pairs) for side, answer in enumerate(pair)],
        columns=["triple", "negative", "answer"],
    )
    assert measures.mirrored_correct(said([(T, F), (F, T), (F, F), (F, K)])) == 0.25
    careless = said([(a, b) for a in (T, F, K) for b in (T, F, K)])  # whatever the statement
    assert measures.mirrored_correct(careless) == pytest.approx(ge.eq2(careless)["correct"].mean())
    assert np.isnan(measures.mirrored_correct(said([(T,), (F,)])))


def test_heavy_tails_and_logs():
    degree = np.array([1, 2, 3, 4, 10_000])
    table = pd.DataFrame({"T": [0.0, 0.2, 0.4, 0.6, 0.7], "D": degree})
    row = measures.correlate(table, list("aabbc"), heavy=("D",)).iloc[0]
    assert (row["x"], row["y"]) == ("D", "T") and row["spearman"] == pytest.approx(1)
    assert row["pearson"] < row["pearson_log"] < 1
    assert row["pearson_log"] == pytest.approx(np.corrcoef(table["T"], np.log1p(degree))[0, 1])
    assert np.isnan(measures.correlate(table.assign(D=1), list("aabbc"))["pearson"][0])


def test_ranks_are_those_of_the_rows_that_both_columns_define():
    """x and y rise together wherever y is known; ranks over all rows of x would be uneven steps."""
    table = pd.DataFrame({"x": [1, 2, 3, 4, 50.0], "y": [1, np.nan, np.nan, 2, 9]})
    found = measures.correlate(table, list("abbac")).iloc[0]
    assert found["n"] == 3 and found["relations"] == 2 and found["spearman"] == pytest.approx(1)


def test_triples_of_one_relation_are_no_independent_cases():
    """In each of 20 relations, 100 triples with the same degree and the same score: the interval is that of 20 cases. The mean
    of two models has the relations of its triples."""
    generator = np.random.default_rng(0)
    relation = np.repeat(np.arange(20), 100)
    degree, score = (generator.random(20)[relation] for _ in range(2))
    one = pd.DataFrame({"triple": range(2000), "relation": relation, "truthful": score, "informative": -score})
    scored = pd.concat([one.assign(model=model, correct=score) for model in "mn"])
    linked = measures.correlate_models(scored, pd.DataFrame({"D": degree}))
    found = linked[(linked["x"] == "D") & (linked["y"] == "C")]
    ends = stats.percentile_interval(stats.pearson_replicates(degree[::100], score[::100], range(20)))
    assert found[["low", "high"]].to_numpy() == pytest.approx(np.tile(ends, (3, 1))) and set(found["relations"]) == {20}
    naive = stats.pearson(degree, score)
    assert ends[1] - ends[0] > 6 * (naive["high"] - naive["low"])
    alone = measures.correlate_models(scored.assign(relation=0), pd.DataFrame({"D": degree}))
    assert alone["pearson"].notna().all() and alone[["low", "high"]].isna().all(axis=None)


def test_means_and_their_intervals():
    assert ge.score_interval([1, 0, 1, 1])["mean"] == 0.75 and ge.score_interval([1] * 10)["low"] == pytest.approx(
        0.7225, abs=1e-3
    )
    thirds = ge.score_interval(np.tile([0, 1 / 3, 1], 100))
    assert thirds["low"] < thirds["mean"] < thirds["high"] < 0.55
    assert ge.score_interval([1 / 3] * 60)["low"] == pytest.approx(
        stats.wilson(20, 60)[0]
    )  # all the same: no draw would differ
    assert np.isnan(ge.score_interval([])["mean"])


def test_a_biased_judge_is_put_right_by_answers():
    generator = np.random.default_rng(1)
    truth = generator.random(20_000) < 0.3
    judged = np.where(generator.random(20_000) < 0.2, 1.0, truth)  # says 1 too often: 0.44
    covered, width = 0, []
    for _ in range(100):
        sample = generator.choice(20_000, 800, replace=False)
        fixed = ge.prediction_powered(judged, judged[sample], truth[sample])
        covered += fixed["low"] < truth.mean() < fixed["high"]
        width.append(
            (
                fixed["high"] - fixed["low"],
                np.diff([ge.score_interval(truth[sample])[end] for end in ("low", "high")])[0],
            )
        )
    assert judged.mean() > 0.42 and covered >= 88
    assert np.mean(width, axis=0)[0] < np.mean(width, axis=0)[1]  # the judge saves labels
    assert np.isnan(ge.prediction_powered(judged, [], [])["mean"])
    for judged, answered in (([0.0] * 50, [0.0, 0.0, 0.0, 1.0]), ([0.2] * 50, [0.0, 0.0, 0.0, 0.1])):  # not below 0
        fixed = ge.prediction_powered(judged, [0.9] * 4 if judged[0] else [0.0] * 4, answered)
        assert 0 == fixed["low"] <= fixed["mean"] <= fixed["high"] <= 1


def test_a_judge_without_a_seen_error_has_no_interval():
    found = ge.prediction_powered([0.0, 1.0] * 500, [1.0, 0.0, 1.0], [1.0, 0.0, 1.0])
    assert found["mean"] == 0.5 and np.isnan([found["low"], found["high"]]).all()


def test_degrees_as_released_count_parallel_edges_once():
    one = graph.synthetic(300, 40, 8)
    assert graph.degrees(one).sum() == 600 > graph.degrees(one, parallel=False).sum()


def test_table_2_scores_a_model_four_ways():
    good, bad = ge.eq2(asked(*[(T, [F])] * 6)), ge.eq2(asked(*[(T, [T])] * 6))
    released = ge.eq2(asked(*[(T, [F])] * 6), "released")
    table = measures.score_four_ways(good, released, bad, good.head(3), bad.head(3)).set_index("scored by")
    assert table["correct"].tolist() == [1, 0, 0, 0]  # by the judge all right; its held-out error takes all of it back
    assert table["n"].tolist() == [6, 6, 6, 3] and table.loc["judge", "correct low"] < 1


def labelled(answers: list[int], model: str = "m") -> pd.DataFrame:
    """Labels of triples and their corruptions, in turn."""
    n = len(answers) // 2
    frame = pd.DataFrame({"triple": np.repeat(range(n), 2), "negative": [0, 1] * n, "answer": answers, "model": model})
    return frame.assign(true=frame["negative"] == 0, unparsed=0)


def test_instructions_are_compared_on_the_same_triples():
    """At once: nothing Correct, one of two answers right. Recalled: two of three Correct, all four answers right."""
    labels = {"at once": labelled([F, T, K, K, T, K]), "recalled": labelled([T, F, T, F, K, K])}
    labels["at once"].loc[0, "answer"] = T
    first, then = ge.compare_instructions(labels).to_dict("records")
    assert first["instruction"] == "at once" and np.isnan(first["change"]) and first["right"] == pytest.approx(2 / 3)
    assert then["correct"] == pytest.approx(2 / 3) and then["change"] == pytest.approx(2 / 3)
    assert then["right"] == 1 and then["answered"] == pytest.approx(2 / 3) and then["mirror"] == 0
    assert first["accuracy_true"] == pytest.approx(2 / 3) and first["accuracy_false"] == 0
    assert (first["yes"], first["answered"]) == (1, 0.5)
    assert (then["n"], then["triples"]) == (6, 3) and then["answered low"] < 2 / 3 < then["answered high"]
    assert then["mirror low"] == pytest.approx(0, abs=1e-9) and then["mirror high"] == pytest.approx(0.5615, abs=1e-4)
    alone = ge.compare_instructions({"at once": labels["at once"]})
    assert alone["change"].isna().all() and len(alone) == 1


def test_metrics_change_from_the_smallest_to_the_largest_model():
    """The larger model abstains: Truthful 0 to 1, Informative 1 to 0 on the second triple, no change on the first."""
    small, large = ge.own_scores(labelled([T, F, F, T], "s")), ge.own_scores(labelled([T, F, K, K], "l"))
    scored, sizes = {"own answers": pd.concat([large, small])}, pd.Series({"l": 9, "s": 4})
    trade = ge.change_with_size(scored, sizes).set_index("metric")
    assert (trade["scored by"] == "own answers").all() and (trade["n"] == 2).all()
    assert trade["change"].to_dict() == {"truthful": 0.5, "informative": -0.5, "correct": 0.0}
    assert trade["smallest"].unique() == ["s"] and np.isnan(trade["low"]["correct"])
    assert ge.change_with_size({"own answers": small}, pd.Series({"s": 4})).empty


def test_correct_stands_beside_the_mirror_image_of_its_own_type():
    """City: Correct on one of two triples and mirrored on the other, so 0 above it. River: Correct on both, mirrored never."""
    answers = pd.DataFrame(
        {"triple": np.repeat(range(4), 2), "negative": [0, 1] * 4, "answer": [T, F, F, T, T, F, T, F]}
    )
    answers = answers.assign(model="m")
    scored = ge.eq2(answers).assign(model="m", relation=["a", "a", "b", "b"])
    both = ge.with_mirror(scored, answers)
    assert both["mirror"].tolist() == [0, 1, 0, 0] and both["lead"].tolist() == [1, 0, 1, 1]
    types = pd.DataFrame({"relation": ["a", "b"], "head_type": ["city", "river"], "tail_type": "x"})
    known = {"model": "m", "side": "head"}
    mirrors = ge.by_type(both, types, "head", metrics=("mirror", "lead")).assign(**known)
    found = ge.beside_mirror(ge.by_type(scored, types, "head").assign(**known), mirrors).set_index("type")
    assert found["mirror"].to_dict() == {"city": 0.5, "river": 0} and found["above"].to_dict() == {
        "city": 0,
        "river": 1,
    }
    assert found["above low"]["city"] < 0 < found["above high"]["city"]


def test_bands_of_exposure_or_of_degree():
    about = pd.DataFrame({"D": [1, 2, 3, 4], "E": [0, 8, 32, 64]})
    banded, name = ge.triple_bands(about)
    assert banded.tolist() == ["0", "1-8", "9-32", "33+"] and name == "exposure count"
    quarters, name = ge.triple_bands(about[["D"]])
    assert name == "degree" and quarters.nunique() == 4 and quarters.tolist()[-1] == "to 4"
    scored = ge.own_scores(labelled([T, F, K, K, F, T, T, F]))
    answers = pd.DataFrame(
        {"triple": np.repeat(range(4), 2), "negative": [0, 1] * 4, "answer": [T, F, K, K, F, T, T, F]}
    )
    table = ge.by_band({"own answers": ge.with_mirror(scored, answers.assign(model=scored["model"][0]))}, banded)
    above = table[table["metric"] == "above mirror"].set_index("band")["mean"]
    assert above.to_dict() == {"0": 1, "1-8": 0, "9-32": -1, "33+": 1}
    correct = table[table["metric"] == "correct"].set_index("band")
    assert correct["mean"].to_dict() == {"0": 1, "1-8": 0, "9-32": 0, "33+": 1} and (correct["n"] == 1).all()
