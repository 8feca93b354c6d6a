"""Figures 1 to 8 of the Distractors paper, each a function from numbers to ``report.Artifact``, and their findings."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd

from probelib import published, report, stats
from probelib.distractors import measures
from probelib.distractors.measures import Scaling
from probelib.distractors.retrieval import NAMES
from probelib.distractors.settings import Study
from probelib.report import span
from probelib.report.legacy import Artifact

TOGETHER = (
    "Dist. ApprOpt",
    "LLM-as-a-judge",
    "Probability",
    "Precision@n",
    "BERT-score",
    "ROUGE-L",
)  # the measures of the paper's figures 4 and 6

# Section 4.1: which distractors are the hardest?


def figure1(outcomes: dict[str, pd.DataFrame], study: Study) -> Artifact:
    """Mean Min@n against n by strategy, on the facts S. ``outcomes``: strategy -> ``measures.outcomes``."""
    curves, n = _curves(outcomes, study), study.settings.n_distractors
    facts, short = _sizes(outcomes["appropt"])
    caption = (
        f"Mean Min@n of {study.model} over the n = {facts} facts of S, one cloze sentence per fact. {HOW_TO_READ} Facts with "
        f"fewer than {n} distractors keep all they have: ApprOpt's beam, in which several labels of one entity take places, "
        f"found fewer for {short} of them."
    )
    finding = f"{hardest_finding(curves, n)}{_harder(outcomes, n, study.settings.seed)}"
    return _min_figure("distractors/figure1", {"": curves}, caption + SAME_LISTS, finding)


HOW_TO_READ = (
    "x axis: the number n of distractors per fact, logarithmic; a line: one strategy of choosing them; Min@n of a fact is 1 "
    "if its object is more probable than all n distractors, else 0. The lower a line, the harder its distractors. Bands: 95 % "
    "bootstrap intervals over facts."
)
SAME_LISTS = " Sem and Temp+Sem coincide for every fact without a former object (99 % of facts in the paper)."


def _harder(outcomes: dict[str, pd.DataFrame], n: int, seed: int) -> str:
    """Paired differences of Min@n: Sem against Random, ApprOpt against Sem, each with its verdict."""
    said = []
    for harder, easier in (("sem", "random"), ("appropt", "sem")):
        if {harder, easier} <= set(outcomes):
            change = measures.change_of(outcomes[harder], outcomes[easier], n, seed=seed)
            said.append(
                f" {NAMES[harder]} minus {NAMES[easier]}: {change['change']:+.2f} {span(change['low'], change['high'])}, "
                f"{_verdict(change, -1)}."
            )
    return "".join(said)


def _verdict(change: dict, sign: int) -> str:
    """Whether a change has the ``sign`` that the paper gives it, by its interval."""
    low, high = sorted((sign * change["low"], sign * change["high"]))
    if low > 0:
        return "as the paper says"
    return "the reverse of the paper's claim" if high < 0 else "not significant: the paper's claim is not decided here"


def hardest_finding(curves: dict[str, pd.DataFrame], n: int) -> str:
    """The strategy with the lowest Min@n."""
    last = {strategy: curve.iloc[-1] for strategy, curve in curves.items()}
    if len({row["mean"] for row in last.values()}) == 1:
        return f"All strategies give the same Min@{n}."
    hardest = min(last, key=lambda strategy: last[strategy]["mean"])
    row, random = last[hardest], last["Random"]
    return (
        f"The hardest distractors come from **{hardest}**: Min@1 {curves[hardest]['mean'].iloc[0]:.2f}, Min@{n} "
        f"{row['mean']:.2f} {span(row['low'], row['high'])}; random ones give {random['mean']:.2f} "
        f"{span(random['low'], random['high'])}. In the paper (Pythia-6.9B) ApprOpt goes from 0.40 to 0.35."
    )


def figure2(outcomes: dict[str, pd.DataFrame], study: Study, taught: pd.DataFrame | None = None) -> Artifact:
    """As figure 1 on S', the facts whose subject had another object before; a second panel shows those whose former object the
    model was taught. ``taught``: see ``former_by_teaching``."""
    curves, n = _curves(outcomes, study), study.settings.n_distractors
    facts, short = _sizes(outcomes["appropt"])
    whose = "whose subject had another object before, so that Temp+Sem begins with it"
    if outcomes["sem"].equals(outcomes["temp_sem"]):
        whose = "of S, since these data have no former objects that change a score"
    panels, stated = {f"all\nn = {facts}": curves}, _former_stated(outcomes, taught)
    second = ""
    if stated:
        known = len(stated["sem"])
        panels[f"former object stated\nn = {known}"] = _curves(stated, study)
        second = f" Right: the n = {known} of them whose former object the model's corpus states."
    caption = (
        f"As figure 1 ({study.model}) on S': n = {facts} facts {whose}.{second} {HOW_TO_READ} At n = 1, Sem has the most "
        f"similar entity and Temp+Sem the former object. ApprOpt's beam found fewer than {n} distractors for {short} facts."
    )
    return _min_figure("distractors/figure2", panels, caption, former_finding(outcomes, study.settings.seed, taught))


def _former_stated(outcomes: dict[str, pd.DataFrame], taught: pd.DataFrame | None) -> dict[str, pd.DataFrame]:
    """The outcomes of the facts whose former object the model was taught; empty if there are none, or if it is unknown."""
    if taught is None or not (taught["former"] > 0).any():
        return {}
    known = taught.index[taught["former"] > 0]
    kept = {s: beaten[beaten.index.get_level_values("fact").isin(known)] for s, beaten in outcomes.items()}
    return kept if len(kept["sem"]) else {}


def former_finding(outcomes: dict[str, pd.DataFrame], seed: int = 0, taught: pd.DataFrame | None = None) -> str:
    """How much a former object as first distractor changes Min@1, against the most similar entity."""
    change = measures.change_of(outcomes["temp_sem"], outcomes["sem"], 1, seed=seed)
    if np.isnan(change["low"]):
        return f"Former objects change Min@1 by {change['change']:+.3f} for every fact (n = {change['facts']})."
    verdict = f"{_verdict(change, -1)} ({FORMER_PAPER:.2f}; its stored figure gives -0.156)"
    if change["low"] > FORMER_PAPER and change["low"] <= 0 <= change["high"]:
        verdict = (
            f"not significant; the interval excludes a change as large as the paper's ({FORMER_PAPER:.2f}; its stored figure "
            "gives -0.156)"
        )
    return (
        f"A former object as first distractor changes Min@1 by {change['change']:+.3f} "
        f"{span(change['low'], change['high'], '.3f')} against the most similar entity (n = {change['facts']} "
        f"facts): {verdict}.{former_by_teaching(outcomes, taught, seed)}"
    )


FORMER_PAPER = -0.17  # the paper's change of Min@1 by a former object


FORMER_GROUPS = {  # group of facts -> which rows of ``taught``
    "whose former object was stated": lambda taught: taught["former"] > 0,
    "whose former object was never stated": lambda taught: taught["former"] == 0,
    "whose present object was stated 16 times or more": lambda taught: taught["exposures"] >= 16,
}


def former_by_teaching(outcomes: dict[str, pd.DataFrame], taught: pd.DataFrame | None, seed: int = 0) -> str:
    """The change of Min@1 by a former object, separately for facts that the model was and was not taught.

    taught   per fact (index): ``former`` and ``exposures``, the exposure counts of its first former and of its present object;
             None: unknown
    """
    if taught is None or taught.empty:
        return ""
    facts, said, reached = outcomes["sem"].index.get_level_values("fact"), [], []
    for words, chosen in FORMER_GROUPS.items():
        keep = facts.isin(taught.index[chosen(taught)])
        if keep.any():
            change = measures.change_of(outcomes["temp_sem"][keep], outcomes["sem"][keep], 1, seed=seed)
            interval = span(change["low"], change["high"], ".3f")
            said.append(f"{change['change']:+.3f} {interval} for {change['facts']} facts {words}")
            if change["low"] <= FORMER_PAPER and change["high"] < 0:
                reached.append(f" A change as large as the paper's ({FORMER_PAPER:.2f}) is found for facts {words}.")
    never = (taught["former"] == 0).mean()
    read = f" The model never read the first former object of {never:.0%} of the facts."
    return f"{read} Change by teaching: {'; '.join(said)}.{''.join(reached)}"


def figure7(lists: pd.DataFrame) -> Artifact:
    """Ranks of former objects in the lists of Temp+Sem on S'. ``lists``: ``retrieval.retrieve``."""
    shares = lists.groupby("rank")["former"].agg(["mean", "sum", "size"]).reset_index()
    shares[["low", "high"]] = [stats.wilson(k, n) for k, n in zip(shares["sum"], shares["size"], strict=True)]
    figure, axes = report.column(1.9)
    axis = axes[0, 0]
    axis.fill_between(shares["rank"], shares["low"], shares["high"], alpha=0.2, linewidth=0)
    axis.plot(shares["rank"], shares["mean"], marker="o", markersize=3)
    axis.set(xlabel="position in the list of distractors", ylabel="share of former objects", ylim=(0, 1.02))
    report.count_axis(axis, shares["rank"].max())
    caption = (
        f"Share of the n = {lists['fact'].nunique()} lists of Temp+Sem on S' (one per fact; no model is involved) with a "
        "former object at each position, shorter lists left out; x axis logarithmic; band: Wilson's 95 % interval."
    )
    first, last = shares.iloc[0], shares.iloc[-1]
    finding = (
        f"At position 1 the share is {first['mean']:.2f} (1 by construction on S'), at position {last['rank']:.0f} "
        f"{last['mean']:.2f}. The published plot shows 0.01 at position 1, which is the value of S."
    )
    alt = f"Share of former objects by position: {first['mean']:.2f} at the first, {last['mean']:.2f} at the last."
    finding = finding if shares["sum"].any() else "No list holds a former object."
    return Artifact("distractors/figure7", shares, caption, finding, figure=figure, alt=alt)


