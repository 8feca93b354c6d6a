"""What ZP-LKE scores: its examples, inputs and options, and the calls that score them.

``score`` and ``generate`` yield one model's rows at a time: with the paper's models, facts and draws of examples, one model has
ten million rows.
"""

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import lm, parameters, store
from probelib.errors import ProbeError
from probelib.facts import Facts, choose, load, multiple_choice
from probelib.lm.partners import pairs_with_base, tuned_pairs
from probelib.prompts import many_shots, sample_examples
from probelib.prompts import options as prompt_options
from probelib.zplke.settings import ModelsSettings, PromptsSettings

DECISIONS = {  # how pairs are written: (arguments of ``many_shots``, text before an option)
    "as here: a blank": ({}, " "),
    "a comma": ({"gap": ", "}, " "),
    "a line break": ({"gap": "\n"}, " "),
    "as released": ({"variant": "released"}, " : "),
}


def shared_examples(
    facts: Facts, pool: Facts, models: Iterable = (), n_examples: int | str = 50, draws: int = 2, seed: int = 0
) -> pd.DataFrame:
    """``draws`` draws of ``n_examples`` examples per relation: a frame of examples (see ``prompts``).

    facts, pool   ``facts.multiple_choice``
    models        loaded models, into whose contexts the longest list must fit; "max": the longest list that fits into all
    """
    drawn = pd.concat([sample_examples(pool, facts, n_examples, seed + i) for i in range(draws)])
    fitting = [fit_examples(n_examples, drawn, facts, model) for model in models]
    return drawn[drawn["position"] <= min(fitting)] if fitting else drawn


def facts_beside_examples(relation: str, facts: Facts, pool: Facts, settings: PromptsSettings) -> int:
    """Number of facts of figure 6: ``n_relation``, or fewer, so that enough remain for the examples."""
    there = sum((some.facts["relation"] == relation).sum() for some in (facts, pool))
    return max(1, min(settings.n_relation, int(there) - settings.n_examples))


def fit_examples(n: int | str, examples: pd.DataFrame, facts: Facts, model, room: int = 16) -> int:
    """Return ``n`` if zero-prompt inputs with ``n`` examples fit into the model's context; with "max" the number that fits.

    model   its context must hold the tokens around every text, the examples, the longest subject and ``room`` tokens of an
            object
    """
    length = lambda texts: [len(ids) for ids in model.tokens.encode(texts)]
    context = model.context - len(model.tokens.prompts(["a"])[0]) + len(model.tokens.encode(["a"])[0])
    subjects = facts.facts.assign(label=facts.label(facts.facts["subject"])).groupby("relation")["label"]
    longest = {relation: max(length([f" {label}" for label in labels])) for relation, labels in subjects}
    most = {}
    for (relation, _), shots in examples.groupby(["relation", "seed"]):
        each = np.cumsum(length([f" {x} {y}" for x, y in zip(shots["subject"], shots["object"], strict=True)]))
        fitting = int(np.searchsorted(each, context - longest[relation] - room, side="right"))
        most[relation] = min(fitting, most.get(relation, fitting))
    relation, fits = min(most.items(), key=lambda item: item[1])
    if n == "max":
        return fits
    if not isinstance(n, int) or not 0 < n <= fits:
        raise ProbeError(
            f"n_examples={n!r}: at most {fits} examples of relation {relation} are in the pool and fit into the {model.context} "
            f"tokens that the model reads; use a number from 1 to {fits}, or 'max'"
        )
    return n


def score(models: dict, inputs: pd.DataFrame, options: pd.DataFrame, folder: str | Path, gap: str = " ") -> Iterator:
    """Score every option after every input [zplke, Eq. 2]: ``store.score``, one model at a time.

    models   name -> loaded model;   inputs: a frame of ``prompts``;   options: ``prompts.options``
    gap      text between input and option; " : " for the released code
    """
    for model in models.values():
        yield store.score(model, inputs, options, folder, gap=gap)


def generate(models: dict, inputs: pd.DataFrame, folder: str | Path, new_tokens: int = 50, **options) -> Iterator:
    """Greedy text after every input, for the response test: ``store.generate``, one model at a time."""
    for model in models.values():
        yield store.generate(model, inputs, folder, max_new_tokens=new_tokens, **options)


