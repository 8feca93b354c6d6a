"""``logprobs``: log P(token) of every continuation token after its prompt, as rows."""

import time

import numpy as np
import pandas as pd
import torch

from probelib.errors import ProbeError, texts_of
from probelib.lm.attention import QUERIES, SHARED
from probelib.lm.encdec import score_encdec
from probelib.lm.families import windows_of
from probelib.lm.plain import score_plain
from probelib.lm.tokens import fits
from probelib.lm.tree import Tree, score_tree

# nats a token: half precision differs from itself under another attention kernel by as much, and 8 bits where
# another rounding of a sum tips an activation over to the next of its 256 steps (fewer than one token in 50, up to 0.07 seen)
TOLERANCE = {torch.float32: 1e-4, torch.float16: 0.02, torch.bfloat16: 0.1, "8bit": 0.1}
ROUNDINGS = 4  # or so many times what a model differs from itself by when it is batched otherwise


def logprobs(
    lm, prompts: list[str], continuations: list[list[str]], end: bool = False, path: str = "auto"
) -> pd.DataFrame:
    """Teacher-forced log-probabilities; one row a (prompt, continuation).

    prompts        texts; a repeated prompt costs nothing
    continuations  for each prompt its continuations, e.g. [" Paris", " Lyon"]; they own the blank before the word
    end            also say what follows: ``eos_logprob`` and ``greedy_text``. Costs one more forwarded token a row
    path           "auto" (the tree, if it passed the self-check on this model), "tree" or "plain"

    columns
        prompt, candidate   indices into ``prompts`` and into its continuations
        n_tokens            tokens of the continuation
        logprob             sum over its tokens, nats (float64 sum of float32 terms)
        token_logprobs      array [n_tokens], nats
        greedy              whether every token was the arg-max: greedy decoding would write exactly this
        eos_logprob         log P(end of sequence | prompt, continuation), nats; NaN without ``end`` or without an EOS
        greedy_text         what greedy decoding is known to write: the continuation's tokens while they are the arg-max,
                            then the first arg-max that is none of them (or that follows them). "" without ``end``
        greedy_done         whether greedy decoding is known to end there (that arg-max ends a text, see ``LM.ends``)
        flags               "" or "boundary": the tokenizer would cut the joined text otherwise

    ``.attrs["cost"]`` counts requested, distinct and forwarded tokens, forwards, seconds and the path taken.
    Raises ProbeError for an empty continuation, a sequence longer than the context, NaN or infinite logits.
    """
    prompts = texts_of("prompts", prompts)
    if len(prompts) != len(continuations):
        raise ProbeError(f"{len(prompts)} prompts but {len(continuations)} lists of continuations")
    continuations = [
        texts_of(f"continuations of the prompt {prompt[:50]!r}", texts)
        for prompt, texts in zip(prompts, continuations, strict=True)
    ]
    started = time.perf_counter()
    distinct = list(dict.fromkeys(prompts))
    contexts = lm.tokens.prompts(distinct)
    lm.tokens.learn(prompts, continuations)
    number = {text: i for i, text in enumerate(distinct)}
    eos = lm.eos if lm.eos is not None else -1
    rows, branches, branch_of = [], [], {}
    for p, (prompt, texts) in enumerate(zip(prompts, continuations, strict=True)):
        for c, text in enumerate(texts):
            ids = lm.tokens.continuation(text) + ((eos,) if end else ())
            key = (number[prompt], ids)
            if key not in branch_of:
                branch_of[key] = len(branches)
                branches.append(key)
                context, length = len(contexts[key[0]]), len(ids)
                fits(lm, prompt, max(context, length) if lm.encoder_decoder else context + length - 1)
            rows.append((p, c, branch_of[key], lm.tokens.straddles(prompt, text)))
    if path not in ("auto", "tree", "plain"):
        raise ProbeError(f"path is {path!r}; allowed: auto, tree, plain")
    path = lm.choose_path() if path == "auto" else path
    scores, argmax, cost = _score(lm, path, contexts, branches)
    frame = _frame(lm, rows, [ids for _, ids in branches], scores, argmax, end)
    frame.attrs["cost"] = cost | {
        "requested_tokens": sum(len(contexts[branches[b][0]]) + len(branches[b][1]) for _, _, b, _ in rows),
        "requests": len(rows),
        "seconds": time.perf_counter() - started,
        "path": path,
    }
    return frame


