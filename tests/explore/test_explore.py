"""Explore: one fact seen by every measure; the notebook's menus are tried in test_browser."""

import re
import shutil
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from probelib import explore, lm
from probelib.beyond.suite import measures_of
from probelib.errors import ProbeError
from probelib.explore import drawing, menus, reasons
from probelib.explore import seen as looked
from probelib.monitor import measures as monitor

FACT = "P36:France:Paris"
SMALLEST = "atlas-neox-0.6m"  # the smallest with an instruction-tuned partner


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("explore")


@pytest.fixture(scope="module")
def seen(folder):
    return explore.look(explore.load_pool(), explore.load_model(SMALLEST), FACT, folder)


def test_every_part_is_about_the_fact(seen):
    assert (seen.subject, seen.relation, seen.object, seen.model) == ("France", "capital", "Paris", SMALLEST)
    assert set(seen.framed["fact"]) == {FACT} and seen.framed["text"].str.contains("France").all()
    assert list(seen.rivals.loc[seen.rivals["gold"], "label"]) == ["Paris"]
    assert seen.rivals["probability"].is_monotonic_decreasing and len(seen.rivals) == looked.SHOWN + 1
    assert seen.judged["object"][seen.judged["holds"]].tolist() == ["Paris"]
    assert np.allclose(seen.judged[list(explore.ANSWERS)].sum(axis=1), 1)
    assert seen.history["exposures"] == seen.history[list(looked.design.FORMS)].sum()


def test_other_data_have_distractors_too(folder, fktc):
    """FKTC names no types: an object is of the type of its relation, and so are its rivals."""
    world = explore.load_pool("fktc", str(fktc))
    name, fact = next(iter(explore.facts_of(world, "P19").items()))
    one = explore.look(world, explore.load_model(SMALLEST), fact, folder)
    assert one.history is None and name.endswith(f" – {one.object}")
    assert len(one.rivals) == looked.SHOWN + 1 and one.rivals["gold"].sum() == 1


def test_the_numbers_are_those_of_the_measures(seen):
    """The Primary anchor of the table is the mean of MONITOR's p; accuracy over wordings is counted from the prompts shown."""
    values = seen.measures.set_index("measure")["value"]
    plain = seen.framed[(seen.framed["context"] == "none") & seen.framed["template"].isin((1, 2))]
    assert values["Accuracy over wordings"] == plain["correct"].mean()
    assert values["Primary anchor"] == pytest.approx(seen.distances["pbar"])
    assert values["MONITOR"] == pytest.approx(
        -monitor.root(seen.distances["pfd"], seen.distances["ird"]) / seen.distances["pbar"]
    )
    shown, board = explore.shown_measures(seen), explore.shown_board(seen)
    assert "it is shown as -MONITOR" in shown.caption and list(shown.frame)[-1] == "why"
    yes, of = explore.drawing.known_counts(seen)
    assert board.finding.startswith(f"{yes} of {of} measures with a threshold say that {seen.model} knows the fact.")
    assert f"after {seen.framed['template'].nunique()} paraphrases of the question" in board.caption
    used = seen.framed[(seen.framed["context"] == "none") | (seen.framed["template"] == 1)]
    assert (
        f"Prompts per value: MONITOR {len(used)} (7 paraphrases, and the first one also after 6 contexts)"
        in board.caption
    )
    assert "behind hints 10 (" in shown.caption and "measures of sentences 2 templates; of" in shown.caption
    assert "a statement 1, but GraphEval's correct 2 (" in shown.caption
    assert "a statement 1. Values go" in explore.shown_measures(replace(seen, judged=None)).caption
    known = seen.measures.set_index("measure")["known"]
    assert known[["MONITOR", "Avg@n Random"]].isna().all(), "what has no natural point has no verdict"
    assert all(known[name] == (values[name] > 0.5) for name in ("Primary anchor", "ZP choice", "Min@n Random"))


