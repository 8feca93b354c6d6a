"""ZP-LKE's tables and figures: measured numbers in, ``Artifact`` out (texts: ``claims.yaml``)."""

import re
import textwrap

import numpy as np
import pandas as pd

from probelib import report, stats
from probelib.facts import Facts, chance_levels, pick
from probelib.prompts import gold, many_shot
from probelib.report import SMALL, Artifact, cases, check, family
from probelib.zplke import measures, scores
from probelib.zplke.scores import NO_LISTS, shipped

ORDER = list(scores.METHODS.values())
SEQUENCES = ["zplke/figure4", "zplke/figure11", "zplke/figure12", "zplke/figure13"]
TUNING = ("base accuracy", "fine-tuned accuracy", "difference")
LEGEND = {"loc": "outside upper center", "ncols": 3, "fontsize": SMALL}
FEWEST = 5  # facts from which on figure 10 shows an accuracy
_cut = lambda text, width=36: textwrap.shorten(text, width, placeholder=" ...")
ROLES = {"rest": ("#0173b2", "o"), "after": ("#56b4e9", "s"), "replaced": ("#d55e00", "x")}


def _names(facts: Facts) -> dict[str, str]:
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


def _missed(estimates: pd.DataFrame, requirement: str, models) -> pd.DataFrame:
    """The estimates with the requirement that their models miss, if they are shipped ones."""
    return estimates.assign(missed=[requirement if shipped(model) else "" for model in models])


def contrasting_fact(answers: pd.DataFrame, facts: Facts) -> Facts:
    """The fact that the model answers after four correct examples, and after as few other inputs as
    possible; of ties the first. ``answers``: ``measures.answers_of_inputs`` of several facts."""
    after_four = answers[(answers["role"] == "zp") & (answers["context"] == "4 correct")]
    missed = ~after_four.set_index("fact")["right"].astype(bool)
    order = pd.DataFrame({"missed": missed, "others": answers.groupby("fact")["right"].sum()})
    order = order.reindex(facts.facts["fact"]).sort_values(["missed", "others"], kind="stable")
    return pick(facts, [order.index[0]])


def table1(answers: pd.DataFrame, fact: Facts, model: str) -> Artifact:
    """The next tokens after eight inputs for one fact, and how many facts each input gets right.
    ``answers``: ``measures.answers_of_inputs`` of several facts, ``fact`` among them."""
    counts, keys = measures.right_by_input(answers), ["estimator", "context"]
    own = answers[answers["fact"].isin(fact.facts["fact"])].rename(columns={"right": "right here"})
    table = own[[*keys, "text", "output", "right here"]].merge(counts, on=keys)
    titles = {"context": "examples", "text": "input"}
    titles["right"] = f"right of {answers['fact'].nunique()}"
    changed = counts[~counts["context"].isin(["none", "2 correct", "4 correct"])]
    zero = changed["estimator"] == "zero-prompt"
    lists, prompted = cases(changed[zero], "change", "context"), changed[~zero]
    untrained = (lists.index != "1 correct") & shipped(model)
    lists = lists.assign(missed=np.where(untrained, NO_LISTS, ""))
    prompts = cases(prompted, "lost", "context").assign(missed=NO_LISTS * shipped(model))
    claims = check("zplke/table1", lists=lists, prompts=prompts)
    return Artifact("zplke/table1", table.rename(columns=titles), claims)


