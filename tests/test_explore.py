"""Explore: one fact seen by every measure; the notebook's menus are tried in test_browser."""

import re
import shutil

import matplotlib.pyplot as plt
import numpy as np
import pytest

from probelib import explore, lm
from probelib.errors import ProbeError
from probelib.measures import monitor

FACT = "P36:France:Paris"
SMALLEST = min(lm.organisms(), key=lambda name: (lm.load(name).encoder_decoder, lm.load(name).n_parameters))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("explore")


@pytest.fixture(scope="module")
def seen(folder):
    return explore.look(explore.world(), explore.model(SMALLEST), FACT, folder)


def test_every_part_is_about_the_fact(seen):
    assert (seen.subject, seen.relation, seen.object, seen.model) == ("France", "capital", "Paris", SMALLEST)
    assert set(seen.framed["fact"]) == {FACT} and seen.framed["text"].str.contains("France").all()
    assert list(seen.rivals.loc[seen.rivals["gold"], "label"]) == ["Paris"]
    assert seen.rivals["probability"].is_monotonic_decreasing and len(seen.rivals) == explore.RIVALS + 1
    assert seen.judged["object"][seen.judged["holds"]].tolist() == ["Paris"]
    assert np.allclose(seen.judged[list(explore.ANSWERS)].sum(axis=1), 1)
    assert seen.history["exposures"] == seen.history[list(explore.corpus.FORMS)].sum()


def test_other_data_have_distractors_too(folder, fktc):
    """FKTC names no types: an object is of the type of its relation, and so are its rivals."""
    world = explore.world("fktc", str(fktc))
    name, fact = next(iter(explore.facts_of(world, "P19").items()))
    one = explore.look(world, explore.model(SMALLEST), fact, folder)
    assert one.history is None and name.endswith(f" – {one.object}")
    assert len(one.rivals) == explore.RIVALS + 1 and one.rivals["gold"].sum() == 1


def test_the_numbers_are_those_of_the_measures(seen):
    """The Primary anchor of the table is the mean of MONITOR's p; accuracy over wordings is counted from the prompts shown."""
    values = seen.measures.set_index("measure")["value"]
    plain = seen.framed[(seen.framed["context"] == "none") & seen.framed["template"].isin((1, 2))]
    assert values["Accuracy over wordings"] == plain["correct"].mean()
    assert values["Primary anchor"] == pytest.approx(seen.distances["pbar"])
    assert values["MONITOR"] == pytest.approx(
        -monitor.root(seen.distances["pfd"], seen.distances["ird"]) / seen.distances["pbar"]
    )
    known = seen.measures.set_index("measure")["known"]
    assert known[["MONITOR", "Avg@n Random"]].isna().all(), "what has no natural point has no verdict"
    assert all(known[name] == (values[name] > 0.5) for name in ("Primary anchor", "ZP choice", "Min@n Random"))


def test_guessing_is_one_of_as_many_answers_as_there_are(seen):
    """Continents are few, capitals are not."""
    few = explore.replace(seen, curve=seen.curve.assign(n_options=6))
    for one, n in ((seen, 25), (few, 6)):
        _, axis = plt.subplots()
        explore._curve(axis, one)
        assert axis.get_ylabel() == f"share of P among {n} answers" and axis.lines[-1].get_ydata()[0] == 1 / n
        plt.close("all")
    assert set(seen.curve["n_options"]) == {25}


def test_a_relation_of_one_subject_gives_no_list(folder, tmp_path):
    rows = ["subject,relation,object", "a,P30,b", *(f"x{i},P36,y{i}" for i in range(9))]
    (tmp_path / "mine.csv").write_text("\n".join(rows))
    with pytest.raises(ProbeError, match="no other subject.*P30|P30.*no other subject"):
        explore.look(explore.world("table", str(tmp_path / "mine.csv")), explore.model(SMALLEST), "P30:a:b", folder)


