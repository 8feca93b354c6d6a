"""Measures in common use, and controls, which do not test the fact: a measure must beat them."""

import numpy as np
import pandas as pd

from probelib import prompts, store
from probelib.beyond.questions import tokens_per_fact
from probelib.beyond.suite import measure, shared
from probelib.facts.model import Facts, rng

INVENTED = ("Vorlumia", "Tashkelen", "Quendribar")  # subjects that do not exist
WORDS = ("True", "False")


# What the measures read


def questions_of(questions) -> pd.DataFrame:
    """The questions in the paraphrases of ``questions.templates``: a frame of ``prompts``."""
    plain = prompts.paraphrases(questions.choices)
    return plain[plain["template"].isin(questions.templates)].reset_index(drop=True)


@shared
def option_scores(model, questions, folder) -> pd.DataFrame:
    """Every option after every question: ``store.score``, and ``gold`` (whether it is the answer)."""
    options = prompts.options(questions.choices, questions.seed)
    scores = store.score(model, questions_of(questions), options, folder)
    facts = questions.choices.facts
    right = dict(zip(facts["fact"], facts["object"], strict=True))
    return scores.assign(gold=scores["candidate"] == scores["fact"].map(right))


def tokens_of_gold(model, questions) -> float:
    """Tokens per fact to score the right answer alone."""
    return tokens_per_fact(model, questions_of(questions), prompts.gold(questions.choices))


def tokens_of_options(model, questions) -> float:
    """Tokens per fact to score all options."""
    options = prompts.options(questions.choices, questions.seed)
    return tokens_per_fact(model, questions_of(questions), options)


@shared
def generated(model, questions, folder) -> pd.DataFrame:
    """The greedy answer to every question in every paraphrase: ``store.generate``, and ``template``;
    ``.attrs["tokens"]``: tokens per fact."""
    plain = prompts.paraphrases(questions.choices)
    rows = store.generate(model, plain, folder)
    found = rows.merge(plain[["prompt", "template"]], on="prompt", validate="many_to_one")
    found.attrs["tokens"] = rows.attrs["cost"]["forwarded_tokens"] / plain["fact"].nunique()
    return found


@shared
def said_true(model, questions, folder) -> pd.DataFrame:
    """Statements with the right object (context "true") and with distractors ("false1", ...), each
    with its ``share`` of "True"; ``.attrs["tokens"]``: per statement."""
    statements = prompts.checks(questions.facts)
    statements = statements[statements["template"].isin(questions.templates)]
    statements = statements.reset_index(drop=True)
    words = pd.DataFrame({"candidate": WORDS, "label": WORDS})
    options = questions.facts.facts[["fact"]].merge(words, how="cross")
    scores = store.score(model, statements, options, folder)
    scores = scores.pivot(index="prompt", columns="candidate", values="logprob")
    share = share_of_true(scores).reindex(statements["prompt"]).to_numpy()
    found = statements.assign(share=share)
    true = statements[statements["context"] == "true"]
    found.attrs["tokens"] = tokens_per_fact(model, true, options)
    return found


# Log-probabilities of the answer


def log_probability(scores: pd.DataFrame) -> pd.Series:
    """fact -> mean of log P(right answer | question) over the questions, in nats.

    scores   ``fact``, ``gold``, ``logprob``; one row per question and option

    >>> scores = pd.DataFrame({"fact": "a", "gold": [True, False, True], "logprob": [-1.0, -9, -3]})
    >>> log_probability(scores).to_dict()
    {'a': -2.0}
    """
    return scores[scores["gold"]].groupby("fact", sort=False)["logprob"].mean()


@measure("Log-probability", paper="beyond", prompts="questions", paraphrased=True)
def mean_log_probability(model, questions, folder):
    """Mean log P(right answer | question), in nats."""
    scores = option_scores(model, questions, folder)
    return log_probability(scores), tokens_of_gold(model, questions)


@measure("Log-probability per token", paper="beyond", prompts="questions", paraphrased=True)
def log_probability_per_token(model, questions, folder):
    """Length-normalized likelihood, as in lm-evaluation-harness, in nats per token."""
    gold = option_scores(model, questions, folder).query("gold")
    values = (gold["logprob"] / gold["n_tokens"]).groupby(gold["fact"], sort=False).mean()
    return values, tokens_of_gold(model, questions)


