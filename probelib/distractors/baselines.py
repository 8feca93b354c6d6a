"""The measures that knowledge by distractors is compared with (Distractors, table 2, section 4.2).

Each takes what a model scored or generated after cloze sentences and returns a grid: one row per
(fact, prompt), one column per configuration, the cheapest first.

=================  ===================================  =========================================
                   the paper's released code            here
=================  ===================================  =========================================
Probability        mean of log P of the main label      mean of the sums over labels, as printed
Precision@n        " Paris" is not "Paris": nearly 0    the leading blank is stripped
ROUGE-L            over characters: never near 0        over lower-case words
judge              ground truth, prediction exchanged   query, ground truth, prediction
=================  ===================================  =========================================
"""

import contextlib
import io
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from probelib.errors import ProbeError

DEFINITIONS = {  # table 2: measure -> (definition, configurations)
    "Distractors": ("mean over c of Agg over the first n distractors of 1[Pl(o|c) > Pl(o*|c)]",
                    "Agg (Min, Avg), n"),
    "Precision@n": ("mean over c of 1[a label of o is among the n most probable next tokens]", "n"),
    "Probability": ("mean over c of the sum over labels of P(label | c)", "–"),
    "BERT-score": ("mean over c of the best F1 of token states over labels and beams",
                   "beam width"),
    "ROUGE-L": ("mean over c of the best F1 of common subsequences over labels and beams",
                "beam width"),
    "LLM-as-a-judge": ("mean over c of 1[the judge calls a beam correct]", "beam width"),
    "KaRR": ("sqrt(P(o|s,r) / P(o|r) x P(o|s,r) / P(o|s)), P a geometric mean over tokens", "–"),
}  # fmt: skip
LONGEST = 512  # tokens per text for BERT-score; some tokenizers define no limit


