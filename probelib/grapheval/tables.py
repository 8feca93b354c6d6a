"""GraphEval's tables: measured numbers -> ``report.Artifact``."""

import numpy as np
import pandas as pd

from probelib import published
from probelib.grapheval.measures import METRICS, mirrored_correct
from probelib.grapheval.speed import ALONE, TOGETHER
from probelib.report import Artifact, span

# Section 3


def table1(statistics: dict, left_out: pd.DataFrame) -> Artifact:
    """Table 1: the knowledge graph.

    statistics  ``describe.graph_statistics``;  left_out: ``VerbalizedGraph.left_out``
    """
    shown = {name: value for name, value in statistics.items() if not name.endswith(" degree") or "average" in name}
    return Artifact(
        "grapheval/table1",
        pd.DataFrame([shown]),
        caption=(
            "The knowledge graph: entities, relations, triples, average degree 2T/E, density T/(E(E-1)), triples "
            "whose head is their tail, and coverage: the share of the triples that can be verbalized and are "
            "evaluated."
        ),
        finding=finding1(statistics, left_out),
        published=published.table("grapheval/table1"),
        decimals={"average degree": 2, "density": 8, "coverage": 3},
    )


def finding1(statistics: dict, left_out: pd.DataFrame) -> str:
    """Degrees of the entities, and which triples are left out."""
    degrees = (
        f"The median entity is in {statistics['median degree']:.0f} of {statistics['triples']:,} triples, the most "
        f"frequent one in {statistics['highest degree']:,}."
    )
    if left_out.empty:
        return f"{degrees} Every triple is evaluated."
    counts = left_out.groupby("reason")["triples"].sum()
    return f"{degrees} Left out: {'; '.join(f'{n:,} triples ({reason})' for reason, n in counts.items())}."


def table5(relations: pd.DataFrame, n_triples: int) -> Artifact:
    """Table 5: the most frequent relations and their templates.

    relations  ``describe.most_frequent``;  n_triples: of the graph
    """
    share = 100 * relations["count"].sum() / n_triples
    return Artifact(
        "grapheval/table5",
        relations,
        caption=(
            f"The {len(relations)} most frequent relations with their statement templates ([X]: head, [Y]: tail) and "
            "numbers of triples."
        ),
        finding=f"The {len(relations)} most frequent relations hold {share:.1f} % of the triples.",
        published=published.table("grapheval/table5"),
    )


def table6(instructions: pd.DataFrame) -> Artifact:
    """Table 6: the instruction that each model is prompted with.

    instructions  ``scores.instructions``
    """
    lengths = instructions["tokens of the instruction"]
    return Artifact(
        "grapheval/table6",
        instructions,
        caption=(
            "The prompt of each model ({statement} stands for the statement), what its tokenizer puts before every text, and the "
            "number of tokens of the instruction without the statement."
        ),
        finding=(
            f"The instruction takes {lengths.min()} to {lengths.max()} tokens; the soft prompt that replaces it in "
            "the paper has 20 virtual tokens."
        ),
    )


# Section 4


def table2(rows: pd.DataFrame, coverage: float) -> Artifact:
    """Table 2: outcomes of the labelled statements, and Truthful, Informative, Correct of each model, scored four ways.

    rows  ``measures.score_models``
    """
    table = rows.assign(coverage=coverage)
    n = int(table[["right", "wrong", "don't know"]].iloc[0].sum())
    return Artifact(
        "grapheval/table2",
        table,
        caption=(
            f"Outcomes of the {n} labelled statements per model (right, wrong, don't know; unparsed texts count as "
            "don't know), and Truthful, Informative, Correct (Eq. 2) with 95 % intervals, scored by: the judge over "
            "the whole graph (Wilson; the judge's errors are not in the interval); the same with the released variant "
            "of Eq. 2; the model's own answers to the sampled triples; the judge corrected by its errors on n "
            "held-out triples (prediction-powered inference). coverage: share of the graph's triples that were "
            "evaluated."
        ),
        finding=finding2(table),
        published=published.table("grapheval/table2"),
        decimals=2,
    )


def finding2(table: pd.DataFrame) -> str:
    """Which model is Correct most often, by Eq. 2 as defined and as released."""
    by = {way: rows.set_index("model") for way, rows in table.groupby("scored by")}
    judged, released = by["judge"], by["judge, released Eq. 2"]
    best, other = judged["correct"].idxmax(), released["correct"].idxmax()
    return (
        f"By the judge **{best}** is most often Correct: {judged.loc[best, 'correct']:.3f} "
        f"{span(*judged.loc[best, ['correct low', 'correct high']], '.3f')} with Eq. 2 as defined; with the released "
        f"variant it is **{other}** ({released.loc[other, 'correct']:.3f})."
    )


