"""The transformers model of an ``LM``: how its weights are loaded and checked, how it is run (one
thread at a time, in full precision and evaluation mode, with fewer tokens per row when memory runs
out), and what tells one model from another."""

import copy
import hashlib
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F

from probelib.errors import ProbeError
from probelib.lm.internals.folders import BUFFERS, EMBEDDINGS, QUANTIZE, stored_quantization
from probelib.lm.text import DATA, first_line

# parts of names of weights that text does not need: other modalities, draft heads, other tasks
UNUSED = re.compile("|".join(DATA["unused_weights"]))
# A packed row changes attention, masks and biases in modules and in global tables of transformers:
# one thread at a time.
FORWARD = threading.RLock()
SEQUENCES, LENGTH, DIGITS = 20, 5, 4  # of the probe; digits of its log-probabilities, in nats
WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def load_weights(model):
    """The transformers model of an ``LM``; ProbeError if the files do not fit the configuration."""
    import transformers as hf
    from transformers.models.auto import modeling_auto as auto
    from transformers.utils import logging

    kind, stored = model.config.model_type, stored_quantization(model.folder)
    causal = kind in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    reader = hf.AutoModelForCausalLM
    if model.masked:
        reader = hf.AutoModelForMaskedLM
    elif model.encoder_decoder:
        reader = hf.AutoModelForSeq2SeqLM
    elif not causal and kind in auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES:
        reader = hf.AutoModelForImageTextToText  # text in, text out; its other parts are not used
    dtype = getattr(torch, model.dtype)
    options = {"dtype": dtype, "device_map": {"": str(model.device)}}
    if model.quantize and not stored:
        # bitsandbytes computes in float32 by default, many times slower on a GPU
        more = {"bnb_4bit_compute_dtype": dtype} if model.quantize == "4bit" else {}
        options["quantization_config"] = hf.BitsAndBytesConfig(**QUANTIZE[model.quantize], **more)
    options |= {"use_safetensors": True, "trust_remote_code": False}
    logging.disable_progress_bar()
    try:
        hf_model, report = reader.from_pretrained(model.folder, output_loading_info=True, **options)
    except Exception as error:  # from files, missing libraries, code of the family, a full GPU
        packed = f" (stored as {model.quantize})" if stored else ""
        what = f"the weights in {model.folder}{packed} cannot be loaded: {first_line(error)}"
        hint = "For lack of memory use quantize='4bit', or lm.load(hf_model, tokenizer)"
        raise ProbeError(f"{model.name}: {what}. {hint} on several GPUs") from error
    missing = sorted([*report["missing_keys"], *(name for name, *_ in report["mismatched_keys"])])
    if missing:  # transformers initializes them at random
        what = f"{len(missing)} weights are missing from the files of {model.folder}, or misshaped"
        raise ProbeError(f"{model.name}: {what}: {', '.join(missing[:5])}. Save the whole model")
    unused = [name for name in report["unexpected_keys"] if not name.endswith(BUFFERS)]
    unused = sorted(name for name in unused if not UNUSED.search(name.lower()))
    said = f"{model.name}: {len(unused)} weights in {model.folder} are not used by the model that "
    said += f"its config.json describes: {', '.join(unused[:5])}"
    if any(re.search(r"\.\d+\.|lm_head|embed_out", name) for name in unused):  # a layer, a head
        raise ProbeError(f"{said}. Correct it (layers, tie_word_embeddings, architectures)")
    if unused:
        warnings.warn(said, stacklevel=2)
    if model.adapter:
        _apply_adapter(model, hf_model)
    return hf_model.eval()


def _apply_adapter(model, hf_model) -> None:
    """Add a LoRA adapter to the model in place; ProbeError if some of its weights do not fit."""
    try:
        report = hf_model.load_adapter(str(model.adapter), use_safetensors=True)
    except Exception as error:  # prompt learning, another base, damaged files
        what = f"{model.adapter} cannot be applied: {first_line(error)}"
        raise ProbeError(f"{model.name}: {what}") from error
    wrong = [*report.missing_keys, *report.unexpected_keys, *report.mismatched_keys]
    if wrong := sorted(str(name) for name in wrong if "lora" in str(name)):
        what = f"{len(wrong)} weights of the adapter in {model.adapter} do not fit {model.folder}"
        raise ProbeError(f"{model.name}: {what}: {', '.join(wrong[:3])}. Is that its base?")