def figure1(answers: pd.DataFrame, fact: Facts, some: Facts, model: str) -> Artifact:
    """What a prompt and a list of four pairs give: one of the facts ``some`` per outcome, with
    their number. ``fact`` comes first; the prompt is its first one that is wrong, if any is."""
    (first,), labels = fact.facts["fact"], gold(some).set_index("fact")["label"]
    own = answers[(answers["fact"] == first) & (answers["estimator"] == "prompted")]
    prompt = own.sort_values("right", kind="stable")["context"].iloc[0]
    rows = answers[answers["context"].isin([prompt, "4 correct"])].reset_index(drop=True)
    right = rows.pivot(index="fact", columns="estimator", values="right").astype(bool)
    one = right.idxmax(axis=1).map({"zero-prompt": "only the list", "prompted": "only the prompt"})
    outcome = one.where(right.any(axis=1), "neither").where(~right.all(axis=1), "both")
    rows["outcome"] = rows["fact"].map(outcome)
    rows["facts"] = rows["outcome"].map(outcome.value_counts())
    order = [first, *some.facts["fact"][some.facts["fact"] != first]]
    kept = outcome[order].drop_duplicates().index
    rows = rows.assign(input=rows["text"], output=rows["output"].str.strip())
    rows = rows.set_index("fact").loc[kept].reset_index()
    figure, axes = report.subplots(report.TWO_COLUMNS, 0.62 * len(kept) + 0.1, len(kept))
    for axis, (name, own) in zip(axes.flat, rows.groupby("fact", sort=False), strict=True):
        cut = own["input"].map(lambda t: t if len(t) < 80 else f"... {t[-76:].split(' ', 1)[-1]}")
        title = f"{model}, right: {own['outcome'].iloc[0]} ({own['facts'].iloc[0]} of {len(right)})"
        panel = list(zip(cut, own["output"], own["right"], strict=True))
        report.lines(axis, panel, f"{title}; here the object is {labels[name]}", 0.76)
    columns = ["estimator", "input", "output", "right", "fact", "outcome", "facts"]
    return Artifact("zplke/figure1", rows[columns], figure=figure)


def figure2(fact: Facts, examples: pd.DataFrame) -> Artifact:
    """The inputs of the three estimators for one fact; words of subjects and objects in colour."""
    sentences = fact.templates[fact.templates["role"] == scores.sentence_role(fact)]
    subject, sentence = fact.label(fact.facts["subject"])[0], sentences["template"].iloc[0]
    pairs = list(zip(examples["subject"], examples["object"], strict=True))
    inputs = {"ZS-LKE: a template": many_shot([], subject, sentence)}
    inputs["FS-LKE: two solved templates before it"] = many_shot(pairs[:2], subject, sentence)
    inputs["ZP-LKE: pairs only"] = many_shot(pairs, subject)
    subjects = [*examples["subject"], subject]
    colour = {word: "#0173b2" for label in subjects for word in label.split()}
    colour |= {word: "#b34700" for label in examples["object"] for word in label.split()}
    wrapped = {title: textwrap.wrap(text, 60) for title, text in inputs.items()}
    total = sum(len(own) + 2 for own in wrapped.values())
    figure, ((axis,),) = report.subplots(report.COLUMN, 0.135 * total)
    axis.set(xlim=(-1, 61), ylim=(total, 0))
    axis.axis("off")
    look, y = {"family": "monospace", "fontsize": 6.0, "va": "center"}, 0.5
    for title, own in wrapped.items():
        axis.text(0, y, title, fontsize=7, fontweight="bold", va="center")
        for line in own:
            y += 1
            for at in re.finditer(r"\S+", line):
                axis.text(at.start(), y, at[0], color=colour.get(at[0], "0.2"), **look)
        y += 2
    frame = pd.DataFrame(inputs.items(), columns=["estimator", "input"])
    return Artifact("zplke/figure2", frame, figure=figure)


def table3(everything: Facts, atlas: Facts) -> Artifact:
    """Six facts of the relation. ``atlas``: all its facts, with years (K1) and fields (P166) of the
    laureates' prizes; a laureate of two prizes has two of each."""
    sample, rows = everything.facts.head(6), atlas.facts
    table = {"Name": everything.label(sample["subject"])}
    table[everything.relations["name"].iloc[0].capitalize()] = everything.label(sample["object"])
    for title, relation in (("Award year", "K1"), ("Nature of award", "P166")):
        prizes = rows[rows["relation"] == relation].groupby("subject")["object"].agg(", ".join)
        if sample["subject"].isin(prizes.index).any():
            table[title] = sample["subject"].map(prizes).tolist()
    return Artifact("zplke/table3", pd.DataFrame(table))


