"""The plan is read, checked and ordered before anything starts."""

from pathlib import Path

import pytest

from probelib import parameters
from probelib.errors import ProbeError
from probelib.runner import plan
from tests.conftest import PROFILE

NOTEBOOKS = {
    "00_tour": [PROFILE],
    "monitor/sec4": [PROFILE + '\nseed = 0\nn_facts: "int or str" = 3'],
    "monitor/sec5": [PROFILE + '\nmodels: list[str] = ["a"]\nquantize: "str or None" = None'],
}
SEC4 = {"notebook": "monitor/sec4", "makes": ["monitor/table3"], "measured": ["monitor/table3"]}
SEC4 |= {"parameters": {"common": {"seed": 1}, "smoke": {"seed": 2}}}
SEC5 = {"notebook": "monitor/sec5", "needs": ["monitor/sec4"]}
SEC5 |= {"makes": ["monitor/table4", "monitor/figure11"]}
PROFILES = {"smoke": {"n_facts": 3, "models": ["a", "b"]}, "atlas": {"n_facts": "panel"}}
NONE = type(None)


@pytest.fixture
def changed(make_plan):
    """Reads a plan of three steps, the entry of monitor/sec4 changed."""

    def read(own: dict = PROFILES, notebooks: dict = NOTEBOOKS, **entry):
        steps = [{"notebook": "00_tour", "title": "A tour"}, SEC4 | entry, SEC5]
        return plan.read(make_plan(notebooks, steps, own))

    return read


def names(steps):
    return [step.notebook for step in steps]


def test_only_takes_notebooks_papers_and_artifacts_and_names_the_nearest(changed):
    whole = changed()
    assert [step.title for step in whole.steps] == ["A tour", "monitor/sec4", "monitor/sec5"]
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


def test_a_papers_name_leaves_out_what_the_profile_lacks(changed):
    of = lambda name, profile: plan.matching(changed(profiles=["smoke"]), [name], profile)
    assert of("monitor", "smoke") == {"monitor/sec4", "monitor/sec5"}
    assert of("monitor", "atlas") == {"monitor/sec5"}
    assert of("monitor/table3", "atlas") == of("monitor/sec4", "atlas") == {"monitor/sec4"}


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


def test_mine_begins_with_the_default_profile(make_plan):
    cell = PROFILE + "\nn = 1\nn_facts = 1\nseed = 0\nsettings = {}"
    groups = {"atlas": {"n": 4, "settings": {"a": 1, "b": 1}}, "mine": {"settings": {"b": 2}}}
    profiles = {"atlas": {"n_facts": 9, "seed": 5}, "mine": {"n_facts": 2}}
    file = make_plan({"a": [cell]}, [{"notebook": "a", "parameters": groups}], profiles)
    found = plan.settings(plan.read(file), plan.read(file).steps, "mine")["a"]
    wanted = {"profile": "mine", "n": 4, "n_facts": 2, "seed": 5, "settings": {"a": 1, "b": 2}}
    assert found == wanted


def test_what_the_command_line_sets_must_reach_a_notebook(changed):
    whole = changed()
    for steps, given, message in (
        (whole.steps[1:2], {"models": ["a"]}, "none of the selected notebooks has it.* 'models'"),
        (whole.steps, {"n_fact": 5}, "'n_fact'; did you mean n_facts"),
        (whole.steps, {"profile": "atlas"}, "chosen with --profile"),
        (whole.steps[:1], {"models": ["x"]}, "none of the selected notebooks has it"),
    ):
        with pytest.raises(ProbeError, match=message):
            plan.settings(whole, steps, "smoke", given)
    # nothing to leave out in a notebook that is not selected
    assert plan.settings(whole, whole.steps[:1], "smoke", {"models": []})
    with pytest.raises(ProbeError, match="unknown profile 'smok'; did you mean smoke"):
        plan.settings(whole, whole.steps, "smok")


