"""What the Distractors paper scores: a ``Study`` in, a grid per measure out, through the store.

A grid has one row per (fact, prompt) and one column per configuration of its measure, the cheapest
first. ``attrs["cost"]`` holds the ``seconds`` and ``tokens`` (forwarded) of its own requests.
"""

import time
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from probelib import store
from probelib.distractors import baselines, measures, retrieval
from probelib.distractors.prompts import judge_prompt, karr_texts
from probelib.distractors.retrieval import NAMES, Knowledge
from probelib.facts.model import Facts
from probelib.lm.loading import connect, load
from probelib.lm.names import organisms
from probelib.lm.remote.served import ChatModel
from probelib.prompts import RECALL, paraphrases

NS = (1, 2, 5, 10, *range(20, 201, 20))  # distractors, and next tokens of Precision@n (section 4.2)
TIMES = 3  # runs per measure when its cost is measured
STRATEGIES = ("random", "sem", "temp_sem", "appropt")
# strategy -> search, order of its list
SEARCHED = {"appropt": ("beam", "label_logprob"), "opt": ("best_first", "logprob")}


@dataclass(frozen=True)
class DistractorSettings:
    """Settings of the notebooks; defaults: the paper's (section 4.2) unless a line says so."""

    n_sentences: int = 5  # cloze sentences per fact
    n_distractors: int = 200  # per fact (section 4.1: 100)
    next_tokens: int = 200  # most probable next tokens that Precision@n reads
    widths: tuple[int, ...] = (1, 2, 5, 10, 20, 30, 50, 100)  # of the beams that are compared
    judge_width: int = 5  # widest of these beams that the judge reads
    ending: str = "eos"  # what ends a label, see ``measures.ENDINGS``
    rated_facts: int | str = 6  # facts per relation that have ratings, or "all" (paper: 210)
    ratings_file: str | None = None  # human ratings; None: exposure counts
    verbalizations: str | None = None  # annotated sentences (taxonomy.csv); None: errors by rule
    studied: str | None = None  # the model of figures 3, 4 and 6; None: the last one
    n_former: int = 100  # facts per relation of S', whose subjects had another object before
    n_optimum: int = 60  # facts of the exact search, which the paper does not run
    dtype: str = "auto"  # of the weights: "auto", "float32", "bfloat16" or "float16"
    seed: int = 0  # of random distractors and of facts


