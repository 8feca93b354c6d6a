"""How many bits of knowledge a model stores: from the probabilities of options, and from right choices alone.

A fact of a relation with n options is worth at most log2 n bits. A model stores the bits by which it is less uncertain than a
guess (Allen-Zhu and Li, Physics of Language Models 3.3 [allenzhu], compute bits from a loss in the same way):

    by log-likelihood    max(0, log2 n + log2 q), with q the normalized probability of the right option
    by choices           log2 n - H(a) - (1 - a) log2(n - 1), with a the accuracy over facts (Fano), 0 for a <= 1 / n

A fact on which the model does worse than a guess counts as no bits; otherwise a few confident errors would dominate the mean.
The same mean over never-taught facts is what a model knows of a relation without having read the fact. The difference, times
the trial facts that were taught, is what the training stored of them. A corpus teaches other facts, too (famous, implied and
conflicting ones), which are not counted: bits and bits per parameter are lower bounds.
"""

import numpy as np
import pandas as pd

from probelib import prompts, report, stats, store
from probelib.beyond.suite.log_probability import asked
from probelib.report import span, with_interval
from probelib.report.legacy import Artifact

LEVELS = [0, 1, 8, 32, 128, np.inf]  # exposure counts from which a curve has a point: [0, 1) is never taught
NOT_COUNTED = "Facts that the corpus teaches outside the trial are not counted"


def bits_by_likelihood(scores: pd.DataFrame) -> pd.Series:
    """fact -> mean over its prompts of log2 n + log2 q, in bits.

    scores   ``fact``, ``prompt``, ``gold``, ``logprob`` (nats); one row per prompt and option

    >>> scores = pd.DataFrame({"fact": "a", "prompt": "p", "gold": [True, False], "logprob": np.log([0.3, 0.1])})
    >>> round(float(bits_by_likelihood(scores)["a"]), 4) == round(1 + float(np.log2(0.75)), 4)
    True
    """
    by_prompt = scores.groupby("prompt")["logprob"]
    share = scores["logprob"] - by_prompt.transform(np.logaddexp.reduce)
    bits = (share / np.log(2) + np.log2(by_prompt.transform("size")))[scores["gold"]]
    return bits.groupby(scores["fact"][scores["gold"]], sort=False).mean()


def bits_by_choices(accuracy: float, n: float) -> float:
    """Lower bound of the bits per fact for a share of right choices among n options (Fano's inequality).

    >>> bits_by_choices(1.0, 16), bits_by_choices(1 / 16, 16), round(bits_by_choices(0.5, 2), 6)
    (4.0, 0.0, 0.0)
    """
    if accuracy <= 1 / n:
        return 0.0
    parts = [share * np.log2(share) for share in (accuracy, 1 - accuracy) if share > 0]
    return float(np.log2(n) + sum(parts) - (1 - accuracy) * np.log2(max(n - 1, 1)))


def stored_bits(models: dict, questions, design: pd.DataFrame, folder, of: str | None = None) -> pd.DataFrame:
    """One row per model and fact: ``model``, ``parameters``, ``fact``, ``exposures``, ``options``, ``bits`` (by likelihood),
    ``right`` (whether the right option is the most probable one, mean over prompts).

    models   name -> model
    of       if ``models`` are quantized forms of one model: its name, whose exposures in ``design`` hold for all; None: each
             model has its own
    """
    gold, parts = dict(zip(questions.choices.facts["fact"], questions.choices.facts["object"], strict=True)), []
    for name, model in models.items():
        options = prompts.options(questions.choices, questions.seed)
        scores = store.score(model, asked(questions), options, folder)
        scores = scores.assign(gold=scores["candidate"] == scores["fact"].map(gold))
        rank = scores.groupby("prompt")["logprob"].rank(ascending=False, method="max")
        right = (rank == 1)[scores["gold"]].groupby(scores["fact"][scores["gold"]]).mean()
        n_options = options.groupby("fact").size()
        rows = pd.DataFrame({"bits": bits_by_likelihood(scores), "right": right, "options": n_options})
        rows["exposures"] = design[design["model"] == (of or name)].set_index("fact")["exposures"]
        parts.append(rows.rename_axis("fact").reset_index().assign(model=name, parameters=model.n_parameters))
    return pd.concat(parts, ignore_index=True).dropna()


