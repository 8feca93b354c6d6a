"""``load``: a name -> a model with the verbs of ``LM``. It checks the folder; torch and the weights
come with the first verb."""

from probelib.errors import ProbeError, unknown
from probelib.lm.internals.folders import base_of, check_complete, model_folder
from probelib.lm.internals.in_memory import InMemory
from probelib.lm.internals.weights import QUANTIZE, quantization_of
from probelib.lm.model import DTYPES, LM, Model
from probelib.lm.names import SERVERS, claim, split_variant
from probelib.lm.remote.served import Served


def load(
    source,
    tokenizer=None,
    name: str | None = None,
    quantize: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
) -> Model:
    """A language model.

    source     an organism ("atlas-neox-2.4m"), a local folder, a LoRA adapter's folder (its base is
               loaded as well), a GGUF file, a Hugging Face id ("EleutherAI/pythia-160m@step1000",
               "owner/name/subfolder"), or a served model (its address, "#", its name; see
               ``remote.served``), which takes no options. A variant after any of these says how
               prompts are put ("@cue", "@shots": ``text.PATTERNS``; "@chat": a user turn) and at
               which precision: "smollm2-135m@4bit@shots". "NAME=" before it sets the display name.
               Or a transformers model in memory, with its ``tokenizer`` and a display ``name``
    quantize   None, "8bit" or "4bit" (bitsandbytes)
    device     "auto" (the GPU if there is one), "cpu", "cuda", "cuda:1"
    dtype      "auto" (float32 on a CPU; bfloat16 on a GPU, or float16 if it lacks bfloat16),
               "float32", "bfloat16", "float16"

    Raise ProbeError for an unknown name or option, and for a folder without config, safetensors or
    tokenizer. No code of a repository is run.
    """
    if hasattr(source, "forward"):
        return InMemory(source, tokenizer, name)
    if quantize is not None and quantize not in QUANTIZE:
        raise unknown("quantize", quantize, QUANTIZE)
    if dtype not in DTYPES:
        raise unknown("dtype", dtype, DTYPES)
    name, where = claim(str(source))
    where, variant = split_variant(where)
    for part in variant.split("@"):
        quantize = part if part.endswith("bit") else quantize
        dtype = part if "float" in part else dtype
    if where.startswith(SERVERS):
        if quantize or (device, dtype) != ("auto", "auto"):
            raise ProbeError(f"{name}: its server determines quantize, device and dtype")
        return Served(name, where)
    folder, adapter = base_of(model_folder(where))
    check_complete(folder)
    return LM(name, folder, adapter, quantization_of(folder, quantize), device, dtype)


def load_decoders(names: list[str], **options) -> dict[str, Model]:
    """Name -> decoder-only model; ``options`` as in ``load``. ProbeError for others."""
    loaded = {name: load(name, **options) for name in names}
    for name, model in loaded.items():
        if model.encoder_decoder:
            raise ProbeError(f"{name} is an encoder-decoder, which continues no prompt; omit it")
    return loaded
