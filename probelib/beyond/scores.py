"""All measures of the suite for several models on the same facts, and what each measure costs."""

import warnings
from dataclasses import replace
from pathlib import Path

import pandas as pd

from probelib import facts
from probelib.beyond import trial
from probelib.beyond.questions import Questions
from probelib.beyond.suite import MEASURES, forget_shared
from probelib.errors import ProbeError, texts_of, unknown
from probelib.facts.model import Facts, rng
from probelib.facts.table import read_table
from probelib.lm.loading import load
from probelib.lm.names import organisms, tuned_of
from probelib.organisms import lessons, taught
from probelib.organisms.trial import SISTERS

# the same exposures, most of them in lists or in questions
TWINS = ("atlas-neox-0.6m-lists", "atlas-neox-0.6m-questions")
MISLED = "atlas-neox-5m"  # knows the facts for which its corpus also states a wrong object


def score(
    models: list[str],
    questions: Questions,
    folder: Path,
    tuned: list[str] = (),
    measures: list[str] | None = None,
    **loading,
) -> tuple[pd.DataFrame, pd.Series]:
    """(values, tokens) of all measures, or of some, for several models.

    tuned     instruction-tuned models; one whose base is scored is its partner, see ``Questions``
    loading   quantize, dtype: as in ``lm.load``
    values    long: ``model``, ``fact``, ``measure``, ``value`` (the higher, the better the fact is
              known); without NaN. Facts of the lessons of shipped instruction-tuned models have no
              values of measures that use these: they would measure the lessons
    tokens    measure -> tokens per fact that the model forwards for this measure alone, mean over
              models
    """
    values, tokens = [], {}
    for name in texts_of("models", models):
        model = load(name, **loading)
        partner = tuned_of(name, list(tuned))
        about = replace(questions, tuned=load(partner, **loading)) if partner else questions
        table, tokens[name] = score_model(model, about, folder, measures)
        if name in organisms():
            by_tuned = [m for m in table["measure"].unique() if "tuned" in MEASURES[m].needs]
            seen = table["fact"].isin(lessons.facts_in_lessons(taught.manifest()))
            table = table[~(seen & table["measure"].isin(by_tuned))]
        values.append(table.assign(model=name))
    values = pd.concat(values, ignore_index=True).dropna(subset="value")
    values = values[["model", "fact", "measure", "value"]].reset_index(drop=True)
    return values, pd.DataFrame(tokens).mean(axis=1)


def score_model(
    model, questions: Questions, folder: Path, measures: list[str] | None = None
) -> tuple[pd.DataFrame, pd.Series]:
    """(values of one model, long: ``fact``, ``measure``, ``value``; measure -> tokens per fact)."""
    found = {}
    try:
        for name in applicable(questions, measures):
            found[name] = MEASURES[name].compute(model, questions, folder)
    finally:
        forget_shared()
    wide = pd.DataFrame({name: values for name, (values, _) in found.items()})
    wide = wide.rename_axis("fact").reset_index()
    tokens = pd.Series({name: tokens for name, (_, tokens) in found.items()}, dtype=float)
    return wide.melt("fact", var_name="measure", value_name="value"), tokens


def applicable(questions: Questions, measures: list[str] | None = None) -> list[str]:
    """The measures, in the order of the suite, that these questions allow: those that need an
    encoder or an instruction-tuned partner only with one; in held-out paraphrases only those that
    paraphrases change."""
    if odd := [name for name in measures or () if name not in MEASURES]:
        raise unknown("measure", odd[0], MEASURES)
    given = {"encoder": questions.encoder, "tuned": questions.tuned}
    missing = {need for need, source in given.items() if source is None}
    held_out = questions.templates != Questions.templates
    return [
        name
        for name, each in MEASURES.items()
        if (measures is None or name in measures)
        and not missing & set(each.needs)
        and (each.paraphrased or not held_out)
    ]


# What the models were taught


def misled_facts(asked: Facts, most: int = 60, seed: int = 0) -> tuple[list[str], list[str]]:
    """(ids of facts whose subject the corpus also gives a wrong object, ids of matched facts
    without a wrong object). A matched fact has the same relation and as many exposures. At most
    ``most`` of each, sampled from current facts of the relations of ``asked`` that were taught at
    least ``TAUGHT`` times: a misconception shows only in facts that are known."""
    manifest = taught.manifest()
    rows = manifest.set_index("fact").assign(exposures=taught.statements(manifest))
    current = rows.index.isin(facts.current(facts.atlas()).facts["fact"])
    rows = rows[current & rows["relation"].isin(asked.relations["relation"])]
    rows = rows[rows["exposures"] >= trial.TAUGHT]
    rows["order"] = [rng(seed, "misled", fact).random() for fact in rows.index]
    rows = rows.sort_values("order").reset_index()
    key = ["relation", "exposures"]
    sides = [rows[(rows["wrong_object"] != "") == wrong] for wrong in (True, False)]
    # the n-th misled fact of a relation and exposure count is matched with the n-th other
    sides = [side.assign(n=side.groupby(key).cumcount()) for side in sides]
    pairs = sides[0].merge(sides[1], on=[*key, "n"], suffixes=("", " matched"))
    pairs = pairs.sort_values("order").head(most)
    return pairs["fact"].tolist(), pairs["fact matched"].tolist()