def by_level(bits: pd.DataFrame) -> pd.DataFrame:
    """Bits per fact by exposure count: ``model``, ``parameters``, ``from`` (exposures), ``facts``, ``bits`` (mean) with ``low``,
    ``high`` (95 % bootstrap over facts), ``choices``, and ``misled`` (share of facts below a guess)."""
    rows = []
    for (model, at), own in bits.groupby(["model", levels_of(bits["exposures"])], sort=False, observed=True):
        fano = bits_by_choices(own["right"].mean(), 2 ** np.log2(own["options"]).mean())
        stored = own["bits"].clip(lower=0)
        interval, misled = stats.mean_interval(stored), (own["bits"] < 0).mean()
        rows.append((model, own["parameters"].iloc[0], int(at), len(own), stored.mean(), *interval, fano, misled))
    columns = ["model", "parameters", "from", "facts", "bits", "low", "high", "choices", "misled"]
    table, order = pd.DataFrame(rows, columns=columns), ["parameters", "model", "from"]
    return table.sort_values(order, kind="stable", ignore_index=True)


def levels_of(exposures: pd.Series) -> pd.Series:
    """The level of ``LEVELS`` from which on each exposure count is."""
    return pd.cut(exposures, LEVELS, right=False, labels=LEVELS[:-1])


def stored(bits: pd.DataFrame, taught: pd.DataFrame, of: str | None = None) -> pd.DataFrame:
    """Bits that training stored, per model: ``model``, ``parameters``, ``bits`` with ``low`` and ``high`` (95 % bootstrap over
    facts), ``bits per parameter``, and ``at most`` (the bits of all taught trial facts).

    Bits: over levels, the mean bits per fact above that of never-taught facts, times the trial facts at that level.

    bits     ``stored_bits``
    taught   ``model``, ``exposures`` of all trial facts (``scores.load_design`` of the pool)
    of       as in ``stored_bits``
    """
    rows = []
    for model, own in bits.groupby("model", sort=False):
        counts = levels_of(taught["exposures"][taught["model"] == (of or model)]).value_counts()
        total, n = total_bits(own, counts), own["parameters"].iloc[0]
        interval = stats.percentile_interval(total_bits(own, counts, 2000))
        most = np.log2(own["options"]).mean() * counts.drop(0).sum()
        rows.append((model, n, total[0], *interval, total[0] / n, most))
    columns = ["model", "parameters", "bits", "low", "high", "bits per parameter", "at most"]
    return pd.DataFrame(rows, columns=columns)


def total_bits(own: pd.DataFrame, counts: pd.Series, times: int = 0, seed: int = 0) -> np.ndarray:
    """Bits that a model stores of the facts counted per level: [1], or [times] bootstrap replicates over facts.

    The replicates of two models with the same facts resample the same facts, so they are paired.
    """
    draw, own = np.random.default_rng(seed), own.sort_values("fact", kind="stable")
    means = {}
    for at, values in own["bits"].clip(lower=0).groupby(levels_of(own["exposures"]), observed=True):
        drawn = draw.integers(0, len(values), (times, len(values))) if times else np.arange(len(values))[None]
        means[at] = values.to_numpy()[drawn].mean(1)
    base = means.pop(0, np.nan)  # never taught
    return sum((counts[at] * (mean - base) for at, mean in means.items()), np.zeros(max(1, times)))


