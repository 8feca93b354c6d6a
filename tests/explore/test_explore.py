"""One fact by every measure: the numbers, the picture, and the fields above it."""

import re
import shutil
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from probelib import explore, facts, lm
from probelib.errors import ProbeError
from probelib.explore import menus
from probelib.explore import seen as looked
from probelib.monitor import measures as monitor
from probelib.monitor import scores as monitor_scores
from probelib.prompts import with_contexts

FACT = "P36:France:Paris"
SMALLEST = "atlas-neox-0.6m"  # the smallest with an instruction-tuned partner


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("explore")


@pytest.fixture(scope="module")
def seen(folder):
    return explore.look(explore.load_pool(), explore.load_model(SMALLEST), FACT, folder)


def test_every_part_is_about_the_fact(seen):
    title = (seen.subject, seen.relation, seen.object, seen.model)
    assert title == ("France", "capital", "Paris", SMALLEST)
    assert set(seen.framed["fact"]) == {FACT} and seen.framed["text"].str.contains("France").all()
    assert list(seen.rivals.loc[seen.rivals["gold"], "label"]) == ["Paris"]
    assert seen.rivals["probability"].is_monotonic_decreasing
    assert len(seen.rivals) == looked.SHOWN + 1
    assert seen.judged["object"][seen.judged["holds"]].tolist() == ["Paris"]
    assert np.allclose(seen.judged[list(explore.ANSWERS)].sum(axis=1), 1)
    assert seen.history["exposures"] == seen.history[list(looked.design.FORMS)].sum()


def test_the_numbers_are_those_of_the_papers(seen, folder):
    """MONITOR is that of section 5 on this fact; accuracy is counted from the prompts shown."""
    values = seen.measures.set_index("measure")["value"]
    panel = facts.draw_distractors(facts.pick(explore.load_pool().now, [FACT]), facts.atlas())
    scores = monitor_scores.score([SMALLEST], panel, folder)[SMALLEST]
    distances = monitor.measure_facts(scores, with_contexts(panel)).iloc[0]
    assert values["Primary anchor"] == pytest.approx(distances["pbar"])
    assert values["MONITOR"] == pytest.approx(-distances["root"] / distances["pbar"])
    plain = seen.framed[(seen.framed["context"] == "none") & seen.framed["template"].isin((1, 2))]
    assert values["Accuracy over wordings"] == plain["correct"].mean()
    known = seen.measures.set_index("measure")["known"]
    assert known[["MONITOR", "Avg@n Random"]].isna().all()
    for name in ("Primary anchor", "ZP choice", "Min@n Random"):
        assert known[name] == (values[name] > 0.5)
    assert (seen.measures["why"] != "").equals(seen.measures["known"].eq(False))


def test_the_csv_of_the_board_holds_every_panel(seen):
    numbers = explore.board_figure(seen).frame
    plt.close("all")
    measures = numbers[numbers["panel"] == "Known?"][seen.measures.columns]
    assert measures.astype(object).equals(seen.measures.astype(object))
    panels = numbers.groupby("panel")
    values = {panel: rows.set_index(["of", "series"])["value"] for panel, rows in panels}
    first = seen.framed.iloc[0]
    assert values["MONITOR"][first["text"], first["hint"]] == pytest.approx(first["probability"])
    assert values["ZP-LKE"].index[0] == ("examples: 1", "list 0")
    assert len(values["ZP-LKE"]) == len(seen.curve)
    right = seen.rivals["probability"][seen.rivals["gold"]].item()
    assert values["Distractors"]["Paris", "right object"] == right
    shares = values["GraphEval"].drop("judge true", level="series").groupby("of").sum()
    assert len(shares) == len(seen.judged) and np.allclose(shares, 1)
    told = values["Exposures"].drop("wrong_exposures", level="of")
    assert told.sum() == seen.history["exposures"]


def test_a_panel_without_data_is_left_out(seen):
    titles = lambda figure: [axis.get_title(loc="left") for axis in figure.axes]
    whole = titles(explore.board(seen))
    few = titles(explore.board(replace(seen, judged=None, history=None)))
    plt.close("all")
    missing = [title for title in whole if title not in few]
    assert len(whole) == 6 and [title.split()[0] for title in missing] == ["GraphEval:", "How"]


