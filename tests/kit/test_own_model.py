"""A real model and six facts of one's own, as a researcher runs them: every notebook that asks
about single facts is filled, from their model and facts alone."""

import re

import pytest

from probelib.errors import ProbeError
from probelib.lm.internals.folders import gguf_file
from probelib.runner import plan
from tests.conftest import run

pytestmark = pytest.mark.slow
FACTS = """relation,relation_name,subject,object,aliases
P36,capital,France,Paris,
P36,capital,Japan,Tokyo,Tōkyō
P17,country,Eiffel Tower,France,
P17,country,Mount Fuji,Japan,
drink,national drink,Scotland,whisky,Scotch|Scotch whisky
drink,national drink,Mexico,tequila,
"""
TEMPLATES = """relation,template
drink,What is the national drink of [X]?
drink,Which drink is [X] known for?
drink,The national drink of [X] is
drink,[X] is known for its [Y].
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The folder of the facts; their relation "drink" is unknown to the atlas."""
    try:
        gguf_file("smollm2-135m")
    except ProbeError as why:
        pytest.skip(str(why))
    folder = tmp_path_factory.mktemp("own")
    (folder / "facts.csv").write_text(FACTS, encoding="utf-8")
    (folder / "facts.templates.csv").write_text(TEMPLATES, encoding="utf-8")
    return folder


FEWEST = {"rated_facts": 3, "n_sentences": 2, "n_distractors": 3, "next_tokens": 5, "widths": [1]}
MONITOR = ("sec3_instability", "sec4_anchors", "sec5_results", "sec6_discussion")
SENTENCES = ("sec4_2_humans", "sec4_3_robustness", "sec5_exploration")
GIVEN = {  # notebook -> what its six facts need
    **{f"monitor/{name}": {"format": "shots"} for name in MONITOR},
    "distractors/sec4_1_retrieval": {},
    **{f"distractors/{name}": {"settings": FEWEST} for name in SENTENCES},
    "zplke/sec3_design": {
        "relation": "P36", "n_test": 1,
        "settings": {"shots": [1], "n_sequence": 2, "n_replaced": 0, "star": 1},
    },
    "zplke/sec4_1_prompts": {"n_facts": 1, "settings": {"n_examples": 1}},
    "zplke/sec4_2_models": {"n_facts": 1, "settings": {"n_examples": 1}},
    "grapheval/sec3_method": None,
    "grapheval/sec4_results": None,
    "grapheval/appA_judge": None,
    "explore": {},
}  # fmt: skip


@pytest.mark.parametrize("notebook", GIVEN)
def test_every_artifact_is_about_the_own_model_alone(own, notebook):
    table, given = own / "facts.csv", GIVEN[notebook]
    values = {"graph": f"table:{table}"} if given is None else {"data": "table", "folder": table}
    words = [f"{name}={value}" for name, value in (values | (given or {})).items()]
    run(own, "--profile", "mine", "--only", notebook, "--models", "smollm2-135m", "--set", *words)
    (step,) = [step for step in plan.read().steps if step.notebook == notebook]
    for artifact in step.makes:
        csv = (own / "figures/mine" / artifact).with_suffix(".csv").read_text(encoding="utf-8")
        assert "atlas-" not in csv, artifact
    page = (own / "runs/mine/report.html").read_text(encoding="utf-8")
    assert not re.search(r">(nan|NaN|inf)<", page) and "This page failed" not in page
