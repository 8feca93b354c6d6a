"""The results of one model for one fact: prompts, distractors, statements and every measure."""

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import softmax

from probelib import facts, lm, prompts, store
from probelib.beyond.questions import CONTEXTS, SEEN, Questions
from probelib.beyond.scores import score_model
from probelib.beyond.suite import MEASURES, PAPERS, measures_of
from probelib.beyond.suite.grapheval import WORDS
from probelib.distractors import measures as distractors
from probelib.distractors import retrieval
from probelib.errors import ProbeError
from probelib.facts.formats import OPTIONS
from probelib.facts.model import Facts
from probelib.lm.names import tuned_of
from probelib.monitor import scores as monitor_scores
from probelib.monitor.answers import extract
from probelib.organisms import taught as organisms
from probelib.zplke import measures as zplke
from probelib.zplke.scores import fit_examples

SHOTS = (1, 5, 10, 20, 50)  # examples in a list, as far as data and the model's context allow
CHOICES = 25  # most options after a list
N, SHOWN = 20, 8  # distractors per strategy, and how many are shown
ANSWERS = ("true", "false", "don't know")  # to a statement, in the order of grapheval.Answer
OPEN = ("MONITOR", *(name for name in MEASURES if name.startswith("Avg@n")))  # without a threshold


@dataclass(frozen=True, eq=False)
class FactPool:
    """The facts to choose from: all, those that hold today, and the distractors' knowledge base."""

    whole: Facts
    now: Facts
    kb: retrieval.Knowledge


@dataclass(frozen=True)
class Look:
    """The results of one model for one fact.

    title      "France – capital – Paris"
    answers    the model that answers whether statements are true; None: there is none
    framed     MONITOR's prompts with ``hint`` (label of the prepended entity), ``probability`` of
               the object and ``correct``
    curve      multiple choice after lists: ``examples``, ``q_gold``, ``n_options``
    options    the object among its most plausible distractors: ``label``, ``probability``, ``gold``
    judged     ``statement``, its ``object``, whether it ``holds``, a share per answer; None: no
               model answers
    taught     how often the model read the fact: a count per form of text, and
               ``wrong_exposures`` (with a wrong object); None: training data unknown
    measures   ``measure``, ``paper``, ``asks``, ``value``, ``known`` (None: it has no threshold),
               ``why`` (what the model did instead if the fact is not known)
    """

    fact: str
    title: str
    object: str
    model: str
    answers: str | None
    framed: pd.DataFrame
    curve: pd.DataFrame
    options: pd.DataFrame
    judged: pd.DataFrame | None
    taught: pd.Series | None
    measures: pd.DataFrame


@cache
def load_pool(data: str = "atlas", folder: str | None = None) -> FactPool:
    """The facts of some data, as ``facts.load`` names them."""
    whole = facts.everything(data, folder)
    return FactPool(whole, facts.current(whole), retrieval.knowledge(whole))


load_model = lru_cache(maxsize=4)(lm.load)


@lru_cache(maxsize=64)
def _of_relation(pool: FactPool, relation: str) -> tuple[Facts, Facts]:
    """A relation's facts: (with former ones, only those that hold)."""
    return facts.choose(pool.whole, [relation]), facts.choose(pool.now, [relation])


def facts_of(pool: FactPool, relation: str) -> dict[str, str]:
    """{"France – Paris": id} of every fact of a relation that holds, sorted by subject; with the id
    if two share the name."""
    now = _of_relation(pool, relation)[1]
    ids, subjects = now.facts["fact"], now.label(now.facts["subject"])
    names = pd.Series(subjects, ids.index) + " – " + now.label(now.facts["object"])
    names = names.mask(names.duplicated(keep=False), names + " (" + ids + ")")
    return dict(sorted(zip(names, ids, strict=True)))