def prior(scores: pd.DataFrame) -> pd.Series:
    """fact -> log of the mean probability of the right answer over questions about invented
    subjects, in nats.

    >>> scores = pd.DataFrame({"fact": "a", "logprob": np.log([0.1, 0.3])})
    >>> round(float(np.exp(prior(scores)["a"])), 9)
    0.2
    """
    by_fact = scores.groupby("fact", sort=False)["logprob"]
    return by_fact.agg(np.logaddexp.reduce) - np.log(by_fact.size())


def about_invented(asked: Facts, templates: tuple[int, ...]) -> pd.DataFrame:
    """The questions of every fact about each invented subject: a frame of ``prompts``."""
    plain = prompts.templates_of(asked, "question", asked.facts["relation"])
    plain = plain[plain["number"].isin(templates)]
    rows = asked.facts[["fact", "relation"]].merge(plain, on="relation", sort=False)
    rows = rows.merge(pd.DataFrame({"name": INVENTED}), how="cross").assign(context="none", seed=-1)
    named = zip(rows["template"], rows["name"], strict=True)
    text = [prompts.fill(template, name) for template, name in named]
    ids = "invented|" + rows["fact"] + "|R" + rows["number"].astype(str) + "|" + rows["name"]
    return rows.assign(prompt=ids, text=text, template=rows["number"])[prompts.PROMPTS]


@shared
def priors(model, questions, folder) -> tuple[pd.Series, float]:
    """(``prior`` of each fact, tokens per fact)."""
    invented = about_invented(questions.choices, questions.templates)
    gold = prompts.gold(questions.choices)
    scores = store.score(model, invented, gold, folder)
    return prior(scores), tokens_per_fact(model, invented, gold)


@measure("PMI", paper="beyond", prompts="questions", paraphrased=True)
def mutual_information(model, questions, folder):
    """How much the subject raises log P(right answer) (Holtzman et al. 2021), in nats."""
    before, tokens = priors(model, questions, folder)
    values = log_probability(option_scores(model, questions, folder)) - before
    return values, tokens + tokens_of_gold(model, questions)


# Against the other options


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


@measure("Margin", paper="beyond", prompts="questions", paraphrased=True)
def margin_over_options(model, questions, folder):
    """``margin`` of the right answer."""
    scores = option_scores(model, questions, folder)
    return margin(scores), tokens_of_options(model, questions)


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


@measure("Reciprocal rank", paper="beyond", prompts="questions", paraphrased=True)
def reciprocal_rank_of_object(model, questions, folder):
    """``reciprocal_rank`` among the options."""
    scores = option_scores(model, questions, folder)
    return reciprocal_rank(scores), tokens_of_options(model, questions)


def certainty(scores: pd.DataFrame) -> pd.Series:
    """fact -> mean over the questions of minus the entropy of the normalized probabilities of the
    options, in nats: how sure, whichever option is right.

    >>> scores = pd.DataFrame({"fact": "a", "prompt": "q", "logprob": [-3.0, -3.0]})
    >>> certainty(scores).round(4).to_dict()
    {'a': -0.6931}
    """
    total = scores.groupby("prompt")["logprob"].transform(np.logaddexp.reduce)
    log_share = scores["logprob"] - total
    parts = (np.exp(log_share) * log_share).groupby([scores["fact"], scores["prompt"]], sort=False)
    return parts.sum().groupby(level="fact", sort=False).mean()


@measure("Certainty", paper="beyond", prompts="questions", paraphrased=True)
def certainty_over_options(model, questions, folder):
    """``certainty`` over the options."""
    scores = option_scores(model, questions, folder)
    return certainty(scores), tokens_of_options(model, questions)


# Generated answers


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


@measure(
    "Agreement over paraphrases", "beyond", "questions", probability=True, needs=("generation",)
)
def agreement_over_paraphrases(model, questions, folder):
    """``share_of_equal_answers``."""
    found = generated(model, questions, folder)
    return share_of_equal_answers(found), found.attrs["tokens"]


# Statements, true or false?


