"""``top_continuations``: the n most probable of a large set of candidates, without scoring them all.

All labels of all candidates form a trie. The probability of a prefix bounds that of every label below it. So a search that
always extends the most probable prefix finds the labels in their true order and stops early: it is exact.

    candidate     its probability = sum over its labels of P(label, end | prompt)         [distractors, Eq. 1]
    lower bound   the sum over its labels found so far
    upper bound   the lower bound, plus for each other label the probability of the open prefix above it

The search ends when the n best lower bounds exceed every other upper bound. It never extends a prefix below which no
candidate can still be among the n best.

Beam search (ApprOpt in the paper) keeps the best ``width`` prefixes of each length and may miss candidates.
"""

import time
from collections.abc import Mapping

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, texts_of
from probelib.lm.decode.shared_cache import run_searches
from probelib.lm.internals.masked import needs_generator
from probelib.lm.scoring import tree_tokens
from probelib.lm.tokens import check_length

TINY = np.finfo(float).tiny  # smaller probabilities lose digits, then vanish
# Open prefixes forwarded together: 64, later a quarter of those before. More are faster, but some are forwarded in vain.
WAVE, LATER = 64, 4
# Columns of an array of prefixes, float64: log-probability (nats), rows low..high of the trie, length in tokens, last token,
# cache position of the token before it, 1 if it is a whole label
LOGPROB, LOW, HIGH, DEPTH, TOKEN, PLACE, DONE = range(7)
ROOT = [0.0, 0, -1, 0, -1, -1, 0]


