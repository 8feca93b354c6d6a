"""ZP-LKE's tables: measured numbers in, ``report.Artifact`` out."""

import numpy as np
import pandas as pd

from probelib.facts import Facts, pick
from probelib.facts.options import chance_levels
from probelib.published import table as published
from probelib.report import family, span, with_interval
from probelib.report.legacy import Artifact
from probelib.stats import holm, in_words, kendall, levelled, mean_interval, partial, pearson, wilson
from probelib.zplke import measures
from probelib.zplke.prompts import PROMPTED, TEMPLATES, used_templates

FULL = 100  # options of the paper's multiple-choice test


# ---- section 3: how many examples, and which?


def telling_fact(answers: pd.DataFrame, facts: Facts) -> Facts:
    """The fact that shows the effect of examples best: the model answers it after four correct ones, and after as few other
    inputs as possible; of ties the first.

    answers   ``measures.answers_of_inputs`` of several facts
    """
    after_four = answers[(answers["role"] == "zp") & (answers["context"] == "4 correct")].set_index("fact")["right"]
    others = answers.groupby("fact")["right"].sum()
    order = pd.DataFrame({"missed": ~after_four.astype(bool), "others": others}).reindex(facts.facts["fact"])
    return pick(facts, [order.sort_values(["missed", "others"], kind="stable").index[0]])


def table1(answers: pd.DataFrame, fact: Facts, model: str) -> Artifact:
    """The next tokens after eight inputs for one fact, and for how many facts each kind of input is right.

    answers   ``measures.answers_of_inputs`` of several facts, ``fact`` among them
    """
    counts, n = measures.right_by_input(answers), answers["fact"].nunique()
    own = answers[answers["fact"].isin(fact.facts["fact"])]
    table = own[["estimator", "context", "text", "output", "right"]].rename(columns={"right": "right here"})
    totals = counts[["estimator", "context", "right", "low", "high"]].rename(columns={"right": f"right of {n}"})
    table = table.merge(totals, on=["estimator", "context"]).rename(columns={"context": "examples", "text": "input"})
    caption = (
        f"The next 8 tokens (greedy) of {model} after prompted and zero-prompt inputs for one fact; right here: they begin with "
        f"{fact.label(fact.facts['object'])[0]}. Examples are correct, incorrect (another object) or unknown (an invented "
        f"subject). The fact shown is, of {n}, one for which the examples make the largest difference; right of {n}: facts that "
        "the same kind of input gets right, in brackets the 95 % Wilson interval of their number."
    )
    shown = table.drop(columns=["low", "high"])
    ends = zip(table[f"right of {n}"], n * table["low"], n * table["high"], strict=True)
    shown[f"right of {n}"] = [f"{right} [{low:.0f}, {high:.0f}]" for right, low, high in ends]
    decimals, printed = {"low": 2, "high": 2}, published("zplke/table1")
    return Artifact(
        "zplke/table1", table, caption, finding1(counts, n), published=printed, decimals=decimals, shown=shown
    )


def finding1(counts: pd.DataFrame, n: int) -> str:
    """The number of ``n`` facts that each input gets right (``measures.right_by_input``), and whether that agrees with the
    paper."""
    groups = counts.groupby("estimator", sort=False)
    listed = [f"{kind} " + ", ".join(f"{r.context} {r.right}" for r in rows.itertuples()) for kind, rows in groups]
    worse = counts[(counts["p (Holm)"] < 0.05) & (counts["lost"] > counts["gained"])]
    worse = worse[~worse["context"].isin(["none", "1 correct"])]
    prompted, lists = (
        worse.loc[worse["estimator"] == kind, "context"].tolist() for kind in ("prompted", "zero-prompt")
    )
    sentence = "As in the paper, incorrect or unknown examples do not significantly harm the sentence"
    if prompted:
        sentence = f"Unlike in the paper, the sentence gets fewer facts right after {' and '.join(prompted)} examples"
    pairs = "unlike in the paper, incorrect or unknown pairs do not significantly harm the list"
    if lists:
        pairs = f"as in the paper, the list gets fewer facts right after {' and '.join(lists)} pairs"
    return f"Right answers for {n} facts: {'; '.join(listed)}. {sentence}; {pairs} (McNemar, Holm)."


