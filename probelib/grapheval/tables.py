"""GraphEval's tables: measured numbers -> ``report.Artifact``."""

import numpy as np
import pandas as pd

from probelib import published
from probelib.grapheval.measures import METRICS, mirrored_correct
from probelib.grapheval.prompts import instruction_text
from probelib.grapheval.speed import ALONE, BATCH, SHORT, TOGETHER
from probelib.report import span, with_interval
from probelib.report.legacy import Artifact

# Section 3


def table1(statistics: dict, left_out: pd.DataFrame) -> Artifact:
    """Table 1: the knowledge graph.

    statistics  ``describe.graph_statistics``;  left_out: ``VerbalizedGraph.left_out``
    """
    shown = {name: value for name, value in statistics.items() if not name.endswith(" degree") or "average" in name}
    caption = (
        "The knowledge graph: entities, relations, triples, average degree 2T/E, density T/(E(E-1)), triples whose head "
        "is their tail, and coverage: the share of the triples that can be verbalized and are evaluated."
    )
    decimals = {"average degree": 2, "density": 8, "coverage": 3}
    printed = published.table("grapheval/table1")
    finding = finding1(statistics, left_out)
    return Artifact("grapheval/table1", pd.DataFrame([shown]), caption, finding, published=printed, decimals=decimals)


def finding1(statistics: dict, left_out: pd.DataFrame) -> str:
    """Degrees of the entities, and the triples that are left out."""
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
    caption = (
        f"The {len(relations)} most frequent relations with their statement templates ([X]: head, [Y]: tail) and "
        "numbers of triples."
    )
    finding = f"The {len(relations)} most frequent relations hold {share:.1f} % of the triples."
    return Artifact("grapheval/table5", relations, caption, finding, published=published.table("grapheval/table5"))


def table6(instructions: pd.DataFrame) -> Artifact:
    """Table 6: the instruction that each model is prompted with.

    instructions  ``scores.instructions``
    """
    lengths = instructions["tokens of the instruction"]
    caption = (
        "The prompt of each model ({statement} stands for the statement), what its tokenizer puts before every text, and the "
        "number of tokens of the instruction without the statement."
    )
    finding = (
        f"The instruction takes {' to '.join(map(str, sorted({lengths.min(), lengths.max()})))} tokens; the soft prompt that "
        "replaces it in the paper has 20 virtual tokens."
    )
    return Artifact("grapheval/table6", instructions, caption, finding)


# Section 4


def instruction_table(compared: pd.DataFrame) -> Artifact:
    """Own answers after each instruction (not in the paper).

    compared  ``measures.compare_instructions``
    """
    names = compared["instruction"].unique()
    prompts = "; ".join(f'"{name}" is {instruction_text(name)!r}' for name in names)
    recalled = ' After "recalled", models respond with the object of the fact and then the verdict.' * (
        "recalled" in names
    )
    caption = (
        f"The models' own answers (not in the paper) to n = {compared['n'].max()} statements, {compared['triples'].max()} "
        f"triples and their corruptions, which are false. Prompts: {prompts}.{recalled} answered: share of the "
        "statements that are called true or false; yes: share of these that are called true; right: share of these that are "
        "called so rightly. Correct (Eq. 2): share of the triples that are called true and their corruption false; mirror: "
        "called false and their corruption true, as frequent as Correct for a model that ignores the statement; change: of "
        "Correct against the first prompt on the same triples. In brackets: 95 % intervals (Wilson; of change paired)."
    )
    finding = finding_instruction(compared)
    return Artifact("grapheval/instruction", compared, caption, finding, shown=_shown_instruction(compared))


def _shown_instruction(compared: pd.DataFrame) -> pd.DataFrame:
    """The printed comparison of instructions, sorted by model: every score with its interval."""
    digits = {"answered": 2, "yes": 2, "right": 2, "correct": 3, "mirror": 3, "change": 3}
    texts = {
        name: with_interval(compared[name], compared[f"{name} low"], compared[f"{name} high"], places)
        for name, places in digits.items()
    }
    shown = compared[["model", "instruction"]].assign(**texts).rename(columns={"correct": "Correct"})
    return shown.sort_values("model", key=lambda models: pd.factorize(models)[0], kind="stable")


