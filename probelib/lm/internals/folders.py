"""Where the files of a model are: a shipped organism, a folder, or Hugging Face's cache; downloaded
and checked."""

import hashlib
import json
import os
from pathlib import Path

from probelib import files
from probelib.errors import ProbeError, unknown
from probelib.lm.internals.memory import check_weights, weight_files
from probelib.lm.names import CHECKPOINTS, PATHS, is_folder, is_id, organisms, split_revision
from probelib.paths import PACKAGE

# files of a model that change a number
FILES = (".json", ".safetensors", ".model", ".spm", ".codes", ".txt", ".jinja")
MANIFESTS = PACKAGE / "organisms" / "manifests"
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "spiece.model",
    "vocab.json",
    "vocab.txt",
    "tekken.json",
    "sentencepiece.bpe.model",
)
SECOND_COPY = "consolidated"  # prefix of files in which Mistral ships its weights a second time
# the owners of ids that once had none
OWNERS = {
    "gpt2": "openai-community",
    "openai-gpt": "openai-community",
    "distilgpt2": "distilbert",
    "t5": "google-t5",
}
OWNERS |= {
    "bert": "google-bert",
    "roberta": "FacebookAI",
    "xlm": "FacebookAI",
    "distilbert": "distilbert",
}
OWNERS |= {"albert": "albert", "xlnet": "xlnet", "camembert": "almanach"}


def model_folder(name: str, revision: str | None, trust_remote_code: bool) -> Path:
    """The folder of a model's files; a Hugging Face id is downloaded, or read from the cache."""
    if revision and (name in organisms() or is_folder(name)):
        raise ProbeError(
            f"revision={revision!r} is for Hugging Face ids; {name} is a local folder with one "
            "revision"
        )
    if name in organisms():
        _check_organism(CHECKPOINTS / name)
        return CHECKPOINTS / name
    if is_folder(name):
        return Path(name).expanduser()
    if name.lower().endswith(".gguf"):
        raise ProbeError(
            f"{name} is a GGUF file, which is not read: use the folder or id of its safetensors, "
            "or serve it "
            f"(vllm serve {Path(name).name}) and use http://localhost:8000/v1#NAME"
        )
    if name.startswith(PATHS):
        raise ProbeError(f"{name}: no such folder")
    owner = next(
        (
            OWNERS[word]
            for word in sorted(OWNERS, reverse=True)
            if f"{name}-".startswith(f"{word}-")
        ),
        None,
    )
    if "/" not in name and owner:
        raise ProbeError(f"{name!r} is written with its owner: {owner}/{name}")
    if "/" not in name:
        raise unknown("model", name, [*organisms(), "<folder>", "<owner>/<name> on Hugging Face"])
    if not is_id(name):
        raise ProbeError(
            f"{name} is no folder, no Hugging Face id (owner/name) and no served model "
            "(http://host:8000/v1#name)"
        )
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
            "transformers would apply as well. Move "
            "one of them to a folder of its own"
        )
    if not (folder / "adapter_model.safetensors").is_file():
        raise ProbeError(
            f"{folder} has no adapter_model.safetensors; pickled adapters (*.bin) are never loaded"
        )
    try:
        saved = json.loads(file.read_text(encoding="utf-8"))
        base, revision = str(saved["base_model_name_or_path"]), saved.get("revision")
    except (ValueError, KeyError, TypeError) as error:
        raise ProbeError(f"{file} cannot be read: {error}") from error
    if base in organisms():
        return model_folder(base, None, trust_remote_code), folder
    # never beside the process: that would depend on where it was started
    places = (Path(base).expanduser(), folder.absolute() / base, folder.absolute().parent / base)
    beside = next((place for place in places if place.is_absolute() and place.is_dir()), None)
    if beside is not None:
        return beside, folder
    if base.startswith(PATHS) or not is_id(base):
        raise ProbeError(
            f"{file} names the base model {base!r}, which is neither beside the adapter nor a "
            "Hugging Face id: write its "
            "absolute path into adapter_config.json (base_model_name_or_path)"
        )
    name, given = base.partition("@")[0], base.partition("@")[2]
    return download(name, revision or given or None, trust_remote_code), folder