def describe(models: dict, base_of: dict[str, str]) -> pd.DataFrame:
    """``model``, ``kind`` (base or fine-tuned), ``base`` ("" for base models), ``parameters`` (without embeddings) and
    ``context`` (tokens) of loaded models; ``base_of``: see ``bases``."""
    kind = {name: "fine-tuned" for name in base_of}
    rows = [
        (name, kind.get(name, "base"), base_of.get(name, ""), model.n_parameters, model.context)
        for name, model in models.items()
    ]
    return pd.DataFrame(rows, columns=["model", "kind", "base", "parameters", "context"])


def bases(models: list[str], tuned: list[str]) -> dict[str, str]:
    """Fine-tuned model -> its base; "" if that is not among ``models``."""
    return dict.fromkeys(tuned_pairs(tuned), "") | dict(pairs_with_base(models, tuned))


def score_ways(models: dict, inputs: pd.DataFrame, options: pd.DataFrame, folder: str | Path) -> Iterator:
    """``score`` of the inputs of ``five_ways``: per model the lists, then the prompts."""
    is_list = inputs["method"] == "ZP-LKE"
    for name, model in models.items():
        for part in (inputs[is_list], inputs[~is_list]):
            yield from score({name: model}, part, options, folder)


def generate_ways(models: dict, inputs: pd.DataFrame, folder: str | Path, new_tokens: int) -> Iterator:
    """``generate`` for the response test: ZP-LKE after the first draw, few-shot HGP with its first prompt, all other prompts."""
    lists = inputs["method"] == "ZP-LKE"
    first_draw = lists & (inputs["seed"] == inputs.loc[lists, "seed"].min())
    prompted = ~lists & ~((inputs["method"] == "few-shot HGP") & (inputs["template"] > 1))
    chosen = pd.concat([inputs[first_draw], inputs[prompted]])
    yield from generate(models, chosen, folder, new_tokens, batch=32)


def score_decisions(models: dict, facts: Facts, examples: pd.DataFrame, options: pd.DataFrame, folder) -> Iterator:
    """(decision, inputs, scores) for every model and every way to write pairs (``DECISIONS``), on the first draw."""
    first = examples[examples["seed"] == examples["seed"].min()]
    for name, model in models.items():
        for decision, (arguments, gap) in DECISIONS.items():
            inputs = many_shots(facts, first, **arguments)
            yield decision, inputs, next(score({name: model}, inputs, options, folder, gap))


DATA = ("data", "folder", "relations", "n_facts")


def _settings(values: dict) -> ModelsSettings:
    return parameters.complete(ModelsSettings, values["settings"])


@lru_cache(maxsize=2)
def _test(values: str) -> tuple[Facts, Facts]:
    """``facts.multiple_choice`` of parameters in JSON."""
    given = json.loads(values)
    return multiple_choice(**{name: given[name] for name in DATA if name in given}, seed=_settings(given).seed)


@lru_cache(maxsize=2)
def _examples(values: str) -> pd.DataFrame:
    """The examples of parameters in JSON, as many as fit into the context of every model."""
    given = json.loads(values)
    models = [lm.load(name, quantize=given.get("quantize"), dtype=given["dtype"]) for name in store.all_models(given)]
    return shared_examples(*_test(values), models, **vars(_settings(given)))


def _requested(values: dict) -> Facts:
    """The tested facts. Only two data sets need ``facts.multiple_choice``; for the others ``facts.load`` is faster."""
    if values["data"] in ("fktc", "trex_mc"):
        return _test(json.dumps(values))[0]
    return load(**{name: values[name] for name in DATA if name in values}, seed=_settings(values).seed)


def _score(model, asked: Facts, values: dict, folder: Path) -> None:
    """The options of every fact after lists of examples."""
    given = json.dumps(values)
    tested = choose(_test(given)[0], asked.relations["relation"].tolist())
    inputs, options = many_shots(tested, _examples(given)), prompt_options(tested, _settings(values).seed)
    for _ in score({model.name: model}, inputs, options, folder):
        pass


REQUESTS = {
    "score": store.Request(
        uses=("models", "tuned", "quantize", "dtype", *DATA, "settings"),
        models=store.all_models,
        facts=_requested,
        score=_score,
    )
}