class Labels:
    """The labels of a set of candidates as a trie, built once and searched with any prompt.

    candidates   [C] names
    ids          [labels, longest + 1] token ids in lexicographic order, padded with -1: a node is a range of rows
    owner        [labels] index of the candidate of a row; a text that several candidates share has several rows
    length       mean number of tokens per label
    """

    def __init__(self, model, labels: Mapping[str, list[str]], end: bool = True):
        """``end``: a label includes the end-of-sequence token, so that "New York" does not include "New York City".
        Without it no label may be a prefix of another one."""
        if end and model.eos is None:
            raise ProbeError(f"{model.name}: this tokenizer has no end-of-sequence token; search with end=False")
        if not isinstance(labels, Mapping):
            raise ProbeError(f"labels must be {{candidate: [its labels]}}, not {str(labels)[:60]}")
        labels = {candidate: texts_of(f"labels of {candidate!r}", texts) for candidate, texts in labels.items()}
        self.candidates, self.texts, self.end = list(labels), labels, end
        tail = (model.eos,) if end else ()
        model.tokens.continuations([text for texts in labels.values() for text in texts])  # cached, in one call
        rows = []
        for c, texts in enumerate(labels.values()):
            distinct = dict.fromkeys(texts)
            if not distinct:
                raise ProbeError(f"candidate {self.candidates[c]!r} has no label")
            rows += [(model.tokens.continuation(text) + tail, c) for text in distinct]
        if not rows:
            raise ProbeError("labels is empty: give at least one candidate")
        rows.sort()
        self.longest = max(len(ids) for ids, _ in rows)
        self.ids = np.full((len(rows), self.longest + 1), -1, dtype=np.int32)
        for i, (ids, _) in enumerate(rows):
            self.ids[i, : len(ids)] = ids
        self.owner = np.array([c for _, c in rows])
        self.length = round((self.ids >= 0).sum(1).mean())
        self._known: dict[tuple[int, int, int], tuple[np.ndarray, np.ndarray]] = {}  # children, and their tokens
        if not end:
            self._refuse_prefixes(rows)

    def _refuse_prefixes(self, rows) -> None:
        for (left, a), (right, b) in zip(rows, rows[1:], strict=False):
            if left == right[: len(left)] and left != right:
                raise ProbeError(
                    f"a label of {self.candidates[a]!r} is a prefix of one of {self.candidates[b]!r}: without an end token "
                    "the shorter one always wins. Search with end=True"
                )

    def children(self, nodes: np.ndarray, answers: list[tuple[int, np.ndarray]]) -> np.ndarray:
        """The prefixes one token longer than some open ones. ``answers``: per open prefix its cache position and the
        log-probs [vocabulary] after it. A whole label and the longer labels that start with it are two children with the
        same token."""
        extended = []
        for node, (place, logprobs) in zip(nodes, answers, strict=True):
            key = int(node[LOW]), int(node[HIGH]), int(node[DEPTH])
            if key not in self._known:
                self._known[key] = self._step(*key)
            children, tokens = self._known[key]
            children = children.copy()
            children[:, LOGPROB] = node[LOGPROB] + logprobs[tokens].astype(float)
            children[:, PLACE] = place
            extended.append(children)
        return np.concatenate(extended)

    def _step(self, low: int, high: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
        column, ends = self.ids[low:high, depth], self.ids[low:high, depth + 1] == -1
        start = np.flatnonzero(np.diff(column, prepend=-1))
        stop = np.append(start[1:], len(column))
        longer = start + np.add.reduceat(ends, start, dtype=int)  # rows from here are longer; the padding sorts first
        children = np.zeros((len(start), 2, len(ROOT)))
        children[..., LOW], children[..., HIGH] = np.stack([start, longer], 1) + low, np.stack([longer, stop], 1) + low
        children[..., TOKEN], children[..., DEPTH], children[..., DONE] = column[start, None], depth + 1, [1, 0]
        children = children[children[..., LOW] < children[..., HIGH]]
        return children, children[:, TOKEN].astype(int)

    def nodes(self) -> int:
        """Tokens of the whole trie, which scoring every label would read (its leaves are predicted, never forwarded)."""
        # from the token at which a label differs from the previous one
        new = np.logical_or.accumulate(self.ids[1:] != self.ids[:-1], axis=1)
        return int((self.ids[0] >= 0).sum() + (new & (self.ids[1:] >= 0)).sum())


def top_continuations(
    model,
    prompt: str | list[str],
    labels,
    n: int,
    end: bool = True,
    method: str = "best_first",
    width: int | None = None,
) -> pd.DataFrame:
    """The ``n`` most probable candidates after a prompt, best first; one row per candidate.

    prompt   a text, or several, which are searched together
    labels   {candidate: [its labels, with their leading blank]}, or a ``Labels`` of it (to search again)
    end      see ``Labels``
    method   "best_first": exact; "beam": the paper's constrained beam of ``width`` (default n), no length normalization

    columns  prompt (index), candidate, logprob (nats; log of the sum over all its labels), label (its most probable one),
             label_logprob (of that label), forwarded_tokens (for this prompt alone)
    ``.attrs["cost"]`` counts forwarded tokens of all prompts, forwards, seconds, and the tokens of the trie.

    With fewer than ``n`` candidates all are returned. Encoder-decoder models, served models, and models on the plain path
    score every label (exact as well).
    """
    if method not in ("best_first", "beam"):
        raise ProbeError(f"method is {method!r}; allowed: best_first, beam")
    if min(n, width or n) < 1:
        raise ProbeError(f"n={n}, width={width}: each must be 1 or more")
    needs_generator(model, "a search for labels")
    started, prompts = time.perf_counter(), texts_of("prompts", [prompt] if isinstance(prompt, str) else prompt)
    labels, width = labels if isinstance(labels, Labels) else Labels(model, labels, end), width or n
    if model.encoder_decoder or model.choose_path() != "tree":
        found, alone = [range(len(labels.candidates))] * len(prompts), [0] * len(prompts)
        cost = {"forwarded_tokens": 0, "forwards": 0}
    else:
        size = {"rows": 1, "new": 0} if method == "best_first" else {"rows": 64, "new": width * labels.length}
        start = lambda _, *at: _best_first(labels, n, *at) if method == "best_first" else _beam(labels, width, *at)
        read = lambda logprobs: list(logprobs.cpu().numpy())
        ids = model.tokens.prompts(prompts)
        for text, i in zip(prompts, ids, strict=True):
            check_length(model, text, len(i) + labels.longest - 1)
        search = lambda budget: run_searches(model.hf_model, ids, start, read, **size, budget=budget)
        found, alone, cost = model.retry_on_oom(search)
    frame = _exact(model, prompts, labels, [sorted(candidates) for candidates in found], n)
    forwarded = np.add(alone, frame.attrs["each"])
    frame["forwarded_tokens"] = forwarded[frame["prompt"]]
    cost = {key: value + frame.attrs["cost"][key] for key, value in cost.items()}
    frame.attrs = {"cost": cost | {"trie_tokens": labels.nodes(), "seconds": time.perf_counter() - started}}
    return frame


def _exact(model, prompts: list[str], labels: Labels, found: list[list[int]], n: int) -> pd.DataFrame:
    """The ``n`` best of the candidates found, by the sums over all their labels; ties in the order of the candidates."""
    texts = [
        (p, c, text)
        for p, candidates in enumerate(found)
        for c in candidates
        for text in dict.fromkeys(labels.texts[labels.candidates[c]])
    ]
    frame = pd.DataFrame(texts, columns=["prompt", "c", "label"])
    continuations = [group.tolist() for _, group in frame.groupby("prompt")["label"]]
    rows = model.logprobs(prompts, continuations, end=labels.end)
    frame["label_logprob"] = rows["logprob"] + (rows["eos_logprob"] if labels.end else 0)
    by_candidate = frame.groupby(["prompt", "c"])["label_logprob"]
    top = by_candidate.transform("max")
    total = np.exp(frame["label_logprob"] - top).groupby([frame["prompt"], frame["c"]]).transform("sum")
    frame["logprob"] = top + np.log(total)
    best = frame.sort_values(["prompt", "c", "label_logprob"], ascending=[True, True, False], kind="stable")
    best = best.drop_duplicates(["prompt", "c"])
    best = best.sort_values(["prompt", "logprob"], ascending=[True, False], kind="stable").groupby("prompt").head(n)
    best = best.assign(candidate=[labels.candidates[c] for c in best["c"]])
    best = best[["prompt", "candidate", "logprob", "label", "label_logprob"]].reset_index(drop=True)
    each = [tree_tokens(model, [p], [texts], labels.end) for p, texts in zip(prompts, continuations, strict=True)]
    best.attrs = {"cost": rows.attrs["cost"], "each": each}
    return best


def _first(labels: Labels, place: int, logprobs: np.ndarray) -> np.ndarray:
    root = np.array([ROOT])
    root[0, HIGH] = len(labels.ids)
    return labels.children(root, [(place, logprobs)])


def _by_probability(nodes: np.ndarray) -> np.ndarray:
    """Nodes by decreasing probability; ties in the order of the rows."""
    return nodes[np.lexsort((nodes[:, LOW], -nodes[:, LOGPROB]))]


def _requests(nodes: np.ndarray) -> list[tuple[int, int]]:
    return [(int(token), int(place)) for token, place in nodes[:, [TOKEN, PLACE]]]


def _rows(nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All rows of the trie below some nodes, and the index of each row's node."""
    low, size = nodes[:, LOW].astype(int), (nodes[:, HIGH] - nodes[:, LOW]).astype(int)
    number = np.repeat(np.arange(len(nodes)), size)
    return (low - size.cumsum() + size)[number] + np.arange(len(number)), number


def _beam(labels: Labels, width: int, *root):
    """The candidates whose labels remain in a beam of ``width``; finished labels stay in it."""
    beam = _by_probability(_first(labels, *root))[:width]
    while len(open_ := beam[beam[:, DONE] == 0]):
        extended = labels.children(open_, (yield _requests(open_)))
        beam = _by_probability(np.concatenate([beam[beam[:, DONE] == 1], extended]))[:width]
    return set(labels.owner[_rows(beam)[0]].tolist())


def _best_first(labels: Labels, n: int, *root):
    """The n best candidates (unordered), exact by the bounds of the module's docstring."""
    bound = np.zeros(len(labels.ids))  # per label: its probability once found, before that of its open prefix
    found = np.zeros(len(labels.ids), dtype=bool)
    fresh, open_, extended = _first(labels, *root), np.empty((0, len(ROOT))), 0
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
        open_ = _by_probability(open_[before[high] > before[low]])  # nothing below the other prefixes can matter
        if not len(open_):  # if all probabilities underflow, score all candidates
            return best.tolist() if bar > TINY else list(range(len(labels.candidates)))
        wave, open_ = np.split(open_, [WAVE * max(1, extended // (LATER * WAVE))])
        extended += len(wave)
        fresh = labels.children(wave, (yield _requests(wave)))
