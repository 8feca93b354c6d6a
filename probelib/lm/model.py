"""What a model is: ``Model``, the protocol of local and served models, and ``LM``, a local one with its files, tokenizer
and weights."""

import json
import math
import re
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import MethodType
from typing import Any

from probelib.errors import ProbeError
from probelib.lm.internals.chat import Turns
from probelib.lm.internals.folders import digest_model, in_cache
from probelib.lm.internals.memory import (
    EMBEDDINGS,
    count_parameters,
    device_name,
    parameters_by_config,
    stored_quantization,
    weight_bytes,
)
from probelib.lm.internals.weights import context_length, first_line, is_masked, load_weights
from probelib.lm.names import split_chat
from probelib.lm.tokens import Tokens

CPU_BUDGET, GPU_BUDGET = 512, 2048  # tokens packed into one row
DTYPES = ("auto", "float32", "bfloat16", "float16")
DEVICE_MAPS = (None, "auto", "offload")


class Verb:
    """A function of another module, attached as a method. The module is imported at first use: ``import probelib.lm``
    needs neither torch nor pandas."""

    def __init__(self, module: str):
        self.module = f"probelib.lm.{module}"

    def __set_name__(self, owner, name: str):
        self.name = name

    def __get__(self, model, owner=None):
        function = getattr(import_module(self.module), self.name)
        return function if model is None else MethodType(function, model)


class Model:
    """What local models (``LM``) and served models (``remote.served.Served``) have in common.

    A subclass defines the attributes below, ``tokenizer``, ``context``, ``n_parameters`` (without embeddings),
    ``identity()`` (everything that changes a number: part of every store key), ``describe()`` (identity and what is only
    known once the model is loaded: provenance) and ``choose_path()`` (one of ``selfcheck.PATHS``, "pseudo" or "served").
    """

    name: str
    encoder_decoder: bool
    quantize: str | None
    dtype: str
    device: Any  # .type: "cpu", "cuda" or "server"
    memory: float  # bytes of the weights
    quantized_modules: float
    vocabulary_size: float = math.inf
    masked: bool = False  # a masked language model: scored by pseudo-log-likelihood, generates nothing
    caches: bool | None = None  # after the first text off the tree: whether generating with a cache is exact

    logprobs = Verb("scoring")
    generate = Verb("decode.generation")
    beam_steps = Verb("decode.generation")
    chat = Verb("decode.generation")
    top_continuations = Verb("decode.labels")
    hidden_states = Verb("internals.states")
    integrated_gradients = Verb("internals.gradients")
    retry_on_oom = Verb("internals.memory")

    @cached_property
    def tokens(self):
        """The tokenizer with the kit's rules; see ``tokens.Tokens``, and ``internals.chat.Turns`` for a model in chat."""
        rules = Turns if self.in_chat else Tokens
        return rules(self.tokenizer, self.encoder_decoder, self.vocabulary_size)

    @property
    def in_chat(self) -> bool:
        """Whether the model was named with "@chat": every prompt is a user turn of its chat template."""
        return split_chat(self.name)[1]

    @cached_property
    def tries(self) -> dict:
        """Label tries of earlier searches, to be searched again."""
        return {}

    @property
    def eos(self) -> int | None:
        """Id of the end-of-sequence token; None if the tokenizer has none."""
        end = self.tokenizer.eos_token_id
        if end is not None:
            self.tokens.check(self.tokenizer.eos_token, [end])
        return end

    @property
    def ends(self) -> frozenset[int]:
        """Ids that end a text."""
        return frozenset({self.eos} - {None})


