"""The tables of the introductory notebooks, one function each."""

import pandas as pd

from probelib import stats
from probelib.facts import check
from probelib.facts.model import Facts
from probelib.organisms import behaviour
from probelib.overview.scores import by_family
from probelib.report.legacy import Artifact
from probelib.report.shown import side_by_side, span
from probelib.zplke import measures as zplke

UNSURE = {"at once": "at once", "recalled": "after recalling"}  # way of prompting -> in words
SIZES = {  # kind of requirement -> sentence on its number of cases (``behaviour.requirements``)
    "never taught": "Never taught: n = {n} facts per model, so one fact moves a share by {share:.2f}.",
    "verdicts": "Verdicts (AUC): n = {n} facts per model, each with a true and a false statement; right of answered counts "
    "the statements with a verdict.",
    "unsure": "I don't know: n = {n} statements per model.",
}


def facts_table1(atlas: Facts) -> Artifact:
    """The relations of a collection of facts (``facts.check.counts``)."""
    table = check.counts(atlas)
    largest, *tied = table.loc[table["facts"] == table["facts"].max(), "name"]
    alike, onesided = "".join(f", as many as {name}" for name in tied), table.loc[table["majority"].idxmax()]
    return Artifact(
        "facts/table1",
        table,
        caption=(
            f"The {len(table)} relations of the atlas: {len(atlas.facts):,} facts, {table['former'].sum():,} of them former "
            "values; distinct subjects and objects; share of the most frequent object (majority); facts whose subject "
            f"contains the object's label ({table['object_in_subject'].sum()} in all); number of templates. "
            f"{(table['objects'] >= 100).sum()} relations have 100 or more distinct objects."
        ),
        finding=(
            f"The largest relation is {largest} ({table['facts'].max():,} facts{alike}). In {onesided['name']}, one object is "
            f"right for {100 * onesided['majority']:.0f} % of the facts: compare accuracies with that baseline."
        ),
        decimals={"majority": 2},
    )


def facts_table2(steps: dict[str, Facts]) -> Artifact:
    """Number of facts and relations after each filter; ``steps``: name of the filter -> the facts that remain."""
    rows = [(name, len(left.facts), len(left.relations)) for name, left in steps.items()]
    frame = pd.DataFrame(rows, columns=["step", "facts", "relations"])
    lost = -frame["facts"].diff().fillna(0)
    first, last, most = frame.iloc[0], frame.iloc[-1], frame.loc[lost.idxmax()]
    return Artifact(
        "facts/table2",
        frame,
        caption="Facts and relations left after each filter; every filter is applied to what the one before it left.",
        finding=(
            f"Of {first['facts']:,} facts of {first['relations']} relations, {last['facts']:,} of {last['relations']} are "
            f"left. The filter *{most['step']}* removes most: {lost.max():,.0f} facts."
        ),
    )


def models_table1(records: dict[str, dict]) -> Artifact:
    """Size and training of the shipped models (``scores.training``)."""
    columns = [
        "parameters",
        "width",
        "vocabulary",
        "tokens",
        "steps",
        "minutes",
        "trained on",
        "loss",
        "corpus",
        "digest",
    ]
    renamed = {"device": "trained on", "reads": "corpus", "corpus": "digest"}
    frame = pd.DataFrame.from_dict(records, "index").rename(columns=renamed)
    frame = frame.assign(minutes=frame["seconds"] / 60)[columns].rename_axis("model").reset_index()
    return Artifact(
        "models/table1",
        frame,
        caption=(
            "The shipped models: parameters without embeddings, hidden width, vocabulary, training tokens, steps, minutes "
            "(several trainings shared the processor), hardware, mean loss of the last 20 steps in nats per answer token, the "
            "corpus read (the CSV has its digest). Instruction-tuned models (-it) continue from their base model. Losses are "
            "comparable between base decoders of one vocabulary only: t5, bert and -it predict other tokens or read other "
            "texts."
        ),
        decimals={"minutes": 0, "loss": 2},
        shown=frame.drop(columns="digest"),
    )


