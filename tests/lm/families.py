"""Every family of the installed transformers, tiny and random, scored by ``lm`` and by plain
forwards: ``in_a_process(kind, type)``, with a process and a time limit of its own."""

import json
import os
import resource
import tempfile
import warnings
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache

import torch
import transformers as hf
from transformers.models.auto import modeling_auto

from probelib import lm
from probelib.errors import ProbeError
from probelib.lm.plain import words_of
from tests.lm import tiny

SECONDS = 90  # of CPU time
STD = {"hrm_text": 0.1, "zamba": 0.1}  # of weights; 0.25 elsewhere. Their loops amplify rounding
LARGEST = 3e7  # parameters; a configuration that stays larger is not built
EXACT = 1e-4  # nats, summed over a continuation of a few tokens (relative beyond 1 nat per 1e4)
# names in configurations -> sizes
NAMES = {  # size -> names
    64: "hidden_size n_embd d_model dim emb_dim n_embed embed_dim embedding_size d_embed dim_model "
    "word_embed_proj_dim decoder_hidden_size encoder_hidden_size attention_hidden_size lru_width "
    "conv_dim block_dim",
    128: "intermediate_size ffn_dim d_ff n_inner encoder_ffn_dim decoder_ffn_dim ffn_hidden_size "
    "dff d_inner dim_ff intermediate_size_mlp shared_intermediate_size ffn_intermediate_size "
    "dense_intermediate_size",
    4: "num_hidden_layers n_layer n_layers num_blocks num_attention_heads n_head n_heads num_heads "
    "encoder_attention_heads decoder_attention_heads num_encoder_attention_heads num_query_heads "
    "num_decoder_attention_heads linear_num_value_heads linear_num_heads n_routed_experts "
    "num_local_experts num_experts moe_num_experts num_moe_experts moe_num_primary_experts",
    2: "num_layers encoder_layers decoder_layers num_decoder_layers num_encoder_layers depth moe_k "
    "num_key_value_heads num_kv_heads linear_num_key_heads index_n_heads num_experts_per_tok "
    "moe_topk moe_top_k num_experts_per_token top_k_experts",
    16: "head_dim d_kv kv_channels linear_key_head_dim linear_value_head_dim linear_head_dim "
    "index_head_dim kv_lora_rank q_lora_rank mamba_d_state state_size ssm_state_size mamba_dt_rank",
    8: "qk_rope_head_dim qk_nope_head_dim v_head_dim rotary_dim",
    1: "n_group topk_group first_k_dense_replace mamba_n_groups n_groups",
    32: "moe_intermediate_size expert_ffn_hidden_size shared_expert_intermediate_size",
    512: "max_position_embeddings n_positions n_ctx max_seq_len seq_length",
}
SIZES = {name: size for size, names in NAMES.items() for name in names.split()}
SIZES |= {
    "num_kv_shared_layers": 2, "hidden_size_per_layer_input": 16, "entity_vocab_size": 8,
    "sliding_window": 8, "attention_chunk_size": 8, "window_size": 8, "attention_window": 8,
    "chunk_size": 16, "mamba_n_heads": 8, "mamba_num_heads": 8, "mamba_d_head": 16,
    "mamba_head_dim": 16, "image_size": 16, "patch_size": 8, "pad_token_id": 0, "bos_token_id": 0,
    "eos_token_id": 1, "decoder_start_token_id": 0, "index_topk": 64, "mamba_d_ssm": 128,
    "mamba_expand": 2, "num_memory_blocks": 1, "mrope_section": [4, 2, 2],
}  # fmt: skip
HYBRID = ["mamba", "attention"] * 2
ROPE = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 2, 2]}
SPECIAL: dict[str, dict] = {  # what the rules above do not find
    "bailing_hybrid": {"num_expert_group": 1, "layer_group_size": 2},
    "bamba": {"attn_layer_indices": [1, 3]},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "cohere_compass_text": {"rope_parameters": {"full_attention": ROPE, "sliding_attention": ROPE}},
    "dbrx": {"attn_config": {"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 1e4}},
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "dots3_note_text": {"shared_experts_intermediate_size": 32},
    "esm": {"pad_token_id": 0, "mask_token_id": 2},
    "esmc": {"num_key_value_heads": 4},
    "fsmt": {"decoder_start_token_id": 1},  # padding, here 0, is masked
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "granitemoehybrid": {"layer_types": HYBRID},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "mamba2": {"num_heads": 8, "head_dim": 16, "hidden_size": 64, "expand": 2, "n_groups": 1},
    "qwen4_exp_text": {
        "indexer_n_heads": 2, "indexer_kv_heads": 1, "indexer_head_dim": 16, "indexer_budget": 32,
        "indexer_compress_ratio": 4, "hc_lowrank": 16,
    },
    "qwen2_vl_text": {"rope_parameters": ROPE},
    "qwen2_5_vl_text": {"rope_parameters": ROPE},
    "glm4v_text": {"rope_parameters": ROPE},
    "reformer": {"is_decoder": True, "axial_pos_shape": [16, 32], "axial_pos_embds_dim": [32, 32]},
    "xmod": {"default_language": "en_XX"},
    "zamba": {"attention_hidden_size": 128, "attention_head_dim": 32},
    "zamba2": {"attention_hidden_size": 128, "attention_head_dim": 32},
    "xlstm": {"embedding_dim": 64, "num_blocks": 4},
    "zaya": {"num_experts_per_tok": 1},
}  # fmt: skip
PROMPTS = [
    "What is the capital of France?",
    "Rome",
    "Lyon and Paris are cities, Nice is nice. The capital of Peru is",
]
ANSWERS = [" Paris", " Oslo Norway", " Germany is"]


def tokenizer(bos: bool, masked: bool):
    made = tiny.tokenizer(bos)
    if masked:
        from tokenizers import processors

        made.add_special_tokens({"mask_token": "<mask>"})
        ends = [("<s>", 0), ("</s>", 1)]
        made._tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=ends
        )
    return made


def tiny_config(cls, size: int):
    """The configuration of a family with small numbers, also in the configurations inside it."""
    default = cls()
    given, saved = {}, default.to_dict()
    for key, value in saved.items():
        inner = vars(default).get(key)
        number = type(value) is int or (
            value is None and key in ("head_dim", "num_key_value_heads")
        )
        if key in ("vocab_size", "vocab_size_per_layer_input"):
            given[key] = size
        elif key in SIZES and number:
            given[key] = SIZES[key]
        elif isinstance(inner, hf.PretrainedConfig):
            given[key] = tiny_config(type(inner), size)
        elif key in ("layer_types", "layers_block_type", "mlp_layer_types") and type(value) is list:
            kinds = list(dict.fromkeys(value))
            given[key] = [kinds[n % len(kinds)] for n in range(4)]
    if "qk_rope_head_dim" in given and "head_dim" in given:  # the part that is rotated
        given["head_dim"] = given["qk_rope_head_dim"]
    if "kv_lora_rank" in given and "num_key_value_heads" in given:  # every head has its keys
        given["num_key_value_heads"] = given["num_attention_heads"]
    return cls(**given | SPECIAL.get(cls.model_type, {}))


@cache
def kinds() -> dict[tuple[str, str], tuple[type, type]]:
    """(kind, model type) of every language model -> its classes of configuration and model."""
    found = {}
    for kind, names in (
        ("causal", "MODEL_FOR_CAUSAL_LM_MAPPING"),
        ("seq2seq", "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING"),
        ("masked", "MODEL_FOR_MASKED_LM_MAPPING"),
        ("multimodal", "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING"),
    ):
        for config, model in getattr(modeling_auto, names).items():
            model = model[0] if isinstance(model, tuple) else model
            found.setdefault((kind, config.model_type), (config, model))
    text = lambda name: [found.get((kind, name)) for kind in ("causal", "seq2seq")]
    skip = lambda kind, name: (
        (kind == "multimodal" and found[kind, name] in text(name))
        or (kind == "masked" and ("seq2seq", name) in found)
    )
    return {key: value for key, value in found.items() if not skip(*key)}


def by_hand(model, hf_model, kind: str, prompt: str, answer: str) -> float:
    """One unpadded forward, no mask, no cache; of a masked model one per token."""
    tokens = model.tokens
    context, ids = tokens.prompts([prompt])[0], list(tokens.continuation(answer))
    log_p = lambda logits, at, token: logits[0, at].double().log_softmax(-1)[token].item()
    with torch.inference_mode():
        if kind == "masked":
            words, total = words_of(tokens, answer, tuple(ids)), 0.0
            for n, token in enumerate(ids):
                hidden = {m for m in range(n, len(ids)) if m == n or words[m] == words[n]}
                mask = tokens.tokenizer.mask_token_id
                row = [mask if m in hidden else i for m, i in enumerate(ids)]
                row = torch.tensor([[*context, *row, *tokens.finish]])
                ones = torch.ones_like(row)  # <s> is no padding
                logits = hf_model(input_ids=row, attention_mask=ones).logits
                total += log_p(logits, len(context) + n, token)
            return total
        if kind == "seq2seq" and hf_model.config.is_encoder_decoder:
            decoder = torch.tensor([[hf_model.config.decoder_start_token_id, *ids[:-1]]])
            given = {"input_ids": torch.tensor([context]), "decoder_input_ids": decoder}
            logits = hf_model(**given, use_cache=False).logits
            return sum(log_p(logits, n, token) for n, token in enumerate(ids))
    return sum(tiny.by_hand(hf_model, context, ids))


def build(config_class, model_class, size: int):
    """A tiny model with wide random weights. Raise ValueError if it is not tiny."""
    config = tiny_config(config_class, size)
    if model_class.config_class == config.sub_configs.get("text_config"):  # of a multimodal type
        config = config.text_config
    if model_class.__name__.endswith("ForMaskedLM"):
        config.is_decoder = False
    if config.is_encoder_decoder and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = 0
    with torch.device("meta"):
        parameters = sum(p.numel() for p in model_class._from_config(config).parameters())
    if parameters > LARGEST:
        raise ValueError(f"{parameters / 1e6:.0f} M parameters")
    torch.manual_seed(0)
    hf_model = model_class._from_config(config).eval()
    for parameter in hf_model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=STD.get(config.model_type, 0.25))
    return hf_model