def test_no_text_of_the_board_is_small(seen):
    figure = explore.board(seen)
    figure.canvas.draw()
    texts = [text for text in figure.findobj(plt.Text) if text.get_text()]
    assert not [text.get_text() for text in texts if text.get_fontsize() < 9]
    plt.close(figure)


@pytest.fixture
def own(tmp_path):
    """A table of one's own, with its templates."""

    def write(header: str, *rows: str) -> explore.FactPool:
        (tmp_path / "own.csv").write_text("\n".join([header, *rows]) + "\n")
        templates = "relation,template\nliege,Which house rules [X]?\nliege,[X] is ruled by [Y].\n"
        (tmp_path / "own.templates.csv").write_text(templates)
        return explore.load_pool("table", str(tmp_path / "own.csv"))

    return write


def test_a_measure_without_a_value_is_a_dash(own, folder):
    """No other object is of its object's type: no distractor could be the strongest. Texts with
    dollars are no formulas."""
    rows = ("Arrakis,liege,A$AP,t1", "Ix,liege,Ke$ha $x$,t2", "Geidi,liege,F,t3")
    pool = own("subject,relation,object,object_types", *rows)
    seen = explore.look(pool, explore.load_model(SMALLEST), "liege:Arrakis:A$AP", folder)
    lost = seen.measures["value"].isna()
    assert lost.any() and not lost.all() and seen.rivals["gold"].tolist() == [True]
    assert seen.history is None, "its corpus does not state the fact"
    figure = explore.board(seen)
    (axis,) = [axis for axis in figure.axes if axis.get_title(loc="left").startswith("Known?")]
    assert sum(text.get_text() == "–" for text in axis.texts) == lost.sum()
    texts = [text for text in figure.findobj(plt.Text) if "$" in text.get_text()]
    assert texts and not any(text.get_parse_math() for text in texts)
    plt.close(figure)


@pytest.mark.parametrize(
    ("rows", "fact", "said"),
    [
        (["a,P30,b", *(f"x{i},P36,y{i}" for i in range(9))], "P30:a:b", "no fact of P30"),
        (["A,liege,B", "C,liege,B", "E,liege,B"], "liege:A:B", "no wrong object.*more objects"),
        (["A,liege,B", "C,liege,D"], "liege:A:E", "did you mean liege:A:B"),
        (["A,liege,B", "C,liege,D"], "A", "relation:subject:object"),
    ],
)
def test_a_fact_that_cannot_be_scored_raises_one_sentence(own, folder, rows, fact, said):
    pool = own("subject,relation,object", *rows)
    with pytest.raises(ProbeError, match=said) as error:
        explore.look(pool, explore.load_model(SMALLEST), fact, folder)
    assert "\n" not in str(error.value)


def test_a_served_model_is_looked_at_without_its_states(own, folder):
    """A judge reads hidden states and a decoder walks beams, which no server gives."""
    from tests.lm.remote.server import NAME, honest, serving

    rows = ("Ix,liege,Atreides", "Giedi,liege,Harkonnen", "Caladan,liege,Corrino")
    pool = own("subject,relation,object", *rows)
    fact = pool.now.facts["fact"][0]
    with serving(honest) as (url, _):
        there = explore.look(pool, lm.load(f"{url}#{NAME}"), fact, folder)
    here = explore.look(pool, lm.load(NAME), fact, folder)
    server, local = (one.measures.set_index("measure")["value"] for one in (there, here))
    left_out = [name for name in local.index if name not in server.index]
    decoded = ("Precision@n", "ROUGE-L", "LLM-as-a-judge")
    assert there.judged is None
    assert all(name.startswith("GraphEval") or name in decoded for name in left_out)
    np.testing.assert_allclose(server, local.drop(left_out), atol=1e-3)