def capacity(levels: pd.DataFrame, total: pd.DataFrame) -> Artifact:
    """Bits per fact by exposure count, and bits stored by size with the fit; ``levels``: ``by_level``, ``total``: ``stored``."""
    fit = stats.scaling_fit(total["parameters"], np.log10(total["bits"].where(total["bits"] > 0)))
    facts = levels.groupby("model")["facts"].sum().max()
    caption = (
        "Top: mean bits per fact by exposure count (log2 of the number of options plus log2 of the normalized probability of "
        f"the right one; 0 where the model does worse than a guess), with 95 % bootstrap intervals over {facts} trial facts. "
        "Bottom: bits that training stored of the trial facts (bits per fact above those of never-taught facts, times the "
        "trial facts taught so often) by parameters without embeddings, both axes logarithmic, with 95 % bootstrap intervals "
        f"and the fit of a power law; dotted: what all trial facts taught are worth. {NOT_COUNTED}, "
        "so a model stores at least these bits."
    )
    alt = "; ".join(f"{row.model}: {row.bits:,.0f} bits" for row in total.itertuples())
    frame = pd.concat({"by exposures": levels, "stored": total}, names=["panel"]).reset_index("panel")
    return Artifact("beyond/capacity", frame, caption, capacity_finding(total, fit), _capacity(levels, total, fit), alt)


def capacity_finding(total: pd.DataFrame, fit: dict) -> str:
    """How the stored bits grow with the parameters, and what limits them; ``fit``: of log10 of the bits."""
    total = total.sort_values("parameters", kind="stable")
    small, large = total.iloc[0], total.iloc[-1]
    known = (
        f"Of the trial facts, {large['model']} stores {large['bits']:,.0f} bits {span(large['low'], large['high'], ',.0f')}, "
        f"{large['bits'] / large['at most']:.0%} of the {large['at most']:,.0f} that the taught ones are worth"
    )
    if len(total) < 2 or not small["bits"] > 0:
        return f"{known}."
    more = f"{known}; {large['parameters'] / small['parameters']:.0f} times the parameters of {small['model']} hold "
    more += f"{large['bits'] / small['bits']:.1f} times its bits (exponent {fit['b']:.2f} "
    more += f"{span(fit['b_low'], fit['b_high'])}, n = {fit['n']} models)."
    if fit["b_high"] < 1:
        return (
            f"{more} Bits grow more slowly than parameters, to {large['bits'] / large['parameters']:.2g} per parameter in the "
            "largest model (full models hold about 2 in Allen-Zhu and Li, 2024), and bits per fact grow with the exposure "
            "count: how often the corpus teaches these facts limits them, so this is no estimate of a capacity."
        )
    if fit["b_low"] > 1:
        return f"{more} Bits grow faster than parameters."
    return f"{more} A constant number of bits per parameter (exponent 1) is not excluded."


def _capacity(levels: pd.DataFrame, total: pd.DataFrame, fit: dict):
    import matplotlib.pyplot as plt

    figure, (top, bottom) = plt.subplots(2, 1, figsize=(3.7, 5.0))
    for name, own in levels.groupby("model", sort=False):
        look, at = report.model_style(name), [LEVELS.index(level) for level in own["from"]]
        top.plot(at, own["bits"], label=name, markersize=4, **look)
        top.vlines(at, own["low"], own["high"], color=look["color"], alpha=0.5, linewidth=1)
    top.set_xticks(range(len(LEVELS) - 1), ["never", *(f"{low}-{high - 1:.0f}" for low, high in zip(LEVELS[1:-2], LEVELS[2:-1],
                   strict=True)), f"{LEVELS[-2]}+"])  # fmt: skip
    top.set(xlabel="exposures", ylabel="bits per fact")
    top.legend(fontsize=7.5, loc="lower center", bbox_to_anchor=(0.46, 1.0), ncols=2)
    for row in total.itertuples():
        colour = report.model_style(row.model)["color"]
        bottom.plot(row.parameters, row.bits, color=colour, marker=report.model_style(row.model)["marker"])
        bottom.vlines(row.parameters, row.low, row.high, color=colour, linewidth=1)
    if np.isfinite(fit["b"]):
        sizes = np.geomspace(total["parameters"].min(), total["parameters"].max(), 20)
        bottom.plot(sizes, 10 ** (fit["a"] + fit["b"] * np.log10(sizes)), color="0.5", linewidth=0.9, zorder=0)
    bottom.axhline(total["at most"].max(), color="0.4", linestyle=":", linewidth=1)
    if (total["bits"] > 0).all():
        bottom.set_yscale("log")
        bottom.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
        bottom.yaxis.set_minor_formatter(lambda y, _: "")
        bottom.set_yticks([b * 10**e for e in range(7) for b in (1, 2, 5)])
        ends = total[["bits", "low"]]
        bottom.set_ylim(0.8 * ends[ends > 0].min().min(), 1.2 * total["at most"].max())
    report.size_axis(bottom, total["parameters"])
    bottom.set(ylabel="bits stored of trial facts")
    return figure


