"""``load``: a Hugging Face id, a local folder, a shipped organism or a server -> a model with the
verbs of ``LM``.

Loading is lazy. ``load`` checks the folder; torch and the weights come with the first verb.
"""

import inspect

from probelib.errors import ProbeError, unknown
from probelib.lm.internals.folders import base_of, check_complete, model_folder
from probelib.lm.internals.in_memory import InMemory
from probelib.lm.internals.weights import OPTIONS, QUANTIZE, quantization_of
from probelib.lm.model import DEVICE_MAPS, DTYPES, LM, Model
from probelib.lm.names import SERVERS, claim, is_id, split_display, split_variant
from probelib.lm.remote.served import Served


def load(
    source,
    quantize: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    revision: str | None = None,
    device_map: str | None = None,
    trust_remote_code: bool = False,
    **quantization,
) -> Model:
    """A language model.

    source        an organism ("atlas-neox-2.4m"), a local folder, a GGUF file, a Hugging Face id
                  ("EleutherAI/pythia-160m", "EleutherAI/pythia-160m@step1000"), a LoRA adapter
                  (its base is loaded as well), or a served model (its address, "#", its name; see
                  ``remote.served``), which takes no options. A variant after any of these says how
                  prompts are put ("@cue", "@shots": ``text.PATTERNS``; "@chat": a user turn) and
                  at which precision: "smollm2-135m@4bit@shots". "NAME=" before it sets the display
                  name. Or a transformers model in memory: ``load(hf_model, tokenizer, name=...)``
    quantize      None, "8bit" or "4bit" (bitsandbytes); ``quantization`` goes to its
                  BitsAndBytesConfig (bnb_4bit_quant_type="fp4", ...)
    device        "auto" (the GPU if there is one), "cpu", "cuda", "cuda:1"
    dtype         "auto" (float32 on a CPU; bfloat16 on a GPU, or float16 if it lacks bfloat16),
                  "float32", "bfloat16", "float16"
    revision      branch, tag or commit of a Hugging Face id
    device_map    "auto": spread a model over all GPUs (accelerate); "offload": over all GPUs and
                  the CPU's memory, which is slow. Not with ``device``

    Raise ProbeError for an unknown name or option, and for a folder without config, safetensors or
    tokenizer.
    """
    if hasattr(source, "forward"):
        name, tokenizer = (quantization.pop(key, None) for key in ("name", "tokenizer"))
        if quantization:
            raise unknown("option of a model in memory", min(quantization), ("name",))
        return InMemory(source, quantize or tokenizer, name)
    _check_options(quantize, device, dtype, device_map, quantization)
    given, where = split_display(str(source))
    asked = f"{where}@{revision}" if revision and is_id(where) else where
    name, where = claim(f"{given}={asked}" if given else asked)
    where, variant = split_variant(where)
    for part in variant.split("@"):
        quantize = part if part.endswith("bit") else quantize
        dtype = part if "float" in part else dtype
    if where.startswith(SERVERS):
        options: dict = {"quantize": quantize, "revision": revision, "device_map": device_map}
        options |= {"device": device, "dtype": dtype} | quantization
        if chosen := [option for option, value in options.items() if value not in (None, "auto")]:
            raise ProbeError(f"{name}: its server determines {', '.join(chosen)}; omit that here")
        return Served(name, where)
    folder, adapter = base_of(model_folder(where, revision, trust_remote_code), trust_remote_code)
    check_complete(folder)
    quantize, quantization = quantization_of(folder, quantize, quantization)
    own: dict = {"quantize": quantize, "quantization": quantization, "device": device}
    own |= {"dtype": dtype, "device_map": device_map, "trust_remote_code": trust_remote_code}
    return LM(name, folder, adapter, **own)


def load_decoders(names: list[str], **options) -> dict[str, Model]:
    """Name -> decoder-only model, for prompts that a model continues; ``options`` as in ``load``.
    Raise ProbeError for an encoder-decoder model."""
    loaded = {name: load(name, **options) for name in names}
    for name, model in loaded.items():
        if model.encoder_decoder:
            raise ProbeError(
                f"{name} is an encoder-decoder model; only a decoder-only model continues a list "
                "of examples. Omit it, or use atlas-neox-2.4m"
            )
    return loaded


def _check_options(quantize, device: str, dtype: str, device_map, quantization: dict) -> None:
    asked = {"quantize": quantize, "dtype": dtype, "device_map": device_map}
    allowed: dict = {"quantize": (None, *QUANTIZE), "dtype": DTYPES, "device_map": DEVICE_MAPS}
    for name, value in asked.items():
        if value not in allowed[name]:
            raise unknown(name, value, allowed[name])
    if device_map and device != "auto":
        what = f"device={device!r} and device_map={device_map!r} exclude each other"
        raise ProbeError(f"{what}: use one of them")
    for option in quantization:
        if not any(option in known for known in OPTIONS.values()):
            every = [name for name in inspect.signature(load).parameters if name != "source"]
            raise unknown("option", option, [*every, *OPTIONS.get(quantize or "", ())])
        if option not in OPTIONS.get(quantize or "", ()):
            needed = " or ".join(repr(kind) for kind in OPTIONS if option in OPTIONS[kind])
            raise ProbeError(f"{option} requires quantize={needed}")
