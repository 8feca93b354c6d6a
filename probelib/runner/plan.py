"""The plan: the notebooks, the needs, artifacts and parameters of each.

``notebooks/plan.yaml``::

    profiles:                            # values for every notebook with such a parameter
      smoke: {n_facts: 3}
    tolerances: {scores: 1.0e-4, intervals: 0.05}    # of `run_all.sh verify`, see there
    steps:
      - notebook: monitor/sec5_results   # a file beside the plan, without .ipynb
        title: "MONITOR, section 5"      # default: the notebook's name
        profiles: [smoke, study]         # those that it belongs to; default: all
        needs: [monitor/sec4_anchors]    # notebooks whose products this one reads
        makes: [monitor/table4]          # artifacts: figures/<profile>/monitor/table4.*
        measured: []                     # those of `makes` with seconds or memory: never compared
        fragile: {}                      # those that depend on the last bit, or on the processor's
                                         # kernels -> tolerance in place of tolerances.scores
        timeout_s: 600                   # for the whole notebook; default: none
        parameters: {common: {seed: 0}, smoke: {}}

Later values win: the profile's, the step's ``common`` ones, the step's for the profile, the
command line's. ``profile`` itself is always passed. A step stands below those that it needs.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from probelib import parameters, paths
from probelib.errors import ProbeError, unknown

KEYS = ("notebook", "title", "profiles", "needs", "makes", "measured", "fragile", "timeout_s")
KEYS += ("parameters",)
TOLERANCES = {"scores": 1e-4, "intervals": 0.05}  # see ``verify``
ARTIFACT = re.compile(r"[\w-]+(/[\w-]+)+")  # paper/name; part of a path: no dots, no patterns


@dataclass(frozen=True)
class Step:
    """One notebook of the plan."""

    notebook: str
    path: Path
    title: str
    profiles: list[str]  # [] for all
    needs: list[str]
    makes: list[str]
    measured: list[str]
    fragile: dict[str, float]
    timeout_s: float | None
    parameters: dict[str, dict]  # "common" or a profile -> name -> value
    accepts: dict[str, set[type]]  # the notebook's own parameters, see parameters.declared


@dataclass(frozen=True)
class Plan:
    """A checked plan. A step stands below those that it needs."""

    file: Path
    profiles: dict[str, dict]
    tolerances: dict[str, float]
    steps: list[Step]


def read(file: Path | None = None) -> Plan:
    """Read a plan (default: notebooks/plan.yaml) and check it against its notebooks.

    Raise ProbeError, which names the file, the entry, the error and the nearest existing names.
    """
    file = Path(file or paths.NOTEBOOKS / "plan.yaml").resolve()
    try:
        content = parameters.read_yaml(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProbeError(f"cannot read the plan {file}: {error.strerror}.") from None
    except parameters.yaml_errors() as error:  # ValueError: no UTF-8
        raise ProbeError(f"{file} is not YAML: {' '.join(str(error).split())}") from None
    content = _mapping(content, file.name, ("profiles", "tolerances", "steps"))
    profiles = _groups(content.get("profiles"), f"{file.name}, profiles")
    for profile in profiles:
        _stays_inside(profile, f"{file.name}, profiles")
    entries = _list(content.get("steps"), f"{file.name}, steps", dict)
    steps = [_step(file, entry, profiles) for entry in entries]
    _check_together(file.name, profiles, steps)
    limits = _tolerances(content.get("tolerances"), f"{file.name}, tolerances", list(TOLERANCES))
    return Plan(file, profiles, TOLERANCES | limits, steps)


def matching(plan: Plan, names: Iterable[str]) -> set[str]:
    """The notebooks that ``names`` (of notebooks, papers or artifacts) select.

    Raise ProbeError for an unknown name.
    """
    named = [(step.notebook, each) for step in plan.steps for each in (step.notebook, *step.makes)]
    found = set()
    for name in names:
        hits = {notebook for notebook, each in named if f"{each}/".startswith(f"{name}/")}
        if not hits:
            known = {part for _, each in named for part in (each, each.split("/")[0])}
            raise unknown("notebook, paper or artifact (--list shows all)", name, known)
        found |= hits
    return found


def steps_of(plan: Plan, profile: str) -> list[Step]:
    """The steps that belong to a profile."""
    return [step for step in plan.steps if not step.profiles or profile in step.profiles]


def with_needs(plan: Plan, notebooks: Iterable[str]) -> list[Step]:
    """The steps of ``notebooks`` and all that they need, in the order of the plan."""
    wanted = set(notebooks)
    for step in reversed(plan.steps):  # every step comes after its needs
        if step.notebook in wanted:
            wanted.update(step.needs)
    return [step for step in plan.steps if step.notebook in wanted]


def settings(
    plan: Plan, steps: Sequence[Step], profile: str, given: dict | None = None
) -> dict[str, dict]:
    """The checked parameters of every step: notebook -> name -> value.

    ``given`` (from the command line) goes to the steps with such a parameter, or with such a name
    in their default ``settings``. With other data the plan's relations are omitted, because they
    are the atlas's, and a folder goes only to the notebooks with other data. Raise ProbeError if
    no step has a given parameter, the profile is unknown, or a value has a wrong type.
    """
    given = given or {}
    if profile not in plan.profiles:
        raise unknown("profile", profile, plan.profiles)
    if "profile" in given:
        raise ProbeError(
            "the profile is chosen with --profile; as a parameter it would send products to "
            "another one's folder."
        )
    takes = types(steps)
    empty = {n for step in plan.steps for n in step.accepts if given.get(n) == []}  # of others
    if wrong := sorted(given.keys() - takes.keys() - empty):
        raise unknown("parameter (none of the selected notebooks has it)", wrong[0], takes)
    chosen = {}
    for step in steps:
        own = (step.parameters.get(group, {}) for group in ("common", profile))
        values: dict = {}
        for layer in (plan.profiles[profile] | {"profile": profile}, *own, given):
            for name in layer.keys() & step.accepts.keys():
                both = isinstance(layer[name], dict) and isinstance(values.get(name), dict)
                values[name] = values[name] | layer[name] if both else layer[name]
        inner = _inner(step)
        if inside := {name: given[name] for name in given if name in inner}:
            values["settings"] = values.get("settings", inner) | inside
        if given.get("data", "atlas") != "atlas" and {"data", "relations"} <= step.accepts.keys():
            values["relations"] = given.get("relations")
        if "data" in step.accepts and values.get("data", "atlas") == "atlas":
            values.pop("folder", None)
        for name, value in values.items():
            where = f"{plan.file.name}, {step.notebook}, {profile}: {name}"
            where = f"--set {name}, {step.notebook}" if name in given else where
            parameters.check(value, step.accepts[name], where)
        chosen[step.notebook] = {name: values[name] for name in step.accepts if name in values}
    if "folder" in given and not any("folder" in values for values in chosen.values()):
        raise ProbeError(
            f"folder={given['folder']}: the data are the atlas, which is shipped and takes no "
            f"folder; name the data in this folder: --set data=table folder={given['folder']}"
        )
    return chosen


def types(steps: Iterable[Step]) -> dict[str, set[type]]:
    """Every parameter of the steps, also inside ``settings`` -> its types; none: any."""
    found: dict[str, set[type]] = {}
    for step in steps:
        inner = {k: {type(v)} if v is not None else set() for k, v in _inner(step).items()}
        for name, accepts in (inner | step.accepts).items():
            known = found.setdefault(name, set(accepts))
            found[name] = known | accepts if known and accepts else set()
    return found


def _inner(step: Step) -> dict:
    """The defaults in the notebook's dictionary ``settings`` that are no parameters themselves."""
    held = parameters.defaults(step.path).get("settings") if "settings" in step.accepts else None
    return {name: value for name, value in (held or {}).items() if name not in step.accepts}


