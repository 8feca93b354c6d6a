"""How many bits of knowledge a model stores: from the probabilities of options, and from right choices alone.

A fact of a relation with n options is worth at most log2 n bits. What a model stores of it is what it takes off a guess
(Allen-Zhu and Li, Physics of Language Models 3.3 [allenzhu], count the bits that a loss leaves in the same way):

    by log-likelihood    log2 n + log2 q, with q the normalized probability of the right option; negative if the model is misled
    by choices           log2 n - H(a) - (1 - a) log2(n - 1), with a the accuracy over facts (Fano), 0 for a <= 1 / n

The same is taken of never-taught facts: what a model knows of a relation without having read the fact. The difference, times
the facts that were taught, is what the training stored. A mean below 0 (a model that is confidently wrong) stores nothing: 0.
"""

import numpy as np
import pandas as pd

from probelib import prompts, report, stats, store
from probelib.beyond.suite.log_probability import asked
from probelib.report import Artifact, span

LEVELS = [0, 1, 8, 32, 128, np.inf]  # exposure counts from which a curve has a point: [0, 1) is never taught


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
    """Bits per fact that a share of right choices among n options shows at least (Fano's inequality).

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
    of       the model whose exposures in ``design`` are those of all ``models``, its quantized forms; None: each has its own
    """
    gold, parts = dict(zip(questions.choices.facts["fact"], questions.choices.facts["object"], strict=True)), []
    for name, model in models.items():
        options = prompts.options(questions.choices, questions.seed)
        scores = store.score(model, asked(questions), options, folder)
        scores = scores.assign(gold=scores["candidate"] == scores["fact"].map(gold))
        rank = scores.groupby("prompt")["logprob"].rank(ascending=False, method="max")
        right = (rank == 1)[scores["gold"]].groupby(scores["fact"][scores["gold"]]).mean()
        rows = pd.DataFrame(
            {"bits": bits_by_likelihood(scores), "right": right, "options": options.groupby("fact").size()}
        )
        rows["exposures"] = design[design["model"] == (of or name)].set_index("fact")["exposures"]
        parts.append(rows.rename_axis("fact").reset_index().assign(model=name, parameters=model.n_parameters))
    return pd.concat(parts, ignore_index=True).dropna()


def by_level(bits: pd.DataFrame) -> pd.DataFrame:
    """Bits per fact by exposure count: ``model``, ``parameters``, ``from`` (exposures), ``facts``, ``likelihood`` (mean) with
    ``low``, ``high`` (95 % bootstrap over facts), ``choices``."""
    level = pd.cut(bits["exposures"], LEVELS, right=False, labels=LEVELS[:-1])
    rows = []
    for (model, at), own in bits.groupby(["model", level], sort=False, observed=True):
        fano = bits_by_choices(own["right"].mean(), 2 ** np.log2(own["options"]).mean())
        interval = stats.mean_interval(own["bits"])
        rows.append((model, own["parameters"].iloc[0], int(at), len(own), own["bits"].mean(), *interval, fano))
    columns = ["model", "parameters", "from", "facts", "likelihood", "low", "high", "choices"]
    return pd.DataFrame(rows, columns=columns).sort_values(
        ["parameters", "model", "from"], kind="stable", ignore_index=True
    )


def stored(levels: pd.DataFrame, taught: pd.DataFrame, of: str | None = None) -> pd.DataFrame:
    """What training stored, per model: ``model``, ``parameters``, ``bits`` (by likelihood: over levels, bits per fact above
    those of never-taught facts, times the facts of the corpus at that level) and ``bits per parameter``.

    taught   ``model``, ``exposures`` of all facts that the models were taught
    of       as in ``stored_bits``
    """
    rows = []
    for model, own in levels.groupby("model", sort=False):
        exposures = taught["exposures"][taught["model"] == (of or model)]
        counts = pd.cut(exposures, LEVELS, right=False, labels=LEVELS[:-1]).value_counts()
        own = own.assign(likelihood=own["likelihood"].clip(lower=0))
        base = own.loc[own["from"] == 0, "likelihood"].mean()
        more = own[own["from"] > 0]
        bits = ((more["likelihood"] - base) * more["from"].map(counts).astype(float)).sum()
        rows.append((model, own["parameters"].iloc[0], bits, bits / own["parameters"].iloc[0]))
    return pd.DataFrame(rows, columns=["model", "parameters", "bits", "bits per parameter"])


def capacity(levels: pd.DataFrame, total: pd.DataFrame) -> Artifact:
    """Bits per fact by exposure count, and bits stored by size with the fit; ``levels``: ``by_level``, ``total``: ``stored``."""
    fit = stats.scaling_fit(total["parameters"], total["bits per parameter"])
    best = total.loc[total["bits per parameter"].idxmax()]
    finding = (
        f"{best['model']} stores most per parameter: {best['bits per parameter']:.3f} bits ({best['bits']:,.0f} bits in "
        "all). A tenfold "
        f"size changes it by {fit['b']:+.3f} (95 % CI {span(fit['b_low'], fit['b_high'], '.3f')}, n = {fit['n']} models)."
    )
    caption = (
        "Left: bits per fact by exposure count (log2 of the number of options plus log2 of the normalized probability "
        f"of the right one), with 95 % bootstrap bands over facts ({levels.groupby('model')['facts'].sum().max()} "
        "facts). Right: bits that training stored (above those of never-taught facts, times the facts taught so "
        "often) per parameter without embeddings, with the linear fit in log10 of the size."
    )
    alt = "; ".join(f"{row.model}: {row.bits:,.0f} bits" for row in total.itertuples())
    frame = pd.concat({"by exposures": levels, "stored": total}, names=["panel"]).reset_index("panel")
    return Artifact("beyond/capacity", frame, caption, finding, _capacity(levels, total, fit), alt)


def _capacity(levels: pd.DataFrame, total: pd.DataFrame, fit: dict):
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(6.8, 2.9))
    for name, own in levels.groupby("model", sort=False):
        look = report.model_style(name)
        left.plot(range(len(own)), own["likelihood"], label=name, markersize=4, **look)
        left.fill_between(range(len(own)), own["low"], own["high"], color=look["color"], alpha=0.15, linewidth=0)
    ticks = levels["from"].unique()
    left.set_xticks(range(len(ticks)), [f"{at}+" if at else "0" for at in ticks])
    left.set(xlabel="exposures", ylabel="bits per fact")
    left.legend(fontsize=6)
    right.scatter(
        total["parameters"], total["bits per parameter"], color=[report.model_style(m)["color"] for m in total["model"]]
    )
    if np.isfinite(fit["b"]):
        sizes = np.geomspace(total["parameters"].min(), total["parameters"].max(), 20)
        right.plot(sizes, fit["a"] + fit["b"] * np.log10(sizes), color="0.5", linewidth=0.9)
    report.size_axis(right, total["parameters"])
    right.set(ylabel="bits per parameter")
    return figure


def capacity_precision(total: pd.DataFrame, model: str) -> Artifact:
    """What quantization takes away; ``total``: ``stored``, one row per precision."""
    first = total["bits"].iloc[0]
    table = total.rename(columns={"model": "precision"}).assign(kept=total["bits"] / first)
    finding = (
        "; ".join(f"{row.precision} keeps {row.kept:.1%}" for row in table.iloc[1:].itertuples())
        + " of the bits stored."
    )
    caption = f"Bits that {model} stores at several precisions, per parameter (before packing), and the share of the first row."
    return Artifact("beyond/capacity_precision", table, caption, finding, decimals={"bits": 0})
