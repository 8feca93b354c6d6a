"""What did a change do to what a model knows? Two or more models on the same facts, in pairs.

The first model is the reference. The others are what became of it: in 4 bits, tuned, edited,
merged, a later checkpoint. Every fact is a multiple choice after its first question, and *right* if
its object is more probable than every wrong option.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import prompts, report, stats, store
from probelib.facts import Facts
from probelib.report import Artifact, cases, check, interval

TIE = 1e-5  # nats; an object that is ahead by less is not ahead
POWER = 2.8  # standard errors between 0 and a difference seen in 80 % of studies (5 %, two-sided)
FEWEST = 30  # facts; fewer give no verdict
ROWS = 20  # relations in the figure and in the printed table: those that changed most
ENDS = {"change of log P": "value", "change of log P low": "low", "change of log P high": "high"}


def choices(models: dict, asked: Facts, folder: str | Path, seed: int = 0) -> pd.DataFrame:
    """One row per model and fact: ``right``, ``logprob`` of the object (nats), ``said`` (the most
    probable option), and ``relation``, ``subject``, ``object`` by label.

    models   display name -> loaded model;  asked: facts with distractors
    """
    questions = prompts.paraphrases(asked)
    questions = questions[questions["template"] == 1]
    options = prompts.options(asked, seed)
    relations = asked.relations.set_index("relation")["name"]
    named = asked.facts[["fact"]].assign(relation=asked.facts["relation"].map(relations))
    named["subject"] = asked.label(asked.facts["subject"])
    gold = prompts.gold(asked).rename(columns={"candidate": "gold", "label": "object"})
    named = named.merge(gold, on="fact")
    found = []
    for name, model in models.items():
        scores = store.score(model, questions, options, folder).merge(named[["fact", "gold"]])
        is_gold = scores["candidate"] == scores["gold"]
        own = scores[is_gold].set_index("fact")["logprob"]
        others = scores[~is_gold].groupby("fact")["logprob"].max()
        said = scores.loc[scores.groupby("fact")["logprob"].idxmax()].set_index("fact")["label"]
        of_fact = pd.DataFrame(
            {"logprob": own, "right": own > others[own.index] + TIE, "said": said}
        )
        found.append(named.merge(of_fact, left_on="fact", right_index=True).assign(model=name))
    return pd.concat(found, ignore_index=True)


def pairs(found: pd.DataFrame) -> pd.DataFrame:
    """``choices`` of the first model beside those of each other: ``before`` and ``after`` (right),
    ``said before``, ``said after``, ``change`` (of accuracy, -1, 0 or 1), ``change of log P``
    (nats)."""
    first, *others = found["model"].unique()
    key = ["fact", "relation", "subject", "object"]
    reference = found[found["model"] == first].drop(columns=["model", "gold"])
    both = found[found["model"].isin(others)].drop(columns="gold")
    both = both.merge(reference, on=key, suffixes=("", " before"), validate="many_to_one")
    both = both.rename(columns={"right": "after", "right before": "before", "said": "said after"})
    both["change"] = both["after"].astype(int) - both["before"].astype(int)
    return both.assign(**{"change of log P": both["logprob"] - both["logprob before"]})


def clustered(values: pd.Series, relation: pd.Series, seed: int = 0) -> tuple[float, float, float]:
    """(low, high, standard error) of a mean by a bootstrap that draws whole relations: facts of one
    relation change together. NaN for fewer than ``FEWEST`` facts or one relation."""
    sums = values.groupby(relation).agg(["sum", "size"]).to_numpy(float)  # [relations, 2]
    if len(values) < FEWEST or len(sums) < 2:
        return np.nan, np.nan, np.nan
    drawn = stats.resample_counts(len(sums), 2000, seed) @ sums  # [2000, 2]
    replicates = drawn[:, 0] / drawn[:, 1]
    return *stats.percentile_interval(replicates), replicates.std()


def table1(both: pd.DataFrame, seed: int = 0) -> Artifact:
    """Each model against the first: accuracies and their paired difference (percent points),
    McNemar's exact test, the smallest difference that these facts show in four of five studies, and
    the facts that would show one point."""
    rows = []
    for name, own in both.groupby("model", sort=False):
        row = {"model": name, "facts": len(own), "relations": own["relation"].nunique()}
        row |= {"before": 100 * own["before"].mean(), "after": 100 * own["after"].mean()}
        values = {"difference": 100 * own["change"], "change of log P": own["change of log P"]}
        errors = []
        for column, change in values.items():
            low, high, error = clustered(change, own["relation"], seed)
            row |= {column: change.mean(), f"{column} low": low, f"{column} high": high}
            errors.append(error)
        row |= stats.mcnemar(own["before"], own["after"]) | {"smallest": POWER * errors[0]}
        rows.append(row | {"facts for 1 point": np.ceil(len(own) * row["smallest"] ** 2)})
    table = pd.DataFrame(rows).drop(columns="n")
    found = check("compare/table1", lower=cases(table, "difference", n="facts"))
    return Artifact("compare/table1", table, found)


def table2(both: pd.DataFrame, seed: int = 0) -> Artifact:
    """Per model and relation, the smallest p first: ``facts``, accuracies and their paired
    ``difference`` (points), ``change of log P`` (nats) with its interval over facts, facts ``lost``
    and ``gained``, ``p`` (McNemar, exact), ``p, Holm`` over a model's relations. The first rows are
    printed."""
    rows = []
    for (name, relation), own in both.groupby(["model", "relation"], sort=False):
        row = {"model": name, "relation": relation, "facts": len(own)}
        row |= {"before": 100 * own["before"].mean(), "after": 100 * own["after"].mean()}
        row |= {"difference": row["after"] - row["before"]}
        row |= stats.mcnemar(own["before"], own["after"])
        moved, resampled = own["change of log P"], partial(stats.mean_interval, seed=seed)
        rows.append(row | interval(moved.name, moved, resampled))
    table = pd.DataFrame(rows).drop(columns="n")
    table["p, Holm"] = table.groupby("model", sort=False)["p"].transform(stats.holm)
    order = table["difference"].abs().sort_values(ascending=False, kind="stable").index
    table = table.loc[order].sort_values("p", kind="stable", ignore_index=True)
    return Artifact("compare/table2", table, shown=table.head(ROWS))


def figure1(relations: pd.DataFrame) -> Artifact:
    """The change of log P in the relations where it is largest in any model. ``relations``: the
    rows of ``table2``."""
    size = relations["change of log P"].abs().groupby(relations["relation"], sort=False).max()
    drawn = size.sort_values(ascending=False, kind="stable").index[:ROWS]
    drawn = relations.set_index("relation").loc[drawn].reset_index()
    panels = {"": drawn.rename(columns=ENDS)}
    figure = report.dot_rows(panels, "relation", "model", "change of log P (nats)", level=0)
    return Artifact("compare/figure1", drawn, figure=figure)


def facts_table(both: pd.DataFrame) -> Artifact:
    """The facts lost and gained by name, the largest changes of log-probability first."""
    changed = both[both["change"] != 0].copy()
    changed["fact is"] = np.where(changed["change"] < 0, "lost", "gained")
    size = changed["change of log P"].abs().sort_values(ascending=False, kind="stable")
    columns = ["model", "fact is", "relation", "subject", "object", "said before", "said after"]
    return Artifact("compare/facts", changed.loc[size.index, [*columns, "change of log P"]])
