"""Tables 1 to 9 of the Distractors paper, each a function from numbers to ``report.Artifact``, and their findings."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from probelib import published, stats
from probelib.distractors import measures
from probelib.distractors.baselines import DEFINITIONS
from probelib.distractors.measures import Calibrations, not_different
from probelib.distractors.prompts import FLAWS, RULES
from probelib.distractors.retrieval import NAMES
from probelib.distractors.scores import Sample, judge_widths
from probelib.distractors.settings import Study
from probelib.facts.annotated import ERRORS, MINOR, read_verbalizations
from probelib.report import span, with_interval
from probelib.report.legacy import Artifact

# Section 2 and 4.2: the measures, their agreement with the ratings, their cost


def table1(costs: pd.DataFrame, study: Study, n_facts: int, machine: str) -> Artifact:
    """Properties of the measures beside their measured cost. ``costs``: see ``scores.cost_per_fact``, of ``n_facts`` facts;
    ``machine``: ``report.machine``."""
    printed = published.table("distractors/table1")
    properties = printed.rename(columns={"cost": "cost in the paper"}).set_index("measure")
    row = costs["measure"].where(~costs["measure"].str.startswith("Dist."), "Distractors (ours)")
    names = {"tokens": "tokens a fact", "ms": "ms a fact", "ms, low": "fastest", "ms, high": "slowest"}
    table = costs.assign(row=row).join(properties, on="row").sort_values("tokens", ignore_index=True)
    table = table.drop(columns="row").rename(columns=names)
    settings = study.settings
    caption = (
        f"Cost of each measure run in isolation, {study.model} on {machine}: tokens forwarded (the same in every run) and "
        f"milliseconds per fact (median [fastest, slowest] of {settings.timings} runs over n = {n_facts} facts with "
        f"{settings.n_sentences} sentences each), with {settings.n_distractors} distractors, {settings.next_tokens} next "
        f"tokens, and for ROUGE-L and BERT-score beams of width {max(settings.widths)}. BERT-score's tokens are without its "
        f"encoder's. The judge reads beams of width {max(judge_widths(settings))}; its row counts what generates them and "
        "what it reads itself. KaRR has templates of its own. Looking up distractors in the knowledge base is not counted. "
        "The other columns are the paper's judgement, which has one row for all distractors."
    )
    shown = table.drop(columns=["fastest", "slowest"]).rename(columns=PROPERTIES)
    shown["ms per fact"] = with_interval(table["ms a fact"], table["fastest"], table["slowest"], 1)
    finding = cost_finding(table, settings.n_distractors)
    return Artifact("distractors/table1", table, caption, finding, published=printed, decimals=1, shown=shown)


PROPERTIES = {  # columns of the paper's judgement and of the costs -> their headings in print
    "tokens a fact": "tokens per fact",
    "ms a fact": "ms per fact",
    "easily_interpretable": "easily interpretable",
    "robust_to_oos": "robust to out-of-subject continuations",
    "comparable_inter_lm": "comparable between models",
    "multi_token_answers": "answers of several tokens",
}


def cost_finding(table: pd.DataFrame, n: int) -> str:
    """The cheapest and the most expensive measure, and the cost of ApprOpt relative to random distractors."""
    costs = table.set_index("measure")
    cheap, costly = (costs.loc[costs["ms a fact"].agg(which)] for which in ("idxmin", "idxmax"))
    ratio = costs.loc["Dist. ApprOpt", ["tokens a fact", "ms a fact"]] / costs.loc["Dist. Random"]
    judge = " The paper calls the judge the most expensive; its judge was GPT-3.5."
    judge *= "LLM-as-a-judge" in costs.index and costly.name != "LLM-as-a-judge"
    return (
        f"{cheap.name} is the cheapest measure ({_milliseconds(cheap)}), {costly.name} the most expensive "
        f"({_milliseconds(costly)}). With {n} distractors ApprOpt forwards {ratio['tokens a fact']:.1f} times the tokens "
        f"of random ones and takes {ratio['ms a fact']:.1f} times as long (12 times in the released timings of GPT2-XL, with "
        f"200).{judge}"
    )


def _milliseconds(row: pd.Series) -> str:
    return f"{row['ms a fact']:.1f} ms per fact {span(row['fastest'], row['slowest'], '.1f')}"


def table2() -> Artifact:
    """Definitions of the measures."""
    rows = [(name, *words) for name, words in DEFINITIONS.items()]
    table = pd.DataFrame(rows, columns=["measure", "definition", "tuned by"])
    caption = "The measures as computed here; c: the cloze sentences of a fact. KaRR is not in the paper's table."
    return Artifact("distractors/table2", table, caption, published=published.table("distractors/table2"))


def table3(calibrated: Calibrations, study: Study) -> Artifact:
    """Agreement of every measure with the ratings."""
    table = measures.agreement(calibrated)
    best = table.sort_values("tau", ascending=False)["measure"].iloc[0]
    caption = (
        f"Kendall's tau-b with {study.reference.split(':')[0]}, {study.model}: mean and standard deviation over three "
        f"test folds (n = {len(calibrated.rating)} facts, {study.settings.n_sentences} cloze sentences). In brackets: "
        f"95 % bootstrap intervals over facts. to best: difference to {best} with its paired interval; p "
        f"(Holm): two-sided p of that difference, adjusted for {table['p (Holm)'].notna().sum()} comparisons. A dash: "
        f"constant on a fold, the best measure itself, or no resample differs.{_substitutes(study)}"
    )
    printed = published.table("distractors/table3")
    shown = table[["measure", "std", "p (Holm)"]].copy()
    shown.insert(1, "tau", with_interval(table["tau"], table["low"], table["high"]))
    shown.insert(3, "to best", with_interval(table["to best"], table["to best, low"], table["to best, high"]))
    return Artifact("distractors/table3", table, caption, finding3(table), published=printed, shown=shown)


def finding3(table: pd.DataFrame) -> str:
    """The best measure, and those that do not differ significantly from it."""
    if table["tau"].isna().all():
        return ""
    best, similar = table.loc[table["tau"].idxmax()], not_different(table)
    return (
        f"**{best['measure']}** agrees best, tau {best['tau']:.3f} {span(best['low'], best['high'], '.3f')}. "
        f"{len(similar)} of {table['p (Holm)'].notna().sum()} other measures do not differ significantly from it "
        f"(paired bootstrap, Holm): {', '.join(similar) or 'none'}.{_order_of_the_paper(table)}"
    )


def _order_of_the_paper(table: pd.DataFrame) -> str:
    """Which of the paper's orders of measures appear here, and which are reversed."""
    tau = table.set_index("measure")["tau"].dropna()
    printed = published.table("distractors/table3").set_index("measure")["mean_tau"]
    common = [name for name in printed.sort_values(ascending=False).index if name in tau]
    if len(common) < 3:
        return ""
    pairs = [(a, b) for i, a in enumerate(common) for b in common[i + 1 :]]
    same = sum(tau[a] > tau[b] for a, b in pairs)
    ranks = {name: (tau[common] > tau[name]).sum() + 1 for name in common}
    moved = max(common, key=lambda name: abs(ranks[name] - common.index(name) - 1))
    return (
        f" {same} of {len(pairs)} pairs of measures have the paper's order; {moved} moves most (place "
        f"{common.index(moved) + 1} of {len(common)} there, {ranks[moved]} here). The paper's reference is ratings by people, "
        "so only the order compares; tau-b also favours measures of few levels."
    )


