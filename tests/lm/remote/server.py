"""A completions server for tests: the real log-probabilities of a shipped organism, and the faults
that servers in the wild have (each a function that spoils the answers, or the questions)."""

import json
import math
import sys
import threading
from contextlib import contextmanager
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch

from probelib import lm

NAME = "atlas-neox-0.15m"


@lru_cache
def organism():
    return lm.load(NAME)


@lru_cache(maxsize=4096)
def logits(ids: tuple[int, ...]) -> torch.Tensor:
    with torch.inference_mode():
        return organism().hf_model(torch.tensor([ids])).logits[0].double()


def choice(index: int, ids, body: dict, own_temperature=False, penalty=False) -> dict:
    """One answer, as vLLM writes it."""
    warmth = max(body.get("temperature", 1.0), 1e-3) if own_temperature else 1.0
    written = list(ids)
    for _ in range(body.get("max_tokens", 16)):
        scores = logits(tuple(written))[-1].clone()
        if penalty and len(written) == len(ids):
            scores[scores.argmax()] = -math.inf
        written.append(int(scores.argmax()))
        if written[-1] == organism().tokens.eos:
            break
    logprobs = torch.log_softmax(
        logits(tuple(written)) / warmth, -1
    )  # of the tokens from the second on
    rows = []
    for at in range(0 if body.get("echo") else len(ids), len(written)):
        token, value, top = f"token_id:{written[at]}", None, None
        if at:
            value = float(logprobs[at - 1, written[at]])
            values, best = (x.tolist() for x in logprobs[at - 1].topk(body.get("logprobs", 1)))
            top = {f"token_id:{i}": v for i, v in zip(best, values, strict=True)} | {token: value}
        rows.append((token, value, top))
    names = ("tokens", "token_logprobs", "top_logprobs")
    said = {name: [row[n] for row in rows] for n, name in enumerate(names)}
    done = "stop" if written[-1] == organism().tokens.eos else "length"
    return {"index": index, "logprobs": said, "finish_reason": done}


def honest(path, body, log, asked=list, spoil=None, renumber=None, usage=True, **how):
    """The answer to one request. ``asked`` changes the ids that are read, ``spoil`` each choice,
    ``renumber`` the list of choices."""
    read = [asked(ids) for ids in body["prompt"]]
    choices = [choice(i, ids, body, **how) for i, ids in enumerate(read)]
    for each in choices if spoil else ():
        spoil(each, body)
    said = {"choices": renumber(choices) if renumber else choices}
    return 200, said | ({"usage": {"prompt_tokens": sum(map(len, read))}} if usage else {}), {}


@contextmanager
def serving(answer, models=(NAME,)):
    """A server on this machine; ``answer(path, body, log)`` gives (status, content, headers). A
    content that is an iterator of bytes is sent piece by piece. Gives address and log."""
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
            content = json.dumps(content).encode() if isinstance(content, dict) else content
            self.send_response(status)
            whole = {"Content-Length": len(content)} if isinstance(content, bytes) else {}
            for name, value in (whole | headers).items():
                self.send_header(name, str(value))
            self.end_headers()
            for piece in [content] if isinstance(content, bytes) else content:
                self.wfile.write(piece)
                self.wfile.flush()

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *given):
            if not isinstance(sys.exception(), ConnectionError):  # who asked may have gone away
                super().handle_error(*given)

    running = Server(("127.0.0.1", 0), Handler)
    running.daemon_threads, running.block_on_close = True, False
    loop = {"target": running.serve_forever, "kwargs": {"poll_interval": 0.02}, "daemon": True}
    threading.Thread(**loop).start()
    try:
        yield f"http://127.0.0.1:{running.server_port}/v1", log
    finally:
        running.shutdown()
        running.server_close()


def columns(change):
    """A fault of the three columns: ``change(list) -> list`` for each."""

    def spoil(choice, body):
        choice["logprobs"] = {name: change(column) for name, column in choice["logprobs"].items()}

    return spoil


