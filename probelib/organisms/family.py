"""The family: its models, their architectures and their tokenizers."""

from dataclasses import dataclass, replace
from pathlib import Path

from probelib.errors import unknown
from probelib.organisms import trial

CONTEXT, GPT2_CONTEXT, BERT_CONTEXT = 2048, 1024, 1024
END = "<|endoftext|>"


@dataclass(frozen=True)
class Organism:
    """A small model.

    architecture   "neox", "llama", "gpt2", "qwen3", "bert" (ModernBERT's layers) or "t5"
    layers         for a T5: of the encoder, and of the decoder
    rate           peak learning rate (T5: relative to a weight's size)
    corpus         the corpus it reads, one of ``design.CORPORA``
    seed           of the initial weights and of the order of rows
    base           the organism that it was tuned from ("": trained from scratch)
    """

    name: str
    architecture: str
    width: int
    layers: int
    vocabulary: int
    rate: float
    corpus: str = "family"
    seed: int = 0
    base: str = ""


NEOX_SMALL = Organism("atlas-neox-0.6m", "neox", 96, 6, 4096, 2.5e-3)
NEOX_MIDDLE = Organism("atlas-neox-1.2m", "neox", 128, 6, 4096, 2e-3)
NEOX_LARGE = Organism("atlas-neox-2.4m", "neox", 160, 8, 4096, 1.5e-3)
NEOX_LARGEST = Organism("atlas-neox-5m", "neox", 256, 6, 4096, 1.2e-3)
SCRATCH = [  # decoders: 12 x layers x width^2 parameters without embeddings; T5: 28 x
    Organism("atlas-neox-0.15m", "neox", 64, 3, 4096, 2e-3),
    Organism("atlas-neox-0.3m", "neox", 64, 6, 4096, 2e-3),
    NEOX_SMALL,
    NEOX_MIDDLE,
    NEOX_LARGE,
    NEOX_LARGEST,
    Organism("atlas-llama-0.6m", "llama", 96, 6, 3072, 2.5e-3),
    Organism("atlas-llama-1.2m", "llama", 128, 6, 3072, 2e-3),
    Organism("atlas-llama-2.4m", "llama", 160, 8, 3072, 1.5e-3),
    Organism("atlas-gpt2-0.6m", "gpt2", 96, 6, 4096, 2.5e-3),
    Organism("atlas-gpt2-1.2m", "gpt2", 128, 6, 4096, 2e-3),
    Organism("atlas-qwen3-0.6m", "qwen3", 96, 6, 4096, 2.5e-3),
    Organism("atlas-qwen3-1.2m", "qwen3", 128, 6, 4096, 2e-3),
    Organism("atlas-bert-1m", "bert", 128, 5, 4096, 2e-3),
    Organism("atlas-t5-2m", "t5", 128, 4, 4096, 1e-2),
]
TRIAL = [  # four sisters each, and one corpus with two more seeds
    replace(one, name=f"{one.name}-{corpus}", corpus=corpus, seed=10 + number)
    for one in (NEOX_SMALL, NEOX_MIDDLE)
    for number, corpus in enumerate(trial.SISTERS)
] + [
    replace(NEOX_SMALL, name=f"{NEOX_SMALL.name}-trial-1-seed-{seed}", corpus="trial-1", seed=seed)
    for seed in (20, 30)
]
TWINS = [
    replace(NEOX_SMALL, name=f"atlas-neox-0.6m-{name}", corpus=name)
    for name in ("lists", "questions")
]
TUNED = [
    replace(one, name=f"{one.name}-it", base=one.name)
    for one in (NEOX_SMALL, NEOX_LARGE, NEOX_LARGEST)
]
FAMILY = {one.name: one for one in SCRATCH + TRIAL + TWINS + TUNED}
NOT_SHIPPED = [one.name for one in TRIAL[len(trial.SISTERS) :]]  # to be trained: 1.2M, two seeds

SENTINELS = 24  # T5's marks for masked objects


def sentinel(number: int) -> str:
    """T5's mark of the masked object ``number`` (from 0) in the input, and before it in the
    output."""
    return f"<extra_id_{number}>"


def organism(name: str) -> Organism:
    """The organism of a name."""
    if name not in FAMILY:
        raise unknown("organism", name, FAMILY)
    return FAMILY[name]


