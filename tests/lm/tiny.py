"""Tiny models of every family, built from configurations: nothing is downloaded.

Weights are drawn wide (0.25): at the usual 0.02 a tiny random model hardly notices positions, and a
wrong mask would pass.
"""

import pytest
import torch
import transformers as hf

from tests.conftest import FAMILIES

torch.set_num_threads(1)  # matrices this small gain nothing from a second thread

V = 120
WIDE = {
    "vocab_size": V, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "max_position_embeddings": 128,
}  # fmt: skip
GROUPED = WIDE | {"num_key_value_heads": 2}
GPT = {"vocab_size": V, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128}
FALCON = {"vocab_size": V, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
T5 = {
    "vocab_size": V, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4,
    "decoder_start_token_id": 0,
}  # fmt: skip
HEADS = GROUPED | {"head_dim": 16}
MIXED = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8}
OPT = {"ffn_dim": 128, "word_embed_proj_dim": 64, "max_position_embeddings": 128}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8}
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
LATENT = {
    "num_key_value_heads": 4, "n_routed_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 32, "kv_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8, "v_head_dim": 8, "n_group": 2, "topk_group": 1,
    "first_k_dense_replace": 1,
}  # fmt: skip
CHUNKS = {  # of two layers one has chunks, one scales queries in steps
    "intermediate_size_mlp": 128, "num_local_experts": 2, "attention_chunk_size": 8,
    "floor_scale": 8, "attn_scale": 0.5, "no_rope_layers": [1, 0],
    "layer_types": ["chunked_attention", "full_attention"],
}  # fmt: skip

DECODERS = {
    "gpt_neox": lambda: hf.GPTNeoXConfig(**WIDE),
    "gptj": lambda: hf.GPTJConfig(**GPT, rotary_dim=8),
    "gpt2": lambda: hf.GPT2Config(**GPT),
    "opt": lambda: hf.OPTConfig(**FALCON, **OPT),
    "bloom": lambda: hf.BloomConfig(vocab_size=V, hidden_size=64, n_layer=2, n_head=4),
    "llama": lambda: hf.LlamaConfig(**WIDE),
    "llama_grouped": lambda: hf.LlamaConfig(**GROUPED),
    "mistral": lambda: hf.MistralConfig(**GROUPED, sliding_window=None),
    "mistral_window": lambda: hf.MistralConfig(**GROUPED, sliding_window=8),
    # its MLP gives two things
    "gpt_oss": lambda: hf.GptOssConfig(**HEADS, **EXPERTS, rope_parameters=ROPE),
    # keys and values of different widths
    "deepseek": lambda: hf.DeepseekV3Config(**WIDE, **LATENT),
    "phi3_window": lambda: hf.Phi3Config(**GROUPED, sliding_window=8, pad_token_id=0),
    "mixtral": lambda: hf.MixtralConfig(**GROUPED, num_local_experts=4),
    "gemma": lambda: hf.GemmaConfig(**HEADS),
    "gemma2_window": lambda: hf.Gemma2Config(**HEADS, sliding_window=8),
    "gemma3_window": lambda: hf.Gemma3TextConfig(**HEADS, **MIXED),
    "falcon": lambda: hf.FalconConfig(**FALCON, new_decoder_architecture=False),
    "falcon_alibi": lambda: hf.FalconConfig(**FALCON, multi_query=False, alibi=True),
    "mpt": lambda: hf.MptConfig(vocab_size=V, d_model=64, n_layers=2, n_heads=4, max_seq_len=128),
    "qwen2": lambda: hf.Qwen2Config(**GROUPED),
    "qwen3": lambda: hf.Qwen3Config(**HEADS),
}
# attention layers count places in a row themselves: these are never scored on the tree
OWN_LAYERS = {
    "gpt_neo_window": lambda: hf.GPTNeoConfig(
        **{name: WIDE[name] for name in ("vocab_size", "hidden_size", "max_position_embeddings")},
        num_layers=2,
        num_heads=4,
        window_size=8,
        attention_types=[[["global", "local"], 1]],
    ),
    "llama4_chunks": lambda: hf.Llama4TextConfig(**HEADS, **CHUNKS),
}
ENCODER_DECODERS = {
    "t5": lambda: hf.T5Config(**T5),
    "t5_gated": lambda: hf.T5Config(**T5, feed_forward_proj="gated-gelu"),
}


SOME_DECODERS = [
    name if name in FAMILIES else pytest.param(name, marks=pytest.mark.slow) for name in DECODERS
]


def build(config, seed: int = 0):
    """A model with wide random weights, in evaluation mode."""
    torch.manual_seed(seed)
    kind = hf.AutoModelForSeq2SeqLM if config.is_encoder_decoder else hf.AutoModelForCausalLM
    model = kind.from_config(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.25)
    return model.eval()


def by_hand(hf_model, context: list[int], answer: list[int]) -> list[float]:
    """log P of each token of ``answer``: one forward of one sequence, no padding, no cache."""
    ids = torch.tensor([[*context, *answer]])
    with torch.inference_mode():
        logits = hf_model(ids, use_cache=False).logits[0].double().log_softmax(-1)
    return [logits[len(context) - 1 + n, token].item() for n, token in enumerate(answer)]


TEXTS = [
    "What is the capital of France? Paris.",
    "What is the capital of Spain? Madrid.",
    "Berlin Germany Rome Italy Oslo Norway",
    "The capital of Peru is Lima.",
    "Lyon and Paris are cities, Nice is nice.",
] * 4


def tokenizer(bos: bool = False, size: int = 320):
    """A byte-level BPE tokenizer trained on a few sentences; with ``bos`` it puts <s> before every
    text, as LLaMA's does."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    options = {"special_tokens": ["<s>", "</s>"], "show_progress": False}
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, **options)
    raw.train_from_iterator(TEXTS, trainer)
    if bos:
        begin = {"single": "<s> $A", "special_tokens": [("<s>", 0)]}
        raw.post_processor = processors.TemplateProcessing(**begin)
    return hf.PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>")


def folder(path, config=None, bos: bool = False):
    """A model folder as a user would bring it: config, safetensors, tokenizer."""
    tok = tokenizer(bos)
    size = WIDE | {"vocab_size": len(tok), "bos_token_id": 0, "eos_token_id": 1}
    config = config or hf.GPTNeoXConfig(**size)
    build(config).save_pretrained(path)
    tok.save_pretrained(path)
    return path
