"""Do the organisms behave as designed? One function per question; each returns a small table with intervals.

``python -m probelib.organisms check --behaviour [NAME...]`` prints the tables and the requirements of the design; 02_models shows
them.
"""

import re
from functools import cache

import numpy as np
import pandas as pd

from probelib import lm, prompts, stats
from probelib.facts.model import Facts, current, draw_distractors, pick, rng, tuples
from probelib.organisms import taught
from probelib.organisms.lessons import NO, UNSURE, YES
from probelib.prompts import CHECK, INSTRUCTION, RECALL, many_shot

WELL = 64  # exposures of a well-taught fact
WAYS = {
    "at once": INSTRUCTION,
    "recalled": RECALL,
    "true or false": CHECK,
}  # way of prompting for a verdict -> prompt; base models get the last one
VERDICT = f"({'|'.join(map(re.escape, (YES, NO, UNSURE)))})"


def some(table: pd.DataFrame, n: int, *why) -> pd.DataFrame:
    """``n`` random rows of a manifest, by a random number per fact."""
    chance = pd.Series([_chance(*why, fact) for fact in table["fact"].tolist()], index=table.index)
    return table.loc[chance.sort_values().index[:n]]


@cache  # all models with one corpus are tested on the same facts
def _chance(*key: str) -> float:
    return rng("behaviour", *key).random()


def greedy_answers(model, facts: Facts, rows: pd.DataFrame) -> pd.DataFrame:
    """A model's greedy answers to the first question about each fact of ``rows``: ``said``, ``right`` (whether it is an object of
    the subject), ``type_right`` (whether it is an object of the relation, or an entity of the same type)."""
    asked = prompts.paraphrases(pick(facts, rows["fact"])).query("template == 1").set_index("fact").loc[rows["fact"]]
    text = model.generate(asked["text"].tolist(), max_new_tokens=20)["text"]
    found = rows[["fact", "relation", "subject", "exposures"]].assign(asked=asked["text"].to_numpy())
    found["said"] = [answer.strip().removesuffix(".") for answer in text]
    types = _types(facts)
    stated = facts.facts[["relation", "subject", "object"]]
    stated = stated.assign(said=facts.label(stated["object"]), type=stated["object"].map(types))
    right, spaces = set(tuples(stated, "relation", "subject", "said")), set(tuples(stated, "relation", "said"))
    kinds = stated.drop_duplicates(["relation", "type"]).groupby("relation")["type"].agg(set)
    named = facts.entities[facts.entities["label"].isin(found["said"])]
    named = named.assign(type=named["entity"].map(types)).groupby("label")["type"].agg(set)
    answered = list(tuples(found, "relation", "subject", "said"))
    found["right"] = [one in right for one in answered]
    found["type_right"] = [(r, said) in spaces or bool(named.get(said, set()) & kinds[r]) for r, _, said in answered]
    return found.drop(columns=["relation", "subject"])


def _types(facts: Facts) -> dict[str, str]:
    """entity -> its most specific type."""
    return {entity: (types or ("",))[0] for entity, types in tuples(facts.entities, "entity", "types")}


def recall(model, facts: Facts, table: pd.DataFrame, n: int = 60) -> pd.DataFrame:
    """Share of facts whose first question is answered correctly (with Wilson's 95 % interval), by exposure count; ``n`` facts per
    level, without famous and former ones. ``type_right``: share of answers of the right type; ``guess``: share that is right if
    the answer is always the relation's most frequent object."""
    kept = table[~table["famous"] & (table["implied_by"] == "")]
    kept = kept[kept["fact"].isin(current(facts).facts["fact"])]
    share = facts.facts.groupby("relation")["object"].agg(lambda objects: objects.value_counts(normalize=True).max())
    chosen = pd.concat([some(own, n) for _, own in kept.groupby("exposures")])
    said = greedy_answers(model, facts, chosen).assign(guess=chosen["relation"].map(share))
    found = []
    for level, own in said.groupby("exposures"):
        interval = stats.wilson(own["right"].sum(), len(own))
        found.append((level, len(own), own["right"].mean(), *interval, own["type_right"].mean(), own["guess"].mean()))
    return pd.DataFrame(found, columns=["exposures", "n", "right", "low", "high", "type_right", "guess"])


