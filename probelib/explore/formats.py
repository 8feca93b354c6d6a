"""In which format does a model answer questions, and by which rule is an answer right?

The papers put a question as it is. Many real models end their text there, so what is measured is
whether they answer at all. This check puts famous facts in every format (``lm.text.PATTERNS``).
"""

from pathlib import Path

import pandas as pd

from probelib import facts, lm, prompts, stats, store
from probelib.facts.names import fold
from probelib.lm.names import FORMATS, split_variant
from probelib.monitor.scores import extract, matches
from probelib.report import interval

RELATIONS = ("P36", "P30", "P37", "P38", "P17")  # capital, continent, language, currency, country
EACH = 8  # facts of a relation: those of the best-known subjects
RULES = {
    "begins": lambda text, label: fold(text.lstrip()).startswith(fold(label)),
    "contains": lambda text, label: fold(label) in fold(text),
    "exact": lambda text, label: bool(matches(text, label)),  # MONITOR's: the label, then an end
}


def famous() -> facts.Facts:
    """The 40 facts of the atlas that are asked, with five distractors each."""
    pool = facts.load(relations=list(RELATIONS), n_facts="all")
    known = pool.entities.set_index("entity")["popularity"]
    rows = pool.facts.sort_values("subject", key=lambda own: -own.map(known), kind="stable")
    return facts.sample(pool, EACH, first=rows["fact"])


def answers(model, asked: facts.Facts, folder: str | Path) -> pd.DataFrame:
    """What a model answers to the first question of every fact: ``fact``, ``text`` (16 tokens,
    greedy), a column per rule of ``RULES`` (whether the text is right by the label or an alias),
    and ``likeliest``: whether the label is more probable than every distractor."""
    framed = prompts.paraphrases(asked).query("template == 1")
    found = store.generate(model, framed, folder, max_new_tokens=16)[["fact", "text"]]
    entities = asked.entities.set_index("entity")
    right = asked.facts.set_index("fact")["object"][found["fact"]]
    names = [(entities.at[e, "label"], *entities.at[e, "aliases"]) for e in right]
    for rule, holds in RULES.items():
        pairs = zip(found["text"], names, strict=True)
        found[rule] = [any(holds(text, name) for name in own) for text, own in pairs]
    scores = store.score(model, framed, prompts.options(asked), folder)
    best = scores.loc[scores.groupby("fact")["logprob"].idxmax()].set_index("fact")["candidate"]
    return found.assign(likeliest=best[found["fact"]].to_numpy() == right.to_numpy())


def formats_table(names: list[str], folder: str | Path) -> pd.DataFrame:
    """One row per model and format ("chat" for models with a template): ``n``, the shares
    ``answered`` (any text before a line break), the rules and ``likeliest`` with 95 % intervals
    (Wilson), and how often a rule is wrong against ``likeliest``: ``credit by RULE`` (right among
    the facts that log-probabilities miss), ``blame by RULE`` (wrong among those they get)."""
    asked, rows = famous(), []
    for name in names:
        base, variant = split_variant(name)
        plain = base + "".join(f"@{part}" for part in variant.split("@")[1:] if part not in FORMATS)
        template = getattr(lm.load(plain).tokenizer, "chat_template", None)
        for format in ("bare", *FORMATS) if template else ("bare", *FORMATS[:-1]):
            model = lm.load(plain if format == "bare" else f"{plain}@{format}")
            found = answers(model, asked, folder)
            row = {"model": plain, "format": format, "n": len(found)}
            held = {"answered": found["text"].map(extract) != ""} | dict(found.iloc[:, 2:])
            for share, facts_held in held.items():
                row |= interval(share, facts_held, lambda each: stats.wilson(each.sum(), len(each)))
            for rule in RULES:
                row[f"credit by {rule}"] = found[rule][~found["likeliest"]].mean()
                row[f"blame by {rule}"] = (~found[rule])[found["likeliest"]].mean()
            rows.append(row)
    return pd.DataFrame(rows)