@dataclass(frozen=True)
class Study:
    """One model and the facts that it is scored on."""

    model: object
    knowledge: Knowledge
    facts: Facts
    sentences: pd.DataFrame  # cloze sentences of the facts, as prompts (``cloze_sentences``)
    folder: Path  # the store's
    how: DistractorSettings
    strategies: tuple[str, ...] = STRATEGIES  # whose distractors are scored, all in one request
    encoder: str | Path | None = None  # for BERT-score: an id or a folder; None leaves it out
    judge: object = None  # for LLM-as-a-judge, see ``lm.loading.connect``; None leaves it out
    paper: bool = False  # the judge gets the paper's prompt; else that of the ``-it`` organisms

    @cached_property
    def lists(self) -> dict[str, pd.DataFrame]:
        """Strategy -> its distractors: per fact, or per sentence where the model is searched."""
        found, kb, rows, how = {}, self.knowledge, self.facts.facts, self.how
        written, end = measures.ENDINGS[how.ending]
        for s in sorted(self.strategies, key=lambda s: s in SEARCHED):
            if s not in SEARCHED:
                found[s] = retrieval.retrieve(kb, rows, s, how.n_distractors, how.seed)
                continue
            method, order = SEARCHED[s]
            asked, spaces = retrieval.searches(kb, rows, self.sentences, how.n_distractors, written)
            hits = store.search(self.model, asked, spaces, self.folder, end, method)
            found[s] = retrieval.allowed(kb, rows, hits, how.n_distractors, order)
            found[s].attrs["cost"] = hits.attrs["cost"]
        return found

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Labels of the objects, and of distractors that need no search, after every sentence."""
        written, end = measures.ENDINGS[self.how.ending]
        plain = [own for s, own in self.lists.items() if s not in SEARCHED]
        wanted = retrieval.candidates(self.knowledge, self.facts.facts, plain, written)
        return store.score(self.model, self.sentences, wanted, self.folder, end=end)

    @cached_property
    def outcomes(self) -> dict[str, pd.DataFrame]:
        """Strategy -> which distractors are beaten (``measures.outcomes``)."""
        plausible = measures.plausibility(self.scores, self.how.ending)
        outcomes = partial(measures.outcomes, plausible, self.facts.facts, n=self.how.n_distractors)
        return {s: outcomes(lists=own) for s, own in self.lists.items()}

    @cached_property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """fact -> the labels of its object."""
        at = self.knowledge.keys.get_indexer(self.facts.facts["object"])
        own = [self.knowledge.labels[entity] for entity in at]
        return dict(zip(self.facts.facts["fact"], own, strict=True))

    @cached_property
    def beams(self) -> dict[int, pd.DataFrame]:
        """Width -> texts of beams, at most five tokens longer than the fact's longest label;
        ``attrs["cost"]``."""
        tokens = lambda label: len(self.model.tokens.continuation(f" {label}"))
        longest = {fact: 5 + max(map(tokens, names)) for fact, names in self.labels.items()}
        groups, found = list(self.sentences.groupby(self.sentences["fact"].map(longest))), {}
        for width in self.how.widths:
            ask = partial(store.generate, self.model, folder=self.folder, returned=width)
            parts = [ask(rows, max_new_tokens=n, beams=width) for n, rows in groups]
            found[width] = pd.concat(parts, ignore_index=True).assign(width=width)
            found[width].attrs["cost"] = store.sum_costs(part.attrs["cost"] for part in parts)
        return found

    @property
    def judge_widths(self) -> list[int]:
        """Widths of the beams that the judge reads, at least the narrowest."""
        return [w for w in self.how.widths if w <= self.how.judge_width] or [min(self.how.widths)]


def cloze_sentences(facts: Facts, n: int) -> pd.DataFrame:
    """The first ``n`` cloze sentences of every fact, as prompts."""
    sentences = paraphrases(facts, "cloze")
    return sentences[sentences["template"] <= n]


def second_models(encoder: str | None = None, judge: str | None = None) -> dict[str, object]:
    """The fields ``encoder``, ``judge`` and ``paper`` of a ``Study``, by name: see
    ``baselines.bert_score`` and ``lm.loading.connect``; organisms replace the paper's models."""
    folder = load(encoder).folder if encoder in organisms() else encoder
    connected = connect(judge) if judge else None
    return {"encoder": folder, "judge": connected, "paper": judge not in organisms()}


def score(study: Study, names: list[str] | None = None) -> dict[str, pd.DataFrame]:
    """Measure -> its grid, for all (or ``names``) whose second model the study has."""
    absent = {"BERT-score": study.encoder is None, "LLM-as-a-judge": study.judge is None}
    return {name: MEASURES[name](study) for name in names or MEASURES if not absent.get(name)}


def outcomes_by_model(names: list[str], study: Study, quantize: str | None = None):
    """Model -> which distractors of the study's first strategy are beaten (figures 5 and 8);
    ``attrs["parameters"]``: the model's size."""
    found = {}
    for name in names:
        model = load(name, quantize=quantize, dtype=study.how.dtype)
        found[name] = replace(study, model=model).outcomes[study.strategies[0]]
        found[name].attrs["parameters"] = model.n_parameters
    return found