def values(change):
    """A fault of every log-probability."""

    def spoil(choice, body):
        said = choice["logprobs"]
        said["token_logprobs"] = [v and change(v) for v in said["token_logprobs"]]
        tops = [
            top and {token: change(v) for token, v in top.items()} for top in said["top_logprobs"]
        ]
        said["top_logprobs"] = tops

    return spoil


def shifted(names):
    """The value of every token stands with the token before it."""

    def spoil(choice, body):
        for name in names if body.get("echo") else ():
            column = choice["logprobs"][name]
            choice["logprobs"][name] = [None, *column[2:], column[-1]]

    return spoil


def hidden_bos(null):
    """A beginning-of-text token is read and not shown; the first shown token's value is kept, or
    null."""

    def spoil(choice, body):
        if body.get("echo"):
            columns(lambda column: column[1:])(choice, body)
            if null:
                said = choice["logprobs"]
                said["token_logprobs"][0] = said["top_logprobs"][0] = None

    return {"asked": lambda ids: [2, *ids], "spoil": spoil}


def by_place(choice, body):
    """What stands later in a batch is a little off: a stale part of a cache."""
    for at, value in enumerate(said := choice["logprobs"]["token_logprobs"]):
        said[at] = value and value - 0.7 * (choice["index"] % 3)


class Cache:
    """Answers by the length of the question alone."""

    def __init__(self):
        self.kept = {}

    def __call__(self, choice, body):
        said = choice["logprobs"]
        kept = self.kept.setdefault((len(said["tokens"]), bool(body.get("echo"))), said)
        choice["logprobs"] = {**kept, "tokens": said["tokens"]}


BOS = {"asked": lambda ids: [2, *ids]}
LOST, SHIFTED = {"usage": False}, ("token_logprobs", "top_logprobs")
UNKNOWN = lambda choice, body: choice["logprobs"].update(
    tokens=["<|?|>"] * len(choice["logprobs"]["tokens"])
)
# how the stand-in shows a fault, what the kit says of it
FAULTS = [
    ({"spoil": lambda c, b: c.update(logprobs=None)}, "of the prompt, only None"),
    ({"spoil": lambda c, b: c.update(logprobs={"content": []})}, "prompt, only {'content'"),
    ({"spoil": columns(lambda column: column[-1:])}, "ignores echo"),
    ({"spoil": columns(lambda column: column[:-3])}, "truncates"),
    ({"spoil": lambda c, b: c["logprobs"]["token_logprobs"].pop()}, "are inconsistent"),
    ({"spoil": shifted(SHIFTED)}, "shifted"),
    ({"spoil": shifted(SHIFTED[:1])}, "shifted"),
    ({"spoil": columns(lambda column: [*column[1:], column[-1]])}, "re-tokenizes"),
    (BOS | LOST, "adds a BOS"),
    (hidden_bos(null=False) | LOST, "shifted, or a BOS"),
    (hidden_bos(null=True), "adds, drops or re-tokenizes"),
    ({"asked": lambda ids: [*ids[:-2], 7, ids[-1]]}, "it read .* 7, .* not "),
    ({"renumber": lambda all: [c | {"index": i} for i, c in enumerate(all[::-1])]}, "or mixes"),
    ({"renumber": lambda choices: choices[: len(choices) // 2]}, "for 16 prompts"),
    ({"spoil": by_place}, "depend on order"),
    ({"spoil": Cache()}, "caches under a wrong key"),
    ({"own_temperature": True}, "temperature"),
    ({"penalty": True}, "greedy decoding does not generate"),
    ({"spoil": values(lambda v: "-1.5")}, "no log-probability"),
    ({"spoil": values(lambda v: math.nan)}, "no log-probability"),
    ({"spoil": values(lambda v: -9999.0)}, "no log-probability"),
    ({"spoil": values(lambda v: max(v, -10.0))}, "clipped"),
    ({"spoil": values(lambda v: round(v, 1))}, "rounded"),
    ({"spoil": UNKNOWN}, "is not in the tokenizer"),
]
