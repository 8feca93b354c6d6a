"""How a local model's weights are loaded, and what is checked before a number comes out."""

import re
import warnings
from pathlib import Path

from probelib.errors import ProbeError
from probelib.lm.internals.folders import BUFFERS, EMBEDDINGS, stored_quantization
from probelib.lm.text import DATA, first_line

# llm_int8_threshold 0: no outlier columns per batch, so that scores do not depend on the batch
QUANTIZE: dict[str, dict] = {
    "8bit": {"load_in_8bit": True, "llm_int8_threshold": 0.0},
    "4bit": {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
}
# parts of names of weights that text does not need: other modalities, draft heads, other tasks
UNUSED = re.compile("|".join(DATA["unused_weights"]))


def load_weights(model):
    """The transformers model of an ``LM``; ProbeError if the files do not fit the configuration."""
    import torch
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


def prepare(model) -> None:
    """Check a model before its first score; sets ``model.quantized_modules``."""
    from transformers import GenerationConfig

    from probelib.lm.internals.forwards import exact_layers, forwarding

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
        hf_model.config.decoder_start_token_id = start
    # without penalties and bans of generation_config.json, which would change generated texts
    hf_model.generation_config = GenerationConfig(decoder_start_token_id=start)


def quantization_of(folder: Path, quantize: str | None) -> str | None:
    """Precision of a model: the chosen one, or that of weights that are stored packed. Raise
    ProbeError if both are given and differ: transformers would keep the files' without a word."""
    if not (stored := stored_quantization(folder)):
        return quantize
    name = packed_as(stored)
    if quantize not in (None, name):
        what = f"its weights are stored as {name} already; omit quantize={quantize!r}"
        raise ProbeError(f"{folder}: {what}, or load the unquantized model")
    return name


def packed_as(stored: dict) -> str:
    """The precision of a ``quantization_config``: "8bit", "4bit", or another method's name."""
    method = stored.get("quant_method", "bitsandbytes")  # maybe an enumeration
    method = str(getattr(method, "value", method)).removesuffix("_4bit").removesuffix("_8bit")
    four = stored.get("load_in_4bit") or stored.get("_load_in_4bit")
    return ("4bit" if four else "8bit") if method == "bitsandbytes" else method


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


def refuse_bidirectional(model) -> None:
    """Raise ProbeError if changing the last token of a sequence changes an earlier logit: such a
    model has no left-to-right probabilities, and its scores would depend on what follows."""
    import numpy as np
    import torch

    from probelib.lm.internals.forwards import text_ids

    hf_model = model.hf_model
    ids, length = text_ids(hf_model.config), min(12, model.context)
    both = torch.tensor(ids[np.arange(length) * 7 % len(ids)], device=hf_model.device)
    both = both.repeat(2, 1)  # [2, length]
    both[1, -1] = int(ids[(length * 7) % len(ids)])
    given = {"input_ids": both, "attention_mask": torch.ones_like(both)}
    if model.encoder_decoder:
        given |= {"decoder_input_ids": both, "input_ids": both[:1].expand(2, -1)}
    read = lambda **inputs: hf_model(**inputs, use_cache=False).logits[:, :-1].float()
    try:
        with torch.inference_mode():
            logits = apart = read(**given)  # [2, length - 1, vocabulary]
            if model.encoder_decoder:  # its encoder is run first, as in ``plain.score_encdec``
                mask = given["attention_mask"]
                encoded = hf_model.get_encoder()(given.pop("input_ids"), attention_mask=mask)
                apart = read(encoder_outputs=type(encoded)(encoded.last_hidden_state), **given)
    except Exception as error:
        why = f"{type(error).__name__}: {first_line(error)[:200]}"
        raise ProbeError(f"{model.name}: this model cannot read text alone ({why})") from error
    # in half precision one expert of a mixture may flip; later tokens that are seen move most
    exact = hf_model.dtype == torch.float32 and not model.quantize
    for by in ((logits[0] - logits[1]).abs().amax(-1), (logits - apart).abs().amax(-1)):
        if bool(by.max() > 1e-3 if exact else by.median() > 0.1):
            raise ProbeError(
                f"{model.name} ({hf_model.config.model_type}) is not an autoregressive model: a "
                f"later token, or encoding the prompt apart, changes its logits by {by.max():.2g}. "
                "In config.json masked ones need '...ForMaskedLM', decoders is_decoder=true"
            )
