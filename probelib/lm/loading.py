"""``load``: a name -> a model with the verbs of ``LM``. It checks the folder and reads its
configuration; the weights come with the first verb."""

import hashlib
import json
import warnings
from pathlib import Path

from probelib.errors import ProbeError, unknown
from probelib.lm import text
from probelib.lm.internals.folders import (
    EMBEDDINGS,
    QUANTIZE,
    base_of,
    check_complete,
    model_folder,
    packed_as,
)
from probelib.lm.model import DTYPES, LM, Model
from probelib.lm.names import SERVERS, claim, split_variant


def load(source, tokenizer=None, name=None, quantize=None, device="auto", dtype="auto") -> Model:
    """A language model.

    source     an organism ("atlas-neox-2.4m"), a local folder, a LoRA adapter's folder (its base is
               loaded as well), a GGUF file, a Hugging Face id ("EleutherAI/pythia-160m@step1000",
               "owner/name/subfolder"), or a served model (its address, "#", its name; see
               ``remote.served``), which takes no options. A variant after any of these says how
               prompts are put ("@cue", "@shots": ``text.PATTERNS``; "@chat": a user turn) and at
               which precision (it overrides the options): "smollm2-135m@4bit@shots". "NAME=" sets
               the display name. Or a model in memory, with its ``tokenizer`` and display ``name``
    quantize   None, "8bit" or "4bit" (bitsandbytes)
    device     "auto" (the GPU if there is one), "cpu", "cuda", "cuda:1"
    dtype      "auto" (float32 on a CPU; bfloat16 on a GPU, or float16 if it lacks bfloat16),
               "float32", "bfloat16", "float16"

    Raise ProbeError for an unknown name or option, a GPU that is not here, and a folder without
    config, safetensors or tokenizer, or with damaged ones. No code of a repository is run."""
    if hasattr(source, "forward"):
        if quantize or (device, dtype) != ("auto", "auto"):
            raise ProbeError("a model in memory determines quantize, device and dtype: omit them")
        return InMemory(source, tokenizer, name)
    if tokenizer is not None or name:
        raise ProbeError(f"tokenizer and name go with a model in memory; use 'NAME={source}'")
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
        from probelib.lm.remote.served import Served

        if quantize or (device, dtype) != ("auto", "auto"):
            raise ProbeError(f"{name}: its server determines quantize, device and dtype")
        return Served(name, where)
    folder, adapter = base_of(model_folder(where))
    return LM(name, folder, adapter, check_complete(folder, quantize), device, dtype)


def load_decoders(names: list[str], **options) -> dict[str, Model]:
    """Name -> decoder-only model; ``options`` as in ``load``. ProbeError for others."""
    loaded = {name: load(name, **options) for name in names}
    if other := [name for name, model in loaded.items() if model.encoder_decoder]:
        raise ProbeError(f"{other[0]} is an encoder-decoder, which continues no prompt; omit it")
    return loaded


def connect(name: str):
    """As ``load``; "gpt-4o@https://api.openai.com/v1" is a ``ChatModel``, used for texts only."""
    from probelib.lm.remote.served import ChatModel

    model, _, url = name.partition("@")
    return ChatModel(model, url) if url.startswith(SERVERS) else load(name)


class InMemory(LM):
    """An ``LM`` without a folder: a transformers model that is already in memory, such as one that
    is being trained. The object is shared, not copied: later changes change the scores and their
    key, which is measured whenever it is asked for. Scoring leaves it as it was."""

    tokenizer_source = "as given"

    def __init__(self, hf_model, tokenizer, name: str | None = None):
        if tokenizer is None:
            raise ProbeError("a model in memory needs its tokenizer: load(hf_model, tokenizer)")
        file = Path(getattr(tokenizer, "name_or_path", "") or "", "tokenizer.json")
        if file.is_file() and (read := text.first_difference(tokenizer, file)):
            said = f"the tokenizer reads {read!r} otherwise than {file}"
            warnings.warn(f"{said}; lm.load(folder).tokenizer is the file's", stacklevel=3)
        hf_model = getattr(hf_model, "_orig_mod", hf_model)  # of torch.compile
        if hasattr(hf_model, "get_base_model"):  # peft
            if any(config.is_prompt_learning for config in hf_model.peft_config.values()):
                raise ProbeError("soft prompts of peft are not applied here; use a LoRA adapter")
            hf_model = hf_model.get_base_model()  # its layers carry the adapter
        dtype = str(hf_model.dtype).removeprefix("torch.")
        self._given, self.tokenizer, self.config = hf_model, tokenizer, hf_model.config
        super().__init__(name or "", None, None, None, str(hf_model.device), dtype)
        if stored := getattr(hf_model.config, "quantization_config", None):
            self.quantize = packed_as(stored if isinstance(stored, dict) else stored.to_dict())
        four = [m for m in hf_model.modules() if type(m).__name__ == "Linear4bit"]
        packed = {id(m.weight): m.in_features * m.out_features for m in four}  # two in a byte
        named = hf_model.named_parameters()
        inner = [p for name, p in named if not any(word in name for word in EMBEDDINGS)]
        self.n_parameters = sum(packed.get(id(p), p.numel()) for p in inner)
        self._measured: dict = {}  # the last identity
        if not name:  # two models of one origin differ: an adapter on and off
            origin = Path(getattr(hf_model, "name_or_path", "") or type(hf_model).__name__)
            sha = hashlib.sha256(json.dumps(self.identity(), default=str).encode()).hexdigest()
            self.name = f"{Path(*origin.parts[-2:])} in memory ({sha[:6]})"

    def identity(self) -> dict:
        """Everything that changes a number, as it is now: the weights may have been trained."""
        import torch

        from probelib.lm.internals.hf_model import weight_sums

        sha = hashlib.sha256()  # sums of weights would miss two rows that change places
        for name, tensor in self._given.state_dict().items():
            sha.update(name.encode())
            sha.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        found = {
            "files": sha.hexdigest()[:16],
            "settings": weight_sums(self.hf_model),  # also the configuration
            "reads": text.digest(self.tokenizer),
            "ends": self.generation_ends,
            "probe": self.probe,
            "quantize": self.quantize,
            "dtype": self.dtype,
            "device": self.device.type,
        }
        if self._measured not in ({}, found):  # what was made for the earlier model
            for name in {"tokens", "ends"} & vars(self).keys():
                del vars(self)[name]
            self.path, self.tries = None, {}
            self.vocabulary_size = self.config.get_text_config().vocab_size
        self._measured = found
        return {"model": self.name} | found

    _identity = identity

    @property
    def probe(self) -> list[float]:  # type: ignore[override]
        from probelib.lm.internals.hf_model import probe

        return probe(self)

    @property
    def generation_ends(self):
        config = getattr(self._given, "generation_config", None)  # masked models have none
        return getattr(config, "eos_token_id", None)