def chance_in_the_paper() -> str:
    """How the paper's three best measures differ, against the standard error of tau by chance alone."""
    printed = published.table("distractors/table3").set_index("measure")["mean_tau"].sort_values(ascending=False)
    first, second, third = printed.index[:3]
    chance = (2 * (2 * 210 + 5) / (9 * 210 * 209)) ** 0.5  # standard error of tau over independent values
    return (
        f"In the paper {first} leads with {printed[first]:.3f} before {second} ({printed[second]:.3f}) and {third} "
        f"({printed[third]:.3f}). A tau over 210 independent facts has a standard error of {chance:.3f} by chance alone."
    )


def judge_accuracy(judged: pd.DataFrame | None) -> str:
    """Agreement of the judge's verdicts with the truth (does the text begin with a label of the object?)."""
    if judged is None:
        return "No judge is given, so there is nothing to check about one."
    return (
        "The judge agrees with the truth (does the text begin with a label of the object?) on "
        f"{(judged['value'] == judged['truth']).mean():.0%} of {len(judged):,} texts; it calls "
        f"{judged['value'].mean():.0%} right, {judged['truth'].mean():.0%} are. Cohen's kappa is "
        f"{float(measures.kappa(judged['value'], judged['truth'])):.2f}."
    )


def what_is_scored(study: Study, n_facts: int, n_entities: int) -> str:
    """The model, its facts, the candidates for distractors, the reference."""
    return (
        f"**{study.model}** is scored on {n_facts} facts; distractors come from {n_entities:,} entities. The measures are "
        f"compared with {study.reference}."
    )