def _step(file: Path, entry: dict, profiles: dict) -> Step:
    """One entry of the plan, checked against its notebook."""
    name = entry.get("notebook")
    where = f"{file.name}, {name}"
    _mapping(entry, where, KEYS)
    _stays_inside(name, where)
    path = file.parent / f"{name}.ipynb"
    if not path.is_file():
        there = (each.relative_to(file.parent) for each in file.parent.rglob("*.ipynb"))
        shown = [str(e.with_suffix("")) for e in there if ".ipynb_checkpoints" not in e.parts]
        raise unknown(f"notebook ({file.name}; there is no {path})", str(name), shown)
    keys = ("profiles", "needs", "makes", "measured")
    own, needs, makes, measured = (_list(entry.get(key), f"{where}, {key}") for key in keys)
    for profile in own:
        if profile not in profiles:
            raise unknown(f"profile ({where}, profiles)", profile, profiles)
    for artifact in makes:
        if not ARTIFACT.fullmatch(artifact):
            raise ProbeError(
                f"{where}, makes: {artifact!r} is not an artifact's name, such as monitor/table4."
            )
    for artifact in measured:
        if artifact not in makes:
            place = f"artifact ({where}, measured; it must be listed in makes)"
            raise unknown(place, artifact, makes)
    fragile = _tolerances(entry.get("fragile"), f"{where}, fragile", makes)
    timeout_s = entry.get("timeout_s")
    if timeout_s is not None and not (type(timeout_s) in (int, float) and timeout_s > 0):
        raise ProbeError(f"{where}: timeout_s is {timeout_s!r}; it takes seconds above 0.")
    accepts = parameters.declared(path)
    if "profile" not in accepts:
        raise ProbeError(f"{path}: the parameters cell has no `profile`; every notebook gets it.")
    groups = _groups(entry.get("parameters"), f"{where}, parameters", ("common", *profiles))
    for group, values in groups.items():
        for parameter in values:
            if parameter not in accepts:
                place = f"parameter of the notebook ({where}, {group})"
                raise unknown(place, parameter, accepts)
    title = str(entry.get("title") or name)
    lists = (own, needs, makes, measured)
    return Step(str(name), path, title, *lists, fragile, timeout_s, groups, accepts)


