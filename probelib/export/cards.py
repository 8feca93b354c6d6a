"""Cards for Hugging Face: of the organisms, with their results, and of the atlas; results of any model."""

import json
from typing import NamedTuple

import yaml

from probelib import published
from probelib.export.tasks import NAME
from probelib.facts.model import Facts
from probelib.facts.shipped import data_card
from probelib.lm.names import CHECKPOINTS

LICENSE = "apache-2.0"


class Result(NamedTuple):
    """The accuracy of a model in the multiple choice about ``n`` facts."""

    accuracy: float
    n: int
    facts: Facts


def front_matter(fields: dict, text: str) -> str:
    """A Markdown page that begins with fields in YAML."""
    return f"---\n{yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)}---\n\n{text.lstrip()}"


def model_card(organism: str, result: Result | None = None) -> str:
    """The shipped README of an organism with metadata, and with its result in the multiple choice (``model-index``) if it has
    one."""
    folder = CHECKPOINTS / organism
    record = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    kind = task_of(json.loads((folder / "config.json").read_text(encoding="utf-8")))
    fields = {
        "license": LICENSE,
        "language": ["en"],
        "library_name": "transformers",
        "pipeline_tag": kind,
        "datasets": ["probelib/atlas"],
        "tags": ["factual-knowledge", "controlled-exposure", f"corpus:{record['corpus']}"],
    }
    if result:
        fields["model-index"] = [{"name": organism, "results": [model_index(result, kind)]}]
    return front_matter(fields, (folder / "README.md").read_text(encoding="utf-8"))


def task_of(config: dict) -> str:
    """Hugging Face's name for the task of a model, from its ``config.json``.

    >>> task_of({"architectures": ["ModernBertForMaskedLM"]})
    'fill-mask'
    """
    (architecture,) = config["architectures"]
    if architecture.endswith("ForMaskedLM"):
        return "fill-mask"
    return "text2text-generation" if config.get("is_encoder_decoder") else "text-generation"


def model_index(result: Result, kind: str) -> dict:
    """A result as an entry of a model card's ``model-index``; ``kind``: the task of the model."""
    metric = {"type": "accuracy", "name": f"accuracy ({result.n} facts)", "value": float(result.accuracy)}
    facts = result.facts
    return {
        "task": {"type": kind},
        "dataset": {"type": "probelib/atlas", "name": f"{NAME}, {facts.source}", "revision": facts.digest()},
        "metrics": [metric],
        "source": {"name": "probelib", "url": published.reference("zplke")["url"]},
    }


def atlas_card(atlas: Facts) -> str:
    """The atlas's data card: counts as metadata; sources, cut-off, measured precision and estimates as text."""
    n = len(atlas.facts)
    fields = {
        "license": LICENSE,
        "language": ["en"],
        "pretty_name": "The atlas of probelib",
        "size_categories": ["10K<n<100K"],
        "task_categories": ["question-answering"],
        "tags": ["factual-knowledge", "wikidata-properties"],
        "configs": [{"config_name": "default", "data_files": "facts.csv"}],
    }
    counts = f"{n:,} facts of {len(atlas.relations)} relations about {len(atlas.entities):,} entities"
    counts += f" (digest `{atlas.digest()}`)."
    title, _, text = data_card().partition("\n")
    return front_matter(fields, f"{title}\n\n{counts}\n{text}")


def eval_results(result: Result) -> str:
    """``.eval_results/probelib_zplke.yaml`` of a model's repository on the Hub: its accuracy in the multiple choice."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    facts = result.facts
    entry = EvalResultEntry(
        dataset_id="probelib/atlas",
        task_id=NAME,
        value=float(result.accuracy),
        source_url=published.reference("zplke")["url"],
        source_name="probelib",
        notes=f"{result.n} facts of {len(facts.relations)} relations, {facts.source}, digest {facts.digest()}",
    )
    return yaml.safe_dump(eval_result_entries_to_yaml([entry]), sort_keys=False, allow_unicode=True)