def try_family(kind: str, name: str) -> dict:
    """What becomes of one family: ``outcome``, ``path``, ``error`` (largest difference, nats),
    ``note``."""
    said = lambda error: f"{type(error).__name__}: {' '.join(str(error).split())[:170]}"
    made = tokenizer(False, kind == "masked")
    try:
        hf_model = build(*kinds()[kind, name], len(made))
        with suppress(TypeError, ValueError):  # an image is missing: this is for ``lm`` to refuse
            if kind != "seq2seq":
                hf_model(input_ids=torch.tensor([[5, 6, 7]]))  # the sizes fit each other
    except Exception as error:
        return {"outcome": "not built", "note": said(error)}
    worst, model, row = 0.0, None, {}
    for bos in (False, True) if kind == "causal" else (False,):
        with tempfile.TemporaryDirectory() as folder:
            try:  # without what is not saved (sinusoids)
                hf_model.save_pretrained(folder)
                hf_model = type(hf_model).from_pretrained(folder).eval()
                tokenizer(bos, kind == "masked").save_pretrained(folder)
            except Exception as error:
                return {"outcome": "not built", "note": said(error)}
            try:
                first, model = model, lm.load(folder)
                model.budget = 128  # a shorter self-check
                if first is not None:  # the same weights with another tokenizer
                    model.hf_model, model.path, model.why = first.hf_model, first.path, first.why
                rows = model.logprobs(PROMPTS, [ANSWERS] * len(PROMPTS))
            except ProbeError as error:
                return {"outcome": "refused", "note": said(error)}
            except Exception as error:
                return {"outcome": "RAW ERROR", "note": said(error)}
            pairs = [(p, a) for p in PROMPTS for a in ANSWERS]
            expected = [by_hand(model, hf_model, kind, *pair) for pair in pairs]
            off = [abs(x - y) for x, y in zip(rows["logprob"], expected, strict=True)]
            worst, row = max(worst, *off), {"path": model.path, "note": model.why[:120]}
    largest = max(1.0, *(abs(x) / 100 for x in expected))  # float32: seven digits of a sum
    return row | {"outcome": "exact" if worst <= EXACT * largest else "WRONG", "error": worst}


def in_a_process(kind: str, name: str) -> dict:
    """``try_family`` in a forked process with a limit of CPU time."""
    kinds()  # imports every family, seconds of work: once here, not once per fork
    read, write = os.pipe()
    if not (child := os.fork()):
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        row = {"outcome": "RAW ERROR", "note": "outside the kit"}
        try:
            with open(os.devnull, "w") as null, redirect_stdout(null), redirect_stderr(null):
                warnings.simplefilter("ignore")
                row = try_family(kind, name)
        finally:  # whatever is raised, the child does not go on as a second pytest
            os.write(write, json.dumps(row, default=float).encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"outcome": "not built", "note": f"over {SECONDS} s"}
