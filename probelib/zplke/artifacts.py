"""ZP-LKE's tables and figures: measured numbers in, ``report.Artifact`` out.

Captions and claims stand in ``published/claims.yaml``.
"""

import textwrap

import numpy as np
import pandas as pd

from probelib.facts import Facts, pick
from probelib.facts.options import chance_levels
from probelib.prompts import gold
from probelib.report import (
    COLUMN,
    SMALL,
    TWO_COLUMNS,
    Artifact,
    cases,
    check,
    column,
    dot_rows,
    family,
    grouped_bars,
    heat,
    lines,
    model_style,
    style_at,
    subplots,
)
from probelib.stats import (
    holm,
    levelled,
    mean_interval,
    partial,
    pearson,
    pearson_over_models,
    wilson,
)
from probelib.zplke import measures
from probelib.zplke.inputs import CONTEXTS, METHODS, PROMPTED, used_templates
from probelib.zplke.scores import LONGEST_LIST, NO_LISTS, NO_TEXT, shipped

FEWEST = 5  # facts from which on figure 10 shows an accuracy
COLOURS = {"subject": "#0173b2", "object": "#b34700"}  # of labels in figure 2
ROLES = {"rest": ("#0173b2", "o"), "after": ("#56b4e9", "s"), "replaced": ("#d55e00", "x")}


def names(facts: Facts) -> dict[str, str]:
    """Relation -> its name."""
    return dict(zip(facts.relations["relation"], facts.relations["name"], strict=True))


def short_labels(models) -> dict[str, str]:
    """Model -> its name without the prefix of the shipped models and without the owner of a Hugging
    Face id; the whole name if two would be equal.

    >>> short_labels(["atlas-neox-0.6m", "EleutherAI/pythia-70m"])
    {'atlas-neox-0.6m': 'neox-0.6m', 'EleutherAI/pythia-70m': 'pythia-70m'}
    """
    models = list(dict.fromkeys(models))
    short = [model.rsplit("/", 1)[-1].removeprefix("atlas-") for model in models]
    return dict(zip(models, short if len(set(short)) == len(short) else models, strict=True))


