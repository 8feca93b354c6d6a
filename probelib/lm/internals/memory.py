"""Optional reading: the weights in a folder and what they need. Files and headers are checked,
parameters counted from weights, configuration or name; memory is estimated before loading, and
models that do not fit are refused; seconds and peak memory are measured."""

import json
import math
import os
import re
import resource
import time
from collections.abc import Callable
from pathlib import Path

from probelib.errors import ProbeError
from probelib.lm.names import CHECKPOINTS, is_id, split_revision, split_variant

BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "8bit": 1.0, "4bit": 0.5}  # per parameter
NO_MEMORY = "allocate memory|bad_alloc|could not create a primitive"  # errors of torch, C++, oneDNN
# parts of tensors' names
EMBEDDINGS = ("embed", "wte", "wpe", "shared.weight", "lm_head")
# masks and angles in older files
BUFFERS = (".attn.bias", ".attention.bias", ".masked_bias", ".inv_freq")


def stored_quantization(folder: Path) -> dict:
    """``quantization_config`` of a folder's config.json: how its weights are already packed; {} if
    they are not, and if the file cannot be read (``LM.config`` reports it)."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        of_text = (config.get("text_config") or {}).get("quantization_config")
        return dict(config.get("quantization_config") or of_text or {})
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return {}


# Files and parameters


def weight_files(folder: Path) -> list[Path]:
    """The safetensors that transformers loads from a folder: model.safetensors, otherwise those
    that its index names. Twins in another precision and parts of an earlier save are not among
    them."""
    single = folder / "model.safetensors"
    if single.exists() or single.is_symlink():
        return [single]
    return [folder / name for name in sorted(set(weight_map(folder).values()))]


def weight_map(folder: Path) -> dict[str, str]:
    """Tensor -> file, by model.safetensors.index.json; {} without one."""
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return {}
    try:
        found = dict(json.loads(index.read_text(encoding="utf-8"))["weight_map"])
        here = lambda name: Path(name).name == name and (folder / name).is_file()
        wrong = [name for name in sorted(set(found.values())) if not here(name)]
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise ProbeError(f"{index} cannot be read: {error}") from error
    if wrong:
        raise ProbeError(
            f"{index} names {wrong[0]!r}, which is not a file in this folder; save the model again"
        )
    return found


def read_header(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Tensor -> (type, shape) of a safetensors file. Raise ProbeError if the file is missing,
    damaged or a Git LFS pointer."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():  # also of links that lead nowhere and of pipes
        raise ProbeError(f"{path} is no file (a broken link?): download the weights again")
    with open(path, "rb") as opened:
        pointer = opened.read(8) == b"version "
    if pointer:
        what = "is a Git LFS pointer, not the weights"
        raise ProbeError(f"{path} {what}: run `git lfs pull` in its folder")
    try:
        with safe_open(path, "np") as file:
            parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {name: (p.get_dtype(), tuple(p.get_shape())) for name, p in parts.items()}
    except (SafetensorError, OSError, ValueError) as error:
        size = path.stat().st_size
        raise ProbeError(
            f"{path} is damaged or incomplete ({size} bytes): {error}. Download it again"
        ) from error


def check_weights(folder: Path) -> None:
    """Raise ProbeError if the weights in a folder are not what their index says: transformers would
    load a tensor that stands in two files from either of them."""
    index = weight_map(folder)
    for path in weight_files(folder):
        names = set(read_header(path))
        own = {name for name, file in index.items() if file == path.name}
        if own and names != own:
            what = f"disagree about the tensor {min(names ^ own)!r}: a part of another save?"
            raise ProbeError(
                f"{path} and model.safetensors.index.json {what} Save the model again into an empty"
                " folder"
            )


def count_parameters(folder: Path, without: tuple[str, ...] = ()) -> int:
    """Parameters in the weights of a folder, omitting tensors whose names contain one of
    ``without``."""
    tensors = [tensor for path in weight_files(folder) for tensor in read_header(path).items()]
    return sum(
        math.prod(shape)
        for name, (kind, shape) in tensors
        if kind != "BOOL" and not name.endswith(BUFFERS) and not any(w in name for w in without)
    )


def parameters(name: str) -> float | None:
    """Parameters of a model, from the weights in its folder, else from its config (in a folder or
    the cache), else from its name; None if none of them tells.

    >>> parameters("bigscience/bloomz-1b1"), parameters("EleutherAI/pythia-410m")
    (1100000000.0, 410000000.0)
    >>> parameters("mistralai/Mixtral-8x7B-v0.1")
    56000000000.0
    """
    name, _ = split_variant(name)
    folder = CHECKPOINTS / name if (CHECKPOINTS / name).is_dir() else Path(name)
    if weight_files(folder) and not stored_quantization(folder):
        return float(count_parameters(folder))
    config: Path | None = folder
    if not (folder / "config.json").exists():
        from huggingface_hub import hf_hub_download

        source, revision = split_revision(name)
        options: dict = {"revision": revision, "local_files_only": True}
        try:
            cached = str(hf_hub_download(source, "config.json", **options)) if is_id(name) else ""
        except OSError:  # its subclasses say why a file is not in the cache
            cached = ""
        config = Path(cached).parent if cached else None
    return (parameters_by_config(config) if config else None) or _by_name(name)


def _by_name(name: str) -> float | None:
    pattern = r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)(b|m)(\d*)(?![a-z0-9])"
    match = re.search(pattern, name.rsplit("/", 1)[-1].lower())
    if match is None:
        return None
    experts, whole, unit, decimals = match.groups()
    if "." in whole and decimals:  # 1.5b2 may mean 1.5 or 1.52 billion
        return None
    number = float(f"{whole}.{decimals}" if decimals else whole)
    return number * (1e9 if unit == "b" else 1e6) * int(experts or 1)


def parameters_by_config(folder: Path, without: tuple[str, ...] = ()) -> float | None:
    """Parameters of the model that a folder's config describes (before any packing), without
    allocating memory, omitting names with one of ``without``; None if transformers has no language
    model of that type, or would need the repository's own code."""
    import torch
    from transformers import (
        AutoConfig,
        AutoModelForCausalLM,
        AutoModelForImageTextToText,
        AutoModelForSeq2SeqLM,
    )

    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        causal = type(config) in AutoModelForCausalLM._model_mapping
        decoder = AutoModelForCausalLM if causal else AutoModelForImageTextToText
        kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else decoder
        with torch.device("meta"):
            named = kind.from_config(config, trust_remote_code=False).named_parameters()
        return float(sum(p.numel() for name, p in named if not any(w in name for w in without)))
    except (ValueError, OSError, KeyError, AttributeError, ImportError):
        return None


