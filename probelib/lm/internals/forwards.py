"""How a model is run: one thread at a time, in full precision and evaluation mode, with fewer
tokens per row when memory runs out; and the measurements that tell one model from another."""

import copy
import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F

from probelib.errors import ProbeError

# A packed row changes attention, masks and biases in modules and in global tables of transformers:
# one thread at a time.
FORWARD = threading.RLock()
SEQUENCES, LENGTH, DIGITS = 20, 5, 4  # of the probe; digits of its log-probabilities, in nats
WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
CONTROL = ("token_id", "token_index")  # ends of names in configurations


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
            changed += exact_layers(model) if model.folder is None else []
            yield
        finally:
            for owner, name, value in changed:
                setattr(owner, name, value) if value is not None else delattr(owner, name)


def exact_layers(model) -> list[tuple]:
    """Let layers of bitsandbytes compute the same for every batch and on every processor; return
    what was changed, as (owner, attribute, earlier value; None: it had none of its own).

    8 bits: no outlier columns, which are looked for per batch. 4 bits: not the kernel that repacks
    weights in place at the first forward on CPUs with AVX512-BF16 and computes in bfloat16; and
    rows that share a block, which are unpacked wrongly on CPUs with AVX512 (0.50), become one row.
    """
    if model.quantize not in ("8bit", "4bit"):
        return []
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
    named = (value for key, value in config.to_dict().items() if key.endswith(CONTROL))
    special = {value for value in named if isinstance(value, int)}
    size = min(config.get_text_config().vocab_size, 1000)
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
    for tensor in (*hf_model.parameters(), *hf_model.buffers()):
        if tensor.device.type == "meta":  # on the CPU or a disk, by accelerate
            continue
        bits = tensor.detach()
        bits = bits.view(WORDS[bits.element_size()]) if bits.is_floating_point() else bits
        rows = bits.flatten(1) if bits.dim() > 1 else bits.reshape(1, -1)
        for axis in (0, 1):
            sha.update(rows.sum(axis, dtype=torch.int64).cpu().numpy().tobytes())
    return sha.hexdigest()[:16]
