"""What did a change do to what a model knows? Two or more models on the same facts, in pairs.

The first model is the reference, the others are what became of it. Every fact is a multiple choice
after its first question, *right* if its object is more probable than every wrong option (ZP-LKE).
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import prompts, report, stats, store
from probelib.facts import Facts
from probelib.report import Artifact, cases, check, interval
from probelib.zplke import measures as zplke

POWER = 2.8  # standard errors between 0 and a difference seen in 80 % of studies (5 %, two-sided)
FEWEST = 30  # facts; fewer give no verdict
ROWS = 20  # relations in the figure and in the printed table: those that changed most
LOG_P = "change of log P"  # nats


def choices(models: dict, asked: Facts, folder: str | Path, seed: int = 0) -> pd.DataFrame:
    """One row per model and fact: ``right``, ``logprob`` of the object (nats), ``said`` (the most
    probable option), and ``relation``, ``subject``, ``object`` by label.

    models   display name -> loaded model;  asked: facts with distractors
    """
    questions = prompts.paraphrases(asked).query("template == 1")
    gold = asked.facts.set_index("fact")["object"]
    relation = asked.facts["relation"].map(asked.relations.set_index("relation")["name"])
    labels = {side: asked.label(asked.facts[side]) for side in ("subject", "object")}
    named = asked.facts[["fact"]].assign(relation=relation, **labels)
    found = []
    for name, model in models.items():
        scores = store.score(model, questions, prompts.options(asked, seed), folder)
        own = scores[scores["candidate"] == scores["fact"].map(gold)][["fact", "logprob"]]
        chosen = zplke.choices(scores, gold).rename(columns={"correct": "right"})
        chosen["said"] = asked.label(chosen["predicted"])
        own = own.merge(chosen[["fact", "right", "said"]], on="fact")
        found.append(named.merge(own, on="fact").assign(model=name))
    return pd.concat(found, ignore_index=True)


def facts_known(found: pd.DataFrame) -> Artifact:
    """The facts of ``choices``, the right ones first: what the model finds most probable."""
    table = found.assign(probability=np.exp(found["logprob"])).rename(columns={"said": "says"})
    return Artifact("explore/facts", table.sort_values("right", ascending=False, kind="stable"))


def pairs(found: pd.DataFrame) -> pd.DataFrame:
    """``choices`` of the first model beside those of each other: ``before`` and ``after`` (right),
    ``said before``, ``said after``, ``change`` (of accuracy, -1, 0 or 1), ``change of log P``
    (nats)."""
    first = found["model"] == found["model"].iloc[0]
    key, ends = ["fact", "relation", "subject", "object"], (" after", " before")
    both = found[~first].merge(found[first].drop(columns="model"), on=key, suffixes=ends)
    both[LOG_P] = both["logprob after"] - both["logprob before"]
    both = both.rename(columns={f"right{end}": end.strip() for end in ends})
    return both.assign(change=both["after"].astype(int) - both["before"].astype(int))


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
        row, errors = row | dict(100 * own[["before", "after"]].mean()), {}
        for column, change in (("difference", 100 * own["change"]), (LOG_P, own[LOG_P])):
            low, high, errors[column] = clustered(change, own["relation"], seed)
            row |= {column: change.mean(), f"{column} low": low, f"{column} high": high}
        row |= stats.mcnemar(own["before"], own["after"])
        row["smallest"] = POWER * errors["difference"]
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
        row |= dict(100 * own[["before", "after", "change"]].mean())
        row |= stats.mcnemar(own["before"], own["after"])
        rows.append(row | interval(LOG_P, own[LOG_P], partial(stats.mean_interval, seed=seed)))
    table = pd.DataFrame(rows).drop(columns="n").rename(columns={"change": "difference"})
    table["p, Holm"] = table.groupby("model", sort=False)["p"].transform(stats.holm)
    order = {"ascending": [True, False], "key": np.abs, "ignore_index": True}
    table = table.sort_values(["p", "difference"], **order)
    return Artifact("compare/table2", table, shown=table.query("lost + gained > 0")[:ROWS])


def figure1(relations: pd.DataFrame) -> Artifact:
    """The change of log P in the relations where it is largest in any model. ``relations``: the
    rows of ``table2``."""
    size = relations[LOG_P].abs().groupby(relations["relation"], sort=False).max()
    drawn = relations.set_index("relation").loc[size.nlargest(ROWS).index].reset_index()
    panels = {"": report.marks(drawn, LOG_P)}
    figure = report.dot_rows(panels, "relation", "model", f"{LOG_P} (nats)", level=0)
    return Artifact("compare/figure1", drawn, figure=figure)


def facts_table(both: pd.DataFrame) -> Artifact:
    """The facts lost and gained by name, the largest changes of log-probability first."""
    moved = both.query("change != 0").sort_values(LOG_P, key=np.abs, ascending=False, kind="stable")
    moved["fact is"] = np.where(moved["change"] < 0, "lost", "gained")
    columns = ["model", "fact is", "relation", "subject", "object", "said before", "said after"]
    return Artifact("compare/facts", moved[[*columns, LOG_P]])
