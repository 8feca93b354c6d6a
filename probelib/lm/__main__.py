"""``python -m probelib.lm convert FOLDER``: write the pickled weights (*.bin) of a model folder as model.safetensors.
``convert ID FOLDER`` downloads a Hugging Face id that has no others into a folder first.

``lm.load`` never unpickles. This command does so with ``weights_only=True``, which refuses everything but tensors.
"""

import sys
from pathlib import Path

from probelib.errors import ProbeError
from probelib.lm.internals.folders import download
from probelib.lm.names import is_id, split_revision


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


def main(arguments: list[str]) -> Path:
    """Run the command; return the path of the weights."""
    if len(arguments) not in (2, 3) or arguments[0] != "convert":
        raise ProbeError("usage: python -m probelib.lm convert FOLDER, or convert ID FOLDER")
    source, *folder = arguments[1:]
    if not folder:
        return convert_pickled(Path(source))
    if not is_id(source) or Path(folder[0]).exists():
        raise ProbeError(f"convert ID FOLDER needs a Hugging Face id and a new folder, not {source} and {folder[0]}")
    return convert_pickled(download(*split_revision(source), False, Path(folder[0])))


if __name__ == "__main__":
    try:
        print(main(sys.argv[1:]))
    except ProbeError as error:
        sys.exit(str(error))
