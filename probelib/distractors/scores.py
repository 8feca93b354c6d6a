"""What is scored: facts, their distractors and the baselines of the Distractors paper, through the store.

A grid is a frame with one row per (fact, prompt) and one column per configuration of a measure, the cheapest first. All scores
come from the store if they were computed before.
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pandas as pd

from probelib import files, parameters, store
from probelib.distractors import baselines, measures, retrieval
from probelib.distractors.prompts import judge_prompt, karr_texts, short_judge_prompt
from probelib.distractors.retrieval import NAMES, Knowledge
from probelib.distractors.settings import DistractorSettings
from probelib.errors import unknown
from probelib.facts import everything
from probelib.facts import load as load_facts
from probelib.facts.model import Facts, keep
from probelib.lm.internals.similarity import bert_score
from probelib.lm.loading import load
from probelib.lm.names import organisms
from probelib.lm.remote.chat import ChatModel, connect
from probelib.prompts import PROMPTS, paraphrases

NS = (1, 2, 5, 10, *range(20, 201, 20))  # distractors, and next tokens of Precision@n (paper, section 4.2)
SAMPLE = "P35:United States:Donald Trump:2025"  # the fact of table 7
STRATEGIES = ("random", "sem", "temp_sem", "appropt")
# strategy -> search, order of its list
SEARCHED = {"appropt": ("beam", "label_logprob"), "opt": ("best_first", "logprob")}


class Helpers(NamedTuple):
    """The second models that two baselines need; None leaves the measure out.

    encoder      for BERT-score: a Hugging Face id or a folder
    judge        LLM-as-a-judge, see ``chat.connect``
    style        its prompt, which contains the right label: "paper" (for instruct models) or "short" (a form that the shipped
                 ``-it`` models were trained on)
    substitutes  measures whose helper is a shipped model, used in place of the paper's
    """

    encoder: str | Path | None = None
    judge: object = None
    style: str = "short"
    substitutes: tuple[str, ...] = ()


NO_HELPERS = Helpers()


class DistractorScores(NamedTuple):
    """``outcomes``: strategy -> which distractors are beaten (``measures.outcomes``); ``probability``: grid of that baseline,
    which uses the same scores; ``costs``: measure -> seconds and tokens of its own searches."""

    outcomes: dict[str, pd.DataFrame]
    probability: pd.DataFrame
    costs: dict[str, dict[str, float]]


class TextScores(NamedTuple):
    """``grids`` and ``costs`` by measure; ``judged``: texts with the judge's verdict and the truth (None without a judge)."""

    grids: dict[str, pd.DataFrame]
    costs: dict[str, dict[str, float]]
    judged: pd.DataFrame | None


class Scores(NamedTuple):
    """Every measure of one model: ``grids`` by measure, ``outcomes`` by strategy, ``judged`` (see ``TextScores``)."""

    grids: dict[str, pd.DataFrame]
    outcomes: dict[str, pd.DataFrame]
    judged: pd.DataFrame | None


def score(
    model,
    knowledge: Knowledge,
    facts: Facts,
    prompts: pd.DataFrame,
    folder: Path,
    settings: DistractorSettings,
    helpers: Helpers = NO_HELPERS,
    karr: bool = True,
) -> Scores:
    """Score a model with every measure, under all configurations of the paper up to the settings' sizes.

    karr   False leaves out KaRR, which does not depend on the prompts because it has templates of its own
    """
    distractors = score_distractors(model, knowledge, facts, prompts, folder, settings)
    texts = score_texts(model, knowledge, facts, prompts, folder, settings, helpers)
    grids = {"Probability": distractors.probability}
    sizes = grid_sizes(settings.n_distractors)
    grids |= {f"Dist. {NAMES[s]}": measures.grid(beaten, sizes) for s, beaten in distractors.outcomes.items()}
    grids |= texts.grids
    if karr:
        grids["KaRR"], _ = score_karr(model, knowledge, facts, folder, settings.seed)
    return Scores(grids, distractors.outcomes, texts.judged)