def test_what_the_command_line_sets_reaches_settings_that_hold_it(make_plan):
    cells = {"a": [PROFILE + "\nseed = 0"], "b": [PROFILE + "\nsettings = {'seed': 0, 'n': 2}"]}
    groups = {"smoke": {"settings": {"n": 1, "studied": "x"}}}
    steps = [{"notebook": "a"}, {"notebook": "b", "parameters": groups}]
    whole = plan.read(make_plan(cells, steps))
    chosen = plan.settings(whole, whole.steps, "smoke", {"seed": 3, "studied": None})
    assert chosen["a"]["seed"] == 3
    assert chosen["b"]["settings"] == {"n": 1, "seed": 3, "studied": None}
    atlas = plan.settings(whole, whole.steps, "atlas", {"n": 5})
    assert atlas["b"]["settings"] == {"seed": 0, "n": 5}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"need": []}, r"unknown key \(plan.yaml, monitor/sec4\) 'need'; did you mean needs"),
        ({"notebook": "monitor/sec_4"}, "'monitor/sec_4'; did you mean monitor/sec4"),
        ({"notebook": "../sec4"}, "'../sec4'"),
        ({"needs": ["monitor/sec3"]}, "name in needs .*monitor/sec4. 'monitor/sec3'"),
        ({"needs": "00_tour"}, "needs: expected list, got '00_tour'"),
        ({"makes": ["monitor/table4"], "measured": []}, "duplicate artifact monitor/table4"),
        ({"makes": ["table*"], "measured": []}, "artifact 'table\\*' is part of a path"),
        ({"measured": ["monitor/table2"]}, "'monitor/table2'; did you mean monitor/table3"),
        ({"parameters": {"common": {"sed": 1}}}, "monitor/sec4, common. 'sed'; did you mean seed"),
    ],
)  # fmt: skip
def test_mistakes_in_an_entry(changed, entry, message):
    with pytest.raises(ProbeError, match=message):
        changed(**entry)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps: [", "is not YAML: .*line 1"),
        ("steps: []\nprofiles: {}\nsteps: []\n", "duplicate key 'steps'; keep one .*line 3"),
        ("profiles:\n  smoke: {seed: 1, seed: 2}\n", "duplicate key 'seed'; keep one .*line 2"),
        ("profiles:\n  smoke: {n_fact: 3}\n", "plan.yaml, profiles, smoke. 'n_fact'"),
        ("profiles:\n  ../x: {}\n", "profile '../x' is part of a path"),
        ("- a", "expected `name: value` pairs"),
        ("steps: [{makes: [a/b]}]", "unknown notebook"),
        ("steps: [a]", "expected `name: value` pairs, got 'a'"),
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
        "a = -1.5  # x = 3": {float},
        'a = "k=v # no comment"  # a text': {str},
        'a: int | str = "panel"  # help': {int, str},
        'a: "int or str" = "panel"  # panel, all, or a number per relation': {int, str},
        "a = None  # anything": set(),
        'a = ["x",\n     "y"]  # names': {list},
        "a: list[str] = []": {list},
        'a = {"a": 1}': {dict},
        "a = True": {bool},
        'a: "list[str] or None" = None': {list, NONE},
    }
    named = [f"a{i}{line[1:]}" for i, line in enumerate(lines)]
    expected = {f"a{i}": types for i, types in enumerate(lines.values())}
    assert declared(make_plan, "\n".join(["# what to run", *named])) == expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('a: "int or strng" = 1', "unknown type .*'strng'; did you mean str"),
        ("a = 1\nb = 2 * a", "'b = 2 \\* a' is not `name = literal`"),
        ("a, b = 1, 2", "is not `name = literal`"),
        ("a = (", "line 1"),
    ],
)
def test_a_parameters_cell_holds_literals_only(make_plan, source, message):
    with pytest.raises(ProbeError, match=message):
        declared(make_plan, source)


def test_a_notebook_needs_one_parameters_cell_with_profile(changed, tmp_path):
    with pytest.raises(ProbeError, match="00_tour.ipynb: the parameters cell has no `profile`"):
        changed(notebooks=NOTEBOOKS | {"00_tour": ["seed = 0"]})
    notebook = tmp_path / "x.ipynb"
    cell = '{"cells": [{"cell_type": "code", "metadata": {}, "source": []}]}'
    for text, message in ((cell, "0 cells tagged `parameters`"), ("{}", "is not a notebook")):
        notebook.write_text(text)
        with pytest.raises(ProbeError, match=message):
            parameters.declared(notebook)


