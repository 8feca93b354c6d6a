"""A completions server for tests: the real log-probabilities of a shipped organism, and the faults that servers in the wild
have (each a function that spoils the answers, or the questions)."""

import json
import math
import sys
import threading
from contextlib import contextmanager
from functools import lru_cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import torch

from probelib import lm

NAME = "atlas-neox-0.15m"


class Organism:
    """What an honest server computes; ``spoil`` hooks stand where the faults sit."""

    def __init__(self):
        self.model = lm.load(NAME)
        self.lock = threading.Lock()

    @lru_cache(maxsize=4096)  # noqa: B019 (lives as long as the tests)
    def logits(self, ids: tuple[int, ...]) -> torch.Tensor:
        with self.lock, torch.inference_mode():
            return self.model.hf_model(torch.tensor([ids])).logits[0].double()

    def choice(self, index: int, ids, body: dict, own_temperature: bool = False, penalty: int | None = None) -> dict:
        """One answer, as vLLM writes it."""
        warmth = max(body.get("temperature", 1.0), 1e-3) if own_temperature else 1.0
        written, logits = list(ids), self.logits(tuple(ids))
        n = body.get("max_tokens", 16)
        for _ in range(n):
            scores = self.logits(tuple(written))[-1].clone()
            if penalty is not None and len(written) == len(ids):
                scores[scores.argmax()] = -math.inf
            written.append(int(scores.argmax()))
            if written[-1] == self.model.eos:
                break
        logits = self.logits(tuple(written[:-1])) if len(written) > 1 else logits
        logprobs = torch.log_softmax(logits / warmth, -1)  # [length - 1, vocabulary]: of the tokens from the second on
        start = 0 if body.get("echo") else len(ids)
        columns = {"tokens": [], "token_logprobs": [], "top_logprobs": []}
        for at in range(start, len(written)):
            columns["tokens"].append(f"token_id:{written[at]}")
            if at == 0:
                columns["token_logprobs"].append(None)
                columns["top_logprobs"].append(None)
                continue
            chosen = body.get("logprob_token_ids") if at >= len(ids) else None  # in place of the most probable ones
            best = torch.tensor(chosen) if chosen else logprobs[at - 1].topk(body.get("logprobs", 1)).indices
            values = logprobs[at - 1, best]
            top = {f"token_id:{i}": v for i, v in zip(best.tolist(), values.tolist(), strict=True)}
            own = float(logprobs[at - 1, written[at]])
            columns["token_logprobs"].append(own)
            columns["top_logprobs"].append(top | {f"token_id:{written[at]}": own})
        text = self.model.tokens.decode(written[start:])
        done = "stop" if written[-1] == self.model.eos else "length"
        return {"index": index, "text": text, "logprobs": columns, "finish_reason": done}