def _dots(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """The frame with a number and its interval as the columns that ``dot_rows`` draws."""
    return frame.rename(columns={name: "value", f"{name} low": "low", f"{name} high": "high"})


def _missed(estimates: pd.DataFrame, requirement: str, models) -> pd.DataFrame:
    """The estimates with the requirement that their models miss, if they are shipped ones."""
    return estimates.assign(missed=[requirement if shipped(model) else "" for model in models])


# ---- section 3: how many examples, and which?


def telling_fact(answers: pd.DataFrame, facts: Facts) -> Facts:
    """The fact that shows the effect of examples best: the model answers it after four correct
    ones, and after as few other inputs as possible; of ties the first.

    answers   ``measures.answers_of_inputs`` of several facts
    """
    after_four = answers[(answers["role"] == "zp") & (answers["context"] == "4 correct")]
    missed = ~after_four.set_index("fact")["right"].astype(bool)
    order = pd.DataFrame({"missed": missed, "others": answers.groupby("fact")["right"].sum()})
    order = order.reindex(facts.facts["fact"]).sort_values(["missed", "others"], kind="stable")
    return pick(facts, [order.index[0]])


def table1(answers: pd.DataFrame, fact: Facts, model: str) -> Artifact:
    """The next tokens after eight inputs for one fact, and how many facts each input gets right.

    answers   ``measures.answers_of_inputs`` of several facts, ``fact`` among them
    """
    counts, n = measures.right_by_input(answers), answers["fact"].nunique()
    own = answers[answers["fact"].isin(fact.facts["fact"])].rename(columns={"right": "right here"})
    own = own[["estimator", "context", "text", "output", "right here"]]
    table = own.merge(counts, on=["estimator", "context"]).rename(
        columns={"right": f"right of {n}"}
    )
    changed = ~counts["context"].isin(["none", "2 correct", "4 correct"])
    prompted = counts["estimator"] == "prompted"
    lists = cases(counts[changed & ~prompted], "change", "context")
    replaced = lists.index != "1 correct"
    claims = check(
        "zplke/table1",
        lists=lists.assign(missed=np.where(replaced & shipped(model), NO_LISTS, "")),
        prompts=cases(counts[changed & prompted], "lost", "context"),
    )
    table = table.rename(columns={"context": "examples", "text": "input"})
    return Artifact("zplke/table1", table, claims)


def figure1(answers: pd.DataFrame, fact: Facts, some: Facts) -> Artifact:
    """What a prompt and a list of four pairs give: one fact per outcome, with the number of facts.

    answers   ``measures.answers_of_inputs`` of the facts ``some``
    fact      shown first (``telling_fact``); the prompt is its first one that is wrong, if any is
    """
    (shown,), labels = fact.facts["fact"], gold(some).set_index("fact")["label"]
    own = answers[(answers["fact"] == shown) & (answers["estimator"] == "prompted")]
    prompt = own.sort_values("right", kind="stable")["context"].iloc[0]
    pairs = answers[answers["context"].isin([prompt, "4 correct"])].reset_index(drop=True)
    right = pairs.pivot(index="fact", columns="estimator", values="right").astype(bool)
    listed, prompted = right["zero-prompt"], right["prompted"]
    outcomes = [listed & ~prompted, prompted & ~listed, listed & prompted]
    outcome = np.select(outcomes, ["only the list", "only the prompt", "both"], "neither")
    outcome = pd.Series(outcome, right.index)
    order = [shown, *answers["fact"].drop_duplicates()[lambda f: f != shown]]
    kept = outcome[order].drop_duplicates()
    frame = pairs[pairs["fact"].isin(kept.index)].assign(outcome=pairs["fact"].map(outcome))
    frame["facts"] = frame["outcome"].map(outcome.value_counts())
    columns = {"estimator": "estimator", "text": "input", "output": "output", "right": "right"}
    frame = frame.set_index("fact").loc[kept.index].reset_index().rename(columns=columns)
    frame["output"] = frame["output"].str.strip()
    figure, axes = subplots(TWO_COLUMNS, 0.62 * len(kept) + 0.1, len(kept))
    for axis, (one, own) in zip(axes.flat, frame.groupby("fact", sort=False), strict=True):
        cut = lambda text: text if len(text) < 80 else f"... {text[-76:]}"
        rows = zip(own["input"].map(cut), own["output"], own["right"], strict=True)
        title = f"right: {own['outcome'].iloc[0]} ({own['facts'].iloc[0]} of {len(right)} facts)"
        lines(axis, list(rows), f"{title}; here the object is {labels[one]}", 0.76)
        axis.title.set_fontsize(SMALL)
    frame = frame[[*columns.values(), "fact", "outcome", "facts"]]
    return Artifact("zplke/figure1", frame, figure=figure)


def figure2(inputs: dict[str, str], examples: pd.DataFrame, fact: Facts) -> Artifact:
    """The inputs of three estimators (``inputs.three_inputs``) for ``fact`` after ``examples``;
    words of subjects and objects are coloured."""
    subjects = [*examples["subject"], *fact.label(fact.facts["subject"])]
    colour = {word: COLOURS["subject"] for label in subjects for word in label.split()}
    colour |= {word: COLOURS["object"] for label in examples["object"] for word in label.split()}
    wrapped = {title: textwrap.wrap(text, 60) for title, text in inputs.items()}
    total = sum(len(own) + 2 for own in wrapped.values())
    figure, ((axis,),) = subplots(COLUMN, 0.135 * total)
    axis.set(xlim=(-1, 61), ylim=(total, 0))
    axis.axis("off")
    y = 0.5
    for title, own in wrapped.items():
        axis.text(0, y, title, fontsize=7, fontweight="bold", va="center")
        for line in own:
            y, x = y + 1, 0
            for word in line.split(" "):
                look = {"family": "monospace", "fontsize": 6.4, "va": "center"}
                axis.text(x, y, word, color=colour.get(word, "0.2"), **look)
                x += len(word) + 1
        y += 2
    frame = pd.DataFrame(inputs.items(), columns=["estimator", "input"])
    return Artifact("zplke/figure2", frame, figure=figure)


def table3(everything: Facts, atlas: Facts) -> Artifact:
    """Six facts of the relation. ``atlas``: all its facts, with years (K1) and fields (P166) of the
    laureates' prizes; a laureate of two prizes has two of each."""
    of = lambda relation: atlas.facts[atlas.facts["relation"] == relation].groupby("subject")[
        "object"
    ]
    sample = everything.facts.head(6)
    table = {"Name": everything.label(sample["subject"])}
    table["Birth year"] = everything.label(sample["object"])
    for title, relation in (("Award year", "K1"), ("Nature of award", "P166")):
        table[title] = sample["subject"].map(of(relation).agg(", ".join)).tolist()
    return Artifact("zplke/table3", pd.DataFrame(table))


def figure3(measured: pd.DataFrame) -> Artifact:
    """Lines of accuracy over the number of examples, one per model (``measures.curves``), with a
    band of one standard deviation over draws, and a dashed vertical at n95."""
    frame, level = measures.curves(measured), measures.chance(measured)
    models = measured["model"].unique()
    figure, axes = column(2.6)
    axis = axes[0, 0]
    for place, (model, label) in enumerate(short_labels(models).items()):
        own, look = frame[frame["model"] == model], model_style(model) | {"markersize": 3}
        axis.plot(
            own["shots"], own["mean"], label=f"{label}, 95 % at {own['n95'].iloc[0]:g}", **look
        )
        ends = own["mean"] - own["std"], own["mean"] + own["std"]
        axis.fill_between(own["shots"], *ends, color=look["color"], alpha=0.15, linewidth=0)
        dashed = {"color": look["color"], "linestyle": (3 * (place % 2), (3, 3)), "linewidth": 0.9}
        reached = own[own["shots"] == own["n95"]]
        axis.vlines(reached["shots"], 0, reached["mean"], **dashed)
    axis.axhline(level, color="0.4", linewidth=0.8)
    axis.text(frame["shots"].max(), level, "chance", ha="right", va="bottom", fontsize=SMALL)
    axis.set(xlabel="examples", ylabel="accuracy", ylim=(0, None))
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    last = frame[frame["shots"] == frame["shots"].max()].set_index("model").loc[models]
    fewer = pearson_over_models(last["mean"], last["n95"], [family(model) for model in models])
    gains = _missed(measures.gains(measured), NO_LISTS, models)
    claims = check("zplke/figure3", rises=gains, fewer=fewer)
    return Artifact("zplke/figure3", frame, claims, figure)


SEQUENCES = ["zplke/figure4", "zplke/figure11", "zplke/figure12", "zplke/figure13"]


def sequence_figure(name: str, positions: pd.DataFrame, star: int) -> Artifact:
    """Figures 4, 11, 12 and 13: probability of every object by position, of the first, second,
    third or fourth model; if there are fewer models, a further draw of the pairs.

    positions   ``measures.measure_positions``;   star: a marked position

    The frame has all draws of the model; ``pictured``: those of the picture; ``star``: the marked
    pair, with its value. Figures 11 to 13 begin with the incorrect examples, as in the paper.
    """
    place, models = SEQUENCES.index(name), positions["model"].unique()
    model, draw = models[place % len(models)], place // len(models)
    own = positions[positions["model"] == model]
    frame = own.assign(pictured=own["seed"] == own["seed"].unique()[draw])
    frame["star"] = (frame["position"] == star) & (frame["role"] == "rest")
    order = list(CONTEXTS) if place == 0 else [*list(CONTEXTS)[2:], *list(CONTEXTS)[:2]]
    longest = LONGEST_LIST if shipped(model) else np.inf
    figure = _panels(frame[frame["pictured"]], ["correct", *order], model, longest)
    correct = own[(own["context"] == "correct") & (own["position"] <= longest)]
    rises = check(name, rises=pearson(correct["position"], correct["probability"]))
    return Artifact(name, frame, None if draw else rises, figure)


def _panels(frame: pd.DataFrame, contexts: list[str], model: str, longest: float):
    """A panel per context: probability over position; dashed: mean of the correct sequence; a thin
    vertical line after the position ``longest``; the star with its value."""
    figure, axes = column(1.05 * len(contexts) + 0.3, len(contexts), sharex=True, sharey=True)
    mean = frame["probability"][frame["context"] == "correct"].mean()
    for axis, context, letter in zip(axes.flat, contexts, "abcde", strict=True):
        panel = frame[frame["context"] == context]
        for role, (colour, marker) in ROLES.items():
            rows = panel[panel["role"] == role]
            look = {"s": 5, "color": colour, "marker": marker, "linewidth": 0.6, "label": role}
            axis.scatter(rows["position"], rows["probability"], **look)
        axis.axhline(mean, color="0.3", linestyle="--", linewidth=0.8)
        if longest < panel["position"].max():
            axis.axvline(longest + 0.5, color="0.5", linewidth=0.6)
        for x, y in panel.loc[panel["star"], ["position", "probability"]].to_numpy():
            look = {
                "s": 60,
                "color": "#ece133",
                "edgecolor": "black",
                "linewidth": 0.6,
                "zorder": 3,
            }
            axis.scatter(x, y, marker="*", **look)
            axis.annotate(f"{y:.2f}", (x, y), (5, 3), textcoords="offset points", fontsize=SMALL)
        axis.set(ylim=(-0.06, 1.06))
        title = f"({letter}) {context}, {model}" if letter == "a" else f"({letter}) {context}"
        axis.set_title(title, fontsize=7)
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=3, fontsize=SMALL)
    axes[-1, 0].set(xlabel="position in the sequence")
    figure.supylabel("probability of the object", fontsize=7)
    return figure


