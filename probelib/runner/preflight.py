"""Checks before a run starts: its models, the memory of their weights, its data. Only ``reach`` uses the network."""

import json
from collections.abc import Callable, Collection
from pathlib import Path

from probelib.errors import ProbeError, texts_of, unknown
from probelib.lm.internals.memory import parameters
from probelib.lm.internals.weights import QUANTIZE
from probelib.lm.loading import load
from probelib.lm.model import DTYPES
from probelib.lm.names import SERVERS, is_id, short_names, with_base

# parameters whose values are names for ``lm.load``
MODEL_PARAMETERS = ("models", "encoder_decoders", "masked", "tuned", "model_name", "studied", "judge")
CHAT = ("judge",)  # of these, parameters whose values may also be names for ``chat.connect``
FACTS = ("data", "folder", "relations", "n_facts")
NAMES = (*MODEL_PARAMETERS, "encoder")
BYTES = {"16 bit": 2.0, "8bit": 1.0, "4bit": 0.5}


def models(settings: dict[str, dict], parameters=NAMES) -> dict[str, list[str]]:
    """Map every model that the notebooks' parameters name to these notebooks."""
    found: dict[str, list[str]] = {}
    for notebook, values in settings.items():
        for name in parameters:
            given = values.get(name) or []
            for model in [given] if isinstance(given, str) else given:
                found.setdefault(with_base(model)[0] if name == "tuned" else model, []).append(notebook)
    return {model: list(dict.fromkeys(notebooks)) for model, notebooks in found.items()}


def check(settings: dict[str, dict], given: Collection[str] = ()) -> None:
    """Raise ProbeError, before a run deletes the previous products, for: a model that is missing or incomplete, an unknown name,
    two models of one display name, a base that is not scored, an unknown ``quantize`` or ``dtype``, facts and graphs that cannot
    be read. Nothing is downloaded: see ``reach``.

    given   the parameters that the command line sets: a plan may name data whose folder only the command line gives
    """
    for values in settings.values():
        _check_values(values)
    for model, by in _loaded(settings, MODEL_PARAMETERS):
        if not _from_hub(model):
            by(model)
    for values in settings.values():
        short_names(*(values.get(name) for name in MODEL_PARAMETERS))
    if "tuned" in given:
        _check_bases(settings)
    if "graph" in given:
        from probelib.facts.graphs.graph import check_source

        for values in settings.values():
            check_source(values.get("graph", "atlas"))
    if set(FACTS).intersection(given):
        _check_facts({name: values for name, values in settings.items() if not _facts_from_hub(values)}, given)


def reach(settings: dict[str, dict], given: Collection[str]) -> None:
    """Download the models and facts that the command line names from Hugging Face, and check that served models are available.
    Raise ProbeError (a typo, a gated model, no network) before the previous products are deleted. Models of the plan are
    downloaded by the notebook that loads them."""
    from probelib.lm.remote.chat import ChatModel

    if "data" in given:
        _check_facts({name: values for name, values in settings.items() if _facts_from_hub(values)}, given)
    for name, by in _loaded(settings, [name for name in MODEL_PARAMETERS if name in given]):
        if not (_from_hub(name) or "://" in name):
            continue  # a folder: see ``check``
        model = by(name)
        if isinstance(model, ChatModel):
            model.generate(["Is the Earth round? Answer yes or no."])  # not every such server lists its models
        elif name.startswith(SERVERS):
            model.card  # noqa: B018  (requests the server's list of models)


def _loaded(settings: dict[str, dict], parameters: Collection[str]) -> list[tuple[str, Callable]]:
    """The models that parameters name, each with the function that loads it: ``connect`` for chat models, which may be on any
    server, because only their texts are needed."""
    from probelib.lm.remote.chat import connect  # here, so that --help works before anything is installed

    by = {
        load: [name for name in parameters if name not in CHAT],
        connect: [name for name in parameters if name in CHAT],
    }
    return [(model, function) for function, names in by.items() for model in models(settings, names)]


def _from_hub(model: str) -> bool:
    return is_id(model) and not Path(model).is_dir()


def _facts_from_hub(values: dict) -> bool:
    return values.get("data", "").startswith("hub:")


def _check_values(values: dict) -> None:
    """Raise ProbeError for models that are not texts, and for an unknown ``quantize`` or ``dtype``."""
    for name in NAMES:
        if (given := values.get(name)) is not None:
            texts_of(name, given if isinstance(given, list) else [given])
    for name, known in (("quantize", QUANTIZE), ("dtype", DTYPES)):
        if values.get(name) is not None and values[name] not in known:
            raise unknown(name, values[name], known)


def _check_bases(settings: dict[str, dict]) -> None:
    """Raise ProbeError if the base of an entry ``tuned=base`` is not among the models: no pair would be formed, silently."""
    together = [values for values in settings.values() if "models" in values and "tuned" in values]
    asked = {model for values in together for model in values["models"]}
    for own, base in (with_base(entry) for values in together for entry in values["tuned"]):
        if base and base not in asked:
            raise ProbeError(
                f"tuned={own}={base}: {base} is not among the models ({', '.join(sorted(asked))}), so {own} would be compared "
                "with nothing. Name its base in --models as well"
            )


def _check_facts(settings: dict[str, dict], given: Collection[str]) -> None:
    from probelib import facts

    asked = [values for values in settings.values() if {"data", "n_facts"} & values.keys()]
    read = [values for values in asked if values.get("folder")]
    if "folder" in given and read and all(values.get("data", "atlas") == "atlas" for values in read):
        folder = read[0]["folder"]
        raise ProbeError(
            f"folder={folder}: the data are the atlas, which is shipped and takes no folder; name the data in this folder: "
            f"--set data=table folder={folder}"
        )
    for values in {json.dumps([each.get(key) for key in FACTS]): each for each in asked}.values():
        if values.get("data", "atlas") == "atlas" or values.get("folder") or "data" in given:
            facts.load(**_about_facts(values))
    for values in (own for name, own in settings.items() if name.startswith("zplke/") and "n_facts" in own):
        if values.get("data", "atlas") != "atlas" and (values.get("folder") or _facts_from_hub(values)):
            facts.require_examples(*facts.multiple_choice(**_about_facts(values)))


def _about_facts(values: dict) -> dict:
    """The arguments of ``facts.load``; without the folder where the data are the atlas (``plan.without_unread_folders``)."""
    from_atlas = values.get("data", "atlas") == "atlas"
    return {key: values[key] for key in FACTS if key in values and not (from_atlas and key == "folder")}


def table(settings: dict[str, dict]) -> list[tuple[str, ...]]:
    """Rows for the screen: model, parameters, GiB of its weights at 16, 8 and 4 bits, number of notebooks that use it."""
    rows = []
    for model, notebooks in models(settings).items():
        n = parameters(model)
        size = "unknown from its name" if n is None else f"{n / 1e9:.3g}B" if n >= 1e9 else f"{n / 1e6:.3g}M"
        memory = ["?" if n is None else f"{n * each / 2**30:.2g}" for each in BYTES.values()]
        rows.append((model, size, *memory, str(len(notebooks))))
    return rows


def data(settings: dict[str, dict]) -> dict[str, list[str]]:
    """Map each distinct choice of data, folder and number of facts, in words, to its notebooks."""
    keys, found = ("data", "graph", "folder", "n_facts", "relations"), {}
    for notebook, values in settings.items():
        words = ", ".join(f"{key}={values[key]}" for key in keys if values.get(key) is not None)
        found.setdefault(words or "the notebook's defaults", []).append(notebook)
    return found