def score_distractors(
    model,
    knowledge: Knowledge,
    facts: Facts,
    prompts: pd.DataFrame,
    folder: Path,
    settings: DistractorSettings,
    strategies: tuple[str, ...] = STRATEGIES,
) -> DistractorScores:
    """Score the object and ``settings.n_distractors`` distractors of every fact after every prompt, for some strategies."""
    n, rows = settings.n_distractors, facts.facts
    written, end = measures.ENDINGS[settings.ending]
    lists = {s: retrieval.retrieve(knowledge, rows, s, n, settings.seed) for s in strategies if s not in SEARCHED}
    candidates = retrieval.candidates(knowledge, rows, lists.values(), written)
    scores = store.score(model, prompts, candidates, folder, end=end)
    plausible = measures.plausibility(scores, settings.ending)
    costs = {}
    for name in [s for s in SEARCHED if s in strategies]:
        method, order = SEARCHED[name]
        requests, spaces = retrieval.searches(knowledge, rows, prompts, n, written)
        found = search(model, requests, spaces, folder, end, method)
        costs[f"Dist. {NAMES[name]}"] = _cost(found)
        lists[name] = retrieval.allowed(knowledge, rows, found, n, order)
    outcomes = {name: measures.outcomes(plausible, rows, ranked, n) for name, ranked in lists.items()}
    if written:  # the baseline scores the bare label
        scores = store.score(model, prompts, retrieval.candidates(knowledge, rows, []), folder)
    return DistractorScores(outcomes, baselines.probability(scores, rows), costs)


def score_endings(
    model, knowledge: Knowledge, facts: Facts, prompts: pd.DataFrame, folder: Path, settings: DistractorSettings
) -> dict[str, dict[str, pd.DataFrame]]:
    """Ending of labels (``measures.ENDINGS``) -> outcomes with random and with similar distractors."""
    return {
        ending: score_distractors(
            model, knowledge, facts, prompts, folder, replace(settings, ending=ending), ("random", "sem")
        ).outcomes
        for ending in measures.ENDINGS
    }


def score_texts(
    model,
    knowledge: Knowledge,
    facts: Facts,
    prompts: pd.DataFrame,
    folder: Path,
    settings: DistractorSettings,
    helpers: Helpers = NO_HELPERS,
) -> TextScores:
    """Score the measures that read generated text: Precision@n, ROUGE-L, and with helpers BERT-score and LLM-as-a-judge."""
    labels, most = labels_of(knowledge, facts), settings.next_tokens
    following = store.generate(model, prompts, folder, max_new_tokens=1, beams=most, returned=most)
    grids = {"Precision@n": baselines.precision(following, labels, grid_sizes(most))}
    costs = {"Precision@n": _cost(following)}
    beams = {width: _beams(model, prompts, labels, folder, width) for width in settings.widths}
    frames = [frame for each in beams.values() for frame in each]
    pairs = baselines.pairs(pd.concat(frames, ignore_index=True), labels)
    for name, compute in _similarities(helpers.encoder).items():
        started = time.perf_counter()
        grids[name] = baselines.over_beams(pairs.assign(value=compute(pairs)))
        costs[name] = _cost(*frames, seconds=time.perf_counter() - started)
    if helpers.judge is None:
        return TextScores(grids, costs, None)
    read = [frame for width in judge_widths(settings) for frame in beams[width]]
    texts = pd.concat(read, ignore_index=True)
    judged = judge_texts(helpers.judge, texts, prompts, labels, folder, helpers.style)
    grids["LLM-as-a-judge"] = baselines.over_beams(judged)
    return TextScores(grids, costs | {"LLM-as-a-judge": _cost(*read, judged)}, judged)


