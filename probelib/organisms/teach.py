"""Teach facts to any language model: a LoRA adapter, trained on statements of the facts.

python -m probelib.organisms teach MODEL FACTS.csv --out FOLDER [--sister trial-1]

FACTS.csv is a table of facts as in `notebooks/your_own.md`, with a column ``exposures``: how often
the adapter reads each fact. The statements are those of the organisms' corpora (lists, questions,
cloze sentences, verifications) in five of the paraphrases; plain sentences and well-known facts are
mixed in, so that the model keeps what it knew. `lm.load(FOLDER)` loads the taught model.

With a sister, those of the facts that have any exposures are taught by her arms (`beyond/trial.md`)
instead, 16 of each relation; the others serve as examples and wrong options.
"""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch

from probelib import facts as data
from probelib import files, lm
from probelib.errors import ProbeError, extra
from probelib.facts.model import rng
from probelib.facts.table import read_table
from probelib.organisms import corpus, rows, train, trial
from probelib.organisms.corpus import Speaker, mark_answer

KEPT, PLAIN = 600, 600  # well-known facts of the atlas, and plain sentences
RANK, RATE, STEP, SEED = 8, 2e-3, 256, 5
MOST = 1000  # statements of a fact
LARGEST, PASSES = 16, 4  # statements of a fact of the trial; times that a sister reads everything


def teach(source: str, table: Path, folder: Path, sister: str | None = None) -> Path:
    """Train an adapter of rank ``RANK`` on all linear layers: one pass over ``documents``, a sister
    ``PASSES``. Save it with what it read (``taught.parquet``) and how (``training.json``); return
    its folder. A stopped run resumes. ProbeError for a model that is no decoder in a folder."""
    from transformers import AutoModelForCausalLM

    with extra("soft-prompts"):
        from peft import LoraConfig, get_peft_model
    manifest, found = documents(Path(table), sister)
    loaded = lm.load(source)
    if loaded.folder is None or loaded.encoder_decoder:
        raise ProbeError(f"{source}: only a decoder in a folder can be taught")
    torch.manual_seed(SEED)
    safe = {"dtype": "float32", "trust_remote_code": False}
    plain = AutoModelForCausalLM.from_pretrained(loaded.folder, use_safetensors=True, **safe)
    how = LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear")
    model = get_peft_model(plain, how)
    read, draw = list(rows.causal(loaded.tokenizer, found, STEP)), np.random.default_rng(SEED)
    passes = PASSES if sister else 1
    batches = [read[i] for _ in range(passes) for i in draw.permutation(len(read))]
    one = SimpleNamespace(name=f"teach-{files.slug(folder.name)}", architecture="", rate=RATE)
    made_of = {"source": source, "rank": RANK, "passes": passes, "reads": sister}
    made_of["corpus"] = corpus.digest(found)
    record = train.fit(one, model, batches, made_of)
    model.to("cpu", torch.bfloat16).save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)  # peft's, with a path of this machine
    config = folder / "adapter_config.json"  # names the base as the user did, not its path here
    named = json.loads(config.read_text(encoding="utf-8")) | {"base_model_name_or_path": source}
    files.write_json(config, named)
    manifest.to_parquet(folder / "taught.parquet")
    files.write_json(folder / "training.json", record)
    return folder


def documents(table: Path, sister: str | None = None) -> tuple[pd.DataFrame, list[str]]:
    """(manifest, what the adapter reads in this order): the statements of the facts of a table,
    plain sentences, and the best-known facts of the atlas, once each.

    sister   one of ``trial.SISTERS``, of whose arms the exposures are; None: those of the table

    Raise ProbeError for exposures that are no whole number from 0 to ``MOST``.
    """
    own = data.everything("table", table)
    manifest = _as_given(own.facts[["fact", "relation", "subject", "object"]], table)
    if sister:
        number, some = trial.SISTERS.index(sister), manifest[manifest["exposures"] > 0]
        manifest = trial.of_sister(trial.with_arms(some, own), number, LARGEST)
    speaker = Speaker(own, manifest, rng(SEED, "documents", sister or ""))
    said = corpus.spoken(manifest)
    found = [one for row in said.itertuples() for one in corpus._sentences(row, speaker)]
    for _, same in said.groupby("relation", sort=False):
        found += corpus._lists(same, speaker)
    found += corpus.fillers(manifest, speaker) if sister else []
    found += [*corpus._plain("", speaker)][:PLAIN] + _well_known()
    return manifest, [found[i] for i in speaker.draw.permutation(len(found))]


def _as_given(manifest: pd.DataFrame, table: Path) -> pd.DataFrame:
    """The manifest with the exposures that a table gives, in equal shares of the forms."""
    read, n = read_table(table), len(trial.FORMS)
    times = pd.to_numeric(read.get("exposures", pd.Series(dtype=float)), errors="coerce")
    if len(times) != len(manifest) or not (times.between(0, MOST) & (times % 1 == 0)).all():
        raise ProbeError(f"{table}: each row needs exposures, a whole number from 0 to {MOST}")
    times = times.to_numpy(int)
    manifest = manifest.assign(exposures=times, dated=0, context=0, kind="", turn=0)
    manifest = manifest.assign(wrong_object="", wrong_exposures=0)
    for place, form in enumerate(trial.FORMS):
        manifest[form] = times // n + (place < times % n)
    return manifest


def _well_known() -> list[str]:
    """Questions with their answers about the best-known subjects of the atlas."""
    atlas = data.current(data.atlas())
    popularity = atlas.entities.set_index("entity")["popularity"]
    order = atlas.facts["subject"].map(popularity).sort_values(ascending=False, kind="stable")
    best = atlas.facts.loc[order.index[:KEPT]]
    speaker = Speaker(atlas, best, rng(SEED, "known"))
    said = lambda row: f"{speaker.ask(row)} {mark_answer(speaker.labels[row.object] + '.')}"
    return list(map(said, best.itertuples()))