def optimum(outcomes: dict[str, pd.DataFrame], study: Study) -> Artifact:
    """Min@n and Avg@n with the optimal distractors and with those of ApprOpt's beam. ``outcomes``: with "appropt" and "opt"."""
    shown = {strategy: outcomes[strategy] for strategy in ("random", "appropt", "opt")}
    panels = {f"{aggregate}@n": _curves(shown, study, aggregate) for aggregate in ("Min", "Avg")}
    figure = report.bands(panels, "distractors n", "mean over facts (lower: harder)")
    frames = {(name, panel[:3]): curve for panel, curves in panels.items() for name, curve in curves.items()}
    frame = pd.concat(frames, names=["strategy", "aggregate", "n"]).rename(columns={"n": "facts"}).reset_index()
    n, drawn = study.settings.n_distractors, panels["Min@n"]
    apart = (drawn["ApprOpt"]["mean"] - drawn["Opt"]["mean"]).abs().max()
    caption = (
        f"Mean Min@n and Avg@n of {study.model} over {len(outcomes['opt'])} facts against random distractors, those "
        "that the beam finds (ApprOpt) and the n most plausible ones (Opt, Eq. 4, exact); bands: 95 % bootstrap over facts. x "
        "axis: n, logarithmic. Where ApprOpt lies above Opt, the search, not the model, makes the test easier. For Min@n "
        f"their lines differ by {apart:.2f} at most."
    )
    alt = "Two panels, Min@n and Avg@n over n, with lines for Random, ApprOpt and Opt."
    finding = optimum_gap(outcomes, n, study.settings.seed)
    return Artifact("distractors/optimum", frame, caption, finding, figure=figure, alt=alt)