def test_graphevals_measures_by_hand():
    """The fact is answered "true"; its corruption "true" by the model (Eq. 2: 1 - 1 = 0) and "false" by the judge (1 - 0)."""
    rows = [[True, 0.6, 0.3, 0.1, 0.8, 0.1, 0.1], [False, 0.5, 0.4, 0.1, 0.2, 0.7, 0.1]]
    judged = explore.pd.DataFrame(rows, columns=["holds", *explore.ANSWERS, *(f"judge {a}" for a in explore.ANSWERS)])
    assert explore.of_judged(judged) == {
        "GraphEval P(true)": 0.6, "GraphEval correct": 0.0, "GraphEval judge P(true)": 0.8, "GraphEval judge correct": 1.0
    }  # fmt: skip


def test_the_picture_has_its_words(seen):
    page = explore.picture(seen)
    (alt,) = re.findall(r'<img [^>]*alt="([^"]+)"', page)
    yes, of = explore.verdicts(seen)
    assert f"{yes} of {of} measures" in alt and "France" in alt and seen.model in alt
    assert "data:image/png;base64," in page and "http" not in page.split("base64,")[0]


def test_a_second_look_computes_nothing(seen, folder):
    parts = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    explore.look(explore.world(), explore.model(SMALLEST), FACT, folder)
    assert parts == {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}


@pytest.mark.parametrize(
    ("fact", "hint"),
    [("P36:Frence:Paris", "P36:France:Paris"), ("capital of France", "relation:subject:object"), ("", "relation:subject:object")],
)  # fmt: skip
def test_a_fact_that_is_not_there_is_one_sentence(fact, hint):
    with pytest.raises(ProbeError, match=re.escape(hint)) as error:
        explore.relation_of(explore.world(), fact)
    assert "\n" not in str(error.value)
    assert error.value._render_traceback_() == [f"ProbeError: {error.value}"]


def test_an_own_model_is_loaded_once(folder, tmp_path, monkeypatch):
    """It answers whether statements are true itself: no second copy of its weights for that."""
    own = shutil.copytree(lm.load("atlas-neox-0.15m-it").folder, tmp_path / "own" / "chat")
    (own / "training.json").unlink()
    monkeypatch.setattr(explore, "model", None)
    seen = explore.look(explore.world(), lm.load(own), FACT, folder)
    assert seen.model == seen.answers == "own/chat" and seen.judged is not None


def test_only_a_tuned_model_answers():
    tuned = [name for name in lm.organisms() if name.endswith("-it")]
    for name in lm.organisms():
        other = explore.answering(name)
        assert other is None or (other in tuned and other.removesuffix("-it") == name.removesuffix("-it"))
    assert explore.answering("some/model") == "some/model"


def test_without_widgets_the_picture_is_shown(folder, monkeypatch, capsys, seen):
    """As in a run without a front end: no menu, the same picture, and what is chosen."""
    import sys

    shown = []
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.setattr("IPython.display.display", shown.append)
    assert explore.menu(SMALLEST, FACT, folder) == {"model_name": SMALLEST, "fact": FACT}
    assert "<img" in shown[0].data


def test_the_menus_follow_each_other(folder, monkeypatch, seen):
    """Another relation lists its facts; a model that does not exist is one sentence, and what was chosen stays."""
    pytest.importorskip("ipywidgets")
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    chosen = explore.menu(SMALLEST, FACT, folder)
    (of, relation, fact), board = shown[0].children[0].children, shown[0].children[1]
    assert relation.value == "capital (P36)" and fact.value == "France – Paris" and "Germany – Berlin" in fact.options
    assert "France – capital – Paris" in board.value
    of.value = "no-such-model"
    assert "unknown model" in board.value and "<img" not in board.value and chosen["model_name"] == SMALLEST
    of.value = SMALLEST
    relation.value = "official language (P37)"
    assert set(fact.options) == set(explore.facts_of(explore.world(), "P37")) and "France – French" in fact.options
    assert chosen["fact"] == explore.facts_of(explore.world(), "P37")[fact.value] and "official language" in board.value
    fact.value = "France – Paris"
    assert "unknown fact" in board.value and chosen["fact"].startswith("P37:")
    relation.value = "P99"
    assert "unknown relation" in board.value