def test_measures_that_are_left_out_are_named(seen):
    caption, shown = explore.shown_measures(seen).caption, set(seen.measures["measure"])
    assert f"the values of {len(shown)} measures of the four papers for {SMALLEST}" in caption
    left_out = set(measures_of("monitor", "zplke", "distractors", "grapheval")) - shown
    assert left_out and all(f"{name} (it " in caption.split("Left out: ")[1] for name in left_out)
    assert "GraphEval and LLM-as-a-judge are left out" not in caption
    unjudged = explore.shown_measures(replace(seen, judged=None, answers=None)).caption
    assert f"GraphEval and LLM-as-a-judge are left out, too: {SMALLEST} was not tuned to answer" in unjudged


def test_the_csv_of_the_board_holds_every_panel(seen):
    """By hand: the measures first, as they are; then one row per value that is drawn."""
    numbers = explore.shown_board(seen).frame
    plt.close("all")
    measures = numbers[numbers["panel"] == "Known?"][seen.measures.columns]
    assert measures.astype(object).equals(seen.measures.reset_index(drop=True).astype(object))
    values = {panel: rows.set_index(["of", "series"])["value"] for panel, rows in numbers.groupby("panel")}
    first = seen.framed.iloc[0]
    assert values["MONITOR"][first["text"], first["hint"]] == pytest.approx(first["probability"])
    assert len(values["ZP-LKE"]) == len(seen.curve) and values["ZP-LKE"].index[0] == ("examples: 1", "list 0")
    assert values["Distractors"]["Paris", "right object"] == seen.rivals["probability"][seen.rivals["gold"]].item()
    shares = values["GraphEval"].drop("judge true", level="series").groupby("of").sum()
    assert len(shares) == len(seen.judged) and np.allclose(shares, 1)
    assert values["Exposures"].drop("wrong_exposures", level="of").sum() == seen.history["exposures"]
    alone = drawing.board_numbers(replace(seen, judged=None, history=None))
    assert set(alone["panel"]) == {"Known?", "MONITOR", "ZP-LKE", "Distractors"}


def test_guessing_is_one_of_as_many_answers_as_there_are(seen):
    """Continents are few, capitals are not."""
    few = replace(seen, curve=seen.curve.assign(n_options=6))
    for one, n in ((seen, 25), (few, 6)):
        _, axis = plt.subplots()
        drawing._curve(axis, one)
        assert f"of the probability of {n} options" in explore.board_in_words(one)
        assert f"up to 100 options after one list; the text compares {n} options" in explore.shown_measures(one).caption
        assert axis.get_ylabel() == f"share of P among {n} answers" and axis.lines[-1].get_ydata()[0] == 1 / n
        plt.close("all")
    assert set(seen.curve["n_options"]) == {25}


def test_a_relation_of_one_subject_gives_no_list(folder, tmp_path):
    rows = ["subject,relation,object", "a,P30,b", *(f"x{i},P36,y{i}" for i in range(9))]
    (tmp_path / "mine.csv").write_text("\n".join(rows))
    with pytest.raises(ProbeError, match="no other subject.*P30|P30.*no other subject"):
        explore.look(
            explore.load_pool("table", str(tmp_path / "mine.csv")), explore.load_model(SMALLEST), "P30:a:b", folder
        )


@pytest.fixture
def own(tmp_path):
    """A table of one's own, as a world, with its wordings."""

    def write(header: str, *rows: str) -> explore.FactPool:
        (tmp_path / "own.csv").write_text("\n".join([header, *rows]) + "\n")
        wordings = ["relation,template", "liege,Which house rules [X]?", "liege,[X] is ruled by [Y]."]
        (tmp_path / "own.templates.csv").write_text("\n".join(wordings) + "\n")
        return explore.load_pool("table", str(tmp_path / "own.csv"))

    return write


