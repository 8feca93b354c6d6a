"""MONITOR's tables, except those in ``relations`` and ``example``: measured numbers in, ``report.Artifact`` out."""

import numpy as np
import pandas as pd

from probelib.facts import Facts, substitute_relations
from probelib.facts.model import right_objects
from probelib.monitor import measures
from probelib.monitor.measures import Measured
from probelib.published import table as published
from probelib.report import span, with_interval
from probelib.report.legacy import Artifact
from probelib.stats import in_words, mean_interval, nanmean, p_value_in_words, partial, pearson, percentile_interval

TRAINED = 5  # of the seven paraphrases of a relation in the atlas, those that the shipped models read in training
PERCENT = dict.fromkeys(["base acc", "avg acc", "avg low", "avg high", "max acc", "min acc"], 1)


# ---- section 3: instability


def table1(templates: pd.DataFrame, about: str) -> Artifact:
    """The five templates (``scores.example_templates``). ``about``: the relation, for the caption."""
    caption = f"The five templates, filled with one fact ([X] subject, [Y] object, [Y_] a distractor); {about}"
    return Artifact("monitor/table1", templates, caption, published=published("monitor/table1"))


def table2(judged: pd.DataFrame, sizes: dict[str, int], about: str) -> Artifact:
    """Accuracy by form of the prompt. ``judged``: ``measures.judge_forms``; ``sizes``: model -> parameters."""
    rows = []
    for model, size in sizes.items():
        row = {"model": model, "parameters": size}
        for kind in ("WP", "QA", "FC-pos", "FC-neg"):
            own = judged[(judged["model"] == model) & (judged["kind"] == kind)]
            by_fact = own.groupby("fact")["correct"].mean()  # FC-neg: every fact has as many distractors
            low, high = mean_interval(by_fact)
            row |= {kind: by_fact.mean(), f"{kind} ±": (high - low) / 2}
        rows.append(row)
    table = pd.DataFrame(rows).sort_values("parameters")
    caption = (
        "Accuracy (percent) of the same facts as sentences to complete (WP), as questions (QA), and as true (FC-pos) and false "
        "(FC-neg) statements to judge; means over paraphrases; statements are judged by the more probable one of True and False. "
        f"±: half the 95 % bootstrap interval over facts; a dash: no such templates; {about}"
    )
    printed = published("monitor/table2").drop(columns="model_key")
    shipped = all(model.startswith("atlas-") for model in sizes) and "(atlas" in about
    finding = finding2(table, judged) + (trained_forms(judged) if shipped else "")
    shown = table[["model"]].copy()
    for kind in ("WP", "QA", "FC-pos", "FC-neg"):
        pairs = zip(table[kind], table[f"{kind} ±"], strict=True)
        shown[kind] = ["–" if np.isnan(value) else f"{value:.1f} ± {half:.1f}" for value, half in pairs]
    return Artifact("monitor/table2", table, caption, finding, published=printed, decimals=1, shown=shown)


def finding2(table: pd.DataFrame, judged: pd.DataFrame) -> str:
    """How far the accuracy depends on the form of the prompt, whether statements are judged better than by chance, which model
    gives most statements the same verdict, and what changes if the first generated word decides, as in the paper."""
    balanced = (table["FC-pos"] + table["FC-neg"]) / 2
    if balanced.isna().all():
        return ""
    gap = (table["QA"] - table["WP"]).abs()
    means = judged.groupby(["model", "kind"])["correct"].mean().unstack("kind").reindex(table["model"])
    generated = (means["FC-pos written"] + means["FC-neg written"]).to_numpy() / 2
    one_sided = table.loc[(table["FC-pos"] - table["FC-neg"]).abs().idxmax()]
    return (
        f"Between sentence and question the accuracy differs by up to **{gap.max():.1f} points** "
        f"({table['model'][gap.idxmax()]}; paper: 44.1); {differing_forms(judged)}. Balanced accuracy in fact checking lies "
        f"between {balanced.min():.1f} and {balanced.max():.1f} % (chance: 50{above_chance(judged)}); by the first "
        f"generated word it differs by at most {np.abs(balanced - generated).max():.1f}. The most one-sided judge, "
        f"{one_sided['model']}, is right about "
        f"{one_sided['FC-pos']:.1f} % of the true and {one_sided['FC-neg']:.1f} % of the false statements (paper: "
        "BLOOMZ-1b1, 0.1 and 99.9 %)."
    )


