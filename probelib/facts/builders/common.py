"""What the builders share: filters that count, facts that go by their labels, and the table of triples."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from probelib import files
from probelib.errors import ProbeError
from probelib.facts.model import DISTRACTORS, ENTITIES, Facts, fold, holds, keep, subjects
from probelib.facts.text import is_a, number_in

LEFT_OUT = ["filter", "of", "relation", "left_out"]


def check_sizes(**sizes: int) -> None:
    """Refuses numbers of facts, options, ... that are no whole numbers from 1."""
    for name, size in sizes.items():
        if not is_a(size, int) or size < 1:
            raise ProbeError(f"{name}={size!r}; a whole number, 1 or more, is needed")


def note(log: list[tuple], name: str, of: str, relations: pd.Series, good: pd.Series) -> None:
    """Adds to the log what the filter ``name`` leaves out of each relation: where ``good`` does not hold."""
    lost = relations[~good].value_counts()
    log += [(name, of, relation, int(lost.get(relation, 0))) for relation in relations.unique()]


def take(facts: Facts, good: pd.Series, name: str, log: list[tuple]) -> Facts:
    """The facts for which ``good`` holds, the others counted; none at all is a ProbeError."""
    note(log, name, "facts", facts.facts["relation"], good)
    if not good.any():
        raise ProbeError(f"{facts.source}: no facts are left to build from; {totals(log)}")
    return keep(facts, good)


def left_out(log: list[tuple]) -> pd.DataFrame:
    """The log as the frame that every builder returns (see the head of the package)."""
    return pd.DataFrame(log, columns=LEFT_OUT)


def totals(log: list[tuple]) -> str:
    """What each filter left out of all relations together, for a message."""
    numbers = left_out(log).groupby("filter", sort=False)["left_out"].sum()
    return "left out: " + (", ".join(f"{name} {n}" for name, n in numbers.items() if n) or "nothing")


def fact_ids(rows: pd.DataFrame) -> pd.Series:
    """relation:subject:object of each fact: its id for the readers too."""
    return rows["relation"] + ":" + rows["subject"] + ":" + rows["object"]


def by_label(facts: Facts, log: list[tuple]) -> tuple[Facts, Facts]:
    """The facts as a format without ids shows them, and all of them as the pool that wrong objects are drawn from.

    An entity's key is its label; entities of one label are one, with the aliases and types of all. Of the first, but not
    of the pool, are left out: facts that hold no longer, facts of a label that several subjects of the relation share
    (nobody could tell which is meant), and triples that stand there twice. Neither has distractors.
    """
    label = facts.entities.set_index("entity")["label"].str.strip()
    rows = facts.facts.assign(subject=facts.facts["subject"].map(label), object=facts.facts["object"].map(label))
    rows["fact"] = fact_ids(rows)
    ambiguous = facts.facts["subject"].groupby([rows["relation"], rows["subject"]]).transform("nunique") > 1
    ambiguous = set(rows["fact"][ambiguous])
    place = {r: i for i, r in enumerate(sorted(rows["relation"].unique(), key=lambda r: (number_in(r), r)))}
    rows = rows.sort_values("relation", key=lambda r: r.map(place), kind="stable", ignore_index=True)
    entities = _merge(facts.entities.assign(label=facts.entities["label"].str.strip()))
    pool = replace(facts, facts=rows, entities=entities, distractors=pd.DataFrame(columns=DISTRACTORS))
    chosen = take(pool, holds(rows), "holds no longer", log)
    chosen = take(chosen, ~chosen.facts["fact"].isin(ambiguous), "several subjects of one label", log)
    return take(chosen, ~chosen.facts["fact"].duplicated(), "the same triple again", log), pool


def _merge(entities: pd.DataFrame) -> pd.DataFrame:
    """One row a label; an id stays where all entities of the label have it."""
    several = entities["label"].duplicated(keep=False)
    union = lambda values: tuple(dict.fromkeys(value for some in values for value in some))
    rows = [
        (label, label, ids.pop() if len(ids := set(same["wikidata"])) == 1 else "")
        + (union(same["aliases"]), union(same["types"]), same["popularity"].max())
        for label, same in entities[several].groupby("label", sort=False)
    ]
    single = entities[~several].assign(entity=entities["label"])
    merged = pd.DataFrame(rows, columns=ENTITIES).astype({"popularity": entities["popularity"].dtype})
    return pd.concat([single, merged], ignore_index=True)


def names(entities: pd.DataFrame, endings: Iterable[str] = ()) -> pd.DataFrame:
    """Every name of every entity: ``object`` (the entity's key), ``name`` (``bare``), ``is_label``.

    endings   words that tell no two entities apart at the end of a name and are taken off: with "language", French and
              French language have one name
    """
    labels = entities[["entity", "label"]].set_axis(["object", "name"], axis=1).assign(is_label=True)
    aliases = entities[["entity", "aliases"]].explode("aliases").dropna().set_axis(["object", "name"], axis=1)
    frame = pd.concat([labels, aliases.assign(is_label=False)], ignore_index=True)
    frame["name"] = frame["name"].map(lambda name: bare(name, endings))
    return frame


def bare(name: str, endings: Iterable[str]) -> str:
    """A name, folded, without a last word that is one of ``endings``."""
    name = fold(name).strip()
    first, _, last = name.rpartition(" ")
    return first if first and last in endings else name


def n_wrong(facts: Facts, pool: Facts) -> pd.Series:
    """How many objects of its relation in the pool are wrong for each fact's subject, as ``draw_distractors`` sees it: neither
    right nor called like a right one."""
    objects = pool.facts[["relation", "object"]].drop_duplicates().merge(names(pool.entities), on="object")
    objects = objects[["relation", "object", "name"]]
    alike = objects.merge(objects, on=["relation", "name"], suffixes=("", "_other")).drop(columns="name")
    right = subjects(pool).to_frame(index=False).assign(object=pool.facts["object"]).drop_duplicates()
    out = right.merge(alike.drop_duplicates(), on=["relation", "object"])
    out = out.groupby(["relation", "subject"])["object_other"].nunique()
    space = pool.facts.groupby("relation")["object"].nunique()
    return facts.facts["relation"].map(space) - out.reindex(subjects(facts)).to_numpy()


def wrong_labels(facts: Facts) -> pd.Series:
    """fact -> the labels of its distractors, in their order; a fact without any is not there."""
    labels = pd.Series(facts.label(facts.distractors["object"]), dtype=object)
    return labels.groupby(facts.distractors["fact"].to_numpy()).agg(list)


def write_triples(facts: Facts, path: str | Path) -> Path:
    """Writes facts as the table that ``tables.read_triples`` reads, CSV or Parquet by the path's suffix, in their order.

    The entities' keys are written as their ids, so that keys, labels, aliases, types and dates come back; templates,
    distractors, popularity and Wikidata ids that are not the key do not.
    """
    path = Path(path)
    if path.suffix not in (".csv", ".parquet"):
        raise ProbeError(f"{path}: facts are written to a .csv or a .parquet file")
    entities = facts.entities.set_index("entity")
    if odd := [name for column in ("aliases", "types") for some in entities[column] for name in some if "|" in name]:
        raise ProbeError(f"{path}: '|' divides the names in a cell, so no name may hold it: {odd[0]!r}; rename it")
    rows = facts.facts
    name = rows["relation"].map(facts.relations.set_index("relation")["name"])
    columns = {"relation": rows["relation"], "relation_name": name, "start": rows["start"], "end": rows["end"]}
    for side in ("subject", "object"):
        about = entities.loc[rows[side]]
        columns[side], columns[f"{side}_id"] = about["label"].to_numpy(), rows[side]
        for what in ("aliases", "types"):
            columns[f"{side}_{what}"] = ["|".join(some) for some in about[what]]
    table = pd.DataFrame(columns)
    if path.suffix == ".parquet":
        return files.write(path, table.to_parquet())
    text = table.to_csv(index=False)
    if "\r" in text:
        raise ProbeError(f"{path}: a name holds a carriage return, which no CSV reader keeps; write a .parquet file")
    return files.write(path, text)