def table3(everything: Facts, atlas: Facts) -> Artifact:
    """Six facts of the relation. ``atlas``: all its facts, with years (K1) and fields (P166) of the laureates' prizes."""
    others = atlas.facts
    prize, field = (  # a laureate of two prizes has two of each
        others[others["relation"] == r].groupby("subject")["object"].agg(", ".join) for r in ("K1", "P166")
    )
    subjects = everything.facts.head(6)
    table = pd.DataFrame(
        {
            "Name": everything.label(subjects["subject"]),
            "Birth year": everything.label(subjects["object"]),
            "Award year": subjects["subject"].map(prize).tolist(),
            "Nature of award": subjects["subject"].map(field).tolist(),
        }
    )
    n, relation = len(everything.facts), everything.relations["name"].iloc[0]
    caption = (
        f"The first of {n} facts of the relation {relation}, in the atlas's order (grouped by award), not a random sample; a "
        "dash: not in the atlas. The paper's table also has the gender, which the atlas does not hold."
    )
    return Artifact("zplke/table3", table, caption, published=published("zplke/table3"))


def facts_used(everything: Facts, known: Facts, tested: Facts, pool: Facts, note: str = "") -> str:
    """Which facts of the relation are used, in a sentence. ``note``: which relation replaces the paper's."""
    return (
        f"{len(known.facts)} of {len(everything.facts)} facts of *{tested.relations['name'].iloc[0]}* are used: "
        f"{len(tested.facts)} are tested, {len(pool.facts)} may serve as examples. {note}"
    )


def sensitivity(table: pd.DataFrame, measured: pd.DataFrame) -> Artifact:
    """Accuracy under other ways to write pairs or to choose options (``examples.by_decision``). The agreement of rankings is
    shown only if the models of the first row differ by more than the interval of one of them."""
    n, first = measured["fact"].nunique(), table.iloc[0]
    low, high = wilson(round(first.mean() * n), n)
    frame = table.copy()
    caption = (
        f"Accuracy with {measured['shots'].max()} examples on {n} facts (one draw) when pairs are written or options chosen "
        f"otherwise. The 95 % interval of one number near {first.mean():.2f} is {low:.2f} to {high:.2f}."
    )
    if table.shape[1] > 2 and np.ptp(first) > high - low:
        frame["Kendall's tau"] = [kendall(first, row)["tau"] for _, row in table.iterrows()]
        caption += f" Tau: agreement of the ranking of {table.shape[1]} models with that of the first row."
    return Artifact("zplke/sensitivity", frame.reset_index(), caption, finding_sensitivity(table))


def finding_sensitivity(table: pd.DataFrame) -> str:
    """The changes of accuracy by the released code, and the largest change by any other decision."""
    change = table.iloc[1:] - table.iloc[0]
    released, others = change.loc["as released"], change.drop(index="as released")
    most = others.abs().max(axis=1).idxmax()
    model = others.loc[most].abs().idxmax()
    return (
        f"As released, the accuracies change by {released.min():+.2f} to {released.max():+.2f}; the largest change by any other "
        f"decision is {others.loc[most, model]:+.2f} (*{most}*, {model})."
    )


# ---- section 4.1: the prompts


def table6(facts: Facts, tested: Facts) -> Artifact:
    """The prompts. ``tested``: all facts of the data, those of relations without prompts too."""
    used = used_templates(facts)
    table = used.pivot(index=["relation", "number"], columns="role", values="template").reset_index()
    table = facts.relations[["relation", "name"]].merge(table, on="relation").rename(columns=PROMPTED)
    printed = published("zplke/table6")[["relation", "index", "hgp", "mmp"]]
    caption = (
        "The prompts; [X] is the subject. HGP: human-written, MMP: mined (Jiang et al. 2020), as the paper prints them; a dash: "
        "none. One HGP of the paper (languages spoken, *in order to communicate in*) has no slot for the subject and is left out."
    )
    left_out = sorted(set(tested.relations["relation"]) - set(facts.relations["relation"]))
    return Artifact("zplke/table6", table, caption, finding6(used, len(facts.relations), left_out), published=printed)


