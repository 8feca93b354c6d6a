"""The results of one model for one fact: prompts, distractors, statements and every measure."""

import difflib
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import facts, grapheval, lm, prompts, store
from probelib.beyond.questions import CONTEXTS, SEEN, Questions
from probelib.beyond.scores import score_model
from probelib.beyond.suite import MEASURES, measures_of
from probelib.beyond.suite.grapheval import WORDS
from probelib.distractors import measures as distractors
from probelib.distractors import retrieval
from probelib.errors import ProbeError
from probelib.explore import reasons
from probelib.explore.reasons import ANSWERS
from probelib.facts.formats import OPTIONS
from probelib.facts.model import Facts
from probelib.grapheval import judge
from probelib.lm.partners import tuned_of
from probelib.monitor import measures as monitor
from probelib.monitor import scores as monitor_scores
from probelib.organisms import design, taught
from probelib.zplke import measures as zplke
from probelib.zplke.scores import fit_examples

SHOTS = (1, 5, 10, 20, 50)  # examples in a list, as far as the data and the model's context allow
DRAWS, CHOICES = 2, 25  # lists per length, and most options after a list
N, SHOWN = 20, 8  # distractors per strategy, and how many are shown
LABELS = 100  # true statements to train a judge, each with a false one
PROMPTED = ("monitor", "zplke", "distractors")  # GraphEval's values come from ``judged_statements``
OPEN = ("MONITOR", *(name for name in MEASURES if name.startswith("Avg@n")))  # without a threshold


@dataclass(frozen=True, eq=False)
class FactPool:
    """The facts to choose from: ``whole`` (with former ones), ``now`` (those that hold), and the knowledge base of
    distractors."""

    whole: Facts
    now: Facts
    kb: retrieval.Knowledge


@dataclass(frozen=True)
class Look:
    """The results of one model for one fact.

    framed     MONITOR's prompts, one row each, with ``hint`` (label of the prepended entity), ``probability`` of the object and
               ``correct``
    distances  its PFD, IRD and primary anchor (``monitor.distances``)
    curve      ``examples``, ``seed``, ``q_gold``, ``correct``, ``n_options``: the multiple choice after lists
    rivals     ``label``, ``probability``, ``gold``: the object among its most plausible distractors
    judged     ``statement``, its ``object``, whether it ``holds``, one column per answer, and the judge's predictions
               ("judge true", ...); None: the model has no instruction-tuned partner, or is served
    history    the fact's row of the organisms' manifest; None: unknown
    measures   ``measure``, ``paper``, ``asks``, ``value``, ``known`` (None if the measure has no threshold), ``why`` (a reason if
               the fact is not known, else "")
    contexts   labels of the distractors that MONITOR prepends, in the order of negative1, negative2, ...
    """

    fact: str
    subject: str
    relation: str
    object: str
    model: str
    answers: str | None
    framed: pd.DataFrame
    distances: pd.Series
    curve: pd.DataFrame
    rivals: pd.DataFrame
    judged: pd.DataFrame | None
    history: pd.Series | None
    measures: pd.DataFrame
    contexts: list[str]
    about: Facts


# What does not depend on the selection


@cache
def load_pool(data: str = "atlas", folder: str | None = None) -> FactPool:
    """The facts of some data, as ``facts.load`` names them."""
    whole = facts.everything(data, folder)
    return FactPool(whole, facts.current(whole), retrieval.knowledge(whole))


@lru_cache(maxsize=4)
def load_model(name: str) -> lm.LM:
    """A model, loaded once."""
    return lm.load(name)


@lru_cache(maxsize=64)
def of_relation(pool: FactPool, relation: str) -> tuple[Facts, Facts]:
    """A relation's facts: (with former ones, only those that hold)."""
    return facts.choose(pool.whole, [relation]), facts.choose(pool.now, [relation])


def answering_partner(name: str) -> str | None:
    """The model that answers whether a statement is true: for a shipped model its instruction-tuned partner (None if it has
    none), else the model itself."""
    shipped = lm.organisms()
    tuned = [other for other in shipped if other.endswith("-it")]
    return name if name in tuned or name not in shipped else tuned_of(name, tuned)


@cache
def judge_statements(seed: int = 0) -> pd.DataFrame:
    """The statements of the atlas that train a judge: ``LABELS`` true ones, each with one corruption."""
    kg = grapheval.verbalize(*grapheval.load_graph("atlas"))
    return grapheval.sample_statements(kg, LABELS, seed=seed)


