"""The plan: the notebooks, the needs, artifacts and parameters of each.

``notebooks/plan.yaml``::

    profiles:                            # values for every notebook that has a parameter of that name
      smoke: {n_facts: 3}
    tolerances: {scores: 1.0e-4, intervals: 0.05}    # of `run_all.sh verify`, see there
    steps:
      - notebook: monitor/sec5_results   # a file beside the plan, without .ipynb
        title: "MONITOR, section 5"      # default: the notebook's name
        needs: [monitor/sec4_anchors]    # notebooks whose products this one reads
        scores: [monitor.score]          # what workers score in advance: entries of REQUESTS in probelib.monitor.scores
        makes: [monitor/table4]          # artifacts: figures/<profile>/monitor/table4.*
        measured: []                     # those of `makes` with seconds or memory, which differ from run to run
        fragile: {}                      # those that depend on the last bit -> tolerance in place of tolerances.scores
        timeout_s: 600                   # for the whole notebook; default: none
        parameters: {common: {seed: 0}, smoke: {}}

Later values win: the profile's, the step's ``common`` ones, the step's for the profile, the command line's. ``profile`` itself is
always passed.
"""

import difflib
import importlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from probelib import parameters, paths
from probelib.errors import ProbeError, unknown

if TYPE_CHECKING:
    from probelib.store import Request

KEYS = ("notebook", "title", "needs", "scores", "makes", "measured", "fragile", "timeout_s", "parameters")
TOLERANCES = {"scores": 1e-4, "intervals": 0.05}  # see ``verify``
ARTIFACT = re.compile(r"[\w-]+(/[\w-]+)+")  # paper/name; it is part of a path, so no dots and no patterns
REQUEST = re.compile(r"\w+\.\w+")  # paper.name


@dataclass(frozen=True)
class Step:
    """One notebook of the plan."""

    notebook: str
    path: Path
    title: str
    needs: list[str]
    scores: list[str]
    makes: list[str]
    measured: list[str]
    fragile: dict[str, float]
    timeout_s: float | None
    parameters: dict[str, dict]  # "common" or a profile -> name -> value
    accepts: dict[str, set[type]]  # the notebook's own parameters, see parameters.declared


@dataclass(frozen=True)
class Plan:
    """A checked plan. ``steps`` keep the order of the file, except that a step comes after those it needs."""

    file: Path
    profiles: dict[str, dict]
    tolerances: dict[str, float]
    steps: list[Step]


def read(file: Path | None = None) -> Plan:
    """Read a plan (default: notebooks/plan.yaml) and check it against its notebooks.

    Raise ProbeError, which names the file, the entry, the error and the nearest existing names.
    """
    import yaml  # here, so that `run_all.sh --help` works before anything is installed

    file = Path(file or paths.NOTEBOOKS / "plan.yaml").resolve()
    try:
        text = file.read_text(encoding="utf-8")
        content, twice = yaml.safe_load(text), next(_twice(yaml.compose(text, yaml.SafeLoader)), None)
    except OSError as error:
        raise ProbeError(f"cannot read the plan {file}: {error.strerror}.") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: no UTF-8, a date such as 2020-13-01
        raise ProbeError(f"{file} is not YAML: {' '.join(str(error).split())}") from None
    if twice:
        raise ProbeError(f"{file.name}, line {twice.start_mark.line + 1}: duplicate key {twice.value!r}. Keep one.")
    content = _mapping(content, file.name, ("profiles", "tolerances", "steps"))
    profiles = _groups(content.get("profiles"), f"{file.name}, profiles")
    for profile in profiles:
        _stays_inside(profile, f"{file.name}, profiles")
    steps = [_step(file, entry, profiles) for entry in _list(content.get("steps"), f"{file.name}, steps", dict)]
    _check_together(file.name, profiles, steps)
    tolerances = TOLERANCES | _tolerances(content.get("tolerances"), f"{file.name}, tolerances", list(TOLERANCES))
    return Plan(file, profiles, tolerances, _ordered(file.name, steps))


def _twice(node) -> Iterator:
    """The duplicate keys of a YAML document; YAML would silently keep the last one."""
    if node is None or node.id == "scalar":
        return
    keys = [key for key, _ in node.value] if node.id == "mapping" else []
    yield from (key for i, key in enumerate(keys) if str(key.value) in {str(other.value) for other in keys[:i]})
    for child in [value for _, value in node.value] if keys else node.value:
        yield from _twice(child)


def matching(plan: Plan, names: Iterable[str]) -> set[str]:
    """The notebooks that ``names`` (of notebooks, papers or artifacts) select. Raise ProbeError for an unknown name."""
    found = set()
    for name in names:
        hits = {s.notebook for s in plan.steps for each in (s.notebook, *s.makes) if f"{each}/".startswith(f"{name}/")}
        if not hits:
            known = {each for step in plan.steps for each in (step.notebook, *step.makes)}
            papers = {each.split("/")[0] for each in known}
            near = difflib.get_close_matches(name, sorted(known | papers), cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}? " if near else ""
            raise ProbeError(f"no notebook, paper or artifact is called {name!r}; {hint}--list shows them all.")
        found |= hits
    return found