def facts_used(calibrated: Calibrations, former: pd.Series) -> str:
    """On which facts the measures are compared; ``former``: which facts have a former object, where Sem and Temp+Sem differ."""
    n = len(calibrated.rating)
    return (
        f"All measures are compared on the {n} of {n + calibrated.undefined} rated facts on which every one is "
        f"defined. Sem and Temp+Sem can differ only for facts with a former object: {former.sum()} of {len(former)}."
    )


def table9(calibrated: Calibrations) -> Artifact:
    """The configuration chosen for each fold."""
    table = pd.concat([fold.assign(measure=name) for name, fold in calibrated.chosen.items()])
    table = table[["measure", "fold", "configuration", "training", "tau", "n", "undefined"]]
    facts = " to ".join(map(str, sorted({table["n"].min(), table["n"].max()})))
    caption = (
        "The configuration chosen for each fold on the two others, and in brackets its tau on the fold (a dash: nothing to "
        f"choose; {facts} facts per fold). The CSV also has the tau on the training folds, and "
        "how many configurations are constant there. In the paper the rows of Sem repeat those of Temp+Sem."
    )
    texts = [f"{row.configuration} ({row.tau:.2f})" for row in table.itertuples()]
    shown = table.assign(text=texts, fold=[f"fold {fold}" for fold in table["fold"]])
    shown = shown.pivot(index="measure", columns="fold", values="text").reindex(table["measure"].unique())
    shown = shown.reset_index().rename_axis(columns=None)
    printed = published.table("distractors/table9")
    return Artifact("distractors/table9", table, caption, finding9(table), published=printed, shown=shown)


def finding9(table: pd.DataFrame) -> str:
    """Which measures have the same configuration on every fold, how the others change, and the aggregator of ApprOpt."""
    picks = table.groupby("measure", sort=False)["configuration"].agg(list)
    picks = picks[[pick[0] != "–" for pick in picks]]
    same = [name for name, pick in picks.items() if len(set(pick)) == 1]
    changing = [f"{name} ({' / '.join(pick)})" for name, pick in picks.items() if name not in same]
    return (
        f"The same configuration is chosen on every fold for {', '.join(same) or 'no measure'}; it changes with the fold for "
        f"{', '.join(changing) or 'none'}.{_aggregator(picks)}"
    )


def _aggregator(picks: pd.Series, measure: str = "Dist. ApprOpt") -> str:
    """The aggregators that are chosen for ApprOpt, beside those of the paper's table."""
    if measure not in picks:
        return ""
    printed = published.table("distractors/table9").query("strategy == 'ApprOpt'")["agg"]
    here, there = (" and ".join(sorted({pick.split("@")[0] for pick in own})) for own in (picks[measure], printed))
    return f" ApprOpt takes {here} here, {there} in the paper."


def _substitutes(study: Study) -> str:
    return "".join(f" The second model of {name} replaces the paper's." for name in study.substitutes)


