"""The prompts of the Distractors paper: the judge's (appendix D), KaRR's texts, cloze sentences with errors (table 8).

``facts`` and ``prompts`` make the cloze sentences themselves (``prompts.paraphrases``).
"""

import json
import re
from collections.abc import Iterable

import pandas as pd

from probelib.distractors.baselines import check_variant
from probelib.errors import unknown
from probelib.facts.model import Facts, rng
from probelib.paths import PACKAGE
from probelib.prompts import RECALL, fill, templates_of

MOST = 4  # largest number of aliases, of templates, of other subjects and of other relations that KaRR uses


# LLM-as-a-judge


def judge_prompt(sentence: str, labels: Iterable[str], prediction: str, variant: str = "kit") -> str:
    """The prompt of an instruct model as the judge, after appendix D of the paper, in our own words and with our own examples:
    the sentence, every right label, the generated text.

    variant  "released" exchanges ground truth and prediction, as the released code does
    """
    check_variant(variant)
    truth, said = json.dumps(list(labels), ensure_ascii=False), prediction.strip()
    if variant == "released":
        truth, said = said, truth
    template = (PACKAGE / "distractors" / "judge_prompt.txt").read_text(encoding="utf-8").rstrip()
    return template.format(query=f"{sentence} ____", labels=truth, prediction=said)


def short_judge_prompt(sentence: str, label: str, prediction: str) -> str:
    """A prompt that a shipped ``-it`` model can judge: the completed sentence, with the right label at the position of the object
    that the model would recall. So the judge only has to compare, as in the paper.

    >>> short_judge_prompt("The capital of France is", "Paris", " Rome")
    'Recall the fact, then judge: The capital of France is Rome.\\nAnswer: Paris.'
    """
    return RECALL.format(statement=f"{sentence} {prediction.strip().rstrip('.')}.") + f" {label}."


# KaRR


def karr_texts(facts: pd.DataFrame, pool: Facts, labels: dict[str, tuple[str, ...]], seed: int = 0) -> pd.DataFrame:
    """All texts whose probability KaRR needs, with the term that each belongs to.

    facts    the facts to score
    pool     the facts that give the subjects of a relation and the relations of an object
    labels   entity -> its labels, the main one first; at most four are taken, and four templates of the role ``statement``
    columns  ``fact``, ``term`` ("num", "den_s", "den_r"), ``share`` (1, or 1/k), ``before`` (beta: the template with the
             subject and without the object; for den_r the subject alone), ``text`` (gamma: the template filled), ``rest``
             (gamma without beta; its number of tokens is the number of last tokens of gamma that are scored)

    A gamma that does not contain its beta literally is left out, as in the released code of KaRR.
    """
    statements = templates_of(pool, "statement", facts["relation"]).sort_values("number")
    templates = statements.groupby("relation")["template"].agg(lambda t: [x.rstrip(".") for x in t][:MOST]).to_dict()
    seen = pool.facts.drop_duplicates(["relation", "subject"]).groupby("relation")["subject"].agg(list).to_dict()
    relations = pool.facts.groupby("object")["relation"].agg(lambda r: sorted(set(r))).to_dict()
    rows = []
    for fact, relation, subject, obj in facts[["fact", "relation", "subject", "object"]].itertuples(index=False):
        draw, objects = rng(seed, "karr", fact), labels[obj][:MOST]
        others = [s for s in seen[relation] if s != subject] or [subject]
        others = [others[i] for i in draw.permutation(len(others))[:MOST]]
        kinds = [r for r in relations[obj] if r in templates]
        kinds = [kinds[i] for i in draw.permutation(len(kinds))[:MOST]]
        for term, subjects in (("num", [subject]), ("den_s", others)):
            rows += [
                (fact, term, 1 / len(subjects), _without_object(t, a), fill(t, a, b))
                for t in templates[relation]
                for s in subjects
                for a in labels[s][:MOST]
                for b in objects
            ]
        for kind in kinds:
            t = templates[kind][draw.integers(len(templates[kind]))]
            rows += [(fact, "den_r", 1 / len(kinds), a, fill(t, a, b)) for a in labels[subject][:MOST] for b in objects]
    frame = pd.DataFrame(rows, columns=["fact", "term", "share", "before", "text"])
    frame = frame[[before in text for before, text in zip(frame["before"], frame["text"], strict=True)]]
    rest = [text.replace(before, "", 1).strip() for before, text in zip(frame["before"], frame["text"], strict=True)]
    return frame.assign(rest=rest).reset_index(drop=True)


