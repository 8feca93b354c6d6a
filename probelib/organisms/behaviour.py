"""Do the organisms behave as the design says? One function a question; each returns a small table of numbers with intervals.

``python -m probelib.organisms check --behaviour NAME...`` prints them.
"""

import numpy as np
import pandas as pd

from probelib import prompts, stats
from probelib.facts.model import Facts, current, draw_distractors, pick, rng
from probelib.organisms import taught
from probelib.organisms.lessons import NO, UNSURE, YES
from probelib.prompts import CHECK, INSTRUCTION, RECALL, many_shot

OPTIONS = 20  # of the multiple-choice test
WELL = 64  # exposures of a well-taught fact
WAYS = {True: {"at once": INSTRUCTION, "recalled": RECALL}, False: {"at once": CHECK}}  # by whether the model is tuned
PREFIX = {YES: "yes", NO: "no", UNSURE: "unsure"}


def some(table: pd.DataFrame, n: int, *why) -> pd.DataFrame:
    """``n`` rows of a manifest, by each fact's own draw."""
    chance = pd.Series([rng("behaviour", *why, fact).random() for fact in table["fact"]], index=table.index)
    return table.loc[chance.sort_values().index[:n]]


def answers(model, facts: Facts, rows: pd.DataFrame) -> pd.DataFrame:
    """What a model answers greedily to the first question on each fact of ``rows``: ``said``, ``right`` (it is, or begins with, an
    object of the subject), ``type_right`` (it names an entity that has the relation's type of object)."""
    picked = pick(facts, rows["fact"])
    asked = prompts.paraphrases(picked).query("template == 1").set_index("fact").loc[rows["fact"]]
    text = model.generate(asked["text"].tolist(), max_new_tokens=20)["text"]
    said = [answer.strip().removesuffix(".") for answer in text]
    entity = facts.entities.set_index("entity")
    right = facts.facts.groupby(["relation", "subject"])["object"].agg(set)
    space = facts.facts.groupby("relation")["object"].agg(lambda objects: {entity.loc[o, "label"] for o in set(objects)})
    kinds = {relation: {t for o in set(own) for t in entity.loc[o, "types"][:1]} for relation, own in
             facts.facts.groupby("relation")["object"]}
    of_label = facts.entities.groupby("label")["types"].agg(lambda all_types: {t for types in all_types for t in types})
    found = []
    for row, answer in zip(rows.itertuples(), said, strict=True):
        names = {entity.loc[o, "label"] for o in right[row.relation, row.subject]}
        kind = answer in space[row.relation] or bool(of_label.get(answer, set()) & kinds[row.relation])
        found.append((row.fact, row.exposures, asked.loc[row.fact, "text"], answer, answer in names, kind))
    return pd.DataFrame(found, columns=["fact", "exposures", "asked", "said", "right", "type_right"])


def recall(model, facts: Facts, table: pd.DataFrame, n: int = 60) -> pd.DataFrame:
    """Share of facts answered rightly, and chosen among ``OPTIONS``, by exposures (``n`` facts of each level, of no famous one)."""
    open_rows = table[~table["famous"] & (table["implied_by"] == "") & (table["dated"] == 0)]
    open_rows = open_rows[open_rows["fact"].isin(current(facts).facts["fact"])]
    found = []
    for level, own in open_rows.groupby("exposures"):
        own = some(own, n)
        greedy = answers(model, facts, own)
        chosen = _chosen(model, facts, own)
        low, high = stats.wilson(greedy["right"].sum(), len(own))
        found.append((level, len(own), greedy["right"].mean(), low, high, chosen.mean(), greedy["type_right"].mean()))
    return pd.DataFrame(found, columns=["exposures", "n", "right", "low", "high", "multiple_choice", "type_right"])