def test_graphevals_measures_by_hand():
    """The fact is answered "true"; its corruption "true" by the model (Eq. 2: 1 - 1 = 0) and
    "false" by the judge (1 - 0)."""
    rows = [[True, 0.6, 0.3, 0.1, 0.8, 0.1, 0.1], [False, 0.5, 0.4, 0.1, 0.2, 0.7, 0.1]]
    columns = ["holds", *explore.ANSWERS, *(f"judge {answer}" for answer in explore.ANSWERS)]
    assert looked.grapheval_values(pd.DataFrame(rows, columns=columns)) == {
        "GraphEval P(true)": 0.6,
        "GraphEval correct": 0.0,
        "GraphEval judge P(true)": 0.8,
        "GraphEval judge correct": 1.0,
    }


def test_a_second_look_computes_nothing(seen, folder):
    times = lambda: {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    before = times()
    explore.look(explore.load_pool(), explore.load_model(SMALLEST), FACT, folder)
    assert before and before == times()


def test_an_own_model_answers_itself(folder, tmp_path, monkeypatch):
    """No second copy of its weights is loaded for that."""
    own = shutil.copytree(lm.load("atlas-neox-0.6m-it").folder, tmp_path / "own" / "chat")
    (own / "training.json").unlink()
    monkeypatch.setattr(looked, "load_model", None)
    seen = explore.look(explore.load_pool(), lm.load(own), FACT, folder)
    assert seen.model == seen.answers == "own/chat" and seen.judged is not None
    assert seen.history is None, "what it was trained on is unknown"


NAMES = {
    "France – Paris": "P36:France:Paris",
    "Niger – Niamey": "P36:Niger:Niamey",
    "Nigeria – Abuja": "P36:Nigeria:Abuja",
    "New Zealand – Wellington": "x1",
    "Papua New Guinea – Port Moresby": "x2",
    "New York – Albany": "x3",
}


@pytest.mark.parametrize(
    ("typed", "fits"),
    [
        ("france", "France – Paris"),
        ("P36:France:Paris", "France – Paris"),
        ("france-paris", "France – Paris"),  # with the dash of a keyboard
        ("Niger", "Niger – Niamey"),  # a whole subject goes before a part of another one
        ("guinea", "Papua New Guinea – Port Moresby"),
    ],
)
def test_a_part_of_a_name_is_enough_if_one_fits(typed, fits):
    assert menus.find("fact", typed, NAMES) == fits


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("n", "6 facts match 'n': France – Paris, Niger – Niamey, Nigeria – Abuja and 3 more."),
        ("Frence – Paris", "unknown fact 'Frence – Paris'; did you mean France – Paris"),
        ("Atlantis", "unknown fact 'Atlantis'. There are 6"),
    ],
)
def test_a_name_that_does_not_fit_one_fact(typed, said):
    with pytest.raises(ProbeError, match=re.escape(said)):
        menus.find("fact", typed, NAMES)


def test_the_fields_follow_each_other(folder, monkeypatch, seen):
    """Another relation lists its facts; an unknown name is one sentence; the choice stays."""
    pytest.importorskip("ipywidgets")
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    monkeypatch.setattr(menus, "as_html", lambda seen: f"{seen.model} {seen.fact}")
    chosen = explore.menu(SMALLEST, FACT, folder)
    (model, relation, fact), page = shown[0].children[0].children, shown[0].children[1]
    assert (relation.value, fact.value) == ("capital (P36)", "France – Paris")
    assert page.value == f"{SMALLEST} {FACT}" and "Germany – Berlin" in fact.options
    model.value = "no-such-model"
    assert "unknown model" in page.value and chosen == {"model_name": SMALLEST, "fact": FACT}
    model.value = SMALLEST
    relation.value = "P37"
    assert relation.value == "official language (P37)" and chosen["fact"].startswith("P37:")
    assert set(fact.options) == set(explore.facts_of(explore.load_pool(), "P37"))
    fact.value = "germany"
    assert fact.value == "Germany – German" and page.value.endswith("P37:Germany:German")
    relation.value = "P99"
    assert "unknown relation" in page.value and chosen["fact"] == "P37:Germany:German"


def test_the_picture_of_the_fields_has_a_short_description(seen):
    (alt,) = re.findall(r'<img [^>]*alt="([^"]+)"', menus.as_html(seen))
    assert alt == f"France – capital – Paris: the measures of {SMALLEST}"
