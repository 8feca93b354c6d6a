"""The core on a GPU: SmolLM2-135M, and models of 1B and 7B random weights, in bfloat16 and in 4
bits, on the workloads of ``scoring``.

``python -m tests.bench gpu`` writes its two tables in README.md. Random weights are enough for
speed. Seconds are the clock's, everything sent to the card done. README.md has the rest."""

import datetime
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median

import pandas as pd
import torch
import transformers as hf
from transformers.utils import logging

from probelib import lm
from tests.bench import peers, workloads
from tests.bench.measuring import write_table
from tests.bench.scoring import compare, fresh, largest, score, tree_size

PYTHIA = {"vocab_size": 50304, "hidden_size": 2048, "intermediate_size": 8192}
PYTHIA |= {"num_hidden_layers": 16, "num_attention_heads": 8}
CONFIGS = {  # the shapes of Pythia 1B and LLaMA 7B
    "1B NeoX": lambda: hf.GPTNeoXConfig(**PYTHIA),
    "7B LLaMA": lambda: hf.LlamaConfig(max_position_embeddings=4096),
}
REAL = "SmolLM2-135M"
PRECISIONS = {"bfloat16": {}, "4bit": {"quantize": "4bit"}}
DIGITS = {"s": 2, "GiB at most": 1, "ours s": 2, "theirs s": 2}
SIZE = 8192  # of the square product that measures the card


def main() -> None:
    if not torch.cuda.is_available():
        print("(gpu: torch sees no CUDA device here; left out)")
        return
    logging.set_verbosity_error()
    tables = {"gpu rates": [], "gpu peers": []}
    for name in (REAL, *CONFIGS):
        made, world = Path(tempfile.mkdtemp()), workloads.relations()
        try:
            if name in CONFIGS:
                save(CONFIGS[name](), made, world)
            folder = made if name in CONFIGS else lm.load(name.lower()).folder
            for precision, options in PRECISIONS.items():
                ours = lm.load(folder, **options)
                print(f"\n{name}, {precision}: path {ours.choose_path()}", flush=True)
                about = {"model": f"{name}, {precision}"}
                for table, work in zip(tables, (rates, against), strict=True):
                    tables[table] += [about | row for row in work(ours, world)]
                del ours
                torch.cuda.empty_cache()
        finally:
            shutil.rmtree(made)
    versions = f"torch {torch.__version__}, transformers {hf.__version__}"
    for table, found in tables.items():
        about = f"{datetime.date.today()}, {torch.cuda.get_device_name()}, {versions}"
        write_table(table, pd.DataFrame(found), DIGITS, about=about)


def save(config, folder: Path, world) -> None:
    """Writes a model of random weights, made on the card, and the tokenizer of a world."""
    torch.manual_seed(0)
    tokenizer = workloads.tokenizer(world)
    config.bos_token_id, config.eos_token_id = None, tokenizer.eos_token_id
    config.pad_token_id = tokenizer.pad_token_id
    with torch.device("cuda"):
        model = hf.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    del model
    torch.cuda.empty_cache()


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
    run = lambda: fresh(ours).hidden_states(texts, prefix=workloads.INSTRUCTION)[1]
    sequences = [(ids(workloads.INSTRUCTION + text), [0]) for text in texts]
    found.append(_rate(ours, "W3 4,000 statements", run, sequences, rounds, head=False))
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


def matrix_rate() -> float:
    """FLOP/s of a square product in bfloat16; the median of nine."""
    a, b = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    times = []
    for _ in range(9):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        a @ b
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1000)
    return 2 * SIZE**3 / median(times)


def against(ours, world, rounds: int = 3) -> list[dict]:
    """The same requests as others run them, on the same model object."""
    theirs, tokenizer = ours.hf_model, ours.tokenizer
    few, works = workloads.framings(world, 1, relations=1), []
    harness = peers.harness(theirs, tokenizer, 32)
    for name, some in {
        "W1 many-shot, 2 x 1 subjects": workloads.many_shot(world, 1),
        "W2 templates, 20 facts": workloads.templates(world, 4),
        "W4 MONITOR, 100 facts": workloads.framings(world, 20),
    }.items():
        batches = lambda some=some: peers.sorted_batches(theirs, tokenizer, some.pairs())
        own = partial(score, ours, some)
        works.append((name, "sorted batches of 32", len(some.pairs()), own, batches))
        lm_eval = lambda some=some: harness(some.pairs())
        works.append((name, "lm-eval, batch 32", len(some.pairs()), own, lm_eval))
    beams = lambda: peers.beams_one_by_one(theirs, tokenizer, few.prompts)
    one = "five beams, one prompt at a time"
    works.append(("W4 MONITOR, 1 fact", one, len(few.prompts), partial(score, ours, few), beams))
    texts = workloads.statements(world, 1000)
    whole = [workloads.INSTRUCTION + text for text in texts]
    states = lambda: fresh(ours).hidden_states(texts, prefix=workloads.INSTRUCTION)[0]
    for peer, run in (
        ("GraphEval, padded batches of 64", peers.padded_states),
        ("no head, sorted batches of 32", peers.sorted_states),
    ):
        theirs_run = lambda run=run: run(theirs, tokenizer, whole)
        works.append(("W3 statements", peer, len(texts), states, theirs_run))
    found = []
    for work in works:
        gap = (lambda *_: float("nan")) if work[1] == one else largest
        row = compare(*work, None, rounds, by="wall", difference=gap)
        found.append({k: v for k, v in row.items() if k not in ("by CPU time", "wanted")})
    return found