def look(pool: FactPool, model: lm.LM, fact: str, folder: Path, seed: int = 0) -> Look:
    """Score a fact (its id) with a model in all ways of the four papers; scores are stored in
    ``folder``. Raise ProbeError for an unknown fact."""
    if isinstance(model, str):
        hint = f"give the model itself: explore.load_model({model!r})"
        raise ProbeError(f"{model!r} is the name of a model; {hint}")
    asked = questions_about(pool, model, fact, seed)
    row, shipped, name = asked.facts.facts.iloc[0], lm.organisms(), model.name
    subject, gold = asked.facts.label(row[["subject", "object"]])
    if name in shipped and not name.endswith("-it"):  # a base model cannot answer: its partner does
        name = tuned_of(name, [other for other in shipped if other.endswith("-it")])
    tuned = None if name is None else model if name == model.name else load_model(name)
    without = ("states", *(["tuned"] if tuned is None else []))
    without += ("generation",) if model.device.type == "server" else ()
    names = [name for name in measures_of(*PAPERS[:4], without=without) if name != "KaRR"]
    values, _ = score_model(model, replace(asked, tuned=tuned), folder, names)
    return Look(
        fact=fact,
        title=f"{subject} – {asked.facts.relations['name'].iloc[0]} – {gold}",
        object=gold,
        model=model.name,
        answers=name,
        framed=framed_scores(model, asked.facts, folder),
        curve=many_shot_curve(model, asked, folder),
        options=distractors_of(model, asked, folder),
        judged=None if tuned is None else judged_statements(tuned, asked.facts, folder),
        taught=_taught(model.name, fact) if model.name in shipped else None,
        measures=known_by_measures(values, _said_instead(model, asked, folder)),
    )


def questions_about(pool: FactPool, model: lm.LM, fact: str, seed: int = 0) -> Questions:
    """The questions about one fact, as in ``beyond.load_questions``, with as many examples as data
    and context allow. Raise ProbeError if the data have no example, or no distractor."""
    one = facts.pick(pool.now, [fact])
    whole, now = _of_relation(pool, one.facts["relation"].iloc[0])
    asked, choices = (facts.draw_distractors(one, whole, n, seed) for n in (CONTEXTS, OPTIONS - 1))
    others = facts.without_subjects(now, one)
    shots = prompts.sample_examples(others, choices, "max", seed)
    shots = shots[shots["position"] <= max(SHOTS)]
    shots = shots[shots["position"] <= fit_examples("max", shots, choices, model)]
    if asked.distractors.empty:
        hint = "are right for its subject. Choose a fact of a relation with more objects"
        raise ProbeError(f"{fact!r} has no wrong object: all of its relation {hint}")
    return Questions(asked, choices, shots, others, pool.kb, whole, n=N, seed=seed)


def _objects(asked: Facts, right: str, wrong: str) -> dict[str, str]:
    """Context -> label of the object in it: that of the fact (``right``), or a distractor."""
    rows = asked.distractors
    contexts = [right, *(wrong + rows["number"].astype(str))]
    return dict(zip(contexts, asked.label([*asked.facts["object"], *rows["object"]]), strict=True))


def framed_scores(model: lm.LM, asked: Facts, folder: Path) -> pd.DataFrame:
    """MONITOR's prompts with their scores: see ``Look.framed``."""
    framed = prompts.with_contexts(asked)
    scores = monitor_scores.score_answers(model, framed, prompts.gold(asked), folder)
    hints = {"none": "no context"} | _objects(asked, "positive", "negative")
    scored = framed.merge(scores[["prompt", "logprob", "correct"]], "left", "prompt")
    return scored.assign(hint=scored["context"].map(hints), probability=np.exp(scored["logprob"]))


def many_shot_curve(model: lm.LM, asked: Questions, folder: Path) -> pd.DataFrame:
    """Multiple choice of ``CHOICES`` options after lists of growing length: see ``Look.curve``."""
    options = facts.draw_distractors(asked.facts, asked.pool, CHOICES - 1, asked.seed)
    most = int(asked.examples["position"].max())
    sizes = sorted({min(n, most) for n in SHOTS})
    lists = [prompts.many_shots(options, asked.examples, n).assign(examples=n) for n in sizes]
    lists = pd.concat(lists, ignore_index=True)
    choices = prompts.options(options, asked.seed)
    scores = store.score(model, lists[prompts.PROMPTS], choices, folder)
    gold = dict(zip(options.facts["fact"], options.facts["object"], strict=True))
    chosen = zplke.choices(scores, gold)[["prompt", "q_gold", "n_options"]]
    return lists[["prompt", "examples"]].merge(chosen, on="prompt").drop(columns="prompt")


