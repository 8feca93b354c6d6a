"""The atlas: the facts that are shipped, as plain text in ``probelib/facts/atlas``.

``P36.yaml``        a relation (a Wikidata property, or ``K1``, the year of a Nobel prize): its
                    name, types of subjects and objects, seven questions, seven cloze sentences
``P36.tsv``         its facts: subject, object and, where time matters, start and end
``entities/*.tsv``  the subjects and objects: wikidata id, types, popularity, aliases
``README.md``       the data card
``panel.tsv``       the ids of the facts that all four papers score by default, so that they can
                    be compared: a stratified and a natural part; those of the randomized trial
"""

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pandas as pd

from probelib.errors import ProbeError
from probelib.facts.model import (
    FRAMES,
    LITERALS,
    RELATIONS,
    ROLES,
    Facts,
    pick,
    tuples,
    validate,
    within,
)
from probelib.facts.text import read_tsv, read_yaml
from probelib.facts.validity import is_date
from probelib.paths import PACKAGE

ATLAS = PACKAGE / "facts" / "atlas"
REQUIRED = {*RELATIONS, "question", "cloze"}


def read_atlas(folder: Path = ATLAS) -> Facts:
    """Every fact of the atlas, current and former."""
    rows = {name: [] for name in FRAMES}
    for path in sorted(
        folder.glob("[PK]*.yaml"), key=lambda p: (p.stem[0] == "K", int(p.stem[1:]))
    ):
        relation, templates = _read_relation(path)
        rows["relations"].append(relation)
        rows["templates"] += templates
        rows["facts"] += _read_facts(path.with_suffix(".tsv"))
    rows["entities"] = _read_entities(folder / "entities")
    known = {row["entity"] for row in rows["entities"]}
    literal = {r["relation"] for r in rows["relations"] if r["object_type"] in LITERALS}
    years = sorted({f["object"] for f in rows["facts"] if f["relation"] in literal} - known)
    rows["entities"] += [_entity(year, types="literal") for year in years]
    frames = {name: pd.DataFrame(rows[name], columns=columns) for name, columns in FRAMES.items()}
    facts, entities = frames["facts"], frames["entities"]
    used = within(entities["entity"], {*facts["subject"], *facts["object"]})
    frames["entities"] = _unambiguous(entities[used].reset_index(drop=True), facts)
    return validate(Facts(**frames, source="atlas"))