def above_chance(judged: pd.DataFrame) -> str:
    """In how many models the balanced accuracy in fact checking is significantly above chance: the end of a parenthesis."""
    by_fact = judged.groupby(["model", "kind", "fact"])["correct"].mean().unstack("kind")
    if not {"FC-pos", "FC-neg"} <= set(by_fact.columns):
        return ""
    balanced = (by_fact["FC-pos"] + by_fact["FC-neg"]) / 2 - 50
    lows = [mean_interval(own)[0] for _, own in balanced.groupby("model")]
    return f"; significantly above it in {sum(low > 0 for low in lows)} of {len(lows)} models"


def differing_forms(judged: pd.DataFrame) -> str:
    """In how many models question and sentence differ significantly on the same facts, and whether that supports the claim."""
    by_fact = judged.groupby(["model", "kind", "fact"])["correct"].mean().unstack("kind")
    if not {"QA", "WP"} <= set(by_fact.columns):
        return "significance is not tested without both forms"
    ends = [mean_interval(own["QA"] - own["WP"]) for _, own in by_fact.groupby("model")]
    apart = sum(measures.judge_claim(low, high) in measures.DECIDED for low, high in ends)
    said = "is shown here" if apart > len(ends) / 2 else "is not shown in most models here"
    return (
        f"that the form changes the accuracy {said}: the difference is significant in {apart} of {len(ends)} models (paired over "
        "facts)"
    )


def trained_forms(judged: pd.DataFrame, trained: int = TRAINED) -> str:
    """A sentence: the gap between question and sentence on the paraphrases that are in the training corpus of the shipped models;
    "" without both forms. ``trained``: number of the last such paraphrase."""
    forms = judged[judged["kind"].isin(["QA", "WP"])]
    gap = lambda rows: rows.pivot_table(index=["model", "fact"], columns="kind", values="correct")
    every, seen = gap(forms), gap(forms[forms["template"] <= trained]) if len(forms) else forms
    if not {"QA", "WP"} <= set(every.columns):
        return ""
    all_of, of_seen = ((wide["QA"] - wide["WP"]).groupby("model").mean() for wide in (every, seen))
    change = (seen["QA"] - seen["WP"]).groupby("model")
    apart = sum(measures.judge_claim(*mean_interval(own)) in measures.DECIDED for _, own in change)
    return (
        f" On paraphrases 1 to {trained}, which the training corpus has in both forms, the gap (question minus sentence, "
        f"mean over models) is {of_seen.mean():+.1f} points, on all of them {all_of.mean():+.1f}; it remains significant in "
        f"{apart} of {len(of_seen)} models. The two numbers differ by the held-out paraphrases."
    )


