"""The plan: the notebooks; needs, artifacts and parameters of each (``notebooks/plan.yaml``,
whose head describes its form).

Later values win: the profile's, the step's ``common`` ones, the step's for the profile, the
command line's. The profile ``mine`` begins with the values of the default one."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from probelib import parameters, paths
from probelib.errors import ProbeError, unknown

DEFAULT, OWN = "atlas", "mine"
BELOW = {OWN: (DEFAULT,), "real": (DEFAULT, OWN)}  # what a profile does not say is as in these
NAME = re.compile(r"[\w-]+(/[\w-]+)*")  # of profiles, notebooks, artifacts: parts of paths
ENTRY = {"notebook": str, "title": str, "profiles": list, "needs": list, "makes": list}
ENTRY |= {"measured": list, "parameters": dict}


@dataclass(frozen=True)
class Step:
    """One notebook of the plan."""

    notebook: str
    path: Path
    title: str
    profiles: list[str]
    needs: list[str]
    makes: list[str]
    measured: list[str]
    parameters: dict[str, dict]  # "common" or a profile -> name -> value
    accepts: dict[str, set[type]]  # the notebook's own parameters, see parameters.declared


@dataclass(frozen=True)
class Plan:
    """A checked plan. A step stands below those that it needs."""

    file: Path
    profiles: dict[str, dict]
    steps: list[Step]


def read(file: Path | None = None) -> Plan:
    """Read a plan (default: notebooks/plan.yaml) and check it against its notebooks. A ProbeError
    names the file, the entry, the error and the nearest existing names."""
    file = Path(file or paths.NOTEBOOKS / "plan.yaml").resolve()
    try:
        content = parameters.parse_yaml(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ProbeError(f"cannot read the plan {file}: {error}") from None
    content = _mapping(content, file.name, {"profiles": dict, "steps": list})
    profiles = content.get("profiles", {})
    steps: list[Step] = []
    for entry in content.get("steps", []):
        steps.append(_step(file, entry, profiles, [step.notebook for step in steps]))
    names = [step.notebook for step in steps]
    makes = [artifact for step in steps for artifact in step.makes]
    for kind, each in (("profile", [*profiles]), ("notebook", names), ("artifact", makes)):
        if wrong := [name for name in each if not NAME.fullmatch(str(name))]:
            allowed = "letters, digits, - and _ are allowed, and / between them"
            raise ProbeError(f"{file.name}: the {kind} {wrong[0]!r} is part of a path: {allowed}.")
        if twice := sorted({name for name in each if each.count(name) > 1}):
            raise ProbeError(f"{file.name}: duplicate {kind} {twice[0]}. Keep one.")
    declared = dict.fromkeys((name for step in steps for name in step.accepts), object)
    for profile, values in profiles.items():  # refuses a parameter that no notebook has
        profiles[profile] = _mapping(values, f"{file.name}, profiles, {profile}", declared)
    return Plan(file, profiles, steps)


def matching(plan: Plan, names: Iterable[str], profile: str = "") -> set[str]:
    """The notebooks that ``names`` (of notebooks, papers or artifacts) select; an unknown one is an
    error. A paper leaves out those that do not belong to the ``profile``, if one is given."""
    named = [(step, each) for step in plan.steps for each in (step.notebook, *step.makes)]
    found = set()
    for name in names:
        hits = [(step, each) for step, each in named if f"{each}/".startswith(f"{name}/")]
        if not hits:
            known = {part for _, each in named for part in (each, each.split("/")[0])}
            raise unknown("notebook, paper or artifact (--list shows all)", name, known)
        found |= {s.notebook for s, each in hits if each == name or profile in ("", *s.profiles)}
    return found


def steps_of(plan: Plan, profile: str) -> list[Step]:
    """The steps that belong to a profile."""
    return [step for step in plan.steps if profile in step.profiles]


def with_needs(plan: Plan, notebooks: Iterable[str]) -> list[Step]:
    """The steps of ``notebooks`` and all that they need, in the order of the plan."""
    wanted = set(notebooks)
    for step in reversed(plan.steps):  # every step comes after its needs
        if step.notebook in wanted:
            wanted.update(step.needs)
    return [step for step in plan.steps if step.notebook in wanted]


def settings(plan: Plan, steps: Sequence[Step], profile: str, given: dict | None = None) -> dict:
    """The checked parameters of every step: notebook -> name -> value.

    ``given`` (from the command line) goes to the steps with such a parameter, or with such a name
    in their ``settings``. With other data the plan's relations are omitted, because they are the
    atlas's, and a folder goes only to the notebooks with other data.
    """
    given, takes = given or {}, types(steps)
    if profile not in plan.profiles:
        raise unknown("profile", profile, plan.profiles)
    if "profile" in given:
        raise ProbeError("the profile is chosen with --profile, not with --set.")
    empty = {n for step in plan.steps for n in step.accepts if given.get(n) == []}  # of others
    if wrong := sorted(given.keys() - takes.keys() - empty):
        raise unknown("parameter (none of the selected notebooks has it)", wrong[0], takes)
    chosen = {}
    for step in steps:
        values = _values(plan, step, profile, given)
        for name, value in values.items():
            where = f"{plan.file.name}, {step.notebook}, {profile}: {name}"
            where = f"--set {name}={value}, {step.notebook}" if name in given else where
            parameters.check(value, step.accepts[name], where)
        chosen[step.notebook] = {name: values[name] for name in step.accepts if name in values}
    if "folder" in given and not any("folder" in values for values in chosen.values()):
        raise ProbeError(
            f"folder={given['folder']}: the data are the atlas, which is shipped and takes no "
            f"folder; name the data in this folder: --set data=table folder={given['folder']}"
        )
    return chosen


def _values(plan: Plan, step: Step, profile: str, given: dict) -> dict:
    """The parameters of a step; later layers win, and dictionaries are merged."""
    own = [*BELOW.get(profile, ()), profile]
    layers = [plan.profiles.get(each, {}) for each in own] + [{"profile": profile}]
    layers += [step.parameters.get(group, {}) for group in ("common", *own)]
    values: dict = {}
    for layer in (*layers, given):
        for name in layer.keys() & step.accepts.keys():
            both = isinstance(layer[name], dict) and isinstance(values.get(name), dict)
            values[name] = values[name] | layer[name] if both else layer[name]
    if inside := {name: given[name] for name in given if name in _inner(step)}:
        before = values.get("settings", parameters.defaults(step.path)["settings"])
        values["settings"] = before | inside
    if given.get("data", DEFAULT) != DEFAULT and {"data", "relations"} <= step.accepts.keys():
        values["relations"] = given.get("relations")
    if "data" in step.accepts and values.get("data", DEFAULT) == DEFAULT:
        values.pop("folder", None)
    return values


def types(steps: Iterable[Step]) -> dict[str, set[type]]:
    """Every parameter of the steps, also inside ``settings`` -> its types; none: any."""
    found: dict[str, set[type]] = {}
    for step in steps:
        inner = {n: {type(v)} if v is not None else set() for n, v in _inner(step).items()}
        for name, accepts in (inner | step.accepts).items():
            before = found.setdefault(name, set(accepts))
            found[name] = before | accepts if before and accepts else set()
    return found


def _inner(step: Step) -> dict:
    """What the notebook and the plan put into ``settings``, without the names of parameters."""
    held = (parameters.defaults(step.path), *step.parameters.values())
    found = [each.get("settings") or {} for each in held if "settings" in step.accepts]
    return {n: value for each in found for n, value in each.items() if n not in step.accepts}


def _step(file: Path, entry: object, profiles: dict, above: list[str]) -> Step:
    """One entry of the plan, checked against its notebook; ``above`` are the notebooks before."""
    name = str(entry.get("notebook")) if isinstance(entry, dict) else ""
    where, path = f"{file.name}, {name}", file.parent / f"{name}.ipynb"
    entry = {"profiles": [*profiles]} | _mapping(entry, where, ENTRY)
    if not path.is_file():
        there = [str(each.relative_to(file.parent))[:-6] for each in file.parent.rglob("*.ipynb")]
        raise unknown(f"notebook ({file.name}; there is no {path})", name, there)
    lists = {key: entry.get(key, []) for key in ("profiles", "needs", "makes", "measured")}
    accepts = parameters.declared(path)
    for key, known in (("profiles", profiles), ("needs", above), ("measured", lists["makes"])):
        for each in lists[key]:
            if each not in [*known]:  # which need not be a text
                raise unknown(f"name in {key} ({where})", each, known)
    if "profile" not in accepts:
        raise ProbeError(f"{path}: the parameters cell has no `profile`; every notebook gets it.")
    allowed = dict.fromkeys(("common", *profiles), dict)
    groups = _mapping(entry.get("parameters"), f"{where}, parameters", allowed)
    for group, values in groups.items():
        groups[group] = _mapping(values, f"{where}, {group}", dict.fromkeys(accepts, object))
    return Step(name, path, entry.get("title", name), **lists, parameters=groups, accepts=accepts)


def _mapping(value: object, where: str, kinds: Mapping[str, type]) -> dict:
    """``value`` as a dict with keys of ``kinds``, each value of its type; null is left out."""
    value = {} if value is None else value
    if not isinstance(value, dict):
        raise ProbeError(f"{where}: expected `name: value` pairs, got {value!r}.")
    for key, held in value.items():
        if key not in kinds:
            raise unknown(f"key ({where})", key, kinds)
        if held is not None and not isinstance(held, kinds[key]):
            raise ProbeError(f"{where}, {key}: expected {kinds[key].__name__}, got {held!r}.")
    return {key: v for key, v in value.items() if v is not None or kinds[key] is object}
