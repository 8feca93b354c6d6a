"""``logprobs``: log P(token) of every continuation token after its prompt, as rows."""

import time

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, texts_of
from probelib.lm.internals.masked import NOTE, PSEUDO, needs_generator
from probelib.lm.selfcheck import PATHS, score_by
from probelib.lm.tokens import check_length, not_twice, user_turn
from probelib.lm.tree import Tree


def logprobs(
    model,
    prompts: list[str],
    continuations: list[list[str]],
    end: bool = False,
    path: str = "auto",
    chat: bool = False,
    system: str | None = None,
    examples: list[tuple[str, str]] = (),
) -> pd.DataFrame:
    """Teacher-forced log-probabilities; one row per (prompt, continuation).

    prompts        texts, or one text; a repeated prompt costs nothing
    continuations  a list of continuations per prompt, e.g. [" Paris", " Lyon"], with the blank before the word; a text
                   stands for a list of one
    end            also return what follows: ``eos_logprob``, ``greedy_text``, ``greedy_done``. Forwards one more token
                   per row
    path           "auto" (the fastest one that passes the self-check on this model), or one of ``selfcheck.PATHS``; of a
                   masked language model "pseudo" or "pseudo-original" (see ``internals.masked``)
    chat           each prompt becomes a user turn of the tokenizer's chat template, after ``system`` (a system turn) and
                   ``examples`` ((user, assistant) turns); thinking is switched off where the template can. A continuation
                   loses its leading blank where the assistant's turn begins after white space

    columns
        prompt, candidate   indices into ``prompts`` and into its continuations
        n_tokens            tokens of the continuation
        logprob             sum over its tokens, nats (float64 sum of float32 terms)
        token_logprobs      array [n_tokens], nats
        greedy              whether every token is the arg-max: greedy decoding would generate exactly this
        eos_logprob         log P(end of sequence | prompt, continuation), nats; NaN without ``end`` or without an EOS
        greedy_text         the known beginning of the greedy output: the continuation's tokens as long as they are the
                            arg-max, then the first arg-max that differs or follows them. "" without ``end``
        greedy_done         whether the greedy output is known to end there (that arg-max is in ``LM.ends``)
        note                "" or, joined by "; ": "boundary" (the tokenizer would split the joined text differently),
                            "no blank" (the continuation goes on with the prompt's last word), "pseudo-log-likelihood"

    ``.attrs["cost"]`` counts requested, distinct and forwarded tokens, forwards, seconds and the path used.
    Raise ProbeError for an empty continuation, a sequence longer than the context, NaN or infinite logits.
    """
    started = time.perf_counter()
    prompts, continuations = _checked_texts(prompts, continuations)
    allowed = ("auto", *(PSEUDO if model.masked else PATHS))
    if path not in allowed:
        raise ProbeError(f"path is {path!r}; allowed for {model.name}: {', '.join(allowed)}")
    if end:
        needs_generator(model, "the probability of an end of text")
    if chat:
        prompts, continuations = _as_turns(model, prompts, continuations, system, examples)
    elif system is not None or examples:
        raise ProbeError("system and examples are turns of a chat: use chat=True")
    contexts, branches, rows = _requests(model, prompts, continuations, end)
    path = model.choose_path() if path == "auto" else path
    scores, argmax, cost = score_ids(model, contexts, branches, path)
    frame = _frame(model, rows, [ids for _, ids in branches], scores, argmax, end)
    frame.attrs["cost"] = cost | {
        "requested_tokens": sum(len(contexts[branches[b][0]]) + len(branches[b][1]) for _, _, b, _ in rows),
        "requests": len(rows),
        "seconds": time.perf_counter() - started,
        "path": path,
    }
    return frame


def _checked_texts(prompts, continuations) -> tuple[list[str], list[list[str]]]:
    """Prompts and their continuations as lists of texts; a single text stands for a list of one. ProbeError where they do not
    match or are no texts."""
    if isinstance(prompts, str):
        prompts, continuations = [prompts], [continuations]
    prompts = texts_of("prompts", prompts)
    if len(prompts) != len(continuations):
        raise ProbeError(f"{len(prompts)} prompts but {len(continuations)} lists of continuations")
    lists = [[texts] if isinstance(texts, str) else texts for texts in continuations]
    named = [f"continuations of the prompt {prompt[:50]!r}" for prompt in prompts]
    return prompts, [texts_of(name, texts) for name, texts in zip(named, lists, strict=True)]


def _as_turns(
    model, prompts: list[str], continuations: list[list[str]], system: str | None, examples
) -> tuple[list, list]:
    """Prompts as user turns; a continuation loses its leading blank where the assistant's turn begins after white space."""
    not_twice(model)
    turns = [user_turn(model.tokens, prompt, system, examples) for prompt in prompts]
    bare = [turn[-1:].isspace() for turn in turns]
    stripped = [
        [text.lstrip(" ") for text in texts] if cut else texts for cut, texts in zip(bare, continuations, strict=True)
    ]
    return turns, stripped


