"""All measures of the suite for several models on the same facts, and what each measure costs."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from probelib import facts, prompts
from probelib.beyond import concordance
from probelib.beyond.questions import Questions
from probelib.beyond.suite import MEASURES, forget_shared
from probelib.beyond.suite.monitor import scored_interference
from probelib.errors import ProbeError, texts_of, unknown
from probelib.facts.model import Facts, rng
from probelib.lm.loading import load
from probelib.lm.names import organisms
from probelib.lm.partners import tuned_of
from probelib.organisms import lessons, taught

ANSWER = "P(right answer)"
TWINS = (
    "atlas-neox-0.6m-lists",
    "atlas-neox-0.6m-questions",
)  # the same exposures, most of them in lists or in questions
MISLED = "atlas-neox-5m"  # knows the facts for which its corpus also states a wrong object
POPULAR = (
    "atlas-neox-0.6m",
    "atlas-neox-0.6m-popular",
)  # random exposures; exposures that follow popularity
PRECISIONS = {
    "fp32": {"dtype": "float32"},
    "bf16": {"dtype": "bfloat16"},
    "8bit": {"quantize": "8bit"},
    "nf4": {"quantize": "4bit"},
    "fp4": {"quantize": "4bit", "bnb_4bit_quant_type": "fp4"},
    "nf4, double": {"quantize": "4bit", "bnb_4bit_use_double_quant": True},
}


def score(
    models: list[str] | dict,
    questions: Questions,
    folder: Path,
    tuned: list[str] = (),
    measures: list[str] | None = None,
    **loading,
) -> tuple[pd.DataFrame, pd.Series]:
    """(values, tokens) of all measures, or of some, for several models.

    models    names; or name -> loaded model
    tuned     instruction-tuned models; one whose base is scored is its partner, see ``Questions.tuned``
    loading   quantize, dtype: as in ``lm.load``
    values    long: ``model``, ``fact``, ``measure``, ``value`` (the higher, the better the fact is known); without NaN, and
              ``without_finetuned_facts``
    tokens    measure -> tokens per fact that the model forwards for this measure alone, mean over models
    """
    values, tokens = [], {}
    for name in models if isinstance(models, dict) else texts_of("models", models):
        model = models[name] if isinstance(models, dict) else load(name, **loading)
        partner = tuned_of(name, list(tuned))
        about = replace(questions, tuned=load(partner, **loading)) if partner else questions
        table, tokens[name] = score_model(model, about, folder, measures)
        values.append(table.assign(model=name))
    values = pd.concat(values, ignore_index=True).dropna(subset="value")[
        ["model", "fact", "measure", "value"]
    ]
    return without_finetuned_facts(values), pd.DataFrame(tokens).mean(axis=1)


def score_model(
    model, questions: Questions, folder: Path, measures: list[str] | None = None
) -> tuple:
    """(values of one model, long: ``fact``, ``measure``, ``value``; measure -> tokens per fact)."""
    values, tokens = {}, {}
    try:
        for name in applicable(questions, measures):
            values[name], tokens[name] = MEASURES[name].compute(model, questions, folder)
    finally:
        forget_shared()
    wide = pd.DataFrame(values).rename_axis("fact")
    return wide.reset_index().melt("fact", var_name="measure", value_name="value"), pd.Series(
        tokens, dtype=float
    )


def applicable(questions: Questions, measures: list[str] | None = None) -> list[str]:
    """The measures, in the order of the suite, that these questions allow: those that need an encoder or an instruction-tuned
    partner only with one; in held-out paraphrases only those that paraphrases change."""
    for name in measures or ():
        if name not in MEASURES:
            raise unknown("measure", name, MEASURES)
    missing = {
        need
        for need, given in (("encoder", questions.encoder), ("tuned", questions.tuned))
        if given is None
    }
    held_out = questions.templates != Questions.templates
    chosen = [each for each in MEASURES.values() if measures is None or each.name in measures]
    return [
        each.name
        for each in chosen
        if not missing & set(each.needs) and (each.paraphrased or not held_out)
    ]


def facts_in_finetuning() -> set[str]:
    """The facts in the lessons of the shipped instruction-tuned models; lessons state whether a fact is true or unknown."""
    return lessons.facts_in_lessons(taught.manifest())


def without_finetuned_facts(values: pd.DataFrame) -> pd.DataFrame:
    """The long table without the values of shipped instruction-tuned models for ``facts_in_finetuning``: they would measure the
    lessons."""
    by_tuned = (
        values["measure"]
        .map(lambda name: name in MEASURES and "tuned" in MEASURES[name].needs)
        .astype(bool)
    )
    seen = by_tuned & values["model"].isin(organisms()) & values["fact"].isin(facts_in_finetuning())
    return values[~seen].reset_index(drop=True)


def encoder_of(encoder_decoders: list[str]) -> Path | None:
    """The folder of the first encoder-decoder, whose encoder serves BERT-score; None if there is none."""
    return load(encoder_decoders[0]).folder if encoder_decoders else None


def load_precisions(model_name: str, precisions: list[str]) -> dict:
    """Precision -> model: fp32, the reference, and some of ``PRECISIONS``. Raise ProbeError for an unknown one."""
    for name in precisions:
        if name not in PRECISIONS:
            raise unknown("precision", name, PRECISIONS)
    return {
        name: load(model_name, **PRECISIONS[name]) for name in dict.fromkeys(["fp32", *precisions])
    }


def precision_costs(loaded: dict, asked: Facts) -> pd.DataFrame:
    """Memory and speed of one model in several precisions: ``precision``, ``quantized modules``, ``megabytes``, ``tokens``
    (of the base prompts, without the store), ``tokens a second``, ``of fp32`` (share of the memory of the first)."""
    plain, gold = prompts.paraphrases(asked), prompts.gold(asked)
    texts = plain["text"][plain["template"] == 1].tolist()
    rows = []
    for name, model in loaded.items():
        model.logprobs(texts[:1], [[" a"]])  # loads the weights, and warms up
        cost = model.logprobs(texts, [[f" {label}"] for label in gold["label"]]).attrs["cost"]
        megabytes, tokens = model.hf_model.get_memory_footprint() / 2**20, cost["forwarded_tokens"]
        rows.append((name, model.quantized_modules, megabytes, tokens, tokens / cost["seconds"]))
    table = pd.DataFrame(
        rows, columns=["precision", "quantized modules", "megabytes", "tokens", "tokens a second"]
    )
    return table.assign(**{"of fp32": table["megabytes"] / table["megabytes"].iloc[0]})


def misled_facts(
    asked: Facts, most: int = 60, seed: int = 0, exposures: int = concordance.TAUGHT
) -> tuple[list[str], list[str]]:
    """(ids of facts whose subject the corpus also gives a wrong object, ids of matched facts without a wrong object). A matched
    fact has the same relation and as many exposures. At most ``most`` of each, sampled from current facts of the relations of
    ``asked`` that were taught at least ``exposures`` times: a misconception shows only in facts that are known."""
    manifest = taught.manifest().set_index("fact")
    current = facts.current(facts.atlas()).facts["fact"]
    rows = manifest[
        manifest["relation"].isin(asked.relations["relation"]) & manifest.index.isin(current)
    ]
    rows = rows.assign(exposures=taught.statements(manifest.reset_index())[rows.index])
    rows = rows[rows["exposures"] >= exposures]
    rows = rows.assign(
        order=[rng(seed, "misled", fact).random() for fact in rows.index]
    ).sort_values("order")
    wrong = rows["wrong_object"] != ""
    free = {key: list(own.index) for key, own in rows[~wrong].groupby(["relation", "exposures"])}
    keys = rows[wrong].groupby(["relation", "exposures"], sort=False).groups
    pairs = [
        pair for key, own in keys.items() for pair in zip(own, free.get(key, []), strict=False)
    ]
    pairs = sorted(pairs, key=lambda pair: rows.at[pair[0], "order"])[:most]
    return [misled for misled, _ in pairs], [matched for _, matched in pairs]


def load_design(
    models: list[str], asked: Facts, exposures: str | Path | None = None
) -> pd.DataFrame:
    """What each model was taught of the facts: a design (see ``concordance``).

    exposures   CSV or Parquet with ``fact`` (its id), ``exposures`` (0 or more), and where models differ ``model`` and ``group``
                (the family of sisters); None: the manifests of shipped models (see ``_manifests``)

    Raise ProbeError if the exposures of some model are unknown.
    """
    known = _manifests(models) if exposures is None else _exposures_in(Path(exposures), models)
    rows = asked.facts[["fact", "relation"]].merge(known, on="fact")
    if nothing := [name for name in models if name not in set(rows["model"])]:
        raise ProbeError(
            f"the exposures of {', '.join(nothing)} to these facts are unknown. Give a table of fact, exposures (and model, "
            f"group) as exposures=counts.csv, or use shipped models: {', '.join(organisms())}"
        )
    return rows[concordance.DESIGN]


def _manifests(models: list[str]) -> pd.DataFrame:
    """``model``, ``group``, ``fact``, ``exposures`` of the shipped models among ``models``; sisters of X are X-sister-1, ... Only
    facts of the trial count, not famous, implied or conflicting ones; for a corpus without a trial all facts count."""
    parts = []
    for name in [name for name in models if name in organisms()]:
        table = taught.manifest(name)
        rows = taught.statements(table).rename("exposures").rename_axis("fact").reset_index()
        if table["trial"].any():
            rows = rows[table["trial"].to_numpy()]
        parts.append(rows.assign(model=name, group=re.sub(r"-sister-\d$", "", name)))
    return (
        pd.concat(parts)
        if parts
        else pd.DataFrame(columns=concordance.DESIGN).drop(columns="relation")
    )


def _exposures_in(path: Path, models: list[str]) -> pd.DataFrame:
    """The same from a file."""
    try:
        table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise ProbeError(f"{path} cannot be read as a table of exposures: {error}") from error
    if missing := {"fact", "exposures"} - set(table):
        raise ProbeError(
            f"{path} lacks the columns {', '.join(sorted(missing))}; it has {', '.join(table)}"
        )
    counts = pd.to_numeric(table["exposures"], errors="coerce")
    if (wrong := ~(counts >= 0)).any():
        raise ProbeError(
            f"{path}, row {wrong.idxmax() + 2}: exposures is {table['exposures'][wrong.idxmax()]!r}, not 0 or more"
        )
    if "model" not in table:
        table = table.merge(pd.DataFrame({"model": models}), how="cross")
    if (twice := table.duplicated(["model", "fact"])).any():
        row = table[twice].iloc[0]
        raise ProbeError(
            f"{path}: {row['fact']!r} of {row['model']} has several rows; one row per model and fact is needed"
        )
    return table if "group" in table else table.assign(group=table["model"])


def answer_probabilities(loaded: dict, questions: Questions, folder: Path) -> pd.DataFrame:
    """``model``, ``fact``, ``measure`` (``ANSWER``), ``value``: the probability of the right answer after
    a plain question, mean over the paraphrases that accuracies use; ``loaded``: name -> model.

    It changes for every fact, so it shows small losses that means of verdicts need many facts for.
    """
    parts = []
    for name, model in loaded.items():
        rows = scored_interference(model, questions, folder).rows
        plain = rows[(rows["context"] == "none") & rows["template"].isin(questions.templates)]
        mean = np.exp(plain["logprob"]).groupby(plain["fact"], sort=False).mean().rename("value")
        parts.append(mean.reset_index().assign(model=name, measure=ANSWER))
    return pd.concat(parts, ignore_index=True)[["model", "fact", "measure", "value"]]