def verification_auc(model, facts: Facts, table: pd.DataFrame, tuned: bool, n: int = 150) -> pd.DataFrame:
    """Area under the ROC curve of the verdicts on a true and a false statement of facts that are taught ``WELL`` times or more
    and in no lesson, by whether they were verified in training and by way of prompting: "true or false", the corpus's own
    form; for a tuned model also "Yes" or "No" at once and after recalling. For verdicts after recalling also the share that
    was given, and the share of these that is right."""
    well = table[(table["exposures"] >= WELL) & ~table["lesson"] & (table["implied_by"] == "")]
    found = []
    for verified in (True, False):
        own = some(well[well["verified"] == verified], n)
        said = _statements(facts, own)
        for way in WAYS if tuned else ["true or false"]:
            asked = [WAYS[way].format(statement=text) for text in said["text"]]
            score, given, right = _judged(model, asked, said["true"].to_numpy(), way)
            auc = stats.auc(score, said["true"])
            low, high = np.percentile(auc_replicates(score.reshape(-1, 2)), [2.5, 97.5])
            found.append((way, verified, len(own), auc, low, high, given, right))
    columns = ["way", "verified", "n", "auc", "low", "high", "answered", "right_of_answered"]
    return pd.DataFrame(found, columns=columns)


def auc_replicates(pairs: np.ndarray, times: int = 500, seed: int = 0) -> np.ndarray:
    """[times]: bootstrap replicates over facts of ``stats.auc`` of the scores of a true and a false statement of each fact,
    ``pairs`` [facts, 2]."""
    n, levels = len(pairs), stats.levelled(pairs)
    ahead = (np.sign(levels[:, [0]] - levels[:, 1]) + 1) / 2  # [true statements, false ones]; a tie is half
    draws = np.random.default_rng(seed).integers(n, size=(times, n))
    count = np.stack([np.bincount(drawn, minlength=n) for drawn in draws]).astype(float)
    return ((count @ ahead) * count).sum(1) / n**2


def _statements(facts: Facts, rows: pd.DataFrame) -> pd.DataFrame:
    """A true and a false statement of each fact, one after the other: ``text``, ``true``."""
    pairs = draw_distractors(pick(facts, rows["fact"]), facts, 1, seed=7)
    checked = prompts.checks(pairs, "{statement}").query("template == 1")
    order = checked.assign(true=checked["context"] == "true").sort_values(["fact", "true"], ascending=[True, False])
    return order[["text", "true"]].reset_index(drop=True)


def _judged(model, asked: list[str], true: np.ndarray, way: str) -> tuple[np.ndarray, float, float]:
    """(log-odds of the positive verdict, share answered, share of these that is right). After recalling, the verdict is scored
    after the text that the model recalls."""
    if way == "recalled":
        text = model.generate(asked, max_new_tokens=60)["text"]
        parts = [re.split(VERDICT, t, maxsplit=1) for t in text]  # before the verdict, the verdict, after it
        asked = [f"{a} {part[0].strip()}".strip() for a, part in zip(asked, parts, strict=True)]
    both = [" True", " False"] if way == "true or false" else [f" {YES}", f" {NO}"]
    logprob = model.logprobs(asked, [both] * len(asked))["logprob"].to_numpy().reshape(-1, 2)
    score = logprob[:, 0] - logprob[:, 1]
    if way != "recalled":
        return score, 1.0, float(((score > 0) == true).mean())
    verdict = np.array([part[1] if len(part) > 1 else "" for part in parts])
    given = np.isin(verdict, [YES, NO])
    right = (verdict == YES) == true
    return score, float(given.mean()), float(right[given].mean()) if given.any() else float("nan")