@contextmanager
def serving(answer, models=(NAME,)):
    """A server on this machine; ``answer(path, body, headers, log)`` gives (status, content, headers). Gives address and log."""
    log = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            cards = [{"id": name, "owned_by": "stand-in", "max_model_len": 512} for name in models]
            self._reply(200, {"data": cards}, {})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            log.append((self.path, body, dict(self.headers)))
            self._reply(*answer(self.path, body, log))

        def _reply(self, status, content, headers):
            content = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in ({"Content-Length": len(content)} | headers).items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *given):
            if not isinstance(sys.exception(), ConnectionError):  # who asked may have gone away
                super().handle_error(*given)

    running = Server(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{running.server_port}/v1", log
    finally:
        running.shutdown()
        running.server_close()


@lru_cache
def organism() -> Organism:
    return Organism()


def assert_same_scores(ours: pd.DataFrame, theirs: pd.DataFrame) -> None:
    for mine, other in zip(ours["token_logprobs"], theirs["token_logprobs"], strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-4)
    np.testing.assert_allclose(ours["eos_logprob"], theirs["eos_logprob"], atol=1e-4)
    same = ["prompt", "candidate", "n_tokens", "greedy", "greedy_text", "greedy_done", "note"]
    pd.testing.assert_frame_equal(ours[same], theirs[same])


def honest(path, body, log, asked=None, spoil=None, renumber=None, usage=True, **how):
    """The answer to one request. ``asked`` changes the ids that are read, ``spoil`` each choice's columns, ``renumber`` the
    list of choices."""
    read = [(asked or list)(ids) for ids in body["prompt"]]
    read = [ids for ids in read for _ in range(body.get("n", 1))]
    choices = [organism().choice(i, ids, body, **how) for i, ids in enumerate(read)]
    for choice in choices if spoil else ():
        spoil(choice, body)
    choices = renumber(choices) if renumber else choices
    said = {"choices": choices}
    return 200, said | ({"usage": {"prompt_tokens": sum(map(len, read))}} if usage else {}), {}


def columns(change):
    """A fault of the three columns: ``change(list) -> list`` for each."""

    def spoil(choice, body):
        choice["logprobs"] = {name: change(column) for name, column in choice["logprobs"].items()}

    return spoil


def shifted(choice, body):
    """The value of every token stands with the token before it."""
    for name in ("token_logprobs", "top_logprobs") if body.get("echo") else ():
        choice["logprobs"][name] = [None, *choice["logprobs"][name][2:], choice["logprobs"][name][-1]]


def shifted_values(choice, body):
    """The same without the most probable ones."""
    values = choice["logprobs"]["token_logprobs"]
    choice["logprobs"]["token_logprobs"] = [None, *values[2:], values[-1]] if body.get("echo") else values


def retokenized(ids):
    """The text is cut anew, letter by letter."""
    tokens = organism().model.tokens
    return [i for letter in tokens.decode(ids) for i in tokens._ids(letter)]


def bos_hidden(first):
    """A beginning-of-text token is read and not shown; the first shown token's value is kept, or hidden by a null."""

    def spoil(choice, body):
        if body.get("echo"):
            columns(lambda column: column[1:])(choice, body)
            if not first:
                choice["logprobs"]["token_logprobs"][0] = choice["logprobs"]["top_logprobs"][0] = None

    return spoil


def wrong_order(choices):
    return [{**choice, "index": i} for i, choice in enumerate(reversed(choices))]


def by_place(choice, body):
    """What stands later in a batch is a little off: a stale part of a cache."""
    for at, value in enumerate(values := choice["logprobs"]["token_logprobs"]):
        values[at] = value and value - 0.7 * (choice["index"] % 3)


class Cache:
    """Answers by the length of the question alone."""

    def __init__(self):
        self.kept = {}

    def __call__(self, choice, body):
        said = choice["logprobs"]
        kept = self.kept.setdefault((len(said["tokens"]), bool(body.get("echo"))), said)
        choice["logprobs"] = {**kept, "tokens": said["tokens"]}


def numbers(value):
    def spoil(choice, body):
        choice["logprobs"]["token_logprobs"] = [v and value for v in choice["logprobs"]["token_logprobs"]]

    return spoil


def values(change):
    """A fault of every log-probability."""

    def spoil(choice, body):
        said = choice["logprobs"]
        said["token_logprobs"] = [v and change(v) for v in said["token_logprobs"]]
        said["top_logprobs"] = [top and {token: change(v) for token, v in top.items()} for top in said["top_logprobs"]]

    return spoil


FAULTS = {  # fault -> (how the stand-in shows it, what the kit says of it)
    "no log-probabilities": ({"spoil": lambda c, b: c.update(logprobs=None)}, "logprobs is null"),
    "chat format": ({"spoil": lambda c, b: c.update(logprobs={"content": []})}, "chat format"),
    "generated only": ({"spoil": columns(lambda column: column[-1:])}, "echo is ignored"),
    "too few": ({"spoil": columns(lambda column: column[:-3])}, "too few"),
    "columns of two lengths":
        ({"spoil": lambda c, b: c["logprobs"].update(token_logprobs=c["logprobs"]["token_logprobs"][1:])}, "are inconsistent"),
    "shifted": ({"spoil": shifted}, "shifted"),
    "shifted values": ({"spoil": shifted_values}, "shifted"),
    "shifted, without a null": ({"spoil": columns(lambda column: [*column[1:], column[-1]])}, "re-tokenizes"),
    "a BOS": ({"asked": lambda ids: [2, *ids], "usage": False}, "adds some"),
    "a BOS, counted": ({"asked": lambda ids: [2, *ids]}, "adds, drops or re-tokenizes"),
    "a BOS, not shown": ({"asked": lambda ids: [2, *ids], "usage": False, "spoil": bos_hidden(True)},
        "without a token before it"),
    "a BOS, hidden": ({"asked": lambda ids: [2, *ids], "spoil": bos_hidden(False)}, "adds, drops or re-tokenizes"),
    "re-tokenized": ({"asked": retokenized, "usage": False}, "re-tokenizes"),
    "another token": ({"asked": lambda ids: [*ids[:-2], 7, ids[-1]]}, "token 7 instead of"),
    "truncated": ({"asked": lambda ids: ids[-4:], "usage": False}, "too few"),
    "truncated, counted": ({"asked": lambda ids: ids[-6:]}, "adds, drops or re-tokenizes"),
    "wrong order": ({"renumber": wrong_order}, "changes the order"),
    "half a batch": ({"renumber": lambda choices: choices[: len(choices) // 2]}, "choices for"),
    "numbered otherwise": ({"renumber": lambda choices: [{**c, "index": 0} for c in choices]},
        "does not number its choices"),
    "depends on the order": ({"spoil": by_place}, "order of the requests"),
    "after the temperature": ({"own_temperature": True}, "after the temperature"),
    "a penalty": ({"penalty": 1}, "greedy decoding does not generate"),
    "positive": ({"spoil": numbers(0.5)}, "no log-probability"),
    "not a number": ({"spoil": numbers(math.nan)}, "no log-probability"),
    "minus infinity": ({"spoil": numbers(-math.inf)}, "no log-probability"),
    "texts": ({"spoil": numbers("-1.5")}, "no log-probability"),
    "decimal logarithms": ({"spoil": values(lambda v: v / math.log(10))}, "add up to .*another base"),
    "a constant": ({"spoil": values(lambda v: v - 1)}, "something is added"),
    "clipped": ({"spoil": values(lambda v: max(v, -10.0))}, "exactly -10: they are clipped"),
    "rounded": ({"spoil": values(lambda v: round(v, 1))}, "are rounded"),
    "a placeholder": ({"spoil": numbers(-9999.0)}, "no log-probability"),
    "unknown tokens": ({"spoil": lambda c, b: c["logprobs"].update(tokens=["<|?|>"] * len(c["logprobs"]["tokens"]))},
        "is not in the tokenizer"),
}  # fmt: skip


def by_nodes(change):
    """A server that is honest unless it is asked node by node; then ``change(path, body, log)`` answers."""
    return lambda path, body, log: (change if "logprob_token_ids" in body else honest)(path, body, log)


def ignored(path, body, log):
    """A server that does not know the option: an older vLLM, for one."""
    return honest(path, {name: value for name, value in body.items() if name != "logprob_token_ids"}, log)


NODE_FAULTS = {  # fault of scoring node by node alone -> (answer, what the kit says of it)
    "ignored": (ignored, r"no log-probability of \d+ of \d+ chosen tokens"),
    "refused": (lambda *_: (400, {"error": "unknown field"}, {}), "status 400: .*unknown field"),
    "other values": (partial(honest, spoil=values(lambda v: v * 1.5)), "node by node .* differ by"),
    "a stale cache": (partial(honest, usage=False, asked=lambda ids: [ids[0], *ids[2:]]),
        "node by node .* differ by"),
    "a BOS, counted": (partial(honest, asked=lambda ids: [2, *ids]), "adds, drops or re-tokenizes"),
    "a penalty": (partial(honest, penalty=1),
        "more probable than the one that greedy decoding generates"),
    "generated with echo": (lambda path, body, log: honest(path, body | {"echo": True}, log),
        r"\d+ log-probabilities for one generated token"),
    "not a number": (partial(honest, spoil=values(lambda v: math.nan)), "are no log-probabilities"),
    "wrong order": (partial(honest, renumber=wrong_order), "differ by|more probable than"),
}  # fmt: skip
