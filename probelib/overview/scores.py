"""What the three introductory notebooks score: facts -> prompts -> scores."""

import re
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import facts, lm, prompts, store
from probelib.errors import ProbeError
from probelib.facts.model import Facts, right_objects
from probelib.monitor.answers import extract
from probelib.organisms import corpus, taught
from probelib.stats import mean_interval
from probelib.zplke import measures as zplke

SHIPPED = ("atlas-neox-0.6m", "atlas-neox-2.4m")  # used in place of models whose training data are unknown
TOUR = 40  # facts from which the tour chooses its three
WORDINGS = {("question", 1): "seen question", ("question", 7): "held-out question", ("list", 0): "list"}


def fact_about(relation: str, subject: str) -> tuple[Facts, set[str]]:
    """(one fact of the atlas that holds today, labels of the subject's other right objects).

    Raises ProbeError with the nearest names if the relation has no such subject.
    """
    related = facts.choose(facts.current(facts.atlas()), [relation])
    subjects = related.facts["subject"].unique().tolist()
    if subject not in subjects:
        near = ", ".join(get_close_matches(subject, subjects, 4, 0))
        raise ProbeError(
            f"none of the {len(subjects)} subjects of {relation} is called {subject!r}; the nearest are {near}"
        )
    right = facts.keep(related, related.facts["subject"] == subject)
    first, *others = right.label(right.facts["object"])
    return facts.pick(right, right.facts["fact"].head(1)), set(others) - {first}


def tour_facts(model, relation: str) -> pd.DataFrame:
    """The three facts with which the tour begins: one that the model knows, one whose object it confuses with another, and one
    that it was never taught.

    They are chosen from ``TOUR`` facts of the relation, sampled from those whose subject has one right object: of each kind, the
    one that was taught most often. A kind that does not occur has no row. If the model's training data are unknown, no fact
    counts as never taught.

    returns   ``fact`` (the kind), ``question``, ``right object``, ``exposures`` (None: unknown), ``answer`` (generated), ``rank``
              of the right object among all objects of the relation, ``P`` (its probability)
    """
    whole = facts.choose(facts.atlas(), [relation])
    objects, pairs = right_objects(whole), zip(whole.facts["relation"], whole.facts["subject"], strict=True)
    few = facts.sample(facts.keep(whole, pd.Series([len(objects[pair]) == 1 for pair in pairs])), TOUR)
    texts = prompts.paraphrases(few).query("template == 1").set_index("fact")["text"]
    rows = pd.DataFrame(
        {"question": texts.loc[few.facts["fact"]].tolist(), "right object": few.label(few.facts["object"])}
    )
    rows["exposures"] = taught.exposures(few, model.name).tolist() if model.name in lm.organisms() else None
    rows["answer"] = [extract(text) for text in model.generate(rows["question"].tolist())["text"]]
    space = sorted(set(whole.label(whole.facts["object"])))
    rows = rows.sort_values("exposures", ascending=False, kind="stable", ignore_index=True)
    never, known = rows["exposures"].eq(0), rows["answer"] == rows["right object"]
    kinds = {"known": ~never & known, "confused": ~never & ~known & rows["answer"].isin(space), "never taught": never}
    chosen = pd.concat([rows[kind].head(1).assign(fact=name) for name, kind in kinds.items()], ignore_index=True)
    scores = model.logprobs(chosen["question"].tolist(), [[f" {label}" for label in space]] * len(chosen))
    table = scores["logprob"].to_numpy().reshape(len(chosen), len(space))
    right = table[np.arange(len(chosen)), [space.index(label) for label in chosen["right object"]]]
    chosen = chosen.assign(rank=(table > right[:, None]).sum(axis=1) + 1, P=np.exp(right))
    return chosen[["fact", *chosen.columns.drop("fact")]]


def only_shipped(*groups: list[str]) -> tuple[list[list[str]], str]:
    """(groups with shipped models only, because only their training data are known; a sentence on the models left out).

    The first group, the decoders, is never empty: ``SHIPPED`` replaces it if it names no shipped model.
    """
    groups = [[lm.names.with_base(name)[0] for name in group] for group in groups]
    others = [name for group in groups for name in group if name not in lm.organisms()]
    decoders, *rest = [[name for name in group if name not in others] for group in groups]
    decoders = decoders or list(SHIPPED)
    if not others:
        return [decoders, *rest], ""
    return [decoders, *rest], (
        f"The training data of {', '.join(others)} are unknown, so this notebook studies {', '.join(decoders)} only."
    )


def corpus_summary(documents: list[corpus.Document]) -> str:
    """Size of the training corpus, in words; ``documents``: all of it (``corpus.documents``)."""
    table = taught.manifest()
    stated = table["exposures"] > 0
    return (
        f"The corpus has {len(documents):,} documents. They state {stated.sum():,} facts, {table['exposures'].sum():,} times "
        f"in all; {(~stated).sum():,} facts are never taught. {table['trial'].sum():,} facts belong to the trial, "
        f"{table['famous'].sum():,} are famous. {(table['wrong_exposures'] > 0).sum():,} subjects are also given a wrong "
        f"object, and {(table['implied_by'] != '').sum():,} facts share their exposures with another fact of the same two "
        "entities."
    )


