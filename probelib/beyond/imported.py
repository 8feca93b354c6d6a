"""Scores that another program computed, as the kit's score frames: existing runs analysed without a new model run.

    rows = imported.read("results/gpt2")        # lm-pub-quiz results, or lm-evaluation-harness samples

lm-pub-quiz: a folder with ``metadata_results.json`` (see ``facts.formats``). lm-evaluation-harness: the folder (or one file)
that ``lm_eval --log_samples --output_path FOLDER`` writes, with one document per line of ``samples_<task>_<date>.jsonl``:

    {"doc_id": 0, "doc": {...}, "target": "2",
     "arguments": {"gen_args_0": {"arg_0": "The capital of France is", "arg_1": " Paris"}, ...},     (or a list of pairs)
     "resps": [[["-1.5", "True"]], ...], "filtered_resps": [["-1.5", "True"], ...], "acc": 1.0}

A Parquet file with the rows below is read unchanged: ``GPT2`` holds GPT-2's scores on BEAR (``gpt2_bear.md``: source and
licence).

Both give one row per (fact, candidate): ``model``, ``relation`` (for lm-evaluation-harness: the task), ``fact``, ``prompt``,
``candidate``, ``label``, ``gold``, ``logprob`` (nats; of the continuation, or of the whole statement in lm-pub-quiz).
"""

import os
import re
from pathlib import Path

import pandas as pd

from probelib import files
from probelib.errors import ProbeError
from probelib.facts.formats import read_bear_results
from probelib.facts.text import read_objects

GPT2 = Path(__file__).with_name("gpt2_bear.parquet")
NAMES = {  # Wikidata's names of those of BEAR's relations that the atlas lacks
    "P53": "family",
    "P58": "screenwriter",
    "P87": "librettist",
    "P137": "operator",
    "P162": "producer",
    "P171": "parent taxon",
    "P185": "doctoral student",
    "P344": "director of photography",
    "P509": "cause of death",
    "P611": "religious order",
    "P676": "lyrics by",
    "P7937": "form of creative work",
}
COLUMNS = ["model", "relation", "fact", "prompt", "candidate", "label", "gold", "logprob"]
SAMPLES = re.compile(r"samples_(.+?)(?:_\d{4}-\d\d-\d\dT[\d.:-]+)?\.jsonl")


def read_one(folder: str | Path | None, relations: list[str] | None = None) -> pd.DataFrame:
    """``read`` for the scores of one model; GPT-2's shipped ones if no folder is given."""
    scores = read(folder or GPT2, relations)
    if len(models := scores["model"].unique()) > 1:
        raise ProbeError(
            f"{folder} holds scores of {len(models)} models ({', '.join(models)}): pass the folder of one model as results"
        )
    return scores


def read(folder: str | Path, relations: list[str] | None = None) -> pd.DataFrame:
    """The scores of a folder (or of one samples file) of either program; ``relations`` (or tasks): None for all.

    ``.attrs["models"]`` names model, program and digest of the files, for provenance (``report.Section.add``).
    """
    folder = Path(os.path.abspath(folder))  # its last name is the model's, however it is given
    if not folder.exists():
        raise ProbeError(
            f"{folder} does not exist; a folder of lm-pub-quiz or lm-evaluation-harness results is needed"
        )
    if (folder / "metadata_results.json").exists():
        frame, program, paths = (
            _pub_quiz(folder, relations),
            "lm-pub-quiz",
            sorted(folder.glob("*.json*")),
        )
    elif folder.suffix == ".parquet":
        frame, program, paths = (
            _parquet(folder, relations),
            "lm-pub-quiz" if folder == GPT2 else "Parquet",
            [folder],
        )
    elif paths := [folder] if folder.is_file() else sorted(folder.rglob("samples_*.jsonl")):
        frame, program = _harness(paths, relations), "lm-evaluation-harness"
    else:
        raise ProbeError(
            f"{folder} holds neither metadata_results.json (lm-pub-quiz) nor samples_*.jsonl (lm_eval --log_samples)"
        )
    digest = files.sha256("".join(files.sha256(path) for path in paths).encode())[:16]
    frame.attrs["models"] = [
        {"model": m, "program": program, "files": digest} for m in frame["model"].unique()
    ]
    return frame


def _pub_quiz(folder: Path, relations: list[str] | None) -> pd.DataFrame:
    rows = read_bear_results(folder, relations)
    return rows.assign(
        prompt="statement|" + rows["fact"] + "|R" + rows["template"].astype(str) + "|none"
    )[COLUMNS]


def _parquet(path: Path, relations: list[str] | None) -> pd.DataFrame:
    frame = pd.read_parquet(path)
    if missing := [name for name in COLUMNS if name not in frame]:
        raise ProbeError(
            f"{path} lacks the columns {', '.join(missing)}; it needs {', '.join(COLUMNS)}"
        )
    if lost := set(relations or ()) - set(frame["relation"]):
        raise ProbeError(
            f"no scores of {', '.join(sorted(lost))}; available: {', '.join(frame['relation'].unique())}"
        )
    return (
        frame[frame["relation"].isin(relations)].reset_index(drop=True)
        if relations
        else frame[COLUMNS]
    )