def _frame(lm, rows: list[tuple], ids: list[tuple], scores: list, argmax: list, end: bool) -> pd.DataFrame:
    """The table of ``logprobs``. Rows are (prompt, candidate, branch, straddles); the lists have an entry a branch."""
    prompt, candidate, branch, straddles = (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 4
    lengths = np.array([len(own) - end for own in ids], dtype=np.int64)
    texts = [_written(lm, own, best) if end else ("", False) for own, best in zip(ids, argmax, strict=True)]
    own = [each[:length] for each, length in zip(scores, lengths, strict=True)]
    sums, right = np.empty(0), np.empty(0, dtype=bool)
    if ids:
        starts = np.cumsum(lengths) - lengths
        sums = np.add.reduceat(np.concatenate(own, dtype=np.float64), starts)
        same = [np.equal(best[:n], tokens[:n]) for best, tokens, n in zip(argmax, ids, lengths, strict=True)]
        right = np.logical_and.reduceat(np.concatenate(same), starts)
    return pd.DataFrame(
        {
            "prompt": np.array(prompt, dtype=np.int64),
            "candidate": np.array(candidate, dtype=np.int64),
            "n_tokens": lengths[branch],
            "logprob": sums[branch],
            "token_logprobs": pd.Series([own[b] for b in branch], dtype=object),
            "greedy": right[branch],
            "eos_logprob": np.array([float(scores[b][-1]) if end else np.nan for b in branch], dtype=np.float64),
            "greedy_text": np.array([texts[b][0] for b in branch], dtype=object),
            "greedy_done": np.array([texts[b][1] for b in branch], dtype=bool),
            "flags": np.where(np.array(straddles, dtype=bool), "boundary", ""),
        }
    )


def _written(lm, ids: tuple, best: np.ndarray) -> tuple[str, bool]:
    """What greedy decoding is known to write behind a prompt, from the arg-max along a continuation and behind it; whether it
    is known to end there."""
    right = best[:-1] == np.asarray(ids[:-1])
    known = len(right) if right.all() else int(right.argmin())  # so many agree; the next is the first that does not
    return lm.tokens.decode(best[: known + 1].tolist(), lm.ends), int(best[known]) in lm.ends


def _score(lm, path: str, contexts, branches):
    """Scores by the path chosen."""
    if not branches:
        return [], [], {"forwarded_tokens": 0, "forwards": 0}
    if path == "served":
        return lm.score(contexts, branches)
    scores, argmax, cost = lm.with_room(lambda budget: _score_within(lm, path, contexts, branches, budget))
    return scores, argmax, cost | {"budget": lm.budget}


def _score_within(lm, path: str, contexts, branches, budget: int):
    if lm.encoder_decoder:
        return score_encdec(lm.model, contexts, branches, 2 * budget, plain=path == "plain")
    if path == "plain":
        return score_plain(lm.model, contexts, branches, rows=lm.rows(16, budget))
    return score_tree(lm.model, contexts, branches, budget)


def tree_tokens(lm, prompts: list[str], continuations: list[list[str]], end: bool = False) -> int:
    """How many tokens ``logprobs`` would forward on the tree for these requests: every distinct prefix once. No forward."""
    tree, eos = Tree(), (lm.eos if lm.eos is not None else -1,) if end else ()
    for ids, texts in zip(lm.tokens.prompts(prompts), continuations, strict=True):
        node = tree.walk(0, ids)
        for text in texts:
            tree.walk(node, (lm.tokens.continuation(text) + eos)[:-1])
    return len(tree.token) - 1


def agrees(lm) -> bool:
    """Whether the tree gives this model's plain log-probs, also with windows so narrow that something lies behind them.

    Needed because an unknown architecture may take the packed row and answer wrongly without a word.
    """
    check = lambda: lm.with_room(lambda budget: _agrees(lm, budget))
    if not check():
        return False
    with windows_of(lm.model, SHARED // 2) as narrowed:
        return not narrowed or check()


def _agrees(lm, budget: int) -> bool:
    """On a few branches in short rows, and on some of so many branches that they fill a row, with a second one behind a cache."""
    rng = np.random.default_rng(0)
    draw = lambda n: [int(t) for t in rng.integers(3, min(lm.model.config.get_text_config().vocab_size, 1000), n)]
    prefix, first = draw(min(SHARED + 8, lm.context - 8)), draw(1)
    contexts = [prefix + draw(2), prefix + draw(1)]
    few = [(0, tuple(first + draw(2))), (0, tuple(first + draw(3))), (0, tuple(draw(2))), (1, tuple(draw(3)))]
    many = few + [(1, tuple(draw(5))) for _ in range(budget // 4 + QUERIES)]  # 4 forwarded tokens each
    some = many[: 5 * len(few)]
    score = lambda path, room, branches: np.concatenate(_score_within(lm, path, contexts, branches, room)[0])
    try:
        # 8: so little that the prefix is cached, and what stands above a branching dropped and kept
        short, full = score("tree", 8, few), score("tree", budget, many)
        alone, together = score("plain", 8, some), score("plain", budget, some)
    except (ProbeError, torch.OutOfMemoryError):
        raise
    except Exception:  # whatever an unknown architecture makes of a 4D mask: the plain path serves it
        return False
    rounding = np.abs(alone - together).max()  # of rows of one sequence and of several: large for 4 bits on a GPU
    off = max(np.abs(part - alone[: len(part)]).max() for part in (short, full[: len(alone)]))
    tolerance = TOLERANCE["8bit" if lm.quantize == "8bit" else lm.model.dtype]
    return bool(off <= max(tolerance, ROUNDINGS * rounding))
