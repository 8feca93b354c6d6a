"""Scores on disk: keyed, in finished parts, resumable.

A part holds the scores of one model for one relation. Its file name contains a key of everything
that changes a number: the model's identity, the prompts, the candidates, the options, the code of
the core and the versions of the libraries. So a part is never stale: after any change it has
another name. Only a part with its checksum counts: a kill loses at most the part being computed,
and a damaged part is reported and recomputed.

    runs/<profile>/scores/<model>/P36-logprobs-1f0c.parquet    rows: a temporary name, then renamed
    runs/<profile>/scores/<model>/P36-logprobs-1f0c.json       checksum and cost, written last
"""

import hashlib
import io
import json
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
from tqdm import tqdm

from probelib import files
from probelib.errors import ProbeError
from probelib.lm.version import check_unchanged, scoring

REQUESTED = ["model", "relation", "fact", "prompt"]
KEYED = ["relation", "fact", "prompt", "text", "searched"]  # columns of prompts in the key
SCORES = [*REQUESTED, "candidate", "label", "n_tokens", "logprob", "token_logprobs", "greedy"]
SCORES += ["eos_logprob", "greedy_text", "greedy_done", "note"]
tqdm.monitor_interval = 0  # no thread: if it cannot start for lack of memory, Python waits forever
FOUND = [*REQUESTED, "rank", "candidate", "logprob", "label", "label_logprob", "forwarded_tokens"]
FOUND += ["trie_tokens"]
_models: list[list[dict]] = []  # see record_models()


@dataclass(frozen=True)
class Part:
    """One unit of work: a file, and the prompts and candidates whose scores it holds."""

    path: Path
    relation: str
    prompts: Any = None
    candidates: Any = None
    model: dict | None = None  # the model's identity in the key

    def finished(self) -> bool:
        """Whether the file exists and is intact; a damaged one is reported."""
        record = self.path.with_suffix(".json")
        if not record.exists() or not self.path.exists():
            return False
        content = files.read_sealed(record)
        if content is not None and content.get("sha256") == files.sha256(self.path):
            return True
        said = f"{self.path}: damaged (the checksum differs); it is computed again"
        warnings.warn(said, stacklevel=2)
        return False

    def record(self) -> dict:
        """``cost`` (tokens, forwards, seconds) and ``model`` (``LM.describe()``) when scored."""
        return json.loads(self.path.with_suffix(".json").read_text())


def score(
    model,
    prompts: pd.DataFrame,
    candidates: pd.DataFrame,
    folder: str | Path,
    end: bool = False,
    gap: str = " ",
) -> pd.DataFrame:
    """Log-probabilities of every candidate label after every prompt of its fact; only missing parts
    are computed.

    prompts     a frame of ``prompts``
    candidates  ``fact``, ``candidate``, ``label`` (one row per alias)
    end         see ``lm.scoring.logprobs``
    gap         text between prompt and label
    returns     the columns ``SCORES``; ``.attrs``: "cost", summed, and "models" (provenance)
    """
    options, written = {"end": end} | ({"gap": gap} if gap != " " else {}), {}
    asked = parts(model, prompts, candidates, folder, "logprobs", options)
    for part in unfinished(model, asked):
        by_fact = part.candidates.groupby("fact", sort=False)
        labels = {fact: rows["label"].tolist() for fact, rows in by_fact}
        names = {fact: rows["candidate"].tolist() for fact, rows in by_fact}
        texts = [[f"{gap}{label}" for label in labels[fact]] for fact in part.prompts["fact"]]
        found = model.logprobs(part.prompts["text"].tolist(), texts, end=end)
        rows = _with_prompts(model, part, found)
        picked = list(zip(rows["fact"], rows["candidate"], strict=True))
        rows["label"] = [labels[f][c] for f, c in picked]
        rows["candidate"] = [names[f][c] for f, c in picked]
        record = {"cost": rows.attrs["cost"], "model": model.describe()}
        written[part.path] = write(part, rows[SCORES], record)
    return read(asked, written, model)