def harm(positions: pd.DataFrame) -> Artifact:
    """How replaced examples change the other pairs (``measures.effects``), one mark per model."""
    groups = positions.groupby("model", sort=False)
    frame = pd.concat([measures.effects(own).assign(model=m) for m, own in groups])
    panels = {
        f"{key} pairs": _dots(own, "change") for key, own in frame.groupby("pairs", sort=False)
    }
    figure = dot_rows(panels, "effect", "model", "change of the probability", level=0)
    every, found = frame[frame["pairs"] == "all known"], {}
    for key, effect in (("incorrect", "incorrect"), ("more", "incorrect minus unknown")):
        own = cases(every[every["effect"] == effect], "change", n="n")
        found[key] = _missed(own, NO_LISTS, own.index)
    return Artifact("zplke/harm", frame, check("zplke/harm", **found), figure)


def figure10(measured: pd.DataFrame) -> Artifact:
    """Acc@K and the share of inputs kept, one line per model (``measures.accuracy_at``)."""
    groups = measures.longest(measured).groupby("model", sort=False)
    steps, ends = np.arange(0, 1, 0.05), {"low": "accuracy low", "high": "accuracy high"}
    frame = pd.concat([measures.accuracy_at(own, steps).assign(model=m) for m, own in groups])
    frame = frame.rename(columns=ends)
    figure, axes = column(2.3, 1, 2, sharex=True, sharey=True)
    left, right = axes.flat
    for model, label in short_labels(groups.groups).items():
        own, look = frame[frame["model"] == model], model_style(model) | {"markersize": 2}
        many = own[own["kept"] >= FEWEST]
        left.plot(many["K"], many["accuracy"], label=label, linewidth=1, **look)
        band = {"color": look["color"], "alpha": 0.1, "linewidth": 0}
        left.fill_between(many["K"], *(many[end] for end in ends.values()), **band)
        right.plot(own["K"], own["share"], linewidth=1, **look)
    left.set(xlabel="confidence above K", ylabel="accuracy of the inputs kept", ylim=(0, 1.02))
    right.set(xlabel="confidence above K", ylabel="share of the inputs kept")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    confident = pd.DataFrame({m: measures.gain_of_confidence(own) for m, own in groups}).T
    return Artifact("zplke/figure10", frame, check("zplke/figure10", confident=confident), figure)


