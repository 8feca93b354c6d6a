"""Which models are shipped, display names of models, and which models go together by their names.

input                                              display name
an organism or a Hugging Face id (see ``ID``)      the same
a folder "/data/run-7/checkpoint-1000"             its last two parts: "run-7/checkpoint-1000"
a folder of Hugging Face's cache                   the id: "EleutherAI/pythia-160m"
"http://localhost:8000/v1#owner/name"              "owner/name at localhost:8000"
"Qwen/Qwen3-0.6B@4bit@shots"                       the same: a variant (see ``VARIANT``)
"mine=/data/run-7/checkpoint-1000"                 "mine" (a word that is no model itself)
"tuned=base"                                       both halves

Within a process a display name belongs to one source. A second source of the same name is an error.
"""

import os
import re
import warnings
from pathlib import Path
from urllib.parse import urlsplit

from probelib.errors import ProbeError, unknown
from probelib.lm.remote.transport import check_url
from probelib.lm.text import DATA
from probelib.paths import PACKAGE

CHECKPOINTS = PACKAGE / "organisms" / "checkpoints"
PATHS = (".", "/", "~")  # prefixes of paths that cannot be model names
SERVERS = ("http://", "https://")
FORMATS = ("cue", "shots", "chat")  # how prompts are put, see ``text.PATTERNS``
# owner/name[@revision][/subfolder]; a revision has no slash, but for refs/pr/1
ID = re.compile(r"(\w[\w.-]*/[\w.-]+)(?:@(refs/\w+/\w+|[^/]+))?((?:/\w[\w.-]*)*)")
# after a name: a format, a quantization, a precision
VARIANTS = (*FORMATS, "8bit", "4bit", "float32", "bfloat16", "float16")
VARIANT = re.compile(f"(@({'|'.join(VARIANTS)}))+$")
_sources: dict[str, str] = {}  # display name -> its source in this process
PACKAGED = DATA["packaged"]  # display name -> (package, its file, SHA-256): real models


def organisms() -> list[str]:
    """Names of the shipped models."""
    return sorted(path.name for path in CHECKPOINTS.glob("*") if (path / "config.json").exists())


def short_names(*parameters, format: str = "bare"):
    """Display names of models, as in tables, figures and ``LM.name``; ``load`` takes them from
    then on.

    parameters  all parameters of a notebook that name models: each a name, a list of names, or None
    format      "cue", "shots" or "chat": of every name that has no format of its own
    returns     the same with display names, each once per list (named twice: with a warning); of
                a single parameter just its value

    Raise ProbeError if two sources have one display name.
    """
    if format not in ("bare", *FORMATS):
        raise unknown("format", format, ("bare", *FORMATS))
    put = lambda name: name if format == "bare" or format_of(name) else f"{name}@{format}"
    shorten = lambda entry: "=".join(claim(put(half))[0] for half in with_base(entry) if half)
    renamed: list = []
    for names in parameters:
        if names is None or isinstance(names, str):
            renamed.append(shorten(names) if names else names)
            continue
        short = list(map(shorten, names))
        if twice := sorted({name for name in short if short.count(name) > 1}):
            warnings.warn(f"{', '.join(twice)}: named twice, counted once", stacklevel=2)
        renamed.append(list(dict.fromkeys(short)))
    return renamed if len(renamed) > 1 else renamed[0]


def claim(name: str) -> tuple[str, str]:
    """(display name, source) of a model from now on; ProbeError if the name is another's."""
    plain, variant = split_variant(name)
    if variant:  # a variant of a display name is one of its source
        short, source = claim(plain)
        return short.removesuffix(variant) + variant, source + variant
    given, source = split_display(name)
    if not given and source in _sources:
        if is_folder(source) and absolute(source) != _sources[source]:
            what = f"{source} is a folder here and the display name of {_sources[source]}"
            raise ProbeError(f"{what}: use the absolute path, or ./{source}")
        return source, _sources[source]
    first, _, rest = source.partition("=")
    if first in _sources and rest and not is_folder(source):  # "mine=other", and mine is taken
        short, source = first, rest
    else:
        source = absolute(source)
        named = display_name(source)  # checks an address, too
        short = given or named
    if _sources.setdefault(short, source) != source:
        what = f"{_sources[short]} and {source} have the same display name {short!r}"
        raise ProbeError(f"{what}. Give one of them another name: another-name={source}")
    return short, source


def split_display(name: str) -> tuple[str, str]:
    """(display name, source) of "mine=/data/model"; ("", name) of a name without one."""
    first, _, rest = name.partition("=")
    plain = split_variant(rest)[0]
    source = plain in (*organisms(), *PACKAGED) or "/" in rest or is_folder(plain)
    source = source or plain.casefold().endswith(".gguf")
    known = split_variant(name)[0] in _sources or first in organisms() or is_folder(name)
    if known or not source or "/" in first:
        return "", name
    # another source's display name is a tuned model, and the rest its base
    other = first in _sources and _sources[first] != absolute(split_variant(with_base(rest)[0])[0])
    return ("", name) if other or is_folder(first) else (first, rest)