def test_relations_and_folders_go_with_the_data(make_plan):
    """A plan's relations are the atlas's; a folder is for the notebooks with other data."""
    cell = PROFILE + "\ndata = 'atlas'"
    cell += "\nrelations: 'list or None' = None\nfolder: 'str or None' = None"
    steps = [{"notebook": n, "parameters": {"smoke": {"relations": ["P36"]}}} for n in ("a", "b")]
    whole = plan.read(make_plan({"a": [cell], "b": [cell.replace("data", "graph")]}, steps))
    settings = lambda **given: plan.settings(whole, whole.steps, "smoke", given)
    relations = lambda **given: [v.get("relations") for v in settings(**given).values()]
    assert relations() == relations(data="atlas") == [["P36"], ["P36"]]
    assert relations(data="table") == [None, ["P36"]]  # b asks the atlas, whatever the others ask
    assert relations(data="table", relations=["liege"]) == [["liege"], ["liege"]]
    assert settings(data="table", folder="x")["a"]["folder"] == "x"
    assert "folder" not in settings(folder="x")["a"]
    with pytest.raises(ProbeError, match="--set data=table folder=x.csv"):
        plan.settings(whole, whole.steps[:1], "smoke", {"folder": "x.csv"})


@pytest.mark.parametrize(
    ("typed", "types", "value"),
    [
        *((text, {int, str}, text) for text in ("010", "1:30", "0b11", "1_0", "1e400", "No")),
        ("50", {int, str}, 50), ("-3", {int}, -3), ("1e-3", {float}, 0.001), ("true", {bool}, True),
        ("null", {int, NONE}, None), ("None", {list, NONE}, "None"), ("1984", {str}, "1984"),
        ("12:30:45", {str, NONE}, "12:30:45"), ("#1 Crush", {str}, "#1 Crush"),
        ("null", {str, NONE}, None), ("null", {str}, "null"), ("2020-13-01", set(), "2020-13-01"),
        ("[P36, 010, 7]", {list}, ["P36", "010", 7]),
        ("{a: [b, null], c: 1.5}", {dict}, {"a": ["b", None], "c": 1.5}),
    ],
)  # fmt: skip
def test_a_typed_value_is_text_unless_json_has_such_a_number(typed, types, value):
    found = parameters.from_text(typed, types)
    assert found == value and type(found) is type(value)


def test_a_mapping_that_merged_another_is_merged():
    """Its own values win over those it merged; a key that is written twice is refused."""
    text = "a: &a {x: 1, y: 2}\nb: &b {<<: *a, x: 3}\nc: {<<: *b, z: 4}\nd: {<<: [*a, *b]}"
    read = parameters.parse_yaml(text)
    assert read["b"] == {"x": 3, "y": 2} and read["c"] == {"x": 3, "y": 2, "z": 4}
    with pytest.raises(ProbeError, match="duplicate key 'y'"):
        parameters.parse_yaml("a: &a {x: 1}\nb: {<<: *a, y: 1, y: 2}")


@pytest.mark.parametrize(
    ("value", "allowed", "message"),
    [
        ("010", {int}, "'010' is of type str, the notebook takes int"),
        (None, {int}, "None is of type NoneType"),
        ("True", {int}, "null, true, false in small letters"),
        (True, {int}, "True is of type bool"),
        (1.0, {int}, "1.0 is of type float"),
        (object(), set(), "is of type object"),
        ("P19,P101", {list, NONE}, r"takes None or list. A list is written \[a, b\]"),
    ],
)
def test_a_value_of_the_wrong_type(changed, value, allowed, message):
    parameters.check(3, {float}, "n")
    for fine in (None, "8bit", 3, [1], {}):
        parameters.check(fine, set(), "n")
    with pytest.raises(ProbeError, match=f"^n: .*{message}"):
        parameters.check(value, allowed, "n")


def test_a_wrong_value_of_the_plan_is_named_with_its_place(changed):
    whole = changed(parameters={"smoke": {"seed": "1"}})
    plan.settings(whole, whole.steps, "atlas")
    said = "plan.yaml, monitor/sec4, smoke: seed: '1' is of type str"
    with pytest.raises(ProbeError, match=said):
        plan.settings(whole, whole.steps, "smoke")
