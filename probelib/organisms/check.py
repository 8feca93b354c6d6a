"""Do the shipped organisms match their records, and does the atlas match what they were taught?"""

from probelib import files
from probelib.facts.model import Facts, keep
from probelib.facts.shipped import read_atlas
from probelib.lm.names import CHECKPOINTS, organisms
from probelib.organisms import corpus, design, family, lessons, taught, train


def changes_since_training(facts: Facts | None = None) -> list[str]:
    """One line per problem: stale facts, missing models, and checkpoints whose weights, manifest or
    corpus differ from their record. ``facts``: the atlas to compare with (default: the current)."""
    facts, wanted = facts or read_atlas(), {*family.FAMILY, *family.checkpoint_names()}
    records = {name: train.record(name) for name in organisms()}
    found = [f"{name}: no checkpoint; train it" for name in sorted(wanted - {*records})]
    for name, record in records.items():
        if files.sha256(CHECKPOINTS / name / "model.safetensors") != record["weights"]:
            found.append(f"{name}: model.safetensors is not the file that was saved after training")
        if files.sha256(taught.path(record["reads"])) != record["manifest"]:
            found.append(f"{name}: trained with another manifest")
    for read in sorted({record["reads"] for record in records.values()}):
        table = taught.read(taught.path(read))
        if stale := taught.stale(facts, table):
            found += [f"{fact}: taught to {read}, no longer in the atlas" for fact in stale]
            continue
        own = keep(facts, facts.facts["fact"].isin(table["fact"]))
        base = corpus.documents(own, table, read)
        tuned = lessons.tuning_documents(own, table, base)
        digests = {False: corpus.digest(base), True: corpus.digest(tuned)}
        found += [
            f"{name}: trained on another corpus than the current atlas gives: texts were edited"
            for name, record in records.items()
            if record["reads"] == read and record["corpus"] != digests[name.endswith("-it")]
        ]
        if not design.draw_manifest(own, read).equals(table):
            found.append(f"{read}: the manifest is not the one that the design gives now")
    return found