def optimum_gap(outcomes: dict[str, pd.DataFrame], n: int, seed: int = 0) -> str:
    """How much ApprOpt overestimates Min@n and Avg@n against the exact optimum."""
    rows = []
    for aggregate in ("Min", "Avg"):
        gap = measures.change_of(outcomes["appropt"], outcomes["opt"], n, aggregate, seed)
        change = f"{gap['change']:+.2f} {span(gap['low'], gap['high'])} above Opt"
        same = gap["change"] == 0 and np.isnan(gap["low"])
        rows.append(f"{aggregate}@{n} {gap['mean']:.2f}, {'the same for every fact' if same else change}")
    return f"ApprOpt against the optimum on {gap['facts']} facts: {'; '.join(rows)}."


def _curves(outcomes: dict[str, pd.DataFrame], study: Study, aggregate: str = "Min") -> dict[str, pd.DataFrame]:
    """Display name of each strategy, or model -> ``measures.mean_curve``."""
    seed = study.settings.seed
    return {NAMES.get(name, name): measures.mean_curve(own, aggregate, seed) for name, own in outcomes.items()}


def _sizes(outcomes: pd.DataFrame) -> tuple[int, int]:
    """(number of facts, number of facts with fewer distractors than requested)."""
    return len(outcomes), int(outcomes[outcomes.columns[-1]].isna().sum())


