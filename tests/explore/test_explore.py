"""One fact by every measure: the numbers, the picture, and the fields above it."""

import re

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
    assert (seen.title, seen.model) == ("France – capital – Paris", SMALLEST)
    assert set(seen.framed["fact"]) == {FACT} and seen.framed["text"].str.contains("France").all()
    assert list(seen.rivals.loc[seen.rivals["gold"], "label"]) == ["Paris"]
    assert seen.judged["object"][seen.judged["holds"]].tolist() == ["Paris"]
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
    assert (known.dropna() == (values[known.notna()] > 0.5)).all()
    assert (seen.measures["why"] != "").equals(seen.measures["known"].eq(False))


@pytest.fixture
def own(tmp_path):
    """A table of one's own, with its templates."""

    def write(*rows: str) -> explore.FactPool:
        (tmp_path / "own.csv").write_text("\n".join(["subject,relation,object", *rows]))
        templates = "relation,template\nliege,Which house rules [X]?\nliege,[X] is ruled by [Y].\n"
        (tmp_path / "own.templates.csv").write_text(templates)
        return explore.load_pool("table", str(tmp_path / "own.csv"))

    return write


@pytest.mark.parametrize(
    ("rows", "fact", "said"),
    [
        (
            ["A,liege,B", *(f"x{i},P36,y{i}" for i in range(9))],
            "liege:A:B",
            "liege has 0.*score fewer",
        ),
        (["A,liege,B", "C,liege,B", "E,liege,B"], "liege:A:B", "no wrong object.*more objects"),
        (["A,liege,B", "C,liege,D"], "liege:A:E", "did you mean liege:A:B"),
    ],
)
def test_a_fact_that_cannot_be_scored_raises_one_sentence(own, folder, rows, fact, said):
    pool = own(*rows)
    with pytest.raises(ProbeError, match=said):
        explore.look(pool, explore.load_model(SMALLEST), fact, folder)


def test_a_served_model_is_looked_at_without_its_states(own, folder):
    """A judge reads hidden states and a decoder walks beams, which no server gives."""
    from tests.lm.remote.server import NAME, honest, serving

    rows = ("Ix,liege,Atreides", "Giedi,liege,Harkonnen", "Caladan,liege,Corrino")
    pool = own(*rows)
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
    values = looked.grapheval_values(pd.DataFrame(rows, columns=columns))
    assert list(values.values()) == [0.6, 0.0, 0.8, 1.0]


NAMES = ["France – Paris", "Niger – Niamey", "Nigeria – Abuja"]
NAMES = {name: f"P36:{name.replace(' – ', ':')}" for name in NAMES} | {"New York – Albany": "x2"}


@pytest.mark.parametrize(
    ("typed", "fits"),
    [
        ("france", "France – Paris"),
        ("france-paris", "France – Paris"),  # with the dash of a keyboard
        ("Niger", "Niger – Niamey"),  # a whole subject goes before a part of another one
        ("n", "4 facts match 'n': France – Paris, Niger – Niamey, Nigeria – Abuja and 1 more."),
        ("Frence – Paris", "unknown fact 'Frence – Paris'; did you mean France – Paris"),
    ],
)
def test_a_part_of_a_name_is_enough_if_one_fits(typed, fits):
    find = lambda: menus.find("fact", typed, NAMES)
    if fits in NAMES:
        assert find() == fits
        return
    with pytest.raises(ProbeError, match=re.escape(fits)):
        find()


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
