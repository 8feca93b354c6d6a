"""Checks before a run starts: its models and its data."""

import json
from collections.abc import Collection, Iterator
from pathlib import Path

from probelib.errors import texts_of, unknown
from probelib.files import templates_path
from probelib.lm.internals.folders import QUANTIZE, base_of, check_complete, model_folder
from probelib.lm.loading import connect, load
from probelib.lm.model import DTYPES, Model
from probelib.lm.names import claim, is_id, short_names, split_display, split_variant, with_base
from probelib.runner.uptodate import MODELS as MODEL_PARAMETERS

FACTS = ("data", "folder", "relations", "n_facts")
NAMES = (*MODEL_PARAMETERS, "encoder")
ROLES = {"monitor": "question", "distractors": "cloze"}  # of the templates that notebooks need


def models(settings: dict[str, dict], names: Collection[str] = NAMES) -> list[str]:
    """Every model that the notebooks' parameters name."""
    listed = lambda given: [given] if isinstance(given, str) else given or []
    found = [(n, m) for values in settings.values() for n in names for m in listed(values.get(n))]
    return list(dict.fromkeys(with_base(m)[0] if n == "tuned" else m for n, m in found))


def check(settings: dict[str, dict], given: Collection[str] = (), online: bool = False) -> None:
    """Raise ProbeError, before a run deletes the previous products, for models that are missing,
    incomplete or of one display name, a base that is not scored, unknown names, and data that
    cannot be read. ``given``: parameters that the command line sets. ``online``: their models are
    downloaded, and served ones asked; those of the plan are left to the notebooks."""
    for values in settings.values():
        for name in (name for name in NAMES if values.get(name) is not None):
            texts_of(name, values[name] if isinstance(values[name], list) else [values[name]])
        for name, allowed in (("quantize", QUANTIZE), ("dtype", DTYPES)):
            if values.get(name) is not None and values[name] not in allowed:
                raise unknown(name, values[name], allowed)
    for parameter in MODEL_PARAMETERS:
        for name in models(settings, [parameter]):
            _check_model(name, parameter, online and parameter in given)
    for values in settings.values():
        short_names(*map(values.get, MODEL_PARAMETERS), format=values.get("format") or "bare")
        if "tuned" in given and {"models", "tuned"} <= values.keys():
            for entry in values["tuned"]:  # without its base no pair would be formed
                if (base := with_base(entry)[1]) and base not in values["models"]:
                    raise unknown(f"base of {entry} among --models", base, values["models"])
    _check_data(settings, given)


def _check_model(name: str, parameter: str, online: bool) -> None:
    """Find a model's files, or its server; offline only what lies here."""
    source = split_display(name)[1]
    if "://" in source:
        model = (connect if parameter == "judge" else load)(name)  # of a judge, texts are enough
        if online and not isinstance(model, Model):
            model.generate(["Is the Earth round? Answer yes or no."])
        elif online:
            model.card  # noqa: B018  (requests the server's list of models)
    elif online or not is_id(source) or Path(source).is_dir():
        place, variant = split_variant(claim(name)[1])
        packed = next((each for each in variant.split("@") if each.endswith("bit")), None)
        check_complete(base_of(model_folder(place))[0], packed)  # with ``load`` torch takes seconds


def _check_data(settings: dict[str, dict], given: Collection[str]) -> None:
    """Read the facts and graphs that the command line chooses, as the notebooks will."""
    if not {*FACTS, "graph"}.intersection(given):
        return
    from probelib import facts
    from probelib.facts.graphs.graph import check_source

    asked = [values for values in settings.values() if {"data", "n_facts"} & values.keys()]
    asked = asked if set(FACTS).intersection(given) else []
    distinct = {json.dumps([each.get(key) for key in FACTS]): each for each in asked}
    for values in distinct.values():  # a plan's data may still need the folder of --set
        if values.get("data", "atlas") == "atlas" or values.get("folder") or "data" in given:
            facts.load(**{key: values[key] for key in FACTS if key in values})
    for values in settings.values() if "graph" in given else ():
        check_source(values.get("graph", "atlas"))


def lacking(settings: dict[str, dict]) -> Iterator[str]:
    """The templates that tables of facts lack for a paper, and what mends it."""
    for notebook, values in settings.items():
        data, folder, relations = (values.get(key) for key in FACTS[:3])
        paper = notebook.split("/")[0]
        if (role := ROLES.get(paper)) and folder and str(data).startswith("table"):
            from probelib import facts  # takes seconds

            there = facts.current(facts.everything(str(data), folder, relations))
            have = there.templates.loc[there.templates["role"] == role, "relation"]
            if lack := sorted({*there.relations["relation"]} - {*have}):
                file = templates_path(Path(folder))
                said = f"{paper}: no {role} template for {', '.join(lack)}: write it to {file}"
                yield f"{said} (relation,template; [X] is the subject)"