def models_table2(answers: pd.DataFrame, n_options: int) -> Artifact:
    """Multiple-choice accuracy per model and kind of prompt, for taught and never-taught facts."""
    tests, rows = answers.dropna(subset="wording"), []
    for (model, wording), group in tests.groupby(["model", "wording"], sort=False):
        for kind, part in (("stated", group["exposures"] > 0), ("never stated", group["exposures"] == 0)):
            correct = group.loc[part, "correct"]
            low, high = stats.wilson(correct.sum(), len(correct))
            row = {"model": model, "wording": wording, "facts": kind, "n": len(correct)}
            rows.append(row | {"known": 100 * correct.mean(), "low": 100 * low, "high": 100 * high})
    frame = pd.DataFrame(rows)
    sizes = " and ".join(f"n = {n} facts {kind}" for kind, n in frame.groupby("facts", sort=False)["n"].max().items())
    return Artifact(
        "models/table2",
        frame,
        caption=(
            f"Multiple-choice accuracy with up to {n_options} options, in percent, with Wilson's 95 % interval ({sizes} in "
            "the training corpus). seen question: the first one; held-out question: one that no training text used; list: the "
            "bare subject after a list of pairs; –: models that are not prompted so (an encoder-decoder has no list, a masked "
            f"model the first question only). Chance is {100 * zplke.chance(tests):.0f} %, and more where a relation has "
            "frequent objects: compare with the columns *never stated*."
        ),
        finding=finding_models2(frame),
        decimals=1,
        shown=side_by_side(frame, ["model"], ["wording", "facts"], {"known": ("low", "high")}, 1),
    )


def finding_models2(table: pd.DataFrame) -> str:
    """Accuracy of the decoders on taught facts: range over models, change by a held-out question, change by a list."""
    stated = table[table["facts"] == "stated"]
    taught = stated.pivot(index="model", columns="wording", values="known")
    if "list" not in taught or taught.dropna().empty:
        return ""
    taught = taught.dropna().reindex(stated["model"].unique()).dropna()
    seen, rows = taught["seen question"], stated[stated["wording"] == "seen question"].set_index("model")
    ends = [
        f"{seen[name]:.0f} % {span(*rows.loc[name, ['low', 'high']], '.0f')} ({name})"
        for name in (seen.idxmin(), seen.idxmax())
    ]
    changes = [taught[wording] - seen for wording in ("held-out question", "list")]
    lower = [f"{change.mean():+.1f} points on average (lower in {(change < 0).sum()})" for change in changes]
    return (
        f"With a seen question, accuracy on taught facts of the {len(seen)} decoders, {by_family(taught.index)}, ranges from "
        f"{ends[0]} to {ends[1]}. A held-out question changes it by {lower[0]}, a list by {lower[1]}."
    )


def models_table3(contexts: pd.DataFrame) -> Artifact:
    """Mean probability of the gold object by context (``scores.contexts``)."""
    return Artifact(
        "models/table3",
        contexts,
        caption=(
            f"Mean probability of the gold object after the first question, over n = {contexts['n'].max()} facts: with a "
            "wrong object before the question (negative1), with no context, and with the gold object before it (positive), "
            "with 95 % bootstrap intervals over facts; change: from no context, on the same facts, with its paired interval."
        ),
        finding=finding_models3(contexts),
        shown=side_by_side(
            contexts, ["model"], ["context"], {"probability": ("low", "high"), "change": ("change_low", "change_high")}
        ).drop(columns="none: change", errors="ignore"),
    )


def finding_models3(contexts: pd.DataFrame) -> str:
    """Mean change of the probability of the gold object by positive and negative contexts, and in how many models its interval
    excludes 0 on the expected side."""
    positive, negative = (contexts[contexts["context"] == name] for name in ("positive", "negative1"))
    raised, lowered, n = (positive["change_low"] > 0).sum(), (negative["change_high"] < 0).sum(), len(positive)
    changes = [rows["change"].mean() for rows in (positive, negative)]
    change = (
        f"A positive context changes the gold object's probability by {changes[0]:+.3f} (significantly up in {raised} of {n} "
        f"models), a negative one by {changes[1]:+.3f} (significantly down in {lowered})"
    )
    if max(map(abs, changes)) <= 0.05:
        return f"{change}: these models hardly use contexts, so MONITOR measures mostly paraphrases in them."
    without = contexts.loc[contexts["context"] == "none", "probability"].mean()
    return f"{change}, on average over models; without context it is {without:.3f}."


