"""The plan is read, checked and ordered before anything starts."""

from pathlib import Path

import pytest

from probelib import parameters
from probelib.errors import ProbeError
from probelib.runner import plan
from tests.conftest import PROFILE

NOTEBOOKS = {
    "00_tour": [PROFILE],
    "monitor/sec4": [PROFILE + "\nseed = 0  # int: of the draw\nn_facts = 3  # int or str: how many"],
    "monitor/sec5": [PROFILE + "\nmodels = ['a']  # list of str: names\nquantize = None  # str or None: 8bit, 4bit"],
}
STEPS = [
    {"notebook": "00_tour", "title": "A tour"},
    {
        "notebook": "monitor/sec4",
        "makes": ["monitor/table3"],
        "measured": ["monitor/table3"],
        "parameters": {"common": {"seed": 1}, "smoke": {"seed": 2}},
    },
    {
        "notebook": "monitor/sec5",
        "needs": ["monitor/sec4"],
        "makes": ["monitor/table4", "monitor/figure11"],
    },
]
NONE = type(None)
PROFILES = {"smoke": {"n_facts": 3, "models": ["a", "b"]}, "atlas": {"n_facts": "panel"}}


@pytest.fixture
def changed(make_plan):
    """Reads the plan above with one step's entry changed; index 1 is monitor/sec4."""

    def read(index: int = 1, profiles: dict = PROFILES, notebooks: dict = NOTEBOOKS, **entry):
        steps = [*STEPS[:index], {**STEPS[index], **entry}, *STEPS[index + 1 :]]
        return plan.read(make_plan(notebooks, steps, profiles))

    return read


def names(steps):
    return [step.notebook for step in steps]


def test_steps_keep_the_files_order_and_have_titles(changed):
    whole = changed()
    assert names(whole.steps) == ["00_tour", "monitor/sec4", "monitor/sec5"]
    assert [step.title for step in whole.steps] == ["A tour", "monitor/sec4", "monitor/sec5"]


def test_only_takes_notebooks_papers_and_artifacts_and_names_the_nearest(changed):
    whole = changed()
    for only, expected in (
        (["monitor"], ["monitor/sec4", "monitor/sec5"]),
        (["monitor/table3"], ["monitor/sec4"]),
        (["monitor/figure11"], ["monitor/sec4", "monitor/sec5"]),  # and what it needs
        (["monitor/sec4", "00_tour"], ["00_tour", "monitor/sec4"]),
    ):
        assert names(plan.with_needs(whole, plan.matching(whole, only))) == expected
    for wrong, near in (("monitr", "monitor"), ("monitor/tabel4", "monitor/table4")):
        with pytest.raises(ProbeError, match=f"'{wrong}'; did you mean {near}"):
            plan.matching(whole, [wrong])


def test_the_later_setting_wins(changed):
    whole = changed()
    smoke = plan.settings(whole, whole.steps, "smoke")
    assert smoke == {
        "00_tour": {"profile": "smoke"},
        "monitor/sec4": {"profile": "smoke", "n_facts": 3, "seed": 2},
        "monitor/sec5": {"profile": "smoke", "models": ["a", "b"]},
    }
    atlas = plan.settings(whole, whole.steps, "atlas", {"models": ["c"]})
    assert atlas["monitor/sec4"] == {"profile": "atlas", "n_facts": "panel", "seed": 1}
    assert atlas["monitor/sec5"] == {"profile": "atlas", "models": ["c"]}


def test_what_the_command_line_sets_must_reach_a_notebook(changed):
    whole = changed()
    sec4 = [step for step in whole.steps if step.notebook == "monitor/sec4"]
    with pytest.raises(ProbeError, match=r"unknown parameter \(none of the selected notebooks has it\) 'models'"):
        plan.settings(whole, sec4, "smoke", {"models": ["a"]})
    with pytest.raises(ProbeError, match="'n_fact'; did you mean n_facts"):
        plan.settings(whole, sec4, "smoke", {"n_fact": 5})


