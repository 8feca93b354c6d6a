"""Pickled weights written as safetensors."""

from pathlib import Path

from probelib.errors import ProbeError


def convert_pickled(folder: Path) -> Path:
    """Write model.safetensors beside pytorch_model*.bin; return its path. Raise ProbeError if there is nothing to do."""
    import torch
    from safetensors.torch import save_file

    found, target = sorted(folder.glob("pytorch_model*.bin")), folder / "model.safetensors"
    if not found or target.exists():
        raise ProbeError(f"{folder}: {'model.safetensors exists' if target.exists() else 'no pytorch_model*.bin'}")
    tensors = {}
    for path in found:
        tensors |= torch.load(path, map_location="cpu", weights_only=True)
    seen, kept = set(), {}
    for name, tensor in tensors.items():  # tied weights are saved once
        key = (tensor.data_ptr(), tensor.shape, tensor.stride())
        if key not in seen or not tensor.numel():
            kept[name] = tensor.contiguous().clone()
            seen.add(key)
    save_file(kept, target, {"format": "pt"})
    return target