def _unambiguous(entities: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """Entities whose names are distinct within every relation: if two entities of a relation share
    a label, those with a bracket in their key keep it (`Georgia (state)`); an alias that is the
    label of another entity of the relation is left out."""
    label, aliased = dict(tuples(entities, "entity", "label")), defaultdict(set)
    for entity, aliases in tuples(entities, "entity", "aliases"):
        for alias in aliases:
            aliased[alias].add(entity)
    ambiguous, taken = set(), defaultdict(set)
    for _, rows in facts.groupby("relation"):
        inside, by_label = {*rows["subject"], *rows["object"]} & label.keys(), defaultdict(set)
        for entity in inside:
            by_label[label[entity]].add(entity)
        for name, same in by_label.items():
            ambiguous |= same if len(same) > 1 else set()
            for entity in inside & aliased.get(name, set()):
                taken[entity].add(name)
    labels = [e if e in ambiguous else label[e] for e in entities["entity"]]
    aliases = [
        tuple(alias for alias in own if alias not in taken.get(entity, ()))
        for entity, own in tuples(entities, "entity", "aliases")
    ]
    return entities.assign(label=labels, aliases=aliases)


def data_card() -> str:
    """Sources, cut-off and measured precision of the atlas, and what is estimated, as Markdown."""
    return (ATLAS / "README.md").read_text(encoding="utf-8")


@cache
def atlas() -> Facts:
    """The shipped atlas, read once per process."""
    return read_atlas()


def read_panel(facts: Facts, part: str = "stratified") -> Facts:
    """The facts of a part of the panel, in the panel's order (``organisms.design.panel``).

    part   "stratified": spread over the exposure counts; "natural": sampled at random from the
           facts of each relation; "trial": those whose exposures were assigned as in a randomized
           trial
    """
    path, known = ATLAS / "panel.tsv", set(facts.facts["fact"])
    rows = [row["fact"] for _, row in read_tsv(path, ["fact", "part"]) if row["part"] == part]
    if lost := [fact for fact in rows if fact not in known]:
        raise ProbeError(
            f"{path}: {len(lost)} facts of the panel are no longer in the atlas, e.g. {lost[0]!r}; "
            "`python -m probelib.organisms panel` draws it again"
        )
    return pick(facts, rows)


def _read_relation(path: Path) -> tuple[dict, list[tuple]]:
    data = read_yaml(path)
    if data.get("relation") != path.stem or not REQUIRED <= set(data) <= {*REQUIRED, *ROLES}:
        odd = sorted(set(data) - REQUIRED - set(ROLES))
        keys = f"missing {sorted(REQUIRED - set(data))}, unknown {odd}"
        raise ProbeError(
            f"{path}: `relation` must be {path.stem}, not {data.get('relation')}; keys: {keys}"
        )
    # a statement is a cloze sentence with its object, unless the file has statement templates
    if isinstance(data["cloze"], list):
        data.setdefault("statement", [f"{cloze} [Y]." for cloze in data["cloze"]])
    templates = []
    for role in (role for role in ROLES if role in data):
        for n, text in enumerate(data[role] if isinstance(data[role], list) else [None], 1):
            good = isinstance(text, str) and (role != "question" or text.endswith("?"))
            if not good or role == "cloze" and re.search(r"\s$|\[Y\]", text):
                wanted = "a list of texts; a question ends in '?', a cloze just before the object"
                raise ProbeError(f"{path}: {role} template {text!r}: {wanted}")
            templates.append((path.stem, role, n, text))
    return {key: data[key] for key in RELATIONS}, templates


def _read_facts(path: Path) -> list[dict]:
    rows, seen = [], {}
    for line, row in read_tsv(path, ["subject", "object"], optional=("start", "end")):
        for key in ("start", "end"):
            if row[key] and not is_date(row[key]):
                wanted = "a year, a month (1990-10) or a day (1990-10-03) is needed"
                raise ProbeError(f"{path}:{line}: {key} {row[key]!r} is not a date; {wanted}")
        fact = f"{path.stem}:{row['subject']}:{row['object']}"
        if fact in seen and row["start"] == "":
            raise ProbeError(f"{path}:{line}: a duplicate of the fact in line {seen[fact]}")
        # the start distinguishes the two facts of one that held twice (Cleveland's two terms)
        name = f"{fact}:{row['start']}" if fact in seen else fact
        rows.append({"fact": name, "relation": path.stem} | row)
        seen[fact] = line
    return rows


def _read_entities(folder: Path) -> list[dict]:
    rows, seen = [], {}
    for path in sorted(folder.glob("*.tsv")):
        optional = ("wikidata", "types", "popularity", "aliases")
        for line, row in read_tsv(path, ["entity"], optional):
            if (
                at := seen.setdefault(row["entity"], f"{path.name}:{line}")
            ) != f"{path.name}:{line}":
                raise ProbeError(f"{path}:{line}: entity {row['entity']!r} is already at {at}")
            if row["popularity"] not in {"", "1", "2", "3", "4", "5"}:
                raise ProbeError(
                    f"{path}:{line}: popularity {row['popularity']!r}; allowed: 1 to 5"
                )
            rows.append(_entity(**row))
    return rows


def _entity(
    entity: str, wikidata: str = "", types: str = "", popularity: str = "", aliases: str = ""
) -> dict:
    label = re.sub(r" \([^()]*\)$", "", entity)  # `Luxembourg (city)` reads "Luxembourg"
    return {
        "entity": entity,
        "label": label,
        "wikidata": wikidata,
        "popularity": int(popularity or 0),
        "aliases": tuple(a for a in aliases.split("|") if a and a != label),
        "types": tuple(t for t in types.split("|") if t),
    }
