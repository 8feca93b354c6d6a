"""A model behind an OpenAI-style completions server ("http://localhost:8000/v1#NAME"). Token ids of
whole sequences are sent, the prompt once per candidate; the log-probabilities of their tokens come
back (``echo`` with ``logprobs``: vLLM). NAME is the model's on the server and its tokenizer's: a
Hugging Face id, a folder, an organism (``--served-model-name``). The first request is a check
(``Served.check``), and every response is compared with the ids that were sent:

    sent      t0    t1    t2    t3            one sequence: prompt and continuation, joined
    received  null  p(t1) p(t2) p(t3) p(g)    g: one generated token, which some servers require
"""

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from probelib.errors import ProbeError
from probelib.lm.internals.memory import parameters
from probelib.lm.model import Model
from probelib.lm.names import CHECKPOINTS, organisms
from probelib.lm.remote.transport import check_url, fetch_json
from probelib.lm.text import SENTENCES, digest, read_tokenizer

BATCH, IN_FLIGHT = 16, 4  # sequences per request, concurrent requests
TOLERANCE = 0.25  # nats between two batches of a model in half precision
SYSTEM = "You are a helpful assistant."  # said to chat models
FLOOR = -1000  # nats; servers write -9999 or so where they have no value
GREEDY = dict(temperature=0, top_p=1, repetition_penalty=1.0, return_tokens_as_token_ids=True)
SCORE = GREEDY | {"max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 1.0}
Scored = tuple[np.ndarray, list[int]]  # log-probs (NaN for the first token), most probable ids


class Served(Model):
    """A model behind a server, made by ``lm.load``. The server is contacted at first use."""

    paths, encoder_decoder, quantize, dtype = ("served",), False, None, "as served"
    device = SimpleNamespace(type="server")
    quantized_modules = math.nan  # unknown

    def __init__(self, name: str, address: str):
        self.url, _, self.model_name = address.partition("#")
        self.name, self._lock, self.tries = name, threading.Lock(), {}
        self._checked: dict = {}  # what the check measured
        self._sentinels: tuple = ()  # sequences of the check, and their scores
        self._answered_as: dict = {}  # the model that the first response names

    def _unsupported(self, *_, **__):
        what = "a server has no hidden states, gradients or beams. Load the model locally for those"
        raise ProbeError(f"{self.name}: {what}")

    hidden_states = _unsupported
    hf_model = config = property(_unsupported)

    def choose_path(self) -> str:
        """Return "served" once the server has passed its check."""
        with self._lock:
            self._checked = self._checked or self.check()
        return "served"

    def identity(self) -> dict:
        """The whole tokenizer, and log-probabilities (nats, 4 digits) of the check's sequences."""
        self.choose_path()
        measured = {"tokenizer": digest(self.tokenizer), "probe": self._checked["probe"]}
        return {"model": self.model_name, "endpoint": self.url} | measured

    def describe(self) -> dict:
        """Provenance: ``identity``, what the server reports, and what its check measured."""
        server = {key: self.card.get(key) for key in ("owned_by", "root", "max_model_len")}
        about = {"bos": self.tokens.bos_rule, "eos": self.tokenizer.eos_token, "server": server}
        return self.identity() | about | {"context": self.context, "check": self._checked}

    @cached_property
    def card(self) -> dict:
        """The server's entry for the model; ProbeError if it does not serve it."""
        try:
            cards = {str(card["id"]): card for card in fetch_json(self.url, "models")["data"]}
        except (LookupError, TypeError):
            cards = {}
        if self.model_name not in cards:
            serves = ", ".join(sorted(cards)) or "nothing"
            raise ProbeError(f"{self.url} serves {serves}, not {self.model_name!r}")
        return cards[self.model_name]

    @property
    def context(self) -> int:
        """Longest sequence in tokens: without the generated one and the one that is not counted."""
        return int(self.card.get("max_model_len") or 2**31) - 2

    @property
    def n_parameters(self) -> float:
        """All parameters, by the local files or the name; NaN if neither tells."""
        return parameters(self.model_name) or math.nan

    @cached_property
    def tokenizer(self):
        name = self.model_name
        return read_tokenizer(CHECKPOINTS / name if name in organisms() else name)[0]

    def id(self, token: str) -> int:
        """The id of a token as the server writes it, "token_id:17"."""
        number = str(token).removeprefix("token_id:")
        if number == token or not number.isdecimal() or int(number) >= len(self.tokenizer):
            self._fault(f"{str(token)[:40]!r} is not in the tokenizer, or no id (token_id:17)")
        return int(number)

    def _fault(self, what: str) -> NoReturn:
        hint = "use a server with echo and logprobs in /completions (vLLM), or load the model here"
        raise ProbeError(f"{self.url} ({self.card.get('owned_by')}): {what}. {hint}")

    def score(self, contexts: list[list[int]], branches: list[tuple[int, tuple[int, ...]]]):
        """Arguments and results as in ``tree.score_tree``."""
        sequences = [(*contexts[c], *(t for t in tokens if t >= 0)) for c, tokens in branches]
        sent = list(dict.fromkeys(sequences))
        found = dict(zip(sent, self._score_sequences([*map(list, sent)]), strict=True))
        self._check_again()
        logprobs, argmax = [], []
        for (context, tokens), sequence in zip(branches, sequences, strict=True):
            start, (values, best) = len(contexts[context]), found[sequence]
            span = slice(start, start + len(tokens))
            if len(best[span]) < len(tokens):  # the token -1: only the arg-max is wanted
                self._fault("it does not return the most probable token at the end")
            logprobs.append(values[span].astype(np.float32))
            argmax.append(np.array(best[span]))
        cost = {"forwarded_tokens": sum(map(len, sent)), "forwards": -(-len(sent) // BATCH)}
        return logprobs, argmax, cost

    def continue_ids(self, ids: list, length: int, beams: int, returned: int, batch: int):
        """As ``decode.generation.continue_ids``; instead of beams the most probable next tokens."""
        if beams > 1 and length > 1:
            self._unsupported()
        found, options = [], GREEDY | {"max_tokens": length, "logprobs": returned}
        for tokens, values, tops in map(self._columns, self._complete(ids, batch, **options)):
            if not all(map(_is_logprob, values)):
                self._fault(f"a generated token has no log-probability: {str(values)[:80]}")
            texts = [([self.id(token) for token in tokens], values)]
            if length == 1:
                top = tops[0] if tops and isinstance(tops[0], dict) else {}
                best = sorted((-v, self.id(token)) for token, v in top.items() if _is_logprob(v))
                texts = [([token], [-value]) for value, token in best[:returned]]
            if len(texts) < returned:
                self._fault(f"it ranks {len(texts)} of {returned} next tokens (--max-logprobs)")
            found.append(texts)
        self._check_again()
        new = sum(len(tokens) for texts in found for tokens, _ in texts) if length > 1 else 0
        return found, {"forwarded_tokens": sum(map(len, ids)) + new}

    def _score_sequences(self, sequences: list[list[int]], **changes) -> list[Scored]:
        """Scores, with one more entry (NaN, arg-max) if the server returns what follows."""
        choices = self._complete(sequences, **SCORE | changes)
        return [self._read(choice, ids) for choice, ids in zip(choices, sequences, strict=True)]

    def _complete(self, sequences: list, batch: int = BATCH, **options) -> list[dict]:
        """The server's choice for every sequence."""

        def ask(some: list) -> list[dict]:
            asked = {"model": self.model_name, "prompt": some} | options
            response = fetch_json(self.url, "completions", asked)
            try:
                choices = sorted(response["choices"], key=lambda choice: choice["index"])
                numbers = [choice["index"] for choice in choices]
                counted = (response.get("usage") or {}).get("prompt_tokens")
            except (LookupError, TypeError, AttributeError):
                self._fault(f"it responds without choices: {str(response)[:200]!r}")
            named = response.get("model")
            if named != self._answered_as.setdefault("model", named):
                self._fault(f"it answers as {named!r} now, and answered as {self._answered_as}")
            if options.get("echo") and counted not in (None, sum(map(len, some))):
                self._fault(f"it counts {counted} prompt tokens: it adds, drops or re-tokenizes")
            if numbers != list(range(len(some))):
                self._fault(f"it returns choices {numbers} for {len(some)} prompts")
            return choices

        batches = [sequences[i : i + batch] for i in range(0, len(sequences), batch)]
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            return [choice for choices in pool.map(ask, batches) for choice in choices]

    def _columns(self, choice: dict) -> tuple[list[str], list, list]:
        """tokens, token_logprobs and top_logprobs of a choice, of equal length."""
        found: Any = choice.get("logprobs")
        try:
            columns = found["tokens"], found["token_logprobs"], found["top_logprobs"]
            sizes = [*map(len, columns)]
        except (LookupError, TypeError):
            self._fault(f"it returns no log-probabilities of the prompt, only {str(found)[:80]}")
        if len(set(sizes)) > 1:
            self._fault(f"its log-probabilities are inconsistent: {sizes} entries")
        return columns

    def _read(self, choice: dict, ids: list[int]) -> Scored:
        """The scores of one choice, compared with the ids that were sent."""
        (tokens, values, tops), best = self._columns(choice), [-1]
        read = [*map(self.id, tokens)]
        if read[: len(ids)] != ids or len(read) > len(ids) + 1:
            what = f"it read {read[:20]}, not {ids[:20]}"
            self._fault(f"{what}: it ignores echo, truncates, re-tokenizes, adds a BOS or mixes")
        if values[0] is not None and values[0] == values[0]:  # null or NaN is right
            self._fault(f"the first token has a log-probability ({values[0]}): shifted, or a BOS")
        for value, top, token in zip(values[1:], tops[1:], [*ids[1:], -1], strict=False):
            top = top if isinstance(top, dict) else {}
            if not top or not all(map(_is_logprob, [value, *top.values()])):
                self._fault(f"{str(value)[:40]!r} or {str(top)[:80]!r} is no log-probability")
            most = max(top, key=lambda token: top[token])
            if value > top[most] + 1e-3:
                self._fault("a token is more probable than the most probable one: they are shifted")
            best.append(token if token >= 0 and value >= top[most] else self.id(most))
        return np.minimum([math.nan, *values[1 : len(ids)], math.nan], 0.0)[: len(best)], best

    def check(self) -> dict:
        """Test the server with 20 sentences; return what was measured. ProbeError names its fault:

        different sentences have different scores             (no response comes from a wrong cache)
        random tokens have different scores of many digits    (neither clipped nor rounded)
        beginnings with the server's own greedy text, in another order at another temperature, have
        the same scores    (neither shifted nor dependent on order, batch, later tokens or sampling)
        """
        ids = self.tokens.prompts(SENTENCES)
        first = self._score_sequences(ids)
        totals = [float(np.nansum(values)) for values, _ in first]
        plain = sorted(set(range(len(self.tokenizer))) - set(self.tokenizer.all_special_ids))
        drawn = np.random.default_rng(0).choice(plain, (2, 24)).tolist()
        values = np.sort([values[1:24] for values, _ in self._score_sequences(drawn)], axis=None)
        if values[0] == values[2] or (np.abs(values - values.round(2)) < 1e-9).all():
            self._fault("its log-probabilities are clipped or rounded")
        if len(set(np.round(totals, 6))) < len(totals):
            self._fault("two sentences have the same scores: it caches under a wrong key")
        cut = [i[:-2] for i in ids]
        texts = [text for (text,) in self.continue_ids(cut, 4, 1, 1, BATCH)[0]]
        whole = [i + tokens for i, (tokens, _) in zip(cut, texts, strict=True)]
        again = self._score_sequences(whole[::-1], temperature=0.5)[::-1]
        own, other = [], 0
        for i, (tokens, new), (known, _), (_, best) in zip(cut, texts, first, again, strict=True):
            own.append((np.append(known[: len(i)], new), tokens))
            other += tokens[:1] != best[len(i) : len(i) + 1]
        if other > len(ids) // 4:  # fewer may be near ties in half precision
            self._fault("greedy decoding does not generate the most probable token (a penalty?)")
        fault = "are shifted, or depend on order, later tokens or temperature"
        gap = self._compare(own, again, fault)
        self._sentinels = ids[:4], first[:4]
        return {"nats": gap, "probe": [float(f"{total:.4g}") for total in totals]}

    def _compare(self, first: list[Scored], again: list[Scored], fault: str) -> float:
        """Largest difference in nats over the tokens that both have; a fault if it is large."""
        pairs = [(a, b) for (a, _), (b, _) in zip(first, again, strict=True)]
        gap = max(float(np.nanmax(np.abs(a[1 : len(b)] - b[1 : len(a)]))) for a, b in pairs)
        if not gap <= TOLERANCE:
            self._fault(f"its log-probabilities differ by {gap:.2f} nats: they {fault}")
        return round(gap, 5)

    def _check_again(self) -> None:
        """After every call: the server still scores the check's first sequences as at first."""
        if self._sentinels:
            ids, first = self._sentinels
            fault = "were others at the check; what this call returned is not kept"
            self._compare(first, self._score_sequences(ids), fault)


def _is_logprob(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and FLOOR < value <= 1e-3


class ChatModel:
    """A chat model at an address up to the version ("http://localhost:8000/v1"); it can only
    ``generate``. ``answered_as`` holds the model that the first response names."""

    def __init__(self, name: str, url: str):
        check_url(url)
        self.name, self.url, self.answered_as = name, url, dict[str, Any]()

    def chat(self, text: str) -> str:
        """The text unchanged: the server applies its chat template."""
        return text

    def identity(self) -> dict:
        """Everything that changes a response, as far as a client knows."""
        return {"model": self.name, "endpoint": self.url, "system": SYSTEM, "temperature": 0}

    describe = identity

    def generate(self, prompts: list[str], max_new_tokens: int = 800, chat: bool = True):
        """The response to each prompt at temperature 0; columns as in ``lm.generate``."""
        started, answers = time.perf_counter(), dict[str, str]()
        body = {"model": self.name, "temperature": 0, "max_tokens": max_new_tokens}
        for prompt in dict.fromkeys(prompts):
            turns = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]
            answer = fetch_json(self.url, "chat/completions", body | {"messages": turns})
            try:
                text, named = answer["choices"][0]["message"]["content"], answer.get("model")
            except (LookupError, TypeError, AttributeError):
                text = named = None
            if not isinstance(text, str):  # thoughts may have used all tokens up
                what = f"{self.url}: {self.name!r} returns no text (max_tokens={max_new_tokens})"
                raise ProbeError(f"{what}: {str(answer)[:200]!r}")
            if named != (before := self.answered_as.setdefault("model", named)):
                raise ProbeError(f"{self.url} answers as {named!r} now, and as {before!r} before")
            answers[prompt] = text
        columns = {"prompt": range(len(prompts)), "rank": 0, "text": [answers[p] for p in prompts]}
        frame = pd.DataFrame(columns | {"n_tokens": -1, "logprob": np.nan})
        frame.attrs["cost"] = {"requests": len(answers), "seconds": time.perf_counter() - started}
        return frame
