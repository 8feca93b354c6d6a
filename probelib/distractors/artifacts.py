"""Tables 1 to 9 and figures 1 to 8 of the Distractors paper, and two of the kit (optimum, endings):
measured numbers in, ``report.Artifact`` out (texts: ``published/claims.yaml``)."""

from pathlib import Path

import numpy as np
import pandas as pd

from probelib import published, report, stats
from probelib.distractors import measures
from probelib.distractors.baselines import DEFINITIONS
from probelib.distractors.measures import Calibrations, change_of, ends, per_fact
from probelib.distractors.prompts import FLAWS
from probelib.distractors.retrieval import NAMES
from probelib.facts.annotated import ERRORS, MINOR, read_verbalizations
from probelib.report import Artifact, cases, check

NO_TEXT = "answers of the right type where never taught"  # what shipped models miss (02_models)
GENERATED = ("ROUGE-L", "BERT-score")  # the measures that the paper calls not well correlated
PANELS = dict.fromkeys([*GENERATED, "LLM-as-a-judge"], "generated text")  # of figures 4 and 6
PANELS |= dict.fromkeys(["Probability", "Precision@n"], "probabilities")
ENOUGH, READ_AT = 15, 20  # distractors that suffice for ApprOpt in the paper; those of figure 8
NEAR = 0.01 + 1e-12  # a curve of figure 3 has settled where it first is so near its best value
ANNOTATED = 77  # sentences of the paper's tables 5 and 6
WORST = ("only minor errors", "contain blunders", "free of errors")


def _curves(outcomes: dict, seed: int, aggregate: str = "Min") -> dict[str, pd.DataFrame]:
    """Strategy or model -> mean over facts for every n, with its band (``stats.mean_band``)."""
    band = lambda own: stats.mean_band(per_fact(own, aggregate), seed=seed)
    return {NAMES.get(name, name): band(own) for name, own in outcomes.items()}


def _rows(curves: dict[str, pd.DataFrame], name: str, **more) -> pd.DataFrame:
    """Curves as rows: ``name``, ``n``, ``mean`` with its interval, ``facts``, and ``more``."""
    frame = pd.concat(curves, names=[name, "n"])
    return frame.set_axis(["mean", *ends("mean"), "facts"], axis=1).reset_index().assign(**more)