def finding6(used: pd.DataFrame, relations: int, left_out: list[str]) -> str:
    """The number of slots for prompts that are filled, and the relations without prompts."""
    slots, filled = TEMPLATES * relations, used["role"].value_counts()
    listed = ", ".join(f"{filled.get(role, 0)} of {slots} {name}" for role, name in PROMPTED.items())
    sentence = f"{relations} relations; slots with a prompt: {listed}."
    return sentence + (f" Left out, for they have no prompts: {', '.join(left_out)}." if left_out else "")


# ---- section 4.2: the data and the models


def table4(facts: Facts, pool: Facts) -> Artifact:
    """The relations: facts, options, chance, and facts in the pool of examples."""
    in_pool = pool.facts["relation"].value_counts()
    table = facts.relations[["relation", "name"]].merge(chance_levels(facts), on="relation")
    table["pool"] = table["relation"].map(in_pool).fillna(0).astype(int)
    few = table[table["options"] < FULL]
    listed = ", ".join(f"{name} ({n:.0f})" for name, n in zip(few["name"], few["options"], strict=True))
    finding = f"{len(few)} of {len(table)} relations offer fewer than {FULL} options: {listed}."
    caption = (
        f"The {len(table)} relations: facts tested, options per fact (with the right one), the share that guessing gets right, "
        "facts in the pool of examples. The paper prints only the names of its 50."
    )
    printed = published("zplke/table9")[["relation"]].sort_values("relation")
    decimals = {"options": 1, "chance": 3}
    return Artifact("zplke/table4", table, caption, finding if len(few) else "", published=printed, decimals=decimals)


def table5(facts: Facts, options: pd.DataFrame) -> Artifact:
    """Two facts each of two relations with their first wrong options; the second relation has years, if one has."""
    first = facts.facts["relation"].iloc[0]
    digits = pd.Series(facts.label(facts.facts["object"])).str.isdecimal().groupby(facts.facts["relation"].to_numpy())
    years = digits.all().loc[lambda all_digits: all_digits].index.difference([first])
    others = [*years, *facts.facts["relation"].drop_duplicates().drop(facts.facts.index[0])]
    sample = facts.facts[facts.facts["relation"].isin([first, *others[:1]])].groupby("relation", sort=False).head(2)
    right = options["fact"].map(dict(zip(facts.facts["fact"], facts.facts["object"], strict=True)))
    wrong = options[options["candidate"] != right]
    listed = {fact: ", ".join(rows["label"].head(5)) + ", ..." for fact, rows in wrong.groupby("fact")}
    table = pd.DataFrame(
        {
            "Relation": sample["relation"].map(names(facts)),
            "Subject": facts.label(sample["subject"]),
            "Object": facts.label(sample["object"]),
            "Multiple choices": sample["fact"].map(listed),
        }
    )
    caption = (
        "Two facts each of two relations, with the first five of their wrong options. The paper also prints the article that "
        "states each fact (Title, Text); the facts here come without articles. Dates are full "
        "in the paper, years here."
    )
    return Artifact("zplke/table5", table, caption)


def table7(models: pd.DataFrame) -> Artifact:
    """The models. ``models``: ``scores.describe``."""
    table, tuned = models.copy(), (models["kind"] == "fine-tuned").sum()
    table.insert(1, "family", table["model"].map(family))
    printed = published("zplke/table7")[["original_name", "simplified_name", "family", "kind", "base_model"]].fillna("")
    base = len(table) - tuned
    caption = f"The {base} base models and {tuned} fine-tuned ones: parameters without embeddings, context in tokens."
    return Artifact("zplke/table7", table, caption, published=printed)