def score_karr(
    model, knowledge: Knowledge, facts: Facts, folder: Path, seed: int = 0
) -> tuple[pd.DataFrame, dict[str, float]]:
    """KaRR of every fact: (grid with one row per fact, because KaRR has templates of its own; cost).

    Texts follow the model's start token (in the released code: nothing); the first token is never scored.
    """
    labels = dict(zip(knowledge.keys, knowledge.labels, strict=True))
    texts = karr_texts(facts.facts, knowledge.facts, labels, seed)
    wanted = pd.concat([texts[["fact", "text"]], texts[["fact", "before"]].set_axis(["fact", "text"], axis=1)])
    wanted = wanted.drop_duplicates().assign(candidate="text").rename(columns={"text": "label"})
    start = "" if model.tokens.start else model.tokenizer.eos_token
    prompts = facts.facts[["fact", "relation"]].assign(role="karr", template=1, context="none", seed=-1, text=start)
    prompts = prompts.assign(prompt="karr|" + prompts["fact"])[PROMPTS]
    rows = store.score(model, prompts, wanted[["fact", "candidate", "label"]], folder, gap="")
    logprobs = dict(zip(rows["label"], rows["token_logprobs"].map(np.asarray), strict=True))
    n_tokens = {rest: len(model.tokens.continuation(f" {rest}")) for rest in texts["rest"].unique() if rest}
    found = baselines.karr(texts, logprobs, n_tokens)
    return found.set_index("fact")[["karr"]].rename(columns={"karr": "–"}), _cost(rows)


def cloze_sentences(facts: Facts, n: int) -> pd.DataFrame:
    """The first ``n`` cloze sentences of every fact, as prompts."""
    sentences = paraphrases(facts, "cloze")
    return sentences[sentences["template"] <= n]


def load_helpers(encoder: str | None = None, judge: str | None = None) -> tuple[Helpers, str]:
    """Load the second models: (``Helpers``, a sentence that names them and the measures that are left out).

    encoder   a Hugging Face id that bert-score knows (the paper: roberta-large), a folder, or a shipped model
    judge     see ``chat.connect``
    """
    named = {"BERT-score": encoder, "LLM-as-a-judge": judge}
    substitutes = tuple(measure for measure, name in named.items() if name in organisms())
    style = "short" if "LLM-as-a-judge" in substitutes else "paper"
    folder = load(encoder).folder if "BERT-score" in substitutes else encoder
    helpers = Helpers(folder, connect(judge) if judge else None, style, substitutes)
    instead = ", a substitute for the paper's"
    said = [
        f"{measure} uses {name}{instead * (measure in substitutes)}"
        if name
        else f"{measure} is left out: no model is given"
        for measure, name in named.items()
    ]
    return helpers, f"{'; '.join(said)}."


def grid_sizes(most: int) -> list[int]:
    """The numbers of distractors (or of next tokens) of a grid: those of the paper below ``most``, and ``most``."""
    return [*(n for n in NS if n < most), most]


def judge_widths(settings: DistractorSettings) -> list[int]:
    """Widths of the beams that the judge reads: those up to ``settings.judge_width``, at least the narrowest."""
    return [width for width in settings.widths if width <= settings.judge_width] or [min(settings.widths)]


def labels_of(knowledge: Knowledge, facts: Facts) -> dict[str, tuple[str, ...]]:
    """fact -> the labels of its object."""
    at = knowledge.keys.get_indexer(facts.facts["object"])
    return {fact: knowledge.labels[e] for fact, e in zip(facts.facts["fact"], at, strict=True)}


def _beams(model, prompts: pd.DataFrame, labels: dict, folder: Path, width: int) -> list[pd.DataFrame]:
    """Texts of beams of one width, with the column ``width``, at most five tokens longer than the fact's longest label."""
    tokens = lambda label: len(model.tokens.continuation(f" {label}"))
    longest = {fact: 5 + max(map(tokens, names)) for fact, names in labels.items()}
    return [
        store.generate(model, rows, folder, max_new_tokens=n, beams=width, returned=width).assign(width=width)
        for n, rows in prompts.groupby(prompts["fact"].map(longest))
    ]


