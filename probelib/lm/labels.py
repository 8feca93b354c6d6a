"""``top_continuations``: the n most probable of a (huge) set of candidates, without scoring them all.

All labels of all candidates form a trie. The probability of a prefix bounds that of every label below it, so a search
that always goes on at the most probable prefix meets the labels in their true order and stops early: it is exact.

    candidate     its probability = sum over its labels of P(label, end | prompt)         (Distractors, Eq. 1)
    lower bound   the sum over its labels found so far
    upper bound   that, and for each label not found yet the probability of the open prefix it lies under

The search ends when the n best lower bounds beat every other upper bound, and never goes below a prefix under which no
candidate can still get among the n best.

Beam search (ApprOpt in the paper) keeps the best ``width`` prefixes of each length and may lose the right ones.
"""

import heapq
import time
from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch

from probelib.errors import ProbeError
from probelib.lm.families import forward_packed

WAVE = 64  # open prefixes forwarded together; more of them cost less time a token and forward some in vain


class Labels:
    """The labels of a set of candidates as a trie, built once and searched with any prompt.

    candidates   [C] names
    ids          [labels, longest + 1] token ids in lexicographic order, padded with -1: a node is a range of rows
    owner        [labels] index of the candidate that a row belongs to; a text of several candidates has several rows
    """

    def __init__(self, lm, labels: Mapping[str, list[str]], end: bool = True):
        """``end``: a label is complete with the end-of-sequence token, so that "New York" does not stand for "New York
        City". Without it no label may be the beginning of another one's tokens."""
        if end and lm.eos is None:
            raise ProbeError(f"{lm.name}: this tokenizer has no end-of-sequence token; search with end=False")
        self.candidates, self.texts, self.end = list(labels), dict(labels), end
        tail = (lm.eos,) if end else ()
        lm.tokens.learn([""], [[text for texts in labels.values() for text in texts]])
        rows = []
        for c, texts in enumerate(labels.values()):
            distinct = dict.fromkeys(texts)
            if not distinct:
                raise ProbeError(f"candidate {self.candidates[c]!r} has no label")
            rows += [(lm.tokens.continuation(text) + tail, c) for text in distinct]
        if not rows:
            raise ProbeError("no candidate at all")
        rows.sort()
        longest = max(len(ids) for ids, _ in rows)
        self.ids = np.full((len(rows), longest + 1), -1, dtype=np.int32)
        for i, (ids, _) in enumerate(rows):
            self.ids[i, : len(ids)] = ids
        self.owner = np.array([c for _, c in rows])
        self.count = np.bincount(self.owner, minlength=len(self.candidates))
        if not end:
            self._refuse_prefixes(rows)

    def _refuse_prefixes(self, rows) -> None:
        for (left, a), (right, b) in zip(rows, rows[1:], strict=False):
            if left == right[: len(left)] and left != right:
                raise ProbeError(
                    f"a label of {self.candidates[a]!r} begins one of {self.candidates[b]!r}: without an end token the "
                    "shorter always wins. Search with end=True"
                )

    def children(self, low: int, high: int, depth: int) -> list[tuple[int, int, int]]:
        """(token, low, high) of every child of the node that is rows low..high at ``depth``; -1 stands for "ends here"."""
        column = self.ids[low:high, depth]
        cuts = np.flatnonzero(np.diff(column)) + 1
        edges = [0, *cuts.tolist(), high - low]
        return [(int(column[a]), low + a, low + b) for a, b in zip(edges, edges[1:], strict=False)]

    def nodes(self) -> int:
        """Tokens of the whole trie: what scoring every label would read (its leaves are predicted, never forwarded)."""
        changed = np.any(self.ids[1:] != self.ids[:-1], axis=1)
        first = np.argmax(self.ids[1:] != self.ids[:-1], axis=1)
        length = (self.ids >= 0).sum(1)
        new = np.where(changed, length[1:] - first, 0)
        return int(length[0] + new.sum())