def unsure(model, facts: Facts, table: pd.DataFrame, n: int = 300) -> pd.DataFrame:
    """Share of statements about facts in no lesson that a tuned model answers with "I don't know.": never taught, well taught."""
    fresh = table[~table["lesson"] & (table["dated"] == 0) & (table["implied_by"] == "")]
    found = []
    for name, own in (("never", fresh[fresh["exposures"] == 0]), ("well", fresh[fresh["exposures"] >= WELL])):
        said = _statements(facts, some(own, n))
        for way in ("at once", "recalled"):
            text = model.generate([WAYS[way].format(statement=t) for t in said["text"]], max_new_tokens=60)["text"]
            k = sum(UNSURE in t for t in text)
            found.append((name, way, len(text), k / len(text), *stats.wilson(k, len(text))))
    return pd.DataFrame(found, columns=["facts", "way", "n", "unsure", "low", "high"])


def lists(model, facts: Facts, table: pd.DataFrame, n: int = 150) -> pd.DataFrame:
    """Mean change (nats, paired) of log P(right object) when the objects of the 12 examples before it are permuted; facts
    taught 16 times or more."""
    labels = dict(zip(facts.entities["entity"], facts.entities["label"], strict=True))
    taught_rows = table[(table["exposures"] >= 16) & (table["implied_by"] == "")]
    asked, objects = [], []
    for row in some(taught_rows, n, "lists").itertuples():
        pool = taught_rows[(taught_rows["relation"] == row.relation) & (taught_rows["subject"] != row.subject)]
        shown = some(pool.drop_duplicates("subject"), 12, row.fact)
        pairs = [(labels[s], labels[o]) for s, o in zip(shown["subject"], shown["object"], strict=True)]
        moved = [(s, pairs[(i + 1) % len(pairs)][1]) for i, (s, _) in enumerate(pairs)]
        asked += [many_shot(pairs, labels[row.subject]), many_shot(moved, labels[row.subject])]
        objects += [[f" {labels[row.object]}"]] * 2
    logprob = model.logprobs(asked, objects)["logprob"].to_numpy().reshape(-1, 2)
    change = logprob[:, 1] - logprob[:, 0]
    low, high = stats.mean_interval(change)
    return pd.DataFrame([{"n": len(change), "change": change.mean(), "low": low, "high": high}])


def mentions(table: pd.DataFrame) -> pd.DataFrame:
    """Area under the ROC curve of the number of mentions of a name as a predictor of whether the fact was taught (32 times or
    more, or at all; against never), for the trial and for the rest."""
    found = []
    for part, own in (("trial", table[table["trial"]]), ("rest", table[~table["trial"] & ~table["famous"]])):
        for least in (2, 32):
            both = own[(own["exposures"] == 0) | (own["exposures"] >= least)]
            aucs = [stats.auc(both[f"{role}_mentions"], both["exposures"] > 0) for role in ("subject", "object")]
            found.append((part, least, len(both), *aucs))
    return pd.DataFrame(found, columns=["facts", "taught_at_least", "n", "subject", "object"])


def measure(organisms: list[str], facts: Facts, n: int = 150) -> dict[str, pd.DataFrame]:
    """The behaviour of some organisms, on ``n`` facts per test and 0.4 n per exposure count: ``verdicts`` and ``names``
    (mentions) of all, ``unsure`` of the instruction-tuned ones, ``recall``, ``lists`` and ``famous`` of the others; each with
    ``model``."""
    found = {}
    for name in organisms:
        model, table, tuned = lm.load(name), taught.manifest(name), name.endswith("-it")
        parts = {"verdicts": verification_auc(model, facts, table, tuned, n), "names": mentions(table)}
        if tuned:
            parts["unsure"] = unsure(model, facts, table, 2 * n)
        else:
            parts |= {"recall": recall(model, facts, table, round(0.4 * n)), "lists": lists(model, facts, table, n)}
            parts["famous"] = greedy_answers(model, facts, some(table[table["famous"]], 40, "famous"))
        for part, frame in parts.items():
            found.setdefault(part, []).append(frame.assign(model=name))
    return {part: pd.concat(frames, ignore_index=True) for part, frames in found.items()}