def _min_figure(name: str, panels: dict[str, dict[str, pd.DataFrame]], caption: str, finding: str) -> Artifact:
    """A figure of Min@n against n, one line per strategy. Its frame has the rows of all panels; those of the first panel are not
    marked with a title."""
    parts = [
        pd.concat(curves, names=["strategy", "n"]).rename(columns={"n": "facts"}).reset_index()
        for curves in panels.values()
    ]
    for title, part in zip(list(panels)[1:], parts[1:], strict=True):
        part["strategy"] += f", {title.splitlines()[0]}"
    figure = report.bands(panels, "distractors n", "mean Min@n (lower: harder)")
    ends = (
        f"{s} {line['mean'].iloc[0]:.2f} to {line['mean'].iloc[-1]:.2f}"
        for part in parts
        for s, line in part.groupby("strategy", sort=False)
    )
    alt = f"Min@n from one distractor to the last: {', '.join(ends)}."
    return Artifact(name, pd.concat(parts, ignore_index=True), caption, finding, figure=figure, alt=alt)


# Section 5.1 and appendix C: how many distractors, how many sentences?


def figure3(table: pd.DataFrame, n_facts: int, study: Study) -> Artifact:
    """Agreement against the number of distractors. ``table``: see ``measures.agreement_by_n``."""
    figure, axes = report.column(2.5)
    axis = axes[0, 0]
    ticks = report.count_axis(axis, study.settings.n_distractors)
    for place, (strategy, line) in enumerate(table.groupby("strategy", sort=False)):
        look, curve = report.style_at(place), line.set_index("n")["tau"]
        at = [i for i, n in enumerate(line["n"]) if n in ticks]
        axis.plot(line["n"], line["tau"], label=strategy, markevery=at, markersize=3, linewidth=1.2, **look)
        if curve.notna().any():
            settled = measures.settles_at(curve)
            axis.plot(settled, curve[settled], "o", markersize=9, fillstyle="none", color=look["color"])
        axis.fill_between(line["n"], line["low"], line["high"], color=look["color"], alpha=0.1, linewidth=0)
    axis.set(xlabel="distractors n", ylabel="Kendall's tau, mean of the test folds")
    axis.legend(ncols=2, fontsize=report.SMALL)
    caption = (
        f"Agreement with {study.reference.split(':')[0]} against the number of distractors, {study.model}, n = {n_facts} "
        f"facts, {study.settings.n_sentences} cloze sentences. The aggregator (Min or Avg) is chosen on each fold's training "
        "facts; bands: 95 % bootstrap over facts; x axis logarithmic. Circles: the first n within 0.01 of the best. Sem and "
        "Temp+Sem coincide on facts without a former object."
    )
    alt = "Tau over the number of distractors, one line per strategy with its band."
    return Artifact("distractors/figure3", table, caption, finding3(table), figure=figure, alt=alt)


def finding3(table: pd.DataFrame) -> str:
    """How many distractors each strategy needs, and whether the paper's order of the strategies appears."""
    lines = {
        s: line.set_index("n")["tau"] for s, line in table.groupby("strategy", sort=False) if line["tau"].notna().any()
    }
    if not lines:
        return ""
    needed = pd.Series({s: measures.settles_at(line) for s, line in lines.items()}).sort_values(kind="stable")
    said = ", ".join(f"{s} at n = {n:.0f}" for s, n in needed.items())
    return f"Tau first comes within 0.01 of its best value: {said}. {_fewest(needed)}{_fall_of(lines)}"


