"""The family: which models there are, and how each is built and tokenized."""

from dataclasses import dataclass, replace
from pathlib import Path

from probelib.errors import unknown

CONTEXT = 2048
END = "<|endoftext|>"


@dataclass(frozen=True)
class Organism:
    """A small model: its architecture ("neox", "llama", "t5"), width, layers (T5: of the encoder, and of the decoder),
    vocabulary, peak learning rate (T5: a share of a weight's size), the organism it was tuned from ("": from scratch), and
    whether its corpus states facts in all forms alike (``corpus.evenly``)."""

    name: str
    architecture: str
    width: int
    layers: int
    vocabulary: int
    rate: float
    base: str = ""
    even: bool = False


SCRATCH = [  # NeoX, LLaMA: 12 x layers x width^2 parameters without embeddings, about a factor of two apart; T5: 28 x
    Organism("atlas-neox-0.15m", "neox", 64, 3, 4096, 1e-3),
    Organism("atlas-neox-0.3m", "neox", 64, 6, 4096, 1.5e-3),
    Organism("atlas-neox-0.6m", "neox", 128, 3, 4096, 2.5e-3),
    Organism("atlas-neox-1m", "neox", 192, 3, 4096, 2e-3),
    Organism("atlas-neox-2m", "neox", 256, 3, 4096, 1.5e-3),
    Organism("atlas-llama-0.3m", "llama", 64, 6, 3072, 1.5e-3),
    Organism("atlas-llama-0.6m", "llama", 128, 3, 3072, 2.5e-3),
    Organism("atlas-llama-1m", "llama", 192, 3, 3072, 2e-3),
    Organism("atlas-t5-2m", "t5", 128, 4, 4096, 1e-2),
    Organism("atlas-neox-0.6m-even", "neox", 128, 3, 4096, 2.5e-3, even=True),
]
TUNED = ("atlas-neox-0.15m", "atlas-neox-0.6m", "atlas-neox-2m", "atlas-llama-1m")
FAMILY = {o.name: o for o in SCRATCH} | {
    f"{o.name}-it": replace(o, name=f"{o.name}-it", base=o.name, rate=o.rate / 2) for o in SCRATCH if o.name in TUNED
}
SENTINELS = 24  # T5's marks for masked objects


def sentinel(number: int) -> str:
    """The mark of the masked object ``number`` (from 0) in what a T5 reads, and before it in what it writes."""
    return f"<extra_id_{number}>"


def organism(name: str) -> Organism:
    """The organism of a name."""
    if name not in FAMILY:
        raise unknown("organism", name, FAMILY)
    return FAMILY[name]


def start(one: Organism, texts: list[str], checkpoints: Path):
    """(model, tokenizer) that training begins with: untrained ones made for ``texts``, or those of the base of a tuned one."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if not one.base:
        tokenizer = train_tokenizer(one, texts)
        return build(one, tokenizer), tokenizer
    folder = checkpoints / one.base
    return AutoModelForCausalLM.from_pretrained(folder, dtype="float32"), AutoTokenizer.from_pretrained(folder)


def build(one: Organism, tokenizer):
    """The untrained model; tied embeddings, so that most parameters lie in the layers."""
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, GPTNeoXConfig, LlamaConfig, T5Config

    heads = one.width // 32
    if one.architecture == "t5":
        config = T5Config(
            vocab_size=one.vocabulary,
            d_model=one.width,
            d_kv=32,
            d_ff=4 * one.width,
            num_layers=one.layers,
            num_heads=heads,
            dropout_rate=0.0,
            tie_word_embeddings=True,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            decoder_start_token_id=tokenizer.pad_token_id,
        )
        return AutoModelForSeq2SeqLM.from_config(config)
    common = {
        "vocab_size": one.vocabulary,
        "hidden_size": one.width,
        "num_hidden_layers": one.layers,
        "num_attention_heads": heads,
        "max_position_embeddings": CONTEXT,
        "tie_word_embeddings": True,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "use_cache": True,
    }
    if one.architecture == "neox":
        config = GPTNeoXConfig(**common, intermediate_size=4 * one.width, rotary_pct=1.0)
    else:
        config = LlamaConfig(**common, intermediate_size=64 * round(8 * one.width / 3 / 64), num_key_value_heads=heads)
    return AutoModelForCausalLM.from_config(config)


def train_tokenizer(one: Organism, texts: list[str]):
    """Byte-level BPE on the corpus. NeoX like Pythia: no beginning token, one end token. LLaMA: <s> before every text. T5: </s>
    after every text, and sentinels."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    names = {
        "neox": {"eos_token": END, "bos_token": END},
        "llama": {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"},
        "t5": {"pad_token": "<pad>", "eos_token": "</s>"},
    }[one.architecture]
    marks = [sentinel(i) for i in range(SENTINELS)] if one.architecture == "t5" else []
    tokenizer = Tokenizer(models.BPE())
    # A blank before every text, as SentencePiece has it: a name has the same tokens at the head of a prompt, where MONITOR's
    # hints stand, as in an answer. With two spellings of every name the models never learnt to take a hint.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=one.vocabulary,
        special_tokens=[*dict.fromkeys(names.values()), *marks],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts, trainer)
    around = {"llama": ("<s> $A", "<s>"), "t5": ("$A </s>", "</s>")}.get(one.architecture)
    if around:
        template, special = around
        tokenizer.post_processor = processors.TemplateProcessing(
            single=template, special_tokens=[(special, tokenizer.token_to_id(special))]
        )
    more = {"additional_special_tokens": marks} if marks else {}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=CONTEXT, **names, **more)
