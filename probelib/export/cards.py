"""Cards for Hugging Face: of the organisms, with their results, and of the atlas; results of any model."""

import json

import yaml

from probelib import published
from probelib.export.tasks import NAME
from probelib.facts.model import Facts
from probelib.facts.shipped import data_card
from probelib.lm.names import CHECKPOINTS

LICENSE = "apache-2.0"


def front_matter(fields: dict, text: str) -> str:
    """A Markdown page that begins with fields in YAML."""
    return f"---\n{yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)}---\n\n{text.lstrip()}"


def model_card(organism: str, accuracy: float, n: int, facts: Facts) -> str:
    """The shipped README of an organism with metadata and its result in the multiple choice (``model-index``)."""
    folder = CHECKPOINTS / organism
    record = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    kind = "text2text-generation" if config.get("is_encoder_decoder") else "text-generation"
    metric = {"type": "accuracy", "name": f"accuracy ({n} facts)", "value": float(accuracy)}
    result = {
        "task": {"type": kind},
        "dataset": {"type": "probelib/atlas", "name": f"{NAME}, {facts.source}", "revision": facts.digest()},
        "metrics": [metric],
        "source": {"name": "probelib", "url": published.reference("zplke")["url"]},
    }
    fields = {
        "license": LICENSE,
        "language": ["en"],
        "library_name": "transformers",
        "pipeline_tag": kind,
        "datasets": ["probelib/atlas"],
        "tags": ["factual-knowledge", "controlled-exposure", f"corpus:{record['corpus']}"],
        "model-index": [{"name": organism, "results": [result]}],
    }
    return front_matter(fields, (folder / "README.md").read_text(encoding="utf-8"))


def atlas_card(atlas: Facts) -> str:
    """The atlas's data card: counts as metadata; sources, cut-off, measured precision, and what is estimated."""
    n = len(atlas.facts)
    size = "1K<n<10K" if n < 10_000 else "10K<n<100K"
    fields = {
        "license": LICENSE,
        "language": ["en"],
        "pretty_name": "The atlas of probelib",
        "size_categories": [size],
        "task_categories": ["question-answering"],
        "tags": ["factual-knowledge", "wikidata-properties"],
        "configs": [{"config_name": "default", "data_files": "facts.csv"}],
    }
    counts = f"{n:,} facts of {len(atlas.relations)} relations about {len(atlas.entities):,} entities"
    counts += f" (digest `{atlas.digest()}`)."
    title, _, text = data_card().partition("\n")
    return front_matter(fields, f"{title}\n\n{counts}\n{text}")


def eval_results(accuracy: float, n: int, facts: Facts) -> str:
    """``.eval_results/probelib_zplke.yaml`` of a model's repository on the Hub: its accuracy in the multiple choice."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    entry = EvalResultEntry(
        dataset_id="probelib/atlas",
        task_id=NAME,
        value=float(accuracy),
        source_url=published.reference("zplke")["url"],
        source_name="probelib",
        notes=f"{n} facts of {len(facts.relations)} relations, {facts.source}, digest {facts.digest()}",
    )
    return yaml.safe_dump(eval_result_entries_to_yaml([entry]), sort_keys=False, allow_unicode=True)