def figure3(measured: pd.DataFrame) -> Artifact:
    """Accuracy over the number of examples, one line per model, with n95 (``measures.n95``)."""
    models, level = measured["model"].unique(), measures.chance(measured)
    each = measured.groupby(["model", "shots", "seed"])["correct"].mean()
    frame = each.groupby(["model", "shots"]).agg(["mean", "std"]).reset_index()
    curves = {m: own.set_index("shots")["mean"] for m, own in frame.groupby("model")}
    frame["n95"] = frame["model"].map({m: measures.n95(curve) for m, curve in curves.items()})
    figure, ((axis,),) = report.subplots(report.COLUMN, 2.6)
    for model, label in short_labels(models).items():
        own, look = frame[frame["model"] == model], report.model_style(model)
        reached = own["n95"].iloc[0]  # NaN for a model that knows nothing
        title = label if np.isnan(reached) else f"{label}, 95 % at {reached:g}"
        axis.plot(own["shots"], own["mean"], label=title, markersize=3, **look)
        ends = own["mean"] - own["std"], own["mean"] + own["std"]
        axis.fill_between(own["shots"], *ends, color=look["color"], alpha=0.15, linewidth=0)
    axis.axhline(level, color="0.4", linewidth=0.8)
    axis.text(frame["shots"].max(), level, "chance", ha="right", va="bottom", fontsize=SMALL)
    n, draws = measured["fact"].nunique(), measured["seed"].nunique()
    axis.set(xlabel="examples", ylabel=f"accuracy, {n} facts, {draws} draws", ylim=(0, None))
    figure.legend(*axis.get_legend_handles_labels(), **LEGEND | {"ncols": 2})
    last = frame.groupby("model")[["mean", "n95"]].last().loc[models]
    fewer = stats.pearson_over_models(last["mean"], last["n95"], list(map(family, models)))
    by = measured.groupby(["model", "fact", "shots"])["correct"].mean().unstack("shots")
    gain = measures.by_model(by[by.columns.max()] - by[by.columns.min()], models)
    claims = check("zplke/figure3", rises=_missed(gain, NO_LISTS, models), fewer=fewer)
    return Artifact("zplke/figure3", frame, claims, figure)


def sequence_figure(name: str, positions: pd.DataFrame, star: int) -> Artifact:
    """Figures 4, 11, 12 and 13: probability of every object by position (``measures.by_position``),
    of the first, second, third or fourth model; if there are fewer models, a further draw of the
    pairs (``pictured``). ``star``: a marked position. Figures 11 to 13 begin with the incorrect
    examples, as in the paper."""
    place, models = SEQUENCES.index(name), positions["model"].unique()
    model, draw = models[place % len(models)], place // len(models)
    own = positions[positions["model"] == model]
    frame = own.assign(pictured=own["seed"] == own["seed"].unique()[draw])
    frame["star"] = (frame["position"] == star) & (frame["role"] == "rest")
    order = list(scores.CONTEXTS)
    order = [*order[2:], *order[:2]] if place else order
    longest = scores.LONGEST_LIST if shipped(model) else np.inf
    figure = _panels(frame[frame["pictured"]], ["correct", *order], model, longest)
    correct = own[(own["context"] == "correct") & (own["position"] <= longest)]
    rises = stats.pearson(correct["position"], correct["probability"])
    rises = check(name, rises=rises | {"missed": NO_LISTS * shipped(model)})
    return Artifact(name, frame, None if draw else rises, figure)


def _panels(frame: pd.DataFrame, contexts: list[str], model: str, longest: float):
    """A panel per context; a thin line after the position ``longest``; the star with its value."""
    figure, axes = report.subplots(report.COLUMN, 5.55, len(contexts), sharex=True, sharey=True)
    star = {"s": 60, "color": "#ece133", "edgecolor": "black", "linewidth": 0.6, "zorder": 3}
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
        marked = panel[panel["star"]]
        axis.scatter(marked["position"], marked["probability"], marker="*", **star)
        axis.set(ylim=(-0.06, 1.06))
        at = "".join(f", star {value:.2f}" for value in marked["probability"])
        axis.set_title(f"({letter}) {context}, {model}{at}", fontsize=7)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), **LEGEND)
    axes[-1, 0].set(xlabel="position in the sequence")
    figure.supylabel("probability of the object", fontsize=7)
    return figure