# Section 4.1: lists of distractors


def table7(sample: Sample, model: str, n: int = 15) -> Artifact:
    """The first ``n`` distractors of one fact by every strategy. ``sample``: see ``scores.sample_lists``."""
    table = pd.DataFrame({NAMES[s]: [*labels, *[""] * (n - len(labels))] for s, labels in sample.lists.items()})
    table.insert(0, "rank", range(1, n + 1))
    caption = (
        f'Distractors of the fact "{sample.fact}" by strategy; ApprOpt (a beam of width {sample.width}) and Opt (exact '
        f'search) after the sentence "{sample.sentence}" with {model}.'
    )
    return Artifact(
        "distractors/table7", table, caption, finding7(sample), published=published.table("distractors/table7")
    )


def finding7(sample: Sample) -> str:
    """The number of names that ApprOpt and Opt share, the plausibility of the first name of each, and why the beam misses
    names."""
    approximate, optimal = sample.lists["appropt"], sample.lists["opt"]
    shared, known = len((set(approximate) & set(optimal)) - {""}), sample.strongest
    first = ""
    if approximate and optimal:
        first = (
            f" Opt's first, {optimal[0]}, has a log plausibility of {known['opt']:.1f} nats, ApprOpt's first, "
            f"{approximate[0]}, {known['appropt']:.1f}."
        )
    why = (
        f" The beam keeps the {sample.width} most probable prefixes at each token, before their remaining tokens and ends are "
        "known. It thus keeps prefixes that end improbably and drops names that are more plausible as a whole."
    )
    return (
        f"ApprOpt and Opt share {shared} of {len(optimal)} names.{first}{why if shared < len(optimal) else ''} In the paper's "
        "table John F. Kennedy occurs twice under ApprOpt; here each entity has one row."
    )


def endings_table(by_ending: dict[str, dict[str, pd.DataFrame]], n: int, seed: int = 0) -> pd.DataFrame:
    """Min@n with every ending of labels, and its change against the end-of-sequence token: ``strategy``, ``end``, ``Min@n``,
    ``change``, ``low``, ``high``, ``facts``. ``by_ending``: ending -> strategy -> outcomes."""
    rows = []
    for ending, outcomes in by_ending.items():
        for strategy, beaten in outcomes.items():
            change = measures.change_of(beaten, by_ending["eos"][strategy], n, seed=seed)
            rows.append([NAMES[strategy], ending, *change.values()])
    return pd.DataFrame(rows, columns=["strategy", "end", f"Min@{n}", "change", "low", "high", "facts"])


def endings(table: pd.DataFrame, study: Study) -> Artifact:
    """How much Min@n depends on what ends a label. ``table``: see ``endings_table``."""
    caption = (
        f"Mean {table.columns[2]} of {study.model} if a label must be followed by the end of the text (eos, Eq. 1), by "
        "nothing (none) or by a full stop (punct). change: difference to eos on the same facts, with its 95 % bootstrap "
        "interval over facts. facts: those with a score."
    )
    shown = table[["strategy", "end", table.columns[2], "facts"]].copy()
    shown.insert(3, "change", with_interval(table["change"], table["low"], table["high"]))
    return Artifact("distractors/endings", table, caption, endings_finding(table), shown=shown)


def endings_finding(table: pd.DataFrame) -> str:
    """Which endings change Min@n significantly."""
    changed = table[(table["low"] > 0) | (table["high"] < 0)]
    others = (table["end"] != "eos").sum()
    if changed.empty:
        return f"None of {others} comparisons with the end-of-sequence token shows a significant change of {table.columns[2]}."
    rows = [f"'{r.end}' with {r.strategy} {r.change:+.3f} {span(r.low, r.high, '.3f')}" for r in changed.itertuples()]
    easier = int((changed["low"] > 0).sum())
    verdict = {len(changed): "the token makes the test harder", 0: "the token makes the test easier"}
    return (
        f"Without the end-of-sequence token {table.columns[2]} is significantly higher in {easier} and lower in "
        f"{len(changed) - easier} of {others} comparisons: {verdict.get(easier, 'its effect depends on the strategy')} "
        f"({'; '.join(rows)})."
    )