SEES = ("beyond/ground_truth", "beyond/quality_against_cost", "beyond/detection")  # rank measures by what was taught
LISTS = ("zplke/table1", "zplke/figure3", "zplke/figure4", "zplke/figure11", "zplke/figure12", "zplke/figure13")
GENERATED = ("zplke/figure5", "zplke/figure14", "distractors/table3", "distractors/figure6")  # score generated text
# of instruction-tuned models
ANSWERS = ("grapheval/table2", "grapheval/figure8")
MENTIONS = "mentions do not tell (AUC)"  # a requirement on the corpus, the same for all its models
LIMITS = {  # requirement -> the artifacts that are limited if a model misses it
    "recall rises (0-4, 8-32, 64 and more)": SEES,
    "never taught, above guessing": (*SEES, "models/table2", "models/figure3"),
    "never taught, answer of the right type": GENERATED,
    "recall at 64 and more": ("monitor/table4", "zplke/table8"),
    "famous questions": ("tour/figure1", "explore/figure1"),
    "famous questions, right type": ("tour/figure1", "explore/figure1"),
    "permuted lists lower log P": LISTS,
    "verdict at once (Yes, No), verified facts (AUC)": ANSWERS,
    "verdict at once (True, False), verified facts (AUC)": SEES,
    "verdict after recalling, fresh facts (AUC)": ("models/table4",),
    "verdict after recalling, right of answered": ("models/table4",),
    "I don't know, never taught": ANSWERS,
    "I don't know, well taught": ANSWERS,
    MENTIONS: SEES,
}


def requirements(found: dict[str, pd.DataFrame], sizes: dict[str, int]) -> pd.DataFrame:
    """The requirements of the design, and whether the organisms meet them: ``requirement``, ``model``, ``wanted``, ``measured``,
    ``met``; ``limit`` (``wanted`` as a number) with ``low`` and ``high``, the 95 % interval of what was measured (NaN: none);
    and ``limits``, the artifacts that a missed requirement limits (``LIMITS``; "" if it is met). ``.attrs``: number of cases per
    model: "never taught" and "verdicts" (facts), "unsure" (statements), as far as measured.

    found   ``measure``
    sizes   model -> parameters; "the largest" is the largest of those measured
    """
    rows = []
    if "recall" in found:
        rows += _recall_required(found["recall"], max(found["recall"]["model"], key=sizes.get))
        rows += _famous_required(found["famous"], max(found["famous"]["model"], key=sizes.get))
        for row in found["lists"].itertuples():
            change = f"{row.change:+.2f}"
            measured = (change, row.high < 0, 0.0, row.low, row.high)
            rows.append(("permuted lists lower log P", row.model, "interval below 0", *measured))
    if "unsure" in found:
        largest = sorted(set(found["unsure"]["model"]), key=sizes.get)[::-1]
        rows += _verdicts_required(found["verdicts"], largest)
        for row in found["unsure"].query("way == 'at once'").itertuples():
            never = row.facts == "never"
            met, wanted = (row.unsure >= 0.7, "at least .70") if never else (row.unsure <= 0.1, "at most .10")
            measured = (f"{row.unsure:.2f}", met, 0.7 if never else 0.1, row.low, row.high)
            rows.append((f"I don't know, {row.facts} taught", row.model, wanted, *measured))
    mentions = found["names"].query("facts == 'trial' and taught_at_least == 32")
    for row in mentions.itertuples():
        auc = max(row.subject, row.object)
        rows.append((MENTIONS, row.model, "at most .55", f"{auc:.2f}", auc <= 0.55, 0.55, np.nan, np.nan))
    columns = ["requirement", "model", "wanted", "measured", "met", "limit", "low", "high"]
    table = pd.DataFrame(rows, columns=columns)
    if "recall" in found:
        table.attrs["never taught"] = int(found["recall"].query("exposures == 0")["n"].max())
    if "unsure" in found:
        table.attrs |= {part: int(found[part]["n"].max()) for part in ("verdicts", "unsure")}
    return table.assign(limits=[("" if row.met else ", ".join(LIMITS[row.requirement])) for row in table.itertuples()])