def generate(model, prompts: pd.DataFrame, folder: str | Path, **options) -> pd.DataFrame:
    """Generated text for every prompt: ``model``, ``relation``, ``fact``, ``prompt``, ``rank``,
    ``text``, ``n_tokens``, ``logprob``; ``options`` as in ``lm.decode.generation.generate``."""
    asked, written = parts(model, prompts, None, folder, "generate", options), {}
    for part in unfinished(model, asked):
        rows = _with_prompts(model, part, model.generate(part.prompts["text"].tolist(), **options))
        record = {"cost": rows.attrs["cost"], "model": model.describe()}
        kept = rows[[*REQUESTED, "rank", "text", "n_tokens", "logprob"]]
        written[part.path] = write(part, kept, record)
    return read(asked, written, model)


def search(model, prompts: pd.DataFrame, spaces: dict, folder, end: bool = True, method="beam"):
    """The most probable candidates after every prompt: ``FOUND`` (``rank`` from 1; ``logprob``,
    nats, over all labels of a candidate; ``label``, its best one; ``trie_tokens``, what scoring all
    labels would read).

    prompts   with ``space``, ``wanted`` (how many); spaces: space -> {candidate: [its labels]}
    end, method   as in ``lm.decode.labels.top_continuations``
    """
    from probelib.lm.decode.labels import Labels

    digests = {
        name: files.sha256(json.dumps(spaces[name]).encode()) for name in prompts["space"].unique()
    }
    searched = list(zip(prompts["space"].map(digests), prompts["wanted"], strict=True))
    prompts = prompts.assign(searched=pd.Series(searched, prompts.index, dtype=object))
    asked = parts(model, prompts, None, folder, "search", {"end": end, "method": method})
    written = {}
    for part in unfinished(model, asked):
        found, order = [], {prompt: i for i, prompt in enumerate(part.prompts["prompt"])}
        for (space, wanted), rows in part.prompts.groupby(["space", "wanted"], sort=False):
            if (key := (digests[space], end)) not in model.tries:
                model.tries[key] = Labels(model, spaces[space], end)
            hits = model.top_continuations(
                rows["text"].tolist(), model.tries[key], wanted, end, method
            )
            rank, size = hits.groupby("prompt").cumcount() + 1, hits.attrs["cost"]["trie_tokens"]
            hits = hits.assign(rank=rank, trie_tokens=size)
            found.append(_with_prompts(model, replace(part, prompts=rows), hits))
        frame = pd.concat(found).sort_values(
            "prompt", key=lambda p: p.map(order), kind="stable", ignore_index=True
        )
        cost = sum_costs(hits.attrs["cost"] for hits in found)
        record = {"cost": cost, "model": model.describe()}
        written[part.path] = write(part, frame[FOUND], record)
    return read(asked, written, model)


