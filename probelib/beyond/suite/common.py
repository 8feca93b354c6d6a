"""Measures in common use, and controls, which do not test the fact: a measure must beat them."""

from functools import partial

import numpy as np
import pandas as pd

from probelib import prompts, store
from probelib.beyond.questions import tokens_per_fact
from probelib.beyond.suite import measure, shared
from probelib.facts.model import rng

INVENTED = ("Vorlumia", "Tashkelen", "Quendribar")  # subjects that do not exist
WORDS = ("True", "False")


# Scores of the options after questions


def _questions(questions) -> pd.DataFrame:
    """The questions in the paraphrases of ``questions.templates``: a frame of ``prompts``."""
    plain = prompts.paraphrases(questions.choices)
    return plain[plain["template"].isin(questions.templates)].reset_index(drop=True)


def _gold(questions) -> pd.DataFrame:
    return prompts.gold(questions.choices)


def _options(questions) -> pd.DataFrame:
    return prompts.options(questions.choices, questions.seed)


@shared
def option_scores(model, questions, folder) -> pd.DataFrame:
    """Every option after every question: ``store.score``, and ``gold`` (whether it is right)."""
    scores = store.score(model, _questions(questions), _options(questions), folder)
    right = questions.choices.facts.set_index("fact")["object"]
    return scores.assign(gold=scores["candidate"] == scores["fact"].map(right))


def log_probability(scores: pd.DataFrame, per_token: bool = False) -> pd.Series:
    """fact -> mean of log P(right answer | question) over the questions, in nats; per token: the
    length-normalized likelihood of lm-evaluation-harness.

    scores   ``fact``, ``gold``, ``logprob``; one row per question and option

    >>> scores = pd.DataFrame({"fact": "a", "gold": [True, False, True], "logprob": [-1.0, -9, -3]})
    >>> log_probability(scores).to_dict()
    {'a': -2.0}
    """
    gold = scores[scores["gold"]]
    logprob = gold["logprob"] / gold["n_tokens"] if per_token else gold["logprob"]
    return logprob.groupby(gold["fact"], sort=False).mean()


def margin(scores: pd.DataFrame) -> pd.Series:
    """fact -> mean over the questions of log P(right answer) - max over the wrong options of log P,
    in nats.

    >>> scores = pd.DataFrame({"fact": "a", "prompt": "q", "gold": [True, False, False],
    ...                        "logprob": [-1.0, -4.0, -2.5]})
    >>> margin(scores).to_dict()
    {'a': 1.5}
    """
    best = scores.groupby(["fact", "prompt", "gold"], sort=False)["logprob"].max().unstack("gold")
    return (best[True] - best[False]).groupby(level="fact", sort=False).mean()


def reciprocal_rank(scores: pd.DataFrame) -> pd.Series:
    """fact -> mean over the questions of 1 / rank of the right answer; a tie counts as a loss.

    >>> scores = pd.DataFrame({"fact": "a", "prompt": "q", "gold": [True, False, False],
    ...                        "logprob": [-2.0, -1.0, -3.0]})
    >>> reciprocal_rank(scores).to_dict()
    {'a': 0.5}
    """
    rank = scores.groupby("prompt")["logprob"].rank(ascending=False, method="max")
    gold = scores["gold"]
    return (1 / rank[gold]).groupby(scores["fact"][gold], sort=False).mean()


def certainty(scores: pd.DataFrame) -> pd.Series:
    """fact -> mean over the questions of minus the entropy of the normalized probabilities of the
    options, in nats; it ignores which option is right.

    >>> scores = pd.DataFrame({"fact": "a", "prompt": "q", "logprob": [-3.0, -3.0]})
    >>> certainty(scores).round(4).to_dict()
    {'a': -0.6931}
    """
    total = scores.groupby("prompt")["logprob"].transform(np.logaddexp.reduce)
    log_share = scores["logprob"] - total
    parts = (np.exp(log_share) * log_share).groupby([scores["fact"], scores["prompt"]], sort=False)
    return parts.sum().groupby(level="fact", sort=False).mean()