def judge_against_answers(table: pd.DataFrame) -> str:
    """Sentence on table 2: how often the judged scores lie outside the intervals of the models' own answers."""
    by = {way: rows.set_index("model") for way, rows in table.groupby("scored by", sort=False)}
    judged, own = by["judge"], by["own answers"]
    outside = {m: int(((judged[m] < own[f"{m} low"]) | (judged[m] > own[f"{m} high"])).sum()) for m in METRICS}
    counts = ", ".join(f"{n} ({metric.capitalize()})" for metric, n in outside.items())
    return (
        f"The judged scores lie outside the 95 % interval of the model's own answers for {counts} of {len(judged)} "
        f"models. Mean width of the intervals of Correct: {_width(own)} from own answers, "
        f"{_width(by['judge + own answers'])} from judge and held-out answers together."
    )


def _width(rows: pd.DataFrame) -> str:
    width = (rows["correct high"] - rows["correct low"]).mean()
    return f"{width:.3f}" if np.isfinite(width) else "undefined"


def mirror_image(table: pd.DataFrame, judged: pd.DataFrame) -> str:
    """Sentence on table 2: Correct beside its mirror image, which a model reaches as often if it ignores the statement.

    judged  ``whole_graph.graph_answers``
    """
    correct = table[table["scored by"] == "judge"].set_index("model")
    mirror = {model: mirrored_correct(rows) for model, rows in judged.groupby("model", sort=False)}
    pairs = "; ".join(f"{model} {correct.loc[model, 'correct']:.3f} and {share:.3f}" for model, share in mirror.items())
    above = [model for model, share in mirror.items() if correct.loc[model, "correct low"] > share]
    return (
        f"Correct against its mirror image (triple called false, corruption true): {pairs}. Above it beyond the "
        f"interval: {', '.join(above) or 'none'}."
    )


# Appendix A


def table3(quality: pd.DataFrame) -> Artifact:
    """Table 3: judges on states of one model (rows) for the answers of another (columns).

    quality  ``quality.held_out_quality``
    """
    behind_instruction = quality[quality["prompt"] == ""].drop(columns=["prompt", "seed"])
    groups = behind_instruction.groupby(["states of", "answers of"], sort=False)
    means = groups.mean().reset_index()
    scores = ["precision", "recall", "recall low", "recall high", "f1", "macro_f1"]
    wide = means.pivot(index="states of", columns="answers of", values=scores).swaplevel(axis=1)
    order = list(dict.fromkeys(means["answers of"]))
    table = wide[[(model, score) for model in order for score in scores]].reindex(
        list(dict.fromkeys(means["states of"]))
    )
    table.columns = [f"{model}: {score}" for model, score in table.columns]
    return Artifact(
        "grapheval/table3",
        table.reset_index(),
        caption=(
            "Judges on the states of one model (rows) for the answers of another (columns), with the instruction: weighted "
            "precision, recall (= accuracy, with its 95 % Wilson interval), F1, and macro F1 (every outcome counts the "
            f"same); mean of {groups.size().max()} judges, {means['n'].max():.0f} held-out statements."
        ),
        finding=finding3(means),
        published=published.table("grapheval/table3"),
        best={f"{model}: recall": "max" for model in order},
    )


def finding3(table: pd.DataFrame) -> str:
    """How much the accuracy depends on the model that is read."""
    if table["states of"].nunique() == 1:
        return ""
    by_answers = table.groupby("answers of")["recall"]
    gap, half = (by_answers.max() - by_answers.min()).max(), ((table["recall high"] - table["recall low"]) / 2).mean()
    return (
        f"Accuracy on one model's answers changes by up to {gap:.3f} with the model whose states are read; half the "
        f"width of one interval is {half:.3f}."
    )


def table4(speeds: pd.DataFrame, n_labels: int) -> Artifact:
    """Table 4: speed of generation and of the judge.

    speeds  ``speed.measure_speeds``;  n_labels: statements that must be answered before the judge is trained
    """
    digits = {"facts/s": 1, "slowest": 1, "fastest": 1, "peak MB": 0}
    return Artifact(
        "grapheval/table4",
        speeds,
        caption=(
            "Statements per second, tokenization included: median, slowest and fastest of three runs after a warm-up; "
            "peak memory, weights included (on a CPU: of the whole process); devices; and how many times as fast as "
            "generation in the same batches and one by one. The logits baseline costs what the judge's states cost; "
            "the judge's own layers add less than 1 %."
        ),
        finding=finding4(speeds, n_labels),
        published=published.table("grapheval/table4"),
        decimals=digits | {"by generation in batches": 2, "by generation one by one": 1},
    )


def finding4(speeds: pd.DataFrame, n_labels: int) -> str:
    """Speed-up of the judge on the substitute, and after how many statements the labels are paid back."""
    rate = speeds.pivot(index="model", columns="method", values="facts/s")
    judge, batches, alone = rate["judge, substitute"], rate[TOGETHER], rate[ALONE]
    saved = 1 / batches - 1 / judge  # seconds per statement
    even = (n_labels / batches / saved).where(saved > 0)
    paid = "; ".join(f"{model}: {n:,.0f}" for model, n in even.dropna().items()) or "no model"
    return (
        f"The judge is {(judge / batches).min():.1f} to {(judge / batches).max():.1f} times as fast as generation in "
        f"the same batches, {(judge / alone).min():.0f} to {(judge / alone).max():.0f} times as fast as one by one. "
        f"Statements after which the generation of {n_labels} labels is paid back: {paid}."
    )
