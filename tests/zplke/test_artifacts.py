"""ZP-LKE's artifacts: what they choose, what they compare, and what is not testable."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from probelib import facts, paths
from probelib.report import claims
from probelib.zplke import artifacts, scores


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def verdicts(artifact) -> dict[str, list[str]]:
    return artifact.claims.groupby("key")["verdict"].agg(list).to_dict()


def answers(rights: dict[tuple[str, str], str], some) -> pd.DataFrame:
    """``measures.answers_of_inputs``: (estimator, context) -> right (1) or wrong (0) per fact."""
    rows = [
        (fact, estimator, context, "zp" if estimator == "zero-prompt" else "cloze", value == "1")
        for (estimator, context), values in rights.items()
        for fact, value in zip(some.facts["fact"], values, strict=True)
    ]
    frame = pd.DataFrame(rows, columns=["fact", "estimator", "context", "role", "right"])
    return frame.assign(text="input " + frame["context"], output=" 1901.")


def test_table_1_shows_a_fact_for_which_the_examples_matter():
    """Of two facts that four correct pairs bring out, the one that fewer other inputs do."""
    some = facts.load(relations=["P569"], n_facts=3)
    rights = {("zero-prompt", "4 correct"): "110", ("zero-prompt", "1 correct"): "100"}
    chosen = artifacts.contrasting_fact(answers(rights | {("prompted", "none"): "110"}, some), some)
    assert chosen.facts["fact"].tolist() == [some.facts["fact"][1]]


def test_figure_1_has_a_fact_per_outcome_with_its_number():
    some = facts.load(relations=["P569"], n_facts=4)
    rights = {("prompted", "none"): "1111", ("prompted", "2 correct"): "0110"}
    rows = answers(rights | {("zero-prompt", "4 correct"): "1010"}, some)
    frame = artifacts.figure1(rows, facts.pick(some, some.facts["fact"].head(1)), some).frame
    kinds = ["only the list", "only the prompt", "both", "neither"]
    assert frame["outcome"].tolist() == np.repeat(kinds, 2).tolist() and frame["facts"].eq(1).all()
    assert frame["input"].tolist()[:2] == ["input 2 correct", "input 4 correct"]


@pytest.mark.parametrize(("model", "testable"), [("atlas-neox-5m", False), ("gpt2", True)])
def test_what_a_model_cannot_show_is_not_testable(model, testable):
    """Sixty facts; incorrect pairs lose 20. The shipped models do not read the pairs of a list."""
    some = facts.load(relations=["P569"], n_facts=60)
    rights = {("prompted", "2 correct"): "1" * 60, ("prompted", "2 incorrect"): "1" * 60}
    rights |= {("zero-prompt", "1 correct"): "1" * 50 + "0" * 10}
    rights |= {
        ("zero-prompt", "4 correct"): "1" * 60,
        ("zero-prompt", "4 incorrect"): "1" * 40 + "0" * 20,
    }
    rows = answers(rights, some)
    artifact = artifacts.table1(rows, facts.pick(some, some.facts["fact"].head(1)), model)
    found = verdicts(artifact)
    assert found["lists"] == ["shown", "shown" if testable else "not testable here"]
    assert found["prompts"] == ["shown"]  # at most 6 % lost, by the interval
    assert artifact.frame["right of 60"].tolist() == [60, 60, 50, 60, 40]


def test_every_shipped_model_misses_what_is_said_of_it():
    table = pd.read_csv(paths.ROOT / "figures" / "atlas" / "models" / "requirements.csv")
    for requirement in (scores.NO_LISTS, scores.NO_TEXT):
        assert not table.loc[table["requirement"] == requirement, "met"].any()
    assert scores.shipped("atlas-neox-5m") and not scores.shipped("gpt2")


def positions(models, seeds=(0, 1)) -> pd.DataFrame:
    role = lambda context, p: "replaced" if p == 1 and context != "correct" else "rest"
    rows = [
        (c, s, p, f"f{p}", p / 200 + s / 10, role(c, p), m, True)
        for m in models
        for c in ["correct", *scores.CONTEXTS]
        for s in seeds
        for p in range(1, 101)
    ]
    columns = ["context", "seed", "position", "fact", "probability", "role", "model", "known"]
    return pd.DataFrame(rows, columns=columns)


def test_the_csv_of_a_sequence_has_all_draws_and_the_star():
    artifact = artifacts.sequence_figure("zplke/figure4", positions(["atlas-neox-5m", "gpt2"]), 31)
    frame = artifact.frame
    assert frame["model"].unique().tolist() == ["atlas-neox-5m"] and set(frame["seed"]) == {0, 1}
    assert frame.loc[frame["pictured"], "seed"].unique().tolist() == [0]
    assert frame.loc[frame["star"], "position"].unique().tolist() == [31]
    (claim,) = artifact.claims.itertuples()
    assert (
        claim.n == 2 * scores.LONGEST_LIST and claim.verdict == "shown"
    )  # not beyond the training
    second = artifacts.sequence_figure("zplke/figure11", positions(["a", "gpt2"]), 31)
    assert second.claims["n"].tolist() == [200] and set(second.frame["model"]) == {"gpt2"}


def test_four_figures_of_one_model_are_four_draws_with_one_claim():
    rows = positions(["m"], range(4))
    shown = [artifacts.sequence_figure(name, rows, 31) for name in artifacts.SEQUENCES]
    drawn = [a.frame.loc[a.frame["pictured"], "seed"].unique().tolist() for a in shown]
    assert drawn == [[0], [1], [2], [3]]
    assert [a.claims is None for a in shown] == [False, True, True, True]


def cells(values: dict[str, list[float]]) -> pd.DataFrame:
    """``measures.accuracy_by_method`` of one model on relations P36, P37, ...: all tests alike."""
    rows = [
        ("gpt2", f"P{36 + i}", method, a)
        for method, own in values.items()
        for i, a in enumerate(own)
    ]
    frame = pd.DataFrame(rows, columns=["model", "relation", "method", "accuracy"])
    tests = ["response, strict", "response, lenient", "multiple choice"]
    frame = pd.concat([frame.assign(test=test) for test in tests])
    frame.attrs["models"] = ["gpt2"]
    return frame


def test_the_list_is_compared_with_prompts_on_common_relations():
    values = {"ZP-LKE": [0.5, 0.6, 0.55, 0.5], "HGP": [0.1, 0.1, 0.2], "few-shot HGP": [0.5] * 3}
    found = cells(values | {"plain sentence": [0.9, 0.9, 0.95, 0.8]})
    artifact = artifacts.figure5(found)
    assert verdicts(artifact) == {"prompts": ["shown"], "plain": ["reversed"]}
    assert artifact.claims["n"].tolist() == [3, 4]
    some = facts.load(relations=["P36", "P37", "P38", "P39"], n_facts=4)
    by = artifacts.relations_figure("zplke/figure15", found, some)
    assert by.claims["value"].tolist() == [1, 1] and by.claims["n"].tolist() == [3, 2]
    assert {"accuracy low", "accuracy high"} < set(by.frame)
    both = artifacts.relations_figure("zplke/figure14", found, some)
    assert set(both.frame["test"]) == {"response, strict", "response, lenient"}


def test_a_curve_rises_only_where_the_interval_says_so():
    rows = [(m, shots, s, f"f{f}", f < n) for m, counts in (("gpt2", (5, 19)), ("x", (19, 20)))
            for shots, n in zip((1, 50), counts, strict=True) for s in (0, 1)
            for f in range(20)]  # fmt: skip
    measured = pd.DataFrame(rows, columns=["model", "shots", "seed", "fact", "correct"])
    artifact = artifacts.figure3(measured.assign(n_options=100))
    assert verdicts(artifact) == {"rises": ["shown", "undecided"], "fewer": ["no interval"]}
    assert artifact.frame.drop_duplicates("model")["n95"].tolist() == [50, 1]


def test_confidence_is_judged_only_where_facts_are_left():
    """Of twenty facts the sure half is right; a second model is sure of three only."""
    sure = {"a": [0.9] * 10 + [0.1] * 10, "b": [0.9] * 3 + [0.1] * 17}
    rows = [(m, f"f{i}", c, i < 10) for m, own in sure.items() for i, c in enumerate(own)]
    measured = pd.DataFrame(rows, columns=["model", "fact", "confidence", "correct"])
    found = artifacts.figure10(measured.assign(shots=50, seed=0))
    assert verdicts(found) == {"confident": ["shown", "no interval"]}


def test_the_released_writing_is_compared_on_the_same_facts():
    rows = pd.DataFrame({"model": "gpt2", "fact": [f"f{i}" for i in range(30)], "correct": True})
    here = rows.assign(**{"per token": False, "pmi": True})
    decided = {"as here: a blank": here, "as released": rows.assign(correct=False).sample(frac=1)}
    artifact = artifacts.sensitivity(decided)
    assert artifact.frame["gpt2"].tolist() == [1, 0, 1, 0]
    assert verdicts(artifact) == {"released": ["shown"]}


def measured_pairs() -> pd.DataFrame:
    """A base that knows 6 of 10 facts in each of five relations, and a tuned one that knows 3."""
    known = {"a-2m": 6, "a-1m": 3, "a-2m-it": 3}
    rows = [(m, f"P{r}", f"{r}-{f}", 0, f < n) for m, n in known.items()
            for r in range(5) for f in range(10 - (r == 0))]  # fmt: skip
    return pd.DataFrame(rows, columns=["model", "relation", "fact", "seed", "correct"])


def test_smallest_and_largest_of_a_family_and_pairs_with_their_base():
    measured = measured_pairs()
    described = pd.DataFrame({"model": ["a-2m", "a-1m", "b-1m"], "parameters": [20, 10, 5]})
    matrix = pd.DataFrame(index=["a-2m", "a-1m", "b-1m"])
    table = artifacts.table2(measured, matrix, described)
    assert table.frame[["smallest", "largest", "eta"]].values.tolist() == [["a-1m", "a-2m", 1.0]]
    assert verdicts(table) == {
        "lacks": ["no interval"],
        "shares": ["shown"],
    }  # one draw: no ceiling
    assert artifacts.table2(measured, matrix.iloc[[2]], described).frame.empty
    tuned = artifacts.table11(measured, {"a-2m-it": "a-2m", "z-it": ""}).frame.iloc[0]
    assert (tuned["base"], tuned["eta"]) == ("a-2m", 1) and tuned["accuracy"] > tuned[
        "accuracy of it"
    ]
    assert tuned["p (Holm)"] == pytest.approx(2 / 2**15)
    figure = artifacts.figure9(measured, {"a-2m-it": "a-2m"})
    assert figure.frame["difference"].tolist() == pytest.approx([-0.30667], abs=1e-5)
    assert verdicts(figure) == {"lower": ["shown"]}
    assert artifacts.figure9(measured, {"z-it": ""}).frame.empty


def test_table_9_has_an_interval_over_the_facts_of_each_relation():
    """Two models know the same one of two capitals, and each another one of two languages: both
    means are 0.5, but over languages no fact differs from another one."""
    some = facts.load(relations=["P36", "P37"], n_facts=2)
    known, keys = {"a": "1010", "b": "0110", "a-it": "1111"}, some.facts[["fact", "relation"]]
    rows = [(m, f, r, 0, right == "1") for m, rights in known.items()
            for (f, r), right in zip(keys.to_numpy(), rights, strict=True)]  # fmt: skip
    measured = pd.DataFrame(rows, columns=["model", "fact", "relation", "seed", "correct"])
    rules = pd.DataFrame({"chance": 0.01, "best rule": [0.1, 0.2]}, index=["P36", "P37"])
    found = artifacts.table9(some, rules, pd.DataFrame(index=["a", "b"]), measured)
    frame = found.frame.set_index("relation")
    assert frame["base"].tolist() == [0.5, 0.5] and frame["all"].tolist() == pytest.approx(
        [2 / 3] * 2
    )
    ends = frame[["base low", "base high"]]
    assert ends.loc["P36"].tolist() == [0, 1] and ends.loc["P37"].isna().all()
    assert verdicts(found) == {"guessed": ["no interval"]} and "exposure" not in frame


def test_tables_of_data():
    laureates = facts.load(relations=["P569"], n_facts="all")
    table = artifacts.table3(laureates, facts.atlas()).frame.set_index("Name")
    assert table.loc["Wilhelm Röntgen", "Award year"] == "1901"
    some = facts.load(relations=["P36", "P569"], n_facts=2)
    options = [(fact, f"x{i}", f"x{i}") for fact in some.facts["fact"] for i in range(9)]
    options = pd.DataFrame(options, columns=["fact", "candidate", "label"])
    sample = artifacts.table5(some, options).frame
    assert sample["Object"].str.fullmatch(r"\d{4}").tolist() == [False, False, True, True]
    assert sample["Multiple choices"].eq("x0, x1, x2, x3, x4, ...").all()


def test_every_claim_builds():
    own = [name for name in claims.artifacts() if name.startswith("zplke/")]
    assert len(own) == 29
    for name in own:
        for key in claims.texts(name).claims:
            claim = claims.texts(name).claim(key)
            assert claim.statistic and bool(claim.quote) == bool(claim.section)
