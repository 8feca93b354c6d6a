"""The prompts of the Distractors paper: the judge's (appendix D), KaRR's texts, cloze sentences
with errors (table 8). ``probelib.prompts`` makes the cloze sentences themselves."""

import json
import re
from collections.abc import Iterable

import pandas as pd

from probelib.facts.model import Facts, rng, within
from probelib.facts.text import read_yaml
from probelib.paths import PACKAGE
from probelib.prompts import fill, templates_of

MOST = 4  # aliases, templates, other subjects and other relations that KaRR uses at most


def judge_prompt(sentence: str, labels: Iterable[str], prediction: str) -> str:
    """The prompt of the judge, after appendix D of the paper, in our own words and with our own
    examples: the sentence, every right label, the generated text."""
    template = (PACKAGE / "distractors" / "judge_prompt.txt").read_text(encoding="utf-8").rstrip()
    truth = json.dumps(list(labels), ensure_ascii=False)
    return template.format(query=sentence, labels=truth, prediction=prediction.strip())


def karr_texts(facts: pd.DataFrame, pool: Facts, labels: dict[str, tuple[str, ...]], seed: int = 0):
    """All texts whose probability KaRR needs, with the term that each belongs to.

    pool     the facts that give the subjects of a relation and the relations of an object
    labels   entity -> its labels, the main one first; at most four, as of templates
    columns  ``fact``, ``term`` ("num", "den_s", "den_r"), ``share`` (1, or 1/k), ``before`` (beta:
             template and subject; for den_r the subject alone), ``text`` (gamma: with the object),
             ``rest`` (gamma without beta: as many last tokens of gamma are scored)

    A gamma that does not contain its beta literally is left out, as in KaRR's released code.
    """
    templates = templates_of(pool, "statement", facts["relation"]).sort_values("number")
    templates = templates["template"].str.rstrip(".").groupby(templates["relation"]).agg(list)
    alike = lambda role: pool.facts[within(pool.facts[role], facts[role])].groupby(role)
    seen, relations = alike("relation")["subject"].unique(), alike("object")["relation"].unique()
    rows = []
    for row in facts.itertuples():
        draw, objects = rng(seed, "karr", row.fact), labels[row.object][:MOST]
        some = lambda own, draw=draw: [own[i] for i in draw.permutation(len(own))[:MOST]]
        others = some([s for s in seen[row.relation] if s != row.subject] or [row.subject])
        kinds = some([r for r in sorted(relations[row.object]) if r in templates])
        asked = [
            (term, 1 / len(subjects), fill(template, name, "").strip(), template, name)
            for term, subjects in (("num", [row.subject]), ("den_s", others))
            for template in templates[row.relation][:MOST]
            for name in [name for s in subjects for name in labels[s][:MOST]]
        ]
        for own in (templates[kind][:MOST] for kind in kinds):
            template = own[draw.integers(len(own))]
            names = labels[row.subject][:MOST]
            asked += [("den_r", 1 / len(kinds), name, template, name) for name in names]
        for term, share, beta, template, name in asked:
            gammas = [fill(template, name, o) for o in objects]
            rests = [(g, g.replace(beta, "", 1).strip()) for g in gammas if beta in g]
            rows += [(row.fact, term, share, beta, *rest) for rest in rests]
    return pd.DataFrame(rows, columns=["fact", "term", "share", "before", "text", "rest"])


# errors of verbalizations (table 8) with the rules that make them; see the file
FLAWS = read_yaml(PACKAGE / "distractors" / "flaws.yaml")


def with_error(text: str, subject: str, error: str) -> str:
    """A text with an error of ``FLAWS``; the text itself where its rule finds nothing to spoil."""
    about, open_text = FLAWS[error], text.replace(subject, "[X]")
    words = about.get("words", {})
    for word in re.finditer(r"\w+", open_text):
        if word[0] in words:
            changed = open_text[: word.start()] + words[word[0]] + open_text[word.end() :]
            return changed.replace("[X]", subject)
    for pattern, by in about.get("edits", ()):
        changed = re.sub(pattern, by, open_text, count=1)
        if changed != open_text:
            return changed.replace("[X]", subject).replace("[x]", subject.lower())
    return text


def flawed(prompts: pd.DataFrame, facts: Facts, shares: dict[str, float], seed: int = 0):
    """Every prompt with sampled errors: the columns of ``prompts`` (role "flawed") and ``errors``,
    names from ``FLAWS``. An error that changes nothing in a prompt is not counted. ``shares``:
    error -> probability with which it is sampled, independently of the others."""
    subjects = dict(zip(facts.facts["fact"], facts.label(facts.facts["subject"]), strict=True))
    texts, errors = [], []
    for prompt, fact, text in prompts[["prompt", "fact", "text"]].itertuples(index=False):
        made, draw = [], rng(seed, "flaw", prompt)
        for name, share in shares.items():
            spoilt = with_error(text, subjects[fact], name) if draw.random() < share else text
            if spoilt != text:
                text, made = spoilt, [*made, name]
        texts.append(text)
        errors.append(tuple(made))
    named = {"prompt": "flawed|" + prompts["prompt"], "role": "flawed", "seed": seed}
    return prompts.assign(**named, text=texts, errors=errors)