def search_width(found: pd.DataFrame, n: int, n_facts: int, study: Study) -> Artifact:
    """The share of the optimum that a beam finds, and its cost. ``found``: ``scores.search_by_width``."""
    caption = (
        f"Search for the {n} most plausible distractors of n = {n_facts} facts, {study.model}, one cloze sentence per fact, "
        "by beams of several widths and by the exact best-first search, which needs no width. A beam keeps as many prefixes "
        "as its width says, plus one for each label of the object and for each entity that may not be a distractor (the "
        "object, other right answers, namesakes), as these rank high. ApprOpt in figure 1 and in *Optimum* searches with "
        f"width {study.settings.n_distractors}, its number of distractors. found: share of the {n} that the search finds, "
        "mean over facts. strongest: share of the facts whose most plausible distractor it finds. tokens: median per fact; "
        "scoring all labels would read those of the last column. In brackets: 95 % intervals over facts (bootstrap; of "
        "strongest Wilson's)."
    )
    beams = found["search"] == "beam"
    ends = [stats.wilson(round(share * n_facts), n_facts) for share in found.loc[beams, "strongest"]]
    low, high = pd.DataFrame(ends, index=found.index[beams]).reindex(found.index).to_numpy().T  # exact: none is missed
    found = found.assign(low=low, high=high)
    shown = found[["search", "width", "all labels"]].copy()
    shown.insert(2, "found", with_interval(found["found"], found["found, low"], found["found, high"], 2))
    shown.insert(3, "strongest", with_interval(found["strongest"], low, high, 2))
    shown.insert(4, "tokens", with_interval(found["tokens"], found["tokens, low"], found["tokens, high"], 0))
    finding, decimals = finding_search_width(found), {"all labels": 0, "width": 0}
    return Artifact("distractors/search_width", found, caption, finding, decimals=decimals, shown=shown)


def finding_search_width(found: pd.DataFrame) -> str:
    """What the narrowest and the widest beam find and read, compared with the exact search."""
    beams, exact = found[found["search"] == "beam"], found[found["search"] == "exact"].iloc[0]
    first, last = (
        f"width {row['width']:.0f} {row['found']:.2f} {span(row['found, low'], row['found, high'])} with {row['tokens']:,.0f}"
        for _, row in beams.iloc[[0, -1]].iterrows()
    )
    return (
        f"Share of the optimal distractors that is found: by a beam of {first} tokens per fact (median), of {last}. The exact "
        f"search finds all with {exact['tokens']:,.0f} tokens, {exact['tokens'] / exact['all labels']:.0%} of the "
        f"{exact['all labels']:,.0f} that all labels have."
    )


# Section 4.3 and appendix B: errors of verbalizations, robustness


def table4(table: pd.DataFrame, n_sentences: int, study: Study) -> Artifact:
    """Robustness to flawed sentences. ``table``: see ``measures.robustness``."""
    caption = (
        f"Robustness to errors of {n_sentences} sentences, {study.model}. tau: Kendall's tau-b between right and flawed "
        "sentences, mean over the configurations of the three folds. For the other columns every measure is cut where it best "
        "tells facts rated above the median from the others: flips, share of verdicts that change; kappa, Cohen's kappa of "
        "the two verdicts. In brackets: 95 % bootstrap intervals over facts. p (Holm): difference to the best kappa, adjusted "
        f"for {table['p (Holm)'].notna().sum()} comparisons. levels: different values of a measure. A dash: constant, the "
        "best measure itself, or no resample differs."
    )
    printed = published.table("distractors/table4")
    return Artifact("distractors/table4", table, caption, finding4(table), published=printed, shown=_shown4(table))


