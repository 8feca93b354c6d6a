"""``load``: a Hugging Face id, a local folder, a shipped organism or a server -> a model with the verbs of ``LM``.

Loading is lazy. ``load`` checks the folder; torch and the weights come with the first verb.
"""

import json
from pathlib import Path

from probelib import files
from probelib.errors import ProbeError, unknown
from probelib.lm.internals.in_memory import InMemory
from probelib.lm.internals.weights import OPTIONS, QUANTIZE, quantization_of
from probelib.lm.memory import SECOND_COPY, weight_files
from probelib.lm.model import DEVICE_MAPS, DTYPES, FILES, LM
from probelib.lm.names import (
    CHECKPOINTS,
    PATHS,
    SERVERS,
    absolute,
    display_name,
    is_folder,
    is_id,
    organisms,
    source_of,
    split_chat,
    split_revision,
)
from probelib.paths import PACKAGE

MANIFESTS = PACKAGE / "organisms" / "manifests"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt", "tekken.json")
TOKENIZER_FILES += ("sentencepiece.bpe.model",)
# the owners of ids that once had none
OWNERS = {"gpt2": "openai-community", "openai-gpt": "openai-community", "distilgpt2": "distilbert", "t5": "google-t5"}
OWNERS |= {"bert": "google-bert", "roberta": "FacebookAI", "xlm": "FacebookAI", "distilbert": "distilbert"}
OWNERS |= {"albert": "albert", "xlnet": "xlnet", "camembert": "almanach"}
# other libraries' names of options -> ours
RENAMED = {
    "torch_dtype": "dtype='bfloat16'",
    "load_in_4bit": "quantize='4bit'",
    "load_in_8bit": "quantize='8bit'",
    "quantization_config": "quantize='4bit' or '8bit', and its options by name",
    "tokenizer": "load(hf_model, tokenizer), with a model in memory",
    "attn_implementation": "nothing: the kit selects it",
}


def load(
    name,
    quantize: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    revision: str | None = None,
    device_map: str | None = None,
    trust_remote_code: bool = False,
    **quantization,
) -> "LM":
    """A language model.

    name          an organism ("atlas-neox-2.4m"), a local folder, a Hugging Face id ("EleutherAI/pythia-160m"), or a served
                  model ("http://localhost:8000/v1#EleutherAI/pythia-160m"; see ``remote.served``), which takes no options.
                  An id may name its revision ("EleutherAI/pythia-160m@step1000"). The folder or id of a LoRA adapter: its
                  base is loaded as well. With "@chat" after any of these, every prompt is a user turn of the model's chat
                  template. Or a transformers model in memory: ``load(hf_model, tokenizer)``
    quantize      None, "8bit" or "4bit" (bitsandbytes); ``quantization`` goes to its BitsAndBytesConfig
                  (bnb_4bit_quant_type="fp4", bnb_4bit_use_double_quant=True, ...)
    device        "auto" (the GPU if there is one), "cpu", "cuda", "cuda:1"
    dtype         "auto" (float32 on a CPU; bfloat16 on a GPU, or float16 if it lacks bfloat16), "float32", "bfloat16",
                  "float16"
    revision      branch, tag or commit of a Hugging Face id
    device_map    "auto": spread a model over all GPUs (accelerate); "offload": over all GPUs and the CPU's memory, which
                  is slow. Not with ``device``

    Raise ProbeError for an unknown name or option, and for a folder without config, safetensors or tokenizer.
    """
    if hasattr(name, "forward"):
        return InMemory(name, quantize or quantization.get("tokenizer"))
    _check_options(quantize, device, dtype, device_map, quantization)
    source = source_of(name := f"{name}@{revision}" if revision and is_id(str(name)) else str(name))
    if source != name and is_folder(name) and absolute(name) != source:
        raise ProbeError(
            f"{name} is a folder here and the display name of {source}: use the absolute path, or ./{name}"
        )
    short, (source, _) = display_name(source), split_chat(source)
    if source.startswith(SERVERS):
        from probelib.lm.remote.served import Served

        options = {"quantize": quantize, "revision": revision, "device_map": device_map} | quantization
        options |= {"device": device if device != "auto" else None, "dtype": dtype if dtype != "auto" else None}
        if chosen := [option for option, value in options.items() if value]:
            raise ProbeError(f"{short}: its server determines {', '.join(chosen)}; omit that here")
        return Served(short, source)
    folder = _folder(source, revision, trust_remote_code)
    folder, adapter = _base_of(folder, trust_remote_code)
    _check_complete(folder)
    quantize, quantization = quantization_of(folder, quantize, quantization)
    return LM(short, folder, quantize, quantization, device, dtype, device_map, trust_remote_code, adapter)


def load_decoders(names: list[str], **options) -> dict[str, LM]:
    """Name -> decoder-only model, for prompts that a model continues; ``options`` as in ``load``. Raise ProbeError for an
    encoder-decoder model."""
    loaded = {name: load(name, **options) for name in names}
    for name, model in loaded.items():
        if model.encoder_decoder:
            raise ProbeError(
                f"{name} is an encoder-decoder model; only a decoder-only model continues a list of examples. Omit it, or "
                "use atlas-neox-2.4m"
            )
    return loaded


def _check_options(quantize, device: str, dtype: str, device_map, quantization: dict) -> None:
    if quantize is not None and quantize not in QUANTIZE:
        raise unknown("quantize", quantize, QUANTIZE)
    if dtype not in DTYPES:
        raise unknown("dtype", dtype, DTYPES)
    if device_map not in DEVICE_MAPS:
        raise unknown("device_map", device_map, DEVICE_MAPS)
    if device_map and device != "auto":
        raise ProbeError(f"device={device!r} and device_map={device_map!r} exclude each other: use one of them")
    if renamed := [f"{option} is written {RENAMED[option]} here" for option in quantization if option in RENAMED]:
        raise ProbeError("; ".join(renamed))
    if quantization and not quantize:
        raise ProbeError(f"{', '.join(quantization)} requires quantize='8bit' or '4bit'")
    for option in quantization:
        if option not in OPTIONS[quantize]:
            raise unknown(f"option of quantize={quantize!r}", option, OPTIONS[quantize])


def _folder(name: str, revision: str | None, trust_remote_code: bool) -> Path:
    """The folder of a model's files; a Hugging Face id is downloaded, or read from the cache."""
    if revision and (name in organisms() or is_folder(name)):
        raise ProbeError(f"revision={revision!r} is for Hugging Face ids; {name} is a local folder with one revision")
    if name in organisms():
        _check_organism(CHECKPOINTS / name)
        return CHECKPOINTS / name
    if is_folder(name):
        return Path(name).expanduser()
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


def _base_of(folder: Path, trust_remote_code: bool) -> tuple[Path, Path | None]:
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
    return _folder(named, None, trust_remote_code), folder


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


def _check_complete(folder: Path) -> None:
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