def sensitivity(decided: pd.DataFrame) -> Artifact:
    """Accuracy under other ways to write pairs or to choose options. ``decided``:
    ``measures.by_decision``."""
    order, models = decided["decision"].unique(), decided["model"].unique()
    wide = decided.pivot_table(index="decision", columns="model", values="correct")
    table = wide.loc[order, models].rename_axis(columns=None).reset_index()
    by = decided.set_index(["decision", "model", "fact"])["correct"]
    here, there = by["as here: a blank"], by["as released"]
    changes = {m: measures.paired_change(here[m], there[m].loc[here[m].index]) for m in models}
    claims = check("zplke/sensitivity", released=pd.DataFrame(changes).T)
    return Artifact("zplke/sensitivity", table, claims)


# ---- section 4.1: a list of pairs, or a prompt?


def table6(facts: Facts) -> Artifact:
    """The prompts of the relations tested."""
    used = used_templates(facts).pivot(
        index=["relation", "number"], columns="role", values="template"
    )
    table = facts.relations[["relation", "name"]].merge(used.reset_index(), on="relation")
    return Artifact("zplke/table6", table.rename(columns=PROMPTED))


def figure5(cells: pd.DataFrame) -> Artifact:
    """Bars of all methods in both response tests and in the multiple-choice test. ``cells``:
    ``measures.accuracy_by_method``."""
    frame = measures.mean_by_method(cells)
    order = [method for method in METHODS.values() if method in set(cells["method"])]
    short = short_labels(cells.attrs["models"])
    short = {model: textwrap.fill(label, 10) for model, label in short.items()}
    figure, axes = column(5, 3, 1, sharex=True)
    for axis, test in zip(axes.flat, cells["test"].unique(), strict=True):
        rows = frame[frame["test"] == test]
        wide = rows.pivot(index="model", columns="method").reindex(index=list(short))
        wide = wide.rename(index=short)
        grouped_bars(axis, *(wide[f"accuracy{end}"][order] for end in ("", " low", " high")))
        axis.set(ylabel="accuracy", ylim=(0, None))
        axis.set_title(f"({'b' if test == 'multiple choice' else 'a'}) {test}", fontsize=7)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    choice = cells[cells["test"] == "multiple choice"]
    others = {"prompts": "HGP", "plain": "plain sentence"}
    found = {key: measures.lead(choice, other) for key, other in others.items() if other in order}
    return Artifact("zplke/figure5", frame, check("zplke/figure5", **found), figure)


