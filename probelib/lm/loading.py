"""``load``: a Hugging Face id, a local folder or a shipped organism by its name -> an ``LM`` with the four verbs.

Nothing heavy happens until a verb is called: a folder is checked and its files are hashed (that is what a store key
needs); torch and the weights come with the first question.
"""

import itertools
import json
import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from probelib import files
from probelib.errors import ProbeError, unknown
from probelib.lm.model import DEVICE_MAPS, DTYPES, FILES, LM, QUANTIZE, SECOND_COPY
from probelib.paths import PACKAGE

CHECKPOINTS = PACKAGE / "organisms" / "checkpoints"
MANIFEST = PACKAGE / "organisms" / "manifest.parquet"
PATHS = (".", "/", "~")  # how a folder's name begins that is no name of a model
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json")
SERVERS = ("http://", "https://")
NAMES = 2  # of a folder's path, by which it is called
_places: dict[str, str] = {}  # short name -> the folder or server that goes by it in this process


def organisms() -> list[str]:
    """Names of the models that are shipped."""
    return sorted(path.name for path in CHECKPOINTS.glob("*") if (path / "config.json").exists())


def load(
    name: str | Path,
    quantize: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    revision: str | None = None,
    device_map: str | None = None,
    trust_remote_code: bool = False,
    **quantization,
) -> "LM":
    """A language model.

    name          an organism ("atlas-neox-2m"), a local folder, a Hugging Face id ("EleutherAI/pythia-160m"), or a model behind
                  a server ("http://localhost:8000/v1#EleutherAI/pythia-160m", see ``served``; the server decides the rest)
    quantize      None, "8bit" or "4bit" (bitsandbytes); ``quantization`` goes to its BitsAndBytesConfig
                  (bnb_4bit_quant_type="fp4", bnb_4bit_use_double_quant=True, ...)
    device        "auto" (the GPU if there is one), "cpu", "cuda", "cuda:1"
    dtype         "auto" (float32 on CPU; bfloat16 on GPU, float16 where it cannot), "float32", "bfloat16", "float16"
    revision      branch, tag or commit of a Hugging Face id
    device_map    "auto" spreads a model that is larger than one GPU over all of them (accelerate), "offload" over them and,
                  what does not fit, over the CPU's memory, which is slow; never without being asked. Not with ``device``

    Raises ProbeError for an unknown name, a folder without config, weights in safetensors or tokenizer, an unknown option.
    """
    if quantize is not None and quantize not in QUANTIZE:
        raise unknown("quantize", quantize, QUANTIZE)
    if dtype not in DTYPES:
        raise unknown("dtype", dtype, DTYPES)
    if device_map not in DEVICE_MAPS:
        raise unknown("device_map", device_map, DEVICE_MAPS)
    if device_map and device != "auto":
        raise ProbeError(f"device={device!r} and device_map={device_map!r}: one place or many, not both")
    if quantization and not quantize:
        raise ProbeError(f"{', '.join(quantization)} given without quantize='8bit' or '4bit'")
    short = _short_name(str(name))
    place = _places.get(short, short)
    if place.startswith(SERVERS):
        asked = {"quantize": quantize, "revision": revision, "device_map": device_map} | quantization
        asked |= {"device": device if device != "auto" else None, "dtype": dtype if dtype != "auto" else None}
        if given := [option for option, value in asked.items() if value]:
            raise ProbeError(f"{short}: its server was started with its own {', '.join(given)}; leave that out here")
        from probelib.lm.served import Served

        return Served(short, place)
    folder = _folder(place, revision, trust_remote_code)
    _complete(folder)
    return LM(short, folder, quantize, quantization, device, dtype, device_map, trust_remote_code)


def short_names(models: str | list[str] | None) -> str | list[str] | None:
    """What models are called in tables and figures, and as ``LM.name``; ``load`` knows them by these names, too, from then on.

    A folder goes by its last two names ("/data/run-7/checkpoint-1000": "run-7/checkpoint-1000"), those of a list by as many as
    tell them apart; a served model by its own name and its server ("pythia-410m at localhost:8000"), any other as it is; of
    "tuned=base" each half. A notebook's parameters can go through as they are: a name, a list of names, None.
    """
    if models is None or isinstance(models, str):
        return models and short_names([models])[0]
    halves = dict.fromkeys(half for entry in models for half in with_base(entry) if half)
    folders = {place for half in halves if (place := _folder_of(half))}
    names = [half for half in halves if not _folder_of(half)]
    apart = lambda n: len({*names, *(_tail(place, n) for place in folders)}) == len(names) + len(folders)
    n = next(n for n in itertools.count(NAMES) if apart(n))
    return ["=".join(_short_name(half, n) for half in with_base(entry) if half) for entry in models]