def probability(scores: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """Probability of the object, summed over its labels, no end token [distractors, Table 2];
    column "–". ``scores``: rows of ``store.score`` that hold the objects' labels."""
    gold = facts[["fact", "object"]].rename(columns={"object": "candidate"})
    gold = scores.merge(gold, on=["fact", "candidate"]).groupby(["fact", "prompt"], sort=False)
    return gold["logprob"].agg(lambda logprob: np.exp(logprob).sum()).to_frame("–")


def precision(tokens: pd.DataFrame, labels: dict[str, Iterable[str]], ns: list[int]):
    """Precision@n [distractors, Table 2]: columns "n=1", ...; 1 if one of the object's ``labels``
    (by fact) is among the n most probable next ``tokens`` (``store.generate``; the best has rank
    0), else 0. A label of several tokens can never be found."""
    clean = lambda text: unicodedata.normalize("NFC", text).strip()
    known = {fact: set(map(clean, own)) for fact, own in labels.items()}
    pairs = zip(tokens["fact"], tokens["text"], strict=True)
    rank = tokens["rank"].where([clean(text) in known[fact] for fact, text in pairs], np.inf)
    first = rank.groupby([tokens["fact"], tokens["prompt"]], sort=False).min()
    return pd.DataFrame({f"n={n}": (first < n).astype(float) for n in ns}, index=first.index)


def over_beams(similarity: pd.DataFrame) -> pd.DataFrame:
    """The best of all beams and labels: rows (fact, prompt), columns "w=1", ... ``similarity``:
    ``fact``, ``prompt``, ``width`` (of the search), ``value``, per beam and label."""
    best = similarity.groupby(["fact", "prompt", "width"], sort=False)["value"].max()
    best = best.unstack("width").sort_index(axis=1).rename_axis(columns=None)
    return best.rename(columns=lambda width: f"w={width}")


def rouge_l(texts: list[str], labels: list[str]) -> np.ndarray:
    """F1 of the longest common subsequence of lower-case words of every text and its label, from 0
    to 1 [distractors, Table 2]."""
    from rouge_score.rouge_scorer import RougeScorer

    words = lambda text: re.findall(r"\w+", text.lower())  # of any script; its own are ASCII
    scorer = RougeScorer(["rougeL"], tokenizer=SimpleNamespace(tokenize=words))
    asked = list(zip(texts, labels, strict=True))
    found = {pair: scorer.score(pair[1], pair[0])["rougeL"].fmeasure for pair in set(asked)}
    return np.array([found[pair] for pair in asked], dtype=float)


def bert_score(encoder: str | Path, texts: list[str], labels: list[str]) -> np.ndarray:
    """BERTScore F1 of every text with its label, without idf weights or rescaling; 0 if one is
    empty.

    encoder  a Hugging Face id that bert-score knows ("roberta-large", layer 17), or a folder (of an
             encoder-decoder: its encoder), read at the layer that bert-score recommends, else the
             last. Small encoders are only a substitute
    """
    from bert_score import BERTScorer
    from bert_score.utils import model2layers
    from transformers import AutoConfig

    name = str(encoder)
    if Path(name).is_dir() and not any(Path(name).glob("*.safetensors")):
        said = "has no *.safetensors; pickled weights (*.bin, *.pt) are never loaded"
        raise ProbeError(f"{name} {said}")
    try:
        config = AutoConfig.from_pretrained(name, trust_remote_code=False)  # None would prompt
        layer = model2layers.get(name) or config.num_hidden_layers
        scorer = BERTScorer(name, num_layers=layer, use_fast_tokenizer=True)
    except (OSError, ValueError, AssertionError) as error:
        why = str(error).splitlines()[0]
        raise ProbeError(f"{name}: bert-score cannot use this encoder: {why}") from error
    scorer._model.float()  # it has the precision of its file, and half precision is too coarse
    tokenizer = scorer._tokenizer
    tokenizer.model_max_length = min(tokenizer.model_max_length, LONGEST)
    if tokenizer.pad_token_id is None:  # always masked
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    pairs = [(text.strip(), label.strip()) for text, label in zip(texts, labels, strict=True)]
    different = sorted({pair for pair in pairs if all(pair)})
    if not different:
        return np.zeros(len(pairs))
    # it warns about texts of one token if the tokenizer appends an end token; the F1 is correct
    with contextlib.redirect_stderr(io.StringIO()):
        f1 = scorer.score(*map(list, zip(*different, strict=True)))[2].numpy()
    found = dict(zip(different, f1, strict=True))
    return np.array([found.get(pair, 0.0) for pair in pairs], dtype=float)


def judged_correct(answer: str) -> float:
    """1.0 or 0.0 from a judge's answer: "incorrect" anywhere is 0, else "correct" or a "Yes" at the
    beginning is 1."""
    text = answer.strip().lower()
    return float("incorrect" not in text and ("correct" in text or text.startswith("yes")))


def karr(texts: pd.DataFrame, logprobs: dict[str, np.ndarray], n_tokens: dict[str, int]):
    """KaRR [karr] of every fact: ``fact``, ``num``, ``den_s``, ``den_r``, ``karr`` (0 to infinity;
    NaN for a denominator of 0).

    texts     see ``prompts.karr_texts``
    logprobs  text -> log P of its tokens, each given those before it (nats)
    n_tokens  ``rest`` -> number of its tokens after a blank

    P~(x) = exp(mean log P over its tokens but the first); P~(gamma | beta) the same over the last
    tokens of gamma. KaRR = sqrt(num / den_s x num / den_r); a ratio of 0 counts as 1e-6.
    """
    before, pairs = texts["before"].drop_duplicates(), texts[["text", "rest"]].drop_duplicates()
    first = _exp_mean([logprobs[text][1:] for text in before])
    pairs = [(logprobs[t], n_tokens[r] if r else 0) for t, r in pairs.itertuples(index=False)]
    last = _exp_mean([own[max(len(own) - n, 0) :] for own, n in pairs])
    value = texts["share"].to_numpy(first.dtype)
    value = value * first[pd.Index(before).get_indexer(texts["before"])]
    value *= last[texts.groupby(["text", "rest"], sort=False).ngroup()]
    sums = texts.assign(value=value.astype(float)).groupby(["fact", "term"])["value"].sum()
    sums = sums.unstack().reindex(texts["fact"].unique(), columns=["num", "den_s", "den_r"])
    return sums.assign(karr=ratio(*sums.to_numpy().T)).reset_index().rename_axis(columns=None)


def _exp_mean(arrays: list[np.ndarray]) -> np.ndarray:
    """exp of the mean of every array, 1 for an empty one."""
    return np.exp(np.array([own.mean() if len(own) else 0 for own in arrays], arrays[0].dtype))


def ratio(num, den_s, den_r):
    """sqrt(num / den_s x num / den_r), a ratio of 0 taken as 1e-6, NaN for a denominator of 0."""
    num, den_s, den_r = (np.asarray(x, dtype=float) for x in (num, den_s, den_r))
    with np.errstate(divide="ignore", invalid="ignore"):
        known = [np.where(num == 0, 1e-6, num / d) for d in (den_s, den_r)]
    return np.sqrt(np.where((den_s > 0) & (den_r > 0), known[0] * known[1], np.nan))