def _harness(paths: list[Path], tasks: list[str] | None) -> pd.DataFrame:
    named = {path: SAMPLES.fullmatch(path.name) for path in paths}
    if odd := [path for path, match in named.items() if not match]:
        raise ProbeError(f"{odd[0]}: the name of a samples file is samples_<task>_<date>.jsonl")
    by_task = {(path.parent.name, match[1]): path for path, match in named.items()}
    if len(by_task) < len(paths):
        raise ProbeError(
            f"{paths[0].parent}: several runs of one task; move all but one elsewhere, or give the file"
        )
    if tasks and (lost := set(tasks) - {task for _, task in by_task}):
        raise ProbeError(
            f"no samples of {', '.join(sorted(lost))}; available: {', '.join(sorted({t for _, t in by_task}))}"
        )
    rows = []
    for (model, task), path in by_task.items():
        if not tasks or task in tasks:
            lines = read_objects(path, {"doc_id": int, "filtered_resps": list})
            seen = {}
            for line, sample in lines:
                if (before := seen.setdefault(sample["doc_id"], line)) != line:
                    raise ProbeError(
                        f"{path}:{line}: document {sample['doc_id']} is already in line {before}: was it logged once for each "
                        "of several filters? Keep the lines of one filter"
                    )
                rows += _sample(f"{path}:{line}", model, task, sample)
    return pd.DataFrame(rows, columns=COLUMNS)


def _sample(where: str, model: str, task: str, sample: dict) -> list[tuple]:
    """A document's candidates, in their order."""
    pairs = [_pair(where, pair) for pair in _listed(sample.get("arguments"))]
    scores = [_logprob(where, response) for response in sample["filtered_resps"]]
    if len(pairs) < 2 or len(pairs) != len(scores):
        raise ProbeError(
            f"{where}: {len(pairs)} arguments and {len(scores)} responses; equal numbers, at least two, are needed (a "
            "multiple-choice task; generated answers cannot be read as scores)"
        )
    labels = [continuation.strip() for _, continuation in pairs]
    behind = {label for (prompt, _), label in zip(pairs, labels, strict=True) if prompt}
    rows = [  # acc_mutual_info scores each candidate again without a prompt, as its prior; these are left out
        row for row in zip(pairs, labels, scores, strict=True) if row[0][0] or row[1] not in behind
    ]
    labels = [label for _, label, _ in rows]
    gold, fact = _target(where, sample.get("target"), labels), f"{task}:{sample['doc_id']}"
    start = (model, task, fact)
    return [
        (*start, prompt, f"{fact}:{i}", label, f"{fact}:{gold}", score)
        for i, ((prompt, _), label, score) in enumerate(rows)
    ]


def _listed(arguments: object) -> list:
    """The requests of a document: a list, or the newer {"gen_args_0": ...} in the order of its numbers."""
    if isinstance(arguments, dict):
        return [
            arguments[key]
            for key in sorted(arguments, key=lambda key: int(re.sub(r"\D", "", key) or 0))
        ]
    return arguments if isinstance(arguments, list) else []


def _pair(where: str, pair: object) -> tuple[str, str]:
    """Prompt and continuation of a request."""
    values = list(pair.values()) if isinstance(pair, dict) else pair
    if (
        not isinstance(values, list)
        or len(values) < 2
        or not all(isinstance(text, str) for text in values[:2])
    ):
        raise ProbeError(
            f"{where}: {str(pair)[:80]!r} is not a request (a prompt and a continuation)"
        )
    return values[0], values[1]


def _logprob(where: str, response: object) -> float:
    """The log-probability of [logprob, is_greedy], numbers or (as written since version 0.4) texts."""
    try:
        value = float(response[0])
    except (TypeError, ValueError, IndexError, KeyError):
        raise ProbeError(
            f"{where}: {str(response)[:80]!r} is not a pair [log-probability, is greedy]"
        ) from None
    if not -1e300 < value <= 0:
        raise ProbeError(
            f"{where}: {value!r} is not a log-probability (a number that is 0 or less)"
        )
    return value


def _target(where: str, target: object, labels: list[str]) -> int:
    """The number of the right candidate; ``target`` is that number or the candidate's text."""
    number = int(target) if str(target).isdecimal() and int(target) < len(labels) else None
    same = [i for i, label in enumerate(labels) if label == str(target).strip()]
    if len(same) > 1:
        raise ProbeError(
            f"{where}: target {target!r} is the text of {len(same)} candidates (only their prompts differ, as in WinoGrande): "
            "the number of the right one is needed"
        )
    text = same[0] if len(same) == 1 else None
    if None not in (number, text) and number != text:
        raise ProbeError(
            f"{where}: target {target!r} is candidate {number} by number and candidate {text} by its text"
        )
    if number is None and text is None:
        raise ProbeError(
            f"{where}: target {target!r} is neither a candidate's number (0 to {len(labels) - 1}) nor one's text"
        )
    return number if text is None else text
