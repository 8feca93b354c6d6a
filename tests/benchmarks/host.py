"""What Python itself takes of a request: CPU microseconds per request outside the model, by step.

W1 (many-shot) and W2 (templates) with about 20,000 requests. The model has one narrow layer; its forwards and the log-softmax
are timed apart and do not count. Everything runs in one thread; the least of five runs counts.
"""

import os
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import torch
import transformers as hf

from probelib import lm
from probelib.lm import scoring, selfcheck, tokens, tree
from tests.benchmarks import workloads
from tests.benchmarks.measuring import row, write_rows

WANTED = 15  # microseconds per request
MODEL = ("forward", "log-softmax")
STEPS = {
    "tokenizer": (tokens.Tokens, "encode"),
    "requests and notes": (scoring, "_requests"),
    "tree, reading out": (selfcheck, "score_tree"),
    "rows and masks": (tree, "forward_tree"),
    "data frame": (scoring, "_frame"),
    "log-softmax": (tree, "gather_logprobs"),
}


class Clock:
    """CPU seconds per step, each without the steps that it calls."""

    def __init__(self):
        self.seconds, self._open, self._since = Counter(), ["everything else"], time.process_time()

    def switch(self) -> None:
        """Book the time since the last switch to the innermost open step."""
        now = time.process_time()
        self.seconds[self._open[-1]] += now - self._since
        self._since = now

    def timed(self, owner, name: str, step: str):
        """Context manager: the time of a function counts as this step."""
        function = getattr(owner, name)

        def wrapped(*args, **kwargs):
            self.switch()
            self._open.append(step)
            try:
                return function(*args, **kwargs)
            finally:
                self.switch()
                self._open.pop()

        return mock.patch.object(owner, name, wrapped)


def per_request(model, requests: workloads.Requests) -> dict[str, float]:
    """CPU microseconds per request, by step; no text is tokenized before."""
    vars(model).pop("tokens", None)
    with ExitStack() as stack:
        clock = Clock()
        for step, (owner, name) in {**STEPS, "forward": (model.hf_model, "forward")}.items():
            stack.enter_context(clock.timed(owner, name, step))
        rows = model.logprobs(requests.prompts, requests.continuations)
        clock.switch()
    return {step: 1e6 * seconds / len(rows) for step, seconds in clock.seconds.items()}


def save_narrow(folder: Path, world: list[workloads.Relation]) -> None:
    """Write a GPT-NeoX with one layer of width 16."""
    tokenizer, sizes = (
        workloads.tokenizer(world),
        {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 1},
    )
    config = hf.GPTNeoXConfig(vocab_size=workloads.VOCABULARY, num_hidden_layers=1, eos_token_id=1, **sizes)
    hf.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)
    world, rows = workloads.relations(), []
    with tempfile.TemporaryDirectory() as folder:
        save_narrow(Path(folder), world)
        model = lm.load(folder)
        model.choose_path()
        for name, requests in {"W1": workloads.many_shot(world, 100), "W2": workloads.templates(world, 23)}.items():
            runs = [per_request(model, requests) for _ in range(5)]
            host = lambda steps: sum(value for step, value in steps.items() if step not in MODEL)
            best = min(runs, key=host)
            rows.append(row(f"{name}: Python's share of a request", host(best), "µs", WANTED, less=True))
            rows += [row(f"{name}: {step}", best[step], "µs", None) for step in best if step not in MODEL]
    write_rows("host", rows)