def finding_instruction(compared: pd.DataFrame) -> str:
    """Whether recalling the fact first changes Correct, or how many of the answers given are right."""
    changed = compared.dropna(subset="change")
    if changed.empty:
        low, high = compared["right"].min(), compared["right"].max()
        return f"Of the answers given, {low:.0%} to {high:.0%} are right." if np.isfinite(low) else ""
    up, down, n = (changed["change low"] > 0).sum(), (changed["change high"] < 0).sum(), len(changed)
    verdict = (
        "so the verdict at once understates what these models know"
        if up == n
        else "so recalling first does not help Correct here"
        if not up
        else "so recalling first helps some of the models"
    )
    largest = changed.loc[changed["change"].abs().idxmax()]
    other = (compared["model"] == largest["model"]) & (compared["instruction"] != largest["instruction"])
    first = compared[other].iloc[0]
    return (
        f"Recalling first raises Correct beyond the paired interval for {up} of {n} models and lowers it for {down}, "
        f"{verdict}. The largest change is that of **{largest['model']}**: {first['correct']:.3f} to {largest['correct']:.3f} "
        f"({largest['change']:+.3f} {span(largest['change low'], largest['change high'], '.3f')}). It answers "
        f"{first['answered']:.0%} of the statements at once and {largest['answered']:.0%} after recalling; of these answers, "
        f"{first['right']:.0%} and {largest['right']:.0%} are right.{_more_right(compared)}{_above_mirror(compared)}"
    )


def _more_right(compared: pd.DataFrame) -> str:
    """For how many models recalling raises the share of right answers among those given, and for how many the intervals are
    disjoint."""
    wide = compared.pivot(index="model", columns="instruction", values=["right", "right low", "right high"])
    before, after = (wide.xs(name, axis=1, level=1) for name in compared["instruction"].unique())
    apart = (after["right low"] > before["right high"]).sum()
    return (
        f" The share of right answers among those given rises for {(after['right'] > before['right']).sum()} of {len(wide)} "
        f"models (intervals disjoint for {apart})."
    )


def _above_mirror(compared: pd.DataFrame) -> str:
    """For how many models Correct lies above its mirror image with disjoint intervals, by instruction."""
    above = (compared["correct low"] > compared["mirror high"]).groupby(compared["instruction"], sort=False).sum()
    counts = " and ".join(f'{n} ("{name}")' for name, n in above.items())
    return f" Correct lies above its mirror image, intervals disjoint, for {counts} of {compared['model'].nunique()} models."


def table2(rows: pd.DataFrame, coverage: float, sizes: pd.Series, trade: pd.DataFrame, instruction: str) -> Artifact:
    """Table 2: outcomes of the labelled statements, and Truthful, Informative, Correct of each model, scored four ways.

    rows   ``measures.score_models``;  sizes: ``scores.model_sizes``;  trade: ``measures.change_with_size``
    """
    table = rows.assign(coverage=coverage, parameters=rows["model"].map(sizes))
    n = int(table[["right", "wrong", "don't know"]].iloc[0].sum())
    caption = (
        f"Truthful, Informative and Correct (Eq. 2) with 95 % intervals, scored by: the judge over the graph ({coverage:.0%} "
        "of its triples; Wilson, without the judge's errors); the same with the released variant of Eq. 2; the model's own "
        "answers to sampled triples; the judge corrected by its errors on n held-out triples (prediction-powered "
        f'inference). right / wrong / don\'t know: the {n} labelled statements per model, instruction "{instruction}"; '
        "unparsed texts count as don't know. n: triples."
    )
    finding = f"{finding_size(table, trade)} {finding2(table)}".strip()
    printed = published.table("grapheval/table2")
    return Artifact("grapheval/table2", table, caption, finding, published=printed, shown=_shown2(table))


def _shown2(table: pd.DataFrame) -> pd.DataFrame:
    """Table 2 for print: outcomes beside the own answers, every score with its interval."""
    counts = table[["right", "wrong", "don't know"]].astype(str).agg(" / ".join, axis=1)
    shown = table[["model", "scored by", "n"]].copy()
    shown.insert(1, "right / wrong / don't know", counts.where(table["scored by"] == "own answers", ""))
    for metric in METRICS:
        shown[metric.capitalize()] = with_interval(table[metric], table[f"{metric} low"], table[f"{metric} high"])
    return shown


def finding_size(table: pd.DataFrame, trade: pd.DataFrame) -> str:
    """The trade-off by size: does the larger model abstain more (Truthful up, Informative down)? By the models' own answers,
    whose intervals include all errors. "" for one size."""
    if trade.empty:
        return ""
    small, large = trade["smallest"].iloc[0], trade["largest"].iloc[0]
    own = trade[trade["scored by"] == "own answers"].set_index("metric")
    low, high = own["low"], own["high"]
    if low["truthful"] > 0 and high["informative"] < 0:
        verdict = "Truthful rises and Informative falls, as in the paper from LLaMA-2-13B to 70B"
    elif high["truthful"] < 0 and low["informative"] > 0:
        verdict = "Truthful falls and Informative rises: the reverse of the paper's step from LLaMA-2-13B to 70B"
    else:
        verdict = "the paper's trade-off (Truthful up, Informative down from LLaMA-2-13B to 70B) is not shown"
    changes = ", ".join(f"{m.capitalize()} {own['change'][m]:+.3f} {span(low[m], high[m], '.3f')}" for m in METRICS)
    unsure = table.groupby("model")["don't know"].first()
    return (
        f"From **{small}** to **{large}**, by own answers to the same {own['n'].iloc[0]} triples, {verdict} ({changes}; "
        f'{unsure[small]} and {unsure[large]} "don\'t know").{_by_judge(trade)}'
    )