def with_base(entry: str) -> tuple[str, str]:
    """An entry of a list of tuned models, "tuned=base" or the tuned model alone -> (tuned, base or ""). A folder's name may hold
    a "=" itself ("lr=1e-4/checkpoint-100").

    >>> with_base("lmsys/vicuna-7b-v1.3=huggyllama/llama-7b"), with_base("atlas-neox-2m-it")
    (('lmsys/vicuna-7b-v1.3', 'huggyllama/llama-7b'), ('atlas-neox-2m-it', ''))
    """
    parts = entry.split("=")
    cuts = [("=".join(parts[:i]), "=".join(parts[i:])) for i in range(len(parts), 0, -1)]
    is_folder = lambda name: name in _places or Path(name).expanduser().is_dir()
    return next((cut for cut in cuts if is_folder(cut[0])), (parts[0], "=".join(parts[1:])))


def _short_name(name: str, n: int = NAMES) -> str:
    """The short name of one; of a folder ``n`` of its names, or so many that no other place has the same."""
    if name.startswith(SERVERS):
        from probelib.lm import endpoint

        url, _, model = name.partition("#")
        endpoint.check_url(url)
        if not model:
            raise ProbeError(f"{name}: which model? {url}#NAME is wanted, NAME as {url}/models lists it")
        return _known_as([f"{_short_name(model)} at {urlsplit(url).netloc}", name], name)
    if place := _folder_of(name):
        return _known_as((_tail(place, i) for i in itertools.count(n)), place)
    return name


def _known_as(names: Iterable[str], place: str) -> str:
    """The name that a place has, or from now on: the first that no other place has."""
    own = [short for short, known in _places.items() if known == place]
    short = own[0] if own else next(name for name in names if name not in _places)
    _places[short] = place
    return short


def _folder_of(name: str) -> str | None:
    """The whole path of a folder; None for what is none, or a name that is known. A link keeps its own name."""
    if name in _places or name in organisms() or not name or not Path(name).expanduser().is_dir():
        return None
    return os.path.abspath(Path(name).expanduser())


def _tail(path: str, n: int) -> str:
    return str(Path(*Path(path).parts[-n:]))


def _folder(name: str, revision: str | None, trust_remote_code: bool) -> Path:
    """Where the files of a model lie; a Hugging Face id is fetched (or found in its cache) first."""
    if name in organisms():
        _as_trained(CHECKPOINTS / name)
        return CHECKPOINTS / name
    if Path(name).expanduser().is_dir() and name:
        return Path(name).expanduser()
    if name.startswith(PATHS):
        raise ProbeError(f"{name}: there is no such folder")
    if "/" not in name:
        raise unknown("model", name, [*organisms(), "<folder>", "<owner>/<name> on Hugging Face"])
    from huggingface_hub import errors, snapshot_download

    patterns = [f"*{kind}" for kind in FILES] + (["*.py"] if trust_remote_code else [])
    try:
        ignored = [f"{SECOND_COPY}*", "*/*"]  # weights once more, in another format
        return Path(snapshot_download(name, revision=revision, allow_patterns=patterns, ignore_patterns=ignored))
    except errors.GatedRepoError as error:
        raise ProbeError(
            f"{name} is gated: accept its licence on its Hugging Face page, then `huggingface-cli login`"
        ) from error
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        raise ProbeError(
            f"Hugging Face knows no model {name!r}{f' at revision {revision!r}' if revision else ''}; "
            f"check the spelling. Shipped models: {', '.join(organisms())}"
        ) from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, OSError) as error:
        raise ProbeError(
            f"{name} is not in the local Hugging Face cache and cannot be fetched (offline?). Download it where "
            f"there is a network and give its folder, or take a shipped model: {', '.join(organisms())}"
        ) from error


def _as_trained(folder: Path) -> None:
    """A shipped organism must have the weights and the manifest that its record names: they are the kit's ground truth."""
    record = json.loads((folder / "training.json").read_text())
    for file, wanted in ((folder / "model.safetensors", record["weights"]), (MANIFEST, record["manifest"])):
        if not file.exists() or files.sha256(file) != wanted:
            raise ProbeError(
                f"{folder.name}: {file.name} is {'not the one' if file.exists() else 'missing, the one'} that {folder.name} was "
                f"trained with or saved as ({file}). Restore it (`git checkout -- {file.parent.name}`), or train anew: "
                f"`python -m probelib.organisms train {folder.name}`"
            )


def _complete(folder: Path) -> None:
    """A folder must hold a config, safetensors and a tokenizer: pickled weights are never loaded."""
    if not (folder / "config.json").exists():
        raise ProbeError(f"{folder}: no config.json, so this is not a model folder")
    if not any(folder.glob("*.safetensors")):
        raise ProbeError(
            f"{folder}: no *.safetensors. Pickled weights (*.bin, *.pt) are never loaded; convert them with "
            "model.save_pretrained(folder)"
        )
    if not any((folder / name).exists() for name in TOKENIZER_FILES):
        raise ProbeError(
            f"{folder}: no tokenizer ({', '.join(TOKENIZER_FILES)}); save it with tokenizer.save_pretrained(folder)"
        )