def test_what_the_command_line_sets_reaches_settings_that_hold_it(make_plan):
    cells = {"a": [PROFILE + "\nseed = 0"], "b": [PROFILE + "\nsettings = {'seed': 0, 'n': 2}"]}
    steps = [{"notebook": "a"}, {"notebook": "b", "parameters": {"smoke": {"settings": {"n": 1}}}}]
    whole = plan.read(make_plan(cells, steps))
    chosen = plan.settings(whole, whole.steps, "smoke", {"seed": 3})
    assert chosen["a"]["seed"] == 3 and chosen["b"]["settings"] == {"n": 1, "seed": 3}
    assert plan.settings(whole, whole.steps, "atlas", {"n": 5})["b"]["settings"] == {"seed": 0, "n": 5}


def test_a_copy_that_jupyter_keeps_is_no_notebook_to_choose(make_plan):
    made = make_plan({"a": [PROFILE], ".ipynb_checkpoints/a-checkpoint": [PROFILE]}, [{"notebook": "aa"}])
    with pytest.raises(ProbeError, match=r"'aa'.* Known: a\.$"):
        plan.read(made)


def test_every_seed_of_the_kit_is_set_from_the_command_line():
    whole = plan.read()
    words = ('"seed: int', '\\"seed\\": 0')
    takes = [step for step in whole.steps if any(word in step.path.read_text() for word in words)]
    settings = plan.settings(whole, takes, "atlas", {"seed": 3})
    for notebook, values in settings.items():
        assert 3 in (values.get("seed"), values.get("settings", {}).get("seed")), notebook
    assert {name.split("/")[0] for name in settings} >= {"monitor", "zplke", "distractors", "grapheval", "beyond"}


@pytest.mark.parametrize(
    "entry, message",
    [
        ({"need": []}, r"unknown key \(plan.yaml, monitor/sec4\) 'need'; did you mean needs"),
        ({"notebook": "monitor/sec_4"}, r"unknown notebook .*'monitor/sec_4'; did you mean monitor/sec4"),
        ({"notebook": "00_tour", "parameters": {}}, "duplicate notebook 00_tour|notebook above"),
        ({"needs": ["monitor/sec3"]}, r"notebook above \(plan.yaml, monitor/sec4, needs\) 'monitor/sec3'"),
        ({"needs": "00_tour"}, "needs: expected a list, got '00_tour'"),
        ({"needs": ["monitor/sec5"]}, "unknown notebook above .plan.yaml, monitor/sec4, needs. 'monitor/sec5'"),
        ({"needs": ["monitor/sec4"]}, "unknown notebook above"),
        ({"makes": ["monitor/table4"], "measured": []}, "duplicate artifact monitor/table4"),
        ({"makes": ["table*"], "measured": []}, "'table\\*' is not an artifact's name"),
        ({"measured": ["monitor/table2"]}, "'monitor/table2'; did you mean monitor/table3"),
        ({"timeout_s": "1h"}, "timeout_s is '1h'"),
        ({"parameters": {"common": {"sed": 1}}}, r"\(plan.yaml, monitor/sec4, common\) 'sed'; did you mean seed"),
        ({"parameters": {"smok": {}}}, "'smok'; did you mean smoke"),
        ({"parameters": {"smoke": 3}}, "expected `name: value` pairs, got 3"),
    ],
)
def test_mistakes_in_an_entry(changed, entry, message):
    with pytest.raises(ProbeError, match=message):
        changed(**entry)


@pytest.mark.parametrize(
    "value, message",
    [
        ("1", "'1' is of type str, the notebook takes int"),
        (True, "True is of type bool"),
        (1.0, "1.0 is of type float"),
        (None, "null is null"),
        ([1], "the notebook takes int"),
    ],
)
def test_a_value_of_the_wrong_type_stops_before_anything_starts(changed, value, message):
    whole = changed(parameters={"smoke": {"seed": value}})
    plan.settings(whole, whole.steps, "atlas")
    with pytest.raises(ProbeError, match=f"plan.yaml, monitor/sec4, smoke: seed: .*{message}|{message}"):
        plan.settings(whole, whole.steps, "smoke")