def prepare(model) -> None:
    """Check a model before its first score; sets ``model.quantized_modules``."""
    from transformers import GenerationConfig

    hf_model, model.quantized_modules = model.hf_model, 0
    if model.quantize in QUANTIZE:  # at least half of the inside
        from bitsandbytes.nn import Linear4bit, Linear8bitLt

        layers = [m for m in hf_model.modules() if isinstance(m, Linear4bit | Linear8bitLt)]
        packed = sum(layer.in_features * layer.out_features for layer in layers)
        named = [(name, p) for name, p in hf_model.named_parameters() if p.is_floating_point()]
        left = sum(p.numel() for name, p in named if not any(word in name for word in EMBEDDINGS))
        if packed < left:
            what = f"would quantize only {packed / (packed + left):.0%} of its inner parameters"
            raise ProbeError(f"{model.name}: quantize={model.quantize!r} {what}. Load it without")
        model.quantized_modules = len(layers)
        if model.folder:
            exact_layers(model)  # before the first forward, which may repack weights
    if not model.masked:
        with forwarding(model):
            refuse_bidirectional(model)
    start = None
    if model.encoder_decoder:  # some define its first token in generation_config.json only
        both = hf_model.config, hf_model.generation_config
        starts = [getattr(config, "decoder_start_token_id", None) for config in both]
        start = next((start for start in starts if start is not None), None)
        if start is None:
            raise ProbeError(f"{model.name}: no configuration has a decoder_start_token_id")
        hf_model.config.decoder_start_token_id = start  # part of the identity
    # without penalties and bans of generation_config.json, which would change generated texts
    hf_model.generation_config = GenerationConfig(decoder_start_token_id=start)


def refuse_bidirectional(model) -> None:
    """Raise ProbeError if another last token of a sequence, or (decoders in float32) none, changes
    an earlier logit: without left-to-right probabilities scores would depend on what follows."""
    hf_model = model.hf_model
    exact = hf_model.dtype == torch.float32 and not model.quantize
    ids, length = text_ids(hf_model.config), min(12, model.context)
    both = torch.tensor(ids[np.arange(length) * 7 % len(ids)], device=hf_model.device).repeat(2, 1)
    both[1, -1] = int(ids[(length * 7) % len(ids)])  # [2, length]
    given = {"input_ids": both, "attention_mask": torch.ones_like(both)}
    if model.encoder_decoder:
        given |= {"decoder_input_ids": both, "input_ids": both[:1].expand(2, -1)}
    read = lambda **inputs: hf_model(**inputs, use_cache=False).logits[:, : length - 1].float()
    try:
        with torch.inference_mode():
            logits = apart = read(**given)  # [2, length - 1, vocabulary]
            if model.encoder_decoder:  # its encoder is run first, as in ``plain.score_encdec``
                mask = given["attention_mask"]
                encoded = hf_model.get_encoder()(given.pop("input_ids"), attention_mask=mask)
                apart = read(encoder_outputs=type(encoded)(encoded.last_hidden_state), **given)
            elif exact:
                apart = read(**{name: tensor[:, :-1] for name, tensor in given.items()})
    except Exception as error:
        why = f"{type(error).__name__}: {first_line(error)[:200]}"
        raise ProbeError(f"{model.name}: this model cannot read text alone ({why})") from error
    # in half precision one expert of a mixture may flip; later tokens that are seen move most
    rounded = 1e-3 if model.encoder_decoder else 1e-2  # another length is rounded otherwise
    for limit, moved in ((1e-3, logits[0] - logits[1]), (rounded, logits - apart)):
        by = moved.abs().amax(-1)
        if bool(by.max() > limit if exact else by.median() > 0.1):
            name = f"{model.name} ({hf_model.config.model_type})"
            what = "is not an autoregressive model: a later token, or encoding the prompt apart,"
            hint = "In config.json masked ones need '...ForMaskedLM', decoders is_decoder=true"
            raise ProbeError(f"{name} {what} changes its logits by {by.max():.2g}. {hint}")


def exact_layers(model) -> list[tuple]:
    """Let layers of bitsandbytes compute the same for every batch and on every processor; return
    what was changed, as (owner, attribute, earlier value; None: it had none of its own).

    8 bits: no outlier columns, which are looked for per batch. 4 bits: not the kernel that repacks
    weights in place at the first forward on CPUs with AVX512-BF16 and computes in bfloat16; and
    rows that share a block, which are unpacked wrongly on CPUs with AVX512 (0.50), become one row.
    """
    from bitsandbytes.functional import dequantize_4bit
    from bitsandbytes.nn import Linear4bit, Linear8bitLt

    kernel, changed = "support_avx512bf16_for_cpu", list[tuple]()
    for module in model.hf_model.modules():
        if isinstance(module, Linear4bit | Linear8bitLt):
            changed.append((module, kernel, getattr(module, kernel, True)))
            setattr(module, kernel, False)
        state = module.weight.quant_state if isinstance(module, Linear4bit) else None
        if state and module.in_features % state.blocksize and model.device.type == "cpu":
            one_row = copy.copy(state)
            one_row.shape = (1, state.shape.numel())
            weight = dequantize_4bit(module.weight.data, one_row).view(state.shape)
            changed.append((module, "forward", vars(module).get("forward")))
            module.forward = partial(F.linear, weight=weight, bias=module.bias)
        if isinstance(module, Linear8bitLt):
            changed.append((module.state, "threshold", module.state.threshold))
            module.state.threshold = 0.0
    return changed


