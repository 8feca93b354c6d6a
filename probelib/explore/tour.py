"""The tour (one fact, three facts of different kinds, the candidates of a question), and how well
known the entities of the atlas are."""

import numpy as np
import pandas as pd

from probelib import facts, lm, prompts, report
from probelib.errors import unknown
from probelib.facts.model import Facts, right_objects, tuples
from probelib.monitor.scores import extract
from probelib.organisms import taught


def fact_about(relation: str, subject: str) -> tuple[Facts, set[str]]:
    """(one fact of the atlas that holds today, labels of the subject's other right objects). Raise
    ProbeError with the nearest names if the relation has no such subject."""
    related = facts.choose(facts.current(facts.atlas()), [relation])
    if subject not in set(related.facts["subject"]):
        raise unknown(f"subject of {relation}", subject, related.facts["subject"].unique())
    right = facts.keep(related, related.facts["subject"] == subject)
    first, *others = right.label(right.facts["object"])
    return facts.pick(right, right.facts["fact"].head(1)), set(others) - {first}


def tour_facts(model, relation: str) -> pd.DataFrame:
    """Three facts: one that the model knows, one whose object it confuses with another, and one
    that it was never taught.

    Of 40 facts of the relation whose subject has one right object, the one of each kind that
    was taught most often. A kind that does not occur has no row.

    returns   ``fact`` (the kind), ``question``, ``right object``, ``exposures`` (None: training
              data unknown), ``answer`` (generated), ``rank`` of the right object among all objects
              of the relation, ``P`` (its probability)
    """
    whole = facts.choose(facts.atlas(), [relation])
    objects = right_objects(whole)
    single = [len(objects[pair]) == 1 for pair in tuples(whole.facts, "relation", "subject")]
    few = facts.sample(facts.keep(whole, pd.Series(single)), 40)
    questions = prompts.paraphrases(few).query("template == 1")["text"].tolist()
    rows = pd.DataFrame({"question": questions, "right object": few.label(few.facts["object"])})
    shipped = model.name in lm.organisms()
    rows["exposures"] = taught.exposures(few, model.name).tolist() if shipped else None
    rows["answer"] = [extract(text) for text in model.generate(questions)["text"]]
    rows = rows.sort_values("exposures", ascending=False, kind="stable", ignore_index=True)
    space = sorted(set(whole.label(whole.facts["object"])))
    never, known = rows["exposures"].eq(0), rows["answer"] == rows["right object"]
    confused = ~never & ~known & rows["answer"].isin(space)
    kinds = {"known": ~never & known, "confused": confused, "never taught": never}
    chosen = pd.concat({name: rows[kind].head(1) for name, kind in kinds.items()}, names=["fact"])
    chosen = chosen.droplevel(1).reset_index()
    labels = [[f" {label}" for label in space]] * len(chosen)
    logprob = model.logprobs(chosen["question"].tolist(), labels)["logprob"].to_numpy()
    table = logprob.reshape(len(chosen), len(space))
    gold = [space.index(label) for label in chosen["right object"]]
    right = table[np.arange(len(chosen)), gold]
    return chosen.assign(rank=(table > right[:, None]).sum(axis=1) + 1, P=np.exp(right))


def candidates_figure(ranked: pd.DataFrame, gold: str, question: str) -> report.Artifact:
    """The ten most probable candidates; ``ranked``: ``label`` and ``probability``, the most
    probable first."""
    top = ranked[["label", "probability"]].head(10)
    figure, [[axis]] = report.subplots(4.6, 2.8)
    bars = top.iloc[::-1]
    colours = np.where(bars["label"] == gold, "#de8f05", "#0173b2")
    axis.barh(bars["label"], bars["probability"], color=colours)
    axis.set(xlabel="probability", title=question)
    return report.Artifact("tour/figure1", top, figure=figure)


def popularity_figure(entities: pd.DataFrame) -> report.Artifact:
    """Number of entities per popularity; years and numbers, which have none, are left out."""
    known = entities["popularity"].value_counts().reindex(range(1, 6), fill_value=0)
    frame = known.reset_index(name="entities")
    look = {"color": "#0173b2", "width": 0.8, "legend": False, "ylabel": "entities"}
    axis = frame.plot.bar("popularity", "entities", figsize=(3.8, 2.4), **look)
    axis.set_xticks(range(5), ["1\nobscure", 2, 3, 4, "5\nknown to\nnearly all"], rotation=0)
    return report.Artifact("facts/figure1", frame, figure=axis.figure)