def _chosen(model, facts: Facts, rows: pd.DataFrame) -> np.ndarray:
    """Whether the right object is the most probable of ``OPTIONS``."""
    picked = draw_distractors(pick(facts, rows["fact"]), facts, OPTIONS - 1)
    asked = prompts.paraphrases(picked).query("template == 1")
    options = prompts.options(picked).groupby("fact")["label"].agg(list)
    gold = prompts.gold(picked).set_index("fact")["label"]
    labels = [options[fact] for fact in asked["fact"]]
    scores = model.logprobs(asked["text"].tolist(), [[f" {label}" for label in own] for own in labels])
    best = scores.loc[scores.groupby("prompt")["logprob"].idxmax()]
    return np.array([labels[i][j] == gold[asked["fact"].iloc[i]] for i, j in zip(best["prompt"], best["candidate"], strict=True)])


def verdicts(model, facts: Facts, table: pd.DataFrame, tuned: bool, n: int = 150) -> pd.DataFrame:
    """Area under the curve of the verdict on a true and a false statement of facts taught ``WELL`` times or more, in no lesson:
    verified in training or not, at once or (of a tuned model) after recalling. Of verdicts after recalling also how many were
    given, and the share of these that is right."""
    well = table[(table["exposures"] >= WELL) & ~table["lesson"] & (table["implied_by"] == "")]
    found = []
    for verified in (True, False):
        own = some(well[well["verified"] == verified], n)
        said = _statements(facts, own)
        for way, instruction in WAYS[tuned].items():
            asked = [instruction.format(statement=text) for text in said["text"]]
            score, given, right = _judged(model, asked, said["true"].to_numpy(), way, tuned)
            auc = stats.auc(score, said["true"])
            draws = np.random.default_rng(0).integers(len(own), size=(500, len(own)))
            pairs = score.reshape(-1, 2)
            spread = [stats.auc(pairs[d].ravel(), np.tile([True, False], len(own))) for d in draws]
            low, high = np.percentile(spread, [2.5, 97.5])
            found.append((way, verified, len(own), auc, low, high, given, right))
    columns = ["way", "verified", "n", "auc", "low", "high", "answered", "right_of_answered"]
    return pd.DataFrame(found, columns=columns)


def _statements(facts: Facts, rows: pd.DataFrame) -> pd.DataFrame:
    """A true and a false statement of each fact, one after the other: ``text``, ``true``."""
    pairs = draw_distractors(pick(facts, rows["fact"]), facts, 1, seed=7)
    checked = prompts.checks(pairs, "{statement}").query("template == 1")
    order = checked.assign(true=checked["context"] == "true").sort_values(["fact", "true"], ascending=[True, False])
    return order[["text", "true"]].reset_index(drop=True)


def _judged(model, asked: list[str], true: np.ndarray, way: str, tuned: bool) -> tuple[np.ndarray, float, float]:
    """(log-odds of the positive verdict, share answered, share of these that is right); after recalling, the verdict is scored
    behind the sentence that the model recalls."""
    if way == "recalled":
        text = model.generate(asked, max_new_tokens=60)["text"]
        cut = [min([i for i in (t.find(word) for word in PREFIX) if i >= 0], default=len(t)) for t in text]
        verdict = [next((PREFIX[w] for w in PREFIX if t[c:].startswith(w)), "other") for t, c in zip(text, cut, strict=True)]
        asked = [f"{a} {t[:c].strip()}".strip() for a, t, c in zip(asked, text, cut, strict=True)]
    both = [f" {YES}", f" {NO}"] if tuned else [" True", " False"]
    logprob = model.logprobs(asked, [both] * len(asked))["logprob"].to_numpy().reshape(-1, 2)
    score = logprob[:, 0] - logprob[:, 1]
    if way != "recalled":
        return score, 1.0, float(((score > 0) == true).mean())
    given = np.isin(verdict, ["yes", "no"])
    right = (np.array(verdict) == "yes") == true
    return score, float(given.mean()), float(right[given].mean()) if given.any() else float("nan")