def capacity_precision(bits: pd.DataFrame, taught: pd.DataFrame, model: str) -> Artifact:
    """The loss of stored bits by quantization, relative to fp32 (to the first precision if fp32 is missing).

    bits   ``stored_bits`` of the precisions of ``model``, each a "model"
    """
    table = stored(bits, taught, of=model).rename(columns={"model": "precision"}).drop(columns="at most")
    names = table["precision"].tolist()
    reference = "fp32" if "fp32" in names else names[0]
    counts = levels_of(taught["exposures"][taught["model"] == model]).value_counts()
    draws = {name: total_bits(bits[bits["model"] == name], counts, 2000) for name in names}
    table["kept"] = table["bits"] / table.loc[names.index(reference), "bits"]
    shares = np.transpose([draws[name] / draws[reference] for name in names])
    table["kept low"], table["kept high"] = stats.percentile_intervals(shares)
    per_parameter = ["bits per parameter", "bits per parameter low", "bits per parameter high"]
    table[per_parameter] = table[["bits", "low", "high"]].div(table["parameters"], axis=0)
    rows = table[table["precision"] != reference]
    kept = [
        f"{row['precision']} keeps {row['kept']:.1%} {span(row['kept low'], row['kept high'], '.1%')}"
        for _, row in rows.iterrows()
    ]
    finding = f"Of the bits that {reference} stores of the trial facts, {', '.join(kept)}.{_lost(rows)}" if kept else ""
    caption = (
        f"Bits that training stored in {model} of the trial facts, at several precisions: per fact, log2 of the number of "
        "options plus log2 of the normalized probability of the right one (0 where the model does worse than a guess), above "
        f"the mean of never-taught facts; measured on n = {bits['fact'].nunique()} trial facts, times the "
        f"{counts.drop(0).sum():,} trial facts that the corpus teaches. bits per parameter: of "
        f"{table['parameters'].iloc[0]:,} parameters without embeddings, which take fewer bits of memory in lower precisions. "
        f"kept: share of the bits of {reference}, paired over facts. 95 % bootstrap intervals over facts. {NOT_COUNTED}, so "
        "bits per parameter are a lower bound. Facts taught often make up most of these bits; `beyond/quantization` looks at "
        "all facts of the panel alike."
    )
    return Artifact(
        "beyond/capacity_precision",
        table,
        caption,
        finding,
        shown=table[["precision"]].assign(
            bits=with_interval(table["bits"], table["low"], table["high"], 0),
            **{"bits per parameter": with_interval(*(table[name] for name in per_parameter), 5)},
            kept=with_interval(table["kept"], table["kept low"], table["kept high"]),
        ),
    )


def _lost(rows: pd.DataFrame) -> str:
    """Which precisions lose bits significantly."""
    names = ", ".join(rows["precision"][rows["kept high"] < 1])
    if names:
        return f" Significantly less than all: {names}."
    return " No loss is significant." if rows["kept high"].notna().all() else ""