def relations_figure(name: str, cells: pd.DataFrame, facts: Facts) -> Artifact:
    """Figures 14 (response, lenient) and 15 (multiple choice): all methods by relation, with Wilson
    intervals over facts; the relations that ZP-LKE knows best first.

    cells   ``measures.accuracy_by_method``
    """
    test = {"zplke/figure14": "response, lenient", "zplke/figure15": "multiple choice"}[name]
    frame = cells[cells["test"].str.startswith(test.split(",")[0])]
    counts = frame["relation"].map(facts.facts["relation"].value_counts())
    ends = [wilson(round(a * n), n) for a, n in zip(frame["accuracy"], counts, strict=True)]
    ends = pd.DataFrame(ends, frame.index, ["accuracy low", "accuracy high"])
    frame = frame.assign(relation=frame["relation"].map(names(facts)), **ends)
    rows = _dots(frame[frame["test"] == test], "accuracy")
    best = rows[rows["method"] == "ZP-LKE"].groupby("relation")["value"].mean()
    rows = rows.assign(best=rows["relation"].map(best), place=rows["method"].map(ORDER.index))
    rows = rows.sort_values(["best", "relation", "place"], ascending=[False, True, True])
    rows["relation"] = rows["relation"].map(lambda title: textwrap.shorten(title, 30))
    labels = short_labels(cells.attrs["models"])
    panels = {label: rows[rows["model"] == model] for model, label in labels.items()}
    figure = dot_rows(panels, "relation", "method", "accuracy", side=2)
    own = cells[cells["test"] == test]
    found = {"prompts": measures.relations_ahead(own, "HGP")}
    found["few"] = measures.relations_ahead(own, "few-shot HGP")
    if name == "zplke/figure14" and all(map(shipped, cells.attrs["models"])):
        found = {key: one | {"missed": NO_TEXT} for key, one in found.items()}
    return Artifact(name, frame, check(name, **found), figure)


ORDER = list(METHODS.values())


def figure6(measured: pd.DataFrame, facts: Facts) -> Artifact:
    """Dots of one relation's accuracy, one row per separator (``measures.by_separator``)."""
    frame, (title,) = measures.by_separator(measured), facts.relations["name"]
    rows = _dots(frame, "accuracy").assign(method="accuracy")
    rows["between"] = rows["between"].map(lambda text: textwrap.shorten(text, 34))
    labels = short_labels(frame["model"])
    panels = {label: rows[rows["model"] == model] for model, label in labels.items()}
    figure = dot_rows(panels, "between", "method", f"accuracy on {title}", side=2)
    words = frame[frame["between"] != "a blank"]
    claims = check(
        "zplke/figure6",
        words=cases(words.assign(case=words["model"] + ", " + words["between"]), "change", "case"),
    )
    return Artifact("zplke/figure6", frame, claims, figure)


# ---- section 4.2: the data and the models


def table4(facts: Facts, pool: Facts) -> Artifact:
    """The relations: facts, options, chance, and facts in the pool of examples."""
    in_pool = pool.facts["relation"].value_counts()
    table = facts.relations[["relation", "name"]].merge(chance_levels(facts), on="relation")
    table["pool"] = table["relation"].map(in_pool).fillna(0).astype(int)
    return Artifact("zplke/table4", table)


def table5(facts: Facts, options: pd.DataFrame) -> Artifact:
    """Two facts each of two relations with their first wrong options; the second relation has
    years, if one has."""
    rows, labels = facts.facts, pd.Series(facts.label(facts.facts["object"]), facts.facts.index)
    first = rows["relation"].iloc[0]
    digits = labels.str.isdecimal().groupby(rows["relation"]).all()
    others = [*digits.index[digits], *rows["relation"].drop_duplicates()]
    second = [relation for relation in others if relation != first][:1]
    sample = rows[rows["relation"].isin([first, *second])].groupby("relation", sort=False).head(2)
    wrong = options[options["candidate"] != options["fact"].map(rows.set_index("fact")["object"])]
    listed = {
        fact: ", ".join(own["label"].head(5)) + ", ..." for fact, own in wrong.groupby("fact")
    }
    table = {"Relation": sample["relation"].map(names(facts))}
    table |= {"Subject": facts.label(sample["subject"]), "Object": labels[sample.index]}
    table["Multiple choices"] = sample["fact"].map(listed)
    return Artifact("zplke/table5", pd.DataFrame(table))


