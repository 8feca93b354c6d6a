"""The measures that knowledge by distractors is compared with (Distractors, table 2 and section 4.2).

Each function takes what a model scored or generated after cloze sentences. It returns a frame with one row per (fact, prompt) and
one column per configuration, the cheapest first; ``measures.over_sentences`` averages over the sentences.

    Probability    sum over labels l of o of P(l | c)
    Precision@n    1 if a label of o is among the n most probable next tokens
    ROUGE-L        max over labels and beams of the F1 of the longest common subsequence of words
    BERT-score     max over labels and beams of the F1 of greedily matched token states
    judge          1 if the judge calls a beam correct
    KaRR           how much more probable o is under (s, r) than under r alone and s alone (Dong et al. 2023)

Where the paper, its released code and this file differ; ``variant="released"`` selects the released code:

=================  ==========================================  =======================================================
                   released code                               here
=================  ==========================================  =======================================================
Probability        mean of log P of the main label             mean of the summed probabilities, as in table 2
Precision@n        " Paris" is not "Paris": nearly always 0    the leading blank is stripped
ROUGE-L            over characters: never near 0               over lower-case words
judge              ground truth and prediction exchanged       query, ground truth, prediction
=================  ==========================================  =======================================================
"""

import re
import unicodedata
from collections.abc import Iterable

import numpy as np
import pandas as pd

from probelib.errors import unknown

DEFINITIONS = {  # table 2: measure -> (definition, in the notation of this file; its configurations)
    "Distractors": ("mean over c of Agg over the first n distractors of 1[Pl(o|c) > Pl(o*|c)]", "Agg (Min, Avg), n"),
    "Precision@n": ("mean over c of 1[a label of o is among the n most probable next tokens]", "n"),
    "Probability": ("mean over c of the sum over labels of P(label | c)", "–"),
    "BERT-score": ("mean over c of the best F1 of token states over labels and beams", "beam width"),
    "ROUGE-L": ("mean over c of the best F1 of common subsequences over labels and beams", "beam width"),
    "LLM-as-a-judge": ("mean over c of 1[the judge calls a beam correct]", "beam width"),
    "KaRR": ("sqrt(P(o|s,r) / P(o|r) x P(o|s,r) / P(o|s)), P a geometric mean over tokens", "–"),
}
KNOWN = 22  # KaRR above this: the fact counts as known (Dong et al. 2023)


def probability(scores: pd.DataFrame, facts: pd.DataFrame, variant: str = "kit") -> pd.DataFrame:
    """Probability of the object, no end token [distractors, Table 2]: column "–".

    scores   rows of ``store.score`` that hold the objects' labels, the main one first
    variant  "kit": sum over labels, then the mean over sentences; "released": log-probability of the main label
    """
    check_variant(variant)
    gold = scores.merge(facts[["fact", "object"]].rename(columns={"object": "candidate"}), on=["fact", "candidate"])
    by_prompt = gold.groupby(["fact", "prompt"], sort=False)["logprob"]
    value = by_prompt.first() if variant == "released" else by_prompt.agg(lambda logprob: np.exp(logprob).sum())
    return value.to_frame("–")


def precision(next_tokens: pd.DataFrame, labels: dict[str, Iterable[str]], ns: list[int], variant: str = "kit"):
    """Precision@n [distractors, Table 2]: columns "n=1", ...; 1 if a label is among the n most probable next tokens, else 0.

    next_tokens  rows of ``store.generate(..., max_new_tokens=1)``: ``fact``, ``prompt``, ``rank`` (0 = best), ``text``
    labels       fact -> labels of its object. A label of several tokens can never be found
    variant      "released" compares without stripping the blank before the token
    """
    check_variant(variant)
    known = {fact: {unicodedata.normalize("NFC", label) for label in own} for fact, own in labels.items()}
    clean = (lambda t: t) if variant == "released" else (lambda t: unicodedata.normalize("NFC", t).strip())
    hit = [clean(text) in known[fact] for fact, text in zip(next_tokens["fact"], next_tokens["text"], strict=True)]
    rank = next_tokens["rank"].where(hit, np.inf)
    first = rank.groupby([next_tokens["fact"], next_tokens["prompt"]], sort=False).min()
    return pd.DataFrame({f"n={n}": (first < n).astype(float) for n in ns}, index=first.index)


class _Words:
    """A tokenizer for rouge-score: lower-case words of any script (its own drops what is not ASCII)."""

    def tokenize(self, text: str) -> list[str]:
        return re.findall(r"\w+", text.lower())


class _Characters:
    """The released code compares characters, case and blanks included."""

    def tokenize(self, text: str) -> list[str]:
        return list(text)


def rouge_l(prediction: str, label: str, variant: str = "kit") -> float:
    """F1 of the longest common subsequence, in [0, 1] [distractors, Table 2].

    >>> round(rouge_l("Paris, France", "Paris"), 4), round(rouge_l("Paris, France", "Paris", "released"), 4)
    (0.6667, 0.5556)
    """
    from rouge_score.rouge_scorer import RougeScorer

    check_variant(variant)
    scorer = RougeScorer(["rougeL"], tokenizer=_Characters() if variant == "released" else _Words())
    return scorer.score(label, prediction)["rougeL"].fmeasure


def over_beams(similarity: pd.DataFrame) -> pd.DataFrame:
    """The best of all beams and labels: rows (fact, prompt), columns "w=1", ...

    similarity  ``fact``, ``prompt``, ``width`` (of the beam search), ``value``; one row per (beam, label)
    """
    best = similarity.groupby(["fact", "prompt", "width"], sort=False)["value"].max().unstack("width")
    return best.sort_index(axis=1).rename(columns=lambda width: f"w={width}").rename_axis(columns=None)