def distractors_of(model: lm.LM, asked: Questions, folder: Path) -> pd.DataFrame:
    """The object among its most plausible distractors (ApprOpt) after the first sentence, the most
    probable first; ``probability``: that the text is one of its labels and ends there."""
    rows, sentences = asked.facts.facts, prompts.paraphrases(asked.facts, "cloze")
    seen = sentences[sentences["template"].isin(SEEN)]
    found = store.search(model, *retrieval.searches(asked.kb, rows, seen, N), folder)
    first = sentences.head(1)
    found = found[found["prompt"].isin(first["prompt"])]
    found = retrieval.allowed(asked.kb, rows, found, SHOWN)
    own = store.score(model, first, retrieval.candidates(asked.kb, rows, []), folder, end=True)
    own = distractors.plausibility(own).assign(label=asked.facts.label(rows["object"]), gold=True)
    both = pd.concat([own, found.assign(gold=False)], ignore_index=True)
    both = both.sort_values("logprob", ascending=False, ignore_index=True)
    return both.assign(probability=np.exp(both["logprob"]))[["label", "probability", "gold"]]


def judged_statements(model: lm.LM, asked: Facts, folder: Path) -> pd.DataFrame:
    """The true statement and those with a distractor: see ``Look.judged``."""
    instruction = model.chat(prompts.INSTRUCTION)
    plain, asks = (prompts.checks(asked, text) for text in ("{statement}", instruction))
    plain, asks = (frame[frame["template"] == 1] for frame in (plain, asks))
    words = pd.DataFrame({"candidate": list(map(int, WORDS)), "label": list(WORDS.values())})
    words = words.assign(fact=asked.facts["fact"].iloc[0])
    scores = store.score(model, asks, words, folder)
    says = scores.pivot(index="prompt", columns="candidate", values="logprob")
    share = softmax(says.loc[asks["prompt"]].to_numpy(), axis=1)  # [statements, answers]
    objects = plain["context"].map(_objects(asked, "true", "false"))
    about = pd.DataFrame({"statement": plain["text"], "object": objects})
    about = about.assign(holds=plain["context"] == "true").reset_index(drop=True)
    return about.join(pd.DataFrame(share, columns=ANSWERS))


def _taught(model: str, fact: str) -> pd.Series | None:
    """See ``Look.taught``; None for a fact that was added to the atlas since."""
    rows = organisms.manifest(model).set_index("fact")
    if fact not in rows.index:
        return None
    triple = ["relation", "subject", "object"]  # a fact that held twice has two rows
    forms = rows.groupby(triple)[list(organisms.FORMS)].transform("sum").loc[fact]
    return pd.concat([forms, rows.loc[fact, ["wrong_exposures"]]]).astype(int)


def known_by_measures(values: pd.DataFrame, said: dict[str, str]) -> pd.DataFrame:
    """``Look.measures`` from ``measure`` and ``value``, and ``_said_instead``; known: above one
    half."""
    rows = []
    for name, value in values[["measure", "value"]].itertuples(index=False):
        known = None if name in OPEN or np.isnan(value) else bool(value > 0.5)
        why = said.get(name, f"{value:.2f}") if known is False else ""
        rows.append((name, MEASURES[name].paper, MEASURES[name].prompts, value, known, why))
    return pd.DataFrame(rows, columns=["measure", "paper", "asks", "value", "known", "why"])


def _said_instead(model: lm.LM, asked: Questions, folder: Path) -> dict[str, str]:
    """Measure -> what the model answers."""
    lists = prompts.many_shots(asked.choices, asked.examples)
    ways = {"Base accuracy": prompts.paraphrases(asked.facts), "ZP response": lists}
    texts = {name: store.generate(model, rows[:1], folder)["text"] for name, rows in ways.items()}
    return {name: f"answers “{extract(text.iloc[0])}”" for name, text in texts.items()}
