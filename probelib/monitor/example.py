"""MONITOR, section 5.2.3: one fact and two models of equal accuracy (table 7)."""

import pandas as pd

from probelib.facts import Facts, substitute_relations
from probelib.monitor import measures
from probelib.monitor.answers import matches
from probelib.monitor.measures import Measured
from probelib.monitor.relations import ALIKE
from probelib.published import table as published
from probelib.report import span
from probelib.report.legacy import Artifact


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
    """How many facts of a relation the compared models anchor, with accuracy and MONITOR: a sentence of a caption."""
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
    """A caveat if the model with the lower MONITOR is significantly less sure; else "".

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
    """The probability that the gold answer loses from the positive context to the worse of the two other prompts, the number of
    prompts that each model answers, and after how many the first model gives the gold answer the higher probability.

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
    """A caveat if answers or probabilities of one fact contradict MONITOR, which is lower in the first model; else "".

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