def share_of_true(scores: pd.DataFrame) -> pd.Series:
    """P("True") / (P("True") + P("False")) per statement.

    scores   columns "True" and "False": log-probabilities in nats

    >>> share_of_true(pd.DataFrame({"True": np.log([0.3]), "False": np.log([0.1])})).round(9).tolist()
    [0.75]
    """
    return np.exp(scores["True"] - np.logaddexp(scores["True"], scores["False"]))


TRUE_OR_FALSE = "a statement, true or false?"


@measure("Verbal confidence", "beyond", TRUE_OR_FALSE, probability=True, paraphrased=True)
def verbal_confidence(model, questions, folder):
    """P(True) after the right statement (Kadavath et al. 2022)."""
    found = said_true(model, questions, folder)
    true = found[found["context"] == "true"]
    return true.groupby("fact", sort=False)["share"].mean(), found.attrs["tokens"]


def true_minus_false(statements: pd.DataFrame) -> pd.Series:
    """fact -> mean share of "True" of its right statements minus that of its false ones, in [-1, 1]:
    a bias towards "True" cancels.

    >>> said = pd.DataFrame({"fact": "a", "context": ["true", "false1", "false2"],
    ...                      "share": [0.9, 0.5, 0.7]})
    >>> true_minus_false(said).round(9).to_dict()
    {'a': 0.3}
    """
    right = statements["context"] == "true"
    means = statements.groupby(["fact", right], sort=False)["share"].mean().unstack()
    return means[True] - means[False]


@measure("Verbal contrast", "beyond", "statements, true or false?", paraphrased=True)
def verbal_contrast(model, questions, folder):
    """``true_minus_false``."""
    found = said_true(model, questions, folder)
    n_true = (found["context"] == "true").groupby(found["fact"]).sum().mean()
    per_fact = found.groupby("fact").size().mean() / n_true
    return true_minus_false(found), found.attrs["tokens"] * per_fact


# Controls


@measure("Chance", paper="beyond", prompts="nothing", control=True)
def random_number(model, questions, folder):
    """A random number in [0, 1) per model and fact."""
    facts, seed = questions.facts.facts["fact"], questions.seed
    return pd.Series({f: rng(seed, "chance", model.name, f).random() for f in facts}), 0.0


@measure("Confidence", "beyond", "questions", needs=("generation",), control=True)
def confidence_in_any_answer(model, questions, folder):
    """Mean log-probability of the greedy answer, whatever it is, in nats."""
    found = generated(model, questions, folder)
    return found.groupby("fact", sort=False)["logprob"].mean(), found.attrs["tokens"]


@measure("Object prior", "beyond", "questions about nobody", paraphrased=True, control=True)
def object_prior(model, questions, folder):
    """``prior``: log P(right answer) when the question names a subject that does not exist."""
    return priors(model, questions, folder)


def before_subject(asked: Facts, templates: tuple[int, ...]) -> pd.DataFrame:
    """The questions as far as the blank before their subject, in the paraphrases ``templates`` that
    do not begin with it: a frame of ``prompts``."""
    plain = prompts.templates_of(asked, "question", asked.facts["relation"])
    plain = plain[plain["number"].isin(templates) & ~plain["template"].str.startswith("[X]")]
    rows = asked.facts[["fact", "relation"]].merge(plain, on="relation", sort=False)
    text = rows["template"].str.split("[X]", regex=False).str[0].str.rstrip()
    ids = "subject|" + rows["fact"] + "|R" + rows["number"].astype(str)
    frame = rows.assign(prompt=ids, text=text, template=rows["number"], context="none", seed=-1)
    return frame[prompts.PROMPTS]


@measure("Familiarity", paper="beyond", prompts="the subject", paraphrased=True, control=True)
def familiarity_of_subject(model, questions, folder):
    """Mean log P(subject | text before it), in nats: it ignores the relation and the answer."""
    rows, label = questions.choices.facts, questions.choices.label
    names = rows[["fact"]].assign(candidate=rows["subject"], label=label(rows["subject"]))
    heads = before_subject(questions.choices, questions.templates)
    scores = store.score(model, heads, names, folder)
    values = scores.groupby("fact", sort=False)["logprob"].mean()
    return values, tokens_per_fact(model, heads, names)