def cost_per_fact(study: Study) -> pd.DataFrame:
    """Tokens and milliseconds per fact of each measure, run in isolation with its largest setting
    into an empty store: ``measure``, ``tokens per fact`` (forwarded), ``ms per fact`` (median of
    ``TIMES`` runs) and, as its low and high, the fastest and the slowest run. Looking up
    distractors in the knowledge base and building tries of labels do not count."""
    runs = []
    for _ in range(TIMES):
        costs = {}
        for name in MEASURES:
            widths = study.judge_widths if name == "LLM-as-a-judge" else study.how.widths
            how = replace(study.how, widths=(max(widths),))
            own = tuple(s for s in STRATEGIES if name == f"Dist. {NAMES[s]}")
            with TemporaryDirectory() as folder:
                alone = replace(study, folder=Path(folder), how=how, strategies=own)
                for grid in score(alone, [name]).values():
                    costs[name] = grid.attrs["cost"]
        runs.append(pd.DataFrame(costs) / len(study.facts.facts))
    ms = 1000 * pd.DataFrame([run.loc["seconds"] for run in runs])
    table = {"tokens per fact": runs[0].loc["tokens"], "ms per fact": ms.median()}
    table |= {"ms per fact low": ms.min(), "ms per fact high": ms.max()}
    return pd.DataFrame(table).rename_axis("measure").reset_index()


def _costing(grid: pd.DataFrame, *costs: dict) -> pd.DataFrame:
    """The grid with the summed cost of its requests."""
    total = store.sum_costs(costs)
    tokens = float(total.get("forwarded_tokens", 0.0))
    grid.attrs["cost"] = {"seconds": total.get("seconds", 0.0), "tokens": tokens}
    return grid


def _sizes(most: int) -> list[int]:
    """The numbers of distractors or next tokens of a grid: the paper's below ``most``, and it."""
    return [*(n for n in NS if n < most), most]


def _distractors(study: Study, strategy: str) -> pd.DataFrame:
    """Min@n and Avg@n against the distractors of one strategy."""
    searched = study.lists[strategy].attrs["cost"] if strategy in SEARCHED else {}
    grid = measures.grid(study.outcomes[strategy], _sizes(study.how.n_distractors))
    return _costing(grid, study.scores.attrs["cost"], searched)


def _probability(study: Study) -> pd.DataFrame:
    """Probability of the object's bare labels, from the strategies' scores if these have them."""
    if not study.strategies or measures.ENDINGS[study.how.ending][0]:
        study = replace(study, strategies=(), how=replace(study.how, ending="none"))
    grid = baselines.probability(study.scores, study.facts.facts)
    return _costing(grid, study.scores.attrs["cost"])


def _precision(study: Study) -> pd.DataFrame:
    """Precision@n: whether one of the n most probable next tokens is a label of the object."""
    n = study.how.next_tokens
    ask = partial(store.generate, max_new_tokens=1, beams=n, returned=n)
    tokens = ask(study.model, study.sentences, study.folder)
    return _costing(baselines.precision(tokens, study.labels, _sizes(n)), tokens.attrs["cost"])


def _similarity(study: Study, compute) -> pd.DataFrame:
    """The largest similarity of a text of a beam with a label of the object, by width."""
    beams, started = study.beams.values(), time.perf_counter()
    rows = pd.concat(beams, ignore_index=True)
    rows = rows.assign(label=rows["fact"].map(study.labels).map(list)).explode("label")
    value = compute(rows["text"].str.strip().tolist(), rows["label"].tolist())
    grid = baselines.over_beams(rows.assign(value=value))
    spent = {"seconds": time.perf_counter() - started}
    return _costing(grid, spent, *(frame.attrs["cost"] for frame in beams))