def _band(table: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    """A column and its interval as a curve of ``report.bands``."""
    return table.set_index(x)[[y, *ends(y)]].set_axis(["mean", "low", "high"], axis=1)


def figure1(outcomes: dict[str, pd.DataFrame], seed: int = 0) -> Artifact:
    """Mean Min@n against n on the facts S. ``outcomes``: strategy -> ``measures.outcomes``."""
    curves, last = _curves(outcomes, seed), outcomes["sem"].shape[1]
    gap = lambda a, b, n: change_of(outcomes[a], outcomes[b], n, seed=seed)
    hardest = pd.DataFrame({f"n = {n}": gap("appropt", "sem", n) for n in (1, last)}).T
    figure = report.bands({"": curves}, "distractors n", "mean Min@n (lower: harder)")
    claims = check("distractors/figure1", hardest=hardest, random=gap("temp_sem", "random", last))
    return Artifact("distractors/figure1", _rows(curves, "strategy"), claims, figure)


def figure2(outcomes: dict, former: pd.Series | None = None, seed: int = 0) -> Artifact:
    """As figure 1 on S', the facts whose subject had another object before, and on those whose
    former object the model was taught. ``former``: ``retrieval.former_taught``."""
    panels, taught = {"all": outcomes}, [] if former is None else former.index[former > 0]
    if len(taught):
        among = lambda own: own[own.index.get_level_values("fact").isin(taught)]
        panels["former object stated"] = {s: among(own) for s, own in outcomes.items()}
    curves = {title: _curves(own, seed) for title, own in panels.items()}
    frames = [_rows(own, "strategy") for own in curves.values()]
    for frame, title in zip(frames[1:], [*panels][1:], strict=True):
        frame["strategy"] += f", {title}"
    changes = [change_of(own["temp_sem"], own["sem"], 1, seed=seed) for own in panels.values()]
    claims = check("distractors/figure2", **dict(zip(("former", "stated"), changes, strict=False)))
    figure = report.bands(curves, "distractors n", "mean Min@n (lower: harder)")
    return Artifact("distractors/figure2", pd.concat(frames), claims, figure)


def figure7(lists: pd.DataFrame) -> Artifact:
    """Ranks of former objects in the lists of Temp+Sem on S'. ``lists``: ``retrieval.retrieve``."""
    table = lists.groupby("rank")["former"].agg(["mean", "sum", "size"]).reset_index()
    table["mean low"], table["mean high"] = stats.wilson(table["sum"], table["size"])
    curve = {f"{table['size'].max()} lists": _band(table, "rank", "mean")}
    figure = report.bands({"": curve}, "position in the list", "share of former objects")
    return Artifact("distractors/figure7", table, figure=figure)


def optimum(outcomes: dict[str, pd.DataFrame], seed: int = 0) -> Artifact:
    """Min@n and Avg@n with the optimal distractors and ApprOpt's; ``outcomes``: by strategy."""
    curves = {f"{a}@n": _curves(outcomes, seed, a) for a in ("Min", "Avg")}
    frames = [_rows(own, "strategy", aggregate=name[:3]) for name, own in curves.items()]
    gap = change_of(outcomes["appropt"], outcomes["opt"], outcomes["opt"].shape[1], "Avg", seed)
    figure = report.bands(curves, "distractors n", "mean (lower: harder)", NAMES.values())
    claims = check("distractors/optimum", gap=gap)
    return Artifact("distractors/optimum", pd.concat(frames), claims, figure)


def endings(by_ending: dict[str, dict[str, pd.DataFrame]], seed: int = 0) -> Artifact:
    """Min@n by ending of labels, against "eos". ``by_ending``: ending -> strategy -> outcomes."""
    rows, estimates = [], {}
    for ending, outcomes in by_ending.items():
        for strategy, beaten in outcomes.items():
            n, name = beaten.shape[1], NAMES[strategy]
            found = change_of(beaten, by_ending["eos"][strategy], n, seed=seed)
            rows.append([name, ending, per_fact(beaten)[n].mean(), *found.values()])
            if ending != "eos":
                estimates[f"{name}, {ending}"] = found
    columns = ["strategy", "end", f"Min@{n}", "change", *ends("change"), "facts"]
    claims = check("distractors/endings", harder=pd.DataFrame(estimates).T)
    return Artifact("distractors/endings", pd.DataFrame(rows, columns=columns), claims)


def table1(costs: pd.DataFrame) -> Artifact:
    """Properties of the measures beside their measured cost (``scores.cost_per_fact``)."""
    judged = published.table("distractors/table1").rename(columns={"cost": "cost in the paper"})
    said = judged.columns.str.replace("_", " ").str.replace("oos", "out-of-subject text")
    judged.columns = said.str.replace("inter lm", "between models")
    row = costs["measure"].where(~costs["measure"].str.startswith("Dist."), "Distractors (ours)")
    table = costs.assign(row=row).join(judged.set_index("measure"), on="row").drop(columns="row")
    return Artifact("distractors/table1", table.sort_values("tokens per fact", ignore_index=True))


def table2() -> Artifact:
    """Definitions of the measures."""
    rows = [(name, *words) for name, words in DEFINITIONS.items()]
    columns = ["measure", "definition", "tuned by"]
    return Artifact("distractors/table2", pd.DataFrame(rows, columns=columns))


def table3(calibrated: Calibrations, text: str = "") -> Artifact:
    """Agreement of every measure with the ratings. ``text``: what generated text misses here."""
    table = measures.agreement(calibrated).assign(facts=len(calibrated.rating))
    ours = cases(table, "to ApprOpt", "measure", "facts").assign(missed=calibrated.missed)
    generated = ours[ours.index.isin(GENERATED)].assign(missed=calibrated.missed or text)
    found = {"generated": generated, "probability": ours.loc["Probability"]}
    return Artifact("distractors/table3", table, check("distractors/table3", **found))


def table9(calibrated: Calibrations) -> Artifact:
    """The configuration chosen for each fold."""
    table = pd.concat(calibrated.chosen, names=["measure"]).reset_index("measure")
    table = table[["measure", "fold", "configuration", "training", "tau", "n", "undefined"]]
    text = table["configuration"] + table["tau"].map(" ({:.2f})".format)
    shown = table.assign(text=text, fold=table["fold"].map("fold {}".format))
    shown = shown.pivot(index="measure", columns="fold", values="text").loc[list(calibrated.chosen)]
    shown = shown.reset_index().rename_axis(columns=None)
    return Artifact("distractors/table9", table, shown=shown)


def table4(table: pd.DataFrame) -> Artifact:
    """Robustness to flawed sentences (``measures.robustness``)."""
    printed = table[table["measure"].isin([*GENERATED, "LLM-as-a-judge", "Probability"])]
    found = {f: cases(printed, f"{f} to ApprOpt", "measure", "n") for f in ("tau", "kappa")}
    return Artifact("distractors/table4", table, check("distractors/table4", **found))


def count_errors(verbalizations: str | Path | None = None) -> tuple[pd.Series, int]:
    """Numbers of sentences with each error and each kind of worst error (``WORST``), and of all:
    of the authors' annotated ones (taxonomy.csv); None: behind the paper's printed shares."""
    if verbalizations is None:
        shares = (published.table(f"distractors/table{i}")["proportion_pct"] for i in (5, 6))
        errors, worst = (own.mul(ANNOTATED / 100).round().astype(int) for own in shares)
        return pd.Series([*errors[:-1], *worst], [*sorted(ERRORS), *WORST]), ANNOTATED
    found = read_verbalizations(verbalizations)
    named = [set(names) for names in found.loc[found["context"] == "present", "errors"]]
    counts = {name: sum(name in names for names in named) for name in sorted(ERRORS)}
    blunders, free = sum(bool(own - set(MINOR)) for own in named), sum(not own for own in named)
    worst = (len(named) - blunders - free, blunders, free)
    return pd.Series(counts | dict(zip(WORST, worst, strict=True))), len(named)


def _percents(counts: pd.Series, n: int, name: str) -> pd.DataFrame:
    """Counts out of ``n`` as percentages with Wilson's 95 % interval."""
    rows = [(what, k / n, *stats.wilson(k, n)) for what, k in counts.items()]
    table = pd.DataFrame(rows, columns=[name, "percent", *ends("percent")]).set_index(name)
    return (100 * table).assign(sentences=counts).reset_index()


def table5(counts: pd.Series, n: int) -> Artifact:
    """The share of sentences with each error, several per sentence (``count_errors``)."""
    named = counts[[*sorted(ERRORS), WORST[-1]]]
    return Artifact("distractors/table5", _percents(named, n, "error"))


def table6(counts: pd.Series, n: int) -> Artifact:
    """The share of sentences with minor errors only, with a blunder, with none."""
    return Artifact("distractors/table6", _percents(counts[list(WORST)], n, "category"))


def table8(sentences: pd.DataFrame, made: dict[str, pd.DataFrame]) -> Artifact:
    """Kinds of errors, and the first of the ``sentences`` that each rule changes (``made``)."""
    rows = []
    for name, meaning in ERRORS.items():
        rule, pair = "not made: it changes what is said", ("–", "–")
        if name in FLAWS:
            rule, changed = FLAWS[name]["rule"], np.flatnonzero(made[name]["errors"].map(len))
            if len(changed):
                pair = [own["text"].iloc[changed[0]] for own in (sentences, made[name])]
        rows.append((name, meaning, *pair, rule))
    columns = ["error", "meaning", "right", "flawed", "made here by"]
    return Artifact("distractors/table8", pd.DataFrame(rows, columns=columns))


def figure3(table: pd.DataFrame, missed: str = "") -> Artifact:
    """Agreement by number of distractors (``measures.agreement_by_n``; ``Calibrations.missed``)."""
    curves = {s: _band(own, "n", "tau") for s, own in table.groupby("strategy", sort=False)}
    last = table["n"].max()
    figure = report.bands({"": curves}, "distractors n", "Kendall's tau")
    figure.axes[0].autoscale(axis="y")
    for place, tau in enumerate(curve["mean"] for curve in curves.values()):
        for n in tau.index[tau >= tau.max() - NEAR][:1]:
            look = {"fillstyle": "none", "color": report.style_at(place)["color"]}
            figure.axes[0].plot(n, tau[n], "o", markersize=9, **look)
    after = cases(table[table["n"] == min(ENOUGH, last)], "to last", "strategy", "facts")
    after["missed"] = missed if last > ENOUGH else "more than 15 distractors"
    found = {"enough": after.loc["ApprOpt"], "more": after.loc[["Random", "Temp+Sem"]]}
    return Artifact("distractors/figure3", table, check("distractors/figure3", **found), figure)


def figure4(table: pd.DataFrame, missed: str = "") -> Artifact:
    """Agreement against the number of sentences (``measures.agreement_by_sentences``)."""
    figure = _by_sentences(table, "tau", "Kendall's tau")
    last = cases(table[table["sentences"] == table["sentences"].max()], "gain", "measure")
    last = last.assign(missed=missed)
    frame = table[["measure", "sentences", "tau", *ends("tau"), "std", "choices", "undefined"]]
    return Artifact("distractors/figure4", frame, check("distractors/figure4", gain=last), figure)


def figure6(table: pd.DataFrame, missed: str = "") -> Artifact:
    """Gain in 1 + tau over one sentence (``measures.agreement_by_sentences``)."""
    figure = _by_sentences(table, "gain", "gain in 1 + tau, percent")
    for axis in figure.axes:
        axis.axhline(0, color="0.6", linewidth=0.8, zorder=0)
    last = table[table["sentences"] == table["sentences"].max()]
    generated = last[last["measure"].isin([*GENERATED, "LLM-as-a-judge"])]
    generated = cases(generated, "to ApprOpt", "measure").assign(missed=missed)
    claims = check("distractors/figure6", generated=generated)
    columns = ["measure", "sentences", "gain", *ends("gain"), "to ApprOpt", *ends("to ApprOpt")]
    return Artifact("distractors/figure6", table[columns], claims, figure)


def _by_sentences(table: pd.DataFrame, y: str, label: str):
    """``y`` and its band against the number of sentences, a panel per kind of measure."""
    panels, kinds = {}, table["measure"].map(PANELS).fillna("distractors")
    for (kind, name), own in table.groupby([kinds, "measure"], sort=False):
        panels.setdefault(kind, {})[name.removeprefix("Dist. ")] = _band(own, "sentences", y)
    figure = report.bands(panels, "cloze sentences", label, NAMES.values())
    figure.axes[0].autoscale(axis="y")
    return figure


def figure5(outcomes: dict[str, pd.DataFrame], seed: int = 0) -> Artifact:
    """Mean Avg@n with ApprOpt against n, one line per model (``scores.outcomes_by_model``)."""
    size = lambda name: outcomes[name].attrs["parameters"]
    by_size = sorted(outcomes, key=size)
    curves, last = _curves(outcomes, seed, "Avg"), min(READ_AT, outcomes[by_size[0]].shape[1])
    panel = {"": {name: curves[name] for name in by_size}}
    figure = report.bands(panel, "distractors n", "mean Avg@n", models=True)
    figure.axes[0].axvline(last, color="0.4", linestyle=":", linewidth=0.8)
    missed = "" if size(by_size[0]) < size(by_size[-1]) else "models of two sizes"
    step = lambda large, small: change_of(outcomes[large], outcomes[small], last, "Avg", seed)
    steps = {f"{a} to {b}": step(b, a) for a, b in zip(by_size, by_size[1:], strict=False)}
    largest = step(by_size[-1], by_size[0]) | {"missed": missed}
    found = {"steps": pd.DataFrame(steps).T} if len(steps) > 1 else {}
    claims = check("distractors/figure5", largest=largest, **found)
    return Artifact("distractors/figure5", _rows(curves, "model"), claims, figure)


def figure8(outcomes: dict[str, dict[str, pd.DataFrame]], seed: int = 0) -> Artifact:
    """Avg@20 against model size with fits; ``outcomes``: search -> ``scores.outcomes_by_model``."""
    sizes = {m: own.attrs["parameters"] for by in outcomes.values() for m, own in by.items()}
    if len(set(sizes.values())) < 2:
        table = pd.DataFrame(sizes.items(), columns=["model", "parameters"])
        return report.lacking("distractors/figure8", table)
    shared = {"columns": len(outcomes), "sharex": True, "sharey": True}
    figure, (axes,) = report.subplots(report.TWO_COLUMNS, 2.6, **shared)
    frames, slopes = [], {}
    for axis, (search, own) in zip(axes, outcomes.items(), strict=True):
        n = min(READ_AT, *(beaten.shape[1] for beaten in own.values()))
        points = _rows(_curves(own, seed, "Avg"), "model", strategy=search).query("n == @n")
        points = points.drop(columns="n").assign(family=points["model"].map(report.family))
        points["parameters"] = points["model"].map(sizes)
        values = {name: per_fact(beaten, "Avg")[n] for name, beaten in own.items()}
        points, fits = measures.scaling(points, values)
        _draw_fits(axis, points, fits)
        axis.set(title=f"{search}, {points['facts'].max()} facts", ylabel=f"mean Avg@{n}")
        linear = fits[fits["kind"] == "linear"].drop(columns=["kind", "a"]).squeeze(axis=0)
        slopes[search] = {"missed": "" if len(fits) else "three models of one family"}
        if len(fits):
            slopes[search] |= cases(fits, "slope", "kind").loc["linear"]
            points = points.assign(**linear)
            fit = "R² = {:.2f}, N90 = {:.0e} [{:.0e}, {:.0e}]".format(*linear["R2":])
            axis.set_title(f"{axis.get_title('left')}\n{fit.replace('nan', '–')}")
        frames.append(points)
    claims = check("distractors/figure8", slope=pd.DataFrame.from_dict(slopes, "index"))
    lines = axes[0].get_legend_handles_labels()
    figure.legend(*lines, loc="outside lower center", ncols=4, fontsize=report.SMALL)
    return Artifact("distractors/figure8", pd.concat(frames), claims, figure)


def _draw_fits(axis, points: pd.DataFrame, fits: pd.DataFrame) -> None:
    """Models with bars, the fitted curves up to 0.9 (at most 1e20 parameters), a line at 0.9."""
    for row in points.to_dict("records"):
        look = report.model_style(row["model"]) | {"linestyle": "none", "markersize": 4}
        look |= {"fillstyle": "full" if row["fitted"] else "none", "capsize": 2}
        bar = np.abs([[row[end] - row["mean"]] for end in ends("mean")])
        name = row["model"].removeprefix("atlas-")
        axis.errorbar(row["parameters"], row["mean"], bar, label=name, **look)
    far = max([points["parameters"].max(), *fits["size at 0.9"][fits["size at 0.9"] < 1e20]])
    grid = np.geomspace(points["parameters"].min() / 2, 2 * far, 200)
    looks = {"linear": {"color": "0.75", "linewidth": 3}}
    looks["logit"] = {"color": "0.1", "linestyle": ":", "linewidth": 1.2}
    for fit in fits.itertuples():
        value = fit.a + fit.slope * np.log10(grid)
        value = value if fit.kind == "linear" else 1 / (1 + np.exp(-value))
        axis.plot(grid, value, zorder=1, **looks[fit.kind])
    axis.axhline(0.9, color="0.6", linewidth=1)
    axis.set(xscale="log", yticks=[0, 0.3, 0.6, 0.9], ylim=(0, 1))
    axis.set_xlabel("parameters without embeddings")
    axis.tick_params(which="minor", labelbottom=False)