def _shown4(table: pd.DataFrame) -> pd.DataFrame:
    """Table 4 for print: every score with its interval."""
    shown = table[["measure", "levels", "n", "p (Holm)"]].copy()
    for place, (name, prefix) in enumerate({"tau": "", "flips": "flips, ", "kappa": "kappa, "}.items(), 1):
        shown.insert(place, name, with_interval(table[name], table[f"{prefix}low"], table[f"{prefix}high"], 2))
    return shown


def finding4(table: pd.DataFrame) -> str:
    """The most robust measure by tau and by kappa."""
    if table[["tau", "kappa"]].isna().all().any():
        return ""
    by_tau, by_kappa = (table.loc[table[column].idxmax()] for column in ("tau", "kappa"))
    return (
        f"By tau **{by_tau['measure']}** is the most robust ({by_tau['tau']:.2f}, {by_tau['levels']} levels), by kappa "
        f"**{by_kappa['measure']}** ({by_kappa['kappa']:.2f} {span(by_kappa['kappa, low'], by_kappa['kappa, high'])}). Not "
        f"significantly different from it: {', '.join(not_different(table)) or 'none'}.{_robust_in_the_paper(table)}"
    )


def _robust_in_the_paper(table: pd.DataFrame) -> str:
    """The tau of the paper's own measures, in the order found here, and whether its first two are first here."""
    printed = published.table("distractors/table4").set_index("measure")["robustness_tau"].sort_values(ascending=False)
    printed = printed.rename({"BERT-Score": "BERT-score"})
    tau = table.set_index("measure")["tau"].reindex(printed.index).dropna().sort_values(ascending=False, kind="stable")
    if len(tau) < 3:
        return ""
    here = ", ".join(f"{name} {value:.2f}" for name, value in tau.items())
    first = "also" if list(tau.index[:2]) == list(printed.index[:2]) else "not"
    return f" Of the paper's measures by tau: {here}. Its first two ({', '.join(printed.index[:2])}) are {first} the first here."


def place_by_kappa(table: pd.DataFrame, measure: str = "Dist. ApprOpt") -> str:
    """Rank of the paper's most robust measure by kappa; measures without a kappa do not count."""
    kappas = table.set_index("measure")["kappa"].dropna()
    if measure not in kappas:
        return f"{measure} gives one verdict for every fact here, so it has no kappa."
    place = int((kappas > kappas[measure]).sum()) + 1
    others = table["p (Holm)"].notna().sum()
    return (
        f"{measure}, the paper's most robust measure (tau 0.92 with two levels on 27 sentences: one fact that "
        f"changed), has place {place} of {len(kappas)} by kappa; {len(not_different(table))} of the {others} others "
        "do not differ significantly from the best."
    )


ANNOTATED = 77  # sentences of the paper's tables 5 and 6
WORST = ("only minor errors", "contain blunders", "free of errors")


class ErrorCounts(NamedTuple):
    """Errors of ``n`` sentences (tables 5 and 6): the number of sentences with each error, the number per kind of worst error
    (``WORST``), and a description of the sentences."""

    errors: dict[str, int]
    worst: dict[str, int]
    n: int
    source: str


def count_errors(verbalizations: str | Path | None = None) -> ErrorCounts:
    """Errors in the authors' annotated sentences of the present tense (taxonomy.csv); None: the counts behind the paper's printed
    shares."""
    if verbalizations is None:
        errors, worst = (published.table(f"distractors/table{i}").set_index(c) for i, c in PRINTED_ERRORS)
        errors, worst = (t["proportion_pct"].mul(ANNOTATED / 100).round().astype(int) for t in (errors, worst))
        worst = dict(zip(WORST, worst, strict=True))
        return ErrorCounts(errors[list(ERRORS)].to_dict(), worst, ANNOTATED, f"the paper's {ANNOTATED} sentences")
    annotated = read_verbalizations(verbalizations)
    named = [set(names) for names in annotated.loc[annotated["context"] == "present", "errors"]]
    blunders, free = sum(bool(names - set(MINOR)) for names in named), sum(not names for names in named)
    worst = dict(zip(WORST, (len(named) - blunders - free, blunders, free), strict=True))
    errors = {name: sum(name in names for names in named) for name in ERRORS}
    return ErrorCounts(errors, worst, len(named), f"{len(named)} annotated sentences")