def table3(scores: dict[str, pd.DataFrame], prompts: pd.DataFrame, about: str) -> Artifact:
    """Accuracy of the base question without context, with the positive and with the negative contexts.

    scores   model -> ``scores.score_answers`` of the questions ``prompts``
    """
    rows = []
    for model, own in scores.items():
        runs = ("base", "positive", "negative")
        of = {run: measures.verdicts(own, prompts, run).mean(axis=1) * 100 for run in runs}
        row = {"model": model, "parameters": own.attrs["parameters"], "×": of["base"].mean()}
        for run, sign in (("positive", "[Y]"), ("negative", "[Y_]")):
            change = of[run] - of["base"]
            low, high = mean_interval(change)
            row |= {sign: of[run].mean(), f"Δ {sign}": change.mean(), f"Δ {sign} low": low, f"Δ {sign} high": high}
        lost = measures.lost_by_context(own, prompts)
        low, high = mean_interval(lost)
        rows.append(row | {"answered": len(lost), "lost": lost.mean(), "lost low": low, "lost high": high})
    table = pd.DataFrame(rows).sort_values("parameters")
    caption = (
        "Accuracy (percent) of the base question without context (×), with the right answer prepended ([Y]) and with a "
        "wrong one ([Y_], mean over distractors); Δ: difference to ×, with its 95 % bootstrap interval over facts; "
        "answered: facts answered without context; lost: percent of their negative contexts that spoil the answer, with the "
        f"same interval; {about}"
    )
    printed = published("monitor/table3").drop(columns="model_key")
    decimals = dict.fromkeys(table.columns.drop(["model", "parameters", "answered"]), 1)
    shown = table[["model", "×", "[Y]", "Δ [Y]", "[Y_]", "Δ [Y_]", "answered", "lost"]].copy()
    for column in ("Δ [Y]", "Δ [Y_]", "lost"):
        shown[column] = with_interval(table[column], table[f"{column} low"], table[f"{column} high"], 1)
    finding = finding3(table, printed)
    return Artifact("monitor/table3", table, caption, finding, published=printed, decimals=decimals, shown=shown)


def finding3(table: pd.DataFrame, printed: pd.DataFrame) -> str:
    """How positive and negative contexts change the accuracy, and whether that supports the paper's claim."""
    worse, n = table["Δ [Y_]"], len(table)
    helped, lower = (table["Δ [Y] low"] > 0).sum(), (table["Δ [Y_] high"] < 0).sum()
    higher = (table["Δ [Y_] low"] > 0).sum()
    said = "shown here" if lower > n / 2 else "reversed here" if higher > n / 2 else "not shown in most models here"
    return (
        f"The positive context changes the accuracy by {table['Δ [Y]'].min():+.1f} to {table['Δ [Y]'].max():+.1f} points "
        f"(significantly higher in {helped} of {n} models). A negative one changes it by {worse.min():+.1f} to "
        f"{worse.max():+.1f} points (mean {worse.mean():+.1f}; significantly lower in {lower} of {n} models) and spoils "
        f"{table['lost'].mean():.0f} % of the answers given without context. In the paper it lowers the accuracy in all "
        f"{len(printed)} models, by {-printed['neg_delta'].astype(float).mean():.1f} points on average; this is **{said}**."
    )


def effect_of_tuning(table: pd.DataFrame, base_of: dict[str, str]) -> str:
    """A sentence: the effect of negative contexts on base models and on their instruction-tuned versions.

    table     ``table3(...).frame``
    base_of   ``lm.partners.tuned_pairs``
    """
    changes = table.set_index("model")["Δ [Y_]"]
    pairs = {model: base for model, base in base_of.items() if base in changes.index and base != model}
    if not pairs:
        return "No instruction-tuned model is compared with its base here."
    listed = "; ".join(f"{base} {changes[base]:+.1f}, {model} {changes[model]:+.1f}" for model, base in pairs.items())
    return f"Change by a negative context before and after instruction tuning, in points: {listed}."


# ---- table 9: the data


