"""``logprobs``: log P(token) of every continuation token after its prompt, as rows."""

import time
from functools import cache
from itertools import chain
from os.path import commonprefix  # of any sequences

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, texts_of
from probelib.lm.families import Branches
from probelib.lm.internals.hf_model import retry_on_oom
from probelib.lm.plain import NOTE
from probelib.lm.selfcheck import score_by
from probelib.lm.tokens import check_length
from probelib.lm.tree import Tree


def logprobs(
    model, prompts: list[str], continuations: list[list[str]], end: bool = False, path: str = "auto"
) -> pd.DataFrame:
    """Teacher-forced log-probabilities; one row per (prompt, continuation).

    prompts        texts, or one text; a repeated prompt costs nothing
    continuations  a list of continuations per prompt, e.g. [" Paris", " Lyon"], with the blank
                   before the word; a text is a list of one
    end            also return what follows (one more token per row)
    path           "auto" (the fastest one that passes the self-check on this model), or one of
                   ``model.paths``

    columns
        prompt, candidate   indices into ``prompts`` and into its continuations
        n_tokens            tokens of the continuation
        logprob             sum over its tokens, nats (float64 sum of float32 terms)
        token_logprobs      array [n_tokens], nats
        greedy              whether every token is the arg-max
        eos_logprob         log P(end of sequence | prompt, continuation), nats; NaN without
                            ``end`` or without an EOS
        greedy_text         the known beginning of the greedy output: the continuation as long as
                            it is the arg-max, then the first arg-max that differs or follows; ""
                            without ``end``
        greedy_done         whether that arg-max is in ``model.ends``
        note                "" or "pseudo-log-likelihood" (of a masked language model)

    ``.attrs["cost"]`` counts requested and forwarded tokens, forwards, seconds and the path used.
    Raise ProbeError for an empty continuation, a sequence longer than the context, NaN or infinite
    logits.
    """
    started = time.perf_counter()
    if isinstance(prompts, str):
        prompts, continuations = [prompts], [continuations]
    prompts = texts_of("prompts", prompts)
    if len(prompts) != len(continuations):
        raise ProbeError(f"{len(prompts)} prompts but {len(continuations)} lists of continuations")
    lists = [[texts] if isinstance(texts, str) else texts for texts in continuations]
    named = [f"continuations of the prompt {prompt[:50]!r}" for prompt in prompts]
    continuations = list(map(texts_of, named, lists))
    allowed = ("auto", *model.paths)
    if path not in allowed:
        raise ProbeError(f"path is {path!r}; allowed for {model.name}: {', '.join(allowed)}")
    if end:
        model.needs_generator("the probability of an end of text")
    contexts, branches, rows = _requests(model, prompts, continuations, end)
    path = model.choose_path() if path == "auto" else path
    scores, argmax, cost = score_ids(model, contexts, branches, path)
    ids = [tokens[: len(tokens) - end] for _, tokens in branches]
    frame = _frame(model, rows, ids, scores, argmax)
    asked = {"requested_tokens": int(rows["length"].sum()), "requests": len(rows)}
    seconds = time.perf_counter() - started
    frame.attrs["cost"] = cost | asked | {"seconds": seconds, "path": path}
    return frame