def with_base(entry: str) -> tuple[str, str]:
    """(tuned, base or "") of an entry "tuned=base" or "tuned". Names of folders may hold "="
    themselves ("lr=1e-4/checkpoint-100"), and the tuned model may have a display name."""
    given, source = split_display(entry)
    if given:
        tuned, base = with_base(source)
        return f"{given}={tuned}", base
    parts = entry.split("=")
    cuts = [("=".join(parts[:i]), "=".join(parts[i:])) for i in range(len(parts), 0, -1)]
    known = lambda name: split_variant(name)[0] in _sources or is_folder(split_variant(name)[0])
    return next((cut for cut in cuts if known(cut[0])), cuts[-1])


def display_name(source: str) -> str:
    """The display name of a model without one of its own; see the module's table."""
    if source.startswith(SERVERS):
        url, _, model = source.partition("#")
        check_url(url)
        if not model:
            raise ProbeError(f"{source} names no model: use {url}#NAME, as {url}/models lists it")
        short = _last_parts(model) if model.startswith(PATHS) else model
        return f"{short} at {urlsplit(url).netloc}"
    if source.casefold().endswith(".gguf"):
        return Path(source).stem
    known = source in organisms() or not is_folder(source)
    return source if known else _last_parts(absolute(source))


def is_folder(name: str) -> bool:
    """Whether a name is an existing folder."""
    return bool(name) and os.path.isdir(os.path.expanduser(name))


def is_id(name: str) -> bool:
    """Whether a name could be a Hugging Face id: owner/name[@revision][/subfolder]."""
    return ID.fullmatch(split_variant(name)[0]) is not None


def split_revision(name: str) -> tuple[str, str | None, str]:
    """A Hugging Face id, its revision, and the folder in its repository.

    >>> split_revision("EleutherAI/pythia-160m@step1000"), split_revision("a/b@refs/pr/1/fp16")
    (('EleutherAI/pythia-160m', 'step1000', ''), ('a/b', 'refs/pr/1', 'fp16'))
    """
    name, _ = split_variant(name)
    found = None if is_folder(name) else ID.fullmatch(name)
    return (found[1], found[2], found[3].strip("/")) if found else (name, None, "")


def split_variant(name: str) -> tuple[str, str]:
    """A model's name, and the variant after it: ("Qwen/Qwen3-0.6B", "@4bit@chat"), or ""."""
    found = VARIANT.search(name)
    return (name[: found.start()], found[0]) if found and not is_folder(name) else (name, "")


def format_of(name: str) -> str:
    """The format in a model's name: "cue", "shots" or "chat"; "" without one."""
    return next((part for part in split_variant(name)[1].split("@") if part in FORMATS), "")


def absolute(name: str) -> str:
    """The absolute path of a folder (links are not resolved); any other name unchanged."""
    path = os.path.expanduser(name)
    local = is_folder(name) or (name.casefold().endswith(".gguf") and os.path.isfile(path))
    return os.path.abspath(path) if local and name not in organisms() else name


def _last_parts(path: str) -> str:
    parts = Path(path).parts
    repository, kind, _ = ("", "", *parts)[-3:]  # of Hugging Face's cache
    if kind == "snapshots" and repository.startswith("models--"):
        return repository.removeprefix("models--").replace("--", "/")
    return str(Path(*parts[-2:]))


def family(name: str) -> str:
    """The part of a model's name before its size.

    >>> family("atlas-neox-0.6m"), family("lmsys/vicuna-7b-v1.3")
    ('atlas-neox', 'lmsys/vicuna')
    """
    return re.split(r"-\d+(?:\.\d+)?[mb]\d*(?![a-z])", name, flags=re.IGNORECASE)[0]


def tuned_pairs(tuned: list[str]) -> dict[str, str]:
    """Instruction-tuned model -> its base: ``X-it`` -> ``X``; an entry ``Y=X`` names the base."""
    return {name: base or name.removesuffix("-it") for name, base in map(with_base, tuned)}


def pairs_with_base(models: list[str], tuned: list[str]) -> list[tuple[str, str]]:
    """(instruction-tuned model, base) of every entry of ``tuned`` whose base is in ``models``."""
    return [(name, base) for name, base in tuned_pairs(tuned).items() if base in {*models} - {name}]


def tuned_of(model: str, tuned: list[str]) -> str | None:
    """The first instruction-tuned model of a base; None if there is none."""
    return next((name for name, _ in pairs_with_base([model], tuned)), None)
