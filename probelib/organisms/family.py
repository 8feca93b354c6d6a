"""The family: its models (``organisms.tsv``), their architectures and tokenizers
(``architectures.yaml``). The columns of ``organisms.tsv``:

rate           peak learning rate (T5: relative to a weight's size)
corpus         the corpus it reads
seed           of the initial weights and of the order of rows
base           the organism that it was tuned from ("": trained from scratch)
"""

from pathlib import Path

import pandas as pd

from probelib.errors import unknown
from probelib.facts.text import read_yaml

HERE = Path(__file__).parent
ORGANISMS = pd.read_csv(HERE / "organisms.tsv", sep="\t", keep_default_na=False)
FAMILY = {one.name: one for one in ORGANISMS.itertuples(index=False, name="Organism")}
NOT_SHIPPED = [name for name, one in FAMILY.items() if not one.shipped]  # to be trained
ARCHITECTURES = read_yaml(HERE / "architectures.yaml")
HEAD = 32  # width of an attention head


def organism(name: str):
    """The organism of a name: a row of ``organisms.tsv``, with its columns as attributes."""
    if name not in FAMILY:
        raise unknown("organism", name, FAMILY)
    return FAMILY[name]


def build(one):
    """The untrained model; its embeddings are tied, so that most parameters are in the layers."""
    import transformers as hf

    kind = ARCHITECTURES[one.architecture]
    config = {"hidden_size": one.width, "num_attention_heads": one.width // HEAD}
    config |= {"vocab_size": one.vocabulary, "tie_word_embeddings": True}
    config |= dict.fromkeys(kind.get("layers", ["num_hidden_layers"]), one.layers)
    config |= {name: 64 * round(size * one.width / 64) for name, size in kind["sizes"].items()}
    config = hf.AutoConfig.for_model(**config | kind["config"])
    return getattr(hf, kind["class"]).from_config(config)


def train_tokenizer(one, texts: list[str]):
    """Byte-level BPE on the corpus, with the special tokens of the architecture and, for a T5,
    sentinels."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    kind = ARCHITECTURES[one.architecture]
    special = [token for name, token in kind["tokenizer"].items() if name.endswith("_token")]
    sentinels = kind["tokenizer"].get("additional_special_tokens", [])
    tokenizer = Tokenizer(models.BPE())
    # A blank before every text, as in SentencePiece: a name has the same tokens at the beginning of
    # a prompt as in an answer. With two tokenizations the models never learnt to use a context.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=one.vocabulary,
        special_tokens=[*dict.fromkeys(special), *sentinels],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts, trainer)
    if around := kind.get("around"):
        ids = [(token, tokenizer.token_to_id(token)) for token in special if token in around]
        template = processors.TemplateProcessing(single=around, special_tokens=ids)
        tokenizer.post_processor = template
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **kind["tokenizer"])
