"""Where the files of a model are: a shipped organism, a folder, or Hugging Face's cache; downloaded and checked."""

import hashlib
import json
from pathlib import Path

from probelib import files
from probelib.errors import ProbeError, unknown
from probelib.lm.internals.memory import SECOND_COPY, weight_files
from probelib.lm.names import CHECKPOINTS, PATHS, is_folder, is_id, organisms, split_revision
from probelib.paths import PACKAGE

# files of a model that change a number
FILES = (".json", ".safetensors", ".model", ".spm", ".codes", ".txt", ".jinja")
MANIFESTS = PACKAGE / "organisms" / "manifests"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt", "tekken.json")
TOKENIZER_FILES += ("sentencepiece.bpe.model",)
# the owners of ids that once had none
OWNERS = {"gpt2": "openai-community", "openai-gpt": "openai-community", "distilgpt2": "distilbert", "t5": "google-t5"}
OWNERS |= {"bert": "google-bert", "roberta": "FacebookAI", "xlm": "FacebookAI", "distilbert": "distilbert"}
OWNERS |= {"albert": "albert", "xlnet": "xlnet", "camembert": "almanach"}


def model_folder(name: str, revision: str | None, trust_remote_code: bool) -> Path:
    """The folder of a model's files; a Hugging Face id is downloaded, or read from the cache."""
    if revision and (name in organisms() or is_folder(name)):
        raise ProbeError(f"revision={revision!r} is for Hugging Face ids; {name} is a local folder with one revision")
    if name in organisms():
        _check_organism(CHECKPOINTS / name)
        return CHECKPOINTS / name
    if is_folder(name):
        return Path(name).expanduser()
    if name.lower().endswith(".gguf"):
        raise ProbeError(
            f"{name} is a GGUF file, which is not read: use the folder or id of its safetensors, or serve it "
            f"(vllm serve {Path(name).name}) and use http://localhost:8000/v1#NAME"
        )
    if name.startswith(PATHS):
        raise ProbeError(f"{name}: no such folder")
    owner = next((OWNERS[word] for word in sorted(OWNERS, reverse=True) if f"{name}-".startswith(f"{word}-")), None)
    if "/" not in name and owner:
        raise ProbeError(f"{name!r} is written with its owner: {owner}/{name}")
    if "/" not in name:
        raise unknown("model", name, [*organisms(), "<folder>", "<owner>/<name> on Hugging Face"])
    if not is_id(name):
        raise ProbeError(
            f"{name} is no folder, no Hugging Face id (owner/name) and no served model (http://host:8000/v1#name)"
        )
    return download(*split_revision(name), trust_remote_code)


def base_of(folder: Path, trust_remote_code: bool) -> tuple[Path, Path | None]:
    """(folder of the model, None); of a LoRA adapter's folder (folder of its base, folder of the adapter)."""
    file = folder / "adapter_config.json"
    if not file.exists():
        return folder, None
    if (folder / "config.json").exists() and weight_files(folder):
        raise ProbeError(
            f"{folder} holds a whole model and an adapter (adapter_config.json), which transformers would apply as well. Move "
            "one of them to a folder of its own"
        )
    if not (folder / "adapter_model.safetensors").exists():
        raise ProbeError(f"{folder} has no adapter_model.safetensors; pickled adapters (*.bin) are never loaded")
    try:
        saved = json.loads(file.read_text(encoding="utf-8"))
        base, revision = saved["base_model_name_or_path"], saved.get("revision")
    except (ValueError, KeyError, TypeError) as error:
        raise ProbeError(f"{file} cannot be read: {error}") from error
    named = f"{base}@{revision}" if revision and not is_folder(str(base)) else str(base)
    return model_folder(named, None, trust_remote_code), folder