def harm(positions: pd.DataFrame) -> Artifact:
    """How replaced examples change the other pairs (``measures.effects``), one mark per model."""
    groups = positions.groupby("model", sort=False)
    frame = pd.concat([measures.effects(own).assign(model=m) for m, own in groups])
    if frame["change"].isna().all():
        return report.lacking("zplke/harm", frame)
    every, found = frame[frame["pairs"] == "all known pairs"], {}
    panels = {"": report.marks(every, "change")}
    figure = report.dot_rows(panels, "effect", "model", "change of the probability", level=0)
    for key, effect in (("incorrect", "incorrect"), ("more", "incorrect minus unknown")):
        own = cases(every[every["effect"] == effect], "change", n="n")
        found[key] = _missed(own, NO_LISTS, own.index)
    return Artifact("zplke/harm", frame, check("zplke/harm", **found), figure)


def figure10(measured: pd.DataFrame) -> Artifact:
    """Acc@K and the share of inputs kept, one line per model (``measures.accuracy_at``)."""
    longest = measured[measured["shots"] == measured["shots"].max()]
    groups = longest.groupby("model", sort=False)
    steps, ends = np.arange(0, 1, 0.05), {"low": "accuracy low", "high": "accuracy high"}
    frame = pd.concat([measures.accuracy_at(own, steps).assign(model=m) for m, own in groups])
    frame = frame.rename(columns=ends)
    figure, axes = report.subplots(report.COLUMN, 2.3, 1, 2, sharex=True, sharey=True)
    left, right = axes.flat
    for model, label in short_labels(groups.groups).items():
        own, look = frame[frame["model"] == model], report.model_style(model) | {"markersize": 2}
        many = own[own["kept"] >= FEWEST]
        left.plot(many["K"], many["accuracy"], label=label, linewidth=1, **look)
        band = {"facecolor": (look["color"], 0.1), "edgecolor": (look["color"], 0.8)}
        left.fill_between(many["K"], *(many[end] for end in ends.values()), linewidth=0.4, **band)
        right.plot(own["K"], own["share"], linewidth=1, **look)
    left.set(xlabel="confidence above K", ylabel="accuracy of the inputs kept", ylim=(0, 1.02))
    right.set(xlabel="confidence above K", ylabel="share of the inputs kept", xticks=(0, 0.5, 1))
    figure.legend(*left.get_legend_handles_labels(), **LEGEND)
    gains, kept = {}, {}
    for model, own in groups:  # what each fact adds to the gain, to first order: both means vary
        hit, sure = own["correct"], own["confidence"] > 0.5
        above, kept[model] = hit[sure].mean(), own["fact"][sure].nunique()
        part = sure / sure.mean() * (hit - above) + above - hit
        gains[model] = part.groupby(own["fact"]).mean()
    gain = measures.by_model(pd.concat(gains), gains).assign(n=kept)
    return Artifact("zplke/figure10", frame, check("zplke/figure10", confident=gain), figure)


def sensitivity(decided: dict[str, pd.DataFrame]) -> Artifact:
    """Accuracy under other rules. ``decided``: decision -> ``measures.measure``, one draw."""
    here, there = decided["as here: a blank"], decided["as released"]
    rules = {"a blank; chosen per token": "per token", "a blank; chosen after the prior": "pmi"}
    rows = {name: own.groupby("model")["correct"].mean() for name, own in decided.items()}
    rows |= {name: here.groupby("model")[rule].mean() for name, rule in rules.items()}
    models = here["model"].unique()
    table = pd.DataFrame(rows).T[models].rename_axis("decision").rename_axis(columns=None)
    table.insert(0, "facts", here["fact"].nunique())
    by = [own.set_index(["model", "fact"])["correct"] for own in (here, there)]
    changes = {m: measures.change_of_share(by[0][m], by[1][m][by[0][m].index]) for m in models}
    claims = check("zplke/sensitivity", released=pd.DataFrame(changes).T)
    return Artifact("zplke/sensitivity", table.reset_index(), claims)


def table6(facts: Facts) -> Artifact:
    """The prompts of the relations tested."""
    keys = ["relation", "number", "role"]
    used = scores.used_templates(facts).set_index(keys)["template"].unstack()
    table = facts.relations[["relation", "name"]].merge(used.reset_index(), on="relation")
    return Artifact("zplke/table6", table.rename(columns=scores.PROMPTED))


