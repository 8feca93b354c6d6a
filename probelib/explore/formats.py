"""In which format does a model answer questions, and by which rule is an answer right?

The papers put a question as it is. Many real models end their text there, so what is measured is
whether they answer at all. This check puts famous facts in every format (``lm.text.PATTERNS``).

python -m probelib.lm formats MODEL [MODEL ...]
"""

from pathlib import Path

import pandas as pd

from probelib import facts, lm, prompts, stats, store
from probelib.facts.names import fold
from probelib.lm.names import FORMATS, split_variant
from probelib.monitor.answers import extract, matches

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
    known = dict(zip(pool.entities["entity"], pool.entities["popularity"], strict=True))
    rows = pool.facts.assign(known=pool.facts["subject"].map(known))
    rows = rows.sort_values("known", ascending=False, kind="stable").groupby("relation")
    return facts.pick(pool, rows.head(EACH)["fact"])


def answers(model, asked: facts.Facts, folder: str | Path) -> pd.DataFrame:
    """What a model answers to the first question of every fact: ``fact``, ``text`` (16 tokens,
    greedy), a column per rule of ``RULES`` (whether the text is right by the label or an alias),
    and ``likeliest``: whether the label is more probable than every distractor."""
    framed = prompts.paraphrases(asked)
    framed = framed[framed["template"] == 1]
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
    (Wilson)."""
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
                low, high = stats.wilson(facts_held.sum(), len(found))
                row |= {share: facts_held.mean(), f"{share} low": low, f"{share} high": high}
            rows.append(row)
    return pd.DataFrame(rows)