def names(facts: Facts) -> dict[str, str]:
    """Relation -> its name."""
    return dict(zip(facts.relations["relation"], facts.relations["name"], strict=True))


# ---- section 4.2: are the runs sound?


def tokens_saved(work: pd.DataFrame) -> str:
    """A sentence on the tokens that prefix trees save (``measures.forwarding_work``)."""
    saved = work["requested_tokens"].sum() / work["forwarded_tokens"].sum()
    sentence = f"**{saved:,.0f} times** fewer tokens are forwarded than requested"
    in_trees = work.dropna(subset="tree_nodes")
    if in_trees.empty:
        return f"{sentence}."
    per_node = in_trees["forwarded_tokens"].sum() / in_trees["tree_nodes"].sum()
    return f"{sentence}; forwarded tokens per node of the prefix trees: {per_node:.3f}."


def health(measured: pd.DataFrame) -> Artifact:
    """Whether each run is sound (``measures.run_health``)."""
    groups = measured.groupby("model", sort=False)
    table = pd.DataFrame([{"model": model, **measures.run_health(rows)} for model, rows in groups])
    broken = [table["invalid"] > 0, table["below"] < 0.001, table["entropy"] < table["expected"]]
    table["verdict"] = np.select(broken, ["no number", "below chance", "prefers a place"], "sound")
    odd = table[table["verdict"] != "sound"]
    listed = ", ".join(f"{row.model} ({row.verdict})" for row in odd.itertuples())
    finding = (
        f"{len(odd)} of {len(table)} runs are not sound: {listed}." if len(odd) else f"All {len(table)} runs are sound."
    )
    caption = (
        "Health of the runs: accuracy and chance; below: probability of at most this many right answers by guessing; shares of "
        "invalid and tied tests; entropy of the place of the chosen option (1: all places equally often), and its 2.5 % "
        "quantile if places mean nothing (expected)."
    )
    decimals = {"below": 2} | dict.fromkeys(("invalid", "ties", "entropy", "expected"), 4)
    return Artifact("zplke/health", table, caption, finding, decimals=decimals)


# ---- section 4.2.1: different families


def table8(measured: pd.DataFrame, base_of: dict[str, str], exposures: pd.Series | None = None) -> Artifact:
    """The leaderboard (``measures.leaderboard``); ``exposures``: fact -> how often the models were taught it, if known."""
    table = measures.leaderboard(measured, exposures)
    table.insert(2, "kind", np.where(table["model"].isin(base_of), "fine-tuned", "base"))
    caption = (
        f"Mean multiple-choice accuracy over {measured['relation'].nunique()} relations ({about(measured)}) with its 95 % "
        f"bootstrap interval over relations; std: over relations; {'between: over draws; ' * ('between' in table)}p (Holm): "
        "McNemar's test against the next model below (the CSV has the facts lost and gained), with Holm's correction; per token, "
        "pmi: accuracy by two other rules of choice, the mean log-probability per token, and the log-probability minus the "
        "log of the object's mean probability after the other subjects."
        f"{taught_in_words(measured, exposures)}"
    )
    printed = published("zplke/table8")[["rank", "model", "avg_accuracy", "std_dev", "kind"]]
    decimals = {"p": 4, "p (Holm)": 4}
    shown = table.drop(columns=["low", "high", "n", "lost", "gained", "p"])
    shown["accuracy"] = with_interval(table["accuracy"], table["low"], table["high"])
    return Artifact(
        "zplke/table8",
        table,
        caption,
        finding8(table),
        published=printed,
        decimals=decimals,
        best={"accuracy": "max"},
        shown=shown,
    )