def _similarities(encoder: str | Path | None) -> dict[str, Callable[[pd.DataFrame], np.ndarray]]:
    """Measure -> similarity of ``text`` and ``label`` of every row, (rows,)."""
    rouge = lambda pairs: baselines.each_once(pairs, ["text", "label"], baselines.rouge_l)
    bert = lambda pairs: bert_score(encoder, pairs["text"].tolist(), pairs["label"].tolist())
    return {"ROUGE-L": rouge} if encoder is None else {"ROUGE-L": rouge, "BERT-score": bert}


def _cost(*frames: pd.DataFrame, seconds: float = 0.0) -> dict[str, float]:
    """The cost of computing frames of the store: ``seconds`` (plus the given ones), ``tokens`` forwarded."""
    costs = [frame.attrs["cost"] for frame in frames]
    tokens = sum(cost.get("forwarded_tokens", 0.0) for cost in costs)
    return {"seconds": seconds + sum(cost.get("seconds", 0.0) for cost in costs), "tokens": float(tokens)}


def judge_texts(judge, texts: pd.DataFrame, prompts: pd.DataFrame, labels: dict, folder: Path, style: str = "short"):
    """The judge's verdicts on generated texts: the columns of ``texts`` with ``value`` (1.0 or 0.0) and ``truth``.

    style   see ``Helpers``; each distinct prompt is judged once
    """
    if style not in ("paper", "short"):
        raise unknown("style of a judge", style, ["paper", "short"])
    sentences = texts["prompt"].map(prompts.set_index("prompt")["text"])
    predictions = texts["text"].map(baselines.first_phrase if style == "short" else str.strip)
    queries = [
        short_judge_prompt(sentence, labels[fact][0], text)
        if style == "short"
        else judge_prompt(sentence, labels[fact], text)
        for sentence, text, fact in zip(sentences, predictions, texts["fact"], strict=True)
    ]
    different = pd.DataFrame({"text": queries, "fact": texts["fact"], "relation": texts["relation"]})
    different = different.drop_duplicates("text")
    different = different.assign(prompt=[f"judge|{i}" for i in range(len(different))], role="judge", template=1)
    different = different.assign(context="none", seed=-1)[PROMPTS]
    chat = isinstance(judge, ChatModel) or bool(getattr(judge.tokenizer, "chat_template", None))
    options = {"chat": chat, "max_new_tokens": 20} if style == "paper" else {"max_new_tokens": 3}
    answers = store.generate(judge, different, folder, **options)
    verdicts = dict(zip(answers["prompt"], answers["text"].map(baselines.verdict), strict=True))
    value = dict(zip(different["text"], different["prompt"].map(verdicts), strict=True))
    truth = [baselines.is_right(t, labels[f]) for t, f in zip(texts["text"], texts["fact"], strict=True)]
    frame = texts.assign(value=[value[query] for query in queries], truth=truth)
    frame.attrs = answers.attrs
    return frame


# Costs


def cost_per_fact(
    model,
    knowledge: Knowledge,
    facts: Facts,
    prompts: pd.DataFrame,
    settings: DistractorSettings,
    helpers: Helpers = NO_HELPERS,
) -> pd.DataFrame:
    """Tokens and milliseconds per fact for each measure, run in isolation with its largest setting: ``measure``, ``tokens``
    (forwarded), ``ms`` (median of ``settings.timings`` runs), ``ms, low``, ``ms, high`` (the fastest and the slowest run).

    Nothing is read from the store. Looking up distractors in the knowledge base and building tries of labels do not count.
    """
    runs = []
    for _ in range(settings.timings):
        with TemporaryDirectory() as name:
            runs.append(_isolated_costs(model, knowledge, facts, prompts, Path(name), settings, helpers))
    ms = pd.DataFrame([{m: cost["seconds"] for m, cost in costs.items()} for costs in runs]) * 1000 / len(facts.facts)
    tokens = pd.Series({m: cost["tokens"] for m, cost in runs[0].items()}) / len(facts.facts)
    table = {"tokens": tokens, "ms": ms.median(), "ms, low": ms.min(), "ms, high": ms.max()}
    return pd.DataFrame(table, index=tokens.index).rename_axis("measure").reset_index()


