"""The results of one model for one fact: prompts, distractors, statements and every measure."""

from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from probelib import facts, lm, prompts, store
from probelib.beyond.questions import CONTEXTS, Questions
from probelib.beyond.scores import score_model
from probelib.beyond.suite import MEASURES, PAPERS, measures_of
from probelib.beyond.suite.grapheval import shares
from probelib.distractors import retrieval
from probelib.distractors.measures import plausibility
from probelib.distractors.scores import DistractorSettings, Study
from probelib.errors import ProbeError
from probelib.facts.formats import OPTIONS
from probelib.facts.model import Facts
from probelib.lm.names import tuned_of
from probelib.monitor.scores import extract, score_answers
from probelib.organisms import taught as organisms
from probelib.zplke import measures as zplke
from probelib.zplke.scores import fit_examples

SHOTS = (1, 5, 10, 20, 50)  # examples in a list, as far as data and the model's context allow
CHOICES = 25  # most options after a list
N, SHOWN = 20, 8  # distractors per strategy, and how many are shown
ANSWERS = ("true", "false", "don't know")  # to a statement, in the order of grapheval.Answer
OPEN = ("MONITOR", *(name for name in MEASURES if name.startswith("Avg@n")))  # without a threshold


class FactPool(NamedTuple):
    """The facts to choose from: all, those that hold today, and the distractors' knowledge base."""

    whole: Facts
    now: Facts
    kb: retrieval.Knowledge


class Look(NamedTuple):
    """The results of one model for one fact."""

    fact: str
    title: str  # "France – capital – Paris"
    model: str
    answers: str | None  # the model that answers whether statements are true; None: there is none
    framed: pd.DataFrame  # see ``framed_scores``
    curve: pd.DataFrame  # see ``many_shot_curve``
    options: pd.DataFrame  # see ``distractors_of``
    judged: pd.DataFrame | None  # see ``judged_statements``; None: no model answers
    taught: pd.Series | None  # see ``taught_of``; None: training data unknown
    measures: pd.DataFrame  # see ``known_by_measures``


@cache
def load_pool(data: str = "atlas", folder: str | None = None) -> FactPool:
    """The facts of some data, as ``facts.load`` names them."""
    whole = facts.everything(data, folder)
    return FactPool(whole, facts.current(whole), retrieval.knowledge(whole))


load_model = lru_cache(maxsize=4)(lm.load)


def facts_of(pool: FactPool, relation: str) -> dict[str, str]:
    """{"France – Paris": id} of every fact of a relation that holds, sorted by subject; with the id
    if two share the name."""
    now = facts.choose(pool.now, [relation])
    ids, subjects = now.facts["fact"], now.label(now.facts["subject"])
    names = pd.Series(subjects, ids.index) + " – " + now.label(now.facts["object"])
    names = names.mask(names.duplicated(keep=False), names + " (" + ids + ")")
    return dict(sorted(zip(names, ids, strict=True)))


def look(pool: FactPool, model_name: str, fact: str, folder: Path) -> Look:
    """Score a fact (its id) with a model in all ways of the four papers; scores are stored in
    ``folder``. Raise ProbeError for an unknown model or fact."""
    model = load_model(model_name)
    asked = questions_about(pool, model, fact)
    row, shipped, name = asked.facts.facts.iloc[0], lm.organisms(), model.name
    subject, gold = asked.facts.label(row[["subject", "object"]])
    if name in shipped and not name.endswith("-it"):  # a base model cannot answer: its partner does
        name = tuned_of(name, [other for other in shipped if other.endswith("-it")])
    tuned = None if name is None else model if name == model.name else load_model(name)
    return Look(
        fact=fact,
        title=f"{subject} – {asked.facts.relations['name'].iloc[0]} – {gold}",
        model=model.name,
        answers=name,
        framed=framed_scores(model, asked.facts, folder),
        curve=many_shot_curve(model, asked, folder),
        options=distractors_of(model, asked, folder),
        judged=None if tuned is None else judged_statements(tuned, asked.facts, folder),
        taught=taught_of(model.name, fact) if model.name in shipped else None,
        measures=known_by_measures(model, replace(asked, tuned=tuned), folder),
    )


def questions_about(pool: FactPool, model: lm.LM, fact: str) -> Questions:
    """The questions about one fact, as in ``beyond.load_questions``, with as many examples as data
    and context allow. Raise ProbeError if the data have no example, or no distractor."""
    one = facts.pick(pool.now, [fact])
    whole, now = (facts.choose(own, one.relations["relation"]) for own in (pool.whole, pool.now))
    asked, choices = (facts.draw_distractors(one, whole, n) for n in (CONTEXTS, OPTIONS - 1))
    others = facts.without_subjects(now, one)
    shots = prompts.sample_examples(others, choices, "max")
    shots = shots[shots["position"] <= max(SHOTS)]
    shots = shots[shots["position"] <= fit_examples("max", shots, choices, model)]
    if asked.distractors.empty:
        hint = "are right for its subject. Choose a fact of a relation with more objects"
        raise ProbeError(f"{fact!r} has no wrong object: all of its relation {hint}")
    return Questions(asked, choices, shots, others, pool.kb, whole, n=N)