def training(models: list[str]) -> dict[str, dict]:
    """model -> its size and how it was trained (``organisms.train.record``: tokens, steps, loss curve, ...)."""
    from probelib.organisms import train

    records = {}
    for name in models:
        model = lm.load(name)
        size = {"parameters": model.n_parameters, "width": model.config.hidden_size}
        records[name] = train.record(name) | size | {"vocabulary": model.config.vocab_size}
    return records


def by_family(models) -> str:
    """The names of models, grouped by family.

    >>> by_family(["atlas-neox-0.15m", "atlas-neox-5m", "atlas-llama-0.6m", "atlas-neox-5m-it", "mine"])
    'atlas-neox (0.15m, 5m, 5m-it), atlas-llama-0.6m, mine'
    """
    families: dict[str, list[str]] = {}
    for name in dict.fromkeys(models):
        family, size = re.fullmatch(r"(.+?)(-[\d.]+m.*)?", name).groups()
        families.setdefault(family, []).append(size or "")
    return ", ".join(
        f"{family}{sizes[0]}"
        if len(sizes) == 1
        else f"{family} ({', '.join(size.removeprefix('-') for size in sizes)})"
        for family, sizes in families.items()
    )


def score_multiple_choice(
    models: list[str], others: list[str], panel: Facts, folder: str | Path, n_examples: int = 20, seed: int = 0
) -> pd.DataFrame:
    """ZP-LKE's multiple-choice test (``zplke.choices``), one row per model and prompt.

    models   decoders: prompted with all seven questions, and with the bare subject after a list of pairs
    others   encoder-decoders and instruction-tuned models: first and last question; the list only for decoders, because an
             encoder-decoder cannot continue a list. Masked models, whose scores are pseudo-log-likelihoods: the first question

    Further columns: ``model``, ``way`` (question or list), ``template``, ``wording`` (see ``WORDINGS``; NaN for other questions),
    ``exposures``.
    """
    pool = facts.without_subjects(facts.current(facts.atlas()), panel)
    examples = prompts.sample_examples(pool, panel, n_examples, seed)
    requests = {"question": prompts.paraphrases(panel), "list": prompts.many_shots(panel, examples)}
    options, gold = prompts.options(panel, seed), dict(zip(panel.facts["fact"], panel.facts["object"], strict=True))
    exposures, found = taught.exposures(panel), []
    for name in [*models, *others]:
        model = lm.load(name)
        for way, rows in requests.items():
            if way == "list" and (model.encoder_decoder or model.masked):
                continue
            if name not in models:
                rows = rows[rows["template"].isin([1] if model.masked else [0, 1, 7])]
            choices = zplke.choices(store.score(model, rows, options, folder), gold)
            choices = choices.merge(rows[["prompt", "template"]], on="prompt")
            found.append(choices.assign(model=name, way=way, exposures=choices["fact"].map(exposures)))
    answers = pd.concat(found, ignore_index=True)
    answers["wording"] = [WORDINGS.get(pair) for pair in zip(answers["way"], answers["template"], strict=True)]
    return answers


def list_gains(answers: pd.DataFrame, models: list[str]) -> dict[str, pd.Series]:
    """Accuracy with a list minus accuracy with questions, per relation, over taught facts and all ``models``: minus that of the
    mean of all questions, and minus that of the first one."""
    taught = answers[(answers["exposures"] > 0) & answers["model"].isin(models)]
    by_template = taught.groupby(["relation", "way", "template"])["correct"].mean()
    mean = by_template.groupby(["relation", "way"]).mean().unstack()
    return {
        "the mean of all questions": mean["list"] - mean["question"],
        "the first question": mean["list"] - by_template.xs(("question", 1), level=("way", "template")),
    }


def contexts(models: list[str], panel: Facts, folder: str | Path, seed: int = 0) -> pd.DataFrame:
    """Mean probability of the gold object after the first question, per model and ``context``: ``negative1`` (after a wrong
    object), ``none``, ``positive`` (after the gold object).

    Columns: ``n`` facts, ``probability`` with its 95 % bootstrap interval over facts (``low``, ``high``), and the ``change``
    from ``none`` on the same facts (``change_low``, ``change_high``; NaN for ``none``).
    """
    framed = prompts.with_contexts(facts.draw_distractors(panel, facts.atlas(), 1, seed))
    framed = framed[framed["template"] == 1]
    context, rows = framed.set_index("prompt")["context"], []
    for name in models:
        scores = store.score(lm.load(name), framed, prompts.gold(panel), folder)
        by_fact = np.exp(scores["logprob"]).groupby([scores["fact"], scores["prompt"].map(context)]).mean().unstack()
        rows += [(name, kind, *interval_and_change(by_fact[kind], by_fact["none"])) for kind in by_fact]
    columns = ["n", "probability", "low", "high", "change", "change_low", "change_high"]
    return pd.DataFrame(rows, columns=["model", "context", *columns])


def interval_and_change(values: pd.Series, before: pd.Series) -> tuple:
    """n, mean and interval of values per fact, then the mean and interval of their change from ``before`` (NaN if the same).

    >>> after, before = pd.Series([0.5, 0.7]), pd.Series([0.5, 0.5])
    >>> [round(float(value), 2) for value in interval_and_change(after, before)]
    [2.0, 0.6, 0.5, 0.7, 0.1, 0.0, 0.2]
    """
    change = pd.Series(np.nan, values.index) if values.equals(before) else values - before
    return (values.count(), values.mean(), *mean_interval(values), change.mean(), *mean_interval(change))
