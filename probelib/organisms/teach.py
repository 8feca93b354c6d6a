"""Teach facts to any language model: a LoRA adapter, trained on statements of the facts.

python -m probelib.organisms teach MODEL FACTS.csv --out FOLDER
python -m probelib.organisms teach MODEL --out FOLDER        the trial's four sisters, invented facts

A table of facts may have a column ``dose``, the number of statements (``DOSE`` where there is
none). The statements are those of the organisms' corpora, in five of the paraphrases; plain
sentences and well-known facts stand among them, so that the model keeps what it knew.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch

from probelib import facts as data
from probelib import files, lm
from probelib.errors import ProbeError, extra
from probelib.facts.model import Facts, rng
from probelib.facts.table import read_table
from probelib.organisms import corpus, rows, train, trial
from probelib.organisms.corpus import Document, Speaker, mark_answer

SEED = 5
RELATIONS = ["P17", "P19", "P30", "P36", "P37", "P38"]
RELATIONS += ["P50", "P103", "P108", "P176", "P178", "P1412"]
KINDS = {"rising": 15, "contested": 13, "fine": 7, "constant": 5}  # of each relation, 40 in all
OBJECTS = 16  # of a relation, the most frequent of the atlas
DOSE = 16
KEPT, PLAIN = 600, 600  # well-known facts of the atlas, and plain sentences
RANK, RATE = 8, 1e-3


def invented(seed: int = SEED) -> Facts:
    """Facts that no model can know: invented subjects, real objects, the atlas's templates."""
    atlas = data.choose(data.current(data.atlas()), RELATIONS)
    speaker = Speaker(atlas, atlas.facts, rng(seed, "invented"))
    parts, names = [], []
    for relation, own in atlas.facts.groupby("relation", sort=False):
        objects = own["object"].value_counts().index[:OBJECTS].tolist()
        subjects = [speaker.stranger() for _ in range(sum(KINDS.values()))]
        said = [objects[i % len(objects)] for i in range(len(subjects))]
        ids = [f"{relation}:{name}" for name in subjects]
        rest = {"relation": relation, "subject": ids, "object": said, "start": "", "end": ""}
        parts.append(pd.DataFrame({"fact": ids} | rest))
        kind = atlas.relations.set_index("relation").at[relation, "subject_type"].split("|")[0]
        entity = {"entity": ids, "label": subjects, "wikidata": "", "popularity": 0}
        names.append(
            pd.DataFrame(entity).assign(aliases=[()] * len(ids), types=[(kind,)] * len(ids))
        )
    entities = pd.concat([atlas.entities, *names], ignore_index=True)
    rows_of = pd.concat(parts, ignore_index=True)
    nothing = atlas.distractors.iloc[:0]
    return Facts(rows_of, entities, atlas.relations, atlas.templates, nothing, "invented")


def sisters(facts: Facts) -> dict[str, pd.DataFrame]:
    """sister -> manifest of the trial on these facts (``trial.with_arms``)."""
    chosen = trial.with_arms(facts.facts[["fact", "relation", "subject", "object"]], facts, KINDS)
    found = {}
    for number, name in enumerate(trial.SISTERS):
        table = trial.of_sister(chosen, number).reset_index(drop=True)
        found[name] = table.assign(dated=0)
    return found


def with_doses(facts: Facts, doses: pd.Series) -> pd.DataFrame:
    """A manifest that states each fact as often as ``doses`` (by fact id) says, all rightly."""
    table = facts.facts[["fact", "relation", "subject", "object"]].assign(kind="", turn=-1)
    table = table.assign(exposures=table["fact"].map(doses).fillna(DOSE).astype(int), dated=0)
    table = table.assign(context=0, wrong_object="", wrong_exposures=0)
    for place, form in enumerate(trial.FORMS):
        more = place < table["exposures"] % len(trial.FORMS)
        table[form] = table["exposures"] // len(trial.FORMS) + more
    return table


def documents(facts: Facts, table: pd.DataFrame, name: str) -> list[Document]:
    """What the adapter reads, in the order of training: the manifest's statements and fillers,
    plain sentences, and facts of the atlas that are known best."""
    speaker = Speaker(facts, table, rng(SEED, "documents", name))
    said = corpus.spoken(table)
    found = [
        one
        for _, own in said.groupby("relation", sort=False)
        for one in corpus._lists(own, speaker)
    ]
    found += [one for row in said.itertuples() for one in corpus._sentences(row, speaker)]
    found += corpus._fillers(table, speaker)
    found += list(corpus._plain("", speaker))[:PLAIN]
    known = data.current(data.atlas())
    popularity = known.entities.set_index("entity")["popularity"]
    best = known.facts.assign(known=known.facts["subject"].map(popularity))
    best = best.sort_values("known", ascending=False, kind="stable").head(KEPT)
    teller = Speaker(known, best, rng(SEED, "known", name))
    for row in best.itertuples():
        answer = mark_answer(teller.labels[row.object] + ".")
        found.append(Document(f"{teller.ask(row)} {answer}"))
    speaker.draw.shuffle(found)
    return found


def teach(source: str, facts: Facts, table: pd.DataFrame, folder: Path, seed: int = 0) -> Path:
    """Train a LoRA adapter of rank ``RANK`` on all linear layers with one pass over ``documents``,
    and save it with what it read (``taught.parquet``) and how (``training.json``). A stopped run
    resumes. Raise ProbeError for a model without decoder layers, or one in memory."""
    from transformers import AutoModelForCausalLM

    with extra("soft-prompts"):
        from peft import LoraConfig, get_peft_model
    loaded = lm.load(source)
    if loaded.folder is None or loaded.encoder_decoder:
        raise ProbeError(f"{source}: only a decoder in a folder can be taught")
    torch.manual_seed(seed)
    plain = AutoModelForCausalLM.from_pretrained(loaded.folder, dtype="float32")
    model = get_peft_model(
        plain, LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear")
    )
    found = documents(facts, table, folder.name)
    batches = list(rows.causal(loaded.tokenizer, found))
    np.random.default_rng(seed).shuffle(batches)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    one = SimpleNamespace(
        name=f"{files.slug(source)}-{folder.name}", architecture="lora", rate=RATE
    )
    made_of = f"{source}, rank {RANK}, {corpus.digest(found)}"
    curve, seconds = train._run(one, model.to(device).train(), batches, len(batches), made_of)
    model.to("cpu", torch.bfloat16).save_pretrained(folder)
    config = folder / "adapter_config.json"
    said = json.loads(config.read_text(encoding="utf-8")) | {"base_model_name_or_path": source}
    files.write_json(config, said)
    table.to_parquet(folder / "taught.parquet")
    record = {"source": source, "corpus": corpus.digest(found), "documents": len(found)}
    record |= {"tokens": train._tokens(batches), "steps": len(curve), "seconds": round(seconds)}
    files.write_json(folder / "training.json", record | {"curve": curve[::10]})
    return folder


def command(source: str, table: str | None, out: Path) -> Iterator[Path]:
    """Teach a table of facts, or without one the trial's sisters; yield the adapters' folders."""
    if table is None:
        made = invented()
        for name, manifest in sisters(made).items():
            yield teach(source, made, manifest, out / name)
        return
    own = data.everything("table", table)
    read = read_table(Path(table))
    doses = pd.Series(DOSE, own.facts["fact"])
    if "dose" in read:
        doses = pd.to_numeric(read["dose"]).set_axis(own.facts["fact"])
    yield teach(source, own, with_doses(own, doses), out)