def table7(described: pd.DataFrame) -> Artifact:
    """The models. ``described``: ``scores.describe``."""
    table = described.copy()
    table.insert(1, "family", table["model"].map(family))
    return Artifact("zplke/table7", table)


# ---- section 4.2.1: different families


def table8(
    measured: pd.DataFrame, described: pd.DataFrame, exposures: pd.Series | None = None
) -> Artifact:
    """The leaderboard (``measures.leaderboard``); ``described``: ``scores.describe``;
    ``exposures``: fact -> how often the models were taught it, if known."""
    table, about = measures.leaderboard(measured, exposures), described.set_index("model")
    table.insert(2, "kind", table["model"].map(about["kind"]))
    base = table[table["kind"] == "base"]
    size = np.log(base["model"].map(about["parameters"]).astype(float))
    larger = pearson_over_models(size, base["accuracy"], base["model"].map(family))
    printed = table.drop(columns=["n", "lost", "gained", "p"])
    claims, best = check("zplke/table8", larger=larger), {"accuracy": "max"}
    return Artifact("zplke/table8", table, claims, best=best, shown=printed)


def without_model(facts: Facts, options: pd.DataFrame, examples: pd.DataFrame) -> pd.DataFrame:
    """Baselines without a model, per relation: ``chance``, ``measures.guessers`` (mean over facts
    and draws of examples) and ``best rule``, the highest of chance, copy and majority.

    options, examples   the options that the models chose from, and the examples in their lists
    """
    rows = facts.facts.assign(
        subject=facts.label(facts.facts["subject"]), gold=facts.facts["object"]
    )
    rows = rows[["fact", "relation", "subject", "gold"]]
    draws = [measures.guessers(options, rows, own) for _, own in examples.groupby("seed")]
    rules = pd.concat(draws).drop(columns="fact").groupby("relation", sort=False).mean()
    rules = chance_levels(facts).set_index("relation")[["chance"]].join(rules)
    return rules.assign(**{"best rule": rules[["chance", "copy", "majority"]].max(axis=1)})


def table9(
    facts: Facts,
    rules: pd.DataFrame,
    matrix: pd.DataFrame,
    measured: pd.DataFrame,
    exposures: pd.Series | None = None,
) -> Artifact:
    """The relations by mean accuracy, beside rules that need no model.

    rules       ``without_model``;   matrix: ``measures.accuracy_matrix`` of the base models
    measured    ``measures.measure`` of all models
    exposures   as in ``table8``; adds ``exposure``, the mean of log2(1 + count) over facts
    """
    table = facts.relations[["relation", "name"]].set_index("relation")
    table = table.join(rules.drop(columns="best rule"))
    every = measures.accuracies(measured).pivot(
        index="relation", columns="model", values="accuracy"
    )
    base = [model for model in measured["model"].unique() if model in matrix.index]
    own = measured[measured["model"].isin(base)]
    by_fact = own.groupby(["relation", "fact"])["correct"].mean()
    table["base"], table["all"] = every[base].mean(axis=1), every.mean(axis=1)
    ends = by_fact.groupby("relation").agg(mean_interval)
    table["base low"], table["base high"] = ends.str[0], ends.str[1]
    if exposures is not None:
        logs = np.log2(1 + facts.facts["fact"].map(exposures))
        table["exposure"] = logs.groupby(facts.facts["relation"]).mean()
    how = {"ascending": False, "key": levelled, "kind": "stable", "ignore_index": True}
    table = table.reset_index().sort_values("base", **how)
    table.insert(0, "order", table.index + 1)
    rule = table["relation"].map(rules["best rule"])
    found = {"guessed": pearson(rule, table["base"])}
    if exposures is not None:
        found["taught"] = partial(table["exposure"], table["base"], rule)
    return Artifact("zplke/table9", table, check("zplke/table9", **found))


def table10(matrix: pd.DataFrame, facts: Facts, n: int = 3) -> Artifact:
    """The ``n`` best and worst relations of every base model, and how many more are tied with
    them."""
    titles, rows = names(facts), []
    for model, accuracy in matrix.iterrows():
        row = {"model": model}
        for kind in ("best", "worst"):
            ranked = accuracy.sort_values(ascending=kind == "worst", kind="stable")
            for i, (relation, value) in enumerate(ranked[:n].items(), 1):
                row |= {f"{kind} {i}": titles[relation], f"accuracy {kind} {i}": value}
            row[f"{kind}: tied"] = int((ranked[n:] == ranked.iloc[min(n, len(ranked)) - 1]).sum())
        rows.append(row)
    return Artifact("zplke/table10", pd.DataFrame(rows))


