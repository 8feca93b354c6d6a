"""The tables of the notebooks at the entrance, one function each."""

import numpy as np
import pandas as pd

from probelib import stats
from probelib.facts import check
from probelib.facts.model import Facts
from probelib.organisms import lessons, taught
from probelib.report.artifact import Artifact
from probelib.zplke import measures as zplke


def facts_table1(atlas: Facts) -> Artifact:
    """The relations of a collection of facts (``facts.check.counts``)."""
    table = check.counts(atlas)
    largest, onesided = table.loc[table["facts"].idxmax()], table.loc[table["majority"].idxmax()]
    return Artifact(
        "facts/table1",
        table,
        caption=(
            f"The {len(table)} relations of the atlas: {len(atlas.facts):,} facts, {table['former'].sum():,} of them former "
            "values; distinct subjects and objects; share of the most frequent object (majority); facts whose subject contains "
            f"the object's label ({table['object_in_subject'].sum()} in all); number of templates. "
            f"{(table['objects'] >= 100).sum()} relations have 100 or more distinct objects."
        ),
        finding=(
            f"The largest relation is {largest['name']} ({largest['facts']:,} facts). In {onesided['name']}, one object is "
            f"right for {100 * onesided['majority']:.0f} % of the facts: compare accuracies with that baseline."
        ),
        decimals={"majority": 2},
    )


def facts_table2(steps: dict[str, Facts]) -> Artifact:
    """Number of facts and relations after each filter; ``steps``: name of the filter -> the facts that remain."""
    rows = [(name, len(left.facts), len(left.relations)) for name, left in steps.items()]
    frame = pd.DataFrame(rows, columns=["step", "facts", "relations"])
    return Artifact("facts/table2", frame, caption="Facts and relations left after each filter.")


def models_table1(records: dict[str, dict]) -> Artifact:
    """Size and training of the shipped models (``scores.training``)."""
    columns = {"parameters": "parameters", "width": "width", "vocabulary": "vocabulary", "tokens": "tokens"}
    columns |= {"steps": "steps", "minutes": "minutes", "device": "trained on", "loss": "loss", "corpus": "corpus"}
    rows = [
        {"model": name} | {new: made[old] for old, new in columns.items()}
        for name, record in records.items()
        for made in [record | {"minutes": record["seconds"] / 60}]
    ]
    return Artifact(
        "models/table1",
        pd.DataFrame(rows),
        caption=(
            "The shipped models: parameters without embeddings, hidden width, vocabulary, training tokens, steps, minutes and "
            "hardware (nine models shared the GPU), mean loss of the last 20 steps in nats per answer token, digest of the "
            "corpus. Instruction-tuned models (-it) continue from their base model; the model *even* was trained on another "
            "mixture of forms of the same facts."
        ),
    )


def models_table2(answers: pd.DataFrame, n_options: int) -> Artifact:
    """Multiple-choice accuracy per model and wording, for taught and never-taught facts."""
    tests, rows = answers.dropna(subset="wording"), []
    for (model, wording), group in tests.groupby(["model", "wording"], sort=False):
        for kind, part in (("stated", group["exposures"] > 0), ("never stated", group["exposures"] == 0)):
            correct = group.loc[part, "correct"]
            low, high = stats.wilson(correct.sum(), len(correct))
            row = {"model": model, "wording": wording, "facts": kind, "n": len(correct)}
            rows.append(row | {"known": 100 * correct.mean(), "low": 100 * low, "high": 100 * high})
    frame = pd.DataFrame(rows)
    return Artifact(
        "models/table2",
        frame,
        caption=(
            f"Multiple-choice accuracy with up to {n_options} options, in percent, with Wilson's 95 % interval, for taught and "
            f"never-taught facts (n each). Chance is {100 * zplke.chance(tests):.0f} %, and more where a relation has frequent "
            "objects: compare with the rows *never stated*."
        ),
        finding=finding_models2(frame),
        decimals=1,
    )


def finding_models2(table: pd.DataFrame) -> str:
    """Accuracy on taught facts of the decoders: range over models, cost of a held-out question, gain of a list."""
    taught = table[table["facts"] == "stated"].pivot(index="model", columns="wording", values="known")
    if "list" not in taught or taught.dropna().empty:
        return ""
    taught = taught.dropna()
    seen = taught["seen question"]
    return (
        f"With a seen question, accuracy on taught facts ranges from {seen.min():.0f} % ({seen.idxmin()}) to "
        f"{seen.max():.0f} % ({seen.idxmax()}). A held-out question changes it by "
        f"{(taught['held-out question'] - seen).mean():+.1f} points on average, a list by {(taught['list'] - seen).mean():+.1f}."
    )


def models_table3(contexts: pd.DataFrame) -> Artifact:
    """Mean probability of the gold object by context (``scores.contexts``)."""
    return Artifact(
        "models/table3",
        contexts,
        caption=(
            "Mean probability of the gold object after the first question: with a wrong object before the question "
            "(negative1), with no context, and with the gold object before it (positive)."
        ),
        finding=finding_models3(contexts),
    )


def finding_models3(contexts: pd.DataFrame) -> str:
    """Mean change of the probability of the gold object by positive and negative contexts."""
    positive, negative = ((contexts[name] - contexts["none"]).mean() for name in ("positive", "negative1"))
    change = f"A positive context changes the gold object's probability by {positive:+.3f}, a negative one by {negative:+.3f}"
    if max(abs(positive), abs(negative)) <= 0.05:
        return f"{change}: these models hardly use contexts, so MONITOR measures mostly paraphrases in them."
    return f"{change}, on average over models; without context it is {contexts['none'].mean():.3f}."


def models_table4(verdicts: pd.DataFrame, exposures: pd.Series) -> Artifact:
    """Verdicts of instruction-tuned models by exposure count and by whether their training data contain the fact.

    verdicts    ``scores.verdicts``
    exposures   fact -> exposure count
    """
    caption = (
        "Number of verdicts of the instruction-tuned models on true and false statements, by the exposure count of the fact "
        "(stated), and by whether the fact is in the instruction data (in lessons) or not (fresh)."
    )
    if verdicts.empty:
        return Artifact("models/table4", pd.DataFrame({"model": ["none given"]}), caption)
    table = taught.manifest()
    in_lessons = lessons.facts_in_lessons(table)
    bounds, labels = [-1, 0, lessons.KNOWN - 1, 10**6], ["never", f"1-{lessons.KNOWN - 1}", f"{lessons.KNOWN} or more"]
    judged = verdicts.assign(
        stated=pd.cut(verdicts["fact"].map(exposures), bounds, labels=labels),
        facts=np.where(verdicts["fact"].isin(in_lessons), "in lessons", "fresh"),
    )
    keys = ["model", "stated", "facts", "context"]
    counts = judged.groupby([*keys, "said"], observed=True, sort=False).size().unstack(fill_value=0)
    counts = counts.reindex(columns=["yes", "no", "I don't know", "other"], fill_value=0).reset_index()
    return Artifact(
        "models/table4", counts.rename(columns={"context": "statement"}), caption, finding=finding_models4(verdicts)
    )


def finding_models4(verdicts: pd.DataFrame) -> str:
    """Shares of the verdicts per model."""
    models = []
    for model, own in verdicts.groupby("model", sort=False)["said"]:
        shares = own.value_counts(normalize=True).mul(100)
        models.append(f"{model}: " + ", ".join(f"{verdict} {share:.0f}" for verdict, share in shares.items()))
    return f"Verdicts in percent: {'; '.join(models)}."