def test_a_measure_without_a_value_is_a_dash(own, folder):
    """No other object is of its object's type: there are no distractors that could be the strongest."""
    world = own(
        "subject,relation,object,object_types", "Arrakis,liege,A$AP,t1", "Ix,liege,Ke$ha $x$,t2", "Geidi,liege,F,t3"
    )
    seen = explore.look(world, explore.load_model(SMALLEST), "liege:Arrakis:A$AP", folder)
    lost = seen.measures["value"].isna()
    assert lost.any() and not lost.all() and seen.rivals["gold"].tolist() == [True]
    assert "distractors" not in explore.board_in_words(seen) and "rank" not in explore.board_in_words(seen)
    figure = explore.board(seen)
    dashes = [text for axis in figure.axes for text in axis.texts if text.get_text() == "–"]
    assert len([text for text in dashes if text.axes.get_title(loc="left").startswith("Known?")]) == lost.sum()
    assert not any(text.get_parse_math() for text in figure.findobj(plt.Text) if "$" in text.get_text())
    told = next(axis for axis in figure.axes if axis.get_title(loc="left").startswith("How often"))
    assert "not among those of its\ncorpus" in told.texts[0].get_text(), "a shipped model's corpus is known"
    plt.close(figure)


def test_a_relation_of_one_object_has_nothing_wrong(own, folder):
    world = own("subject,relation,object", "A,liege,B", "C,liege,B", "E,liege,B")
    with pytest.raises(ProbeError, match="liege.*no wrong object.*own"):
        explore.look(world, explore.load_model(SMALLEST), "liege:A:B", folder)


def test_improbable_answers_have_bars_too(seen):
    _, axis = plt.subplots()
    drawing._rivals(axis, replace(seen, rivals=seen.rivals.assign(probability=seen.rivals["probability"] * 1e-20)))
    longest = max(bar.get_width() for bar in axis.patches)
    assert 0 < axis.get_xlim()[1] <= 1.3 * longest
    plt.close("all")


def test_a_served_model_is_looked_at_without_its_states(own, folder):
    """A judge reads hidden states and a decoder walks beams, which no server gives; all else is the same as here."""
    from tests.lm.remote.server import NAME, honest, serving

    world = own("subject,relation,object", "Ix,liege,Atreides", "Giedi,liege,Harkonnen", "Caladan,liege,Corrino")
    fact = world.now.facts["fact"][0]
    with serving(honest) as (url, _):
        there = explore.look(world, lm.load(f"{url}#{NAME}"), fact, folder)
    here = explore.look(world, lm.load(NAME), fact, folder)
    assert there.judged is None and "neither hidden states nor beams" in explore.board_in_words(there)
    server, local = (one.measures.set_index("measure")["value"] for one in (there, here))
    left_out = [name for name in local.index if name not in server.index]
    assert all(
        name.startswith("GraphEval") or name in ("Precision@n", "ROUGE-L", "LLM-as-a-judge") for name in left_out
    )
    np.testing.assert_allclose(server, local.drop(left_out), atol=1e-3)
    assert "hidden states" in explore.board_as_html(there)


def test_graphevals_measures_by_hand():
    """The fact is answered "true"; its corruption "true" by the model (Eq. 2: 1 - 1 = 0) and "false" by the judge (1 - 0)."""
    rows = [[True, 0.6, 0.3, 0.1, 0.8, 0.1, 0.1], [False, 0.5, 0.4, 0.1, 0.2, 0.7, 0.1]]
    judged = looked.pd.DataFrame(rows, columns=["holds", *explore.ANSWERS, *(f"judge {a}" for a in explore.ANSWERS)])
    assert looked.grapheval_values(judged) == {
        "GraphEval P(true)": 0.6, "GraphEval correct": 0.0, "GraphEval judge P(true)": 0.8, "GraphEval judge correct": 1.0
    }  # fmt: skip