def _isolated_costs(model, knowledge, facts, prompts, folder, settings, helpers) -> dict[str, dict[str, float]]:
    """Costs of one run into an empty folder. Every strategy scores the object and its own distractors, each with the end token;
    the measure "Probability" scores the object without it."""
    rows, n = facts.facts, settings.n_distractors
    gold = retrieval.candidates(knowledge, rows, [])
    costs = {"Probability": _cost(store.score(model, prompts, gold, folder))}
    for strategy in ("random", "sem", "temp_sem"):
        lists = retrieval.retrieve(knowledge, rows, strategy, n, settings.seed)
        wanted = retrieval.candidates(knowledge, rows, [lists])
        costs[f"Dist. {NAMES[strategy]}"] = _cost(store.score(model, prompts, wanted, folder / strategy, end=True))
    found = search(model, *retrieval.searches(knowledge, rows, prompts, n), folder)
    costs["Dist. ApprOpt"] = _cost(found, store.score(model, prompts, gold, folder, end=True))
    widest = replace(settings, widths=(max(settings.widths),))
    texts = score_texts(model, knowledge, facts, prompts, folder, widest, Helpers(helpers.encoder))
    costs |= texts.costs
    if helpers.judge is not None:
        read = replace(settings, next_tokens=1, widths=(max(judge_widths(settings)),))
        judged = score_texts(model, knowledge, facts, prompts, folder / "judge", read, helpers._replace(encoder=None))
        costs["LLM-as-a-judge"] = judged.costs["LLM-as-a-judge"]
    return costs | {"KaRR": score_karr(model, knowledge, facts, folder, settings.seed)[1]}


# Searches


FOUND = ["model", "relation", "fact", "prompt", "rank", "candidate", "logprob", "label", "label_logprob"]
FOUND += ["forwarded_tokens", "trie_tokens"]


def search(
    model,
    prompts: pd.DataFrame,
    spaces: dict[str, dict[str, list[str]]],
    folder: str | Path,
    end: bool = True,
    method: str = "beam",
) -> pd.DataFrame:
    """The most probable candidates after every prompt: ``model``, ``relation``, ``fact``, ``prompt``, ``rank`` (from 1),
    ``candidate``, ``logprob`` (nats, sum over its labels), ``label`` and ``label_logprob`` (its most probable one), and per
    prompt ``forwarded_tokens`` and ``trie_tokens`` (tokens that scoring all labels would read).

    prompts   a frame of ``prompts``, with ``space`` and ``wanted`` (how many); see ``retrieval.searches``
    spaces    {space: {candidate: [labels with their leading blank]}}; its trie is built once per model
    end, method   as in ``lm.labels.top_continuations``
    """
    from probelib.lm.decode.labels import Labels

    def compute(part: store.Part) -> tuple[pd.DataFrame, dict]:
        frames, costs = [], []
        for (space, wanted), rows in part.prompts.groupby(["space", "wanted"], sort=False):
            key = (digests[space], end)
            if key not in model.tries:
                model.tries[key] = Labels(model, spaces[space], end)
            found = model.top_continuations(rows["text"].tolist(), model.tries[key], wanted, end, method)
            costs.append(found.attrs["cost"])
            asked = rows.iloc[found["prompt"].to_numpy()]
            found["rank"] = found.groupby("prompt").cumcount() + 1
            spent = {"trie_tokens": found.attrs["cost"]["trie_tokens"], "fact": asked["fact"].to_numpy()}
            frames.append(found.assign(**spent, prompt=asked["prompt"].to_numpy()))
        frame = pd.concat(frames, ignore_index=True).assign(model=model.name, relation=part.relation)
        turn = {prompt: i for i, prompt in enumerate(part.prompts["prompt"])}
        frame = frame.sort_values("prompt", key=lambda p: p.map(turn), kind="stable", ignore_index=True)
        return frame[FOUND], store.sum_costs(costs)

    digests = {name: files.sha256(json.dumps(spaces[name]).encode()) for name in prompts["space"].unique()}
    options = {"end": end, "method": method}
    keyed = [*zip(prompts["space"].map(digests), prompts["wanted"], strict=True)]
    prompts = prompts.assign(searched=keyed)
    parts = store.parts(model, prompts, None, folder, "search", options, keyed=("prompt", "text", "searched"))
    return store.collect(model, parts, compute)