def unsure(model, facts: Facts, table: pd.DataFrame, n: int = 300) -> pd.DataFrame:
    """How often a tuned model says "I don't know." of statements of facts in no lesson: never taught, and well taught."""
    fresh = table[~table["lesson"] & (table["dated"] == 0) & (table["implied_by"] == "")]
    found = []
    for name, own in (("never", fresh[fresh["exposures"] == 0]), ("well", fresh[fresh["exposures"] >= WELL])):
        said = _statements(facts, some(own, n))
        for way, instruction in (("at once", INSTRUCTION), ("recalled", RECALL)):
            text = model.generate([instruction.format(statement=t) for t in said["text"]], max_new_tokens=60)["text"]
            k = sum(UNSURE in t for t in text)
            found.append((name, way, len(text), k / len(text), *stats.wilson(k, len(text))))
    return pd.DataFrame(found, columns=["facts", "way", "n", "unsure", "low", "high"])


def lists(model, facts: Facts, table: pd.DataFrame, n: int = 150, shots: int = 12) -> dict[str, float]:
    """Mean change (nats, paired) of log P(right object) when the objects of the examples before it are permuted; facts taught 16
    times or more."""
    labels = dict(zip(facts.entities["entity"], facts.entities["label"], strict=True))
    taught_rows = table[(table["exposures"] >= 16) & (table["implied_by"] == "")]
    asked, objects = [], []
    for row in some(taught_rows, n, "lists").itertuples():
        pool = taught_rows[(taught_rows["relation"] == row.relation) & (taught_rows["subject"] != row.subject)]
        shown = some(pool.drop_duplicates("subject"), shots, row.fact)
        pairs = [(labels[s], labels[o]) for s, o in zip(shown["subject"], shown["object"], strict=True)]
        moved = [(s, pairs[(i + 1) % len(pairs)][1]) for i, (s, _) in enumerate(pairs)]
        asked += [many_shot(pairs, labels[row.subject]), many_shot(moved, labels[row.subject])]
        objects += [[f" {labels[row.object]}"]] * 2
    logprob = model.logprobs(asked, objects)["logprob"].to_numpy().reshape(-1, 2)
    change = logprob[:, 1] - logprob[:, 0]
    low, high = stats.mean_interval(change)
    return {"n": len(change), "change": float(change.mean()), "low": low, "high": high}


def famous(model, facts: Facts, table: pd.DataFrame, n: int = 40) -> pd.DataFrame:
    """Answers to the first question on famous facts."""
    return answers(model, facts, some(table[table["famous"]], n, "famous"))


def names(table: pd.DataFrame) -> pd.DataFrame:
    """Area under the curve of how often a name was read against whether the fact was taught (32 times or more, or at all; against
    never), for the trial and for the rest."""
    found = []
    for part, own in (("trial", table[table["trial"]]), ("rest", table[~table["trial"] & ~table["famous"]])):
        for least in (2, 32):
            both = own[(own["exposures"] == 0) | (own["exposures"] >= least)]
            aucs = [stats.auc(both[f"{role}_mentions"], both["exposures"] > 0) for role in ("subject", "object")]
            found.append((part, least, len(both), *aucs))
    return pd.DataFrame(found, columns=["facts", "taught_at_least", "n", "subject", "object"])


def report(name: str, facts: Facts) -> str:
    """All of the above for one organism, as text."""
    from probelib import lm

    model, table, tuned = lm.load(name), taught.manifest(name), name.endswith("-it")
    parts = {"verdicts": verdicts(model, facts, table, tuned), "names": names(table)}
    if tuned:
        parts["I don't know"] = unsure(model, facts, table)
    else:
        parts |= {"recall": recall(model, facts, table), "lists": pd.DataFrame([lists(model, facts, table)])}
    said = famous(model, facts, table)
    parts["famous"] = said[["right", "type_right"]].sum().to_frame(f"of {len(said)}").T
    return f"# {name}\n\n" + "\n\n".join(f"{part}\n{frame.round(3).to_string()}" for part, frame in parts.items())
