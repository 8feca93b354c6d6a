"""Do the organisms behave as designed? One function per question; each returns a small table with
intervals. The notebook 02_models shows them, and the requirements of the design."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import lm, prompts, stats
from probelib.facts.model import Facts, current, draw_distractors, pick, rng, tuples
from probelib.facts.text import read_yaml
from probelib.organisms import taught
from probelib.organisms.lessons import NO, UNSURE, YES
from probelib.prompts import CHECK, INSTRUCTION, RECALL, many_shot

WELL = 64  # exposures of a well-taught fact
# way of prompting an instruction-tuned model for a verdict -> prompt
WAYS = {"at once": INSTRUCTION, "recalled": RECALL, "true or false": CHECK}
# requirement -> way, and whether the facts were verified in training
JUDGED = {
    "verdict at once (Yes, No), verified facts (AUC)": ("at once", True),
    "verdict at once (True, False), verified facts (AUC)": ("true or false", True),
    "verdict after recalling, fresh facts (AUC)": ("recalled", False),
}
REQUIRED = read_yaml(Path(__file__).with_name("requirements.yaml"))
VERDICT = f"({'|'.join(map(re.escape, (YES, NO, UNSURE)))})"


def some(table: pd.DataFrame, n: int, *why) -> pd.DataFrame:
    """``n`` random rows of a manifest, by a random number per fact."""
    chance = [rng("behaviour", *why, fact).random() for fact in table["fact"].tolist()]
    return table.loc[pd.Series(chance, index=table.index).sort_values().index[:n]]


def greedy_answers(model, facts: Facts, rows: pd.DataFrame) -> pd.DataFrame:
    """A model's greedy answers to the first question about each fact of ``rows``: ``said``,
    ``right`` (whether it is an object of the subject), ``type_right`` (whether it names an entity
    of the type of one of the relation's objects)."""
    asked = prompts.paraphrases(pick(facts, rows["fact"])).query("template == 1")
    asked = asked.set_index("fact").loc[rows["fact"], "text"].tolist()
    text = model.generate(asked, max_new_tokens=20)["text"]
    found = rows[["fact", "relation", "subject", "exposures"]].assign(asked=asked)
    found["said"] = [answer.strip().removesuffix(".") for answer in text]
    entities = facts.entities.assign(type=facts.entities["types"].str[0].fillna(""))
    objects = facts.facts.merge(entities, left_on="object", right_on="entity")
    kinds = objects[["relation", "type"]].drop_duplicates()
    named = entities[entities["label"].isin(found["said"])].merge(kinds, on="type")
    right = set(tuples(objects, "relation", "subject", "label"))
    typed = set(tuples(named, "relation", "label"))
    found["right"] = [one in right for one in tuples(found, "relation", "subject", "said")]
    found["type_right"] = [one in typed for one in tuples(found, "relation", "said")]
    return found.drop(columns=["relation", "subject"])


def recall(model, facts: Facts, table: pd.DataFrame, n: int = 60) -> pd.DataFrame:
    """Share of facts whose first question is answered correctly (with Wilson's 95 % interval), by
    exposure count; ``n`` facts per level, without famous and former ones. ``type_right``: share of
    answers of the right type; ``guess``: share that is right if the answer is always the relation's
    most frequent object."""
    kept = table[~table["famous"] & (table["implied_by"] == "")]
    kept = kept[kept["fact"].isin(current(facts).facts["fact"])]
    most = lambda objects: objects.value_counts(normalize=True).max()
    share = facts.facts.groupby("relation")["object"].agg(most)
    chosen = pd.concat([some(own, n) for _, own in kept.groupby("exposures")])
    said = greedy_answers(model, facts, chosen).assign(guess=chosen["relation"].map(share))
    groups = said.groupby("exposures")
    found = groups.agg(n=("right", "size"), right=("right", "mean"))
    counts = zip(groups["right"].sum(), found["n"], strict=True)
    found[["right low", "right high"]] = [stats.wilson(k, size) for k, size in counts]
    return found.join(groups[["type_right", "guess"]].mean()).reset_index()


def verification_auc(model, facts: Facts, table: pd.DataFrame, n: int = 150) -> pd.DataFrame:
    """How well an instruction-tuned model's verdicts tell true from false statements of facts
    taught ``WELL`` times or more and in no lesson: for each of ``JUDGED``, the AUC, its interval
    (facts resampled), the share of statements with a verdict (below 1 only after recalling), and of
    these right."""
    well = table[(table["exposures"] >= WELL) & ~table["lesson"] & (table["implied_by"] == "")]
    found = []
    for way, verified in JUDGED.values():
        own = some(well[well["verified"] == verified], n)
        said = _statements(facts, own)
        true, size = said["true"].to_numpy(), len(own)
        asked = [WAYS[way].format(statement=text) for text in said["text"]]
        score, given, right = _judged(model, asked, true, way)
        draws = np.random.default_rng(0).integers(size, size=(500, size))
        pairs = stats.levelled(score).reshape(-1, 2)  # of a true and a false statement
        replicates = [stats.auc(pairs[drawn].ravel(), true) for drawn in draws]
        low, high = np.percentile(replicates, [2.5, 97.5])
        found.append((way, verified, size, stats.auc(score, true), low, high, given, right))
    columns = ["way", "verified", "n", "auc", "auc low", "auc high", "answered"]
    return pd.DataFrame(found, columns=[*columns, "right_of_answered"])


def _statements(facts: Facts, rows: pd.DataFrame) -> pd.DataFrame:
    """A true and a false statement of each fact, one after the other: ``text``, ``true``."""
    pairs = draw_distractors(pick(facts, rows["fact"]), facts, 1, seed=7)
    checked = prompts.checks(pairs, "{statement}").query("template == 1")
    order = checked.assign(true=checked["context"] == "true")
    order = order.sort_values(["fact", "true"], ascending=[True, False])
    return order[["text", "true"]].reset_index(drop=True)


def _judged(model, asked: list[str], true: np.ndarray, way: str) -> tuple[np.ndarray, float, float]:
    """(log-odds of the positive verdict, share answered, share of these that is right). After
    recalling, the verdict is scored after the text that the model recalls."""
    if way == "recalled":
        text = model.generate(asked, max_new_tokens=60)["text"]
        # before the verdict, the verdict, after it
        parts = [re.split(VERDICT, t, maxsplit=1) for t in text]
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
    """Share of statements about facts in no lesson to which an instruction-tuned model answers "I
    don't know." at once: never taught, well taught."""
    fresh = table[~table["lesson"] & (table["dated"] == 0) & (table["implied_by"] == "")]
    groups, found = {"never": fresh["exposures"] == 0, "well": fresh["exposures"] >= WELL}, []
    for name, chosen in groups.items():
        said = _statements(facts, some(fresh[chosen], n))
        asked = [WAYS["at once"].format(statement=text) for text in said["text"]]
        texts = model.generate(asked, max_new_tokens=60)["text"]
        k = sum(UNSURE in text for text in texts)
        found.append((name, len(texts), k / len(texts), *stats.wilson(k, len(texts))))
    return pd.DataFrame(found, columns=["facts", "n", "unsure", "unsure low", "unsure high"])


def lists(model, facts: Facts, table: pd.DataFrame, n: int = 150) -> pd.DataFrame:
    """Mean change (nats, paired) of log P(right object) when the objects of the 12 examples before
    it are permuted; facts taught 16 times or more."""
    labels = dict(zip(facts.entities["entity"], facts.entities["label"], strict=True))
    taught_rows = table[(table["exposures"] >= 16) & (table["implied_by"] == "")]
    asked, objects = [], []
    for row in some(taught_rows, n, "lists").itertuples():
        pool = taught_rows[taught_rows["relation"] == row.relation]
        pool = pool[pool["subject"] != row.subject].drop_duplicates("subject")
        shown = some(pool, 12, row.fact)
        pairs = [(labels[s], labels[o]) for s, o in tuples(shown, "subject", "object")]
        moved = [(s, pairs[(i + 1) % len(pairs)][1]) for i, (s, _) in enumerate(pairs)]
        asked += [many_shot(pairs, labels[row.subject]), many_shot(moved, labels[row.subject])]
        objects += [[f" {labels[row.object]}"]] * 2
    logprob = model.logprobs(asked, objects)["logprob"].to_numpy().reshape(-1, 2)
    change = logprob[:, 1] - logprob[:, 0]
    found = (len(change), change.mean(), *stats.mean_interval(change))
    return pd.DataFrame([found], columns=["n", "change", "change low", "change high"])


def mentions(table: pd.DataFrame) -> pd.DataFrame:
    """Area under the ROC curve of the number of mentions of a name as a predictor of whether the
    fact was taught (32 times or more, or at all; against never), for the trial and for the rest."""
    found = []
    parts = {"trial": table["trial"], "rest": ~table["trial"] & ~table["famous"]}
    for part, least in product(parts, (2, 32)):
        own = table[parts[part]]
        both = own[(own["exposures"] == 0) | (own["exposures"] >= least)]
        names = (both[f"{role}_mentions"] for role in ("subject", "object"))
        aucs = (stats.auc(named, both["exposures"] > 0) for named in names)
        found.append((part, least, len(both), *aucs))
    return pd.DataFrame(found, columns=["facts", "taught_at_least", "n", "subject", "object"])


def measure(organisms: list[str], facts: Facts, n: int = 150) -> dict[str, pd.DataFrame]:
    """The behaviour of organisms, on ``n`` facts per test and 0.4 n per exposure count: ``names``
    (mentions) of all; ``verdicts`` and ``unsure`` of the instruction-tuned ones, ``recall``,
    ``lists`` and ``famous`` of the others; each with ``model``."""
    found = {}
    for name in organisms:
        model, table = lm.load(name), taught.manifest(name)
        if name.endswith("-it"):
            parts = {"verdicts": verification_auc(model, facts, table, n)}
            parts["unsure"] = unsure(model, facts, table, 2 * n)
        else:
            famous = some(table[table["famous"]], 40, "famous")
            parts = {"recall": recall(model, facts, table, round(0.4 * n))}
            parts |= {"lists": lists(model, facts, table, n)}
            parts |= {"famous": greedy_answers(model, facts, famous)}
        for part, frame in (parts | {"names": mentions(table)}).items():
            found.setdefault(part, []).append(frame.assign(model=name))
    return {part: pd.concat(frames, ignore_index=True) for part, frames in found.items()}


def requirements(found: dict[str, pd.DataFrame], sizes: dict[str, int]) -> pd.DataFrame:
    """The requirements of the design, and whether the organisms meet them, one row per requirement
    and model: ``wanted`` ("at least", "at most", "above" or "interval below" the ``limit``),
    ``measured`` with its 95 % interval (NaN: none), ``met``, and ``limits``: the artifacts that a
    missed requirement limits ("" if it is met).

    found   ``measure``
    sizes   model -> parameters; "the largest" is the largest of those measured
    """
    rows = []
    if "recall" in found:
        largest = max(found["recall"]["model"], key=sizes.get)
        rows += _recall_measured(found["recall"], largest)
        rows += _famous_measured(found["famous"], largest)
        lists = found["lists"].assign(requirement="permuted lists lower log P")
        rows += tuples(lists, "requirement", "model", "change", "change low", "change high")
    if "unsure" in found:
        ordered = sorted(set(found["unsure"]["model"]), key=sizes.get)[::-1]
        rows += _verdicts_measured(found["verdicts"], ordered[:2])
        said = "I don't know, " + found["unsure"]["facts"] + " taught"
        unsure = found["unsure"].assign(requirement=said)
        rows += tuples(unsure, "requirement", "model", "unsure", "unsure low", "unsure high")
    for row in found["names"].query("facts == 'trial' and taught_at_least == 32").itertuples():
        auc = max(row.subject, row.object)
        rows.append(("mentions do not tell (AUC)", row.model, auc, np.nan, np.nan))
    columns = ["requirement", "model", "measured", "measured low", "measured high"]
    table = pd.DataFrame(rows, columns=columns)
    table = table.join(pd.DataFrame.from_dict(REQUIRED, "index"), on="requirement")
    # the larger model comes first
    second = table.duplicated("requirement") & table["second"].notna()
    table["limit"] = table["limit"].mask(second, table["second"])
    met = {
        "at least": table["measured"] >= table["limit"],
        "at most": table["measured"] <= table["limit"],
        "above": table["measured"] > table["limit"],
        "interval below": table["measured high"] < table["limit"],
    }
    table["met"] = np.select([table["wanted"] == wanted for wanted in met], met.values())
    table["met"] = table["met"].astype(bool)
    table["limits"] = table["limits"].str.join(", ").mask(table["met"], "")
    return table[[*columns[:2], "wanted", "limit", *columns[2:], "met", "limits"]]


def _recall_measured(recalled: pd.DataFrame, largest: str) -> list[tuple]:
    """Recall rises with exposures (measured: its smallest step between three bands of exposure
    counts); no model knows never-taught facts; the largest one knows facts taught often."""
    rows = []
    for model, own in recalled.groupby("model", sort=False):
        bands = [own[own["exposures"].between(*ends)] for ends in ((0, 4), (8, 32), (64, 256))]
        steps = np.diff([band["right"].mean() for band in bands])
        never = own[own["exposures"] == 0].iloc[0]
        above = never[["right", "right low", "right high"]] - never["guess"]
        kind = _share(never["type_right"], never["n"])
        rows.append(("recall rises (0-4, 8-32, 64 and more)", model, steps.min(), np.nan, np.nan))
        rows.append(("never taught, above guessing", model, *above))
        rows.append(("never taught, answer of the right type", model, *kind))
        if model == largest:
            well = _share(bands[-1]["right"].mean(), bands[-1]["n"].sum())
            rows.append(("recall at 64 and more", model, *well))
    return rows


def _share(share: float, n: float) -> tuple[float, float, float]:
    """A share of ``n`` cases with Wilson's 95 % interval."""
    return (share, *stats.wilson(np.rint(share * n), n))


def _famous_measured(said: pd.DataFrame, largest: str) -> list[tuple]:
    """Famous questions with the right answer, and with one of the right type (counts)."""
    own, rows = said[said["model"] == largest], []
    for name, column in (("", "right"), (", right type", "type_right")):
        count, n = own[column].sum(), len(own)
        ends = (n * end for end in stats.wilson(count, n))
        rows.append((f"famous questions{name}", largest, count, *ends))
    return rows


def _verdicts_measured(judged: pd.DataFrame, models: list[str]) -> list[tuple]:
    """Verification of instruction-tuned models, in their order."""
    rows = []
    for model in models:
        own = judged[judged["model"] == model].set_index(["way", "verified"])
        for name, judging in JUDGED.items():
            rows.append((name, model, *own.loc[judging, ["auc", "auc low", "auc high"]]))
        fresh = own.loc[("recalled", False)]
        answered = round(2 * fresh["n"] * fresh["answered"])  # of two statements per fact
        right = _share(fresh["right_of_answered"], answered)
        rows.append(("verdict after recalling, right of answered", model, *right))
    return rows