@shared
def priors(model, questions, folder) -> tuple[pd.Series, float]:
    """(fact -> log of the mean probability of the right answer over questions about invented
    subjects, in nats; tokens per fact)."""
    rows = _of_templates(questions).merge(pd.DataFrame({"name": INVENTED}), how="cross")
    named = zip(rows["pattern"], rows["name"], strict=True)
    rows["text"] = [prompts.fill(pattern, name) for pattern, name in named]
    rows["prompt"] = "invented|" + rows["prompt"] + "|" + rows["name"]
    invented, gold = rows[prompts.PROMPTS], _gold(questions)
    by_fact = store.score(model, invented, gold, folder).groupby("fact", sort=False)["logprob"]
    prior = by_fact.agg(np.logaddexp.reduce) - np.log(by_fact.size())
    return prior, tokens_per_fact(model, invented, gold)


def _of_templates(questions) -> pd.DataFrame:
    """Each fact with each question template (``pattern``), without a text."""
    asked = questions.choices
    plain = prompts.templates_of(asked, "question", asked.facts["relation"])
    plain = plain[plain["number"].isin(questions.templates)]
    rows = asked.facts[["fact", "relation"]].merge(plain, on="relation", sort=False)
    ids = rows["fact"] + "|R" + rows["number"].astype(str)
    rows = rows.rename(columns={"template": "pattern", "number": "template"})
    return rows.assign(prompt=ids, context="none", seed=-1)


def _of_options(model, questions, folder, formula, read):
    """A formula of the scores of all options; ``read``: the candidates that it needs."""
    tokens = tokens_per_fact(model, _questions(questions), read(questions))
    return formula(option_scores(model, questions, folder)), tokens


_questioned = {"paper": "beyond", "prompts": "questions", "paraphrased": True}
measure("Log-probability", **_questioned)(partial(_of_options, formula=log_probability, read=_gold))
measure("Log-probability per token", **_questioned)(
    partial(_of_options, formula=partial(log_probability, per_token=True), read=_gold)
)


@measure("PMI", **_questioned)
def mutual_information(model, questions, folder):
    """How much the subject raises log P(right answer) (Holtzman et al. 2021), in nats."""
    before, tokens = priors(model, questions, folder)
    own, more = _of_options(model, questions, folder, log_probability, _gold)
    return own - before, tokens + more


for _name, _formula in {
    "Margin": margin,
    "Reciprocal rank": reciprocal_rank,
    "Certainty": certainty,
}.items():
    measure(_name, **_questioned)(partial(_of_options, formula=_formula, read=_options))


# Generated answers


@shared
def generated(model, questions, folder) -> pd.DataFrame:
    """The greedy answer to every question in every paraphrase (``store.generate``);
    ``.attrs["tokens"]``: tokens per fact."""
    plain = prompts.paraphrases(questions.choices)
    rows = store.generate(model, plain, folder)
    rows.attrs["tokens"] = rows.attrs["cost"]["forwarded_tokens"] / plain["fact"].nunique()
    return rows


def share_of_equal_answers(answers: pd.DataFrame) -> pd.Series:
    """fact -> share of pairs of paraphrases with equal answers (first line, ignoring case); NaN for
    a single paraphrase (ParaRel, Elazar et al. 2021).

    >>> answers = pd.DataFrame({"fact": "a", "text": [" Paris.", " paris.", " Rome."]})
    >>> share_of_equal_answers(answers).round(3).to_dict()
    {'a': 0.333}
    """
    text = answers["text"].str.strip().str.split("\n").str[0].fillna("").str.casefold()
    same = text.groupby([answers["fact"], text], sort=False).size()
    n = answers.groupby("fact", sort=False).size()
    pairs = (n * (n - 1)).where(n > 1)
    return ((same * (same - 1)).groupby(level=0, sort=False).sum() / pairs).reindex(n.index)


_generates = {"probability": True, "needs": ("generation",)}


