"""Optional reading: the weights in a folder and what they need. Headers are checked, parameters
counted from weights, configuration or name, memory is estimated before loading and measured."""

import json
import math
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

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
        outside = {name for name in found.values() if Path(name).name != name}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ProbeError(f"{index} cannot be read: {error}") from error
    if outside:
        raise ProbeError(f"{index} names {min(outside)!r}, which is not a file in this folder")
    return found


def read_header(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Tensor -> (type, shape) of a safetensors file. Raise ProbeError if the file is missing,
    damaged or a Git LFS pointer."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():  # also of links that lead nowhere and of pipes
        raise ProbeError(f"{path} is no file (a broken link?): download the weights again")
    try:
        with safe_open(path, "np") as file:
            parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {name: (p.get_dtype(), tuple(p.get_shape())) for name, p in parts.items()}
    except (SafetensorError, OSError, ValueError) as error:
        raise ProbeError(
            f"{path} is damaged or incomplete ({path.stat().st_size} bytes): {error}. Download it "
            "again; for a pointer of Git LFS run `git lfs pull`"
        ) from error


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

    >>> parameters("bigscience/bloomz-1b1"), parameters("mistralai/Mixtral-8x7B-v0.1")
    (1100000000.0, 56000000000.0)
    """
    name, _ = split_variant(name)
    folder = CHECKPOINTS / name if (CHECKPOINTS / name).is_dir() else Path(name)
    if weight_files(folder) and not stored_quantization(folder):
        return float(count_parameters(folder))
    if not (config := folder / "config.json").exists() and is_id(name):
        from huggingface_hub import try_to_load_from_cache

        source, revision = split_revision(name)
        config = Path(str(try_to_load_from_cache(source, "config.json", revision=revision)))
    return (parameters_by_config(config.parent) if config.is_file() else None) or _by_name(name)


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
    import transformers as hf

    try:
        config = hf.AutoConfig.from_pretrained(folder, trust_remote_code=False)
        causal = type(config) in hf.AutoModelForCausalLM._model_mapping
        decoder: Any = hf.AutoModelForCausalLM if causal else hf.AutoModelForImageTextToText
        kind = hf.AutoModelForSeq2SeqLM if config.is_encoder_decoder else decoder
        with torch.device("meta"):
            named = kind.from_config(config, trust_remote_code=False).named_parameters()
        return float(sum(p.numel() for name, p in named if not any(w in name for w in without)))
    except (ValueError, OSError, KeyError, AttributeError, ImportError):
        return None


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


def measured(device, work: Callable[[], object]) -> dict[str, float]:
    """``seconds`` of ``work()``, pending GPU work included, and ``peak_bytes``: the most memory in
    use meanwhile, weights included (of the GPU; on a CPU of the process, NaN if the system does not
    report it). Call ``work`` once before, so that nothing is loaded in the measured time."""
    import torch

    gpu = torch.cuda if device.type == "cuda" else None
    if gpu:
        gpu.synchronize(device)
        gpu.reset_peak_memory_stats(device)
    else:  # Linux: reset the high-water mark; otherwise it is that since the process started
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
    started = time.perf_counter()
    work()
    if gpu:
        gpu.synchronize(device)
    seconds = time.perf_counter() - started
    if gpu:
        return {"seconds": seconds, "peak_bytes": float(gpu.max_memory_allocated(device))}
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        kilobytes = next(float(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        kilobytes = math.nan
    return {"seconds": seconds, "peak_bytes": kilobytes * 1024}