def flaws(facts: Facts, known: Facts | None = None) -> pd.DataFrame:
    """Known problems of each fact, one row per fact; nothing is removed.

    known  facts that determine which objects are right (default: ``facts`` itself, which may be a sample)

    leaked            the object is part of the subject ("BMW 3 Series", BMW)
    several           the subject has several right objects, so that exact match against one of them is too strict
    right_distractor  contexts ("negative2", ...) whose distractor is a right object of the subject: a tuple
    no_distractor     the fact has no distractor, hence no IRD
    frames, distinct  number of frames of its relation; of distinct ones
    """
    right = right_objects(known or facts)
    label = dict(zip(facts.entities["entity"], facts.entities["label"], strict=True))
    offered = facts.distractors.groupby("fact")[["number", "object"]].apply(lambda d: list(d.itertuples(index=False)))
    offered = offered.to_dict() if len(facts.distractors) else {}
    questions = facts.templates[facts.templates["role"] == "question"]
    frames = questions.groupby("relation")["template"].agg(["size", "nunique"])
    rows = []
    for fact, relation, subject, obj in facts.facts[["fact", "relation", "subject", "object"]].itertuples(index=False):
        objects = right.get((relation, subject), set()) | {obj}
        rows.append(
            {
                "fact": fact,
                "relation": relation,
                "leaked": label[obj].casefold() in label[subject].casefold(),
                "several": len(objects) > 1,
                "right_distractor": tuple(f"negative{n}" for n, o in offered.get(fact, ()) if o in objects),
                "no_distractor": not offered.get(fact),
                "frames": int(frames["size"].get(relation, 0)),
                "distinct": int(frames["nunique"].get(relation, 0)),
            }
        )
    return pd.DataFrame(rows)


def table9(facts: Facts, whole: Facts) -> Artifact:
    """The data: facts, frames and known problems of each relation. ``whole``: all facts of the data."""
    found = flaws(facts, known=whole)
    found["hit"] = found["right_distractor"].str.len() > 0
    counts = found.groupby("relation").agg(
        facts=("fact", "size"),
        frames=("frames", "first"),
        distinct=("distinct", "first"),
        leaked=("leaked", "sum"),
        several=("several", "sum"),
        right_distractor=("hit", "sum"),
        no_distractor=("no_distractor", "sum"),
    )
    contexts = facts.distractors.groupby("fact").size().reindex(found["fact"], fill_value=0).to_numpy()
    counts["prompts"] = (found["frames"] + 1 + contexts).groupby(found["relation"]).sum()
    table = facts.relations[["relation", "name", "object_type"]].join(_templates(facts), on="relation")
    table = table.join(counts, on="relation")
    caption = (
        f"The data ({facts.source}): {len(facts.facts):,} facts. prompts: R + 1 + M per fact, those of MONITOR; leaked: the "
        "object is part of the subject; several: subjects with several right objects; right_distractor: facts with a distractor "
        "that is a right object, judged by all facts of the data. The paper counts 13 prompts per fact, although two of its "
        "relations have six frames."
    )
    wide = ["template", "distinct", "no_distractor"]
    printed, shown = published("monitor/table9"), table.drop(columns=wide)
    return Artifact("monitor/table9", table, caption, finding9(counts), published=printed, shown=shown)


def _templates(facts: Facts) -> pd.DataFrame:
    """The first statement and question of each relation: ``template``, ``prompt example``."""
    templates = facts.templates
    first = templates[templates["number"] == 1].pivot(index="relation", columns="role", values="template")
    wanted = {"statement": "template", "question": "prompt example"}
    return first.reindex(columns=list(wanted)).rename(columns=wanted)


def finding9(counts: pd.DataFrame) -> str:
    """The number of facts with each problem."""
    return (
        f"Every relation has at least {counts['frames'].min()} frames (one alone shows no spread over "
        f"paraphrases). {counts['no_distractor'].sum()} facts have no distractor, hence no MONITOR; {counts['leaked'].sum()} "
        f"leak their object, {counts['several'].sum()} have several right objects, {counts['right_distractor'].sum()} a "
        f"distractor that is right. MONITOR needs {counts['prompts'].sum():,} prompts for these {counts['facts'].sum():,} facts "
        "(paper: 210,171 for 16,167)."
    )


# ---- section 5.2.1: main results