def pairs(generated: pd.DataFrame, labels: dict[str, Iterable[str]]) -> pd.DataFrame:
    """Every generated text beside every label of its fact's object: ``fact``, ``prompt``, ``width``, ``text``, ``label``."""
    rows = generated[["fact", "prompt", "width", "text"]]
    rows = rows.assign(text=rows["text"].str.strip(), label=[list(labels[fact]) for fact in rows["fact"]])
    return rows.explode("label", ignore_index=True)


def each_once(rows: pd.DataFrame, columns: list[str], value) -> np.ndarray:
    """``value(*texts)`` of every row, computed once per distinct combination of ``columns``."""
    asked = list(rows[columns].itertuples(index=False, name=None))
    found = {texts: value(*texts) for texts in dict.fromkeys(asked)}
    return np.array([found[texts] for texts in asked], dtype=float)


# LLM-as-a-judge


def first_phrase(text: str) -> str:
    """Generated text up to the end of its first sentence: a base model continues with another text.

    >>> first_phrase(" Paris.\\nWhat is"), first_phrase(" St. Louis")
    ('Paris', 'St. Louis')
    """
    return text.strip().split("\n")[0].rstrip(". ")


def verdict(answer: str) -> float:
    """1.0 or 0.0 from a judge's answer: "incorrect" anywhere is 0, else "correct" is 1, else a "Yes" at its beginning is 1.

    >>> [verdict(a) for a in ("Correct.", "This is incorrect", "correct", "Yes, the statement is true.", "I don't know.")]
    [1.0, 0.0, 1.0, 1.0, 0.0]
    """
    text = answer.strip().lower()
    return float("incorrect" not in text and ("correct" in text or text.startswith("yes")))


def is_right(prediction: str, labels: Iterable[str]) -> float:
    """The ground truth of a judge's verdict: 1.0 if the prediction begins with a label, as whole words, case folded; else 0.0.

    >>> is_right(" Paris, in the north", ["Paris"]), is_right("Parisian", ["Paris"])
    (1.0, 0.0)
    """
    text = prediction.strip().casefold()
    return float(any(re.match(re.escape(label.casefold()) + r"(?!\w)", text) is not None for label in labels))


# KaRR


def karr(texts: pd.DataFrame, logprobs: dict[str, np.ndarray], n_tokens: dict[str, int]) -> pd.DataFrame:
    """KaRR [karr] of every fact: ``fact``, ``num``, ``den_s``, ``den_r``, ``karr`` (0 to infinity; NaN if a denominator is 0).

    texts     see ``karr_texts``
    logprobs  text -> log P of its tokens, each given those before it (nats); the first token is left out
    n_tokens  ``rest`` -> number of its tokens after a blank

    P~(x) = exp(mean log P over its tokens but the first); P~(gamma | beta) the same over the last tokens of gamma.
    KaRR = sqrt(num / den_s x num / den_r); a ratio of 0 counts as 1e-6.
    """
    before, pairs = texts["before"].drop_duplicates(), texts[["text", "rest"]].drop_duplicates()
    first = _exp_mean([logprobs[t][1:] for t in before])
    ends = zip((logprobs[t] for t in pairs["text"]), (n_tokens[r] if r else 0 for r in pairs["rest"]), strict=True)
    last = _exp_mean([scored[max(len(scored) - n, 0) :] for scored, n in ends])
    value = texts["share"].to_numpy(first.dtype) * first[pd.Index(before).get_indexer(texts["before"])]
    value *= last[texts.groupby(["text", "rest"], sort=False).ngroup()]
    sums = texts.assign(value=value.astype(float)).pivot_table("value", "fact", "term", "sum", sort=False)
    sums = sums.reindex(columns=["num", "den_s", "den_r"]).reindex(texts["fact"].unique())
    return sums.assign(karr=ratio(sums["num"], sums["den_s"], sums["den_r"])).reset_index().rename_axis(columns=None)


def _exp_mean(arrays: list[np.ndarray]) -> np.ndarray:
    """exp of the mean of every array, 1 for an empty one. Arrays of one length are computed together: there are millions of short
    ones.

    >>> _exp_mean([np.log([0.25, 1.0]), np.array([])]).round(6).tolist()
    [0.5, 1.0]
    """
    sizes = np.array([len(each) for each in arrays])
    result = np.ones(len(arrays), dtype=np.result_type(*{each.dtype for each in arrays}))
    for size in np.unique(sizes[sizes > 0]):
        at = np.flatnonzero(sizes == size)
        result[at] = np.exp(np.concatenate([arrays[i] for i in at]).reshape(-1, size).mean(axis=1))
    return result


def ratio(num, den_s, den_r):
    """sqrt(num / den_s x num / den_r), a ratio of 0 taken as 1e-6, NaN for a denominator of 0 or none.

    >>> round(float(ratio(.08, .0115, .0011)), 3)
    22.493
    """
    num, den_s, den_r = (np.asarray(x, dtype=float) for x in (num, den_s, den_r))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [np.where(d > 0, np.where(num == 0, 1e-6, num / d), np.nan) for d in (den_s, den_r)]
    return np.sqrt(ratios[0] * ratios[1])


def check_variant(variant: str) -> None:
    """Raise ProbeError unless ``variant`` is "kit" or "released"."""
    if variant not in ("kit", "released"):
        raise unknown("variant", variant, ["kit", "released"])