def with_needs(plan: Plan, notebooks: Iterable[str]) -> list[Step]:
    """The steps of ``notebooks`` and of all notebooks that they need, in the order of the plan."""
    wanted = set(notebooks)
    for step in reversed(plan.steps):  # every step comes after its needs
        if step.notebook in wanted:
            wanted.update(step.needs)
    return [step for step in plan.steps if step.notebook in wanted]


def settings(plan: Plan, steps: Sequence[Step], profile: str, given: dict | None = None) -> dict[str, dict]:
    """The checked parameters of every step: notebook -> name -> value.

    ``given`` (from the command line) goes to the steps that have such a parameter, or such a name in their default ``settings``.
    With other data the plan's relations are omitted, because they are those of the atlas. Raise ProbeError if no step has the
    parameter (see ``without_effect``), the profile is unknown, or a notebook does not accept the type of a value.
    """
    if profile not in plan.profiles:
        raise unknown("profile", profile, plan.profiles)
    given = given or {}
    if "profile" in given:
        raise ProbeError(
            "the profile is chosen with --profile; as a parameter it would send products to another one's folder."
        )
    inner = {step.notebook: parameters.defaults(step.path).get("settings", {}) for step in steps} if given else {}
    known = {name for step in steps for name in (*step.accepts, *inner.get(step.notebook, ()))}
    for name in given.keys() - without_effect(plan, steps, given):
        if name not in known:
            raise unknown("parameter (none of the selected notebooks has it)", name, known)
    chosen = {}
    for step in steps:
        values: dict = {}
        own = (step.parameters.get(group, {}) for group in ("common", profile))
        for layer in (plan.profiles[profile] | {"profile": profile}, *own, given):
            for name, value in layer.items():
                if name in step.accepts:
                    both = isinstance(value, dict) and isinstance(values.get(name), dict)
                    values[name] = values[name] | value if both else value  # a dictionary updates the earlier one
        if given.get("data", "atlas") != "atlas" and "data" in step.accepts and "relations" in values:
            values["relations"] = given.get("relations")
        held = inner.get(step.notebook, {})
        if inside := {name: value for name, value in given.items() if name in held and name not in step.accepts}:
            values["settings"] = values.get("settings", held) | inside
        for name, value in values.items():
            where = f"{plan.file.name}, {step.notebook}, {profile}: {name}"
            where = f"--set {name}={value}, {step.notebook}" if name in given else where
            parameters.check(value, step.accepts[name], where)
        chosen[step.notebook] = values
    return chosen


def without_unread_folders(steps: Sequence[Step], settings: dict[str, dict]) -> dict[str, dict]:
    """The settings without ``folder`` where a notebook's data are the atlas: the folder is for the notebooks with other data
    (the profile ``paper`` has both)."""
    atlas = {s.notebook for s in steps if "data" in s.accepts and settings[s.notebook].get("data", "atlas") == "atlas"}
    return {
        name: {key: value for key, value in values.items() if key != "folder" or name not in atlas}
        for name, values in settings.items()
    }


def without_effect(plan: Plan, steps: Sequence[Step], given: dict) -> set[str]:
    """The given parameters that are an empty list and that none of ``steps`` has, only other notebooks: they have no effect."""
    takes = lambda some: {name for step in some for name in step.accepts}
    return {name for name, value in given.items() if value == []} & (takes(plan.steps) - takes(steps))


def request(name: str) -> "Request":
    """The request "<paper>.<name>" of a step's ``scores``: an entry of ``REQUESTS`` in ``probelib.<paper>.scores``."""
    paper, _, key = name.partition(".")
    try:
        requests = importlib.import_module(f"probelib.{paper}.scores").REQUESTS
    except ModuleNotFoundError as error:
        if not f"probelib.{paper}.scores".startswith(str(error.name)):
            raise
        raise ProbeError(f"the plan's scores name {name!r}, but there is no module probelib.{paper}.scores.") from None
    if key not in requests:
        raise unknown(f"request (the plan's scores, {name})", key, requests)
    return requests[key]