def table4(measured: Measured, facts: Facts) -> Artifact:
    """The main results: MONITOR, accuracies and mean primary anchor of every model, and their correlation."""
    models, tie = measured.models, tied(measured)
    best = "; the lowest MONITOR is a tie, hence not bold" if tie else " and the lowest MONITOR"
    caption = (
        f"Overall MONITOR (mean over {len(facts.relations)} relations, {len(facts.facts)} facts; lower is better) and avg "
        f"acc of {len(measured.models)} models with 95 % bootstrap intervals over facts; probs: mean primary anchor of the "
        "anchored facts; coverage: share of facts that are anchored; relations without any are left out of the means. "
        "Accuracy in percent (greedy answers, exact match): mean, best and worst of all frames with all negative contexts, "
        f"averaged over relations; base: frame 1 without context. Bold: the highest avg acc{best}."
    )
    shown = models[["model", "MONITOR", "probs", "coverage", "avg acc", "max acc", "min acc", "base acc"]].copy()
    shown["MONITOR"] = with_interval(models["MONITOR"], models["low"], models["high"])
    shown["avg acc"] = with_interval(models["avg acc"], models["avg low"], models["avg high"], 1)
    return Artifact(
        "monitor/table4",
        models,
        caption,
        finding4(measured),
        published=published("monitor/table4").drop(columns="model_key"),
        best=({} if tie else {"MONITOR": "min"}) | {"avg acc": "max"},
        decimals=PERCENT | {"probs": 2, "coverage": 2},
        shown=shown,
    )


def finding4(measured: Measured) -> str:
    """The model with the lowest MONITOR, its paired difference to the next, and who leads on the facts that all anchor."""
    ranked = measured.models.dropna(subset=["MONITOR"]).sort_values("MONITOR")
    if ranked.empty:
        return "No model anchors a single fact, so none has a MONITOR."
    r, anchored = measures.correlation_with_accuracy(measured), measures.correlation_with_anchored_accuracy(measured)
    table, claims = published("monitor/table4"), published("monitor/claims").set_index("claim")["value"]
    paper = f"{claims['pearson_monitor_avgacc']} in print, {pearson(table['MONITOR'], table['avg_acc'])['r']:.3f} by its table"
    claim = (
        f"That MONITOR falls where accuracy rises is {measures.judge_claim(r['low'], r['high'], -1)} over all facts "
        f"({in_words(r)}, {without_one(measured.models['MONITOR'], measured.models['avg acc'])}; paper: r = {paper}), and "
        f"{measures.judge_claim(anchored['low'], anchored['high'], -1)} if the accuracy counts the anchored facts alone, as the "
        f"released code does ({in_words(anchored)}). Read coverage beside it: "
        f"{least_covered(ranked)}."
    )
    best, *others = ranked.itertuples()
    low, high = lead(measured, best, others[0]) if others else (np.nan, np.nan)
    mark = "**" if low > 0 or not others else ""  # no bold for a tie
    first = (
        f"{mark}{best.model}{mark} has the lowest MONITOR, {best.MONITOR:.3f} {span(best.low, best.high, '.3f')}, on the "
        f"{100 * best.coverage:.0f} % of facts that it anchors"
    )
    if not others:
        return f"{first}. {claim}"
    gap = f"{others[0].MONITOR - best.MONITOR:+.3f} {span(low, high, '+.3f')}"
    verdict = "a significant difference" if low > 0 else "a tie" if np.isfinite(low) else "too few cases to tell"
    return (
        f"{claim} {first}; the next one, {others[0].model} ({100 * others[0].coverage:.0f} % anchored), differs by {gap}, "
        f"{verdict} (paired over the panel, but each model is scored on the facts that it anchors itself)."
        f"{lowest_on_common(measured)}"
    )


def lead(measured: Measured, best, second) -> tuple[float, float]:
    """The 95 % bootstrap interval of overall MONITOR of ``second`` minus that of ``best`` (rows of ``Measured.models``)."""
    replicates = nanmean(measured.replicates["MONITOR"], 2)  # [times, models]
    return percentile_interval(replicates[:, second.Index] - replicates[:, best.Index])