def models_table4(verdicts: pd.DataFrame) -> Artifact:
    """How well verdicts separate true and false statements; ``verdicts``: ``behaviour.verification_auc`` with ``model``."""
    return Artifact(
        "models/table4",
        verdicts,
        caption=(
            f"Verification of facts taught {behaviour.WELL} times or more that stand in no lesson, on one true and one false "
            "statement per fact (n facts): area under the ROC curve of log P(yes) - log P(no), with its 95 % bootstrap "
            "interval. verified: the corpus also holds the fact as a verification. true or false: the corpus's own form; "
            'at once: "Yes" or "No" right after the statement; recalled: after the object that the model generates first '
            "(both of instruction-tuned models). The CSV also has the share with a verdict and how much of it is right."
        ),
        finding=finding_models4(verdicts),
        shown=side_by_side(
            verdicts.assign(kind=verdicts["verified"].map({True: "verified", False: "never verified"})),
            ["model", "way", "n"],
            ["kind"],
            {"auc": ("low", "high")},
            2,
        ),
    )


def finding_models4(verdicts: pd.DataFrame) -> str:
    """The best model on facts verified in training and on others."""
    rows = []
    for verified, name in ((True, "verified in training"), (False, "never verified")):
        own = verdicts[verdicts["verified"] == verified]
        best = own.loc[own["auc"].idxmax()]
        rows.append(
            f"on facts {name} the highest AUC is {best['auc']:.2f} ({best['model']}, {best['way']}, 95 % CI {best['low']:.2f} "
            f"to {best['high']:.2f}, n = {best['n']} facts)"
        )
    return f"{rows[0][0].upper()}{rows[0][1:]}; {rows[1]}."


def models_table5(unsure: pd.DataFrame) -> Artifact:
    """How often instruction-tuned models answer "I don't know"; ``unsure``: ``behaviour.unsure`` with ``model``."""
    shares = unsure.pivot(index=["way", "model"], columns="facts", values="unsure")
    finding = " ".join(
        f'"I don\'t know" {UNSURE[way]}, of never-taught and of well-taught facts: '
        + "; ".join(f"{model} {row['never']:.0%}, {row['well']:.0%}" for (_, model), row in rows.iterrows())
        + "."
        for way, rows in shares.groupby(level="way", sort=False)
    )
    columns = {"never": "never-taught facts", "well": f"facts taught {behaviour.WELL}+"}
    return Artifact(
        "models/table5",
        unsure,
        caption=(
            "Share of statements answered with \"I don't know.\" (Wilson's 95 % interval), about facts in no lesson: never "
            f"taught, or taught {behaviour.WELL} times or more; n statements, half of them true."
        ),
        finding=finding,
        shown=side_by_side(unsure, ["model", "way", "n"], ["facts"], {"unsure": ("low", "high")}, 2).rename(
            columns=columns
        ),
    )


def models_table6(lists: pd.DataFrame) -> Artifact:
    """Effect of permuted examples on the gold object's probability; ``lists``: ``behaviour.lists`` with ``model``."""
    return Artifact(
        "models/table6",
        lists,
        caption=(
            "Mean change of log P(gold object), in nats, when the objects of the twelve examples before the subject are "
            "permuted; 95 % interval over n facts taught 16 times or more (paired)."
        ),
        finding=finding_models6(lists),
    )


def finding_models6(lists: pd.DataFrame) -> str:
    """In how many models permuted examples lower log P significantly, with the range of estimates and half-widths."""
    lower, half = int((lists["high"] < 0).sum()), (lists["high"] - lists["low"]) / 2
    n = " to ".join(str(n) for n in sorted({lists["n"].min(), lists["n"].max()}))
    smaller = "" if lower else " Effects smaller than these half-widths are not excluded."
    return (
        "Permuted examples lower the log-probability of the gold object significantly (95 % interval below 0) in "
        f"{lower} of {len(lists)} models: estimates from {lists['change'].min():+.2f} to {lists['change'].max():+.2f} nats, "
        f"half-widths of the intervals from {half.min():.2f} to {half.max():.2f}, n = {n} facts per "
        f"model.{smaller}"
    )