def top_continuations(
    lm, prompt: str, labels, n: int, end: bool = True, method: str = "best_first", width: int | None = None
):
    """The ``n`` most probable candidates after a prompt, best first.

    labels   {candidate: [its labels, with their leading blank]}, or a ``Labels`` made of it (to search many prompts)
    end      see ``Labels``
    method   "best_first": exact; "beam": the paper's constrained beam of ``width`` (default n), no length normalisation
    returns  ``candidate``, ``logprob`` (nats; log of the sum over all of its labels), ``label`` (its most probable one),
             ``label_logprob`` (of that one alone); ``.attrs["cost"]`` counts forwarded tokens, forwards, seconds and
             the trie's tokens

    Fewer than ``n`` candidates: all of them. Encoder-decoder models, served ones, and those whose packed rows are not trusted,
    score every label (exact as well).
    """
    if method not in ("best_first", "beam"):
        raise ProbeError(f"method is {method!r}; allowed: best_first, beam")
    started = time.perf_counter()
    labels = labels if isinstance(labels, Labels) else Labels(lm, labels, end)
    if lm.encoder_decoder or lm.choose_path() != "tree":
        found, cost = range(len(labels.candidates)), {"forwarded_tokens": 0, "forwards": 0}
    else:
        search = _Search(lm, prompt, labels)
        found = search.beam(width or n) if method == "beam" else search.best_first(n)
        cost = search.cost
    frame = _exact(lm, prompt, labels, sorted(found), cost).head(n)
    frame.attrs["cost"] = cost | {"trie_tokens": labels.nodes(), "seconds": time.perf_counter() - started}
    return frame


def _exact(lm, prompt: str, labels: Labels, found: list[int], cost: dict) -> pd.DataFrame:
    """The candidates found with their sums over all labels, ordered; ties by the order of the candidates."""
    texts = [(c, text) for c in found for text in dict.fromkeys(labels.texts[labels.candidates[c]])]
    rows = lm.logprobs([prompt], [[text for _, text in texts]], end=labels.end)
    total = rows["logprob"] + (rows["eos_logprob"] if labels.end else 0)
    cost["forwarded_tokens"] += rows.attrs["cost"]["forwarded_tokens"]
    cost["forwards"] += rows.attrs["cost"]["forwards"]
    frame = pd.DataFrame({"c": [c for c, _ in texts], "label": [text for _, text in texts], "logprob": total})
    best = frame.sort_values(["c", "logprob"], ascending=[True, False], kind="stable").drop_duplicates("c")
    sums = frame.groupby("c")["logprob"].agg(np.logaddexp.reduce)
    best = best.assign(
        candidate=[labels.candidates[c] for c in best["c"]], label_logprob=best["logprob"], logprob=best["c"].map(sums)
    )
    columns = ["candidate", "logprob", "label", "label_logprob"]
    return best.sort_values("logprob", ascending=False, kind="stable")[columns].reset_index(drop=True)


