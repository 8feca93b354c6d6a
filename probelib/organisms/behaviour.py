"""Do the organisms behave as designed? One function per question; each returns what was measured
with its interval, by the name of the requirement in ``requirements.yaml``."""

import re
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
# requirement -> prompt for a verdict, the two verdicts, whether the facts were verified in training
JUDGED = {
    "verdict at once (Yes, No), verified facts (AUC)": (INSTRUCTION, (YES, NO), True),
    "verdict at once (True, False), verified facts (AUC)": (CHECK, ("True", "False"), True),
    "verdict after recalling, fresh facts (AUC)": (RECALL, (YES, NO), False),
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
    found["right low"], found["right high"] = stats.wilson(groups["right"].sum(), found["n"])
    return found.join(groups[["type_right", "guess"]].mean()).reset_index()


def verdicts(model, facts: Facts, table: pd.DataFrame, n: int = 150) -> pd.DataFrame:
    """How well an instruction-tuned model's verdicts tell true from false statements of facts
    taught ``WELL`` times or more and in no lesson: AUC, interval (facts resampled) for each of
    ``JUDGED``; and the share of the verdicts after recalling that is right."""
    well = table[(table["exposures"] >= WELL) & ~table["lesson"] & (table["implied_by"] == "")]
    found, given = [], {}
    for name, (prompt, words, verified) in JUDGED.items():
        said = _statements(facts, some(well[well["verified"] == verified], n))
        true, asked = said["true"].to_numpy(), [prompt.format(statement=t) for t in said["text"]]
        if prompt == RECALL:  # the verdict is scored after the text that the model recalls
            text = model.generate(asked, max_new_tokens=60)["text"]
            # before the verdict, the verdict, after it
            parts = [re.split(VERDICT, t, maxsplit=1) for t in text]
            asked = [f"{a} {part[0].strip()}".strip() for a, part in zip(asked, parts, strict=True)]
            given = {i: part[1] for i, part in enumerate(parts) if part[1:2] in ([YES], [NO])}
        both = [[f" {word}" for word in words]] * len(asked)
        logprob = model.logprobs(asked, both)["logprob"].to_numpy().reshape(-1, 2)
        score = logprob[:, 0] - logprob[:, 1]
        pairs = stats.levelled(score).reshape(-1, 2)  # of a true and a false statement
        draws = np.random.default_rng(0).integers(len(pairs), size=(500, len(pairs)))
        replicates = [stats.auc(pairs[drawn].ravel(), true) for drawn in draws]
        found.append((name, stats.auc(score, true), *np.percentile(replicates, [2.5, 97.5])))
    right = [(verdict == YES) == true[i] for i, verdict in given.items()]
    return _measured(*found, ("verdict after recalling, right of answered", *_share(right)))


def _measured(*rows: tuple) -> pd.DataFrame:
    """Rows (requirement, what was measured, its 95 % interval) as a table."""
    return pd.DataFrame(rows, columns=["requirement", "measured", "measured low", "measured high"])


def _share(right: list[bool]) -> tuple[float, float, float]:
    """The share of cases that is right, with Wilson's 95 % interval."""
    return float(np.mean(right)), *stats.wilson(sum(right), len(right))


def _statements(facts: Facts, rows: pd.DataFrame) -> pd.DataFrame:
    """A true and a false statement of each fact, one after the other: ``text``, ``true``."""
    pairs = draw_distractors(pick(facts, rows["fact"]), facts, 1, seed=7)
    checked = prompts.checks(pairs, "{statement}").query("template == 1")
    order = checked.assign(true=checked["context"] == "true")
    order = order.sort_values(["fact", "true"], ascending=[True, False])
    return order[["text", "true"]].reset_index(drop=True)


def unsure(model, facts: Facts, table: pd.DataFrame, n: int = 300) -> pd.DataFrame:
    """Share of statements about facts in no lesson to which an instruction-tuned model answers "I
    don't know." at once: never taught, well taught."""
    fresh = table[~table["lesson"] & (table["dated"] == 0) & (table["implied_by"] == "")]
    groups, found = {"never": fresh["exposures"] == 0, "well": fresh["exposures"] >= WELL}, []
    for name, chosen in groups.items():
        said = _statements(facts, some(fresh[chosen], n))
        asked = [INSTRUCTION.format(statement=text) for text in said["text"]]
        texts = model.generate(asked, max_new_tokens=60)["text"]
        found.append((f"I don't know, {name} taught", *_share([UNSURE in text for text in texts])))
    return _measured(*found)


def lists(model, facts: Facts, table: pd.DataFrame, n: int = 150) -> pd.DataFrame:
    """Mean change (nats, paired) of log P(right object) when the objects of the 12 examples before
    it are permuted; facts taught 16 times or more."""
    labels = dict(tuples(facts.entities, "entity", "label"))
    often = table[(table["exposures"] >= 16) & (table["implied_by"] == "")]
    asked, objects = [], []
    for row in some(often, n, "lists").itertuples():
        pool = often[(often["relation"] == row.relation) & (often["subject"] != row.subject)]
        shown = some(pool.drop_duplicates("subject"), 12, row.fact)
        pairs = [(labels[s], labels[o]) for s, o in tuples(shown, "subject", "object")]
        moved = [(s, pairs[(i + 1) % len(pairs)][1]) for i, (s, _) in enumerate(pairs)]
        asked += [many_shot(pairs, labels[row.subject]), many_shot(moved, labels[row.subject])]
        objects += [[f" {labels[row.object]}"]] * 2
    logprob = model.logprobs(asked, objects)["logprob"].to_numpy().reshape(-1, 2)
    change = logprob[:, 1] - logprob[:, 0]
    return _measured(("permuted lists to lower log P", change.mean(), *stats.mean_interval(change)))


def famous(model, facts: Facts, table: pd.DataFrame, n: int = 40) -> pd.DataFrame:
    """Shares of famous questions with the right answer, and with one of the right type."""
    said = greedy_answers(model, facts, some(table[table["famous"]], n, "famous"))
    kinds = {"famous questions": "right", "famous questions, right type": "type_right"}
    return _measured(*((name, *_share(said[column])) for name, column in kinds.items()))


def measure(organisms: list[str], facts: Facts, n: int = 150) -> dict[str, pd.DataFrame]:
    """The behaviour of organisms, on ``n`` facts per test and 0.4 n per exposure count: ``recall``,
    ``famous``, ``lists`` of all but instruction-tuned ones, ``verdicts`` and ``unsure`` of these;
    each with ``model``."""
    found = {"recall": [], "famous": [], "lists": [], "verdicts": [], "unsure": []}
    for name in organisms:
        model, table = lm.load(name), taught.manifest(name)
        if name.endswith("-it"):
            parts = {"verdicts": verdicts(model, facts, table, n)}
            parts |= {"unsure": unsure(model, facts, table, 2 * n)}
        else:
            parts = {"recall": recall(model, facts, table, round(0.4 * n))}
            parts |= {"famous": famous(model, facts, table), "lists": lists(model, facts, table, n)}
        for part, frame in parts.items():
            found[part].append(frame.assign(model=name))
    return {part: pd.concat(own, ignore_index=True) for part, own in found.items() if own}


def requirements(found: dict[str, pd.DataFrame], sizes: dict[str, int]) -> pd.DataFrame:
    """The requirements of the design, and whether the organisms meet them, one row per requirement
    and model: ``wanted`` ("at least", "at most", "above" or "interval below" the ``limit``),
    ``measured`` with its 95 % interval (NaN: none), ``met``, and ``limits``: the artifacts that a
    missed requirement limits ("" if it is met).

    found   ``measure``
    sizes   model -> parameters; "the largest" is the largest of those measured
    """
    found = dict(found)
    if "recall" in found:
        found["recall"] = _recall_measured(found["recall"])
    if "verdicts" in found:  # the largest first
        size = found["verdicts"]["model"].map(sizes)
        found["verdicts"] = found["verdicts"].loc[(-size).sort_values(kind="stable").index]
    table = pd.concat(found.values(), ignore_index=True)
    table = table.join(pd.DataFrame.from_dict(REQUIRED, "index"), on="requirement")
    by_size = table["model"].map(sizes).groupby(table["requirement"])
    place = by_size.rank(ascending=False, method="first")  # 1: the largest
    table["limit"] = table["limit"].mask(place.eq(2) & table["second"].notna(), table["second"])
    table = table[~(place > table["largest"])]
    met = {
        "at least": table["measured"] >= table["limit"],
        "at most": table["measured"] <= table["limit"],
        "above": table["measured"] > table["limit"],
        "interval below": table["measured high"] < table["limit"],
    }
    met = np.select([table["wanted"] == wanted for wanted in met], met.values()).astype(bool)
    table = table.assign(met=met, limits=table["limits"].str.join(", ").mask(met, ""))
    columns = ["requirement", "model", "wanted", "limit", "measured", "measured low"]
    return table[[*columns, "measured high", "met", "limits"]].reset_index(drop=True)


def _recall_measured(recalled: pd.DataFrame) -> pd.DataFrame:
    """Recall rises with exposures (measured: its smallest step between three bands of exposure
    counts); no model knows never-taught facts; the largest one knows facts taught often."""
    found = []
    for model, own in recalled.groupby("model", sort=False):
        bands = [own[own["exposures"].between(*ends)] for ends in ((0, 4), (8, 32), (64, 256))]
        shares = [band["right"].mean() for band in bands]
        never, n = own[own["exposures"] == 0].iloc[0], bands[-1]["n"].sum()
        above = never[["right", "right low", "right high"]] - never["guess"]
        typed, often = np.rint(never["type_right"] * never["n"]), np.rint(shares[-1] * n)
        rows = _measured(
            ("recall rises (0-4, 8-32, 64 and more)", np.diff(shares).min(), np.nan, np.nan),
            ("never taught, above guessing", *above),
            (
                "answers of the right type where never taught",
                never["type_right"],
                *stats.wilson(typed, never["n"]),
            ),
            ("recall at 64 and more", shares[-1], *stats.wilson(often, n)),
        )
        found.append(rows.assign(model=model))
    return pd.concat(found)