def _fewest(needed: pd.Series) -> str:
    """Whether ApprOpt needs fewer distractors than Random, as in the paper."""
    if not {"ApprOpt", "Random"} <= set(needed.index):
        return "The paper's comparison of ApprOpt and Random is not possible here."
    verdict, order = ("As", "fewer") if needed["ApprOpt"] < needed["Random"] else ("Unlike", "no fewer")
    return (
        f"{verdict} in the paper, ApprOpt needs {order} distractors than Random (paper: about 15, Temp+Sem 110, Random 130, "
        "out of millions of entities). The bands overlap, so n is no more certain than the height of a curve."
    )


def _fall_of(lines: dict[str, pd.Series], strategy: str = "ApprOpt", within: float = 0.01) -> str:
    """How far a curve falls after its best value, if by more than ``within``."""
    if strategy not in lines:
        return ""
    line = lines[strategy]
    if line.max() - line.iloc[-1] <= within:
        return ""
    return (
        f" {strategy} then falls from {line.max():.3f} (n = {line.idxmax()}) to {line.iloc[-1]:.3f} (n = {line.index[-1]}): "
        "the last names that the beam finds are less plausible."
    )


def figure4(table: pd.DataFrame, n_facts: int, study: Study) -> Artifact:
    """Agreement against the number of cloze sentences. ``table``: see ``measures.agreement_by_sentences``."""
    labels = ("cloze sentences", "Kendall's tau, mean of the test folds")
    figure = report.line_panels(table, "sentences", "tau", ["low", "high"], labels, TOGETHER)
    frame = table[["measure", "sentences", "tau", "low", "high", "std", "choices", "undefined"]]
    caption = (
        f"Agreement against the number of cloze sentences, {study.model}, n = {n_facts} facts: mean over all choices "
        f"of that many of the {table['sentences'].max()} sentences and over the test folds; bands: 95 % bootstrap "
        "over facts, in the small panels. KaRR has templates of its own. A missing point: tau undefined on a fold. "
        f"The large panel has the measures of the paper's figure.{_coincide(table)}"
    )
    ends = [
        f"{name} {line['tau'].iloc[0]:.2f} to {line['tau'].iloc[-1]:.2f}"
        for name, line in table.groupby("measure", sort=False)
    ]
    alt = f"Tau with one sentence and with all: {', '.join(ends)}."
    return Artifact("distractors/figure4", frame, caption, finding4(table), figure=figure, alt=alt)


def _coincide(table: pd.DataFrame, within: float = 0.005) -> str:
    """The pairs of measures in the large panel whose lines cover each other."""
    wide = table.pivot(index="measure", columns="sentences", values="tau").reindex(list(TOGETHER)).dropna()
    pairs = [f"{a} and {b}" for a, b in combinations(wide.index, 2) if (wide.loc[a] - wide.loc[b]).abs().max() < within]
    return f" There, the lines of {', '.join(pairs)} coincide." if pairs else ""


def finding4(table: pd.DataFrame) -> str:
    """How many measures gain from more sentences, for how many significantly, and whether ApprOpt peaks at three."""
    wide = table.pivot(index="measure", columns="sentences", values="tau").dropna()
    if wide.empty or len(wide.columns) < 2:
        return ""
    rising = int((wide.iloc[:, -1] > wide.iloc[:, 0]).sum())
    gained = table[(table["sentences"] == wide.columns[-1]) & table["measure"].isin(wide.index)]["gain, low"] > 0
    said = (
        f"Tau is higher with {wide.columns[-1]} sentences than with one for {rising} of {len(wide)} measures, significantly "
        f"for {gained.sum()} (paired, see figure 6)."
    )
    if "Dist. ApprOpt" not in wide.index:
        return said
    line = wide.loc["Dist. ApprOpt"]
    peak = "as in the paper" if line.idxmax() == 3 else "not at three as in the paper"
    return (
        f"{said} ApprOpt goes from {line.iloc[0]:.3f} to {line.iloc[-1]:.3f} and is highest with {line.idxmax()} ({peak}); "
        f"its values differ by {line.max() - line.min():.3f} at most (paper: 0.015)."
    )