def models_table7(required: pd.DataFrame) -> Artifact:
    """The requirements of the design for the organisms, and the measured values; ``required``: ``behaviour.requirements``."""
    required, every = count_mentions_once(required), required
    missed = required[~required["met"]]
    names, limited = (
        missed["requirement"].value_counts(),
        {name for names in missed["limits"] for name in names.split(", ")},
    )
    counts = {kind: every.attrs[kind] for kind in SIZES if kind in every.attrs}
    sizes = "".join(f" {SIZES[kind].format(n=n, share=1 / n)}" for kind, n in counts.items())
    said = "; ".join(f"{name} ({count} of {(required['requirement'] == name).sum()})" for name, count in names.items())
    inside, (base, tuned) = limits_inside(required), _kinds(every["model"])
    models = f"decoders: {by_family(base)}" + (f"; instruction-tuned: {by_family(tuned)}" if tuned else "")
    return Artifact(
        "models/table7",
        every,
        caption=(
            "Requirements of the design (`probelib/organisms/README.md`, written before training), what was measured, and the "
            "tables and figures that a missed requirement limits: there the models may fail to show what other models show. "
            "Mentions are counted in the corpus: models with the same value count once in the finding. Met: in how many of "
            "the models that a requirement concerns (in parentheses); then which models miss it, and what was measured in "
            "these, the lowest and the highest value with its 95 % interval (shares: Wilson; AUC and lists: bootstrap over "
            "facts). limit inside: in how many of the models with an interval the limit lies inside it, so that other "
            f"facts might decide otherwise. The CSV has a row per model. Models: {models}.{sizes}"
        ),
        shown=by_requirement(every),
        finding=(
            f"{required['met'].sum()} of {len(required)} checks (a requirement of a model) are met. Missed: {said or 'none'}."
            + (f" The limit lies inside the interval in {inside} checks that have one." if inside else "")
            + (f" This limits {len(limited)} tables and figures." if limited else "")
        ),
    )


def by_requirement(required: pd.DataFrame) -> pd.DataFrame:
    """One row per requirement: the models that it concerns, how many meet it, and the measured values of the others."""
    rows, kinds = [], _kinds(required["model"])
    for (requirement, wanted), own in required.groupby(["requirement", "wanted"], sort=False):
        missed = own[~own["met"]]
        intervals = {str(value): span(*ends) for value, *ends in missed[["measured", "low", "high"]].to_numpy()}
        values = sorted(intervals, key=lambda text: float(text.split(",")[0]))
        values = [f"{value} {intervals[value]}".removesuffix(" [no interval]") for value in values]
        ends = " to ".join(dict.fromkeys([*values[:1], *values[-1:]]))
        row = {"requirement": requirement, "wanted": wanted}
        row["met"] = f"{own['met'].sum()} of {len(own)} ({_in_words(own['model'], *kinds)})"
        row["missed by"] = _in_words(missed["model"], *kinds)
        row |= {"measured where missed": ends, "limit inside": limits_inside(own)}
        rows.append(row | {"limits": "; ".join(dict.fromkeys(missed["limits"]))})
    return pd.DataFrame(rows)


def limits_inside(required: pd.DataFrame) -> str:
    """In how many rows the limit lies inside the interval, "of" how many that have an interval; "" without any."""
    known = required.dropna(subset=["low", "high"])
    return f"{known['limit'].between(known['low'], known['high']).sum()} of {len(known)}" if len(known) else ""


def _kinds(models) -> tuple[list[str], list[str]]:
    """(decoders, instruction-tuned models) of the models."""
    names = list(dict.fromkeys(models))
    return [name for name in names if not name.endswith("-it")], [name for name in names if name.endswith("-it")]


def _in_words(models, base: list[str], tuned: list[str]) -> str:
    """Models as a cell: "all", "decoders" or "instruction-tuned" if they are all of that kind, otherwise their names."""
    kinds = {"instruction-tuned": tuned, "decoders": base, "all": [*base, *tuned]}
    return next((kind for kind, names in kinds.items() if names and set(models) == set(names)), ", ".join(models))


def count_mentions_once(required: pd.DataFrame) -> pd.DataFrame:
    """The rows of ``required``, with one row per measured value of the requirement on mentions, a property of the corpus."""
    again = required.duplicated(["requirement", "measured"]) & (required["requirement"] == behaviour.MENTIONS)
    return required[~again]