class _Search:
    """One prompt's search: the cache holds the prompt and every prefix expanded so far, side by side."""

    def __init__(self, lm, prompt: str, labels: Labels):
        from transformers import DynamicCache

        self.model, self.labels, self.cache = lm.model, labels, DynamicCache()
        self.cost = {"forwarded_tokens": 0, "forwards": 0}
        self.prompt = lm.tokens.prompts([prompt])[0]
        self.depth = []  # of every key in the cache
        self.path: list[list[int]] = []  # of every key: the places of its ancestors and itself
        # an open prefix: (-log P, low row, high row, depth in the trie, its token, place of its parent in the cache)
        logprobs = self._forward(self.prompt, [-1])
        self.open = self._children(0.0, 0, len(labels.ids), 0, len(self.prompt) - 1, logprobs[0])

    def best_first(self, n: int) -> list[int]:
        """The n best candidates (unordered): exact, by bounds."""
        labels, heap = self.labels, list(self.open)
        heapq.heapify(heap)
        bound = np.zeros(
            len(labels.ids)
        )  # of each label: its probability once found, until then that of its open prefix
        found = np.zeros(len(labels.ids), dtype=bool)
        for item in heap:
            bound[item[1] : item[2]] = np.exp(-item[0])
        while heap:
            upper = np.bincount(labels.owner, bound, len(labels.candidates))
            lower = np.bincount(labels.owner, bound * found, len(labels.candidates))
            best = np.argsort(-lower, kind="stable")[:n]
            bar = lower[best].min() if len(best) == n else 0.0
            hopeful = upper > bar * (1 + 1e-6)  # float32 cannot tell closer ones apart
            hopeful[best] = False
            if len(best) == n and bar > 0 and not hopeful.any():
                return best.tolist()
            hopeful[best] = True
            wave = []
            while heap and len(wave) < WAVE:
                item = heapq.heappop(heap)
                if item[4] == -1:
                    found[item[1] : item[2]] = True
                elif hopeful[labels.owner[item[1] : item[2]]].any():  # otherwise nothing below it can matter
                    wave.append(item)
            for children in self._expand(wave):
                for child in children:
                    bound[child[1] : child[2]] = np.exp(-child[0])
                    if child[4] == -1:
                        found[child[1] : child[2]] = True
                    else:
                        heapq.heappush(heap, child)
        lower = np.bincount(labels.owner, bound * found, len(labels.candidates))
        return np.argsort(-lower, kind="stable")[:n].tolist()

    def beam(self, width: int) -> set[int]:
        """The candidates whose labels survive a beam of ``width``; finished labels keep their place in it."""
        beam = heapq.nsmallest(width, self.open)
        while any(item[4] != -1 for item in beam):
            unfinished = [item for item in beam if item[4] != -1]
            finished = [item for item in beam if item[4] == -1]
            beam = heapq.nsmallest(width, finished + [c for children in self._expand(unfinished) for c in children])
        return {int(c) for item in beam for c in self.labels.owner[item[1] : item[2]]}

    def _expand(self, wave: list[tuple]) -> list[list[tuple]]:
        """Forwards the tokens of open prefixes in one row; their children."""
        if not wave:
            return []
        places = [len(self.depth) + i for i in range(len(wave))]
        logprobs = self._forward([item[4] for item in wave], [item[5] for item in wave])
        return [
            self._children(-item[0], item[1], item[2], item[3], place, row)
            for item, place, row in zip(wave, places, logprobs, strict=True)
        ]

    def _children(self, logprob: float, low: int, high: int, depth: int, place: int, row: np.ndarray) -> list[tuple]:
        """Open prefixes and finished labels below a node; a label whose last token is predicted is never forwarded."""
        children = []
        for token, a, b in self.labels.children(low, high, depth):
            if token == -1:
                children.append((-logprob, a, b, depth, -1, place))
                continue
            after = logprob + float(row[token])
            for following, first, last in self.labels.children(a, b, depth + 1):
                if following == -1:
                    children.append((-after, first, last, depth + 1, -1, place))
                    a = last  # the padding sorts first
            if a < b:
                children.append((-after, a, b, depth + 1, token, place))
        return children

    def _forward(self, tokens: list[int], parents: list[int]) -> np.ndarray:
        """Log-probs [asked, vocabulary] after tokens; the prompt as a chain (asked at its end), later ones side by side."""
        past, prompt = len(self.depth), not self.depth
        for i, _ in enumerate(tokens):
            parent = (past + i - 1) if prompt else parents[i]
            self.depth.append(self.depth[parent] + 1 if parent >= 0 else 0)
            self.path.append([*(self.path[parent] if parent >= 0 else []), past + i])
        sees = np.zeros((len(tokens), past + len(tokens)), dtype=bool)
        for i in range(len(tokens)):
            sees[i, self.path[past + i]] = True
        keep = [len(tokens) - 1] if prompt else list(range(len(tokens)))
        with torch.inference_mode():
            logits = forward_packed(self.model, self.cache, tokens, np.array(self.depth), sees, keep)
        self.cost["forwarded_tokens"] += len(tokens)
        self.cost["forwards"] += 1
        logprobs = torch.log_softmax(logits.float(), -1)
        if not torch.isfinite(logprobs.max(-1).values).all():
            raise ProbeError("the model returned NaN or infinite logits; load it with dtype='bfloat16' or 'float32'")
        return logprobs.cpu().numpy()
