"""Whole ``simple_evaluate`` runs of lm-evaluation-harness: its own backend against ``ProbeLM`` on the same model object.

Three tasks that it ships, with local data in their columns: ``bear`` (real instances, about 60 options),
``arc_easy`` (ten examples before each question, four options) and ``swag`` (no examples, four endings).
"""

import json
import logging
import tempfile
import time
from pathlib import Path

import numpy as np
import yaml

from probelib import lm
from probelib.errors import ProbeError
from tests.benchmarks import workloads
from tests.benchmarks.measuring import row, write_rows
from tests.conftest import DATA

N = {"bear": 8, "arc_easy": 12, "swag": 12}  # questions per task: the peer takes minutes
SHOTS = {"bear": 0, "arc_easy": 10, "swag": 0}
SPLITS = ("train", "validation", "test")


def bear(n: int) -> list[dict]:
    """Instances of BEAR, as many of each relation: all verbalized options, and the index of the right one."""
    folder = DATA / "bear_gpt2"
    relations = json.loads((folder / "metadata_results.json").read_text(encoding="utf-8"))
    rows = []
    for relation, about in list(relations.items())[: max(1, n // 5)]:
        lines = (folder / f"{relation}_results.jsonl").read_text(encoding="utf-8").splitlines()[:5]
        for instance in map(json.loads, lines):
            text = about["templates"][0].replace("[X]", instance["sub_label"])
            options = [text.replace("[Y]", label) for label in about["answer_space_labels"]]
            rows.append({"text_options": options, "correct": instance["answer_idx"]})
    return rows[:n]


def arc_easy(world, n: int) -> list[dict]:
    """Questions with four options."""
    rng, rows = np.random.default_rng(1), []
    for number in range(n):
        relation = world[number % len(world)]
        options = rng.choice(relation.objects, 4, replace=False).tolist()
        question = relation.sentence(4, rng.choice(relation.subjects)).split("?")[0] + "?"
        choices = {"text": options, "label": list("ABCD")}
        rows.append({"id": str(number), "question": question, "choices": choices, "answerKey": "ABCD"[number % 4]})
    return rows


def swag(world, n: int) -> list[dict]:
    """Beginnings with four endings."""
    rng, rows = np.random.default_rng(2), []
    for number in range(n):
        relation = world[number % len(world)]
        objects = rng.choice(relation.objects, 4, replace=False)
        ends = {f"ending{i}": f" {name}, as far as anybody knows." for i, name in enumerate(objects)}
        start = relation.sentence(1, rng.choice(relation.subjects))
        rows.append({"startphrase": start, "label": number % 4} | ends)
    return rows


def tasks(world, folder: Path) -> list[dict]:
    """The shipped tasks, reading local files."""
    import lm_eval

    rows = {"arc_easy": arc_easy(world, N["arc_easy"]), "swag": swag(world, N["swag"])}
    if (DATA / "bear_gpt2").is_dir():
        rows = {"bear": bear(N["bear"])} | rows
    found = []
    for name, questions in rows.items():
        file = folder / f"{name}.jsonl"
        file.write_text("\n".join(map(json.dumps, questions)), encoding="utf-8")
        shipped = next((Path(lm_eval.__file__).parent / "tasks").rglob(f"{name}.yaml"))
        config = yaml.safe_load(shipped.read_text(encoding="utf-8"))
        local = {"data_files": dict.fromkeys(SPLITS, str(file))}
        config |= {"dataset_path": "json", "dataset_name": None, "dataset_kwargs": local, "num_fewshot": SHOTS[name]}
        found.append({key: value for key, value in config.items() if key != "tag"})
    return found


def compare(model, task: dict, rounds: int = 2) -> dict:
    """Median CPU seconds of both backends in turns, and the largest difference of a log-likelihood (nats).

    The harness's index of its own 10,000 task files, seconds per run whatever is asked, is not read: ``task`` is complete.
    """
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    from probelib.integrations.lm_eval import ProbeLM

    seconds, logprobs = {"ours": [], "batch 1": [], "batch 32": []}, {}
    manager = TaskManager(include_defaults=False)
    for _ in range(rounds):
        for name in seconds:
            peer = lambda name=name: HFLM(model.hf_model, tokenizer=model.tokenizer, batch_size=int(name.split()[1]))
            backend = ProbeLM(model) if name == "ours" else peer()
            start = time.process_time()
            result = simple_evaluate(backend, tasks=[dict(task)], task_manager=manager, bootstrap_iters=0)
            seconds[name].append(time.process_time() - start)
            samples = result["samples"][task["task"]]
            logprobs[name] = np.array([float(r[0][0]) for s in samples for r in s["resps"]])
    gap = max(np.abs(logprobs["ours"] - logprobs[name]).max() for name in logprobs)
    return {name: float(np.median(values)) for name, values in seconds.items()} | {"difference": float(gap)}


def main() -> None:
    try:
        import lm_eval  # noqa: F401
    except ImportError as error:
        raise ProbeError("lm-evaluation-harness is not installed (pip install lm-eval)") from error
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        world = workloads.save_model(Path(folder) / "model")
        model = lm.load(Path(folder) / "model")
        model.choose_path()
        for task in tasks(world, Path(folder)):
            found = compare(model, task)
            best = min(found["batch 1"], found["batch 32"])
            rows.append(
                row(f"`{task['task']}`: times faster than the harness's own backend", best / found["ours"], "x", 1)
            )
            rows += [
                row(f"`{task['task']}`: {backend}", found[name], "s", None)
                for name, backend in (("ours", "`ProbeLM`"), ("batch 1", "batches of 1"), ("batch 32", "batches of 32"))
            ]
            gap = 1e6 * found["difference"]
            rows.append(row(f"`{task['task']}`: largest difference", gap, "1e-6 nat", 100, less=True))
    write_rows("harness", rows)