def tied(measured: Measured) -> bool:
    """Whether the lowest overall MONITOR does not differ significantly from the next one."""
    ranked = list(measured.models.dropna(subset=["MONITOR"]).sort_values("MONITOR").itertuples())
    return len(ranked) > 1 and not lead(measured, *ranked[:2])[0] > 0


def lowest_on_common(measured: Measured) -> str:
    """The two models with the lowest MONITOR over the facts that all models anchor, in a sentence; "" without such facts."""
    common = measures.anchored_by_all(measured) if measured.facts else []
    if not len(common):
        return ""
    among = {model: table[table["fact"].isin(common)] for model, table in measured.facts.items()}
    scores = {
        m: nanmean([measures.monitor(measures.counted(rows)) for _, rows in t.groupby("relation")])
        for m, t in among.items()
    }
    listed = ", ".join(f"{model} {value:.3f}" for model, value in sorted(scores.items(), key=lambda item: item[1])[:2])
    return f" Lowest on the {len(common)} facts that all models anchor: {listed}."


def least_covered(models: pd.DataFrame) -> str:
    """The model that anchors the smallest share of facts, and its MONITOR, which is computed over these facts only.

    >>> least_covered(pd.DataFrame({"model": ["a", "b"], "coverage": [0.5, 0.25], "MONITOR": [0.2, 0.1]}))
    'b has MONITOR 0.100 on the 25 % of the facts that it anchors'
    """
    model = models.loc[models["coverage"].idxmin()]
    share = f"{100 * model['coverage']:.0f} %"
    return f"{model['model']} has MONITOR {model['MONITOR']:.3f} on the {share} of the facts that it anchors"


def accuracy_and_monitor(measured: Measured) -> str:
    """A sentence: how far the correlation with accuracy depends on single models and on the mean primary anchor."""
    monitor, accuracy = measured.models["MONITOR"], measured.models["avg acc"]
    r = measures.correlation_with_accuracy(measured)
    printed = published("monitor/table4")
    paper = f"In the paper's table: {in_words(pearson(printed['MONITOR'], printed['avg_acc']))}."
    if monitor.notna().sum() < 4:
        return f"Fewer than four models have a MONITOR: too few for a correlation. {paper}"
    ranks = measured.models[["MONITOR", "avg acc"]].dropna().rank()
    without = measures.leave_one_out(monitor, accuracy)
    given = partial(monitor, accuracy, measured.models["probs"])
    return (
        f"MONITOR and average accuracy: {in_words(r)}; over resampled facts r lies in "
        f"{span(r['facts_low'], r['facts_high'], '.3f')}. By ranks (Spearman): "
        f"{pearson(ranks['MONITOR'], ranks['avg acc'])['r']:.3f}; without one model: {without[0]:.3f} to "
        f"{without[1]:.3f}; given probs: {in_words(given)}. {paper}"
    )


# ---- section 5.2.2: stability


def table6(measured: Measured, facts: Facts, relation: str = "P1412") -> Artifact:
    """MONITOR and the standard deviation of the accuracy over all runs of one relation."""
    (relation,), note = substitute_relations(facts, [relation])
    table, r = measures.instability(measured, relation), measures.correlation_with_spread(measured, relation)
    caption = (
        "MONITOR, base accuracy and the standard deviation of the accuracy over frames and negative contexts (percent, points); "
        "intervals: 95 % bootstrap over facts, that of std corrected for its bias; relative: std over avg acc; "
        f"{about_relation(measured, facts, relation, note)} Correlation of MONITOR with std: {in_words(r)}."
    )
    printed = published("monitor/table6").drop(columns="model_key")
    decimals = PERCENT | dict.fromkeys(["std", "std low", "std high", "std (ddof 0)"], 2)
    relative = measures.correlation_with_spread(measured, relation, relative=True)
    finding = finding6(table, r, relative)
    shown = table[["model", "MONITOR", "base acc", "avg acc", "std", "relative"]].copy()
    shown["MONITOR"] = with_interval(table["MONITOR"], table["low"], table["high"])
    shown["std"] = with_interval(table["std"], table["std low"], table["std high"], 2)
    return Artifact("monitor/table6", table, caption, finding, published=printed, decimals=decimals, shown=shown)