def figure5(cells: pd.DataFrame) -> Artifact:
    """Accuracies of all methods (``measures.accuracy_by_method``): means over relations."""
    rows, found, models = [], {}, cells.attrs["models"]
    for key, own in cells.groupby(["test", "model", "method"]):
        row = dict(zip(("test", "model", "method"), key, strict=True))
        rows.append(row | report.interval("accuracy", own["accuracy"], stats.mean_interval))
    frame = pd.DataFrame(rows)
    shown = report.marks(frame, "accuracy").sort_values("model", key=lambda m: m.map(models.index))
    shown["method"] = pd.Categorical(shown["method"], ORDER)  # one colour in figures 5, 14 and 15
    shown["model"] = shown["model"].map(short_labels(models))
    panels = {test: shown[shown["test"] == test] for test in measures.TESTS}
    figure = report.dot_rows(panels, "model", "method", "accuracy")
    choice = cells[cells["test"] == measures.TESTS[-1]]
    wide = choice.pivot(index=["model", "relation"], columns="method", values="accuracy")
    for key, other in (("prompts", "HGP"), ("plain", "plain sentence")):
        if other in wide:
            found[key] = measures.by_model((wide["ZP-LKE"] - wide[other]).dropna(), models)
    return Artifact("zplke/figure5", frame, check("zplke/figure5", **found), figure)


def relations_figure(name: str, cells: pd.DataFrame, facts: Facts) -> Artifact:
    """Figures 14 (response, lenient) and 15 (multiple choice): accuracies by relation."""
    test = {"zplke/figure14": "response, lenient", "zplke/figure15": "multiple choice"}[name]
    frame = cells[cells["test"].str.startswith(test.split(",")[0])]
    counts = frame["relation"].map(facts.facts["relation"].value_counts())
    frame = frame.assign(relation=frame["relation"].map(_names(facts)))
    frame["accuracy low"], frame["accuracy high"] = stats.wilson(frame["accuracy"] * counts, counts)
    rows = report.marks(frame[frame["test"] == test], "accuracy")
    best = rows[rows["method"] == "ZP-LKE"].groupby("relation")["value"].mean()
    rows["best"], rows["method"] = rows["relation"].map(best), pd.Categorical(rows["method"], ORDER)
    rows = rows.sort_values(["best", "relation", "method"], ascending=[False, True, True])
    rows["relation"] = rows["relation"].map(_cut)
    labels = short_labels(cells.attrs["models"])
    panels = {label: rows[rows["model"] == model] for model, label in labels.items()}
    label = f"accuracy, {counts.min()}{' or more' * (counts.nunique() > 1)} facts per relation"
    figure = report.dot_rows(panels, "relation", "method", label, side=2)
    own = cells[cells["test"] == test]
    found, missed = {}, scores.NO_TEXT if name == "zplke/figure14" else ""
    for key, other in {"prompts": "HGP", "few": "few-shot HGP"}.items():
        ahead = measures.relations_ahead(own, other)
        found[key] = _missed(ahead, missed, ahead.index)
    return Artifact(name, frame, check(name, **found), figure)


def figure6(measured: pd.DataFrame, facts: Facts) -> Artifact:
    """Dots of one relation's accuracy, one row per separator (``measures.by_separator``)."""
    frame, (title,) = measures.by_separator(measured), facts.relations["name"]
    rows = report.marks(frame, "accuracy").assign(method="accuracy")
    rows["between"] = rows["between"].map(_cut)
    labels = short_labels(frame["model"])
    panels = {label: rows[rows["model"] == model] for model, label in labels.items()}
    label = f"accuracy on {title}, {frame['size'].max()} facts"
    figure = report.dot_rows(panels, "between", "method", label, side=2)
    words = frame[frame["between"] != "a blank"]
    words = words.assign(case=words["model"] + ", " + words["between"])
    claims = check("zplke/figure6", words=cases(words, "change", "case", "size"))
    return Artifact("zplke/figure6", frame, claims, figure)