class Searched(NamedTuple):
    """The candidates that the beam and the exact search found after the same prompts, and the distractors among them (Eq. 4)."""

    beam: pd.DataFrame
    exact: pd.DataFrame
    approximate: pd.DataFrame
    optimal: pd.DataFrame


def search_both(model, knowledge: Knowledge, facts: Facts, prompts: pd.DataFrame, folder: Path, n: int) -> Searched:
    """Search the ``n`` most plausible distractors with a beam and exactly."""
    requests, spaces = retrieval.searches(knowledge, facts.facts, prompts, n)
    found = [search(model, requests, spaces, folder, method=method) for method in ("beam", "best_first")]
    return Searched(*found, *(retrieval.allowed(knowledge, facts.facts, rows, n) for rows in found))


def score_optimum(
    models: list[str], knowledge: Knowledge, facts: Facts, folder: Path, settings: DistractorSettings, quantize=None
) -> dict[str, pd.DataFrame]:
    """Model -> which of the (at most 20) most plausible distractors are beaten after the first cloze sentence (figure 8)."""
    sentences, found = cloze_sentences(facts, 1), {}
    few = replace(settings, n_distractors=min(20, settings.n_distractors))
    for name in models:
        model = load(name, quantize=quantize, dtype=settings.dtype)
        scores = score_distractors(model, knowledge, facts, sentences, folder, few, ("opt",))
        found[name] = scores.outcomes["opt"]
    return found


def search_by_width(
    model, knowledge: Knowledge, facts: Facts, prompts: pd.DataFrame, folder: Path, n: int, factors=(1, 2, 5)
) -> pd.DataFrame:
    """The share of the ``n`` optimal distractors that beams of several widths find, and the tokens that the searches read
    (``measures.summarize_searches``). The widths are n times each of ``factors``; a beam has further places for excluded
    values."""
    both = search_both(model, knowledge, facts, prompts, folder, n)
    optimal = both.optimal[["prompt", "candidate", "rank"]]
    read = lambda found, column: found.drop_duplicates("prompt").set_index("prompt")[column]
    frames = []
    for width in [*(n * factor for factor in factors), np.nan]:
        beam, kept = both.exact, both.optimal
        if np.isfinite(width):
            requests, spaces = retrieval.searches(knowledge, facts.facts, prompts, width)
            beam = search(model, requests, spaces, folder, method="beam")
            kept = retrieval.allowed(knowledge, facts.facts, beam, width)
        marked = kept[["prompt", "candidate"]].assign(hit=True)
        hit = optimal.assign(hit=optimal.merge(marked, "left", ["prompt", "candidate"])["hit"].eq(True).to_numpy())
        columns = {
            "found": hit.groupby("prompt")["hit"].mean(),
            "strongest": hit[hit["rank"] == 1].set_index("prompt")["hit"],
        }
        columns |= {"tokens": read(beam, "forwarded_tokens"), "all labels": read(both.exact, "trie_tokens")}
        frames.append(pd.DataFrame(columns).assign(search="beam" if np.isfinite(width) else "exact", width=width))
    return measures.summarize_searches(pd.concat(frames, ignore_index=True))


class Sample(NamedTuple):
    """One fact with its distractors by strategy (table 7)."""

    fact: str  # subject, relation, object
    sentence: str  # after which the searches run
    lists: dict[str, list[str]]  # strategy -> labels
    width: int  # of the beam
    strongest: dict[str, float]  # "appropt", "opt" -> log Pl (nats) of its first distractor; NaN without any


