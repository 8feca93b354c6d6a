"""``top_continuations``: the n most probable of many candidates, without scoring them all.

All labels of all candidates form a trie. The probability of a prefix bounds that of every label
below it. So a search that extends the most probable prefix finds the labels in their true order:

    candidate     its probability: the sum of P(label, end | prompt)  [distractors, Eq. 1]
    lower bound   the sum over its labels found so far
    upper bound   that, plus for each other label the probability of the open prefix above it

The search ends when the n best lower bounds exceed every other upper bound. Beam search (ApprOpt in
the paper) keeps the best ``width`` prefixes of each length and may miss candidates.
"""

import time
from collections.abc import Mapping
from functools import cache
from itertools import chain

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, texts_of
from probelib.lm.decode.shared_cache import run_searches
from probelib.lm.internals.hf_model import retry_on_oom
from probelib.lm.scoring import tree_tokens
from probelib.lm.tokens import check_length

TINY = np.finfo(float).tiny  # smaller probabilities lose digits, then vanish
# open prefixes forwarded together: 64, later a quarter of those before (more: some are in vain)
WAVE, LATER = 64, 4
# Columns of an array of prefixes, float64: log-probability (nats), rows low..high of the trie,
# length in tokens, last token, cache position of the token before it, 1 if it is a whole label
LOGPROB, LOW, HIGH, DEPTH, TOKEN, PLACE, DONE = range(7)