def load_design(
    models: list[str], asked: Facts, exposures: str | Path | None = None
) -> pd.DataFrame:
    """What each model was taught of the facts: a design (see ``trial``).

    exposures   table file (CSV, Parquet, ...) with ``exposures`` (0 or more) and ``fact`` (its id),
                or, as in a table of facts, ``relation``, ``subject`` and ``object``; where models
                differ also ``model`` and ``group`` (the family of sisters). None: the manifests of
                shipped models (see ``_manifests``)

    Raise ProbeError if the exposures of some model are unknown; warn of facts without exposures.
    """
    known = _manifests(models) if exposures is None else _exposures_in(exposures, models, asked)
    known = known.drop(columns="relation", errors="ignore")
    rows = asked.facts[["fact", "relation"]].merge(known, on="fact")
    if nothing := [name for name in models if name not in set(rows["model"])]:
        raise ProbeError(
            f"the exposures of {', '.join(nothing)} to these facts are unknown. Give a table of "
            "fact, exposures (and model, group) as exposures=counts.csv, or use shipped models: "
            f"{', '.join(organisms())}"
        )
    return rows[trial.DESIGN]


def _manifests(models: list[str]) -> pd.DataFrame:
    """The design of the models among ``models`` whose manifests are known, but for ``relation``. Of
    a trial its facts count, of another corpus those whose exposures were drawn at random."""
    parts = [pd.DataFrame(columns=[*trial.DESIGN]).drop(columns="relation")]
    known = {name: taught.manifest_of(name) for name in models}
    for name, (table, corpus) in ((name, found) for name, found in known.items() if found):
        rows = table[["fact"]].assign(model=name, corpus=corpus, group=name, kind="", arm=0)
        if corpus in SISTERS:
            own = table["kind"] != ""
            rows["group"] = name.replace(f"-{corpus}", "", 1)  # its sisters'; a seed is alone
            rows["kind"], rows["right"] = table["kind"], table["wrong_exposures"] == 0
            rows["dose"] = table["exposures"] + table["wrong_exposures"]
            rows["arm"] = (table["turn"] + SISTERS.index(corpus)) % len(SISTERS)
        else:
            own = table.get("trial", pd.Series(True, table.index))
            rows = rows.assign(dose=taught.statements(table).to_numpy(), right=True)
        parts.append(rows[own if own.any() else slice(None)])
    return pd.concat(parts[1:] or parts)


def _exposures_in(path: str | Path, models: list[str], asked: Facts) -> pd.DataFrame:
    """The same from a file, whose cells are read as text: 007 stays 007."""
    table, named = read_table(Path(path)), ["relation", "subject", "object"]
    keys = ["fact"] if "fact" in table else named
    if missing := {*keys, "exposures"} - set(table):
        columns, own = ", ".join(sorted(missing)), ", ".join(table)
        raise ProbeError(
            f"{path} lacks the columns {columns}; it has {own}. Needed: exposures, and fact "
            f"(its id) or {', '.join(named)}"
        )
    counts = pd.to_numeric(table["exposures"], errors="coerce")
    if (wrong := ~counts.between(0, 1e15)).any():
        place = wrong.idxmax()
        value = table["exposures"][place]
        raise ProbeError(f"{place}: exposures is {value!r}, not a number that is 0 or more")
    table = table.assign(exposures=counts).astype(dict.fromkeys(keys, str)).reset_index(drop=True)
    if keys == named:
        labels = {side: asked.label(asked.facts[side]) for side in named[1:]}
        own = asked.facts[["fact", "relation"]].assign(**labels)
        table = table.merge(own, on=named)
    if "model" not in table:
        table = table.merge(pd.DataFrame({"model": models}), how="cross")
    table = table[table["model"].isin(models)]
    if (twice := table.duplicated(["model", "fact"])).any():
        row = table[twice].iloc[0]
        several = f"{row['fact']!r} of {row['model']} has several rows"
        raise ProbeError(f"{path}: {several}; one row per model and fact is needed")
    if lost := len(set(asked.facts["fact"]) - set(table["fact"])):
        said = f"{path}: no exposures of {lost} of {len(asked.facts)} facts; these are left out"
        warnings.warn(said, stacklevel=3)
    table = table if "group" in table else table.assign(group=table["model"])
    table = table.assign(corpus=table["model"], kind="", arm=0, right=True)
    return table.rename(columns={"exposures": "dose"})