def figure6(table: pd.DataFrame, n_facts: int, study: Study) -> Artifact:
    """Proportional gain in tau over one cloze sentence. ``table``: see ``measures.agreement_by_sentences``."""
    labels = ("cloze sentences", "proportional gain in tau, percent")
    band = ["gain, low", "gain, high"]
    figure = report.line_panels(table, "sentences", "gain", band, labels, TOGETHER, level=0)
    frame = table[["measure", "sentences", "gain", "gain, low", "gain, high"]]
    caption = (
        f"Proportional gain of m cloze sentences over one, {study.model}, n = {n_facts} facts: 100 ((tau with m + 1) / (tau "
        f"with one + 1) - 1), tau the mean over all choices of m of the {table['sentences'].max()} sentences and over the "
        "test folds (released code: mean of the folds' ratios, undefined folds skipped). Large panel: the measures of the "
        "paper's figure. Small panels: every measure with its 95 % bootstrap interval over facts, the same facts with few "
        "sentences and with many; a band above 0 is a significant gain."
    )
    ends = [f"{name} {line['gain'].iloc[-1]:+.1f}" for name, line in table.groupby("measure", sort=False)]
    alt = f"Gain with all sentences over one, percent: {', '.join(ends)}."
    return Artifact("distractors/figure6", frame, caption, finding6(frame), figure=figure, alt=alt)


def finding6(table: pd.DataFrame) -> str:
    """The largest gain with all sentences, and which gains differ significantly from 0."""
    last = table[table["sentences"] == table["sentences"].max()].dropna(subset="gain")
    if last.empty:
        return ""
    best = last.loc[last["gain"].idxmax()]
    unsure = last[(last["gain, low"] <= 0) & (last["gain, high"] >= 0)]["measure"].tolist()
    return (
        f"With {best['sentences']} sentences **{best['measure']}** gains most, {best['gain']:+.1f} % "
        f"{span(best['gain, low'], best['gain, high'], '.1f')}; {len(last) - len(unsure)} of {len(last)} gains differ "
        f"significantly from 0 (each interval by itself), not those of: {', '.join(unsure) or 'none'}. In the paper "
        f"BERT-score, ROUGE-L and the judge gain 5, 3 and 7 %.{_largest_gains(last)}"
    )


def _largest_gains(last: pd.DataFrame) -> str:
    """Whether the measures on generated text gain most, as in the paper, and whether the intervals say so."""
    order = last.sort_values("gain", ascending=False)
    first, others = order[:3], order[3:]
    same = set(first["measure"]) == {"BERT-score", "ROUGE-L", "LLM-as-a-judge"}
    whose = "the measures on generated text, as in the paper" if same else ", ".join(first["measure"])
    paper = "" if same else "; in the paper, of the measures on generated text"
    overlap = "; their intervals overlap with those of others" * bool(
        first["gain, low"].min() <= others["gain, high"].max()
    )
    return f" The three largest gains are those of {whose}{paper}{overlap}."


# Section 5.2 and appendix E: scale