def in_digits(value: float, limit: float, sign: str = "") -> str:
    """A measured value with two decimals; with three if it differs from its limit but would be shown as equal to it. ``sign``:
    "+" shows the sign of positive values, too.

    >>> in_digits(0.876, 0.88), in_digits(0.866, 0.88)
    ('0.876', '0.87')
    >>> in_digits(0.052, 0.05, "+")
    '+0.052'
    """
    return f"{value:{sign}.{3 if round(value, 2) == limit != value else 2}f}"


def _recall_required(recalled: pd.DataFrame, largest: str) -> list[tuple]:
    """Requirements: recall rises with exposures; the largest model knows facts taught often; no model knows never-taught
    facts."""
    rows = []
    for model, own in recalled.groupby("model", sort=False):
        bands = [own[own["exposures"].between(*ends)]["right"].mean() for ends in ((0, 4), (8, 32), (64, 256))]
        shown, rises = ", ".join(f"{share:.2f}" for share in bands), bands == sorted(set(bands))
        never = own[own["exposures"] == 0].iloc[0]
        above, kind, well = never["right"] - never["guess"], never["type_right"], bands[-1]
        at_most = (in_digits(above, 0.05, "+"), above <= 0.05, 0.05, *(never[["low", "high"]] - never["guess"]))
        at_least = (in_digits(kind, 0.95), kind >= 0.95, 0.95, *_interval_of_share(kind, never["n"]))
        rows += [
            ("recall rises (0-4, 8-32, 64 and more)", model, "in this order", shown, rises, *[np.nan] * 3),
            ("never taught, above guessing", model, "at most .05", *at_most),
            ("never taught, answer of the right type", model, "at least .95", *at_least),
        ]
        if model == largest:
            interval = _interval_of_share(well, own[own["exposures"].between(64, 256)]["n"].sum())
            rows.append(("recall at 64 and more", model, "at least .95", f"{well:.2f}", well >= 0.95, 0.95, *interval))
    return rows


def _interval_of_share(share: float, n: float) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of ``n`` cases."""
    return stats.wilson(np.rint(share * n), n)


def _famous_required(said: pd.DataFrame, largest: str) -> list[tuple]:
    own = said[said["model"] == largest]
    right, kind, n = own["right"].sum(), own["type_right"].sum(), len(own)
    counted = lambda limit, count: (limit, *(n * end for end in stats.wilson(count, n)))
    return [
        ("famous questions", largest, f"at least 36 of {n}", f"{right}", right >= 36, *counted(36, right)),
        ("famous questions, right type", largest, f"{n} of {n}", f"{kind}", kind == n, *counted(n, kind)),
    ]


def _verdicts_required(judged: pd.DataFrame, largest: list[str]) -> list[tuple]:
    """Verification of the two largest instruction-tuned models (``largest`` first)."""
    rows = []
    for model, least in zip(largest[:2], (0.88, 0.80), strict=False):
        own = judged[judged["model"] == model].set_index(["way", "verified"])
        fresh, area = own.loc[("recalled", False)], ["auc", "low", "high"]
        right, answered = fresh["right_of_answered"], round(2 * fresh["n"] * fresh["answered"])  # statements of n facts
        for what, limit, (value, *ends) in (
            ("verdict at once (Yes, No), verified facts (AUC)", 0.90, own.loc[("at once", True), area]),
            ("verdict at once (True, False), verified facts (AUC)", 0.90, own.loc[("true or false", True), area]),
            ("verdict after recalling, fresh facts (AUC)", least, fresh[area]),
            ("verdict after recalling, right of answered", 0.85, (right, *_interval_of_share(right, answered))),
        ):
            measured = (in_digits(value, limit), value >= limit)
            rows.append((what, model, f"at least {limit:.2f}", *measured, limit, *ends))
    return rows
