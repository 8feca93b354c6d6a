"""The model and the requests of the benchmarks: made up on the fly from one seed, nothing is
downloaded.

The model is a GPT-NeoX of 27.3M parameters with random weights; its tokenizer is a BPE of 8,192
tokens trained on sentences about made-up names, some of them common and some rare: a name is one to
six tokens, as with real tokenizers."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import transformers as hf

VOCABULARY = 8192
ONSETS = [*"bcdfghjklmnprstvwz", "bl", "br", "ch", "cr", "dr", "fl", "gl", "gr", "pl", "pr", "qu"]
ONSETS += ["sh", "st", "th", "tr"]
VOWELS = [*"aeiou", "ai", "ea", "ia", "io", "ou"]
CODAS = ["", "", "", "", *"lnrstm", "nd", "rk", "st"]
TEMPLATES = [
    "The {noun} of [X] is",
    "[X] is known for the {noun} called",
    "If someone asks for the {noun} of [X], the answer is",
    "In the case of [X], the {noun} is",
    "What is the {noun} of [X]? It is",
    "Many people know that the {noun} of [X] is",
    "The {noun} that belongs to [X] is named",
]
NOUNS = ["capital", "main language", "founder", "largest river", "home town", "head office"]
NOUNS += ["first album", "author"]
INSTRUCTION = (
    "Below you find a statement about the world. Read it with care and judge whether it is true, "
    "whether it is false, or whether you do not know. A statement is true only if every part of it "
    "is true. Do not guess: where you have never heard of the names in it, say that you do not "
    "know it. Statement:"
)


@dataclass
class Relation:
    """A made-up relation: its noun, its subjects, and the objects its answers come from."""

    noun: str
    subjects: list[str]
    objects: list[str]

    def sentence(self, template: int, subject: str) -> str:
        return TEMPLATES[template].format(noun=self.noun).replace("[X]", subject)


def relations(seed: int = 0, subjects: int = 200, objects: int = 400) -> list[Relation]:
    """Made-up relations; no two names are equal."""
    rng, seen = np.random.default_rng(seed), set()

    def names(count: int) -> list[str]:
        found = []
        while len(found) < count:
            syllables = 2 + rng.binomial(2, 0.3)
            word = "".join(
                rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS)
                for _ in range(syllables)
            )
            if word not in seen:
                seen.add(word)
                found.append(word.capitalize())
        return found

    return [Relation(noun, names(subjects), names(objects)) for noun in NOUNS]


def tokenizer(world: list[Relation], seed: int = 0, sentences: int = 20_000):
    """A byte-level BPE trained on sentences about ``world``; names early in a list occur more
    often."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    rng = np.random.default_rng(seed)

    def text():
        yield from [INSTRUCTION] * 100
        for _ in range(sentences):
            relation = world[rng.integers(len(world))]
            subject, answer = (
                names[int(len(names) * rng.random() ** 1.5)]
                for names in (relation.subjects, relation.objects)
            )
            yield f"{relation.sentence(rng.integers(len(TEMPLATES)), subject)} {answer}."

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    options = {"initial_alphabet": pre_tokenizers.ByteLevel.alphabet(), "show_progress": False}
    options |= {"vocab_size": VOCABULARY, "special_tokens": ["<pad>", "</s>"]}
    raw.train_from_iterator(text(), trainers.BpeTrainer(**options))
    return hf.PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="</s>")


def save_model(folder: Path, seed: int = 0) -> list[Relation]:
    """Writes the model and its tokenizer to ``folder`` as a user would bring them; returns the
    world it speaks of."""
    world = relations(seed)
    tok = tokenizer(world, seed)
    torch.manual_seed(seed)
    size = {"vocab_size": VOCABULARY, "hidden_size": 512, "intermediate_size": 2048}
    size |= {"num_hidden_layers": 6, "num_attention_heads": 8, "max_position_embeddings": 2048}
    ends = {"eos_token_id": tok.eos_token_id, "pad_token_id": tok.pad_token_id}
    # at 0.02 positions hardly matter: errors would not show
    config = hf.GPTNeoXConfig(**size, **ends, bos_token_id=None, initializer_range=0.06)
    hf.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tok.save_pretrained(folder)
    return world


@dataclass
class Requests:
    """Prompts and, for each, its continuations; as ``LM.logprobs`` takes them."""

    prompts: list[str]
    continuations: list[list[str]]

    def pairs(self) -> list[tuple[str, str]]:
        return [
            (p, c) for p, texts in zip(self.prompts, self.continuations, strict=True) for c in texts
        ]


def many_shot(
    world: list[Relation], subjects: int, relations: int = 2, shots: int = 50, options: int = 100
) -> Requests:
    """Lists of ``shots`` examples "subject object subject object ..." and a subject; its options
    are the next word."""
    rng, prompts, continuations = np.random.default_rng(1), [], []
    for relation in world[:relations]:
        chosen = rng.permutation(relation.subjects)[: shots + subjects]
        prefix = " ".join(
            f"{s} {o}"
            for s, o in zip(chosen[:shots], rng.choice(relation.objects, shots), strict=True)
        )
        for subject in chosen[shots:]:
            prompts.append(f"{prefix} {subject}")
            continuations.append(
                [f" {o}" for o in rng.choice(relation.objects, options, replace=False)]
            )
    return Requests(prompts, continuations)


def templates(
    world: list[Relation], facts: int, relations: int = 5, count: int = 3, candidates: int = 60
) -> Requests:
    """``facts`` of each relation under three templates; the candidates are 60 of its objects."""
    rng, prompts, continuations = np.random.default_rng(2), [], []
    for relation in world[:relations]:
        objects = [f" {o}" for o in rng.choice(relation.objects, candidates, replace=False)]
        for subject in rng.choice(relation.subjects, facts, replace=False):
            prompts += [relation.sentence(t, subject) for t in range(count)]
            continuations += [objects] * count
    return Requests(prompts, continuations)


def framings(world: list[Relation], facts: int, relations: int = 5) -> Requests:
    """MONITOR's 13 prompts a fact: seven wordings, and the first one behind the object and behind
    five other objects."""
    rng, prompts, continuations = np.random.default_rng(3), [], []
    for relation in world[:relations]:
        for subject in rng.choice(relation.subjects, facts, replace=False):
            gold, *others = rng.choice(relation.objects, 6, replace=False)
            prompts += [relation.sentence(t, subject) for t in range(len(TEMPLATES))]
            prompts += [
                f"{context}. {relation.sentence(0, subject)}" for context in (gold, *others)
            ]
            continuations += [[f" {gold}"]] * 13
    return Requests(prompts, continuations)


def statements(world: list[Relation], count: int) -> list[str]:
    """Statements as a judge reads them behind ``INSTRUCTION``: a random subject, wording and object
    each."""
    rng, texts = np.random.default_rng(4), []
    for _ in range(count):
        relation = world[rng.integers(len(world))]
        sentence = relation.sentence(rng.integers(len(TEMPLATES)), rng.choice(relation.subjects))
        texts.append(f" {sentence} {rng.choice(relation.objects)}.")
    return texts