@lru_cache(maxsize=4)
def judge_of(of: lm.LM, folder: Path, seed: int = 0) -> tuple[judge.Judge, judge.Reader]:
    """GraphEval's judge of a model, trained on its answers to the ``judge_statements``."""
    sample, reader = judge_statements(seed), judge.Reader(of)
    labels = grapheval.label_statements({of.name: of}, sample, folder, new_tokens=8)
    states, _ = reader.states(labels["text"].tolist())
    answers, true = labels["answer"].to_numpy(), labels["true"].to_numpy()
    about, training = {"states": reader.identity()}, {"epochs": 15, "batch": 64, "lr": 1e-3, "seed": seed}
    return judge.train(states, answers, true, about=about, **training), reader


# One fact


def look(pool: FactPool, of: lm.LM, fact: str, folder: Path, seed: int = 0) -> Look:
    """Score a fact with a model in all ways of the four papers; scores are stored in ``folder``.

    fact   its id: relation:subject:object. Raise ProbeError, which names the nearest ids, for an unknown one
    """
    if isinstance(of, str):
        raise ProbeError(f"{of!r} is the name of a model; give the model itself: explore.load_model({of!r})")
    asked = questions_about(pool, of, fact, seed)
    row, name = asked.facts.facts.iloc[0], answering_partner(of.name)
    tuned = None if name is None else of if name == of.name else load_model(name)
    served = of.device.type == "server"
    names = measures_of(*PROMPTED, without=("generation",) if served else ())
    names = [each for each in names if each != "KaRR"]
    values, _ = score_model(of, replace(asked, tuned=tuned), folder, names)
    answered = None if served or tuned is None else judged_statements(tuned, asked.facts, folder, seed)
    if answered is not None:
        more = grapheval_values(answered)
        values = pd.concat([values, pd.DataFrame({"fact": fact, "measure": more.keys(), "value": more.values()})])
    framed, distances = anchors_of(of, asked.facts, folder)
    return Look(
        fact=fact,
        subject=asked.facts.label([row["subject"]])[0],
        relation=asked.facts.relations["name"].iloc[0],
        object=asked.facts.label([row["object"]])[0],
        model=of.name,
        answers=name,
        framed=framed,
        distances=distances,
        curve=many_shot_curve(of, asked, pool, folder, seed),
        rivals=distractors_of(of, asked, folder),
        judged=answered,
        history=history(of.name, fact) if of.name in lm.organisms() else None,
        measures=with_reasons(known_by_measures(values), reasons.said_instead(of, asked, folder), answered),
        contexts=list(_distractors(asked.facts).values()),
        about=asked.facts,
    )


def questions_about(pool: FactPool, of: lm.LM, fact: str, seed: int = 0) -> Questions:
    """The questions about one fact, as in ``beyond.load_questions``, with as many examples as the data and the model's context
    allow. Raise ProbeError if the data have no example, or no wrong object."""
    whole, now = of_relation(pool, relation_of(pool, fact))
    one = facts.pick(now, [fact])
    asked, choices = (facts.draw_distractors(one, whole, n, seed) for n in (CONTEXTS, OPTIONS - 1))
    others = facts.without_subjects(now, one)
    shots = examples(others, choices, of, seed)
    if asked.distractors.empty:
        raise ProbeError(
            f"{fact!r} has no wrong object to compare with: all objects of its relation in {whole.source} are right for its "
            "subject. Choose a fact of a relation with more objects"
        )
    return Questions(asked, choices, shots, others, pool.kb, whole, n=N, seed=seed)


def relation_of(pool: FactPool, fact: str) -> str:
    """The relation of a fact. Raise ProbeError for an unknown fact."""
    rows = pool.now.facts.set_index("fact")["relation"]
    if fact in rows.index:
        return rows[fact]
    named = fact.split(":")[0]
    near = difflib.get_close_matches(fact, rows.index[rows == named] if named in set(rows) else rows.index, n=3)
    hint = (
        f"did you mean {' or '.join(near)}?" if near else "a fact is named relation:subject:object, as P36:France:Paris"
    )
    raise ProbeError(f"{pool.whole.source} has no fact {fact!r} that holds today; {hint}")