@contextmanager
def forwarding(model) -> Iterator[None]:
    """Context manager for forwards of an ``LM``. What an owner of the model or the process has
    chosen (training mode, precision of products, autocast) is given back afterwards."""
    hf_model, backends = model.hf_model, cast(Any, torch.backends)
    parts: list[Any] = [backends, backends.mkldnn, backends.mkldnn.matmul]
    parts += [backends.cuda.matmul, backends.cudnn, backends.cudnn.conv]
    with FORWARD, torch.autocast(model.device.type, enabled=False):
        changed = [(part, "fp32_precision", part.fp32_precision) for part in parts]
        changed = [each for each in changed if each[2] not in ("none", "ieee")]
        changed += [(module, "training", True) for module in hf_model.modules() if module.training]
        try:
            for owner, name, _ in changed:  # "ieee": products of float32 are products of float32
                setattr(owner, name, False if name == "training" else "ieee")
            quantized = model.folder is None and model.quantize in QUANTIZE
            changed += exact_layers(model) if quantized else []
            yield
        finally:
            for owner, name, value in changed:
                setattr(owner, name, value) if value is not None else delattr(owner, name)


def retry_on_oom(model, work: Callable[[int], Any]):
    """Run ``work(budget)``. On CUDA out-of-memory, halve the token budget and retry; keep the
    reduced budget. Raise ProbeError if one token per row is too much."""
    while True:
        try:
            with forwarding(model):
                return work(model.budget)
        except torch.OutOfMemoryError as error:
            if model.budget == 1:
                hint = "use quantize='4bit', shorter prompts or a larger GPU"
                raise ProbeError(f"{model.name}: out of memory with one token; {hint}") from error
        model.budget //= 2
        torch.cuda.empty_cache()


def probe(model) -> list[float]:
    """Log-probabilities (nats, ``DIGITS`` digits) of ``SEQUENCES`` fixed token sequences: what the
    model computes now, with its adapters, hooks and settings."""
    shape = SEQUENCES, min(LENGTH, model.context)
    drawn = np.random.default_rng(0).choice(text_ids(model.hf_model.config), shape)
    with forwarding(model), torch.inference_mode():
        ids = torch.from_numpy(drawn).to(model.device)
        inputs = {"decoder_input_ids": ids} if model.encoder_decoder else {"use_cache": False}
        inputs = {} if model.masked else inputs
        # [sequences, length - 1, vocabulary]
        logits = model.hf_model(input_ids=ids, **inputs).logits[:, :-1].float()
        scores = logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).sum((1, 2))
    return scores.double().cpu().numpy().round(DIGITS).tolist()


def text_ids(config) -> np.ndarray:
    """Some token ids of ordinary text: no control tokens, no placeholders of images."""
    named = (i for name, i in config.to_dict().items() if re.search("token_(id|index)$", name))
    special = {i for i in named if isinstance(i, int)}
    size = min(getattr(config.get_text_config(), "vocab_size", 1000), 1000)
    return np.array([token for token in range(3, size) if token not in special])


def weight_sums(hf_model) -> str:
    """16 hex digits of the sums over rows and columns of all weights' bits, of the configuration,
    and per module of its plain attributes (eps, scales, adapters that are on) and hooks."""
    settings = [hf_model.config.to_json_string(use_diff=False)]
    for name, module in hf_model.named_modules():
        held = vars(module)
        kept = [key for key in held if key[0] != "_" and key != "training" and "cache" not in key]
        own = sorted((key, held[key]) for key in kept if isinstance(held[key], int | float | str))
        adapters = [held.get(key) for key in ("scaling", "_active_adapter", "_disable_adapters")]
        hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
        # transformers' own, which record outputs, come with the first call that wants them
        hooks = [hook for hook in hooks if not str(hook.__module__).startswith("transformers.")]
        about = name, type(module).__name__, own, adapters, len(hooks), "forward" in held
        settings.append(repr(about))
    sha = hashlib.sha256(repr(settings).encode())
    tensors = (*hf_model.parameters(), *hf_model.buffers())  # meta: elsewhere, by accelerate
    for bits in (tensor.detach() for tensor in tensors if tensor.device.type != "meta"):
        bits = bits.view(WORDS[bits.element_size()]) if bits.is_floating_point() else bits
        rows: Any = bits.flatten(1) if bits.dim() > 1 else bits.reshape(1, -1)
        # on a CPU numpy sums faster than torch
        rows, whole = (rows.numpy(), np.int64) if bits.device.type == "cpu" else (rows, torch.int64)
        for axis in (0, 1):
            sha.update(torch.as_tensor(rows.sum(axis, dtype=whole)).cpu().numpy().tobytes())
    return sha.hexdigest()[:16]