def table4(facts: Facts, pool: Facts) -> Artifact:
    """The relations: facts, options, chance, and facts in the pool of examples."""
    table = facts.relations[["relation", "name"]].merge(chance_levels(facts), on="relation")
    in_pool = table["relation"].map(pool.facts["relation"].value_counts()).fillna(0).astype(int)
    return Artifact("zplke/table4", table.assign(pool=in_pool))


def table5(facts: Facts, options: pd.DataFrame) -> Artifact:
    """Two facts each of two relations with their first wrong options; the second has years."""
    rows = facts.facts.assign(label=facts.label(facts.facts["object"]))
    years = rows["label"].str.isdecimal().groupby(rows["relation"]).all()
    order = pd.Series([*years.index[years], *rows["relation"].drop_duplicates()])
    first = rows["relation"].iloc[0]
    sample = rows[rows["relation"].isin([first, *order[order != first][:1]])]
    sample = sample.groupby("relation", sort=False).head(2)
    wrong = options[options["candidate"] != options["fact"].map(rows.set_index("fact")["object"])]
    listed = wrong.groupby("fact")["label"].agg(lambda labels: ", ".join([*labels[:5], "..."]))
    table = {"Relation": sample["relation"].map(_names(facts))}
    table |= {"Subject": facts.label(sample["subject"]), "Object": sample["label"]}
    table["Multiple choices"] = sample["fact"].map(listed)
    return Artifact("zplke/table5", pd.DataFrame(table))


def table8(measured: pd.DataFrame, described: pd.DataFrame, exposures=None) -> Artifact:
    """``measures.leaderboard``. ``exposures``: fact -> how often it was taught, if known."""
    table, about = measures.leaderboard(measured, exposures), described.set_index("model")
    table.insert(2, "kind", table["model"].map(about["kind"]))
    base = table[table["kind"] == "base"]
    size = np.log(base["model"].map(about["parameters"]).astype(float))
    larger = stats.pearson_over_models(size, base["accuracy"], base["model"].map(family))
    claims = check("zplke/table8", larger=larger)
    best = {"accuracy": "max"} if table["p (Holm)"].iloc[0] < 0.05 else {}
    return Artifact("zplke/table8", table, claims, best=best)


def table9(facts: Facts, rules, matrix, measured, exposures=None) -> Artifact:
    """The relations by mean accuracy, beside rules that need no model (``measures.guessers``).
    ``matrix``: ``measures.accuracy_matrix`` of the base models; ``measured``: all models;
    ``exposures``, as in ``table8``, add ``exposure``, the mean of log2(1 + count) over facts."""
    table = facts.relations[["relation", "name"]].set_index("relation")
    table = table.join(rules.drop(columns="best rule"))
    every = measures.accuracies(measured).groupby(["relation", "model"])["accuracy"].sum().unstack()
    base = [model for model in measured["model"].unique() if model in matrix.index]
    table["base"], table["all"] = every[base].mean(axis=1), every.mean(axis=1)
    own = measured[measured["model"].isin(base)].groupby(["relation", "fact"])["correct"].mean()
    ends = own.groupby("relation").agg(stats.mean_interval)
    table["base low"], table["base high"] = ends.str[0], ends.str[1]
    rule = rules["best rule"].reindex(table.index)
    found = {"guessed": stats.pearson(rule, table["base"])}
    if exposures is not None:
        logs = np.log2(1 + facts.facts["fact"].map(exposures))
        table["exposure"] = logs.groupby(facts.facts["relation"]).mean()
        found["taught"] = stats.partial(table["exposure"], table["base"], rule)
    table = table.reset_index().sort_values("base", ignore_index=True, **stats.BEST_FIRST)
    table.insert(0, "order", table.index + 1)
    return Artifact("zplke/table9", table, check("zplke/table9", **found))