def _heat(axis, table: pd.DataFrame, low: float, rows=(), columns=()) -> None:
    """A heat map from ``low`` to 1, with white lines where the families of ``rows`` and ``columns``
    change."""
    heat(axis, table, low, 1, "viridis")
    for models, line in ((rows, axis.axhline), (columns, axis.axvline)):
        own = [family(model) for model in models]
        for at in [i for i in range(1, len(own)) if own[i] != own[i - 1]]:
            line(at - 0.5, color="white", linewidth=2)
    axis.tick_params(axis="x", rotation=90)
    axis.tick_params(labelsize=SMALL, left=False, bottom=False, top=False)


def figure7(matrix: pd.DataFrame, facts: Facts, rule: pd.Series) -> Artifact:
    """Heat map of accuracies, relations x models (``measures.accuracy_matrix``), best relations
    first, beside the best ``rule`` without a model."""
    means, called = matrix.mean().sort_values(ascending=False), names(facts)
    shown = matrix.rename(index=short_labels(matrix.index)).T.loc[means.index]
    shown = shown.assign(**{"best rule": rule})
    shown.index = [textwrap.shorten(called[r], 50, placeholder=" ...") for r in means.index]
    width = 0.1 + 0.05 * shown.index.str.len().max() + 0.165 * shown.shape[1]  # names, cells
    figure, axes = column(1.0 + 0.135 * len(shown), width=max(COLUMN, width))
    _heat(axes[0, 0], shown, 0, columns=[*matrix.index, "rule"])
    axes[0, 0].xaxis.tick_top()
    sizes = facts.facts["relation"].value_counts()
    differ = measures.spread_of_relations(matrix.mean(), sizes[matrix.columns])
    frame = matrix.rename_axis("model").reset_index()
    return Artifact("zplke/figure7", frame, check("zplke/figure7", differ=differ), figure)


def figure8(matrix: pd.DataFrame, rule: pd.Series) -> Artifact:
    """Heat maps of the mean correlation between families: of accuracies, and of accuracies minus
    the best ``rule`` without a model."""
    versions = {"accuracy": matrix, "minus best rule": matrix - rule[matrix.columns]}
    tables = {k: measures.family_correlations(own, family) for k, own in versions.items()}
    n, lowest = len(tables["accuracy"]), min(0, *(t.min(axis=None) for t in tables.values()))
    short = short_labels(tables["accuracy"].index)
    size = {"width": max(COLUMN, 0.9 + 0.6 * n), "sharey": True}
    figure, axes = column(1.1 + 0.3 * n, 1, 2, **size)
    for axis, (title, table) in zip(axes.flat, tables.items(), strict=True):
        _heat(axis, table.rename(index=short, columns=short), lowest)
        axis.set_title(title, fontsize=7)
    frame = tables["accuracy"].rename_axis(columns="b").stack(future_stack=True).rename("r")
    left = tables["minus best rule"].rename_axis(columns="b").stack(future_stack=True)
    frame = frame.to_frame().assign(**{"r minus best rule": left}).reset_index()
    across = [measures.between_families(own, family) for own in versions.values()]
    claims = check("zplke/figure8", agree=across[0], beyond=across[1])
    return Artifact("zplke/figure8", frame, claims, figure)


def figure16(matrix: pd.DataFrame) -> Artifact:
    """Heat map of Pearson's r of every pair of models over relations; NaN for a model with the same
    accuracy everywhere, and for fewer than 3 relations."""
    pairs = matrix.T.corr(min_periods=3)
    short = short_labels(pairs.index)
    other = pairs.where(~np.eye(len(pairs), dtype=bool))
    shown = other.rename(index=short, columns=short)
    size = 0.8 + 0.21 * len(pairs)
    figure, axes = column(size, width=max(COLUMN, 0.2 + size))
    _heat(axes[0, 0], shown, min(0, other.min(axis=None)), pairs.index, pairs.index)
    return Artifact("zplke/figure16", pairs.rename_axis("model").reset_index(), figure=figure)


# ---- section 4.2.2: within one family