def test_the_picture_has_an_alt_text(seen):
    page = explore.board_as_html(seen)
    (alt,) = re.findall(r'<img [^>]*alt="([^"]+)"', page)
    yes, of = drawing.known_counts(seen)
    assert f"{yes} of {of} measures" in alt and "France" in alt and seen.model in alt
    assert "data:image/png;base64," in page and "http" not in page.split("base64,")[0]


def test_a_second_look_computes_nothing(seen, folder):
    parts = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    explore.look(explore.load_pool(), explore.load_model(SMALLEST), FACT, folder)
    assert parts == {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}


@pytest.mark.parametrize(
    ("fact", "hint"),
    [("P36:Frence:Paris", "P36:France:Paris"), ("capital of France", "relation:subject:object"), ("", "relation:subject:object")],
)  # fmt: skip
def test_an_unknown_fact_raises_one_sentence(fact, hint):
    with pytest.raises(ProbeError, match=re.escape(hint)) as error:
        looked.relation_of(explore.load_pool(), fact)
    assert "\n" not in str(error.value)
    assert error.value._render_traceback_() == [f"ProbeError: {error.value}"]


def test_an_own_model_is_loaded_once(folder, tmp_path, monkeypatch):
    """It answers whether statements are true itself: no second copy of its weights for that."""
    own = shutil.copytree(lm.load("atlas-neox-0.6m-it").folder, tmp_path / "own" / "chat")
    (own / "training.json").unlink()
    monkeypatch.setattr(looked, "load_model", None)
    seen = explore.look(explore.load_pool(), lm.load(own), FACT, folder)
    assert seen.model == seen.answers == "own/chat" and seen.judged is not None


def test_only_a_tuned_model_answers():
    tuned = [name for name in lm.organisms() if name.endswith("-it")]
    for name in lm.organisms():
        other = looked.answering_partner(name)
        assert other is None or (other in tuned and other.removesuffix("-it") == name.removesuffix("-it"))
    assert looked.answering_partner("some/model") == "some/model"


NAMES = {
    "France – Paris": "P36:France:Paris",
    "Niger – Niamey": "P36:Niger:Niamey",
    "Nigeria – Abuja": "P36:Nigeria:Abuja",
}
NAMES |= {"New Zealand – Wellington": "x1", "Papua New Guinea – Port Moresby": "x2", "New York – Albany": "x3"}
NAMES |= {"New Jersey – Trenton": "x4"}


@pytest.mark.parametrize(
    ("typed", "fits"),
    [
        ("france", "France – Paris"),
        (" FRANCE – paris", "France – Paris"),
        ("P36:France:Paris", "France – Paris"),
        ("France - Paris", "France – Paris"),  # with the dash of a keyboard
        ("france-paris", "France – Paris"),
        ("abuja", "Nigeria – Abuja"),
        ("Niger", "Niger – Niamey"),  # a whole subject goes before a part of another one
        ("guinea", "Papua New Guinea – Port Moresby"),
    ],
)
def test_a_part_of_a_name_is_enough_if_one_fits(typed, fits):
    assert menus.find("fact", typed, NAMES) == fits


def test_of_several_that_fit_three_are_named():
    with pytest.raises(ProbeError) as error:
        menus.find("fact", "new", NAMES)
    assert str(error.value) == (
        "4 facts match 'new': New Zealand – Wellington, Papua New Guinea – Port Moresby, New York – Albany and 1 more. "
        "Type more of the name."
    )
    with pytest.raises(ProbeError, match="unknown fact 'Frence – Paris'; did you mean France – Paris.* There are 7"):
        menus.find("fact", "Frence – Paris", NAMES)
    with pytest.raises(ProbeError, match="unknown fact 'frence'; did you mean France – Paris\\?"):
        menus.find("fact", "frence", NAMES)
    with pytest.raises(ProbeError, match="unknown fact 'Atlantis'. There are 7"):
        menus.find("fact", "Atlantis", NAMES)