def _step(file: Path, entry: dict, profiles: dict) -> Step:
    """One entry of the plan, checked against its notebook."""
    name = entry.get("notebook")
    where = f"{file.name}, {name}"
    _mapping(entry, where, KEYS)
    _stays_inside(name, where)
    path = file.parent / f"{name}.ipynb"
    if not path.is_file():
        there = (other.relative_to(file.parent).with_suffix("") for other in file.parent.rglob("*.ipynb"))
        shown = [str(other) for other in there if ".ipynb_checkpoints" not in other.parts]
        raise unknown(f"notebook ({file.name}; there is no {path})", str(name), shown)
    lists = (_list(entry.get(key), f"{where}, {key}") for key in ("needs", "scores", "makes", "measured"))
    needs, scores, makes, measured = lists
    for request in scores:
        if not REQUEST.fullmatch(request):
            raise ProbeError(f"{where}, scores: {request!r} is not a request's name, such as monitor.score.")
    for artifact in makes:
        if not ARTIFACT.fullmatch(artifact):
            raise ProbeError(f"{where}, makes: {artifact!r} is not an artifact's name, such as monitor/table4.")
    for artifact in measured:
        if artifact not in makes:
            raise unknown(f"artifact ({where}, measured; it must be listed in makes)", artifact, makes)
    fragile = _tolerances(entry.get("fragile"), f"{where}, fragile", makes)
    timeout_s = entry.get("timeout_s")
    if timeout_s is not None and not (type(timeout_s) in (int, float) and timeout_s > 0):
        raise ProbeError(f"{where}: timeout_s is {timeout_s!r}; it takes seconds above 0.")
    accepts = parameters.declared(path)
    if "profile" not in accepts:
        raise ProbeError(f"{path}: the parameters cell has no `profile`, which every notebook receives.")
    own = _groups(entry.get("parameters"), f"{where}, parameters", ("common", *profiles))
    for group, values in own.items():
        for parameter in values:
            if parameter not in accepts:
                raise unknown(f"parameter of the notebook ({where}, {group})", parameter, accepts)
    return Step(
        name, path, str(entry.get("title") or name), needs, scores, makes, measured, fragile, timeout_s, own, accepts
    )


def _stays_inside(name: object, where: str) -> None:
    """Raise ProbeError if a name, which becomes part of a product's path, would lead out of the folder."""
    path = Path(str(name))
    if path.is_absolute() or ".." in path.parts or not path.parts or not str(name).isprintable():
        raise ProbeError(f"{where}: {name!r} is part of a path, and may not be empty, absolute or hold '..'.")


def _check_together(file: str, profiles: dict, steps: list[Step]) -> None:
    """Check all steps together: duplicate names, unknown needs, parameters that no notebook has."""
    names = [step.notebook for step in steps]
    makes = [artifact for step in steps for artifact in step.makes]
    for kind, each in (("notebook", names), ("artifact", makes)):
        twice = sorted({name for name in each if each.count(name) > 1})
        if twice:
            raise ProbeError(f"{file}: duplicate {kind} {twice[0]}. Keep one.")
    for step in steps:
        for need in step.needs:
            if need not in names:
                raise unknown(f"notebook ({file}, {step.notebook}, needs)", need, names)
    declared = {name for step in steps for name in step.accepts}
    for profile, values in profiles.items():
        for name in values:
            if name not in declared:
                raise unknown(f"parameter ({file}, profile {profile}; no notebook has it)", name, declared)


def _ordered(file: str, steps: list[Step]) -> list[Step]:
    """The steps in the file's order, except that the steps that a step needs come before it."""
    by_name = {step.notebook: step for step in steps}
    ordered: dict[str, Step] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            cycle = " -> ".join((*above[above.index(name) :], name))
            raise ProbeError(f"{file}: circular dependency: {cycle}.")
        if name not in ordered:
            for need in by_name[name].needs:
                visit(need, (*above, name))
            ordered[name] = by_name[name]

    for name in by_name:
        visit(name, ())
    return list(ordered.values())


def _groups(value: object, where: str, allowed: Sequence[str] | None = None) -> dict[str, dict]:
    """Named groups of parameter values."""
    return {name: _mapping(values, f"{where}, {name}") for name, values in _mapping(value, where, allowed).items()}


def _mapping(value: object, where: str, allowed: Sequence[str] | None = None) -> dict:
    """``value`` as a dict with text keys, only the allowed ones; None gives an empty dict."""
    value = {} if value is None else value
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ProbeError(f"{where}: expected `name: value` pairs, got {value!r}.")
    for key in value:
        if allowed is not None and key not in allowed:
            raise unknown(f"key ({where})", key, allowed)
    return value


def _tolerances(value: object, where: str, allowed: Sequence[str]) -> dict[str, float]:
    """Numbers of 0 or more by name."""
    found = _mapping(value, where, allowed)
    for name, number in found.items():
        if type(number) not in (int, float) or not number >= 0:
            raise ProbeError(f"{where}: {name} is {number!r}; it takes a number of 0 or more, such as 0.0001.")
    return found


def _list(value: object, where: str, kind: type = str) -> list:
    """``value`` as a list of texts (or of ``kind``); None gives an empty list."""
    value = [] if value is None else value
    if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
        raise ProbeError(f"{where}: expected a list, got {value!r}.")
    return value
