"""Results in the schema of Every Eval Ever: one JSON per model, and one line per fact beside it."""

import hashlib
import uuid
from pathlib import Path

import pandas as pd

from probelib import __version__, files, published
from probelib.export.tasks import NAME, Choice, rows_of
from probelib.stats import wilson

SCHEMA = "0.3.0"


def write_evaluation(test: Choice, model, scores: pd.DataFrame, chosen: pd.DataFrame, folder: Path, time: int) -> Path:
    """Write ``data/probelib_zplke/<owner>/<model>/<id>.json`` and ``<id>_samples.jsonl``, the paths that the schema requires;
    return the first one's path.

    scores, chosen   see ``Choice.score``
    time             of the evaluation, seconds since 1970: part of its id
    """
    about = {"schema_version": SCHEMA, "evaluation_id": f"{NAME}/{model_id(model.name)}/{time}"}
    digest = hashlib.sha256(about["evaluation_id"].encode()).digest()
    owner, name = (files.slug(part) for part in model_id(model.name).rsplit("/", 1))
    stem = f"data/{NAME}/{owner}/{name}/{uuid.UUID(bytes=digest[:16], version=4)}"
    lines = [about | {"model_id": model_id(model.name)} | line for line in instances(test, scores, chosen)]
    samples = files.write_lines(folder / f"{stem}_samples.jsonl", lines)
    right, n = int(chosen["correct"].sum()), len(chosen)
    low, high = wilson(right, n)
    interval = {"lower": low, "upper": high, "confidence_level": 0.95, "method": "Wilson"}
    paper = published.reference("zplke")
    result = {
        "evaluation_name": NAME,
        "evaluation_result_id": NAME,
        "source_data": {
            "dataset_name": test.facts.source,
            "source_type": "other",
            "additional_details": {"facts": test.facts.digest()},
        },
        "metric_config": {
            "metric_name": "accuracy",
            "evaluation_description": f"Multiple choice after a list of examples: {paper['title']} ({paper['url']})",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
        },
        "score_details": {"score": right / n, "uncertainty": {"confidence_interval": interval, "num_samples": n}},
    }
    whole = about | {
        "evaluation_timestamp": str(time),
        "retrieved_timestamp": str(time),
        "source_metadata": {
            "source_name": "probelib",
            "source_type": "evaluation_run",
            "source_organization_name": "probelib",
            "evaluator_relationship": "third_party",
        },
        "eval_library": {"name": "probelib", "version": __version__},
        "model_info": {
            "name": model.name,
            "id": model_id(model.name),
            "additional_details": {"deployment_type": "self_deployed", "model_availability": "open_weights"}
            | {name: str(value) for name, value in model.identity().items() if value is not None},
        },
        "evaluation_results": [result],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": f"{stem}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": files.sha256(samples),
            "total_rows": n,
        },
    }
    return files.write_json(folder / f"{stem}.json", whole)


def model_id(name: str) -> str:
    """``owner/name``, as the schema requires; the owner of a shipped or local model is "probelib"."""
    return name if "/" in name else f"probelib/{name}"


def instances(test: Choice, scores: pd.DataFrame, chosen: pd.DataFrame) -> list[dict]:
    """Per fact: prompt, options, the option that the model finds most probable, and whether it is right."""
    labels = scores.set_index(["prompt", "candidate"])["label"]
    about, lines = chosen.set_index("fact"), []
    how = {"extraction_method": "highest log-probability", "is_terminal": True}
    for row in rows_of(test):
        one, options = about.loc[row["fact"]], [text.strip() for text in row["options"]]
        said, right = labels[one["prompt"], one["predicted"]], options[row["answer"]]
        line = {
            "evaluation_name": NAME,
            "evaluation_result_id": NAME,
            "sample_id": row["fact"],
            "sample_hash": files.sha256((row["text"] + right).encode()),
            "interaction_type": "single_turn",
            "input": {"raw": row["text"], "reference": [right], "choices": options},
            "output": {"raw": [said]},
            "answer_attribution": [{"turn_idx": 0, "source": "output.raw", "extracted_value": said} | how],
            "evaluation": {"score": float(one["correct"]), "is_correct": bool(one["correct"])},
            "metadata": {"relation": row["relation"], "share_of_the_object": f"{one['q_gold']:.6g}"},
        }
        lines.append(line)
    return lines
