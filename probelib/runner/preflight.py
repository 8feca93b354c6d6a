"""Checks before a run starts: its models, the memory of their weights, its data."""

import json
from collections.abc import Collection
from pathlib import Path

from probelib.errors import ProbeError, texts_of, unknown
from probelib.lm.internals.memory import parameters
from probelib.lm.internals.weights import QUANTIZE
from probelib.lm.loading import load
from probelib.lm.model import DTYPES
from probelib.lm.names import SERVERS, is_id, short_names, with_base
from probelib.runner.uptodate import MODELS as MODEL_PARAMETERS

FACTS = ("data", "folder", "relations", "n_facts")
NAMES = (*MODEL_PARAMETERS, "encoder")
BYTES = {"16 bit": 2.0, "8bit": 1.0, "4bit": 0.5}


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
    online  only what needs a network: download the models and facts that the command line names,
            and ask the served models (a typo, a gated model). The plan's models are downloaded by
            the notebook that loads them
    """
    from probelib.lm.remote.chat import ChatModel, connect

    for values in settings.values():
        for name in NAMES:
            if (asked := values.get(name)) is not None:
                texts_of(name, asked if isinstance(asked, list) else [asked])
        for name, known in (("quantize", QUANTIZE), ("dtype", DTYPES)):
            if values.get(name) is not None and values[name] not in known:
                raise unknown(name, values[name], known)
    for parameter in MODEL_PARAMETERS:
        for name in models(settings, [parameter]):
            from_hub = is_id(name) and not Path(name).is_dir()
            if online and (parameter not in given or not (from_hub or "://" in name)):
                continue
            if from_hub and not online:
                continue
            model = (connect if parameter == "judge" else load)(
                name
            )  # of a judge, texts are enough
            if online and isinstance(model, ChatModel):
                model.generate(["Is the Earth round? Answer yes or no."])
            elif online and name.startswith(SERVERS):
                model.card  # noqa: B018  (requests the server's list of models)
    asked = {
        name: values
        for name, values in settings.items()
        if values.get("data", "").startswith("hub:") == online
    }
    if set(FACTS).intersection(given):
        _check_facts(asked, given)
    if online:
        return
    for values in settings.values():
        short_names(*(values.get(name) for name in MODEL_PARAMETERS))
    if "tuned" in given:
        _check_bases(settings)
    if "graph" in given:
        from probelib.facts.graphs.graph import check_source

        for values in settings.values():
            check_source(values.get("graph", "atlas"))


def _check_bases(settings: dict[str, dict]) -> None:
    """Raise ProbeError if the base in ``tuned=base`` is not scored: no pair would be formed."""
    together = [values for values in settings.values() if {"models", "tuned"} <= values.keys()]
    known = {model for values in together for model in values["models"]}
    for own, base in (with_base(entry) for values in together for entry in values["tuned"]):
        if base and base not in known:
            raise ProbeError(
                f"tuned={own}={base}: {base} is not among the models ({', '.join(sorted(known))}), "
                f"so {own} would be compared with nothing. Name its base in --models as well"
            )


def _check_facts(settings: dict[str, dict], given: Collection[str]) -> None:
    """Read the facts as the notebooks will."""
    from probelib import facts

    asked = [values for values in settings.values() if {"data", "n_facts"} & values.keys()]
    distinct = {json.dumps([each.get(key) for key in FACTS]): each for each in asked}
    for values in distinct.values():  # a plan's data may still need the folder of --set
        if values.get("data", "atlas") == "atlas" or values.get("folder") or "data" in given:
            facts.load(**{key: values[key] for key in FACTS if key in values})


def table(settings: dict[str, dict]) -> list[tuple[str, ...]]:
    """Rows for the screen: model, parameters, GiB at 16, 8 and 4 bits, number of notebooks."""
    rows = []
    for model, notebooks in models(settings).items():
        n = parameters(model)
        size = "unknown from its name"
        if n is not None:
            size = f"{n / 1e9:.3g}B" if n >= 1e9 else f"{n / 1e6:.3g}M"
        memory = ["?" if n is None else f"{n * each / 2**30:.2g}" for each in BYTES.values()]
        rows.append((model, size, *memory, str(len(notebooks))))
    return rows


def data(settings: dict[str, dict]) -> dict[str, list[str]]:
    """Map each distinct choice of data, in words, to its notebooks."""
    found: dict[str, list[str]] = {}
    for notebook, values in settings.items():
        keys = ("data", "graph", "folder", "n_facts", "relations")
        words = ", ".join(f"{key}={values[key]}" for key in keys if values.get(key) is not None)
        found.setdefault(words or "the notebook's defaults", []).append(notebook)
    return found