def taught_in_words(measured: pd.DataFrame, exposures: pd.Series | None) -> str:
    """The share of the tested facts that was never taught, and the number taught often, for a caption; "" if unknown."""
    if exposures is None:
        return ""
    counts = measured["fact"].drop_duplicates().map(exposures).fillna(0)
    often = (counts >= measures.OFTEN).sum()
    return (
        f" {(counts == 0).mean():.0%} of the facts were never taught to these models, so none of them can know those; taught "
        f"{measures.OFTEN}+: accuracy over the {often} facts taught {measures.OFTEN} times or more."
    )


def finding8(table: pd.DataFrame) -> str:
    """The best model, and how many pairs of neighbours on the leaderboard do not differ significantly.

    >>> finding8(pd.DataFrame({"model": ["a", "b"], "accuracy": [0.5, 0.4], "low": 0.3, "high": 0.6, "p (Holm)": [0.2, None],
    ...                        "kind": "base"}))
    'Best: **a** with 0.500 [0.300, 0.600]; 1 of 1 neighbouring pairs are not significantly different (McNemar, Holm, p ≥ 0.05).'
    """
    best = table.iloc[0]
    unclear = int((table["p (Holm)"] >= 0.05).sum())
    column = f"taught {measures.OFTEN}+"
    often = f" ({best[column]:.2f} of the facts taught {measures.OFTEN} times or more)" if column in table else ""
    return (
        f"Best: **{best['model']}** with {best['accuracy']:.3f} {span(best['low'], best['high'], '.3f')}{often}; {unclear} of "
        f"{len(table) - 1} neighbouring pairs are not significantly different (McNemar, Holm, p ≥ 0.05)."
    )


def about(measured: pd.DataFrame) -> str:
    """What was measured: number of facts, examples and draws, for a caption."""
    shots, draws = int(measured["shots"].max()), measured.loc[measured["shots"] > 0, "seed"].nunique()
    return f"{measured['fact'].nunique()} facts, {shots} examples, {draws} {'draw' if draws == 1 else 'draws'}"


def table9(facts: Facts, rules: pd.DataFrame, matrix: pd.DataFrame, measured: pd.DataFrame) -> Artifact:
    """The relations by mean accuracy, beside rules that need no model.

    rules    ``without_model``
    matrix   ``measures.accuracy_matrix`` of the base models;   measured: ``measures.measure`` of all models
    """
    table = facts.relations[["relation", "name"]].set_index("relation").join(rules.drop(columns="best rule"))
    groups = measures.accuracies(measured).groupby("model", sort=False)
    every = pd.DataFrame({model: rows.set_index("relation")["accuracy"] for model, rows in groups})
    base = every[[model for model in every if model in matrix.index]].mean(axis=1)
    own = measured[measured["model"].isin(matrix.index)]
    ends = own.groupby(["relation", "fact"])["correct"].mean().groupby("relation").agg(mean_interval)
    low, high = ends.str[0], ends.str[1]
    table = table.assign(base=base, all=every.mean(axis=1), low=low, high=high).reset_index()
    table = table.sort_values("base", ascending=False, key=levelled, kind="stable", ignore_index=True)
    table.insert(0, "order", table.index + 1)
    sizes = table["relation"].map(facts.facts["relation"].value_counts())
    noise = np.sqrt((table["base"] * (1 - table["base"]) / sizes).mean())
    each = f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"
    caption = (
        f"Relations by mean accuracy over the {len(matrix)} base models (base) on {each} facts per relation, with its 95 % "
        f"bootstrap interval over facts; all: mean over all {every.shape[1]} models, with the fine-tuned ones. Three columns "
        "are the accuracy of rules without a model: chance guesses among the options; copy takes the longest option whose "
        "name is part of the subject's name, and guesses without one; majority takes the option that is most often the object "
        "of an example, and guesses without one. in_subject, in_examples: share of facts whose object is part of the subject, "
        "or is an example's object. Means over draws of examples. How well the shipped models were taught a relation was drawn "
        "at random, so no agreement with the paper's order of relations is expected of them."
    )
    finding = (
        f"Relations differ by a standard deviation of {table['base'].std():.3f} (paper: "
        f"{published('zplke/table9')['avg_accuracy'].std():.3f}); "
        f"the draw of {sizes.median():.0f} facts per relation alone gives at most {noise:.3f}. {finding9(table)}"
    )
    shown = table.drop(columns=["low", "high"])
    shown["base"] = with_interval(table["base"], table["low"], table["high"])
    return Artifact("zplke/table9", table, caption, finding, published=published("zplke/table9"), shown=shown)