def test_a_profile_value_that_no_notebook_takes(changed):
    with pytest.raises(ProbeError, match=r"profile smoke; no notebook has it\) 'n_fact'; did you mean n_facts"):
        changed(profiles={"smoke": {"n_fact": 3}})


@pytest.mark.parametrize(
    "text, message",
    [
        ("steps: [", "is not YAML: .*line 1"),
        ("profiles:\n  smoke: {seed: 1}\nsteps: []\nprofiles: {}\n", "duplicate key 'profiles'; keep one .*line 4"),
        ("profiles:\n  smoke: {seed: 1, seed: 2}\n", "duplicate key 'seed'; keep one .*line 2"),
        ("- a", "expected `name: value` pairs"),
        ("step: []", "did you mean steps"),
        ("steps: [{makes: [a/b]}]", "unknown notebook"),
        ("steps: [a]", "expected a list"),
    ],
)
def test_mistakes_in_the_file(tmp_path, text, message):
    file = tmp_path / "plan.yaml"
    file.write_text(text)
    with pytest.raises(ProbeError, match=message):
        plan.read(file)
    with pytest.raises(ProbeError, match="cannot read the plan"):
        plan.read(Path(tmp_path, "none.yaml"))


def declared(make_plan, source):
    return parameters.declared(make_plan({"a": [source]}, []).parent / "a.ipynb")


def test_declared_parameters_and_their_types(make_plan):
    lines = {
        "a = 3": {int},
        "a = -1.5  # float: x = 3": {float},
        'a = "k=v # no comment"  # str: text': {str},
        'a: int | str = "panel"  # help': {int, str},
        'a = "all"  # int or str: how many': {int, str},
        "a = None  # str or None: a text, or none": {str, type(None)},
        "a = None  # list: relation ids; None for all": {list, type(None)},
        "a = None  # anything": set(),
        'a = ["x",\n     "y"]  # list of str: names': {list},
        "a: list[str] = []": {list},
        'a = {"a": 1}': {dict},
        "a = True": {bool},
        'a: "int or str" = "panel"  # panel, all, or a number per relation': {int, str},
        'a: "list or None" = None  # int: what an annotation says counts': {list, type(None)},
        'a: "list[str] or None" = None': {list, type(None)},
    }
    named = [f"a{i}{line[1:]}" for i, line in enumerate(lines)]
    assert declared(make_plan, "\n".join(["# what to run", *named])) == {
        f"a{i}": t for i, t in enumerate(lines.values())
    }


def test_an_annotation_of_no_known_type_is_refused(make_plan):
    with pytest.raises(ProbeError, match="unknown type .*'strng'; did you mean str"):
        declared(make_plan, 'a: "int or strng" = 1')


@pytest.mark.parametrize(
    "source, message",
    [
        ("a = 1\nb = 2 * a", "'b = 2 \\* a' is not `name = literal`"),
        ("import os", "is not `name = literal`"),
        ("a: int", "is not `name = literal`"),
        ("a, b = 1, 2", "is not `name = literal`"),
        ("a = (", "line 1"),
    ],
)
def test_a_parameters_cell_holds_literals_only(make_plan, source, message):
    with pytest.raises(ProbeError, match=message):
        declared(make_plan, source)


def test_a_notebook_needs_one_parameters_cell_with_profile(changed, tmp_path):
    with pytest.raises(ProbeError, match="00_tour.ipynb: the parameters cell has no `profile`"):
        changed(notebooks={**NOTEBOOKS, "00_tour": ["seed = 0"]})
    notebook = tmp_path / "x.ipynb"
    notebook.write_text('{"cells": [{"cell_type": "code", "metadata": {}, "source": []}]}')
    with pytest.raises(ProbeError, match="0 cells tagged `parameters`"):
        parameters.declared(notebook)
    notebook.write_text("{}")
    with pytest.raises(ProbeError, match="is not a notebook"):
        parameters.declared(notebook)