# Memory before loading


def weight_bytes(model) -> int:
    """Bytes of the weights of an ``LM``, estimated from its files before loading (a forward needs
    more)."""
    if stored_quantization(model.folder):
        return sum(path.stat().st_size for path in weight_files(model.folder))
    each = BYTES[model.dtype]
    # never quantized: embeddings, experts (one tensor per layer) in 8 bits, the last layer of T5's
    # MLPs
    whole = EMBEDDINGS + ((".wo.",) if model.encoder_decoder else ())
    whole += (".experts",) if model.quantize == "8bit" else ()
    linear, total = count_parameters(model.folder, without=whole), count_parameters(model.folder)
    return round(linear * BYTES.get(model.quantize, each) + (total - linear) * each)


def free_bytes(device) -> float:
    """Memory of a device that nobody uses (on a CPU: of the machine; 0 if the system does not
    report it)."""
    if device.type == "cuda":
        import torch

        return float(torch.cuda.mem_get_info(device)[0])
    known = "SC_AVPHYS_PAGES" in getattr(os, "sysconf_names", {})
    return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) if known else 0.0


def refuse_too_large(model) -> None:
    """Raise ProbeError if a model's weights do not fit on its GPU; called before loading."""
    if model.device.type != "cuda" or model.device_map:
        return
    if model.memory > (free := free_bytes(model.device)):
        raise ProbeError(
            f"{model.name} needs about {model.memory / 2**30:.1f} GiB for its weights in "
            f"{model.quantize or model.dtype}; {model.device} has {free / 2**30:.1f} GiB free. Use "
            "quantize='8bit' or '4bit', or device_map='auto'"
        )


# Measuring


def measured(device, work: Callable[[], object]) -> dict[str, float]:
    """``seconds`` of ``work()``, tokenization and pending GPU work included, and ``peak_bytes``:
    the most memory in use meanwhile, weights included (of the GPU; on a CPU of the process, NaN if
    the system does not report it).

    Call ``work`` once before, so that nothing is loaded or compiled in the measured time.
    """
    _reset_peak(device)
    started = _clock(device)
    work()
    return {"seconds": _clock(device) - started, "peak_bytes": _peak(device)}


def _clock(device) -> float:
    if device.type == "cuda":
        import torch

        torch.cuda.synchronize(device)
    return time.perf_counter()


def _reset_peak(device) -> None:
    if device.type == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats(device)
        return
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # Linux: reset the high-water mark
    except OSError:
        pass  # then the peak since the start of the process is reported


def _peak(device) -> float:
    if device.type == "cuda":
        import torch

        return float(torch.cuda.max_memory_allocated(device))
    try:
        with open("/proc/self/status") as file:
            return next(float(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024
