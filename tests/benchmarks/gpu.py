"""The core on a GPU: models of 1B and 7B random weights in bfloat16 and in 4 bits, on the workloads of ``scoring``.

``python -m tests.benchmarks gpu`` writes its three tables in README.md. Random weights are enough for speed. Seconds are the
clock's, everything sent to the card done. README.md has the rest.
"""

import datetime
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pandas as pd
import torch
import transformers as hf
from transformers.utils import logging

from probelib import lm
from tests.benchmarks import peers, workloads
from tests.benchmarks.measuring import write_table
from tests.benchmarks.scoring import compare, fresh, tree_size

CONFIGS = {  # the shapes of Pythia 1B and LLaMA 7B
    "1B NeoX": lambda: hf.GPTNeoXConfig(
        vocab_size=50304, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=8
    ),
    "7B LLaMA": lambda: hf.LlamaConfig(max_position_embeddings=4096),
}
PRECISIONS = {"bfloat16": {}, "4bit": {"quantize": "4bit"}}
ROWS = (512, 1024, 2048, 4096, 8192, 16384)  # tokens of a row
DIGITS = {"s": 2, "GiB at most": 1, "ours s": 2, "theirs s": 2} | {f"{tokens:,}": 2 for tokens in ROWS}
SIZE = 8192  # of the square product that measures the card


def main(names: Sequence[str] = tuple(CONFIGS)) -> None:
    if not torch.cuda.is_available():
        print("(gpu: torch sees no CUDA device here; left out)")
        return
    logging.set_verbosity_error()
    tables = {"gpu rates": [], "gpu rows": [], "gpu peers": []}
    for name in names:
        folder = Path(tempfile.mkdtemp())
        try:
            world = save(CONFIGS[name](), folder)
            for precision, options in PRECISIONS.items():
                ours = lm.load(folder, **options)
                print(f"\n{name}, {precision}: {ours.memory / 2**30:.1f} GiB estimated for the weights, ", end="")
                ours.hf_model  # noqa: B018
                taken = f"{torch.cuda.memory_allocated() / 2**30:.1f} GiB taken"
                print(f"{taken}; path {ours.choose_path()}", flush=True)
                for table, work in zip(tables, (rates, rows, against), strict=True):
                    tables[table] += [{"model": f"{name}, {precision}"} | row for row in work(ours, world)]
                del ours
                torch.cuda.empty_cache()
        finally:
            shutil.rmtree(folder)
    versions = f"torch {torch.__version__}, transformers {hf.__version__}"
    for table, found in tables.items():
        about = f"{datetime.date.today()}, {torch.cuda.get_device_name()}, {versions}"
        write_table(table, pd.DataFrame(found), DIGITS, about=about)


def save(config, folder: Path):
    """Writes a model of random weights, made on the card, and the benchmarks' tokenizer; returns the world it speaks of."""
    torch.manual_seed(0)
    world = workloads.relations()
    tokenizer = workloads.tokenizer(world)
    config.bos_token_id, config.eos_token_id, config.pad_token_id = None, tokenizer.eos_token_id, tokenizer.pad_token_id
    with torch.device("cuda"):
        model = hf.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    del model
    torch.cuda.empty_cache()
    return world


def requests(world) -> dict[str, workloads.Requests]:
    return {
        "W1 many-shot, 2 x 40 subjects": workloads.many_shot(world, 40),
        "W2 templates, 100 facts": workloads.templates(world, 20),
        "W4 MONITOR, 500 facts": workloads.framings(world, 100),
    }


def rates(ours, world, rounds: int = 5) -> list[dict]:
    """How many tokens a second, and by which factor that is over the arithmetic limit."""
    found, ids = [], lambda text: ours.tokenizer(text)["input_ids"]
    for name, some in requests(world).items():
        run = lambda some=some: fresh(ours).logprobs(some.prompts, some.continuations).attrs["cost"]
        pairs = zip(some.prompts, some.continuations, strict=True)
        sequences = [(ids(prompt), answer) for prompt, own in pairs for answer in ids(own)]
        found.append(_rate(ours, name, run, sequences, rounds))
    texts = workloads.statements(world, 4000)
    for share in (True, False):
        run = lambda share=share: fresh(ours).hidden_states(texts, prefix=workloads.INSTRUCTION, share=share)[1]
        sequences = [(ids(workloads.INSTRUCTION + text), [0]) for text in texts]
        name = f"W3 4,000 statements, {'tree' if share else 'padded'}"
        found.append(_rate(ours, name, run, sequences, rounds, head=False))
    return found


def _rate(ours, name: str, run, sequences: list, rounds: int, head: bool = True) -> dict:
    _, predicting, asked = tree_size(sequences)
    last = ours.hf_model.get_output_embeddings().weight.numel()
    body = ours.n_parameters  # without embeddings and head
    cost = run()
    torch.cuda.reset_peak_memory_stats()
    seconds, over = [], []
    for _ in range(rounds):
        before, started = matrix_rate(), time.perf_counter()
        run()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
        work = 2 * body * cost["forwarded_tokens"] + 2 * last * predicting * head
        over.append(seconds[-1] * (before + matrix_rate()) / 2 / work)
    tokens = cost["forwarded_tokens"]
    row = {
        "workload": name,
        "tokens asked": asked,
        "forwarded": tokens,
        "s": median(seconds),
        "tokens/s": f"{tokens / median(seconds):,.0f}",
        "by limit": f"**{median(over):.3g}**",
        "GiB at most": torch.cuda.max_memory_allocated() / 2**30,
    }
    print(*row.values(), sep=" | ", flush=True)
    return row


def rows(ours, world, rounds: int = 3) -> list[dict]:
    """Seconds of W2 by the tokens of a row."""
    some, budget, taken = workloads.templates(world, 20), ours.budget, {}
    run = lambda: fresh(ours).logprobs(some.prompts, some.continuations).attrs["cost"]["seconds"]
    for tokens in ROWS:
        ours.budget = tokens
        run()
        taken[f"{tokens:,}"] = f"{median(run() for _ in range(rounds)):.2f}"
    print(*taken.values(), sep=" | ", flush=True)
    ours.budget = budget
    return [taken]