class LM(Model):
    """A local model with its tokenizer, made by ``load``. The weights are loaded at first use."""

    def __init__(
        self,
        name: str,
        folder: Path,
        quantize: str | None,
        quantization: dict,
        device: str,
        dtype: str,
        device_map: str | None,
        trust_remote_code: bool,
        adapter: Path | None = None,
    ):
        self.name, self.folder, self.quantize, self.quantization = name, folder, quantize, quantization
        self._device, self._dtype, self.device_map = device, dtype, device_map
        self.trust_remote_code = trust_remote_code
        self.adapter = adapter  # folder of a LoRA adapter that is applied to the model in ``folder``
        self.path, self.reason = None, ""  # after the self-check: one of selfcheck.PATHS, and why it is not the tree
        self.flex, self.flex_reason = False, ""  # after it: whether long rows have FlexAttention, and why not
        self.unused_weights: list[str] = []
        self.own_head = False  # after loading: the files hold a head that config.json ties to the embeddings

    choose_path = Verb("selfcheck")

    # Identity

    def identity(self) -> dict:
        """Everything that changes a number: files, quantization, dtype, device type. The weights are not loaded."""
        return {
            "model": self.name,
            "files": self._digest,
            "revision": self.folder.name
            if in_cache(self.folder)
            else None,  # a snapshot's folder is named by its commit
            "quantize": self.quantize,
            "quantization": self.quantization,
            "dtype": self.dtype,
            "device": self.device.type,
        } | ({"adapter": str(self.adapter)} if self.adapter else {})

    @cached_property
    def _digest(self) -> str:
        return digest_model(self.folder, self.adapter, self.trust_remote_code)

    def describe(self) -> dict:
        """Provenance: ``identity``, and what is known once the weights are loaded."""
        attention = self.hf_model.config._attn_implementation  # loads the weights
        packed = bool(getattr(self.hf_model, "is_quantized", False))  # False: unpacked while loading (MXFP4 on a CPU)
        return self.identity() | {
            "bos": self.tokens.bos_rule,
            "eos": self.tokenizer.eos_token,
            "parameters": self.n_parameters,
            "context": self.context,
            "encoder_decoder": self.encoder_decoder,
            "quantized_modules": self.quantized_modules,
            "packed": packed,
            "memory_bytes": self.memory,
            "attention": attention,
            "path": self.path,
            "path_reason": self.reason,
            "flex": self.flex,
            "flex_reason": self.flex_reason,
            "unused_weights": self.unused_weights,
            "own_head": self.own_head,
            "device_name": device_name(self.device),
        }

    def __repr__(self) -> str:
        return f"LM({self.name}, {self.quantize or self.dtype}, {self.device})"

    # Configuration and tokenizer

    @cached_property
    def device(self):
        """The requested torch device; ProbeError if there is no such GPU."""
        import torch

        if self._device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if not re.fullmatch(r"cpu|cuda(:\d+)?", self._device):  # others are untested
            raise ProbeError(f"device is {self._device!r}; allowed: auto, cpu, cuda, cuda:1")
        device = torch.device(self._device)
        if device.type == "cuda" and not torch.cuda.is_available():
            raise ProbeError(
                f"device={self._device!r}, but torch finds no GPU here (torch {torch.__version__}); use device='cpu'"
            )
        return device

    @cached_property
    def dtype(self) -> str:
        """Precision of the weights, with "auto" resolved."""
        if self._dtype != "auto":
            return self._dtype
        if self.device.type == "cpu":
            return "float32"
        import torch

        return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"

    @cached_property
    def config(self):
        """config.json as transformers reads it, with defaults filled in."""
        from transformers import AutoConfig

        try:
            return AutoConfig.from_pretrained(self.folder, trust_remote_code=self.trust_remote_code)
        except Exception as error:  # from the file, its checks, or code of the repository
            raise ProbeError(
                f"{self.folder}: config.json cannot be read: {' '.join(str(error).split())[:300]}"
            ) from error

    @property
    def encoder_decoder(self) -> bool:
        return bool(self.config.is_encoder_decoder)

    @cached_property
    def masked(self) -> bool:
        return is_masked(self.config)

    @property
    def vocabulary_size(self) -> float:
        return getattr(self.config.get_text_config(), "vocab_size", math.inf)

    @cached_property
    def context(self) -> int:
        """Longest sequence in tokens (no limit for T5, whose positions are relative)."""
        return context_length(self.config)

    @cached_property
    def tokenizer(self):
        from transformers import AutoTokenizer

        try:
            own = self.adapter and (self.adapter / "tokenizer_config.json").exists()
            folder = self.adapter if own else self.folder
            return AutoTokenizer.from_pretrained(folder, config=self.config, trust_remote_code=self.trust_remote_code)
        except Exception as error:  # from files, missing libraries, or code of the repository
            raise ProbeError(f"{self.folder}: the tokenizer cannot be read: {first_line(error)}") from error

    @cached_property
    def ends(self) -> frozenset[int]:
        """Ids that end a text: the tokenizer's, and those of generation_config.json (end of turn in Gemma and Phi 3)."""
        file = self.folder / "generation_config.json"
        try:
            ids = json.loads(file.read_text(encoding="utf-8")).get("eos_token_id") if file.exists() else None
        except (ValueError, AttributeError) as error:
            raise ProbeError(f"{file} cannot be read: {error}") from error
        ids = (self.eos, *(ids if isinstance(ids, list) else [ids]))
        return frozenset(i for i in ids if isinstance(i, int) and i >= 0)

    @property
    def pad(self) -> int:
        """A valid token to pad with; it is always masked."""
        return min(self.ends, default=0)

    @cached_property
    def n_parameters(self) -> int:
        """Parameters without the embeddings (of a quantized model: before packing), as used in scaling fits."""
        if stored_quantization(self.folder):
            return int(parameters_by_config(self.folder, without=EMBEDDINGS) or 0)
        return count_parameters(self.folder, without=EMBEDDINGS)

    @cached_property
    def memory(self) -> int:
        """Bytes of the weights, estimated before loading."""
        return weight_bytes(self)

    # Weights

    @cached_property
    def hf_model(self):
        """The transformers model in evaluation mode."""
        return load_weights(self)

    # Token budget

    @property
    def default_budget(self) -> int:
        return GPU_BUDGET if self.device.type == "cuda" else CPU_BUDGET

    @cached_property
    def budget(self) -> int:
        """Most tokens packed into one row. Constant on a CPU, so that results repeat; on a GPU halved when out of memory."""
        return self.default_budget

    def rows(self, most: int, budget: int) -> int:
        """Rows of a padded batch: ``most`` with the default budget, fewer with a reduced one."""
        return max(1, most * budget // self.default_budget)