def framed_scores(model: lm.LM, asked: Facts, folder: Path) -> pd.DataFrame:
    """MONITOR's prompts with ``hint`` (label of the prepended entity), ``probability`` of the
    object and ``correct``."""
    framed = prompts.with_contexts(asked)
    scores = score_answers(model, framed, prompts.gold(asked), folder)
    objects = asked.label([*asked.facts["object"], *asked.distractors["object"]])
    hints = dict(zip(framed["context"].unique(), ["no context", *objects], strict=True))
    scored = framed.merge(scores[["prompt", "logprob", "correct"]], "left", "prompt")
    return scored.assign(hint=scored["context"].map(hints), probability=np.exp(scored["logprob"]))


def many_shot_curve(model: lm.LM, asked: Questions, folder: Path) -> pd.DataFrame:
    """Multiple choice of ``CHOICES`` options after lists of growing length: ``examples``,
    ``q_gold``, ``n_options``."""
    options = facts.draw_distractors(asked.facts, asked.pool, CHOICES - 1, asked.seed)
    sizes = sorted({min(n, len(asked.examples)) for n in SHOTS})
    lists = pd.concat([prompts.many_shots(options, asked.examples, n) for n in sizes])
    scores = store.score(model, lists, prompts.options(options, asked.seed), folder)
    chosen = zplke.choices(scores, options.facts.set_index("fact")["object"])  # a row per list
    return chosen[["q_gold", "n_options"]].assign(examples=sizes)


def distractors_of(model: lm.LM, asked: Questions, folder: Path) -> pd.DataFrame:
    """The object (``gold``) among its most plausible distractors (ApprOpt) after the first
    sentence, the most probable first: ``label``, and the ``probability`` that the text is one of
    its labels and ends there."""
    rows, sentences = asked.facts.facts, asked.sentences()
    how, first = DistractorSettings(n_distractors=N), sentences.head(1)
    study = Study(model, asked.kb, asked.facts, sentences, folder, how, ("appropt",))
    found = study.lists["appropt"].merge(first[["prompt"]]).nlargest(SHOWN, "logprob")
    own = store.score(model, first, retrieval.candidates(asked.kb, rows, []), folder, end=True)
    own = plausibility(own).assign(label=asked.facts.label(rows["object"]))
    both = pd.concat([own.assign(gold=True), found.assign(gold=False)])
    both = both.sort_values("logprob", ascending=False, ignore_index=True)
    both = both.assign(label=both["label"].str.strip(), probability=np.exp(both["logprob"]))
    return both[["label", "probability", "gold"]]


def judged_statements(model: lm.LM, asked: Facts, folder: Path) -> pd.DataFrame:
    """The true statement and those with a distractor: ``statement``, its ``object``, whether it
    ``holds``, the share of each of ``ANSWERS``."""
    forms = "{statement}", model.chat(prompts.INSTRUCTION)
    plain, asks = (prompts.checks(asked, form).query("template == 1") for form in forms)
    objects = asked.label([*asked.facts["object"], *asked.distractors["object"]])
    about = {"statement": plain["text"], "object": objects, "holds": plain["context"] == "true"}
    about |= dict(zip(ANSWERS, shares(model, asks, folder).T, strict=True))
    return pd.DataFrame(about).reset_index(drop=True)


def taught_of(model: str, fact: str) -> pd.Series | None:
    """How often a shipped model read the fact: a count per form of text, and ``wrong_exposures``
    (with a wrong object); None for a fact that was added to the atlas since."""
    rows = organisms.manifest(model).set_index("fact")
    triples = rows.groupby(["relation", "subject", "object"])  # one that held twice has two rows
    counts = triples[list(organisms.FORMS)].transform("sum").join(rows["wrong_exposures"])
    return counts.loc[fact].astype(int) if fact in counts.index else None


def known_by_measures(model: lm.LM, asked: Questions, folder: Path) -> pd.DataFrame:
    """``measure``, ``paper``, ``prompts``, ``value``, ``known`` (above one half; None: it has no
    threshold), ``why`` (the text instead, if the fact is not known)."""
    without = ("states", "generation") if model.device.type == "server" else ("states",)
    names = [name for name in measures_of(*PAPERS[:4], without=without) if name != "KaRR"]
    lists = prompts.many_shots(asked.choices, asked.examples)
    ways = {"Base accuracy": prompts.paraphrases(asked.facts), "ZP response": lists}
    said = {name: store.generate(model, own[:1], folder)["text"][0] for name, own in ways.items()}
    rows = []
    for name, value in score_model(model, asked, folder, names)[0][["measure", "value"]].to_numpy():
        known = None if name in OPEN or np.isnan(value) else bool(value > 0.5)
        why = f"answers “{extract(said[name])}”" if name in said and known is False else ""
        rows.append((name, MEASURES[name].paper, MEASURES[name].prompts, value, known, why))
    return pd.DataFrame(rows, columns=["measure", "paper", "prompts", "value", "known", "why"])
