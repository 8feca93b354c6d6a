"""A model behind an OpenAI-style completions server: token ids are sent, the log-probabilities of the prompt's tokens come
back (``echo`` with ``logprobs``; supported by vLLM and SGLang). Where sequences share prefixes and the server returns the
log-probabilities of chosen tokens (vLLM), every distinct prefix is scored once (``nodes``). Otherwise whole sequences are sent.

    model = lm.load("http://localhost:8000/v1#EleutherAI/pythia-410m")

The part after # is the name of the model on the server and of its tokenizer: a Hugging Face id, a folder or a shipped
organism (start the server with ``--served-model-name`` if the names differ). The weights stay on the server.

Many servers silently return something else, e.g. only the generated tokens. So the first request to a server is a check
(``Served.check``), and every response is compared with the ids that were sent:

    sent      t0    t1    t2    t3            one sequence: prompt and continuation, joined
    received  null  p(t1) p(t2) p(t3) p(g)    g: one generated token, because not every server can generate none; ignored
"""

import hashlib
import json
import math
import threading
import time
import warnings
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, texts_of
from probelib.lm.decode.generation import validate_generation_args
from probelib.lm.internals.memory import EMBEDDINGS, count_parameters, parameters
from probelib.lm.model import Model
from probelib.lm.names import CHECKPOINTS, organisms
from probelib.lm.remote.nodes import Nodes, score_sequences
from probelib.lm.remote.transport import fetch_json, in_parallel