def test_an_int_passes_for_a_float_and_none_takes_anything():
    parameters.check(3, {float}, "here")
    for value in (None, "8bit", 3, [1], {}):
        parameters.check(value, set(), "here")
    with pytest.raises(ProbeError):
        parameters.check(object(), set(), "here")
    said = r"relations: 'P19,P101' is of type str.* takes None or list. A list is written \[P19,P101\]"
    with pytest.raises(ProbeError, match=said):
        parameters.check("P19,P101", {list, type(None)}, "relations")


def test_a_plans_relations_are_those_of_its_own_data(make_plan):
    cell = PROFILE + "\ndata = 'atlas'  # str: whose\nrelations = None  # list: which"
    steps = [{"notebook": name, "parameters": {"smoke": {"relations": ["P36"]}}} for name in ("a", "b")]
    whole = plan.read(make_plan({"a": [cell], "b": [cell.replace("data", "graph")]}, steps))
    settings = lambda given: plan.settings(whole, whole.steps, "smoke", given).values()
    relations = lambda **given: [values.get("relations") for values in settings(given)]
    assert relations() == [["P36"], ["P36"]]
    assert relations(data="table") == [None, ["P36"]]  # b asks the atlas, whatever the others ask
    assert relations(data="atlas") == [["P36"], ["P36"]]
    assert relations(data="table", relations=["liege"]) == [["liege"], ["liege"]]


@pytest.mark.parametrize(
    ("typed", "types", "value"),
    [
        *((text, {int, str}, text) for text in ("010", "1:30", "0b11", "1_0", "0x10", "1e400", "No")),
        ("50", {int, str}, 50), ("-3", {int}, -3), ("1e-3", {float}, 0.001), ("true", {bool}, True),
        ("null", {int, NONE}, None), ("None", {list, NONE}, "None"), ("1984", {str}, "1984"),
        ("12:30:45", {str, NONE}, "12:30:45"), ("#1 Crush", {str}, "#1 Crush"), ("[a]", {str}, "[a]"),
        ("null", {str, NONE}, None), ("null", {str}, "null"), ("[P36, 010, 7]", {list}, ["P36", "010", 7]),
        ("{a: [b, null], c: 1.5}", {dict}, {"a": ["b", None], "c": 1.5}), ("2020-13-01", set(), "2020-13-01"),
    ],
)  # fmt: skip
def test_a_typed_value_is_text_unless_json_has_such_a_number(typed, types, value):
    found = parameters.from_text(typed, types)
    assert found == value and type(found) is type(value)


def test_messages_show_what_was_typed():
    for value, words in (("010", "'010' is of type str"), (None, "null is null"), ("True", "small letters")):
        with pytest.raises(ProbeError, match=words):
            parameters.check(value, {int}, "n")


def test_an_empty_list_for_a_notebook_that_is_not_selected_is_fine(make_plan):
    """``--only a --set tuned=[]``: there is nothing to leave out."""
    cells = {"a": [PROFILE], "b": [PROFILE + "\ntuned = []  # list"]}
    whole = plan.read(make_plan(cells, [{"notebook": "a"}, {"notebook": "b"}]))
    assert plan.settings(whole, whole.steps[:1], "smoke", {"tuned": []}) == {"a": {"profile": "smoke"}}
    for given in ({"tuned": ["x"]}, {"tunde": []}):
        with pytest.raises(ProbeError, match="none of the selected notebooks has it"):
            plan.settings(whole, whole.steps[:1], "smoke", given)


def test_a_folder_goes_to_the_notebooks_with_other_data(make_plan):
    cell = PROFILE + "\ndata = 'atlas'  # str\nfolder = None  # str"
    steps = [{"notebook": "a"}, {"notebook": "b", "parameters": {"smoke": {"data": "table"}}}]
    whole = plan.read(make_plan({"a": [cell], "b": [cell]}, steps))
    settings = plan.settings(whole, whole.steps, "smoke", {"folder": "x.csv"})
    assert "folder" not in settings["a"] and settings["b"]["folder"] == "x.csv"
    with pytest.raises(ProbeError, match="--set data=table folder=x.csv"):
        plan.settings(whole, whole.steps[:1], "smoke", {"folder": "x.csv"})