def _requests(model, prompts: list[str], continuations: list[list[str]], end: bool) -> tuple[list, list, list]:
    """Contexts (ids of the distinct prompts), distinct branches (index of the context, ids), and one row per request:
    (prompt, candidate, branch, note)."""
    distinct = list(dict.fromkeys(prompts))
    contexts = model.tokens.prompts(distinct)
    model.tokens.tokenize(prompts, continuations)
    number = {text: i for i, text in enumerate(distinct)}
    eos = model.eos if model.eos is not None else -1
    rows, branches, branch_of = [], [], {}
    for p, (prompt, texts) in enumerate(zip(prompts, continuations, strict=True)):
        for c, text in enumerate(texts):
            ids = model.tokens.continuation(text) + ((eos,) if end else ())
            key = (number[prompt], ids)
            if key not in branch_of:
                branch_of[key] = len(branches)
                branches.append(key)
                context, length = len(contexts[key[0]]), len(ids)
                whole = context + length + (len(model.tokens.finish) if model.masked else -1)
                check_length(model, prompt, max(context, length) if model.encoder_decoder else whole)
            rows.append((p, c, branch_of[key], _note(model, prompt, text)))
    return contexts, branches, rows


def _note(model, prompt: str, text: str) -> str:
    """The column ``note`` of a row."""
    letter = lambda character: character.isdigit() or character.lower() != character.upper()
    before, after = model.tokens.read(prompt), model.tokens.said(text)
    joined = before and letter(before[-1]) and letter(after[0]) and not model.encoder_decoder
    boundary = model.tokens.straddles(prompt, text)
    notes = {NOTE: model.masked, "boundary": boundary, "no blank": joined and not boundary}
    return "; ".join(note for note, holds in notes.items() if holds)


def score_ids(model, contexts: list[list[int]], branches: list[tuple[int, tuple[int, ...]]], path: str = "auto"):
    """``logprobs`` of token ids: arguments and results as in ``tree.score_tree``."""
    if not branches:
        return [], [], {"forwarded_tokens": 0, "forwards": 0}
    path = model.choose_path() if path == "auto" else path
    if path == "served":
        return model.score(contexts, branches)
    scores, argmax, cost = model.retry_on_oom(lambda budget: score_by(model, path, contexts, branches, budget))
    return scores, argmax, cost | {"budget": model.budget}


def _frame(model, rows: list[tuple], ids: list[tuple], scores: list, argmax: list, end: bool) -> pd.DataFrame:
    """The frame of ``logprobs``. ``rows`` as in ``_requests``; ids, scores and argmax have one entry per branch."""
    prompt, candidate, branch, notes = (list(column) for column in zip(*rows, strict=True)) if rows else ([],) * 4
    lengths = np.array([len(tokens) - end for tokens in ids], dtype=np.int64)
    texts = [_greedy(model, tokens, best) if end else ("", False) for tokens, best in zip(ids, argmax, strict=True)]
    of_tokens = [each[:length] for each, length in zip(scores, lengths, strict=True)]
    sums, greedy = np.empty(0), np.empty(0, dtype=bool)
    if ids:
        starts = np.cumsum(lengths) - lengths
        sums = np.add.reduceat(np.concatenate(of_tokens, dtype=np.float64), starts)
        equal = [np.equal(best[:n], tokens[:n]) for best, tokens, n in zip(argmax, ids, lengths, strict=True)]
        greedy = np.logical_and.reduceat(np.concatenate(equal), starts)
    return pd.DataFrame(
        {
            "prompt": np.array(prompt, dtype=np.int64),
            "candidate": np.array(candidate, dtype=np.int64),
            "n_tokens": lengths[branch],
            "logprob": sums[branch],
            "token_logprobs": pd.Series([of_tokens[b] for b in branch], dtype=object),
            "greedy": greedy[branch],
            "eos_logprob": np.array([float(scores[b][-1]) if end else np.nan for b in branch], dtype=np.float64),
            "greedy_text": np.array([texts[b][0] for b in branch], dtype=object),
            "greedy_done": np.array([texts[b][1] for b in branch], dtype=bool),
            "note": np.array(notes, dtype=object),
        }
    )


def _greedy(model, ids: tuple, best: np.ndarray) -> tuple[str, bool]:
    """``greedy_text`` and ``greedy_done`` from the arg-max along a continuation and after it."""
    equal = best[:-1] == np.asarray(ids[:-1])
    known = len(equal) if equal.all() else int(equal.argmin())  # this many agree; the next one is the first to differ
    return model.tokens.decode(best[: known + 1].tolist(), model.ends), int(best[known]) in model.ends


def tree_tokens(model, prompts: list[str], continuations: list[list[str]], end: bool = False) -> int:
    """Number of tokens that ``logprobs`` would forward on the tree for these requests (every distinct prefix once);
    nothing is forwarded."""
    tree, eos = Tree(), (model.eos if model.eos is not None else -1,) if end else ()
    for ids, texts in zip(model.tokens.prompts(prompts), continuations, strict=True):
        node = tree.walk(0, ids)
        for text in texts:
            tree.walk(node, (model.tokens.continuation(text) + eos)[:-1])
    return len(tree.token) - 1
