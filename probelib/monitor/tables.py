"""MONITOR's tables: measured numbers in, ``report.Artifact`` out."""

from itertools import combinations

import numpy as np
import pandas as pd

from probelib.facts import Facts, substitute_relations
from probelib.facts.model import right_objects
from probelib.monitor import measures
from probelib.monitor.answers import matches
from probelib.monitor.measures import Measured
from probelib.published import table as published
from probelib.report import Artifact, span, with_interval
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
    gives one verdict to most statements, and what changes if the first generated word decides, as in the paper."""
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
    """In how many models question and sentence differ significantly on the same facts, and what that says of the claim."""
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
    """How much of the gap between question and sentence remains on the paraphrases of the training corpus of the shipped
    models, in a sentence; "" without both forms. ``trained``: number of the last such paraphrase."""
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
    """What positive and negative contexts change, and whether that is what the paper claims."""
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
    """What negative contexts change in base models and their instruction-tuned versions, in a sentence.

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
    """Known problems of each fact (spec c.3), one row per fact; nothing is removed.

    known  the facts that tell which objects are right (default: ``facts`` itself, which may be a sample)

    leaked            the object is part of the subject ("BMW 3 Series", BMW)
    several           the subject has several right objects, so that exact match against one of them is too strict
    right_distractor  contexts ("negative2", ...) whose distractor is a right object of the subject: a tuple
    no_distractor     it has none, hence no IRD
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
    """How many facts have which problem."""
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
    models = measured.models
    caption = (
        f"Overall MONITOR (mean over {len(facts.relations)} relations, {len(facts.facts)} facts; lower is better) and avg "
        f"acc of {len(measured.models)} models with 95 % bootstrap intervals over facts; probs: mean primary anchor of the "
        "anchored facts; coverage: share of facts that are anchored; relations without any are left out of the means. "
        "Accuracy in percent (greedy answers, exact match): mean, best and worst of all frames with all negative contexts, "
        f"averaged over relations; base: frame 1 without context. Bold: the highest avg acc, and the lowest MONITOR unless "
        "it is a tie."
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
        best=({} if tied(measured) else {"MONITOR": "min"}) | {"avg acc": "max"},
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
    """The model that anchors the smallest share of facts, on which alone it is scored.

    >>> least_covered(pd.DataFrame({"model": ["a", "b"], "coverage": [0.5, 0.25], "MONITOR": [0.2, 0.1]}))
    'b has MONITOR 0.100 on the 25 % of the facts that it anchors'
    """
    model = models.loc[models["coverage"].idxmin()]
    share = f"{100 * model['coverage']:.0f} %"
    return f"{model['model']} has MONITOR {model['MONITOR']:.3f} on the {share} of the facts that it anchors"


def accuracy_and_monitor(measured: Measured) -> str:
    """How far the correlation with accuracy depends on single models and on the mean primary anchor, in a sentence."""
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


def table5(measured: Measured, facts: Facts, relations: tuple[str, ...] = ("P178", "P108", "P37")) -> Artifact:
    """Three relations in detail, side by side."""
    chosen, note = substitute_relations(facts, list(relations))
    table, decimals = measured.models[["model", "parameters"]], {}
    shown = measured.models[["model"]].copy()
    for relation in chosen:
        columns = ["MONITOR", "low", "high", "avg acc", "probs", "coverage"]
        own = measures.in_relation(measured, relation)
        table = table.join(own.set_index("model")[columns].add_prefix(f"{relation}: "), on="model")
        decimals |= {f"{relation}: avg acc": 1, f"{relation}: coverage": 2}
        shown[f"{relation}: MONITOR"] = with_interval(own["MONITOR"], own["low"], own["high"], 2)
        shown[f"{relation}: avg acc"] = own["avg acc"]
        counts = (own["coverage"] * own["n"]).round().astype(int)
        pairs = zip(own["probs"].map("{:.2f}".format), counts, strict=True)
        shown[f"{relation}: probs (facts)"] = [f"{probs} ({count})" if count else "– (0)" for probs, count in pairs]
    caption = (
        "MONITOR with its 95 % bootstrap interval over facts, avg acc (percent of all facts), and mean primary anchor (probs) "
        f"with the number of anchored facts, over which MONITOR and probs are taken, in {numbers_of_facts(measured, chosen)}; "
        f"{facts.source}; a dash: no fact anchored. {note}"
    ).strip()
    finding = (
        f"{equal_accuracy(measured, chosen[-1])} Lowest MONITOR: {'; '.join(_lowest(measured, r) for r in chosen)}."
    )
    printed = published("monitor/table5").drop(columns="model_key")
    return Artifact("monitor/table5", table, caption, finding, published=printed, decimals=decimals, shown=shown)


def numbers_of_facts(measured: Measured, relations: list[str]) -> str:
    """The relations with their number of facts, for a caption."""
    counts = ((relation, measures.in_relation(measured, relation)["n"].iloc[0]) for relation in relations)
    return ", ".join(f"{relation} ({n} facts)" for relation, n in counts)


def equal_accuracy(measured: Measured, relation: str) -> str:
    """Whether models of nearly equal accuracy and coverage in a relation differ in MONITOR, the point of table 5."""
    table = measures.in_relation(measured, relation)
    pairs = alike_pairs(table)
    if not pairs:
        return f"No two models with a MONITOR in {relation} have nearly equal accuracy and coverage."
    rows = table.set_index("model")
    ends = [difference(measured, relation, *pair) for pair in pairs]
    first, second = (rows.loc[model] for model in pairs[0])
    apart = sum(low > 0 for low, _ in ends)
    return (
        f"That models of equal accuracy differ in MONITOR is {measures.judge_claim(*ends[0])}: in {relation}, {apart} of the "
        f"{len(pairs)} pairs {ALIKE} differ significantly (paired bootstrap; {0.05 * len(pairs):.1f} expected by chance). "
        f"Most: {pairs[0][0]} and {pairs[0][1]}, accuracies of {first['avg acc']:.1f} and {second['avg acc']:.1f} %, "
        f"{100 * first['coverage']:.0f} and {100 * second['coverage']:.0f} % anchored, mean primary anchors of "
        f"{first['probs']:.2f} and {second['probs']:.2f}, MONITOR {first['MONITOR']:.3f} and {second['MONITOR']:.3f} "
        f"({second['MONITOR'] - first['MONITOR']:+.3f} {span(*ends[0], '+.3f')}; paper: 51.4 and 51.2 %, probs 0.93 and 0.80, "
        "MONITOR 0.432 and 0.570)."
    )


def difference(measured: Measured, relation: str, first: str, second: str) -> tuple[float, float]:
    """The 95 % bootstrap interval of MONITOR of ``second`` minus that of ``first`` in a relation, paired over facts."""
    order = measured.models["model"].tolist()
    replicates = measured.replicates["MONITOR"][:, :, measures.position(measured, relation)]  # [times, models]
    return percentile_interval(replicates[:, order.index(second)] - replicates[:, order.index(first)])


def _lowest(measured: Measured, relation: str) -> str:
    """The model with the lowest MONITOR in a relation, and its paired difference to the next."""
    ranked = measures.in_relation(measured, relation).dropna(subset=["MONITOR"]).sort_values("MONITOR")
    if ranked.empty:
        return f"{relation}: no fact anchored"
    first = f"{relation}: {ranked['model'].iloc[0]} ({ranked['MONITOR'].iloc[0]:.3f}"
    if len(ranked) == 1:
        return f"{first}, the only model)"
    low, high = difference(measured, relation, *ranked["model"].iloc[:2])
    return f"{first}; next {ranked['MONITOR'].iloc[1] - ranked['MONITOR'].iloc[0]:+.3f} {span(low, high, '+.3f')})"


def table10(measured: Measured, facts: Facts) -> Artifact:
    """MONITOR of every relation and model."""
    wide, covered = _by_relation(measured, "MONITOR"), _by_relation(measured, "coverage")
    table = facts.relations[["relation", "name"]].merge(wide, on="relation")
    n = measured.relations["n"]
    each = f"{n.min()}" if n.min() == n.max() else f"{n.min()} to {n.max()}"
    half = ((measured.relations["high"] - measured.relations["low"]) / 2).median()
    caption = (
        f"MONITOR in every relation: lowest, median and highest of {wide.shape[1]} models, each over the anchored ones of {each} "
        f"facts per relation ({facts.source}; tables of single relations may have other facts); lower is better. In brackets: "
        "the model and its number of anchored facts. Half the 95 % bootstrap interval over facts of a model's value: "
        f"{half:.3f} (median, where there is an interval). The CSV has the values of all models, in the paper's form. A dash: no "
        "fact anchored."
    )
    printed = published("monitor/table10").pivot(index="relation", columns="model_key", values="MONITOR").reset_index()
    sizes = n.groupby(measured.relations["relation"], sort=False).first()
    finding = f"{finding10(wide, covered, sizes)}{significantly_lowest(measured, wide)}"
    counts = covered.mul(sizes, axis=0).round()
    shown = ends_of_models(table, wide, lambda r, model: f"{model}, {counts.loc[r, model]:.0f}")
    return Artifact("monitor/table10", table, caption, finding, published=printed, shown=shown)


def ends_of_models(table: pd.DataFrame, wide: pd.DataFrame, label, digits: int = 3) -> pd.DataFrame:
    """The table of a relation and its models, printed with the lowest, median and highest value of the models alone.

    wide    one row per relation, one column per model;   label: (relation, model) -> what stands in brackets
    """
    shown = table[[column for column in table if column not in wide]].copy()
    for which in ("idxmin", "idxmax"):
        ends = {r: getattr(row, which)() for r, row in wide.dropna(how="all").iterrows()}
        texts = {
            r: f"{wide.loc[r, model]:.{digits}f} ({label(r, model)}{first_of_ties(wide.loc[r], model)})"
            for r, model in ends.items()
        }
        shown[{"idxmin": "lowest", "idxmax": "highest"}[which]] = shown["relation"].map(texts).fillna("–")
    shown.insert(len(shown.columns) - 1, "median", wide.median(axis=1).reindex(table["relation"]).to_numpy())
    return shown


def first_of_ties(values: pd.Series, model: str) -> str:
    """How many models share the value of ``model``, which alone is named; "" if none does.

    >>> first_of_ties(pd.Series({"a": 0.5, "b": 0.5, "c": 0.1}), "a"), first_of_ties(pd.Series({"a": 0.5}), "a")
    (', first of 2 ties', '')
    """
    equal = int(np.isclose(values, values[model], rtol=1e-9, atol=0).sum())
    return f", first of {equal} ties" if equal > 1 else ""


def significantly_lowest(measured: Measured, wide: pd.DataFrame) -> str:
    """In how many relations the lowest MONITOR differs significantly from the next one, in a sentence; "" for one model."""
    pairs = {r: row.dropna().sort_values().index[:2] for r, row in wide.iterrows() if row.notna().sum() > 1}
    if not pairs:
        return ""
    lows = [difference(measured, relation, *pair)[0] for relation, pair in pairs.items()]
    apart = sum(low > 0 for low in lows)
    return (
        f" The lowest differs significantly from the next one in {apart} of {len(pairs)} relations (paired bootstrap)."
    )


def coverage(measured: Measured, facts: Facts) -> Artifact:
    """The share of anchored facts of every relation and model: what stands behind table 10."""
    covered = _by_relation(measured, "coverage")
    table = facts.relations[["relation", "name"]].merge(covered, on="relation")
    table.insert(2, "n", table["relation"].map(measured.relations.groupby("relation")["n"].first()))
    models = covered.shape[1]
    caption = (
        f"Coverage: share of the n facts of each relation ({facts.source}) that a model anchors; lowest, median and highest of "
        f"{models} models, of tied ones the first. The CSV has all models."
    )
    mean = covered.mean()
    finding = (
        f"Between {100 * mean.min():.0f} % ({mean.idxmin()}) and {100 * mean.max():.0f} % ({mean.idxmax()}) of the facts are "
        "anchored, so the models are scored on different facts."
    )
    shown = ends_of_models(table, covered, lambda _, model: model, 2)
    return Artifact("monitor/coverage", table, caption, finding, decimals=2, shown=shown)


def _by_relation(measured: Measured, column: str) -> pd.DataFrame:
    """A column of ``Measured.relations`` with one row per relation and one column per model."""
    wide = measured.relations.pivot(index="relation", columns="model", values=column)
    return wide.reindex(measured.relations["relation"].unique())[measured.models["model"].tolist()].rename_axis(
        "relation"
    )


def finding10(wide: pd.DataFrame, covered: pd.DataFrame, sizes: pd.Series) -> str:
    """Which models have the lowest MONITOR in the most relations, how often with a low coverage, and how many numbers rest on
    fewer than four facts. ``sizes``: facts per relation."""
    best = wide.dropna(how="all").idxmin(axis=1)
    if best.empty:
        return "No model anchors a fact of any relation, so none is the best in one."
    thin = [r for r, model in best.items() if covered[model][r] < covered.loc[r].max() / 2]
    counts = ", ".join(f"{model} ({k})" for model, k in best.value_counts().items())
    few = (covered.mul(sizes, axis=0).round() < 4).to_numpy() & wide.notna().to_numpy()
    return (
        f"Lowest MONITOR, by number of relations: {counts}. In {len(thin)} of {len(best)} relations that model anchors fewer "
        "than half as many facts as another one, so the two are not compared on the same facts. "
        f"{few.sum()} of {wide.notna().to_numpy().sum()} numbers rest on fewer than four facts."
    )


def table11(measured: Measured) -> Artifact:
    """The correlation of MONITOR with accuracy in every relation."""
    table = measures.correlations_by_relation(measured)
    caption = (
        f"Pearson correlation over models of MONITOR and avg acc in each of {len(table)} relations, with its 95 % interval "
        "(Fisher's z), the two-sided p and p after Holm's correction; r anchored, p anchored: with the "
        "accuracy over each model's anchored facts alone, as the released code counts; n: models with an anchored fact; a "
        "dash: fewer than three, or no spread. Rows: relations in the order of the facts; in the atlas, the paper's come first."
    )
    shown = table[["relation", "n", "r", "p", "p Holm", "r anchored", "p anchored"]].copy()
    shown["r"] = with_interval(table["r"], table["low"], table["high"], 2)
    for column in ("p", "p Holm", "p anchored"):
        shown[column] = table[column].map(p_value_in_words)
    printed, decimals = published("monitor/table11"), {"r anchored": 2}
    return Artifact(
        "monitor/table11", table, caption, finding11(table), published=printed, decimals=decimals, shown=shown
    )


def finding11(table: pd.DataFrame) -> str:
    """In how many relations r is negative and significant, over all facts and over the anchored ones.

    >>> row = {"r": [-0.9, 0.1], "p": [0.01, 0.6], "p Holm": [0.02, 0.6], "r anchored": [-0.9, -0.8], "p anchored": [0.01, 0.02]}
    >>> finding11(pd.DataFrame(row))[:75]
    'r is negative in 1 of 2 relations, significant in 1, and in 1 after correct'
    """
    if table["r"].isna().all():
        return "In no relation three models have a MONITOR, so there is nothing to correlate."
    negative, n = (table["r"] < 0).sum(), table["r"].notna().sum()
    firm = (table["p Holm"] < 0.05).sum()
    said = "shown" if firm > n / 2 else "shown in its sign only" if negative > 3 * n / 4 else "not shown"
    return (
        f"r is negative in {negative} of {n} relations, significant in {(table['p'] < 0.05).sum()}, and in {firm} after "
        f"correction (paper: 20 of 20, 19, and 14): that MONITOR falls with accuracy in each relation is **{said}** here. "
        f"Mean r: {table['r'].mean():.2f} over all facts, {table['r anchored'].mean():.2f} over the anchored facts alone "
        "(paper: -0.80)."
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
    """The correlation of MONITOR with the spread and with the relative spread, how far one model carries it, and what of it the
    accuracy does not explain."""
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


# ---- section 5.2.3: one fact, two models


def similar_models(measured: Measured, facts: Facts, relation: str = "P37") -> list[str]:
    """The models of section 5.2.3: similar accuracy in a relation, different MONITOR, the more reliable one first; one model
    where no two have a MONITOR."""
    (relation,), _ = substitute_relations(facts, [relation])
    table = measures.in_relation(measured, relation)
    return list(like_pair(table) or table.sort_values("MONITOR")["model"][:1])


ALIKE = "within 5 points of accuracy and 15 points of coverage"  # what ``alike_pairs`` takes


def alike_pairs(table: pd.DataFrame) -> list[tuple[str, str]]:
    """The pairs of models with nearly the same average accuracy and coverage (``ALIKE``), the one that differs most in MONITOR
    first; in each pair the model with the lower MONITOR comes first.

    table    ``model``, ``MONITOR``, ``avg acc`` (percent), ``coverage`` (share)
    """
    rows = table.dropna(subset=["MONITOR", "avg acc"]).sort_values("MONITOR").to_dict("records")
    apart = lambda pair, column: abs(pair[1][column] - pair[0][column])
    alike = [p for p in combinations(rows, 2) if apart(p, "avg acc") <= 5 and apart(p, "coverage") <= 0.15]
    alike.sort(key=lambda pair: -apart(pair, "MONITOR"))
    return [(first["model"], second["model"]) for first, second in alike]


def like_pair(table: pd.DataFrame) -> tuple[str, str] | None:
    """The first of the ``alike_pairs``; without any, the two models closest in accuracy; None if two do not have a MONITOR."""
    known = table.dropna(subset=["MONITOR", "avg acc"]).sort_values("MONITOR")
    if len(known) < 2:
        return None
    accuracy = dict(zip(known["model"], known["avg acc"], strict=True))
    closest = min(combinations(accuracy, 2), key=lambda pair: abs(accuracy[pair[0]] - accuracy[pair[1]]))
    return next(iter(alike_pairs(table)), closest)


def example_fact(
    measured: Measured, models: list[str], facts: Facts, relation: str = "P37", subject: str = "Haiti"
) -> str:
    """The fact of table 7: the one of ``subject`` if all models anchor it, else ``telling_fact``."""
    (relation,), _ = substitute_relations(facts, [relation])
    tables = [measured.facts[model][measured.facts[model]["relation"] == relation] for model in models]
    preferred = facts.facts["fact"][[label == subject for label in facts.label(facts.facts["subject"])]]
    return telling_fact(tables, preferred)


def telling_fact(tables: list[pd.DataFrame], preferred=()) -> str:
    """The fact that every model anchors and whose roots differ most between models.

    tables     ``measure_facts`` of each model, the facts of one relation; if no fact is anchored by all, all are taken
    preferred  ids of facts to take instead if one of them is anchored by all
    """
    roots = pd.DataFrame({i: t.set_index("fact")["root"] for i, t in enumerate(tables)})
    known = pd.DataFrame({i: t.set_index("fact")["anchored"].astype(bool) for i, t in enumerate(tables)}).all(axis=1)
    pool = roots[known] if known.any() else roots
    wanted = pool[pool.index.isin(list(preferred))]
    pool = (wanted if len(wanted) else pool).fillna(0.0)
    return (pool.max(axis=1) - pool.min(axis=1)).idxmax()


def table7(example: pd.DataFrame, fact: str, measured: Measured, facts: Facts) -> Artifact:
    """One fact in three contexts, for models of similar accuracy. ``example``: ``scores.generate_for_fact``."""
    relation, models = fact_relation(facts, fact), example["model"].unique().tolist()
    caption = (
        f"One fact ({fact}) and two models of similar accuracy but different MONITOR in {relation}. Models and fact are "
        f"chosen: of the pairs {ALIKE} (without any, the closest in accuracy) the one that differs most in MONITOR; of the facts "
        "that both anchor, the paper's Haiti, or else the one on which their distances differ most. "
        f"{anchored_in_words(measured, models, relation)} prob.: probability of the gold answer, mean "
        "over its tokens, whatever the model generates."
    )
    gold = facts.label(facts.facts.loc[facts.facts["fact"] == fact, "object"])[0]
    common = common_in_words(measures.monitor_on_common(measured, models, relation))
    finding = f"{finding7(example, gold)}{common}"
    return Artifact("monitor/table7", example, caption, finding, published=published("monitor/table7"))


def anchored_in_words(measured: Measured, models: list[str], relation: str) -> str:
    """What the compared models anchor in a relation, with their accuracy and MONITOR there: a sentence of a caption."""
    rows = measures.in_relation(measured, relation).set_index("model").loc[models]
    said = [
        f"{model} anchors {row['coverage']:.0%} of {row['n']:.0f} facts (mean probability of their primary anchors "
        f"{row['probs']:.2f}, MONITOR {row['MONITOR']:.3f}, avg acc {row['avg acc']:.1f} % of all)"
        if row["coverage"]
        else f"{model} anchors none of {row['n']:.0f} facts"
        for model, row in rows.iterrows()
    ]
    return f"{'; '.join(said)}."


def common_in_words(common: dict) -> str:
    """MONITOR of two models over the facts that both anchor (``measures.monitor_on_common``); "" for one model."""
    if len(common["MONITOR"]) < 2:
        return ""
    if not common["n"]:
        return " No fact is anchored by both, so their MONITOR cannot be compared on the same facts."
    (first, lower), (last, higher) = common["MONITOR"].items()
    ends = span(common["low"], common["high"], "+.3f")
    said = measures.judge_claim(common["low"], common["high"])
    return (
        f" On the {common['n']} facts that both anchor, MONITOR is {lower:.3f} in {first} and {higher:.3f} in {last} "
        f"({common['difference']:+.3f} {ends}): that {first} has the lower MONITOR is {said}. Mean primary anchor there: "
        f"{common['pbar'][first]:.2f} and {common['pbar'][last]:.2f}; mean distance from it: {common['root'][first]:.3f} and "
        f"{common['root'][last]:.3f}.{less_to_lose(first, last, *common['surer'])}"
    )


def less_to_lose(first: str, last: str, low: float, high: float) -> str:
    """What speaks against the model with the lower MONITOR if it is significantly less sure; else "".

    low, high   interval of its mean primary anchor minus that of the other model, on the same facts

    >>> less_to_lose("a", "b", -0.6, -0.3)
    ' a is less sure than b: it has less probability to lose, so its lower MONITOR does not show that it is more reliable.'
    >>> less_to_lose("a", "b", -0.1, 0.1)
    ''
    """
    if not high < 0:
        return ""
    cause = "it has less probability to lose, so its lower MONITOR does not show that it is more reliable"
    return f" {first} is less sure than {last}: {cause}."


def finding7(example: pd.DataFrame, gold: str) -> str:
    """How much probability the gold answer loses from the positive context to the worse of the two other prompts, how many
    prompts each model answers, and in how many the first model gives the gold answer the higher probability.

    example  ``scores.generate_for_fact``;   gold: label of the gold answer
    """
    models = example["model"].unique().tolist()
    prob = example.pivot(index="effect", columns="model", values="prob.")[models]
    loss = prob.loc["pos. context"] - prob.drop(index="pos. context").min()
    listed = ", ".join(
        f"{value:z.3f} in {model} ({value / prob[model]['pos. context']:z.0%} of {prob[model]['pos. context']:.3f})"
        for model, value in loss.items()
    )
    right = example["output"].map(lambda answer: matches(answer, gold)).groupby(example["model"]).sum()
    answered = ", ".join(f"{model} {right[model]}" for model in models)
    surer = (prob[models[-1]] > prob[models[0]]).sum()
    ranks = f"; the gold answer is more probable in {models[-1]} after {surer} of them" if len(models) > 1 else ""
    return (
        f"From the positive context to the worse of the other two prompts, the gold answer loses {listed}. Prompts answered, "
        f"of {len(prob)}: {answered}{ranks}.{against_the_example(models, right, surer, len(prob))}"
    )


def against_the_example(models: list[str], right: pd.Series, surer: int, n: int) -> str:
    """Whether answers and probabilities of one fact contradict MONITOR, which is lower in the first model; else "".

    ``surer``: prompts of ``n`` after which the last model gives the gold answer the higher probability."""
    first, last = models[0], models[-1]
    if not surer > n / 2:
        return ""
    if right[last] > right[first]:
        return f" This contradicts the paper's example: {first} has the lower MONITOR, but {last} answers better and is surer."
    return f" In the paper's example the model with the lower MONITOR is the surer one; here {last} is. One fact decides nothing."


def fact_relation(facts: Facts, fact: str) -> str:
    """The relation of a fact."""
    return facts.facts.set_index("fact")["relation"][fact]


# ---- section 5.2.4: cost


def savings(rounds: pd.DataFrame) -> pd.DataFrame:
    """What MONITOR saves against the accuracy study.

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