def table10(matrix: pd.DataFrame, facts: Facts) -> Artifact:
    """The three best and worst relations of every base model, and the number tied with them."""
    titles, rows, n = _names(facts), [], 3
    for model, accuracy in matrix.iterrows():
        row = {"model": model}
        for kind in ("best", "worst"):
            ranked = accuracy.sort_values(ascending=kind == "worst", kind="stable")
            for i, (relation, value) in enumerate(ranked[:n].items(), 1):
                row |= {f"{kind} {i}": titles[relation], f"accuracy {kind} {i}": value}
            row[f"{kind}: tied"] = int((ranked[n:] == ranked.iloc[min(n, len(ranked)) - 1]).sum())
        rows.append(row)
    return Artifact("zplke/table10", pd.DataFrame(rows))


def _heat(axis, table: pd.DataFrame, low: float, rows=(), columns=(), high=1) -> None:
    """A heat map with white lines between the families of ``rows`` and ``columns``."""
    report.heat(axis, table, low, high, "viridis")
    for models, line in ((rows, axis.axhline), (columns, axis.axvline)):
        own = [family(model) for model in models]
        for at in [i for i in range(1, len(own)) if own[i] != own[i - 1]]:
            line(at - 0.5, color="white", linewidth=1)
    axis.tick_params(axis="x", rotation=90)
    axis.tick_params(labelsize=SMALL, left=False, bottom=False, top=False)


def figure7(matrix: pd.DataFrame, facts: Facts, rule: pd.Series) -> Artifact:
    """Heat map of ``measures.accuracy_matrix``, beside the best ``rule`` without a model."""
    means, called = matrix.mean().sort_values(**stats.BEST_FIRST), _names(facts)
    shown = matrix.rename(index=short_labels(matrix.index)).T.loc[means.index]
    shown = shown.assign(**{"best rule": rule})
    shown.index = [_cut(called[r], width=50) for r in means.index]
    width = 0.1 + 0.05 * shown.index.str.len().max() + 0.165 * shown.shape[1]  # names, cells
    figure, axes = report.subplots(max(report.COLUMN, width), 1.0 + 0.135 * len(shown))
    _heat(axes[0, 0], shown, 0, columns=[*matrix.index, "rule"], high=shown.max(axis=None))
    axes[0, 0].xaxis.tick_top()
    axes[0, 0].set_xticks(range(shown.shape[1]), shown.columns, ha="left")
    sizes, differ = facts.facts["relation"].value_counts()[matrix.columns], {}
    for model, accuracy in matrix.iterrows():
        low, high = stats.wilson(accuracy * sizes, sizes)
        differ[model] = stats.heterogeneity(accuracy, (high - low) / (2 * 1.96))
    claims = check("zplke/figure7", differ=pd.DataFrame(differ).T)
    return Artifact("zplke/figure7", matrix.rename_axis("model").reset_index(), claims, figure)


def figure8(matrix: pd.DataFrame, rule: pd.Series) -> Artifact:
    """Heat maps of ``measures.family_correlations``, of accuracies and given ``rule`` (partial)."""
    slope = lambda own: np.polyfit(rule[own.dropna().index], own.dropna(), 1)[0]
    residuals = matrix.apply(lambda own: own - slope(own) * rule[matrix.columns], axis=1)
    versions = {"r": matrix, "r given the best rule": residuals}
    tables = {k: measures.family_correlations(own, family) for k, own in versions.items()}
    long = {k: t.rename_axis(columns="b").stack(future_stack=True) for k, t in tables.items()}
    long = pd.DataFrame(long).reset_index()
    if len(tables["r"]) < 2:
        return report.lacking("zplke/figure8", long)
    n, lowest = len(tables["r"]), min(0, *(table.min(axis=None) for table in tables.values()))
    short, width = short_labels(tables["r"].index), max(report.COLUMN, 0.9 + 0.6 * n)
    figure, axes = report.subplots(width, 1.1 + 0.3 * n, 1, 2, sharey=True)
    for axis, (title, table) in zip(axes.flat, tables.items(), strict=True):
        _heat(axis, table.rename(index=short, columns=short), lowest)
        axis.set_title(title, fontsize=7)
    agree, beyond = (measures.between_families(own, family) for own in versions.values())
    claims = check("zplke/figure8", agree=agree, beyond=beyond)
    return Artifact("zplke/figure8", long, claims, figure)