def sample_lists(model, knowledge: Knowledge, facts: Facts, folder: Path, seed: int = 0, n: int = 15) -> Sample:
    """The first ``n`` distractors of one fact by strategy, as labels."""
    sentence = cloze_sentences(facts, 1)
    lists = {
        s: retrieval.retrieve(knowledge, facts.facts, s, n, seed)["candidate"] for s in ("random", "sem", "temp_sem")
    }
    found = search_both(model, knowledge, facts, sentence, folder, n)
    lists |= {"appropt": found.approximate["candidate"], "opt": found.optimal["candidate"]}
    row, relation = facts.facts.iloc[0], facts.relations.set_index("relation")["name"]
    (subject, obj), named = facts.label(row[["subject", "object"]]), relation.get(row["relation"], row["relation"])
    return Sample(
        f"{subject}, {named}, {obj}",
        sentence["text"].iloc[0],
        {s: list(knowledge.facts.label(names)) for s, names in lists.items()},
        int(retrieval.searches(knowledge, facts.facts, sentence, n)[0]["wanted"].iloc[0]),
        {s: rows["logprob"].max() for s, rows in (("appropt", found.approximate), ("opt", found.optimal))},
    )


def sample_fact(current: Facts, otherwise: Facts, fact: str = SAMPLE) -> Facts:
    """The paper's example of table 7, or the first fact of ``otherwise`` if the data lack it."""
    chosen = current if fact in set(current.facts["fact"]) else otherwise
    wanted = fact if chosen is current else chosen.facts["fact"].iloc[0]
    return keep(chosen, chosen.facts["fact"] == wanted)


# What workers score before a notebook runs


@lru_cache(maxsize=2)
def _knowledge(data: str, folder: str | None) -> Knowledge:
    return retrieval.knowledge(everything(data, folder))


def studied_model(models: list[str], settings: DistractorSettings) -> str:
    """The name of the model of figures 3, 4 and 6: the settings' ``studied``, or the last one."""
    return settings.studied if settings.studied in models else models[-1]


def _request(models: Callable, n_facts: Callable, score: Callable, *uses: str) -> store.Request:
    """A request for ``n_facts(values)`` facts per relation."""

    def facts(values: dict) -> Facts:
        selected = {name: values[name] for name in ("data", "folder", "relations") if name in values}
        return load_facts(**selected, n_facts=n_facts(values), seed=_settings(values).seed)

    return store.Request(("data", "folder", "relations", "settings", *uses), models, facts, score)


def _settings(values: dict) -> DistractorSettings:
    return parameters.complete(DistractorSettings, values.get("settings", {}))


def _studied(values: dict) -> list[str]:
    return [studied_model(values["models"], _settings(values))]


def _score_sentences(model, facts: Facts, values: dict, folder: Path) -> None:
    """Every strategy's distractors after every sentence, and KaRR's texts."""
    knowledge, settings = _knowledge(values["data"], values.get("folder")), _settings(values)
    score_distractors(model, knowledge, facts, cloze_sentences(facts, settings.n_sentences), folder, settings)
    score_karr(model, knowledge, facts, folder, settings.seed)


def _score_first(model, facts: Facts, values: dict, folder: Path, strategies: tuple[str, ...]) -> None:
    """The distractors of some strategies after the first sentence."""
    knowledge = _knowledge(values["data"], values.get("folder"))
    score_distractors(model, knowledge, facts, cloze_sentences(facts, 1), folder, _settings(values), strategies)


REQUESTS = {
    "score": _request(_studied, lambda values: _settings(values).rated_facts, _score_sentences),
    "retrieved": _request(
        _studied, lambda values: values["n_facts"], partial(_score_first, strategies=STRATEGIES), "n_facts"
    ),
    "approximate": _request(
        lambda values: values["models"],
        lambda values: values["n_facts"],
        partial(_score_first, strategies=("appropt",)),
        "n_facts",
    ),
}