def without_model(facts: Facts, options: pd.DataFrame, examples: pd.DataFrame) -> pd.DataFrame:
    """Baselines without a model, per relation: ``chance``, ``measures.guessers`` (mean over facts and draws of examples) and
    ``best rule``, the highest of chance, copy and majority.

    options, examples   the options that the models chose from, and the examples in their lists
    """
    rows = facts.facts.assign(subject=facts.label(facts.facts["subject"]), gold=facts.facts["object"])
    rows = rows[["fact", "relation", "subject", "gold"]]
    draws = [measures.guessers(options, rows, own) for _, own in examples.groupby("seed")]
    rules = pd.concat(draws).drop(columns="fact").groupby("relation", sort=False).mean()
    rules = chance_levels(facts).set_index("relation")[["chance"]].join(rules)
    return rules.assign(**{"best rule": rules[["chance", "copy", "majority"]].max(axis=1)})


def finding9(table: pd.DataFrame) -> str:
    """How well the best rule without a model predicts the order of the relations, and where the models do not beat it."""
    rule = table[["chance", "copy", "majority"]].max(axis=1)
    order, beaten = pearson(rule, table["base"]), table[table["base"] <= rule]
    guessed = f"Accuracy against that of the best rule without a model: {in_words(order, 'relations')}"
    if order["low"] > 0:
        guessed += ", so the order of relations is partly that of how easily they are guessed"
    if beaten.empty:
        return f"{guessed}. In all {len(table)} relations the base models are on average better than that rule."
    return (
        f"{guessed}. In {len(beaten)} of {len(table)} relations the base models are on average no better than that rule "
        f"({', '.join(beaten['name'])})."
    )


def known_where_taught(facts: Facts, matrix: pd.DataFrame, rules: pd.DataFrame, exposures: pd.Series | None) -> str:
    """Whether relations are well known where their facts were taught.

    exposures   fact -> how often the models were taught it; None if unknown;   rules: ``without_model``
    """
    if exposures is None:
        return "How often these models were taught these facts is not known."
    taught = facts.facts.assign(n=facts.facts["fact"].map(exposures)).groupby("relation")["n"]
    never, often = taught.agg(lambda n: (n == 0).mean()), taught.agg(lambda n: np.log2(1 + n).mean())
    often, mean, rule = often[matrix.columns], matrix.mean(), rules.loc[matrix.columns, "best rule"]
    return (
        f"Per relation {never.min():.0%} to {never.max():.0%} of the facts were never taught to these models. Mean log exposure "
        f"count of a relation's facts against its mean accuracy: {in_words(pearson(often, mean), 'relations')}; given the best "
        f"rule without a model: {in_words(partial(often, mean, rule), 'relations')}."
    )


