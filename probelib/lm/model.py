"""``Model``, the protocol of local and served models, and ``LM``, a local one."""

import copy
import json
import math
import platform
import re
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from probelib.errors import ProbeError
from probelib.lm import text
from probelib.lm.internals import folders
from probelib.lm.names import format_of
from probelib.lm.tokens import Tokens

BUDGETS = {"cpu": 512, "cuda": 2048}  # tokens packed into one row
NARROW, LONG = 576, 8192  # models of at most this width wait for a GPU's kernels to start
DEEPEST = 10_000  # layers; a file that names more is damaged
# RoBERTa and its kin number the first token's position pad_token_id + 1: the table is that longer
SHIFTED = re.compile("|".join(text.DATA["shifted_positions"]))
LONGEST = ("max_position_embeddings", "max_seq_len", "seq_length")  # sequences
SPARSE = ("index_topk", "lsh_attn_chunk_length")  # beyond so many keys later tokens change scores
# ways to score, fastest first; "alone" is "plain" one sequence at a time
PATHS = ("tree", "repeated", "plain", "alone")
DTYPES = ("auto", "float32", "bfloat16", "float16")


class Model:
    """What local models (``LM``) and served models (``remote.served.Served``) have in common.

    A subclass defines the attributes below, ``context`` (the longest sequence in tokens),
    ``n_parameters`` (without embeddings), ``identity()`` (all that changes a number, for store
    keys), ``describe()`` (provenance, of a loaded model) and ``choose_path()`` (one of ``paths``).
    """

    name: str
    paths: tuple[str, ...]  # of ``PATHS``, or "pseudo" or "served"
    encoder_decoder: bool
    quantize: str | None
    dtype: Any
    device: Any  # .type: "cpu", "cuda" or "server"
    tokenizer: Any
    quantized_modules: float
    vocabulary_size: float = math.inf
    card: Any = None  # a server's entry for the model
    tries: dict  # label tries of earlier searches, to be searched again
    generation_ends: Any = None  # an id or a list of ids
    masked: bool = False  # scored by pseudo-log-likelihood, generates nothing

    # The verbs. Their modules are imported at first use: ``import probelib.lm`` needs no torch.

    def logprobs(self, prompts, continuations, *args, **options):
        """See ``scoring.logprobs``."""
        from probelib.lm.scoring import logprobs

        return logprobs(self, prompts, continuations, *args, **options)

    def generate(self, prompts, *args, **options):
        """See ``decode.generation.generate``."""
        from probelib.lm.decode.generation import generate

        return generate(self, prompts, *args, **options)

    def top_continuations(self, prompt, labels, n, *args, **options):
        """See ``decode.labels.top_continuations``."""
        from probelib.lm.decode.labels import top_continuations

        return top_continuations(self, prompt, labels, n, *args, **options)

    def hidden_states(self, texts, *args, **options):
        """See ``internals.states.hidden_states``."""
        from probelib.lm.internals.states import hidden_states

        return hidden_states(self, texts, *args, **options)

    def chat(self, prompt: str) -> str:
        """A prompt in the model's format; without one, as a user turn if there is a template."""
        if self.tokens.format:
            return self.tokens.read(prompt)
        has_one = getattr(self.tokenizer, "chat_template", None)
        return text.user_turn(self.tokens, prompt)[0] if has_one else prompt

    def needs_generator(self, purpose: str) -> None:
        """Raise ProbeError for a masked language model: it has no left-to-right probability."""
        if self.masked:
            what = f"{self.name} is a masked language model: it has no left-to-right probabilities"
            raise ProbeError(f"{what}, which {purpose} needs. Use another model here")

    @cached_property
    def tokens(self) -> Tokens:
        """The tokenizer with the kit's rules; see ``tokens.Tokens``."""
        return Tokens(
            self.tokenizer, self.encoder_decoder, self.vocabulary_size, format_of(self.name)
        )

    @cached_property
    def ends(self) -> frozenset[int]:
        """Ids that end a text: the tokenizer's, and those of generation_config.json (end of turn in
        Gemma and Phi 3)."""
        own = self.generation_ends
        ids = (self.tokens.eos, *(own if isinstance(own, list) else [own]))
        return frozenset(i for i in ids if isinstance(i, int) and i >= 0)