def download(name: str, revision: str | None, trust_remote_code: bool) -> Path:
    """The folder of a Hugging Face id, in the cache."""
    from huggingface_hub import errors, snapshot_download

    patterns = [f"*{kind}" for kind in FILES] + (["*.py"] if trust_remote_code else [])
    try:
        ignored = [f"{SECOND_COPY}*", "*/*"]  # the same weights in another format
        return Path(
            snapshot_download(
                name, revision=revision, allow_patterns=patterns, ignore_patterns=ignored
            )
        )
    except errors.GatedRepoError as error:
        raise ProbeError(
            f"{name} is gated: accept its licence on its Hugging Face page, then run "
            "`huggingface-cli login`"
        ) from error
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        raise ProbeError(
            "Hugging Face has no model "
            f"{name!r}{f' at revision {revision!r}' if revision else ''}; check the spelling. "
            f"Shipped models: {', '.join(organisms())}"
        ) from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, OSError) as error:
        raise ProbeError(
            f"{name} is not in the local Hugging Face cache and cannot be downloaded (offline?). "
            "Download it on a machine "
            f"with a network and use its folder, or use a shipped model: {', '.join(organisms())}"
        ) from error


def model_files(folder: Path, adapter: Path | None, with_code: bool) -> list[Path]:
    """The files of a model that change a number, also those of named chat templates; regular files
    only."""
    kinds = FILES + ((".py",) if with_code else ())
    places = [
        each
        for one in (folder, adapter)
        if one
        for each in (one, one / "additional_chat_templates")
    ]
    found = [path for place in places if place.is_dir() for path in sorted(place.iterdir())]
    return [path for path in found if path.suffix in kinds and path.is_file()]


def file_states(folder: Path, adapter: Path | None, with_code: bool) -> list[tuple]:
    """Name, size and time of the files of a model: equal as long as nobody writes them."""
    states = [(path, path.stat()) for path in model_files(folder, adapter, with_code)]
    return [(str(path), state.st_size, state.st_mtime_ns, state.st_ino) for path, state in states]


def digest_files(folder: Path, adapter: Path | None, with_code: bool) -> str:
    """16 hex digits of the files that change a number. Files in Hugging Face's cache are not read:
    they are named by their contents."""
    sha = hashlib.sha256()
    for path in model_files(folder, adapter, with_code):
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
    """Raise ProbeError unless the weights and the manifest are those in the organism's record: they
    are ground truth."""
    record = json.loads((folder / "training.json").read_text())
    manifest = MANIFESTS / f"{record['reads']}.parquet"
    for file, digest in (
        (folder / "model.safetensors", record["weights"]),
        (manifest, record["manifest"]),
    ):
        if not file.exists() or files.sha256(file) != digest:
            raise ProbeError(
                f"{folder.name}: {file.name} is "
                f"{'not the recorded one' if file.exists() else 'missing'} ({file}). Restore "
                f"it (`git checkout -- {file.parent.name}`), or train the model again: `python -m "
                "probelib.organisms "
                f"train {folder.name}`"
            )


def check_complete(folder: Path) -> None:
    """Raise ProbeError for a folder without config, intact safetensors or tokenizer. Pickled
    weights are never loaded."""
    if not (folder / "config.json").is_file():
        raise ProbeError(f"{folder} has no config.json: it is not a model folder")
    if not weight_files(folder):
        raise ProbeError(
            f"{folder} has no *.safetensors that transformers loads (model.safetensors or its "
            "index). Pickled weights "
            "(*.bin, *.pt) are never loaded; on a machine that you trust them on, load the model "
            "with transformers and "
            "save it with model.save_pretrained(folder)"
        )
    check_weights(folder)
    if not any((folder / name).is_file() for name in TOKENIZER_FILES):
        raise ProbeError(
            f"{folder} has no tokenizer ({', '.join(TOKENIZER_FILES)}); save it with "
            "tokenizer.save_pretrained(folder)"
        )