class Labels:
    """The labels of a set of candidates as a trie, built once and searched with any prompt.

    ids          [labels, longest + 1] token ids in lexicographic order, padded with -1: a node is a
                 range of rows
    owner        [labels] index of the candidate of a row; a shared text has several rows
    length       mean number of tokens per label; ``nodes``: tokens of the whole trie
    root         the empty prefix
    """

    def __init__(self, model, labels: Mapping[str, list[str]], end: bool = True):
        """``end``: labels include the end token; without it none may be a prefix of another."""
        if end and model.tokens.eos is None:
            raise ProbeError(f"{model.name} has no end-of-sequence token; search with end=False")
        if not isinstance(labels, Mapping) or not labels:
            given = str(labels)[:60] if labels else "empty"
            raise ProbeError(f"labels is {given}; it must be {{candidate: [its labels]}}")
        self.texts = {c: texts_of(f"labels of {c!r}", texts) for c, texts in labels.items()}
        self.candidates, self.end, rows = list(labels), end, []
        model.tokens.continuations([*chain(*self.texts.values())])  # cached, in one call
        for owner, (candidate, texts) in enumerate(self.texts.items()):
            if not texts:
                raise ProbeError(f"candidate {candidate!r} has no label")
            ids = [model.tokens.continuation(text) for text in dict.fromkeys(texts)]
            rows += [(i + ((model.tokens.eos,) if end else ()), owner) for i in ids]
        rows.sort()
        for (left, a), (right, b) in zip(rows, rows[1:], strict=False):
            if not end and left == right[: len(left)] and left != right:
                what = f"a label of {self.candidates[a]!r} is a prefix of one of"
                raise ProbeError(f"{what} {self.candidates[b]!r}: search with end=True")
        self.longest = max(len(ids) for ids, _ in rows)
        padded = [[*ids, *[-1] * (self.longest + 1 - len(ids))] for ids, _ in rows]
        self.ids = np.array(padded, dtype=np.int32)
        self.owner = np.array([owner for _, owner in rows])
        self.length = round((self.ids >= 0).sum(1).mean())
        # of each label those from its first difference on
        new = np.logical_or.accumulate(self.ids[1:] != self.ids[:-1], axis=1)
        self.nodes = int((self.ids[0] >= 0).sum() + (new & (self.ids[1:] >= 0)).sum())
        self.root = np.array([[0.0, 0, len(rows), 0, -1, -1, 0]])
        self._step = cache(self._children)

    def children(self, nodes: np.ndarray, answers: list[tuple[int, np.ndarray]]) -> np.ndarray:
        """The prefixes one token longer than some open ones. ``answers``: per open prefix its cache
        position and the log-probs [vocabulary] after it. A whole label and longer ones that start
        with it are two children."""
        extended = []
        for node, (place, logprobs) in zip(nodes, answers, strict=True):
            children, tokens = self._step(int(node[LOW]), int(node[HIGH]), int(node[DEPTH]))
            children = children.copy()
            children[:, LOGPROB] = node[LOGPROB] + logprobs[tokens].astype(float)
            children[:, PLACE] = place
            extended.append(children)
        return np.concatenate(extended)

    def _children(self, low: int, high: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """Children of a node, and their tokens."""
        column, ends = self.ids[low:high, depth], self.ids[low:high, depth + 1] == -1
        start = np.flatnonzero(np.diff(column, prepend=-1))
        stop = np.append(start[1:], len(column))
        longer = start + np.add.reduceat(ends, start, dtype=int)  # from here; padding sorts first
        children = np.zeros((len(start), 2, self.root.shape[1]))
        children[..., LOW] = np.stack([start, longer], 1) + low
        children[..., HIGH] = np.stack([longer, stop], 1) + low
        children[..., TOKEN], children[..., DEPTH] = column[start, None], depth + 1
        children[..., DONE] = [1, 0]
        children = children[children[..., LOW] < children[..., HIGH]]
        return children, children[:, TOKEN].astype(int)


def top_continuations(model, prompt, labels, n: int, end=True, method="best_first") -> pd.DataFrame:
    """The ``n`` most probable candidates after a prompt, best first; one row per candidate.

    prompt   a text, or several, which are searched together
    labels   {candidate: [its labels, with their leading blank]}, or a ``Labels`` (to search again)
    end      see ``Labels``
    method   "best_first": exact; "beam": the paper's constrained beam of width n, no length
             normalization

    columns  prompt (index), candidate, logprob (nats; log of the sum over all its labels), label
             (its most probable one), label_logprob, forwarded_tokens (for this prompt alone)
    ``.attrs["cost"]`` counts forwarded tokens of all prompts, forwards, seconds, and trie tokens.

    With fewer than ``n`` candidates all are returned. Models off the tree, encoder-decoders and
    served ones score every label (exact as well).
    """
    if method not in ("best_first", "beam"):
        raise ProbeError(f"method is {method!r}; allowed: best_first, beam")
    if n < 1:
        raise ProbeError(f"n={n}: it must be 1 or more")
    model.needs_generator("a search for labels")
    started = time.perf_counter()
    prompts = texts_of("prompts", [prompt] if isinstance(prompt, str) else prompt)
    labels = labels if isinstance(labels, Labels) else Labels(model, labels, end)
    found, alone = [range(len(labels.candidates))] * len(prompts), [0] * len(prompts)
    cost = {"forwarded_tokens": 0, "forwards": 0}
    if not model.encoder_decoder and model.choose_path() == "tree":
        ids = model.tokens.prompts(prompts)
        for text, i in zip(prompts, ids, strict=True):
            check_length(model, text, len(i) + labels.longest - 1)
        read, beam = lambda logprobs: list(logprobs.cpu().numpy()), method == "beam"
        start = lambda *end: (_beam if beam else _best_first)(labels, n, *end)
        rows, new = (64, n * labels.length) if beam else (1, 0)
        run = lambda budget: run_searches(model.hf_model, ids, start, read, rows, new, budget)
        found, alone, cost = retry_on_oom(model, run)
    frame = _exact(model, prompts, labels, [sorted(candidates) for candidates in found], n)
    frame["forwarded_tokens"] = np.add(alone, frame.attrs["each"])[frame["prompt"]]
    cost = {key: value + frame.attrs["cost"][key] for key, value in cost.items()}
    seconds = {"seconds": time.perf_counter() - started}
    frame.attrs = {"cost": cost | {"trie_tokens": labels.nodes} | seconds}
    return frame


def _exact(model, prompts: list[str], labels: Labels, found: list, n: int) -> pd.DataFrame:
    """The ``n`` best of the candidates found, by the sums over all their labels; ties in order."""
    own = [(p, c, labels.texts[labels.candidates[c]]) for p, some in enumerate(found) for c in some]
    texts = [(p, c, text) for p, c, alike in own for text in dict.fromkeys(alike)]
    frame = pd.DataFrame(texts, columns=["prompt", "c", "label"])
    continuations = frame.groupby("prompt")["label"].agg(list).tolist()
    rows = model.logprobs(prompts, continuations, end=labels.end)
    frame["label_logprob"] = rows["logprob"] + (rows["eos_logprob"] if labels.end else 0)
    top = frame.groupby(["prompt", "c"])["label_logprob"].transform("max")
    share: pd.Series = np.exp(frame["label_logprob"] - top)  # type: ignore[assignment]
    frame["logprob"] = top + np.log(share.groupby([frame["prompt"], frame["c"]]).transform("sum"))
    frame["candidate"] = [labels.candidates[c] for c in frame["c"]]
    best = frame.loc[frame.groupby(["prompt", "c"])["label_logprob"].idxmax()]
    best = best.sort_values(["prompt", "logprob"], ascending=[True, False], kind="stable")
    best = best.groupby("prompt").head(n).reset_index(drop=True)
    asked = zip(prompts, continuations, strict=True)
    each = [tree_tokens(model, [p], [own], labels.end) for p, own in asked]
    best = best[["prompt", "candidate", "logprob", "label", "label_logprob"]]
    best.attrs = {"cost": rows.attrs["cost"], "each": each}
    return best


def _by_probability(nodes: np.ndarray) -> np.ndarray:
    """Nodes by decreasing probability; ties in the order of the rows."""
    return nodes[np.lexsort((nodes[:, LOW], -nodes[:, LOGPROB]))]


def _rows(nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All rows of the trie below some nodes, and the index of each row's node."""
    low, size = nodes[:, LOW].astype(int), (nodes[:, HIGH] - nodes[:, LOW]).astype(int)
    number = np.repeat(np.arange(len(nodes)), size)
    return (low - size.cumsum() + size)[number] + np.arange(len(number)), number


def _beam(labels: Labels, width: int, *end):
    """The candidates whose labels remain in a beam of ``width``; finished labels stay in it."""
    beam = _by_probability(labels.children(labels.root, [end]))[:width]
    while len(open_ := beam[beam[:, DONE] == 0]):
        extended = labels.children(open_, (yield open_[:, [TOKEN, PLACE]].astype(int).tolist()))
        beam = _by_probability(np.concatenate([beam[beam[:, DONE] == 1], extended]))[:width]
    return set(labels.owner[_rows(beam)[0]].tolist())


def _best_first(labels: Labels, n: int, *end):
    """The n best candidates (unordered), exact by the bounds of the module's docstring."""
    bound = np.zeros(len(labels.ids))  # its probability if found, else that of its prefix
    found = np.zeros(len(labels.ids), dtype=bool)
    fresh, open_, extended = labels.children(labels.root, [end]), labels.root[:0], 0
    while True:
        below, number = _rows(fresh)
        bound[below], found[below] = np.exp(fresh[:, LOGPROB])[number], fresh[number, DONE]
        open_ = np.concatenate([open_, fresh[fresh[:, DONE] == 0]])
        upper = np.bincount(labels.owner, bound, len(labels.candidates))
        lower = np.bincount(labels.owner, bound * found, len(labels.candidates))
        best = np.argsort(-lower, kind="stable")[:n]
        bar = lower[best].min() if len(best) == n else 0.0
        possible = upper > bar * (1 + 1e-6)  # float32 cannot distinguish closer ones
        possible[best] = False
        if bar > TINY and not possible.any():
            return best.tolist()
        possible[best] = True
        before = np.append(0, np.cumsum(possible[labels.owner]))
        low, high = open_[:, [LOW, HIGH]].astype(int).T
        open_ = _by_probability(open_[before[high] > before[low]])  # others cannot matter any more
        if not len(open_):  # if all probabilities underflow, score all candidates
            return best.tolist() if bar > TINY else list(range(len(labels.candidates)))
        wave, open_ = np.split(open_, [WAVE * max(1, extended // (LATER * WAVE))])
        extended += len(wave)
        fresh = labels.children(wave, (yield wave[:, [TOKEN, PLACE]].astype(int).tolist()))