def download(name: str, revision: str | None, trust_remote_code: bool, pickled_to: Path | None = None) -> Path:
    """The folder of a Hugging Face id, in the cache. ``pickled_to``: a folder to download to, with pickled weights in place
    of safetensors."""
    from huggingface_hub import errors, snapshot_download

    patterns = [f"*{kind}" for kind in FILES] + (["*.py"] if trust_remote_code else [])
    patterns = [*patterns, "pytorch_model*.bin"] if pickled_to else patterns
    try:
        ignored = [f"{SECOND_COPY}*", "*/*"]  # the same weights in another format
        options = {"local_dir": pickled_to} if pickled_to else {}
        if pickled_to:
            ignored.append("*.safetensors*")
        return Path(
            snapshot_download(name, revision=revision, allow_patterns=patterns, ignore_patterns=ignored, **options)
        )
    except errors.GatedRepoError as error:
        raise ProbeError(
            f"{name} is gated: accept its licence on its Hugging Face page, then run `huggingface-cli login`"
        ) from error
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        raise ProbeError(
            f"Hugging Face has no model {name!r}{f' at revision {revision!r}' if revision else ''}; check the spelling. "
            f"Shipped models: {', '.join(organisms())}"
        ) from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, OSError) as error:
        raise ProbeError(
            f"{name} is not in the local Hugging Face cache and cannot be downloaded (offline?). Download it on a machine "
            f"with a network and use its folder, or use a shipped model: {', '.join(organisms())}"
        ) from error


def digest_model(folder: Path, adapter: Path | None, with_code: bool) -> str:
    """16 hex digits of the files that change a number. Files in Hugging Face's cache are not read: they are named by their
    contents."""
    sha, kinds = hashlib.sha256(), FILES + ((".py",) if with_code else ())
    found = [path for each in (folder, adapter) if each for path in sorted(each.iterdir())]
    for path in (path for path in found if path.suffix in kinds):
        sha.update(path.name.encode())
        if in_cache(folder) and path.resolve().parent.name == "blobs":
            sha.update(path.resolve().name.encode())
            continue
        with open(path, "rb") as file:
            while block := file.read(2**20):
                sha.update(block)
    return sha.hexdigest()[:16]


def in_cache(folder: Path | None) -> bool:
    """Whether a folder belongs to Hugging Face's cache."""
    return bool(folder) and folder.parent.name == "snapshots" and folder.parents[1].name.startswith("models--")


def _check_organism(folder: Path) -> None:
    """Raise ProbeError unless the weights and the manifest are those in the organism's record: they are ground truth."""
    record = json.loads((folder / "training.json").read_text())
    manifest = MANIFESTS / f"{record['reads']}.parquet"
    for file, digest in ((folder / "model.safetensors", record["weights"]), (manifest, record["manifest"])):
        if not file.exists() or files.sha256(file) != digest:
            raise ProbeError(
                f"{folder.name}: {file.name} is {'not the recorded one' if file.exists() else 'missing'} ({file}). Restore "
                f"it (`git checkout -- {file.parent.name}`), or train the model again: `python -m probelib.organisms "
                f"train {folder.name}`"
            )


def check_complete(folder: Path) -> None:
    """Raise ProbeError for a folder without config, safetensors or tokenizer. Pickled weights are never loaded."""
    if not (folder / "config.json").exists():
        raise ProbeError(f"{folder} has no config.json: it is not a model folder")
    if not weight_files(folder):
        raise ProbeError(
            f"{folder} has no *.safetensors that transformers loads (model.safetensors or its index). Pickled weights "
            "(*.bin, *.pt) are never loaded; convert them with `python -m probelib.lm convert FOLDER` (of a Hugging Face id: "
            "`convert ID FOLDER`) or model.save_pretrained(folder)"
        )
    if not any((folder / name).exists() for name in TOKENIZER_FILES):
        raise ProbeError(
            f"{folder} has no tokenizer ({', '.join(TOKENIZER_FILES)}); save it with tokenizer.save_pretrained(folder)"
        )