def table2(measured: pd.DataFrame, described: pd.DataFrame) -> Artifact:
    """Smallest and largest base model of each family: ``measures.subsumptions``. ``described``:
    ``scores.describe``."""
    base = described[described["kind"] == "base"].sort_values("parameters", kind="stable")
    ends = {
        f: (own.iloc[0], own.iloc[-1])
        for f, own in base.groupby(base["model"].map(family), sort=False)["model"]
    }
    ends = {f: pair for f, pair in ends.items() if pair[0] != pair[1]}
    table = _rates(measured, ends.values(), "smallest", "largest")
    table.insert(0, "family", table["smallest"].map(family))
    first = table[table["draw"] == 1]
    found = {"lacks": "below ceiling", "shares": "above expected"}
    found = {key: cases(first, name, "family") for key, name in found.items()}
    return Artifact("zplke/table2", table, check("zplke/table2", **found))


def _rates(measured: pd.DataFrame, pairs, smaller: str, larger: str) -> pd.DataFrame:
    """``measures.subsumptions`` with the accuracies of both models over all draws."""
    mean = measures.accuracies(measured).groupby("model")["accuracy"].mean()
    table = measures.subsumptions(measured, pairs)
    table.insert(1, "accuracy", table["smaller"].map(mean))
    table.insert(3, "accuracy of it", table["larger"].map(mean))
    return table.rename(columns={"smaller": smaller, "larger": larger})


def table11(measured: pd.DataFrame, base_of: dict[str, str]) -> Artifact:
    """Base models and their fine-tuned versions: eta, the share of the tuned model's facts that its
    base knows, and McNemar's test on the first draw with Holm's correction."""
    pairs = [(tuned, base) for tuned, base in base_of.items() if base]
    table = _rates(measured, pairs, "tuned", "base")
    p = [measures.compare(measured, base, tuned)["p"] for tuned, base in pairs]
    tests = pd.DataFrame({"p": p, "p (Holm)": holm(p)}, [tuned for tuned, _ in pairs])
    table = table.join(tests, on="tuned")
    swapped = {"accuracy": "accuracy of it", "accuracy of it": "accuracy"}  # of the base first
    table = table.rename(columns=swapped)
    order = ["base", "accuracy", "tuned", "accuracy of it"]
    table = table[[*order, *table.columns.drop(order)]]
    known = cases(table[table["draw"] == 1], "eta", "tuned")
    return Artifact("zplke/table11", table, check("zplke/table11", known=known))


def figure9(measured: pd.DataFrame, base_of: dict[str, str]) -> Artifact:
    """Accuracies of base models and their fine-tuned versions, and their differences, paired by
    relation (95 % bootstrap over relations)."""
    of, rows = dict(iter(measures.accuracies(measured).groupby("model", sort=False))), []
    for tuned, base in base_of.items():
        if base:
            row = {"base": base, "tuned": tuned}
            for kind, model in (("base", base), ("fine-tuned", tuned)):
                score = measures.overall_accuracy(of[model])
                row |= {f"{kind} {k}": v for k, v in score.items() if k.startswith("accuracy")}
            by = [of[model].set_index("relation")["accuracy"] for model in (tuned, base)]
            change = by[0] - by[1]
            low, high = mean_interval(change)
            rows.append(
                row | {"difference": change.mean(), "difference low": low, "difference high": high}
            )
    frame = pd.DataFrame(rows, columns=None if rows else ["base", "tuned"])
    figure, axes = column(1.0 + 0.3 * max(1, len(frame)), 1, 2, sharey=True)
    left, right = axes.flat
    left.set(xlabel="accuracy")
    right.set(xlabel="fine-tuned minus base")
    if frame.empty:
        middle = {"ha": "center", "transform": left.transAxes, "fontsize": 7}
        left.text(0.5, 0.5, "no fine-tuned model\nwith its base", **middle)
        return Artifact("zplke/figure9", frame, figure=figure)
    y = range(len(frame))
    for place, kind in enumerate(("base", "fine-tuned")):
        look = style_at(place) | {"linestyle": "", "markersize": 4, "label": kind}
        left.plot(frame[f"{kind} accuracy"], y, **look)
    ends = [
        frame["difference"] - frame["difference low"],
        frame["difference high"] - frame["difference"],
    ]
    look = {"fmt": "o", "color": "0.2", "markersize": 3, "capsize": 2, "linewidth": 0.9}
    right.errorbar(frame["difference"], y, xerr=np.clip(ends, 0, None), **look)
    right.axvline(0, color="0.4", linewidth=0.8)
    left.set_yticks(y, list(short_labels(frame["tuned"]).values()))
    left.set_ylim(len(frame) - 0.5, -0.5)
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    lower = cases(frame, "difference", "tuned")
    return Artifact("zplke/figure9", frame, check("zplke/figure9", lower=lower), figure)