def _by_judge(trade: pd.DataFrame) -> str:
    """The same changes by the judge; their intervals lack the judge's errors, so none is given."""
    judged = trade[trade["scored by"] == "judge"].set_index("metric")["change"]
    changes = ", ".join(f"{judged[m]:+.3f}" for m in METRICS)
    return f" The judge over the whole graph gives {changes}, without its own errors."


def finding2(table: pd.DataFrame) -> str:
    """Which model is Correct most often if the judge's errors are counted, and the scores by the released Eq. 2."""
    by = {way: rows.set_index("model") for way, rows in table.groupby("scored by")}
    fair = by["judge + own answers"].dropna(subset="correct")
    judged, released = by["judge"]["correct"], by["judge, released Eq. 2"]["correct"]
    variant = (
        f"The released variant of Eq. 2 gives the judge's Correct as {released.min():.3f} to {released.max():.3f} instead of "
        f"{judged.min():.3f} to {judged.max():.3f}."
    )
    if fair.empty:
        return variant
    best = fair["correct"].idxmax()
    below = [model for model in fair.index if fair["correct high"][model] < fair["correct low"][best]]
    order = f"above that of {', '.join(below)}" if below else "an interval that overlaps with every other model's"
    return (
        f"With the judge's errors counted (judge + own answers) **{best}** is most often Correct: {fair['correct'][best]:.3f} "
        f"{span(fair['correct low'][best], fair['correct high'][best], '.3f')}, {order}. {variant}"
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
    """Sentence on table 2: Correct and its mirror image, which a model that ignores the statement reaches as often.

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


def table4(speeds: pd.DataFrame, n_labels: int) -> Artifact:
    """Table 4: speed of generation and of the judge.

    speeds  ``speed.measure_speeds``;  n_labels: statements that must be answered before the judge is trained
    """
    machines = ", ".join(speeds["machine"].unique())
    short = f" {SHORT}: batches of {BATCH}, with answers cut at 8 tokens, enough for a verdict at once."
    short *= SHORT in set(speeds["method"])
    caption = (
        f"Statements per second on {machines}, tokenization included, per model that answers: median [slowest, fastest] "
        "of three runs after a warm-up. n: statements per run. The judge reads the states of a substitute, the smallest "
        "model of a family, or the model's own. The CSV has peak memory, devices and ratios. The logits baseline costs "
        f"what the judge's states cost; the judge's own layers add less than 1 %.{short}"
    )
    printed = published.table("grapheval/table4")
    finding = finding4(speeds, n_labels)
    return Artifact("grapheval/table4", speeds, caption, finding, published=printed, shown=_shown4(speeds))


def _shown4(speeds: pd.DataFrame) -> pd.DataFrame:
    """Table 4 for print: a row per method, a column per model."""
    texts = speeds.assign(text=with_interval(speeds["facts/s"], speeds["slowest"], speeds["fastest"], 0))
    wide = texts.pivot(index="method", columns="model", values="text").reindex(texts["method"].unique())
    wide.insert(0, "n", texts.groupby("method")["n"].max())
    return wide[["n", *texts["model"].unique()]].fillna("–").reset_index().rename_axis(columns=None)


def finding4(speeds: pd.DataFrame, n_labels: int) -> str:
    """Speed-up of the judge on the substitute, and the number of statements after which the cost of the labels is recovered."""
    rate = speeds.pivot(index="model", columns="method", values="facts/s")
    judge, batches, alone = rate["judge, substitute"], rate[TOGETHER], rate[ALONE]
    saved = 1 / batches - 1 / judge  # seconds per statement
    even = (n_labels / batches / saved).where(saved > 0)
    reads = (
        f"It reads {judge.min():,.0f} to {judge.max():,.0f} statements per second, whatever the model that it judges. "
    )
    paid = "; ".join(f"{model}: {n:,.0f}" for model, n in even.dropna().items()) or "no model"
    return (
        f"The judge is {(judge / batches).min():.1f} to {(judge / batches).max():.1f} times as fast as generation in the same "
        f"batches, {(judge / alone).min():.0f} to {(judge / alone).max():.0f} times as fast as one by one. {reads}Statements "
        f"after which the generation of {n_labels} labels is paid back: {paid}."
    )
