"""Where the files of a model are (an organism, a folder, a GGUF file, Hugging Face's cache), and
whether they are whole."""

import hashlib
import json
import os
from pathlib import Path

from probelib import files
from probelib.errors import ProbeError, unknown
from probelib.lm.gguf import gguf_file, unpacked
from probelib.lm.names import (
    CHECKPOINTS,
    PATHS,
    is_folder,
    is_gguf,
    is_id,
    organisms,
    split_revision,
)
from probelib.lm.text import first_line
from probelib.paths import PACKAGE

# files of a model that change a number
FILES = (".json", ".safetensors", ".model", ".spm", ".codes", ".txt", ".jinja")
MANIFESTS = PACKAGE / "organisms" / "manifests"
TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt", "tekken.json",
    "sentencepiece.bpe.model",
)  # fmt: skip


def model_folder(name: str) -> Path:
    """The folder of a model's files; a Hugging Face id is downloaded, or read from the cache."""
    if name in organisms():
        _check_organism(CHECKPOINTS / name)
        return CHECKPOINTS / name
    if is_folder(name):
        return Path(name).expanduser()
    if is_gguf(name):
        return unpacked(gguf_file(name))
    if name.startswith(PATHS):
        raise ProbeError(f"{name}: no such folder")
    if not is_id(name):
        kinds = ("<folder>", "<owner>/<name> on Hugging Face", "http://host:8000/v1#<name>")
        raise unknown("model", name, [*organisms(), *kinds])
    return download(*split_revision(name))


def download(name: str, revision: str | None) -> Path:
    """The folder of a Hugging Face id, in the cache."""
    from huggingface_hub import snapshot_download

    rules: dict = {"allow_patterns": [f"*{kind}" for kind in FILES]}
    rules["ignore_patterns"] = ["consolidated*", "*/*"]  # the same weights in another format
    try:
        return Path(str(snapshot_download(name, revision=revision, **rules)))
    except Exception as error:  # no network, no such model or revision, or it is gated
        raise ProbeError(
            f"{name} is not in the local Hugging Face cache and cannot be downloaded "
            f"({first_line(error)}). Check the spelling; accept its licence on its page and run "
            "`huggingface-cli login`; or download it elsewhere and use its folder. Shipped models: "
            + ", ".join(organisms())
        ) from error


def _model_files(folder: Path) -> list[Path]:
    """The regular files of a model that change a number, also those of named chat templates."""
    places = [each for each in (folder, folder / "additional_chat_templates") if each.is_dir()]
    found = [path for place in places for path in sorted(place.iterdir())]
    return [path for path in found if path.suffix in FILES and path.is_file()]


def file_states(folder: Path) -> list[tuple]:
    """Name, size and time of the files of a model: equal as long as nobody writes them."""
    states = [(path, path.stat()) for path in _model_files(folder)]
    return [(str(path), state.st_size, state.st_mtime_ns, state.st_ino) for path, state in states]


def digest_files(folder: Path) -> str:
    """16 hex digits of the files that change a number. Files in Hugging Face's cache are not read:
    they are named by their contents."""
    sha = hashlib.sha256()
    for path in _model_files(folder):
        sha.update(os.fsencode(path.name))
        if in_cache(folder) and path.resolve().parent.name == "blobs":
            sha.update(path.resolve().name.encode())
            continue
        with open(path, "rb") as file:
            while block := file.read(2**20):
                sha.update(block)
    return sha.hexdigest()[:16]


def in_cache(folder: Path) -> bool:
    """Whether a folder belongs to Hugging Face's cache."""
    return folder.parent.name == "snapshots" and folder.parents[1].name.startswith("models--")


def _check_organism(folder: Path) -> None:
    """Raise ProbeError unless an organism's weights and manifest are those of its record."""
    record = json.loads((folder / "training.json").read_text())
    for file, digest in (
        (folder / "model.safetensors", record["weights"]),
        (MANIFESTS / f"{record['reads']}.parquet", record["manifest"]),
    ):
        if not file.exists() or files.sha256(file) != digest:
            what = "not the recorded one" if file.exists() else "missing"
            raise ProbeError(
                f"{folder.name}: {file.name} is {what} ({file}). Restore it with git, or train the "
                f"model again: `python -m probelib.organisms train {folder.name}`"
            )


def check_complete(folder: Path) -> None:
    """Raise ProbeError for a folder without config, intact safetensors (as their index says) or
    tokenizer. Pickled weights are never loaded."""
    if (folder / "adapter_config.json").exists():  # transformers would apply it without a word
        raise ProbeError(
            f"{folder} holds an adapter: merge it into its base (peft: merge_and_unload, then "
            "save_pretrained), or load both with peft and use lm.load(hf_model, tokenizer)"
        )
    if not (folder / "config.json").is_file():
        raise ProbeError(f"{folder} has no config.json: it is not a model folder")
    if not weight_files(folder):
        raise ProbeError(
            f"{folder} has no *.safetensors that transformers loads (model.safetensors or its "
            "index). Pickled weights (*.bin, *.pt) are never loaded: where you trust them, load the "
            "model with transformers and save it with model.save_pretrained(folder)"
        )
    index = weight_map(folder)
    for path in weight_files(folder):
        names = set(read_header(path))
        own = {name for name, file in index.items() if file == path.name}
        if own and names != own:  # a tensor in two files is loaded from either of them
            raise ProbeError(
                f"{path} and model.safetensors.index.json disagree about the tensor "
                f"{min(names ^ own)!r}. Save the model again into an empty folder"
            )
    if not any((folder / name).is_file() for name in TOKENIZER_FILES):  # transformers makes one up
        raise ProbeError(
            f"{folder} has no tokenizer ({', '.join(TOKENIZER_FILES)}); save it with "
            "tokenizer.save_pretrained(folder)"
        )


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
    that its index names."""
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