def _with_prompts(model, part: Part, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a verb with the columns ``REQUESTED``, in place of indices of prompts."""
    prompts = part.prompts.iloc[rows["prompt"].to_numpy()]
    fact, prompt = prompts["fact"].to_numpy(), prompts["prompt"].to_numpy()
    return rows.assign(model=model.name, relation=part.relation, fact=fact, prompt=prompt)


def parts(model, prompts, candidates, folder: str | Path, verb: str, options: dict) -> list[Part]:
    """One part per relation, each with its key.

    verb      the kind of rows, part of the file name
    options   everything else that changes a number
    """
    if candidates is not None and (missing := set(prompts["fact"]) - set(candidates["fact"])):
        raise ProbeError(
            f"{len(missing)} facts have prompts but no candidate, e.g. {sorted(missing)[0]!r}"
        )
    about = [measured := model.identity(), verb, options, scoring()]
    identity, found = json.dumps(about, sort_keys=True, default=str).encode(), []
    by_relation = {}
    if candidates is not None:
        relation_of = dict(zip(prompts["fact"].tolist(), prompts["relation"].tolist(), strict=True))
        by_relation = dict(list(candidates.groupby(candidates["fact"].map(relation_of))))
    for relation, rows in prompts.groupby("relation", sort=False):
        chosen = by_relation.get(relation)
        key = hashlib.sha256(identity)
        for table in (rows[[name for name in KEYED if name in rows]], chosen):
            key.update(b"" if table is None else table.to_csv(index=False).encode())
        name = f"{files.slug(relation)}-{verb}-{key.hexdigest()[:16]}.parquet"
        path = Path(folder) / files.slug(model.name) / name
        found.append(Part(path, relation, rows, chosen, measured))
    return found


def record_models() -> list[dict]:
    """A list that collects the models (``LM.describe()``) of all scores read from now on."""
    _models[:] = [[]]  # one list per notebook; that of an earlier notebook does not change
    return _models[0]


def unfinished(model, parts: list[Part]) -> Iterator[Part]:
    """The parts to compute and ``write``, under a bar; take all. After the last one: ProbeError,
    and none of them is kept, if the model was changed meanwhile."""
    left = [part for part in parts if not part.finished()]
    total = sum(len(part.prompts) for part in left)
    with tqdm(total=total, desc=model.name, unit="prompt", disable=len(left) < 2) as bar:
        for part in left:
            yield part
            bar.update(len(part.prompts))
    if left and model.identity() != left[0].model:
        for part in left:
            part.path.with_suffix(".json").unlink(missing_ok=True)
        raise ProbeError(
            f"{model.name} was changed while it was scored; the scores are not kept. Score it again"
        )


def write(part: Part, frame: pd.DataFrame, record: dict) -> tuple[bytes, dict]:
    """Finish a part: write its rows, then their checksum and ``record``. Return what was written:
    another process may write the same part just now. Raise as ``lm.version.check_unchanged``."""
    check_unchanged()
    buffer = io.BytesIO()
    table = pyarrow.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    pyarrow.parquet.write_table(table, buffer, compression="zstd")
    content = buffer.getvalue()
    files.write(part.path, content, lasting=False)
    about = {"sha256": files.sha256(content), "rows": len(frame), "scoring": scoring()}
    about |= json.loads(json.dumps(record, default=float))
    files.write_json(part.path.with_suffix(".json"), about, seal=True, lasting=False)
    return content, about


def read(parts: Iterable[Part], written: dict[Path, tuple[bytes, dict]] | None = None, model=None):
    """The rows of finished parts, in their order; ``written``: path -> what ``write`` returned, for
    parts that were computed just now. Raise ProbeError if a part is missing, or if the loaded
    ``model`` computes other numbers (``LM.confirm``)."""
    parts, written = list(parts), written or {}
    if missing := [p.relation for p in parts if p.path not in written and not p.finished()]:
        raise ProbeError(
            f"{len(missing)} of {len(parts)} parts are missing ({', '.join(missing[:8])}): a mean "
            "over the remaining ones would be another mean. Score them first"
        )
    frames, records = [], []
    for part in parts:
        content, record = written.get(part.path) or (part.path.read_bytes(), part.record())
        # without threads: one that gets no memory ends in an error without a reason
        table = pyarrow.parquet.ParquetFile(io.BytesIO(content), pre_buffer=False)
        frames.append(table.read(use_threads=False).to_pandas(use_threads=False))
        records.append(record)
    frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    frame.attrs["cost"] = sum_costs(record["cost"] for record in records)
    models = {json.dumps(record["model"]): record["model"] for record in records}
    frame.attrs["models"] = list(models.values())
    for used in _models:
        used.extend(each for each in frame.attrs["models"] if each not in used)
    for record in frame.attrs["models"] if hasattr(model, "confirm") else []:
        model.confirm(record)
    return frame


def sum_costs(costs: Iterable[dict]) -> dict:
    """Costs added up; other values (the path) are kept if all are equal, otherwise "mixed"."""
    costs, total = list(costs), {}
    for key in dict.fromkeys(key for cost in costs for key in cost):
        values = [cost[key] for cost in costs if key in cost]
        if all(isinstance(value, (int, float, np.number)) for value in values):
            total[key] = sum(values)
        else:
            total[key] = values[0] if len(set(map(str, values))) == 1 else "mixed"
    return total