@measure("Agreement over paraphrases", "beyond", "questions", **_generates)
def agreement_over_paraphrases(model, questions, folder):
    """``share_of_equal_answers``."""
    found = generated(model, questions, folder)
    return share_of_equal_answers(found), found.attrs["tokens"]


# Statements, true or false?


@shared
def said_true(model, questions, folder) -> pd.DataFrame:
    """Statements with the right object (context "true") and with distractors ("false1", ...), each
    with ``share``, P("True") / (P("True") + P("False")); ``.attrs["tokens"]``: per statement."""
    statements = prompts.checks(questions.facts)
    statements = statements[statements["template"].isin(questions.templates)]
    statements = statements.reset_index(drop=True)
    words = pd.DataFrame({"candidate": WORDS, "label": WORDS})
    options = questions.facts.facts[["fact"]].merge(words, how="cross")
    scores = store.score(model, statements, options, folder)
    scores = scores.pivot(index="prompt", columns="candidate", values="logprob")
    share = np.exp(scores["True"] - np.logaddexp(scores["True"], scores["False"]))
    found = statements.assign(share=share.reindex(statements["prompt"]).to_numpy())
    true = statements[statements["context"] == "true"]
    found.attrs["tokens"] = tokens_per_fact(model, true, options)
    return found


_statement = {"paper": "beyond", "prompts": "a statement, true or false?", "paraphrased": True}


@measure("Verbal confidence", probability=True, **_statement)
def verbal_confidence(model, questions, folder):
    """P(True) after the right statement (Kadavath et al. 2022)."""
    found = said_true(model, questions, folder)
    true = found[found["context"] == "true"]
    return true.groupby("fact", sort=False)["share"].mean(), found.attrs["tokens"]


@measure("Verbal contrast", "beyond", "statements, true or false?", paraphrased=True)
def verbal_contrast(model, questions, folder):
    """Mean share of "True" of the right statements minus that of the false ones, in [-1, 1]: a bias
    towards "True" cancels."""
    found = said_true(model, questions, folder)
    right = found["context"] == "true"
    means = found.groupby(["fact", right], sort=False)["share"].mean().unstack()
    n_true = right.groupby(found["fact"]).sum().mean()
    per_fact = found.groupby("fact").size().mean() / n_true
    return means[True] - means[False], found.attrs["tokens"] * per_fact


# Controls


@measure("Chance", paper="beyond", prompts="nothing", control=True)
def random_number(model, questions, folder):
    """A random number in [0, 1) per model and fact."""
    facts, seed = questions.facts.facts["fact"], questions.seed
    return pd.Series({f: rng(seed, "chance", model.name, f).random() for f in facts}), 0.0


@measure("Confidence", "beyond", "questions", needs=("generation",), control=True)
def confidence_in_any_answer(model, questions, folder):
    """Mean log-probability of the greedy answer, right or wrong, in nats."""
    found = generated(model, questions, folder)
    return found.groupby("fact", sort=False)["logprob"].mean(), found.attrs["tokens"]


# log P(right answer) when the question names a subject that does not exist
measure("Object prior", "beyond", "invented subjects", paraphrased=True, control=True)(priors)


@measure("Familiarity", paper="beyond", prompts="the subject", paraphrased=True, control=True)
def familiarity_of_subject(model, questions, folder):
    """Mean log P(subject | text before it), in nats: it ignores the relation and the answer. Only
    questions that do not begin with their subject count."""
    rows, label = questions.choices.facts, questions.choices.label
    names = rows[["fact"]].assign(candidate=rows["subject"], label=label(rows["subject"]))
    heads = _of_templates(questions)
    heads = heads[~heads["pattern"].str.startswith("[X]")].reset_index(drop=True)
    heads["text"] = heads["pattern"].str.split("[X]", regex=False).str[0].str.rstrip()
    heads["prompt"] = "subject|" + heads["prompt"]
    heads = heads[prompts.PROMPTS]
    scores = store.score(model, heads, names, folder)
    values = scores.groupby("fact", sort=False)["logprob"].mean()
    return values, tokens_per_fact(model, heads, names)
