"""Where the files of a model are: a shipped organism, a folder, or Hugging Face's cache; downloaded
and checked."""

import hashlib
import json
import os
from pathlib import Path

from probelib import files
from probelib.errors import ProbeError, unknown
from probelib.lm.gguf import gguf_file, unpacked
from probelib.lm.internals.memory import read_header, weight_files, weight_map
from probelib.lm.names import (
    CHECKPOINTS,
    PACKAGED,
    PATHS,
    is_folder,
    is_gguf,
    is_id,
    organisms,
    split_revision,
)
from probelib.paths import PACKAGE

# files of a model that change a number
FILES = (".json", ".safetensors", ".model", ".spm", ".codes", ".txt", ".jinja")
MANIFESTS = PACKAGE / "organisms" / "manifests"
TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt", "tekken.json",
    "sentencepiece.bpe.model",
)  # fmt: skip
SECOND_COPY = "consolidated"  # prefix of files in which Mistral ships its weights a second time


def model_folder(name: str, revision: str | None, trust_remote_code: bool) -> Path:
    """The folder of a model's files; a Hugging Face id is downloaded, or read from the cache."""
    if revision and (name in organisms() or is_folder(name)):
        what = f"{name} is a local folder with one revision"
        raise ProbeError(f"revision={revision!r} is for Hugging Face ids; {what}")
    if name in organisms():
        _check_organism(CHECKPOINTS / name)
        return CHECKPOINTS / name
    if is_folder(name):
        return Path(name).expanduser()
    if is_gguf(name):
        return unpacked(gguf_file(name))
    if name.startswith(PATHS):
        raise ProbeError(f"{name}: no such folder")
    if "/" not in name:
        raise unknown("model", name, [*organisms(), "<folder>", "<owner>/<name> on Hugging Face"])
    if not is_id(name):
        kinds = "no folder, no Hugging Face id (owner/name) and no served model"
        raise ProbeError(f"{name} is {kinds} (http://host:8000/v1#name)")
    return download(*split_revision(name), trust_remote_code)


def base_of(folder: Path, trust_remote_code: bool) -> tuple[Path, Path | None]:
    """(folder of the model, None); of a LoRA adapter's folder (folder of its base, folder of the
    adapter)."""
    file = folder / "adapter_config.json"
    if not file.is_file():
        return folder, None
    if (folder / "config.json").exists() and weight_files(folder):
        raise ProbeError(
            f"{folder} holds a whole model and an adapter (adapter_config.json), which "
            "transformers would apply as well. Move one of them to a folder of its own"
        )
    if not (folder / "adapter_model.safetensors").is_file():
        raise ProbeError(
            f"{folder} has no adapter_model.safetensors; pickled adapters (*.bin) are never loaded"
        )
    read_header(folder / "adapter_model.safetensors")  # an error where it is damaged
    try:
        saved = json.loads(file.read_text(encoding="utf-8"))
        base, revision = str(saved["base_model_name_or_path"]), saved.get("revision")
    except (ValueError, KeyError, TypeError) as error:
        raise ProbeError(f"{file} cannot be read: {error}") from error
    if base in organisms() or base in PACKAGED:
        return model_folder(base, None, trust_remote_code), folder
    # never beside the process: that would depend on where it was started
    where = folder.absolute()
    for place in (Path(base).expanduser(), where / base, where.parent / base):
        if place.is_absolute() and place.is_dir():
            return place, folder
    if base.startswith(PATHS) or not is_id(base):
        raise ProbeError(
            f"{file} names the base model {base!r}, which is neither beside the adapter nor a "
            "Hugging Face id: write its absolute path there (base_model_name_or_path)"
        )
    name, _, given = base.partition("@")
    return download(name, revision or given or None, trust_remote_code), folder


def download(name: str, revision: str | None, trust_remote_code: bool) -> Path:
    """The folder of a Hugging Face id, in the cache."""
    from huggingface_hub import errors, snapshot_download

    kinds = [*FILES, *[".py"] * trust_remote_code]
    rules: dict = {"allow_patterns": [f"*{kind}" for kind in kinds]}
    rules["ignore_patterns"] = [f"{SECOND_COPY}*", "*/*"]  # the same weights in another format
    shipped = f"Shipped models: {', '.join(organisms())}"
    try:
        return Path(str(snapshot_download(name, revision=revision, **rules)))
    except errors.GatedRepoError as error:
        hint = "accept its licence on its Hugging Face page, then run `huggingface-cli login`"
        raise ProbeError(f"{name} is gated: {hint}") from error
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        at = f" at revision {revision!r}" if revision else ""
        what = f"Hugging Face has no model {name!r}{at}; check the spelling"
        raise ProbeError(f"{what}. {shipped}") from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, OSError) as error:
        raise ProbeError(
            f"{name} is not in the local Hugging Face cache and cannot be downloaded (offline?). "
            f"Download it on a machine with a network and use its folder. {shipped}"
        ) from error


def _model_files(folder: Path, adapter: Path | None, with_code: bool) -> list[Path]:
    """The regular files of a model that change a number, also those of named chat templates."""
    kinds = FILES + ((".py",) if with_code else ())
    own = [one for one in (folder, adapter) if one]
    places = [each for one in own for each in (one, one / "additional_chat_templates")]
    found = [path for place in places if place.is_dir() for path in sorted(place.iterdir())]
    return [path for path in found if path.suffix in kinds and path.is_file()]


def file_states(folder: Path, adapter: Path | None, with_code: bool) -> list[tuple]:
    """Name, size and time of the files of a model: equal as long as nobody writes them."""
    states = [(path, path.stat()) for path in _model_files(folder, adapter, with_code)]
    return [(str(path), state.st_size, state.st_mtime_ns, state.st_ino) for path, state in states]


def digest_files(folder: Path, adapter: Path | None, with_code: bool) -> str:
    """16 hex digits of the files that change a number. Files in Hugging Face's cache are not read:
    they are named by their contents."""
    sha = hashlib.sha256()
    for path in _model_files(folder, adapter, with_code):
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
    if not any((folder / name).is_file() for name in TOKENIZER_FILES):
        raise ProbeError(
            f"{folder} has no tokenizer ({', '.join(TOKENIZER_FILES)}); save it with "
            "tokenizer.save_pretrained(folder)"
        )