def test_no_text_of_the_board_is_small(seen):
    figure = explore.board(seen)
    figure.canvas.draw()
    small = {t.get_text(): t.get_fontsize() for t in figure.findobj(plt.Text) if t.get_text() and t.get_fontsize() < 9}
    assert not small
    texts = [text.get_text() for axis in figure.axes if axis.get_legend() for text in axis.get_legend().get_texts()]
    assert "right object" in texts and "other objects" in texts
    plt.close(figure)


def test_a_cross_has_its_reason():
    """What was said instead, and what is answered to the first false statement, too."""
    judged = looked.pd.DataFrame(
        {"object": ["Paris", "Juba"], "true": [0.2, 0.1], "false": [0.5, 0.9], "don't know": [0.3, 0.0]}
    )
    said = {"question": "Lyon", "list": "", "choice": "Rome"}
    why = lambda name, value=0.0: reasons.why_not(name, value, said, judged)
    assert why("Base accuracy") == "answers “Lyon”" and why("ZP choice") == "chooses Rome"
    assert why("ZP response") == "ends without an answer" and why("Primary anchor", 0.123) == "0.12"
    assert why("Min@n Random", 0.25) == "a distractor wins in 75%"
    assert why("GraphEval correct") == "“false”; of Juba: “false”"


def test_the_board_names_its_contexts_and_why_two_panels_differ(seen):
    words = drawing.reading(seen)
    assert all(context in words for context in seen.contexts) and len(seen.contexts) == 5
    assert "anything may follow" in words and "adds the end of the answer" in words
    crossed = seen.measures["known"].eq(False)
    assert (seen.measures["why"] != "").equals(crossed) and crossed.any()


def test_without_widgets_the_picture_is_shown(folder, monkeypatch, capsys, seen):
    """As in a run without a front end: no menu, the same picture, and what is chosen."""
    import sys

    shown = []
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.setattr("IPython.display.display", lambda one, **_: shown.append(one))
    assert explore.menu(SMALLEST, FACT, folder) == {"model_name": SMALLEST, "fact": FACT}
    assert "<img" in shown[0].data and len(shown) > len(explore.details(seen)), "the picture, then every part"


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
    assert set(fact.options) == set(explore.facts_of(explore.load_pool(), "P37")) and "France – French" in fact.options
    assert (
        chosen["fact"] == explore.facts_of(explore.load_pool(), "P37")[fact.value]
        and "official language" in board.value
    )
    fact.value = "France – Paris"
    assert "unknown fact" in board.value and board.value.count(" – ") < 6 and chosen["fact"].startswith("P37:")
    fact.value = "germany"
    assert fact.value == "Germany – German" and "Germany – official language – German" in board.value
    assert "Does the paraphrase matter?" in board.value, "everything below follows"
    relation.value = "P36"
    assert relation.value == "capital (P36)" and "capital" in board.value
    relation.value = "P99"
    assert "unknown relation" in board.value


def test_two_relations_may_begin_with_the_same_words(folder, monkeypatch):
    """The field of the fact does not change then, and the board follows nevertheless."""
    pytest.importorskip("ipywidgets")
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    monkeypatch.setattr(menus, "look", lambda pool, of, fact, folder: fact)
    monkeypatch.setattr(menus, "board_as_html", str)
    monkeypatch.setattr(menus, "details_as_html", lambda seen: "")
    name, fact = next(iter(explore.facts_of(explore.load_pool(), "P61").items()))
    chosen = explore.menu(SMALLEST, fact, folder)
    (_, relation, field), board = shown[0].children[0].children, shown[0].children[1]
    assert field.value == name == next(iter(explore.facts_of(explore.load_pool(), "P138"))) and board.value.startswith(
        "P61:"
    )
    relation.value = next(option for option in relation.options if "(P138)" in option)
    assert field.value == name and board.value.startswith("P138:") and chosen["fact"] == board.value
    first, relation.value = relation.value, "P99"
    assert "unknown relation" in board.value
    relation.value = first
    assert board.value == chosen["fact"]