def finding6(table: pd.DataFrame, r: dict[str, float], relative: dict[str, float]) -> str:
    """The correlation of MONITOR with the spread and with the relative spread, its range if one model is left out, and the
    partial correlation given accuracy."""
    if np.isnan(r["r"]):
        return "Too few models have a MONITOR here to correlate it with the spread of accuracy."
    printed = published("monitor/table6")
    given = partial(table["MONITOR"], table["std"], table["avg acc"])
    return (
        f"That a lower MONITOR means a smaller spread of accuracy is {measures.judge_claim(r['low'], r['high'])}: "
        f"{in_words(r)} ({without_one(table['MONITOR'], table['std'])}); in the paper's table: "
        f"{in_words(pearson(printed['MONITOR'], printed['std']))}. An accuracy near 0 cannot vary much (avg acc and std: "
        f"{in_words(pearson(table['avg acc'], table['std']))}). **Relative to the accuracy** it is "
        f"{measures.judge_claim(relative['low'], relative['high'])}: {in_words(relative)}; with avg acc held fixed, MONITOR "
        f"and std: {in_words(given)}."
    )


def without_one(x: pd.Series, y: pd.Series) -> str:
    """The range of r if each model is left out in turn.

    >>> without_one(pd.Series([1.0, 2, 3, 4]), pd.Series([1.0, 2, 3, 4]))
    'without one model 1.00 to 1.00'
    """
    low, high = measures.leave_one_out(x, y)
    return f"without one model {low:.2f} to {high:.2f}" if np.isfinite(low) else "too few models to leave one out"


def about_relation(measured: Measured, facts: Facts, relation: str, note: str = "") -> str:
    """A relation with its name and number of facts, for a caption."""
    name = facts.relations.set_index("relation")["name"][relation]
    n = measures.in_relation(measured, relation)["n"].iloc[0]
    return f"relation {relation} ({name}), {n} facts ({facts.source}). {note}".strip()


def correlations(
    measured: Measured, common: Measured, alone: Measured, facts: Facts, relation: str = "P1412"
) -> Artifact:
    """The correlations that the paper argues with, ours beside the printed ones.

    common  ``measures.measure_common``;   alone, facts: facts of the relation that table 6 shows
    """
    (relation,), note = substitute_relations(facts, [relation])
    printed4, printed6 = published("monitor/table4"), published("monitor/table6")
    paper4, paper6 = pearson(printed4["MONITOR"], printed4["avg_acc"]), pearson(printed6["MONITOR"], printed6["std"])
    accuracy, spread_of = measures.correlation_with_accuracy, measures.correlation_with_spread
    none = {"r": np.nan, "p": np.nan}
    released = measures.correlation_with_anchored_accuracy(measured)
    rows = [
        ("table 4", "MONITOR, avg acc", accuracy(measured), paper4, -1),
        ("table 4", "MONITOR, avg acc of the anchored facts", released, paper4, -1),
        ("table 4", "both over the facts that all models anchor", accuracy(common), none, -1),
        ("table 6", "MONITOR, std", spread_of(alone, relation), paper6, 1),
        ("table 6", "MONITOR, std over avg acc", spread_of(alone, relation, relative=True), none, 1),
    ]
    table = pd.DataFrame([
        {"in": where, "between": between, **own, "paper's r": paper["r"], "paper's p": paper["p"]}
        | {"claim": measures.judge_claim(own["low"], own["high"], sign)}
        for where, between, own, paper, sign in rows
    ])  # fmt: skip
    caption = (
        "Pearson correlations over models with their 95 % interval by Fisher's z, which decides the claim (negative in table "
        "4, positive in table 6). The CSV has a second interval, over resampled facts. "
        f"Table 6 is about {about_relation(alone, facts, relation, note)} The paper's values are recomputed from its printed "
        "tables; a dash: it has no such correlation."
    )
    said = "; ".join(f"{between}: {claim}" for between, claim in zip(table["between"], table["claim"], strict=True))
    shown = table[["in", "between", "r", "p", "n", "paper's r", "paper's p", "claim"]].copy()
    shown["r"] = with_interval(table["r"], table["low"], table["high"])
    for column in ("p", "paper's p"):
        shown[column] = table[column].map(p_value_in_words)
    said = f"The sign that the paper claims, by correlation. {said}."
    return Artifact("monitor/correlations", table, caption, said, shown=shown)