class LM(Model):
    """A local model with its tokenizer, made by ``load``. The first verb loads the weights and
    chooses the ``path`` that scores it (of ``paths``; ``why`` it is not the first)."""

    path: str | None = None
    probe: list[float]  # ``internals.hf_model.probe``, set when the weights are loaded
    why = ""
    _given: Any  # of ``loading.InMemory``
    tokenizer_source = ""  # what gives the tokenizer's ids: "its class", "tokenizer.json", ...

    def __init__(self, name: str, folder: Any, adapter: Path | None, quantize, *where: str):
        """``adapter``: the folder of a LoRA; ``where``: device, dtype; the rest as in ``load``.
        Without a folder a subclass has set ``config``."""
        self.name, self.folder, self.adapter, self.quantize = name, folder, adapter, quantize
        self.device, self.dtype = resolve(*where)
        self._folders = [each for each in (folder, adapter) if each]
        self._states = folders.file_states(self._folders)  # before anything is read
        self._digest = cache(partial(folders.digest_files, self._states))
        if folder:
            self.config, self.generation_ends = read_config(folder)
            self.n_parameters = folders.count_parameters(folder, without=folders.EMBEDDINGS)
        self.encoder_decoder = bool(self.config.is_encoder_decoder)
        self.masked, self.context = is_masked(self.config), longest(self.config)
        # a candidate of an encoder-decoder shares no token with its prompt: there is no tree
        paths = PATHS[2:] if self.encoder_decoder else PATHS
        self.paths, self.tries = ("pseudo",) if self.masked else paths, {}
        of_text = self.config.get_text_config()
        self.vocabulary_size = getattr(of_text, "vocab_size", math.inf)
        narrow = getattr(of_text, "hidden_size", math.inf) <= NARROW and self.device.type == "cuda"
        # most tokens packed into one row; halved when out of memory
        self.budget = LONG if narrow else BUDGETS[self.device.type]

    def choose_path(self) -> str:
        """Return the path that scores the model; it is checked at first use."""
        if self.path is None:
            from probelib.lm.selfcheck import choose

            self.path, self.why = choose(self)
        return self.path

    def identity(self) -> dict:
        """Everything that changes a number, without loading the weights. Raise ProbeError if files,
        the tokenizer or loaded weights were changed since."""
        from probelib.lm.internals.hf_model import weight_sums

        reads, loaded = map(vars(self).get, ("_reads", "_loaded"))
        other = loaded and loaded != weight_sums(self.hf_model)
        if other or (reads and reads != text.digest(self.tokenizer)):
            what = f"{self.name}: its tokenizer or model.hf_model was changed after loading"
            raise ProbeError(f"{what}; use lm.load(hf_model, tokenizer, name=...)")
        return self._identity()

    def _identity(self) -> dict:
        if folders.file_states(self._folders) != self._states:
            what = f"{self.name}: files in {self.folder} were changed since it was loaded"
            raise ProbeError(f"{what}. Load it again, or score a copy")
        # of Hugging Face's cache, whose folders are named by commits
        cached = re.search(r"/models--[^/]+/snapshots/([^/]+)", self.folder.as_posix())
        return ({"adapter": str(self.adapter)} if self.adapter else {}) | {
            "model": self.name,
            "files": self._digest(),
            "revision": cached[1] if cached else None,
            "quantize": self.quantize,
            "dtype": self.dtype,
            "device": self.device.type,
        }

    def confirm(self, record: dict) -> None:
        """Raise ProbeError if the loaded weights compute other numbers than at ``describe()``."""
        if "_loaded" not in vars(self) or not record.get("probe"):
            return
        import numpy as np

        # nats per sequence, by rounding on another machine
        apart = 1e-3 if self.dtype == "float32" and not self.quantize else 0.5
        if not np.allclose(self.probe, record["probe"], 0, apart, equal_nan=True):
            what = "stored scores were computed with other log-probabilities of the same files"
            raise ProbeError(f"{self.name}: {what}. Has a library been changed? Delete them")

    def describe(self) -> dict:
        """Provenance: ``identity``, and what is known once the weights are loaded."""
        import torch

        attention = self.hf_model.config._attn_implementation  # loads the weights
        gpu = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else ""
        names = ("context", "encoder_decoder", "quantized_modules", "path", "why", "probe")
        about = self._identity() | {name: getattr(self, name) for name in names}
        return about | {
            "bos": self.tokens.bos_rule,
            "eos": self.tokenizer.eos_token,
            "tokenizer": self.tokenizer_source,
            "parameters": self.n_parameters,
            "packed": bool(getattr(self.hf_model, "is_quantized", False)),  # False: unpacked
            "attention": attention,
            "device_name": gpu or platform.processor() or platform.machine(),
        }

    def __repr__(self) -> str:
        return f"LM({self.name}, {self.quantize or self.dtype}, {self.device})"

    @cached_property
    def tokenizer(self):
        """The tokenizer, held against its own file; see ``text.read_tokenizer``."""
        own = self.adapter and (self.adapter / "tokenizer_config.json").exists()
        folder: Any = self.adapter if own else self.folder
        tokenizer, self.tokenizer_source = text.read_tokenizer(folder, self.config)
        self._reads = text.digest(tokenizer)
        return tokenizer

    @cached_property
    def hf_model(self):
        """The transformers model in evaluation mode."""
        from probelib.lm.internals.hf_model import load_weights, prepare, probe, weight_sums

        # of a model in memory all modules are shared, its ``generation_config`` is not
        hf_model = load_weights(self) if self.folder else copy.copy(self._given)
        vars(self)["hf_model"] = hf_model  # the checks ask for it
        try:
            prepare(self)
            if self.folder:  # without one it may be trained on
                self.probe, self._loaded = probe(self), weight_sums(hf_model)
                self._identity()  # files that were changed meanwhile are an error
        except BaseException:  # also if it is interrupted
            del vars(self)["hf_model"]
            raise
        return hf_model

    def rows(self, most: int, budget: int) -> int:
        """Rows of a padded batch: ``most``, fewer if the budget is below its device's."""
        return min(most, max(1, most * budget // BUDGETS[self.device.type]))


def resolve(device: str, dtype: str) -> tuple[Any, str]:
    """The requested torch device, and the precision of the weights; ProbeError if there is no such
    GPU."""
    import torch

    gpu = torch.cuda.is_available()
    device = ("cuda" if gpu else "cpu") if device == "auto" else device
    there = [f"cuda:{i}" for i in range(torch.cuda.device_count())] if gpu else []
    if device not in ("cpu", *["cuda"] * gpu, *there):
        here = "" if gpu else "; torch finds no GPU here"
        raise ProbeError(f"device is {device!r}; allowed: auto, cpu, cuda, cuda:1{here}")
    if dtype == "auto":
        half = "bfloat16" if gpu and torch.cuda.is_bf16_supported() else "float16"
        dtype = "float32" if device == "cpu" else half
    return torch.device(device), dtype


def read_config(folder: Path) -> tuple[Any, Any]:
    """config.json as transformers reads it, with defaults filled in; and what ends a text by
    generation_config.json: an id, a list of ids, or None."""
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # from the file, its checks, or code of the repository
        why = " ".join(str(error).split())[:300]
        raise ProbeError(f"{folder}: config.json cannot be read: {why}") from error
    if (layers := getattr(config.get_text_config(), "num_hidden_layers", None) or 0) > DEEPEST:
        raise ProbeError(f"{folder}: config.json names {layers} layers (most: {DEEPEST})")
    file = folder / "generation_config.json"
    try:
        ends = json.loads(file.read_bytes()).get("eos_token_id") if file.exists() else None
    except (ValueError, AttributeError) as error:
        raise ProbeError(f"{file} cannot be read: {error}") from error
    return config, ends


def is_masked(config) -> bool:
    """Whether it is a masked language model. Types that exist in both forms (BERT) are decoders
    only with ``is_decoder`` or a causal class in ``architectures``."""
    from transformers.models.auto import modeling_auto as auto

    kind, names = config.model_type, getattr(config, "architectures", None) or []
    masked = auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES.get(kind)
    causal = auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(kind)
    if config.is_encoder_decoder or not masked or getattr(config, "is_decoder", False):
        return False
    if masked == causal:  # XLM: one class for both
        return not getattr(config, "causal", False)
    return causal not in names


def longest(config) -> int:
    """Longest sequence in tokens (no limit for T5, whose positions are relative)."""
    of_text = config.get_text_config()
    rope = getattr(of_text, "rope_parameters", None) or {}
    if rope.get("rope_type") == "longrope":
        # one token beyond it changes the rotation of all positions of a batch (Phi 3)
        return int(rope["original_max_position_embeddings"])
    # T5's files hold a meaningless n_positions
    last = "max_encoder_position_embeddings" if config.is_encoder_decoder else "n_positions"
    found = [getattr(of_text, name, None) or 0 for name in (*LONGEST, last)]
    shift = (of_text.pad_token_id or 0) + 1 if SHIFTED.search(of_text.model_type) else 0
    limit = next((limit - shift for limit in found if limit > 0), 2**31)
    rates = getattr(of_text, "compress_rates", None) or {}  # DeepSeek V4 counts groups of keys
    group = rates.get("compressed_sparse_attention", 1)
    return int(min(limit, *(group * (getattr(of_text, name, None) or limit) for name in SPARSE)))