def table10(matrix: pd.DataFrame, facts: Facts, rules: pd.DataFrame, n: int = 3) -> Artifact:
    """The best and worst relations of every base model; ``rules``: ``without_model``."""
    titles, rows = names(facts), []
    for model, accuracy in matrix.iterrows():
        row = {"model": model}
        for kind in ("best", "worst"):
            ranked = accuracy.sort_values(ascending=kind == "worst", kind="stable")
            for i, (relation, value) in enumerate(ranked[:n].items(), 1):
                row |= {f"{kind} {i}": titles[relation], f"accuracy {kind} {i}": value}
            row[f"{kind}: tied"] = int((ranked[n:] == ranked.iloc[min(n, len(ranked)) - 1]).sum())
        rows.append(row)
    each = int(facts.facts["relation"].value_counts().median())
    low, high = wilson(round(each / 2), each)
    caption = (
        "The three relations that each base model knows best and worst, with its accuracy on them; tied: relations "
        "that have the same "
        f"accuracy as the third, but are not listed. {each} facts per relation: the 95 % interval of an accuracy of 0.5 "
        f"is {low:.2f} to {high:.2f}."
    )
    printed = published("zplke/table10").pivot(index="model", columns="order", values="relation").reset_index()
    frame = pd.DataFrame(rows)
    decimals = dict.fromkeys(frame.columns[frame.columns.str.startswith("accuracy")], 2)
    finding = finding10(frame, rules["best rule"].rename(titles), n)
    printed, shown = printed.rename(columns=str), frame[["model"]].copy()
    for kind in ("best", "worst"):
        for i in range(1, min(n, matrix.shape[1]) + 1):
            pairs = zip(frame[f"{kind} {i}"], frame[f"accuracy {kind} {i}"], strict=True)
            shown[f"{kind} {i}"] = [f"{name} ({value:.2f})" for name, value in pairs]
        shown[f"{kind}: tied"] = frame[f"{kind}: tied"]
    return Artifact("zplke/table10", frame, caption, finding, published=printed, decimals=decimals, shown=shown)


def finding10(table: pd.DataFrame, rule: pd.Series, n: int) -> str:
    """The relations that are most often among the best, how easily they are guessed, and ties among the worst.

    rule   name of a relation -> accuracy of the best rule without a model
    """
    best = table[[f"best {i}" for i in range(1, n + 1) if f"best {i}" in table]].stack().value_counts()
    place = rule.rank(ascending=False, method="min").astype(int)
    listed = " and ".join(
        f"*{name}* ({best[name]} models; place {place[name]} of {len(rule)} by the best rule without a model)"
        for name in best.index[:2]
    )
    tied = (table["worst: tied"] > 0).sum()
    return (
        f"Most often among the best {n} relations of {len(table)} models: {listed}. In {tied} models the worst {n} are tied with "
        "further relations."
    )


# ---- section 4.2.2: within one family


def table2(measured: pd.DataFrame, matrix: pd.DataFrame, models: pd.DataFrame) -> Artifact:
    """Smallest and largest model of each family: eta and its ceiling (``measures.subsumptions``).

    matrix   ``measures.accuracy_matrix`` of the base models;   models: ``scores.describe``
    """
    ends, means = family_ends(matrix.index, models), matrix.mean(axis=1)
    rates = measures.subsumptions(measured, ends.values())
    table = pd.DataFrame({"family": list(ends)}, dtype=object)
    for at, (model, accuracy) in enumerate((("smallest", "accuracy"), ("largest", "accuracy of it"))):
        own = [pair[at] for pair in ends.values()]
        table[model], table[accuracy] = own, means[own].to_numpy()
    caption = (
        "Smallest and largest model of each family: accuracies over all draws of examples, the rest on the first draw; eta: "
        "P(large knows | small knows), mean over relations, with its 95 % bootstrap interval over relations; expected: the same "
        "for independent models; reversed: P(small | large); relations: where the small one knows a fact. A fact is known if the "
        "right option is chosen."
    )
    table = table.join(rates)
    if "ceiling" in rates:
        caption += " Ceiling: eta of the small model with itself under another draw of examples."
    finding = finding2(table, measures.chance(measured))
    shown = shown_rates(table, "smallest", "largest")
    return Artifact("zplke/table2", table, caption, finding, published=published("zplke/table2"), shown=shown)