def judge_texts(study: Study) -> pd.DataFrame:
    """The texts of the judge's beams with ``value`` (its verdict, 1.0 or 0.0). Each distinct prompt
    is judged once."""
    texts = pd.concat([study.beams[w] for w in study.judge_widths], ignore_index=True)
    sentences, labels = study.sentences.set_index("prompt")["text"], texts["fact"].map(study.labels)
    cases, queries = zip(texts["prompt"].map(sentences), texts["text"], labels, strict=True), []
    for sentence, text, names in cases:
        if study.paper:
            queries.append(judge_prompt(sentence, names, text))
        else:  # the first sentence that was generated, and the label that the judge would recall
            said = text.strip().split("\n")[0].rstrip(". ").strip().rstrip(".")
            queries.append(f"{RECALL.format(statement=f'{sentence} {said}.')} {names[0]}.")
    asked = texts[["fact", "relation"]].assign(text=queries).drop_duplicates("text")
    asked, judge = asked.assign(prompt=[f"judge|{i}" for i in range(len(asked))]), study.judge
    options = {"max_new_tokens": 3}
    if study.paper:
        chat = isinstance(judge, ChatModel) or bool(getattr(judge.tokenizer, "chat_template", None))
        options = {"chat": chat, "max_new_tokens": 20}
    answers = store.generate(judge, asked, study.folder, **options)
    verdicts = answers.set_index("prompt")["text"].map(baselines.judged_correct)
    value = dict(zip(asked["text"], asked["prompt"].map(verdicts), strict=True))
    judged = texts.assign(value=[value[query] for query in queries])
    judged.attrs["cost"] = answers.attrs["cost"]
    return judged


def _llm_as_a_judge(study: Study) -> pd.DataFrame:
    """Whether the judge calls a text of a beam right, by width."""
    judged, read = judge_texts(study), [study.beams[w].attrs["cost"] for w in study.judge_widths]
    return _costing(baselines.over_beams(judged), judged.attrs["cost"], *read)


def _karr(study: Study) -> pd.DataFrame:
    """KaRR, one row per fact: it has templates of its own. Its texts follow the model's start token
    (in the released code: nothing); the first token is never scored."""
    rows, kb, model = study.facts.facts, study.knowledge, study.model
    texts = karr_texts(rows, kb.facts, dict(zip(kb.keys, kb.labels, strict=True)), study.how.seed)
    wanted = [texts[["fact", c]].set_axis(["fact", "label"], axis=1) for c in ("text", "before")]
    wanted = pd.concat(wanted).drop_duplicates()
    wanted.insert(1, "candidate", "text")
    start = "" if model.tokens.start else model.tokenizer.eos_token
    asked = rows[["fact", "relation"]].assign(prompt="karr|" + rows["fact"], text=start)
    scores = store.score(model, asked, wanted, study.folder, gap="")
    logprobs = dict(zip(scores["label"], scores["token_logprobs"].map(np.asarray), strict=True))
    rests = [rest for rest in texts["rest"].unique() if rest]
    n_tokens = {rest: len(model.tokens.continuation(f" {rest}")) for rest in rests}
    found = baselines.karr(texts, logprobs, n_tokens).set_index("fact")
    return _costing(found[["karr"]].rename(columns={"karr": "–"}), scores.attrs["cost"])


MEASURES = {
    "Probability": _probability,
    **{f"Dist. {NAMES[s]}": partial(_distractors, strategy=s) for s in STRATEGIES},
    "Precision@n": _precision,
    "ROUGE-L": partial(_similarity, compute=baselines.rouge_l),
    "BERT-score": lambda study: _similarity(study, partial(baselines.bert_score, study.encoder)),
    "LLM-as-a-judge": _llm_as_a_judge,
    "KaRR": _karr,
}


def sample_lists(study: Study) -> pd.DataFrame:
    """The first 15 distractors of the study's only fact by strategy, as labels (table 7)."""
    n = 15
    kb, how = study.knowledge, replace(study.how, n_distractors=n)
    lists = replace(study, strategies=(*STRATEGIES, "opt"), how=how).lists
    lists = {NAMES[s]: pd.Series(kb.facts.label(own["candidate"])) for s, own in lists.items()}
    table = pd.DataFrame(lists, index=range(n)).fillna("")
    table.insert(0, "rank", range(1, n + 1))
    return table
