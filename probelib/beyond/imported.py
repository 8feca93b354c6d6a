"""Scores that another program computed, as the kit's score frames: existing runs analysed without a
new model run.

    rows = imported.read("results/gpt2")    # samples of lm-evaluation-harness

It is the folder (or one file) that ``lm_eval --log_samples --output_path FOLDER`` writes, with one
document per line of ``samples_<task>_<date>.jsonl``:

    {"doc_id": 0, "doc": {...}, "target": "2",
     "arguments": {"gen_args_0": {"arg_0": "The capital of France is", "arg_1": " Paris"}, ...},
     "filtered_resps": [["-1.5", "True"], ...]}      (older: arguments as a list of pairs)

A Parquet file with the rows below is read unchanged: ``GPT2`` holds GPT-2's scores on BEAR
(``gpt2_bear.md``: source and licence).

All give one row per (fact, candidate): ``model``, ``relation`` (for lm-evaluation-harness: the
task), ``fact``, ``prompt``, ``candidate``, ``label``, ``gold``, ``logprob`` (nats; of the
continuation; in ``GPT2``, of the whole statement).
"""

import os
import re
from pathlib import Path

import pandas as pd

from probelib import files
from probelib.errors import ProbeError
from probelib.facts.text import read_objects

GPT2 = Path(__file__).with_name("gpt2_bear.parquet")
COLUMNS = ["model", "relation", "fact", "prompt", "candidate", "label", "gold", "logprob"]
SAMPLES = re.compile(r"samples_(.+?)(?:_\d{4}-\d\d-\d\dT[\d.:-]+)?\.jsonl")


def read(folder: str | Path | None, relations: list[str] | None = None) -> pd.DataFrame:
    """The scores of one model, of a folder or of one file (None: GPT-2's shipped ones);
    ``relations`` (or tasks): None for all. ``.attrs["models"]`` names model, program and digest of
    the files, for provenance (``report.Section.add``)."""
    # its last name is the model's, however it is given
    folder = Path(os.path.abspath(folder or GPT2))
    if not folder.exists():
        wanted = "a folder of lm-evaluation-harness's samples is needed"
        raise ProbeError(f"{folder} does not exist; {wanted}")
    if folder.suffix == ".parquet":
        program, paths = "lm-pub-quiz" if folder == GPT2 else "Parquet", [folder]
        frame = pd.read_parquet(folder)
        if missing := [name for name in COLUMNS if name not in frame]:
            said = f"lacks the columns {', '.join(missing)}; it needs {', '.join(COLUMNS)}"
            raise ProbeError(f"{folder} {said}")
        _check_there(relations, frame["relation"].unique())
        frame = frame[frame["relation"].isin(relations)] if relations else frame
        frame = frame[COLUMNS].reset_index(drop=True)
    elif paths := [folder] if folder.is_file() else sorted(folder.rglob("samples_*.jsonl")):
        program, frame = "lm-evaluation-harness", _harness(paths, relations)
    else:
        raise ProbeError(f"{folder} holds no samples_*.jsonl (lm_eval --log_samples)")
    if len(models := frame["model"].unique()) > 1:
        said = f"{folder} holds scores of {len(models)} models ({', '.join(models)})"
        raise ProbeError(f"{said}: pass the folder of one model as results")
    digest = files.sha256("".join(files.sha256(path) for path in paths).encode())[:16]
    about = {"program": program, "files": digest}
    frame.attrs["models"] = [{"model": name, **about} for name in models]
    return frame


def _check_there(wanted: list[str] | None, there) -> None:
    if lost := sorted(set(wanted or ()) - set(there)):
        raise ProbeError(f"no scores of {', '.join(lost)}; available: {', '.join(there)}")