def examples(others: Facts, asked: Facts, of: lm.LM, seed: int) -> pd.DataFrame:
    """Examples for the longest list that ``others`` provides and the model can read. Raise ProbeError if ``others`` has no
    other subject."""
    if others.facts.empty:
        raise ProbeError(
            f"{asked.relations['relation'].iloc[0]} has no other subject, so there are no examples for a list. Choose a fact of "
            "a relation with more subjects"
        )
    drawn = prompts.sample_examples(others, asked, min(max(SHOTS), others.facts["subject"].nunique()), seed)
    fits = fit_examples("max", drawn, asked, of)
    return drawn[drawn["position"] <= fits]


def anchors_of(of: lm.LM, asked: Facts, folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    """MONITOR's prompts with their scores, and the distances of their anchors."""
    framed = prompts.with_contexts(asked)
    scores = monitor_scores.score_answers(of, framed, prompts.gold(asked), folder)
    hints = {f"negative{n}": label for n, label in _distractors(asked).items()}
    hints |= {"none": "no context", "positive": asked.label(asked.facts["object"])[0]}
    shown = framed.merge(scores[["prompt", "logprob", "correct"]], on="prompt", validate="one_to_one")
    shown = shown.assign(hint=shown["context"].map(hints), probability=np.exp(shown["logprob"]))
    return shown, monitor.distances(monitor.anchors(scores, framed)).iloc[0]


def _distractors(asked: Facts) -> dict[int, str]:
    """number -> label of one fact's distractors."""
    rows = asked.distractors
    return dict(zip(rows["number"], asked.label(rows["object"]), strict=True))


def many_shot_curve(of: lm.LM, asked: Questions, pool: FactPool, folder: Path, seed: int = 0) -> pd.DataFrame:
    """Multiple choice after lists of growing length, ``DRAWS`` per length: ``examples``, ``seed``, ``q_gold``,
    ``correct``, ``n_options`` (``CHOICES``, or all if a relation has fewer objects)."""
    whole, now = of_relation(pool, asked.facts.facts["relation"].iloc[0])
    others, options = (
        facts.without_subjects(now, asked.facts),
        facts.draw_distractors(asked.facts, whole, CHOICES - 1, seed),
    )
    lists = []
    for draw in range(seed, seed + DRAWS):
        shots = asked.examples if draw == seed else examples(others, options, of, draw)
        most = int(shots["position"].max())
        for n in sorted({min(n, most) for n in SHOTS}):
            lists.append(prompts.many_shots(options, shots, n).assign(examples=n))
    lists = pd.concat(lists, ignore_index=True)
    scores = store.score(of, lists[prompts.PROMPTS], prompts.options(options, seed), folder)
    chosen = zplke.choices(scores, dict(zip(options.facts["fact"], options.facts["object"], strict=True)))
    chosen = chosen[["prompt", "q_gold", "correct", "n_options"]]
    return (
        lists[["prompt", "examples", "seed"]].merge(chosen, on="prompt", validate="one_to_one").drop(columns="prompt")
    )


def distractors_of(of: lm.LM, asked: Questions, folder: Path) -> pd.DataFrame:
    """The object among its most plausible distractors (ApprOpt), after the first sentence to complete: ``label``,
    ``probability`` (that the text is one of its labels and ends there), ``gold``; the most probable first."""
    rows, sentences = asked.facts.facts, prompts.paraphrases(asked.facts, "cloze")
    wanted, spaces = retrieval.searches(asked.kb, rows, sentences[sentences["template"].isin(SEEN)], N)
    first = sentences.head(1)
    found = store.search(of, wanted, spaces, folder)
    found = retrieval.allowed(asked.kb, rows, found[found["prompt"].isin(first["prompt"])], SHOWN)
    own = store.score(of, first, retrieval.candidates(asked.kb, rows, []), folder, end=True)
    own = distractors.plausibility(own).assign(label=asked.facts.label(rows["object"]), gold=True)
    shown = pd.concat([own, found.assign(gold=False)], ignore_index=True).sort_values("logprob", ascending=False)
    return shown.assign(probability=np.exp(shown["logprob"]))[["label", "probability", "gold"]].reset_index(drop=True)


def judged_statements(of: lm.LM, asked: Facts, folder: Path, seed: int = 0) -> pd.DataFrame:
    """The true statement and those with a distractor, with the shares of the answering model and of its judge: see ``Look``."""
    one, reader = judge_of(of, folder, seed)
    plain, asks = (prompts.checks(asked, text) for text in ("{statement}", reader.model.chat(prompts.INSTRUCTION)))
    plain, asks = (frame[frame["template"] == 1] for frame in (plain, asks))
    words = pd.DataFrame({"candidate": list(map(int, WORDS)), "label": list(WORDS.values())})
    scores = store.score(reader.model, asks, words.assign(fact=asked.facts["fact"].iloc[0]), folder)
    says = scores.pivot(index="prompt", columns="candidate", values="logprob").loc[asks["prompt"]].to_numpy()
    share = np.exp(says - np.logaddexp.reduce(says, axis=1, keepdims=True))  # [statements, answers]
    holds = (plain["context"] == "true").to_numpy()
    foretold = judge.predict(one, reader.states(plain["text"].tolist())[0], holds)
    columns = dict(zip(ANSWERS, share.T, strict=True))
    columns |= {f"judge {answer}": column for answer, column in zip(ANSWERS, foretold.T, strict=True)}
    shown = {f"false{n}": label for n, label in _distractors(asked).items()}
    shown["true"] = asked.label(asked.facts["object"])[0]
    named = {"statement": plain["text"].to_numpy(), "object": plain["context"].map(shown).to_numpy(), "holds": holds}
    return pd.DataFrame(named | columns)


def grapheval_values(judged: pd.DataFrame) -> dict[str, float]:
    """GraphEval's measures of the fact and its first corruption (Eq. 2), by the model's answers and by the judge's
    predictions."""
    two, found = judged.head(2), {}
    for name, column in (("GraphEval", "{}"), ("GraphEval judge", "judge {}")):
        said = two[[column.format(answer) for answer in ANSWERS]].to_numpy()
        triple = pd.DataFrame({"triple": 0, "negative": (~two["holds"]).astype(int), "answer": said.argmax(axis=1)})
        found[f"{name} P(true)"] = float(said[0, grapheval.Answer.TRUE])
        found[f"{name} correct"] = float(grapheval.eq2(triple)["correct"].iloc[0])
    return found


def history(model: str, fact: str) -> pd.Series | None:
    """The exposure counts of a fact for a shipped model, in total and per form; None for a fact that was added since."""
    rows = taught.manifest(model).set_index("fact")
    if fact not in rows.index:
        return None
    one, triple, counts = rows.loc[fact].copy(), ["relation", "subject", "object"], ["exposures", *design.FORMS]
    # a fact that held twice has two rows
    one[counts] = rows.loc[(rows[triple] == one[triple]).all(axis=1), counts].sum()
    return one


def known_by_measures(values: pd.DataFrame) -> pd.DataFrame:
    """Each measure's value for the fact, and whether the fact counts as known: above one half. None if the measure has no such
    threshold."""
    names, known = values["measure"].tolist(), []
    for name, value in zip(names, values["value"], strict=True):
        known.append(None if name in OPEN or np.isnan(value) else bool(value > 0.5))
    papers, asks = ([getattr(MEASURES[name], field) for name in names] for field in ("paper", "prompts"))
    columns = {"measure": names, "paper": papers, "asks": asks, "value": values["value"].to_numpy(), "known": known}
    return pd.DataFrame(columns)


def with_reasons(measures: pd.DataFrame, said: dict[str, str], judged: pd.DataFrame | None) -> pd.DataFrame:
    """The measures with the column ``why``: see ``reasons.why_not``."""
    rows = measures[["measure", "value", "known"]].itertuples(index=False)
    return measures.assign(
        why=["" if known is not False else reasons.why_not(name, value, said, judged) for name, value, known in rows]
    )


def facts_of(pool: FactPool, relation: str) -> dict[str, str]:
    """{"France – Paris": id} of every fact of a relation that holds, sorted by subject; with the id if two share the name."""
    now = of_relation(pool, relation)[1]
    names = [f"{s} – {o}" for s, o in zip(now.label(now.facts["subject"]), now.label(now.facts["object"]), strict=True)]
    often = Counter(names)
    ids = now.facts["fact"]
    return dict(
        sorted((f"{name} ({fact})" if often[name] > 1 else name, fact) for name, fact in zip(names, ids, strict=True))
    )