PRINTED_ERRORS = (5, "error_type"), (6, "error_category")


def table5(counts: ErrorCounts) -> Artifact:
    """The share of sentences with each error; several per sentence are possible."""
    rows = [*sorted(counts.errors.items()), (WORST[-1], counts.worst[WORST[-1]])]
    table = _percents(rows, counts.n, "error")
    caption = (
        f"Share of sentences with each error, percent, with Wilson's 95 % interval: {counts.source}. A sentence may have "
        "several."
    )
    return Artifact("distractors/table5", table, caption, published=published.table("distractors/table5"), decimals=1)


def table6(counts: ErrorCounts) -> Artifact:
    """The share of sentences with minor errors only, with a blunder, with none."""
    table = _percents(list(counts.worst.items()), counts.n, "category")
    caption = f"Share of sentences by the worst of their errors, percent, with Wilson's 95 % interval: {counts.source}."
    low, high = (100 * bound for bound in stats.wilson(0, ANNOTATED))
    flawless = table.iloc[-1]
    finding = (
        f"{flawless['percent']:.1f} % [{flawless['low']:.1f}, {flawless['high']:.1f}] are free of errors (paper: "
        f"54.5 %). The paper prints the interval (0.0, 2.5) for blunders; none of {ANNOTATED} sentences gives ({low:.1f}, "
        f"{high:.1f}). A bound of 2.5 takes {_sizes_with_bound(2.5)} sentences without a blunder."
    )
    printed = published.table("distractors/table6")
    return Artifact("distractors/table6", table, caption, finding, published=printed, decimals=1)


def _sizes_with_bound(percent: float) -> str:
    """The numbers of sentences at which zero errors give an upper bound that is printed as ``percent``."""
    sizes = [n for n in range(1, 1000) if round(100 * stats.wilson(0, n)[1], 1) == percent]
    return f"{sizes[0]} to {sizes[-1]}"


def published_error_shares() -> dict[str, float]:
    """The share of sentences in which the paper found each error that a rule can make (table 5), in [0, 1]."""
    printed = published.table("distractors/table5").set_index("error_type")["proportion_pct"]
    return printed.div(100).filter(FLAWS).to_dict()


def table8(sentences: pd.DataFrame, made: dict[str, pd.DataFrame]) -> Artifact:
    """Kinds of errors, each with the first sentence that its rule changes.

    sentences   prompts without errors
    made        error -> the same prompts with this error (``prompts.flawed``)
    """
    examples = {}
    for name, rows in made.items():
        changed = np.flatnonzero(rows["errors"].map(len) > 0)
        if len(changed):
            examples[name] = (sentences["text"].iloc[changed[0]], rows["text"].iloc[changed[0]])
    right, flawed = ([examples.get(name, ("–", "–"))[i] for name in ERRORS] for i in (0, 1))
    rules = [RULES.get(name, "not made: it changes what is said") for name in ERRORS]
    table = pd.DataFrame(
        {"error": ERRORS.keys(), "meaning": ERRORS.values(), "right": right, "flawed": flawed, "made here by": rules}
    )
    caption = (
        "Errors of verbalizations (meaning: the paper's), an example of each from these facts, and the rule that makes it. "
        "Where a sentence has no determiner to lose, the rules of sub_deter and obj_deter add a wrong one instead."
    )
    return Artifact("distractors/table8", table, caption, published=published.table("distractors/table8"))


def _percents(rows: list[tuple[str, int]], n: int, name: str) -> pd.DataFrame:
    """Counts out of ``n`` as percentages with Wilson's 95 % interval."""
    table = [(what, 100 * k / n, *(100 * bound for bound in stats.wilson(k, n)), k) for what, k in rows]
    return pd.DataFrame(table, columns=[name, "percent", "low", "high", "sentences"])