def _stays_inside(name: object, where: str) -> None:
    """Raise ProbeError if a name, a part of a product's path, would lead out of the folder."""
    path = Path(str(name))
    inside = path.parts and not path.is_absolute() and ".." not in path.parts
    if not inside or not str(name).isprintable():
        raise ProbeError(
            f"{where}: {name!r} is part of a path, and may not be empty, absolute or hold '..'."
        )


def _check_together(file: str, profiles: dict, steps: list[Step]) -> None:
    """Check for duplicate names, unknown needs, and parameters that no notebook has."""
    names = [step.notebook for step in steps]
    makes = [artifact for step in steps for artifact in step.makes]
    for kind, each in (("notebook", names), ("artifact", makes)):
        if twice := sorted({name for name in each if each.count(name) > 1}):
            raise ProbeError(f"{file}: duplicate {kind} {twice[0]}. Keep one.")
    for i, step in enumerate(steps):
        for need in step.needs:
            if need not in names[:i]:
                where = f"notebook above ({file}, {step.notebook}, needs)"
                raise unknown(where, need, names[:i])
    declared = {name for step in steps for name in step.accepts}
    for profile, values in profiles.items():
        for name in values:
            if name not in declared:
                place = f"parameter ({file}, profile {profile}; no notebook has it)"
                raise unknown(place, name, declared)


def _groups(value: object, where: str, allowed: Sequence[str] | None = None) -> dict[str, dict]:
    """Named groups of parameter values."""
    groups = _mapping(value, where, allowed)
    return {name: _mapping(values, f"{where}, {name}") for name, values in groups.items()}


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
            raise ProbeError(
                f"{where}: {name} is {number!r}; it takes a number of 0 or more, such as 0.0001."
            )
    return found


def _list(value: object, where: str, kind: type = str) -> list:
    """``value`` as a list of texts (or of ``kind``); None gives an empty list."""
    value = [] if value is None else value
    if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
        raise ProbeError(f"{where}: expected a list, got {value!r}.")
    return value