def figure16(matrix: pd.DataFrame) -> Artifact:
    """Heat map of Pearson's r of every pair of models over relations; NaN for fewer than three."""
    pairs = matrix.T.corr(min_periods=3)
    if len(pairs) < 3:
        return report.lacking("zplke/figure16", pairs.rename_axis("model").reset_index())
    short, other = short_labels(pairs.index), pairs.where(~np.eye(len(pairs), dtype=bool))
    size, lowest = 0.8 + 0.21 * len(pairs), min(0, other.min(axis=None))
    figure, ((axis,),) = report.subplots(max(report.COLUMN, 0.2 + size), size)
    _heat(axis, other.rename(index=short, columns=short), lowest, pairs.index, pairs.index)
    return Artifact("zplke/figure16", pairs.rename_axis("model").reset_index(), figure=figure)


def table2(measured: pd.DataFrame, matrix: pd.DataFrame, described: pd.DataFrame) -> Artifact:
    """``measures.subsumptions`` of the smallest and largest model of each family of ``matrix``."""
    sizes = described.set_index("model")["parameters"][matrix.index]
    groups = sizes.groupby(matrix.index.map(family), sort=False)
    ends = [(own.idxmin(), own.idxmax()) for _, own in groups if own.nunique() > 1]
    table = _rates(measured, ends, {"smaller": "smallest", "larger": "largest"})
    if not ends:
        return report.lacking("zplke/table2", table)
    table.insert(0, "family", table["smallest"].map(family))
    first = table[table["draw"] == 1]
    lacks, shares = (cases(first, name, "family", "relations") for name in measures.GAPS[::-1])
    return Artifact("zplke/table2", table, check("zplke/table2", lacks=lacks, shares=shares))


def _rates(measured: pd.DataFrame, pairs, titles: dict[str, str]) -> pd.DataFrame:
    """``measures.subsumptions`` with the accuracies of both models over all draws."""
    mean = measures.accuracies(measured).groupby("model")["accuracy"].mean()
    table, front = measures.subsumptions(measured, pairs), {}
    for which, title in titles.items():
        front |= {title: table[which], f"accuracy of {title}": table[which].map(mean)}
    return pd.DataFrame(front).join(table.drop(columns=list(titles)))


def table11(measured: pd.DataFrame, base_of: dict[str, str]) -> Artifact:
    """``_rates`` of fine-tuned models and their bases, with McNemar's test on the first draw."""
    pairs = [(tuned, base) for tuned, base in base_of.items() if base]
    table = _rates(measured, pairs, {"larger": "base", "smaller": "tuned"})
    if not pairs:
        return report.lacking("zplke/table11", table)
    tests = dict(zip(dict(pairs), measures.compare(measured, pairs), strict=True))
    table["p (Holm)"] = table["tuned"].map(tests).where(table["draw"] == 1)
    known = cases(table[table["draw"] == 1], "eta", "tuned", "relations")
    return Artifact("zplke/table11", table, check("zplke/table11", known=known))


def figure9(measured: pd.DataFrame, base_of: dict[str, str]) -> Artifact:
    """Accuracies of base and fine-tuned models, and their differences, paired by relation."""
    by_relation = measures.accuracies(measured).set_index(["model", "relation"])["accuracy"]
    rows = []
    for tuned, base in [pair for pair in base_of.items() if pair[1]]:
        before, after, row = by_relation[base], by_relation[tuned], {"base": base, "tuned": tuned}
        for name, values in zip(TUNING, (before, after, after - before), strict=True):
            row |= measures.bounds(name, values.mean(), stats.mean_interval(values))
        rows.append(row | {"relations": len(before)})
    frame = pd.DataFrame(rows, columns=None if rows else ["base", "tuned"])
    if frame.empty:
        return report.lacking("zplke/figure9", frame)
    named = frame.assign(model=list(short_labels(frame["tuned"]).values()))
    base, tuned, difference = (report.marks(named, name).assign(of=name) for name in TUNING)
    panels = {"accuracy": pd.concat([base, tuned]), "fine-tuned minus base": difference}
    figure = report.dot_rows(panels, "model", "of", "accuracy, and its difference", level=0)
    claims = check("zplke/figure9", lower=cases(frame, "difference", "tuned", "relations"))
    return Artifact("zplke/figure9", frame, claims, figure)