def figure5(outcomes: dict[str, pd.DataFrame], sizes: dict[str, int], study: Study) -> Artifact:
    """Mean Avg@n with ApprOpt against n, one line per model. ``sizes``: model -> parameters."""
    import matplotlib.pyplot as plt

    n, curves = study.settings.n_distractors, _curves(outcomes, study, "Avg")
    figure, axis = plt.subplots(figsize=(3.8, 3.4))
    for place, name in enumerate(sorted(curves, key=sizes.get)):
        look, curve, end = report.model_style(name), curves[name], curves[name].iloc[-1]
        look |= {"markerfacecolor": ("white", look["color"])[place % 2]}  # neighbours in size differ
        marks = {"linewidth": 1, "markevery": max(1, n // 8), "markersize": 4.5}
        axis.plot(curve.index, curve["mean"], label=name, **marks, **look)
        bar = [[end["mean"] - end["low"]], [end["high"] - end["mean"]]]
        axis.errorbar(n * (1.03 + 0.022 * place), end["mean"], bar, capsize=2, linewidth=1, markersize=4.5, **look)
    axis.axvline(n, color="0.8", linewidth=0.8)
    axis.set(xlabel="distractors n", ylabel="mean Avg@n", xlim=(1, n * (1.05 + 0.022 * len(curves))))
    axis.set_xticks(sorted({1, *np.linspace(0, n, 6).round().astype(int)[1:]}))
    figure.legend(loc="outside lower center", ncols=2)
    facts = len(next(iter(outcomes.values())))
    short = [_sizes(beaten)[1] for beaten in outcomes.values()]
    caption = (
        f"Mean Avg@n over {facts} facts with ApprOpt, one cloze sentence. Right of the line: Avg@{n} with its 95 % bootstrap "
        "interval over facts, by size (hollow and full marks in turn); the intervals at every n are in the CSV. The beam "
        f"found fewer than {n} distractors for {min(short)} to {max(short)} of the facts, which keep what they have."
    )
    ends = pd.Series({name: curve["mean"].iloc[-1] for name, curve in curves.items()})
    span_of_ends = f"{ends.min():.2f} ({ends.idxmin()}) to {ends.max():.2f} ({ends.idxmax()})"
    alt = f"Curves of Avg@n, one per model; at n = {n} from {span_of_ends}."
    frame = pd.concat(curves, names=["model", "n"]).rename(columns={"n": "facts"}).reset_index()
    finding = finding5(outcomes, sizes, study)
    return Artifact("distractors/figure5", frame, caption, finding, figure=figure, alt=alt)


def finding5(outcomes: dict[str, pd.DataFrame], sizes: dict[str, int], study: Study) -> str:
    """The largest model against the smallest at n = 20 and at the last n, on the same facts."""
    small, large = min(outcomes, key=sizes.get), max(outcomes, key=sizes.get)
    if small == large:
        return ""
    said, falls, by_size = [], [], sorted(outcomes, key=sizes.get)
    for n in sorted({_read_at(study), study.settings.n_distractors}):
        values = [measures.over_sentences(measures.aggregated(outcomes[name], "Avg"))[n].mean() for name in by_size]
        falls.append(f"{(np.diff(values) < 0).sum()} at n = {n}")
        change = measures.change_of(outcomes[large], outcomes[small], n, "Avg", study.settings.seed)
        interval = span(change["low"], change["high"])
        said.append(f"{change['change']:+.2f} {interval} at n = {n} ({_verdict(change, 1)})")
    return (
        f"Avg@n of {large} minus {small}, the largest and the smallest model: {'; '.join(said)}. Of {len(by_size) - 1} steps "
        f"to the next larger model, {' and '.join(falls)} lower it. The paper says that larger models resist distractors "
        "better, by little."
    )


def scaling(outcomes: dict[str, pd.DataFrame], sizes: dict[str, int], study: Study) -> Scaling:
    """The fits of figure 8: Avg@20 (or at fewer distractors) against model size. Arguments as ``figure5``."""
    n, curves = _read_at(study), _curves(outcomes, study, "Avg")
    points = [
        {
            "model": name,
            "family": report.family(name),
            "parameters": sizes[name],
            **curve.loc[n, ["mean", "low", "high"]],
            "facts": int(curve.loc[n, "n"]),
        }
        for name, curve in curves.items()
    ]
    values = {s: measures.over_sentences(measures.aggregated(beaten, "Avg"))[n] for s, beaten in outcomes.items()}
    return measures.scaling(pd.DataFrame(points), values)


def figure8(fitted: dict[str, Scaling], study: Study) -> Artifact:
    """Avg@n against model size, with fits, one panel per strategy. ``fitted``: "ApprOpt", "Opt" -> ``scaling``."""
    import matplotlib.pyplot as plt

    n, first = _read_at(study), next(iter(fitted.values()))
    family = first.points.loc[first.points["fitted"], "family"].iloc[0]
    figure, axes = plt.subplots(1, len(fitted), figsize=(3.8, 3.4), sharex=True, sharey=True, squeeze=False)
    for axis, (strategy, own) in zip(axes[0], fitted.items(), strict=True):
        _scaling_plot(axis, own)
        axis.set(title=strategy, xscale="log", xlabel="parameters", ylim=(0, 1.02))
        axis.tick_params(which="minor", labelbottom=False)
    axes[0, 0].set(ylabel=f"mean Avg@{n}")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=7)
    facts = "; ".join(f"{strategy}: n = {own.points['facts'].min():.0f} facts" for strategy, own in fitted.items())
    caption = (
        f"Avg@{n} against model size (parameters without embeddings), with the beam's distractors (ApprOpt) and the most "
        f"plausible ones (Opt); bars: 95 % bootstrap over facts. Full marks: the {first.points['fitted'].sum()} models of the "
        f"family {family}, to which lines are fitted if there are at least three (broad grey: linear, dotted: logit). {facts}."
    )
    if first.straight is not None:
        r2 = first.straight["r2"]
        caption += f" A straight line over all {len(first.points)} models (first panel) has R² = {r2:.3f}."
    ends = first.points["mean"].agg(["min", "max"])
    alt = f"Points of Avg@{n} over size, from {ends['min']:.2f} to {ends['max']:.2f} with ApprOpt, fitted curves, a line at 0.9."
    frame = pd.concat({strategy: own.points for strategy, own in fitted.items()}, names=["strategy"])
    finding = " ".join(f"{s}: {finding8(own)}" for s, own in fitted.items() if own.fits)
    finding += FITS_READ if finding else ""
    return Artifact("distractors/figure8", frame.reset_index("strategy"), caption, finding, figure=figure, alt=alt)


def finding8(fitted: Scaling) -> str:
    """The slope of the straight fit, the size at which it reaches 0.9, and whether the models are ordered by size."""
    own = fitted.points[fitted.points["fitted"]].sort_values("parameters")
    falls = int((own["mean"].diff() < 0).sum())
    order = (
        f"{falls} of {len(own) - 1} steps to a larger model go down" if falls else "every larger model scores higher"
    )
    return f"{_fit_sentence(fitted.fits['linear'], fitted.reach['linear'])}; {order}."


FITS_READ = (
    " Intervals: of slopes by the scatter of the models (the paper's slope: +0.030), of sizes over facts. So few models with "
    "one training run each cannot decide the size at 0.9."
)


def _fit_sentence(fit: dict[str, float], reach: np.ndarray) -> str:
    """The slope of a straight fit with its verdict, and the size at which it reaches 0.9."""
    low, high = fit["b_low"], fit["b_high"]
    slope = (
        f"slope {fit['b']:+.3f} {span(low, high, '.3f')} per factor of ten (linear, R² = {fit['r2']:.3f}), "
        f"{_verdict({'low': low, 'high': high}, 1)}"
    )
    if not np.isfinite(fit["size_at"]):
        return f"{slope}; 0.9 is not reached"
    return f"{slope}; 0.9 at {fit['size_at']:.2g} parameters [{reach[0]:.2g}, {reach[1]:.2g}]"


def scaling_in_the_paper() -> str:
    """The paper's five points of figure 8, fitted again."""
    printed = published.table("distractors/figures").query("figure == 'fig8'")
    fit = stats.scaling_fit(printed["x"], printed["y"])
    return (
        f"The paper's five points give R² = {fit['r2']:.3f} and 0.9 at {fit['size_at']:.2g} parameters "
        f"[{fit['size_low']:.2g}, {fit['size_high']:.2g}]; it prints R² = 0.995 (which is r) and 2e19."
    )


def _scaling_plot(axis, fitted: Scaling) -> None:
    """Points with bars, the fitted curves, and a line at 0.9."""
    points, fits = fitted.points, fitted.fits
    for row in points.itertuples():
        look = report.model_style(row.model) | {"linestyle": "none", "markersize": 5, "capsize": 2}
        bar = [[row.mean - row.low], [row.high - row.mean]]
        fill = {True: "full", False: "none"}[row.fitted]
        axis.errorbar(row.parameters, row.mean, bar, label=row.model, fillstyle=fill, **look)
    grid = np.geomspace(points["parameters"].min() / 2, points["parameters"].max() * 2, 200)
    shapes: dict[str, Callable] = {"linear": lambda at: at, "logit": lambda at: 1 / (1 + np.exp(-at))}
    looks = {"linear": {"color": "0.75", "linewidth": 3}, "logit": {"color": "0.1", "linestyle": ":", "linewidth": 1.2}}
    for kind, fit in fits.items():
        axis.plot(grid, shapes[kind](fit["a"] + fit["b"] * np.log10(grid)), zorder=1, **looks[kind])
    axis.axhline(0.9, color="0.6", linewidth=1)


def _read_at(study: Study) -> int:
    """The number of distractors n for which figure 8 shows Avg@n."""
    return min(20, study.settings.n_distractors)
