"""What a run needs before it starts: which models, how much memory for their weights, which data. Nothing is fetched."""

import re
from pathlib import Path

from probelib.paths import PACKAGE

NAMES = ("models", "encoder_decoders", "tuned", "model_name", "studied", "judge", "encoder", "writer")
BYTES = {"16 bit": 2.0, "8bit": 1.0, "4bit": 0.5}
CHECKPOINTS = PACKAGE / "organisms" / "checkpoints"


def models(settings: dict[str, dict]) -> dict[str, list[str]]:
    """Every model that some notebook's parameters name -> those notebooks."""
    found: dict[str, list[str]] = {}
    for notebook, values in settings.items():
        for name in NAMES:
            given = values.get(name) or []
            for model in [given] if isinstance(given, str) else given:
                found.setdefault(model.partition("=")[0], []).append(notebook)  # tuned=base
    return {model: list(dict.fromkeys(notebooks)) for model, notebooks in found.items()}


def parameters(model: str) -> float | None:
    """Parameters of a model: of a folder or a shipped one by its weights, else as its name says; None where neither tells.

    >>> parameters("bigscience/bloomz-1b1"), parameters("EleutherAI/pythia-410m"), parameters("mistralai/Mixtral-8x7B-v0.1")
    (1100000000.0, 410000000.0, 56000000000.0)
    """
    folder = CHECKPOINTS / model if (CHECKPOINTS / model).is_dir() else Path(model)
    if weights := list(folder.glob("*.safetensors")):
        return sum(path.stat().st_size for path in weights) / 4
    name = model.rsplit("/", 1)[-1].lower()
    match = re.search(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)(b|m)(\d*)(?![a-z0-9])", name)
    if match is None:
        return None
    experts, whole, unit, rest = match.groups()
    return float(f"{whole}.{rest}" if rest else whole) * (1e9 if unit == "b" else 1e6) * int(experts or 1)


def table(settings: dict[str, dict]) -> list[tuple[str, ...]]:
    """Rows for the screen: model, parameters, GiB of its weights at 16, 8 and 4 bits, how many notebooks ask it."""
    rows = []
    for model, notebooks in models(settings).items():
        n = parameters(model)
        size = "not said by its name" if n is None else f"{n / 1e9:.3g}B" if n >= 1e9 else f"{n / 1e6:.3g}M"
        memory = ["?" if n is None else f"{n * each / 2**30:.2g}" for each in BYTES.values()]
        rows.append((model, size, *memory, str(len(notebooks))))
    return rows


def data(settings: dict[str, dict]) -> list[str]:
    """What facts are asked: one line for each different choice of data, folder and number of facts."""
    keys = ("data", "graph", "folder", "n_facts", "relations")
    given = [{key: values[key] for key in keys if values.get(key) is not None} for values in settings.values()]
    lines = [", ".join(f"{key}={value}" for key, value in each.items()) for each in given if each]
    return list(dict.fromkeys(lines))