# ---- section 5.2.4: cost


def savings(rounds: pd.DataFrame) -> pd.DataFrame:
    """The cost of MONITOR compared with that of the accuracy study.

    rounds   ``way``, ``round``, ``what`` ("MONITOR" or "accuracy"), and one column per kind of cost
    returns  one row per way and kind of cost: medians over the rounds, ``saved`` (accuracy / MONITOR), and the smallest and
             largest saving of a round
    """
    tidy = rounds.melt(["way", "round", "what"], var_name="cost", value_name="value")
    wide = tidy.pivot(index=["way", "cost", "round"], columns="what", values="value")
    wide["saved"] = wide["accuracy"] / wide["MONITOR"]
    groups = wide.groupby(["way", "cost"], sort=False)
    ends = groups["saved"].agg(["min", "max"]).rename(columns={"min": "saved, least", "max": "saved, most"})
    order = rounds.columns.drop(["way", "round", "what"]).tolist()
    table = groups.median().join(ends).reset_index()
    table = table.sort_values(["way", "cost"], key=lambda c: c.map(order.index) if c.name == "cost" else c)
    columns = ["way", "cost", "MONITOR", "accuracy", "saved", "saved, least", "saved, most"]
    return table[columns].reset_index(drop=True)


def table8(rounds: pd.DataFrame, model, facts: Facts) -> Artifact:
    """The cost of MONITOR and of the accuracy study. ``rounds``: ``scores.time_both`` of the model on these facts."""
    table = savings(rounds)
    relation = facts.relations["relation"].iloc[0]
    caption = (
        f"Cost of MONITOR and of the accuracy study on the same {len(facts.facts)} facts of {relation}, {model.name} on one "
        f"{model.device.type} ({model.dtype}), nothing cached, warm-up excluded: medians of {rounds['round'].nunique()} rounds; "
        "saved: accuracy / MONITOR of each round, its median over rounds, in brackets the smallest and the largest."
    )
    shown, printed = table[["way", "cost", "MONITOR", "accuracy", "saved"]].copy(), published("monitor/table8")
    for column in ("MONITOR", "accuracy"):
        shown[column] = [f"{value:,.0f}" if value >= 10 else f"{value:.3f}" for value in table[column]]
    shown["saved"] = with_interval(table["saved"], table["saved, least"], table["saved, most"], 2)
    return Artifact("monitor/table8", table, caption, finding8(table, printed), published=printed, shown=shown)


def finding8(table: pd.DataFrame, printed: pd.DataFrame) -> str:
    """How many times MONITOR is cheaper than the accuracy study."""
    rows = table.set_index(["way", "cost"])
    saved, ends = rows["saved"], rows[["saved, least", "saved, most"]]
    seconds = span(*ends.loc[("generated", "device seconds")], ".2f")
    return (
        f"MONITOR needs {saved['generated', 'prompts']:.2f} times fewer prompts and "
        f"**{saved['generated', 'device seconds']:.2f} times** {seconds} fewer seconds if everything is generated (paper: "
        f"{printed['monitor_saved_x'].iloc[0]:.2f} times fewer GPU hours), {saved['teacher-forced', 'device seconds']:.2f} times "
        f"fewer seconds if both are teacher-forced ({saved['teacher-forced', 'forwarded tokens']:.2f} times fewer tokens, as "
        "prompts with a common prefix share its cost)."
    )