def _harness(paths: list[Path], tasks: list[str] | None) -> pd.DataFrame:
    by_task = {}
    for path in paths:
        if not (match := SAMPLES.fullmatch(path.name)):
            raise ProbeError(f"{path}: the name of a samples file is samples_<task>_<date>.jsonl")
        if by_task.setdefault((path.parent.name, match[1]), path) != path:
            said = "several runs of one task; move all but one elsewhere, or give the file"
            raise ProbeError(f"{path.parent}: {said}")
    _check_there(tasks, sorted({task for _, task in by_task}))
    rows = []
    for (model, task), path in by_task.items():
        if tasks and task not in tasks:
            continue
        seen = {}
        for line, sample in read_objects(path, {"doc_id": int, "filtered_resps": list}):
            if (before := seen.setdefault(sample["doc_id"], line)) != line:
                raise ProbeError(
                    f"{path}:{line}: document {sample['doc_id']} is already in line {before}: was"
                    " it logged once for each of several filters? Keep the lines of one filter"
                )
            fact = f"{task}:{sample['doc_id']}"
            rows += [(model, task, fact, *row) for row in _sample(f"{path}:{line}", fact, sample)]
    return pd.DataFrame(rows, columns=COLUMNS)


def _sample(where: str, fact: str, sample: dict) -> list[tuple]:
    """A document's candidates, in their order: prompt, candidate, label, gold, logprob."""
    asked = sample.get("arguments")
    if isinstance(asked, dict):  # gen_args_10 comes after gen_args_9
        number = lambda key: int(re.sub(r"\D", "", key) or 0)
        asked = [asked[key] for key in sorted(asked, key=number)]
    pairs = [_pair(where, pair) for pair in (asked if isinstance(asked, list) else ())]
    scores = [_logprob(where, response) for response in sample["filtered_resps"]]
    if len(pairs) < 2 or len(pairs) != len(scores):
        raise ProbeError(
            f"{where}: {len(pairs)} arguments and {len(scores)} responses; equal numbers, at least "
            "two, are needed (multiple choice; generated answers cannot be read as scores)"
        )
    # acc_mutual_info scores each candidate again without a prompt, as its prior: these are left out
    behind = {label for prompt, label in pairs if prompt}
    rows = [
        (prompt, label, score)
        for (prompt, label), score in zip(pairs, scores, strict=True)
        if prompt or label not in behind
    ]
    gold = _target(where, sample.get("target"), [label for _, label, _ in rows])
    return [
        (prompt, f"{fact}:{i}", label, f"{fact}:{gold}", score)
        for i, (prompt, label, score) in enumerate(rows)
    ]


def _pair(where: str, pair: object) -> tuple[str, str]:
    """Prompt and label of a request."""
    texts = list(pair.values()) if isinstance(pair, dict) else pair
    whole = isinstance(texts, list) and len(texts) > 1
    if not whole or not all(isinstance(text, str) for text in texts[:2]):
        said = "is not a request (a prompt and a continuation)"
        raise ProbeError(f"{where}: {str(pair)[:80]!r} {said}")
    return texts[0], texts[1].strip()


def _logprob(where: str, response: object) -> float:
    """The log-probability of [logprob, is_greedy], numbers or (since version 0.4) texts."""
    try:
        value = float(response[0])
    except (TypeError, ValueError, IndexError, KeyError):
        value = float("nan")
    if not -1e300 < value <= 0:
        said = "does not begin with a log-probability (a number that is 0 or less)"
        raise ProbeError(f"{where}: {str(response)[:80]!r} {said}")
    return value


def _target(where: str, target: object, labels: list[str]) -> int:
    """The number of the right candidate; ``target`` is that number or the candidate's text."""
    text = str(target).strip()
    number = {int(text)} if text.isdecimal() and int(text) < len(labels) else set()
    same = {i for i, label in enumerate(labels) if label == text}
    if len(found := number | same) == 1:
        return found.pop()
    raise ProbeError(
        f"{where}: target {target!r} names {len(found)} candidates by their number (0 to "
        f"{len(labels) - 1}) or text; it must name one, and by its number where only prompts differ"
    )
