"""Checks before a run starts: its models, the memory of their weights, its data."""

import json
from collections.abc import Collection, Iterator
from pathlib import Path

from probelib.errors import ProbeError, texts_of, unknown
from probelib.lm.internals.memory import parameters
from probelib.lm.internals.weights import QUANTIZE
from probelib.lm.loading import load
from probelib.lm.model import DTYPES
from probelib.lm.names import is_id, short_names, split_display, with_base
from probelib.lm.remote.served import Served
from probelib.runner.uptodate import MODELS as MODEL_PARAMETERS

FACTS = ("data", "folder", "relations", "n_facts")
NAMES = (*MODEL_PARAMETERS, "encoder")
BYTES = {"16 bit": 2.0, "8bit": 1.0, "4bit": 0.5}
ROLES = {"monitor": "question", "distractors": "cloze"}  # of the templates that notebooks need


def models(settings: dict[str, dict], names: Collection[str] = NAMES) -> dict[str, list[str]]:
    """Map every model that the notebooks' parameters name to these notebooks."""
    found: dict[str, list[str]] = {}
    for notebook, values in settings.items():
        for name in names:
            given = values.get(name) or []
            for entry in [given] if isinstance(given, str) else given:
                model = with_base(entry)[0] if name == "tuned" else entry
                if notebook not in found.setdefault(model, []):
                    found[model].append(notebook)
    return found


def check(settings: dict[str, dict], given: Collection[str] = (), online: bool = False) -> None:
    """Raise ProbeError, before a run deletes the previous products, for: a model that is missing
    or incomplete, an unknown name, two models of one display name, a base that is not scored, an
    unknown ``quantize`` or ``dtype``, facts and graphs that cannot be read.

    given   parameters that the command line sets: a plan may name data whose folder only that gives
    online  also what needs a network: download the models that the command line names,
            and ask the served models (a typo, a gated model). The plan's models are downloaded by
            the notebook that loads them
    """
    for values in settings.values():
        for name in (name for name in NAMES if values.get(name) is not None):
            texts_of(name, values[name] if isinstance(values[name], list) else [values[name]])
        for name, allowed in (("quantize", QUANTIZE), ("dtype", DTYPES)):
            if values.get(name) is not None and values[name] not in allowed:
                raise unknown(name, values[name], allowed)
    for parameter in MODEL_PARAMETERS:
        for name in models(settings, [parameter]):
            _check_model(name, parameter, online and parameter in given)
    if set(FACTS).intersection(given):
        _read_facts(settings, given)
    together = [values for values in settings.values() if {"models", "tuned"} <= values.keys()]
    known = {model for values in together for model in values["models"]}
    for entry in [each for values in together if "tuned" in given for each in values["tuned"]]:
        if (base := with_base(entry)[1]) and base not in known:  # no pair would be formed
            raise ProbeError(
                f"tuned={entry}: {base} is not among the models ({', '.join(sorted(known))}). "
                "Name it in --models as well"
            )
    for values in settings.values():
        short_names(*(values.get(name) for name in MODEL_PARAMETERS))
        if "graph" in given:
            from probelib.facts.graphs.graph import check_source

            check_source(values.get("graph", "atlas"))


def _check_model(name: str, parameter: str, online: bool) -> None:
    """Load a model as far as no weights are read; offline only what lies here."""
    from probelib.lm.remote.chat import ChatModel, connect

    source = split_display(name)[1]
    if is_id(source) and not Path(source).is_dir() and not online:
        return
    model = (connect if parameter == "judge" else load)(name)  # of a judge, texts are enough
    if online and isinstance(model, ChatModel):
        model.generate(["Is the Earth round? Answer yes or no."])
    elif online and isinstance(model, Served):
        model.card  # noqa: B018  (requests the server's list of models)


def _read_facts(settings: dict[str, dict], given: Collection[str]) -> None:
    """Read the facts as the notebooks will."""
    from probelib import facts

    asked = [values for values in settings.values() if {"data", "n_facts"} & values.keys()]
    distinct = {json.dumps([each.get(key) for key in FACTS]): each for each in asked}
    for values in distinct.values():  # a plan's data may still need the folder of --set
        if values.get("data", "atlas") == "atlas" or values.get("folder") or "data" in given:
            facts.load(**{key: values[key] for key in FACTS if key in values})


def lacking(settings: dict[str, dict]) -> Iterator[str]:
    """The templates that tables of facts lack for the notebooks, and what mends it."""
    for notebook, values in settings.items():
        data, folder, relations = (values.get(key) for key in FACTS[:3])
        role = ROLES.get(notebook.split("/")[0])
        if role and folder and str(data).startswith("table"):
            from probelib import facts  # takes seconds

            there = facts.current(facts.everything(str(data), folder, relations))
            have = there.templates.loc[there.templates["role"] == role, "relation"]
            if lack := sorted({*there.relations["relation"]} - {*have}):
                yield f"{notebook}: no {role} template for {', '.join(lack)}: write it to"
                yield f"  {Path(folder).stem}.templates.csv beside the table (relation,template)"


def table(settings: dict[str, dict]) -> list[tuple[str, ...]]:
    """Rows for the screen: model, parameters, GiB at 16, 8 and 4 bits, number of notebooks."""
    rows = []
    for model, notebooks in models(settings).items():
        n = parameters(split_display(model)[1])
        size = "unknown from its name"
        if n is not None:
            size = f"{n / 1e9:.3g}B" if n >= 1e9 else f"{n / 1e6:.3g}M"
        memory = ["?" if n is None else f"{n * each / 2**30:.2g}" for each in BYTES.values()]
        rows.append((model, size, *memory, str(len(notebooks))))
    return rows