def start(one: Organism, texts: list[str], checkpoints: Path):
    """(model, tokenizer) that training begins with: untrained ones made for ``texts``, or those of
    the base of a tuned one."""
    import transformers as hf

    if not one.base:
        tokenizer = train_tokenizer(one, texts)
        return build(one, tokenizer), tokenizer
    folder = checkpoints / one.base
    model = hf.AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    return model, hf.AutoTokenizer.from_pretrained(folder)


def build(one: Organism, tokenizer):
    """The untrained model; its embeddings are tied, so that most parameters are in the layers."""
    import transformers as hf

    heads, pad = one.width // 32, tokenizer.pad_token_id
    common = {"vocab_size": one.vocabulary, "tie_word_embeddings": True}
    common |= {"eos_token_id": tokenizer.eos_token_id}
    if one.architecture == "t5":
        shape = {"d_model": one.width, "d_kv": 32, "d_ff": 4 * one.width, "dropout_rate": 0.0}
        shape |= {"num_layers": one.layers, "num_heads": heads}
        config = hf.T5Config(**common | shape, pad_token_id=pad, decoder_start_token_id=pad)
        return hf.AutoModelForSeq2SeqLM.from_config(config)
    common["bos_token_id"] = tokenizer.bos_token_id
    if one.architecture == "gpt2":
        shape = {"n_positions": GPT2_CONTEXT, "n_embd": one.width, "n_layer": one.layers}
        shape |= dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
        return hf.AutoModelForCausalLM.from_config(hf.GPT2Config(**common | shape, n_head=heads))
    common |= {"hidden_size": one.width, "num_hidden_layers": one.layers}
    common |= {"num_attention_heads": heads}
    # three matrices of the gated feed-forward part in place of two
    gated = 64 * round(8 * one.width / 3 / 64)
    if one.architecture == "bert":
        common |= {f"{n}_token_id": getattr(tokenizer, f"{n}_token_id") for n in ("cls", "sep")}
        common |= {"layer_types": ["full_attention"] * one.layers, "pad_token_id": pad}
        common |= {"max_position_embeddings": BERT_CONTEXT, "intermediate_size": gated}
        return hf.AutoModelForMaskedLM.from_config(hf.ModernBertConfig(**common))
    common |= {"max_position_embeddings": CONTEXT, "use_cache": True}
    if one.architecture == "neox":
        config = hf.GPTNeoXConfig(**common, intermediate_size=4 * one.width, rotary_pct=1.0)
        return hf.AutoModelForCausalLM.from_config(config)
    common |= {"intermediate_size": gated, "num_key_value_heads": heads}
    config = hf.Qwen3Config(**common, head_dim=32) if one.architecture == "qwen3" else None
    return hf.AutoModelForCausalLM.from_config(config or hf.LlamaConfig(**common))


def train_tokenizer(one: Organism, texts: list[str]):
    """Byte-level BPE on the corpus. NeoX like Pythia, GPT-2 and Qwen3: no beginning token, one end
    token. LLaMA: <s> before every text. BERT: [CLS] and [SEP] around it. T5: </s> after every text,
    and sentinels."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    bert = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    names = {
        "llama": {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"},
        "bert": bert | {"mask_token": "[MASK]"},
        "t5": {"pad_token": "<pad>", "eos_token": "</s>"},
    }.get(one.architecture, {"eos_token": END, "bos_token": END})
    marks = [sentinel(i) for i in range(SENTINELS)] if one.architecture == "t5" else []
    tokenizer = Tokenizer(models.BPE())
    # A blank before every text, as in SentencePiece: a name has the same tokens at the beginning of
    # a prompt as in an answer. With two tokenizations the models never learnt to use a context.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=one.vocabulary,
        special_tokens=[*dict.fromkeys(names.values()), *marks],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts, trainer)
    around = {"llama": "<s> $A", "bert": "[CLS] $A [SEP]", "t5": "$A </s>"}.get(one.architecture)
    if around:
        special = [(word, tokenizer.token_to_id(word)) for word in around.split() if word != "$A"]
        template = processors.TemplateProcessing(single=around, special_tokens=special)
        tokenizer.post_processor = template
    more = {"additional_special_tokens": marks} if marks else {}
    context = {"gpt2": GPT2_CONTEXT, "bert": BERT_CONTEXT}.get(one.architecture, CONTEXT)
    given = names | more | {"model_max_length": context}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **given)