def shown_rates(table: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """Tables 2 and 11 for print: accuracies named after the ``first`` and the ``second`` model, eta with its interval."""
    shown = table.drop(columns=["low", "high", "jaccard", "pooled", "of"])
    shown = shown.rename(columns={"accuracy": f"accuracy ({first})", "accuracy of it": f"accuracy ({second})"})
    shown["eta"] = with_interval(table["eta"], table["low"], table["high"])
    return shown.assign(relations=[f"{k} of {n}" for k, n in zip(table["relations"], table["of"], strict=True)])


def family_ends(models, described: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Family -> its (smallest, largest) model, for families of two and more."""
    size, families = described.set_index("model")["parameters"], {}
    for model in models:
        families.setdefault(family(model), []).append(model)
    return {name: (min(own, key=size.get), max(own, key=size.get)) for name, own in families.items() if len(own) > 1}


def finding2(table: pd.DataFrame, chance: float) -> str:
    """Eta compared with independent models and with the other direction, per family. ``chance``: the share that guessing gets
    right; such answers of the small model need not be known to the large one."""
    if table.empty:
        return "No family has two models here, so there is no smallest and largest."
    rows = [
        f"{row.family}: η = {row.eta:.2f} {span(row.low, row.high)}, independent models {row.expected:.2f}, reversed "
        f"{row.reversed:.2f}"
        for row in table.itertuples()
    ]
    guessed = (chance / table["accuracy"]).clip(upper=1)  # at most this share of its right answers is guessed
    above, below = (table["low"] > table["expected"]).sum(), (table["high"] < 1 - guessed).sum()
    return (
        f"{'; '.join(rows)}. In {below} of {len(table)} families the large model does not know all that the small one knows, as "
        f"in the paper (guessing, which gives at most {guessed.max():.0%} of a small model's right answers, is allowed for); in "
        f"{above} it knows more of it than independent models would."
    )


def table11(measured: pd.DataFrame, base_of: dict[str, str]) -> Artifact:
    """Base models and their fine-tuned versions: eta, and McNemar's test."""
    pairs = [(base, tuned) for tuned, base in base_of.items() if base]
    mean = measures.accuracies(measured).groupby("model")["accuracy"].mean()
    rates = measures.subsumptions(measured, [(tuned, base) for base, tuned in pairs])
    rates = rates.drop(columns="ceiling", errors="ignore")
    table = pd.DataFrame(pairs, columns=["base", "tuned"])
    table.insert(1, "accuracy", table["base"].map(mean))
    table = table.assign(**{"accuracy of it": table["tuned"].map(mean)}).join(rates)
    table["p"] = [measures.compare(measured, *pair)["p"] for pair in pairs]
    table["p (Holm)"] = holm(table["p"])
    caption = (
        "Base models and fine-tuned ones: accuracies over all draws of examples, the rest on the first draw; eta: share of the "
        "tuned model's facts that its base knows; the rest as in table 2; p (Holm): McNemar's exact test of base against tuned "
        "on the same facts, with Holm's correction."
    )
    printed, decimals = published("zplke/table11"), {"p": 4, "p (Holm)": 4}
    finding = finding11(table, printed["subsumption_rate"].mean())
    shown = shown_rates(table.drop(columns="p"), "base", "tuned")
    return Artifact("zplke/table11", table, caption, finding, published=printed, decimals=decimals, shown=shown)


def finding11(table: pd.DataFrame, paper: float) -> str:
    """Eta compared with independent models, per pair, beside the mean eta of the ``paper``; and the number of fine-tuned models
    that score below their base."""
    if table.empty:
        return "No fine-tuned model with its base is among the models, so figure 9 and table 11 are empty."
    rows = [
        f"{row.tuned} in {row.base}: η = {row.eta:.2f} {span(row.low, row.high)}, independent models {row.expected:.2f}"
        for row in table.itertuples()
    ]
    worse, clear = (table["accuracy of it"] < table["accuracy"]).sum(), (table["p (Holm)"] < 0.05).sum()
    above = (table["low"] > table["expected"]).sum()
    return (
        f"{'; '.join(rows)} (mean η {table['eta'].mean():.2f}, in the paper {paper:.2f}). In {above} of {len(table)} pairs "
        f"the base knows more of the tuned model's facts than an independent model would. {worse} of {len(table)} fine-tuned "
        f"models score below their base (in the paper 12 of 13); {clear} of the differences are significant (McNemar, Holm, "
        "p < 0.05)."
    )