def _without_object(template: str, subject: str) -> str:
    """beta: a template with its subject filled in and without its object."""
    return fill(template, subject).replace("[Y]", "").strip()


# Errors of verbalizations

TENSES = {
    "is": "was",
    "are": "were",
    "was": "will be",
    "were": "will be",
    "has": "had",
    "lies": "lay",
    "belongs": "belonged",
}
CONJUGATED = {"called": "calls", "known": "knows", "located": "locates", "based": "bases", "owned": "owns", "made": "makes",
              "developed": "develops", "born": "bears", "named": "names", "founded": "founds", "spoken": "speaks"}  # fmt: skip


def _swap(text: str, subject: str, words: dict[str, str]) -> str:
    """A text with the first of some words, outside the subject, replaced."""
    found = re.search(rf"\b({'|'.join(words)})\b", text.replace(subject, "\ue000" * len(subject)))
    return text if found is None else text[: found.start()] + words[found[0]] + text[found.end() :]


def _determiner(text: str, subject: str) -> str:
    """A text without the subject's article, or with a wrong one if it has none."""
    bare = re.sub(rf"\b[Tt]he {re.escape(subject)}", subject, text, count=1)
    return bare if bare != text else text.replace(subject, f"the {subject}", 1)


# errors of the kinds that people found in templates (Distractors, table 8), made by rule: (text, subject) -> text
FLAWS = {
    "sub_deter": _determiner,
    "obj_deter": lambda text, subject: text.removesuffix(" the") if text.endswith(" the") else f"{text} the",
    "wrong_conjug": lambda text, subject: _swap(text, subject, TENSES),
    "adj_noun_conjug": lambda text, subject: _swap(text, subject, CONJUGATED),
    "better_verb": lambda text, subject: _swap(text, subject, {"is": "may be", "was": "may have been"}),
    "sub_unclear": lambda text, subject: text.replace(subject, subject.lower(), 1),
    "obj_unclear": lambda text, subject: f"{text} what one calls",
}

RULES = {  # the same in words
    "sub_deter": "an article before the subject, or its own taken away",
    "obj_deter": "an article before the object, or its own taken away",
    "wrong_conjug": "the first verb in another tense",
    "adj_noun_conjug": "a participle conjugated: called, calls",
    "better_verb": "may be in place of is",
    "sub_unclear": "the subject in small letters",
    "obj_unclear": "'what one calls' before the object",
}


def flawed(prompts: pd.DataFrame, facts: Facts, shares: dict[str, float], seed: int = 0) -> pd.DataFrame:
    """Every prompt with sampled errors: the columns of ``prompts`` (role "flawed") and ``errors``, a tuple of names from
    ``FLAWS``. An error that changes nothing in a prompt (no verb to conjugate) is not counted; a prompt may stay free of errors.

    shares   error -> probability with which it is sampled, independently of the others
    """
    if odd := sorted(set(shares) - set(FLAWS)):
        raise unknown("kind of flaw", odd[0], FLAWS)
    subjects = dict(zip(facts.facts["fact"], facts.label(facts.facts["subject"]), strict=True))
    texts, errors = [], []
    for prompt, fact, text in prompts[["prompt", "fact", "text"]].itertuples(index=False):
        made, draw = [], rng(seed, "flaw", prompt)
        for name, spoil in FLAWS.items():
            spoilt = spoil(text, subjects[fact]) if draw.random() < shares.get(name, 0.0) else text
            if spoilt != text:
                text, made = spoilt, [*made, name]
        texts.append(text)
        errors.append(tuple(made))
    return prompts.assign(prompt="flawed|" + prompts["prompt"], role="flawed", text=texts, seed=seed, errors=errors)