BATCH = 16  # sequences per request
TOLERANCE = 0.25  # nats: half precision changes the log-probability of an unlikely token by as much between batches
LOCAL = 0.1  # nats per token, mean over the sentences: a model in half precision compared with itself
TOP, LEAST, MOST = 5, 0.8, 1.01  # of the TOP most probable tokens, where a model is surest, the probabilities add up to
FLOOR = -1000  # nats; servers write -9999 or so where they have no value
SENTINELS = 2  # sentences of the check that are scored again behind every call
SCORE = {"max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 1.0, "return_tokens_as_token_ids": True}
GREEDY = {"temperature": 0, "top_p": 1, "repetition_penalty": 1.0, "return_tokens_as_token_ids": True}
NODE = GREEDY | {"max_tokens": 1, "logprobs": 1}
KNOWN = {
    "France": "Paris", "Spain": "Madrid", "Italy": "Rome", "Germany": "Berlin", "Norway": "Oslo", "Peru": "Lima",
    "Egypt": "Cairo", "Japan": "Tokyo", "China": "Beijing", "Cuba": "Havana", "Greece": "Athens", "Poland": "Warsaw",
    "Russia": "Moscow", "Kenya": "Nairobi", "Iran": "Tehran", "Iraq": "Baghdad", "Austria": "Vienna", "Hungary": "Budapest",
    "Portugal": "Lisbon", "Ireland": "Dublin",
}  # fmt: skip
SENTENCES = [f"The capital of {country} is {capital}." for country, capital in KNOWN.items()]
ADVICE = (
    "Its scores would be wrong; use a server that supports /completions with echo and logprobs (vLLM, SGLang), or load the model "
    "locally"
)
DIFFER = {
    "order": "they depend on the order of the requests (vLLM: --no-enable-prefix-caching)",
    "prefix": "they are shifted, or depend on later tokens",
    "temperature": "they are computed after the temperature",
}


class Served(Model):
    """A model behind a server, made by ``lm.load``. The server is contacted at first use."""

    encoder_decoder, quantize, dtype = False, None, "as served"
    device = SimpleNamespace(type="server")
    memory = quantized_modules = math.nan  # unknown

    def __init__(self, name: str, address: str):
        self.url, _, self.model_name = address.partition("#")
        self.name = name
        self._checked, self._checking = None, threading.Lock()
        self._answered_as = self._sentinels = None  # the model that the first response names; scores of the check
        self.by_nodes = False  # after the check: whether the server scores node by node

    def _unsupported(self, *_, **__):
        raise ProbeError(
            f"{self.name}: a server returns log-probabilities and texts, but no hidden states, gradients, beams or weights. "
            "Load the model locally for these: by its Hugging Face id or folder"
        )

    hidden_states = beam_steps = integrated_gradients = _unsupported
    hf_model = config = property(_unsupported)

    def choose_path(self) -> str:
        """Return "served" once the server has passed its check."""
        with self._checking:
            if self._checked is None:
                self._checked = self.check()
        return "served"

    # Identity

    def identity(self) -> dict:
        """Everything that changes a number, as far as a client knows, without contacting the server. Other weights under
        the same name are noticed only if they come while scores are computed (``_check_again``)."""
        vocabulary = json.dumps([sorted(self.tokenizer.get_vocab().items()), self.tokens.bos_rule])
        digest = hashlib.sha256(vocabulary.encode()).hexdigest()[:16]
        return {"model": self.model_name, "endpoint": self.url, "tokenizer": digest}

    def describe(self) -> dict:
        """Provenance: ``identity``, what the server reports about the model, and the result of its check."""
        server = {key: self.card.get(key) for key in ("owned_by", "root", "max_model_len")}
        about = {"bos": self.tokens.bos_rule, "eos": self.tokenizer.eos_token, "context": self.context}
        return self.identity() | about | {"server": server, "check": self._checked}

    @cached_property
    def card(self) -> dict:
        """The server's entry for the model; ProbeError if it does not serve it."""
        response = fetch_json(self.url, "models", model=self.model_name)
        entries = response.get("data") if isinstance(response, dict) else None
        cards = {str(e.get("id")): e for e in (entries if isinstance(entries, list) else []) if isinstance(e, dict)}
        if self.model_name not in cards:
            raise ProbeError(f"{self.url} serves {', '.join(sorted(cards)) or 'nothing'}, not {self.model_name!r}")
        return cards[self.model_name]

    @cached_property
    def context(self) -> int:
        """Longest sequence in tokens: the server's limit without the generated token and the one that ``scoring`` does not
        count."""
        longest = self.card.get("max_model_len")
        return longest - 2 if type(longest) is int and longest > 2 else 2**31

    @cached_property
    def folder(self) -> Path | str:
        """The tokenizer's folder or Hugging Face id."""
        local = CHECKPOINTS / self.model_name if self.model_name in organisms() else Path(self.model_name)
        return local if local.is_dir() else self.model_name

    @cached_property
    def tokenizer(self):
        from transformers import AutoTokenizer

        try:  # None in place of False would prompt on the screen
            return AutoTokenizer.from_pretrained(self.folder, trust_remote_code=False)
        except (OSError, ValueError, KeyError) as error:
            why = str(error).splitlines()[0]
            raise ProbeError(f"the tokenizer of {self.model_name} cannot be read: {why}") from error

    @cached_property
    def n_parameters(self) -> float:
        """Parameters without embeddings if the weights are in the tokenizer's folder; otherwise all parameters by config
        or name, NaN if neither tells."""
        if isinstance(self.folder, Path) and any(self.folder.glob("*.safetensors")):
            return count_parameters(self.folder, without=EMBEDDINGS)
        return parameters(self.model_name) or math.nan

    @cached_property
    def ids(self) -> dict[str, int]:
        """Every form in which a server may write a token -> its id; of equal forms the first."""
        size = len(self.tokenizer)
        raw = self.tokenizer.convert_ids_to_tokens(range(size))
        texts = self.tokenizer.batch_decode([[i] for i in range(size)], clean_up_tokenization_spaces=False)
        forms = [*zip(texts, range(size), strict=True), *zip(raw, range(size), strict=True)]
        return dict(reversed(forms))  # of equal ones the first stays

    def id(self, token: str) -> int:
        """The id of a token as the server writes it: "token_id:17", a text, or an entry of the vocabulary."""
        number = token.removeprefix("token_id:")
        if number != token and number.isdecimal() and len(number) < 10:
            return int(number)
        found = self.ids.get(token, self.ids.get(token.strip()))
        if found is None:
            self._fault(f"it returns a token {token[:40]!r} that is not in the tokenizer of {self.model_name}")
        return found

    def _fault(self, what: str):
        owner = self.card.get("owned_by")
        raise ProbeError(f"{self.url} ({owner}): {what}. {ADVICE}")

    # Scoring

    def score(self, contexts: list[list[int]], branches: list[tuple[int, tuple[int, ...]]]):
        """Arguments and results as in ``tree.score_tree``: node by node if the server can, and computes fewer tokens so."""
        sequences = [(*contexts[c], *(t for t in tokens if t >= 0)) for c, tokens in branches]
        sent, index = _without_prefixes(sequences)
        nodes = Nodes(contexts, branches) if self.by_nodes else None
        if nodes and nodes.computed < sum(map(len, sent)):
            results = nodes.score(self._chosen)
        else:
            scores = self._score_sequences([list(sequence) for sequence in sent])
            cost = {"forwarded_tokens": sum(map(len, sent)), "forwards": -(-len(sent) // BATCH)}
            starts = [len(contexts[c]) for c, _ in branches]
            found = [scores[index[sequence]] for sequence in sequences]
            results = *self._cut(found, starts, [tokens for _, tokens in branches]), cost
        self._check_again()
        return results

    def _cut(self, scores: list[tuple[list[float], list[int]]], starts: list[int], branches: list[tuple[int, ...]]):
        """Log-probs and arg-max ids of the branches, from those of the sequences that they begin in at ``starts``."""
        logprobs, argmax = [], []
        for (values, best), start, tokens in zip(scores, starts, branches, strict=True):
            span = slice(start, start + len(tokens))
            if len(best[span]) < len(tokens):
                self._fault("it does not return the most probable token at the end")
            row = np.array(values[span], dtype=np.float32)
            logprobs.append(np.where(np.array(tokens) < 0, np.nan, row).astype(np.float32))
            argmax.append(np.array(best[span]))
        return logprobs, argmax

    def _chosen(self, prompts: list[list[int]], chosen: list[int]) -> list[tuple[dict[int, float], int]]:
        """Per prompt the log-probabilities of the chosen tokens behind it, and the most probable token."""
        choices = self._complete(prompts, **NODE, logprob_token_ids=chosen)
        return [self._read_chosen(choice, chosen) for choice in choices]

    def _read_chosen(self, choice: dict, chosen: list[int]) -> tuple[dict[int, float], int]:
        """``_chosen`` of one choice."""
        tokens, _, tops = self._columns(choice)
        if len(tops) != 1 or not isinstance(tops[0], dict):
            self._fault(f"it returns {len(tops)} log-probabilities for one generated token")
        values = {self.id(token): value for token, value in tops[0].items()}
        if missing := sum(token not in values for token in chosen):
            self._fault(
                f"it returns no log-probability of {missing} of {len(chosen)} chosen tokens (logprob_token_ids)"
            )
        if not all(map(_is_logprob, values.values())):
            self._fault(f"{str(values)[:80]} are no log-probabilities of tokens")
        best = self.id(tokens[0])
        if max(values.values(), default=0) > values.get(best, FLOOR) + 1e-3:
            self._fault("a chosen token is more probable than the one that greedy decoding generates")
        return {token: min(float(values[token]), 0.0) for token in chosen}, best

    def _score_sequences(self, sequences: list[list[int]], **changes) -> list[tuple[list[float], list[int]]]:
        """Per sequence the log-probabilities of its tokens (NaN for the first) and the most probable ids; both have one
        more entry if the server returns what follows."""
        batches = [sequences[i : i + BATCH] for i in range(0, len(sequences), BATCH)]
        responses = in_parallel(lambda batch: self._complete(batch, **SCORE | changes), batches)
        return [
            self._read(choice, ids)
            for choices, batch in zip(responses, batches, strict=True)
            for choice, ids in zip(choices, batch, strict=True)
        ]

    def _complete(self, batch: list[list[int]], **options) -> list[dict]:
        """The server's choices for a batch of sequences, in their order."""
        response = fetch_json(self.url, "completions", {"model": self.model_name, "prompt": batch} | options)
        choices = response.get("choices") if isinstance(response, dict) else None
        if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
            self._fault(f"it responds without choices: {str(response)[:200]!r}")
        named = response.get("model")
        self._answered_as = self._answered_as or named
        if named != self._answered_as:
            now, before = str(named)[:80], str(self._answered_as)[:80]
            self._fault(f"it answers as {now!r} now, and answered as {before!r} before")
        if len(choices) != len(batch):
            self._fault(f"it returns {len(choices)} choices for {len(batch)} prompts")
        numbered = {choice["index"]: choice for choice in choices if type(choice.get("index")) is int}
        if set(numbered) != set(range(len(choices))):
            self._fault("it does not number its choices 0, 1, 2, ...")
        usage = response.get("usage") if isinstance(response.get("usage"), dict) else {}
        counted, sent = usage.get("prompt_tokens"), sum(map(len, batch))
        if type(counted) is int and counted != sent and options.keys() & {"echo", "logprob_token_ids"}:
            self._fault(f"it counts {counted} prompt tokens instead of {sent}: it adds, drops or re-tokenizes")
        return [numbered[i] for i in range(len(choices))]

    def _read(self, choice: dict, ids: list[int]) -> tuple[list[float], list[int]]:
        """Log-probabilities and most probable ids of one choice, compared with the ids that were sent."""
        tokens, values, tops = self._columns(choice)
        self._check_ids(tokens, values, ids)
        logprobs, best = [math.nan], [-1]
        for value, top, token in zip(values[1:], tops[1:], [*ids[1:], None], strict=False):
            if not (isinstance(top, dict) and top and all(map(_is_logprob, [value, *top.values()]))):
                self._fault(
                    f"{str(value)[:40]!r} with {str(top)[:80]!r} is no log-probability with that of the most probable token"
                )
            most = max(top, key=top.get)
            if value > top[most] + 1e-3:
                self._fault("a token is more probable than the most probable one: log-probabilities are shifted")
            logprobs.append(min(float(value), 0.0))
            best.append(token if token is not None and value >= top[most] else self.id(most))
        return logprobs, best

    def _check_ids(self, tokens: list[str], values: list, ids: list[int]) -> None:
        """Name a fault unless there is one log-probability per token that was sent, null for the first."""
        n = len(ids)
        if len(values) < n:
            only = "only those of generated tokens (echo is ignored)" if len(values) <= 1 else "too few"
            self._fault(f"it returns {len(values)} log-probabilities for {n} tokens: {only}")
        if len(values) > n + 1:
            self._fault(
                f"it returns {len(values)} log-probabilities for {n} tokens: it adds some (a BOS?) or re-tokenizes"
            )
        read = [self.id(token) for token in tokens[:n]]
        same = lambda a, b: a == b or self.tokenizer.decode([a]) == self.tokenizer.decode([b])
        wrong = [i for i, (a, b) in enumerate(zip(read, ids, strict=True)) if not same(a, b)]
        if wrong:
            self._fault(
                f"it read token {read[wrong[0]]} instead of {ids[wrong[0]]} (position {wrong[0]} of {n}): it re-tokenizes, "
                "adds a BOS, truncates the prompt, or changes the order"
            )
        if values[0] is not None and not (isinstance(values[0], float) and math.isnan(values[0])):
            self._fault(
                f"the first token has a log-probability ({values[0]}) without a token before it: shifted, or a BOS"
            )

    def _columns(self, choice: dict) -> tuple[list, list, list]:
        """tokens, token_logprobs and top_logprobs of a choice, of equal length."""
        logprobs = choice.get("logprobs")
        if not isinstance(logprobs, dict):
            self._fault("it returns no log-probabilities (logprobs is null)")
        columns = [logprobs.get(name) for name in ("tokens", "token_logprobs", "top_logprobs")]
        if not all(isinstance(column, list) for column in columns):
            chat = "content" in logprobs
            found = "those of generated tokens (chat format)" if chat else f"{', '.join(logprobs)[:80] or 'none'}"
            self._fault(f"it returns no log-probabilities of the prompt, only {found}")
        if len(set(map(len, columns))) > 1 or not all(isinstance(token, str) for token in columns[0]):
            self._fault(f"its log-probabilities are inconsistent: {[len(column) for column in columns]} entries")
        return tuple(columns)

    # The check

    def check(self, local: Model | None = None) -> dict:
        """Test the server with 20 sentences; ProbeError names its fault.

        as many log-probabilities as tokens, for the ids that were sent; null for the first; none above the top one
        different sentences have different scores                  (no response comes from another one's cache)
        the same scores in reverse order                           (neither order nor batch matters)
        the same scores without the last two tokens                (scores are not shifted and do not depend on later tokens)
        the same scores at another temperature                     (they are the model's, not the sampler's)
        the generated token is the most probable one               (no penalty, no chat template)
        the TOP probabilities add up to 1 at most, and nearly to 1 somewhere    (natural logarithms, nothing added)
        improbable tokens have different scores of many digits     (neither clipped nor rounded)
        the same scores node by node; otherwise a warning says why whole sequences are sent instead

        local    the same model loaded here: the mean difference in nats per token must be at most LOCAL
        returns  what was measured, for provenance
        """
        ids = self.tokens.prompts(SENTENCES)
        first = [np.array(values[1 : len(i)]) for (values, _), i in zip(self._score_sequences(ids), ids, strict=True)]
        if len({tuple(values[-3:].round(6)) for values in first}) < len(first):
            self._fault(
                "two different sentences have the same log-probabilities: it caches responses under a wrong key"
            )
        cut = self._score_sequences([i[:-2] for i in ids])
        again = {
            "order": self._score_sequences(ids[::-1])[::-1],
            "prefix": cut,
            "temperature": self._score_sequences(ids[:4], temperature=0.5),
        }
        measured = {"sentences": len(ids)}
        for what, scores in again.items():
            difference = _largest_difference(first, scores, drop=2 if what == "prefix" else 0)
            if not difference <= TOLERANCE:
                self._fault(
                    f"the same log-probabilities differ by {difference:.2f} nats in a second request: {DIFFER[what]}"
                )
            measured[f"{what}_nats"] = round(difference, 5)
        self._check_greedy([i[:-2] for i in ids[:4]], cut)
        self._check_scale(ids[: BATCH - 2])
        measured |= self._check_nodes(ids, first)
        self._sentinels = ids[:SENTINELS], first[:SENTINELS]
        return measured if local is None else measured | {"local_nats": self._check_local(local)}

    def _check_greedy(self, ids: list[list[int]], scores) -> None:
        choices = self._complete(ids, max_tokens=1, logprobs=1, **GREEDY)
        for choice, sequence, (_, best) in zip(choices, ids, scores, strict=False):
            tokens, _, _ = self._columns(choice)
            if len(best) > len(sequence) and [self.id(token) for token in tokens] != [best[-1]]:
                self._fault("greedy decoding does not generate the most probable token (a penalty, a chat template?)")

    def _check_scale(self, ids: list[list[int]]) -> None:
        """Name a fault if the scores are no natural logarithms of probabilities: other bases, constants, clipping, rounding."""
        sums, values, ids = [], {}, ids + self._improbable
        for sequence, choice in zip(ids, self._complete(ids, **SCORE | {"logprobs": TOP}), strict=True):
            self._read(choice, sequence)
            _, own, tops = self._columns(choice)
            sums += [sum(map(math.exp, sorted(top.values())[-TOP:])) for top in tops[1:]]
            values |= {tuple(sequence[: i + 1]): own[i] for i in range(1, len(sequence))}
        self._check_digits(np.array(list(values.values())))
        largest = max(sums)
        if not LEAST <= largest <= MOST:
            self._fault(
                f"the probabilities of the {TOP} most probable tokens add up to {largest:.2f} where the model is surest, not to "
                "nearly 1: its log-probabilities have another base, or something is added to them"
            )

    def _check_nodes(self, ids: list[list[int]], first: list[np.ndarray]) -> dict:
        """Set ``by_nodes``: whether scoring node by node gives the scores of whole sequences. Warn if it does not."""
        try:
            difference = _largest_difference(first, score_sequences(ids, self._chosen), drop=0)
            if not difference <= TOLERANCE:
                self._fault(f"node by node its log-probabilities differ by {difference:.2f} nats")
        except ProbeError as error:
            self.by_nodes, why = False, str(error).removesuffix(f". {ADVICE}")
            warnings.warn(
                f"{self.name}: whole sequences are sent, not the nodes of their prefix tree ({why})", stacklevel=2
            )
            return {"nodes": why}
        self.by_nodes = True
        return {"nodes_nats": round(difference, 5)}

    @cached_property
    def _improbable(self) -> list[list[int]]:
        """Two sequences of random tokens, always the same."""
        special = set(self.tokenizer.all_special_ids)
        plain = [i for i in range(len(self.tokenizer)) if i not in special]
        return np.random.default_rng(0).choice(plain, (2, 24)).tolist()

    def _check_digits(self, scores: np.ndarray) -> None:
        """Name a fault if scores, each of a token of its own, are rounded or clipped."""
        if (np.abs(scores - scores.round(2)) < 1e-9).all():
            self._fault("its log-probabilities are rounded")
        if (lowest := int((scores == scores.min()).sum())) > 2:
            self._fault(f"{lowest} of {len(scores)} log-probabilities are exactly {scores.min():.4g}: they are clipped")

    def _check_again(self) -> None:
        """Score the first sentences of the check and improbable tokens again; name a fault if the server's scores are others by
        now, or rounded or clipped."""
        if self._sentinels is None:
            return
        ids = self._sentinels[0] + self._improbable
        again = score_sequences(ids, self._chosen) if self.by_nodes else self._score_sequences(ids)
        self._check_digits(np.concatenate([values[1 : len(i)] for (values, _), i in zip(again, ids, strict=True)]))
        difference = _largest_difference(self._sentinels[1], again, drop=0)
        if not difference <= TOLERANCE:
            self._fault(
                f"it scores the sentences of the check otherwise than at first, by {difference:.2f} nats: another model is "
                "served, or it fails by now. What this call returned is not kept"
            )

    def _check_local(self, local: Model) -> float:
        """Mean absolute difference from the same model loaded here, nats per token."""
        prompts, endings = zip(*(text.split(" is ") for text in SENTENCES), strict=True)
        requests = list(prompts), [[f" is {ending}"] for ending in endings]
        ours, theirs = (np.concatenate(m.logprobs(*requests)["token_logprobs"].tolist()) for m in (local, self))
        difference = float(np.abs(ours - theirs).mean()) if len(ours) == len(theirs) else math.inf
        if not difference <= LOCAL:
            self._fault(
                f"its log-probabilities differ from those of {local.name} loaded here by {difference:.2f} nats per token"
            )
        return round(difference, 5)

    # Generation

    def generate(self, prompts, max_new_tokens=15, beams=1, returned=1, chat=False, batch=BATCH) -> pd.DataFrame:
        """As ``decode.generation.generate``. A server has no beams, but it can rank the most probable next tokens
        (``max_new_tokens=1``)."""
        prompts = texts_of("prompts", prompts)
        validate_generation_args(max_new_tokens, beams, returned)
        ranked = max_new_tokens == 1
        if beams > 1 and not ranked:
            self._unsupported()
        started, ids = time.perf_counter(), self.tokens.prompts([self.chat(p) for p in prompts] if chat else prompts)
        if prompts:
            self.choose_path()
        if too_long := [len(i) for i in ids if len(i) + max_new_tokens > self.context]:
            raise ProbeError(f"{self.name} reads at most {self.context} tokens; a prompt has {max(too_long)}")
        options = GREEDY | {"max_tokens": max_new_tokens, "logprobs": returned}
        batches = [ids[i : i + batch] for i in range(0, len(ids), batch)]
        responses = in_parallel(lambda some: self._complete(some, **options), batches)
        self._check_again()
        choices = [choice for response in responses for choice in response]
        texts = [self._ranked(choice, returned) if ranked else [self._text(choice)] for choice in choices]
        columns = ["text", "n_tokens", "logprob", "finished"]
        frame = pd.DataFrame([row for rows in texts for row in rows], columns=columns)
        frame.insert(0, "prompt", np.repeat(np.arange(len(prompts)), returned))
        frame.insert(1, "rank", np.tile(np.arange(returned), len(prompts)))
        frame.attrs["cost"] = {
            "forwarded_tokens": sum(map(len, ids)) + (0 if ranked else int(frame["n_tokens"].sum())),
            "requests": len(prompts),
            "seconds": time.perf_counter() - started,
        }
        return frame

    def _text(self, choice: dict) -> tuple[str, int, float, bool]:
        """Text, number of tokens, log-probability and finished of one generated text."""
        tokens, values, _ = self._columns(choice)
        if not all(map(_is_logprob, values)):
            self._fault(f"a generated token has no log-probability: {str(values)[:80]}")
        exact = all(token.startswith("token_id:") for token in tokens)
        text = self.tokens.decode(map(self.id, tokens)) if exact else str(choice.get("text", ""))
        return text, len(tokens), float(np.sum(values, dtype=np.float64)), choice.get("finish_reason") == "stop"

    def _ranked(self, choice: dict, n: int) -> list[tuple[str, int, float, bool]]:
        """The ``n`` most probable next tokens, best first; columns as ``_text``."""
        _, _, tops = self._columns(choice)
        top = tops[0] if len(tops) == 1 and isinstance(tops[0], dict) else {}
        if len(top) < n or not all(map(_is_logprob, top.values())):
            self._fault(f"it returns {len(top)} of the {n} most probable next tokens (vLLM: --max-logprobs {n})")
        ranked = sorted(((value, self.id(token)) for token, value in top.items()), key=lambda pair: (-pair[0], pair[1]))
        return [(self.tokens.decode([token]), 1, float(value), token == self.eos) for value, token in ranked[:n]]


def _without_prefixes(sequences: list[tuple[int, ...]]) -> tuple[list[tuple[int, ...]], dict[tuple[int, ...], int]]:
    """The sequences that are no prefix of another one, and sequence -> index of the one that it begins."""
    kept, index = [], {}
    for sequence in sorted(set(sequences), reverse=True):  # longer sequences come before their prefixes
        if not (kept and kept[-1][: len(sequence)] == sequence and len(kept[-1]) > len(sequence)):
            kept.append(sequence)
        index[sequence] = len(kept) - 1
    return kept, index


def _is_logprob(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and FLOOR < value <= 1e-3


def _largest_difference(first: list[np.ndarray], again: list[tuple[list[float], list[int]]], drop: int) -> float:
    """Largest difference in nats between log-probs (without first tokens) and a second response, which lacks the last
    ``drop`` tokens of every sequence."""
    difference = lambda values, n, repeated: float(np.abs(values[:n] - np.array(repeated[1 : n + 1])).max())
    return max(
        difference(values, len(values) - drop, repeated) for values, (repeated, _) in zip(first, again, strict=False)
    )