def _requests(model, prompts: list[str], continuations: list[list[str]], end: bool):
    """The distinct requests: contexts (ids of the distinct prompts), branches (index of a context,
    ids of a continuation), and per row prompt, candidate, branch, length (of the sequence)."""
    # the number of each value, and the distinct values in the order of their first appearance
    numbered = lambda values: pd.factorize(np.fromiter(values, object))
    sizes = np.array([len(texts) for texts in continuations], dtype=np.int64)
    prompt = np.repeat(np.arange(len(prompts)), sizes)
    candidate = np.arange(len(prompt)) - np.repeat(sizes.cumsum() - sizes, sizes)
    context, prompts = numbered(prompts)
    text, texts = numbered(chain.from_iterable(continuations))
    contexts = model.tokens.prompts(list(prompts))
    # without an end-of-sequence token only the arg-max is requested
    tail = (model.tokens.eos if model.tokens.eos is not None else -1,) * end
    form, ids = numbered(each + tail for each in model.tokens.continuations(list(texts)))
    asked = context[prompt]  # the distinct prompt of each row
    branch, distinct = numbered(zip(asked.tolist(), form[text].tolist(), strict=True))
    branches = [(c, ids[i]) for c, i in distinct]
    before = np.array([len(tokens) for tokens in contexts], dtype=np.int64)[asked]
    own = np.array([len(tokens) for tokens in ids], dtype=np.int64)[form[text]]
    # a decoder never reads the last token
    special = len(model.tokens.finish) if model.masked else -1
    longest = np.maximum(before, own) if model.encoder_decoder else before + own + special
    if len(longest):
        check_length(model, prompts[asked[longest.argmax()]], int(longest.max()))
    rows = {"prompt": prompt, "candidate": candidate, "branch": branch, "length": before + own}
    return contexts, branches, pd.DataFrame(rows)


def score_ids(model, contexts: list[list[int]], branches: Branches, path: str = "auto"):
    """``logprobs`` of token ids: arguments and results as in ``tree.score_tree``."""
    if not branches:
        return [], [], {"forwarded_tokens": 0, "forwards": 0}
    path = model.choose_path() if path == "auto" else path
    if path == "served":
        return model.score(contexts, branches)
    work = lambda budget: score_by(model, path, contexts, branches, budget)
    scores, argmax, cost = retry_on_oom(model, work)
    return scores, argmax, cost | {"budget": model.budget}


def _frame(model, rows: pd.DataFrame, ids: list, scores: list, argmax: list) -> pd.DataFrame:
    """The frame of ``logprobs``; with ``end`` scores are one longer than the ids."""
    branch, lengths = rows["branch"].to_numpy(), np.array(list(map(len, ids)), dtype=np.int64)
    of_tokens = [each[: len(tokens)] for each, tokens in zip(scores, ids, strict=True)]
    best = [each[: len(tokens)] for each, tokens in zip(argmax, ids, strict=True)]
    flat = lambda lists: np.fromiter(chain.from_iterable(lists), np.int64)
    equal = flat(best) == flat(ids)
    starts, total = lengths.cumsum() - lengths, np.concatenate([np.empty(0), *of_tokens])
    after, texts = np.full(len(ids), np.nan), [("", False)] * len(ids)
    if sum(map(len, scores)) > len(total):
        after[:] = [each[-1] for each in scores]
        # the last one is the first that differs or follows
        pairs = zip(ids, map(np.ndarray.tolist, argmax), strict=True)
        known = [most[: len(commonprefix([list(tokens), most])) + 1] for tokens, most in pairs]
        ends, decode = model.ends, cache(lambda tokens: model.tokens.decode(tokens, model.ends))
        texts = [(decode(tuple(each)), each[-1] in ends) for each in known]
    return rows[["prompt", "candidate"]].assign(
        n_tokens=lengths[branch],
        logprob=np.add.reduceat(total, starts)[branch],
        token_logprobs=pd.Series(of_tokens, dtype=object).to_numpy()[branch],
        greedy=np.logical_and.reduceat(equal, starts)[branch],
        eos_logprob=after[branch],
        greedy_text=np.array([text for text, _ in texts], dtype=object)[branch],
        greedy_done=np.array([done for _, done in texts], dtype=bool)[branch],
        note=NOTE if model.masked else "",
    )


def tree_tokens(model, prompts: list[str], continuations: list[list[str]], end=False) -> int:
    """Number of tokens that ``logprobs`` would forward on the tree for these requests."""
    ids = map(model.tokens.continuations, continuations)
    branches = [(p, each + (-1,) * end) for p, own in enumerate(ids) for each in own]
    return len(Tree(model.tokens.prompts(prompts), branches).token)
