"""One fact by every measure: the numbers, the picture, and the fields above it."""

import numpy as np
import pytest

from probelib import explore, facts
from probelib.errors import ProbeError
from probelib.explore import board
from probelib.monitor import measures as monitor
from probelib.monitor import scores as monitor_scores
from probelib.organisms import taught
from probelib.prompts import with_contexts

FACT = "P36:France:Paris"
SMALLEST = "atlas-neox-0.6m"  # the smallest with an instruction-tuned partner


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("explore")


@pytest.fixture(scope="module")
def seen(folder):
    return explore.look(explore.load_pool(), SMALLEST, FACT, folder)


def test_every_part_is_about_the_fact(seen):
    assert (seen.title, seen.model) == ("France – capital – Paris", SMALLEST)
    assert set(seen.framed["fact"]) == {FACT} and seen.framed["text"].str.contains("France").all()
    assert list(seen.options.loc[seen.options["gold"], "label"]) == ["Paris"]
    assert seen.judged["object"][seen.judged["holds"]].tolist() == ["Paris"]
    exposures = taught.manifest(SMALLEST).set_index("fact").at[FACT, "exposures"]
    assert seen.taught[list(taught.FORMS)].sum() == exposures and "wrong_exposures" in seen.taught


def test_the_numbers_are_those_of_the_papers(seen, folder):
    """MONITOR is that of section 5 on this fact; accuracy is counted from the prompts shown."""
    values = seen.measures.set_index("measure")["value"]
    panel = facts.draw_distractors(facts.pick(explore.load_pool().now, [FACT]), facts.atlas())
    scores = monitor_scores.score([SMALLEST], panel, folder)[SMALLEST]
    distances = monitor.measure_facts(scores, with_contexts(panel)).iloc[0]
    assert values["Primary anchor"] == pytest.approx(distances["pbar"])
    assert values["MONITOR"] == pytest.approx(-distances["root"] / distances["pbar"])
    plain = seen.framed[(seen.framed["context"] == "none") & seen.framed["template"].isin((1, 2))]
    assert values["Accuracy over paraphrases"] == plain["correct"].mean()
    known = seen.measures.set_index("measure")["known"]
    assert known[["MONITOR", "Avg@n Random"]].isna().all()
    assert (known.dropna() == (values[known.notna()] > 0.5)).all()
    wrong = known.eq(False) & known.index.isin(["Base accuracy", "ZP response"])  # of their texts
    assert (seen.measures["why"] != "").tolist() == wrong.tolist()


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
        (["A,liege,B", "x,P36,y"], "liege:A:B", "liege has 0.*score fewer"),
        (["A,liege,B", "C,liege,B", "E,liege,B"], "liege:A:B", "no wrong object.*more objects"),
        (["A,liege,B", "C,liege,D"], "liege:A:E", "did you mean liege:A:B"),
    ],
)
def test_a_fact_that_cannot_be_scored_raises_one_sentence(own, folder, rows, fact, said):
    pool = own(*rows)
    with pytest.raises(ProbeError, match=said):
        explore.look(pool, SMALLEST, fact, folder)


def test_a_served_model_is_looked_at_without_its_decoder(own, folder):
    """A decoder walks beams, which no server gives; there the model itself answers statements."""
    from tests.lm.remote.server import NAME, honest, serving

    pool = own("Ix,liege,Atreides", "Giedi,liege,Harkonnen", "Caladan,liege,Corrino")
    fact = pool.now.facts["fact"][0]
    with serving(honest) as (url, _):
        there = explore.look(pool, f"{url}#{NAME}", fact, folder)
    here = explore.look(pool, NAME, fact, folder)
    server, local = (one.measures.set_index("measure")["value"] for one in (there, here))
    both = server.index.intersection(local.index)
    assert set(local.index) - set(both) == {"Precision@n", "ROUGE-L"}
    np.testing.assert_allclose(server[both], local[both], atol=1e-3)


def test_the_fields_follow_each_other(folder, monkeypatch, seen):
    """Another relation lists its facts; an unknown name is one sentence; the choice stays."""
    shown = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    monkeypatch.setattr(board, "as_html", lambda seen: f"{seen.model} {seen.fact}")
    chosen = explore.menu(SMALLEST, FACT, folder, True, explore.load_pool())
    (model, relation, fact), page = shown[0].children[0].children, shown[0].children[1]
    assert (relation.value, fact.value) == ("capital (P36)", "France – Paris")
    assert page.value == f"{SMALLEST} {FACT}" and "Germany – Berlin" in fact.options
    model.value = "no-such-model"
    assert "unknown model" in page.value and chosen == {"model_name": SMALLEST, "fact": FACT}
    model.value = SMALLEST
    relation.value = "official language (P37)"
    assert chosen["fact"].startswith("P37:")
    assert set(fact.options) == set(explore.facts_of(explore.load_pool(), "P37"))
    fact.value = "Germany – German"
    assert page.value.endswith("P37:Germany:German")
    relation.value = "P99"
    assert "unknown relation" in page.value and chosen["fact"] == "P37:Germany:German"


NAMES = ["France – Paris", "Niger – Niamey", "Nigeria – Abuja"]
NAMES = {name: f"P36:{name.replace(' – ', ':')}" for name in NAMES} | {"New York – Albany": "x2"}


@pytest.mark.parametrize(
    ("typed", "fits"),
    [
        ("france-paris", "France – Paris"),  # with the dash of a keyboard
        ("Niger", "Niger – Niamey"),
        ("n", "Niger – Niamey"),  # the first that begins so
        ("Frence – Paris", "unknown fact 'Frence – Paris'; did you mean France – Paris"),
    ],
)
def test_the_beginning_of_a_name_is_enough(typed, fits):
    try:
        found = board.find("fact", typed, NAMES)
    except ProbeError as error:
        found = str(error)
    assert found.startswith(fits)
