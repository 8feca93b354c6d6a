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
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pandas as pd

from probelib.errors import ProbeError
from probelib.facts import model
from probelib.facts.model import FRAMES, ROLES, Facts, tuples
from probelib.facts.text import read_text, read_yaml
from probelib.facts.validity import is_date
from probelib.paths import PACKAGE

ATLAS = PACKAGE / "facts" / "atlas"
REQUIRED = {*model.RELATIONS, "question", "cloze"}


def read_atlas(folder: Path = ATLAS) -> Facts:
    """Every fact of the atlas, current and former."""
    rows = {name: [] for name in FRAMES}
    by_number = lambda path: (path.stem[0] == "K", int(path.stem[1:]))
    for path in sorted(folder.glob("[PK]*.yaml"), key=by_number):
        relation, templates = _read_relation(path)
        rows["relations"].append(relation)
        rows["templates"] += templates
        rows["facts"] += _read_facts(path.with_suffix(".tsv"))
    rows["entities"] = _read_entities(folder / "entities")
    known = {row["entity"] for row in rows["entities"]}
    literal = {r["relation"] for r in rows["relations"] if r["object_type"] in model.LITERALS}
    years = sorted({f["object"] for f in rows["facts"] if f["relation"] in literal} - known)
    rows["entities"] += [_entity(year, types="literal") for year in years]
    frames = {name: pd.DataFrame(rows[name], columns=columns) for name, columns in FRAMES.items()}
    facts, entities = frames["facts"], frames["entities"]
    used = model.within(entities["entity"], {*facts["subject"], *facts["object"]})
    frames["entities"] = _unambiguous(entities[used].reset_index(drop=True), facts)
    return model.validate(Facts(**frames, source="atlas"))


def _unambiguous(entities: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """Entities whose names are distinct within every relation: if two entities of a relation share
    a label, those with a bracket in their key keep it (`Georgia (state)`); an alias that is the
    label of another entity of the relation is left out."""
    label, aliases = dict(tuples(entities, "entity", "label")), {}
    own = dict(tuples(entities, "entity", "aliases"))
    ambiguous, taken = set(), defaultdict(set)
    for _, rows in facts.groupby("relation"):
        inside = {*rows["subject"], *rows["object"]} & label.keys()
        number = Counter(label[entity] for entity in inside)
        ambiguous |= {entity for entity in inside if number[label[entity]] > 1}
        for entity in inside:
            taken[entity] |= number.keys() & set(own[entity])
    labels = [e if e in ambiguous else label[e] for e in entities["entity"]]
    own = tuples(entities, "entity", "aliases")  # an entity given twice is found by ``validate``
    aliases = [tuple(a for a in names if a not in taken[e]) for e, names in own]
    return entities.assign(label=labels, aliases=aliases)


def data_card() -> str:
    """Sources, cut-off and measured precision of the atlas, and what is estimated, as Markdown."""
    return (ATLAS / "README.md").read_text(encoding="utf-8")


@cache
def atlas() -> Facts:
    """The shipped atlas, read once per process."""
    return read_atlas()


def read_panel(facts: Facts, part: str = "stratified") -> Facts:
    """The facts of a part of the panel, in the panel's order.

    part   "stratified": spread over the exposure counts; "natural": sampled at random from the
           facts of each relation; "trial": those whose exposures were assigned as in a randomized
           trial
    """
    rows = _read_tsv(ATLAS / "panel.tsv", ["fact", "part"])
    return model.pick(facts, [row["fact"] for _, row in rows if row["part"] == part])


def _read_relation(path: Path) -> tuple[dict, list[tuple]]:
    data = read_yaml(path)
    if data.get("relation") != path.stem or not REQUIRED <= set(data) <= {*REQUIRED, *ROLES}:
        odd = sorted(set(data) - REQUIRED - set(ROLES))
        keys = f"missing {sorted(REQUIRED - set(data))}, unknown {odd}"
        raise ProbeError(
            f"{path}: `relation` must be {path.stem}, not {data.get('relation')}; keys: {keys}"
        )
    # a statement is a cloze sentence with its object, unless the file has statement templates
    data.setdefault("statement", [f"{cloze} [Y]." for cloze in data["cloze"]])
    templates = []
    for role in (role for role in ROLES if role in data):
        for n, text in enumerate(data[role], 1):
            cut_short = role != "cloze" or not re.search(r"\s$|\[Y\]", text)
            if not cut_short or role == "question" and not text.endswith("?"):
                wanted = "a question ends in '?', a cloze just before the object"
                raise ProbeError(f"{path}: {role} template {text!r}: {wanted}")
            templates.append((path.stem, role, n, text))
    return {key: data[key] for key in model.RELATIONS}, templates


def _read_facts(path: Path) -> list[dict]:
    rows, seen = [], {}
    for line, row in _read_tsv(path, ["subject", "object"], ("start", "end")):
        for key in ("start", "end"):
            if row[key] and not is_date(row[key]):
                raise ProbeError(f"{path}:{line}: {key} {row[key]!r} is not a date")
        fact = f"{path.stem}:{row['subject']}:{row['object']}"
        if fact in seen and not row["start"]:
            raise ProbeError(f"{path}:{line}: a duplicate of the fact in line {seen[fact]}")
        # a repeated fact is told apart by its start (an office held for two terms)
        name = f"{fact}:{row['start']}" if fact in seen else fact
        rows.append({"fact": name, "relation": path.stem} | row)
        seen[fact] = line
    return rows


def _read_entities(folder: Path) -> list[dict]:
    rows, optional = [], ("wikidata", "types", "popularity", "aliases")
    for path in sorted(folder.glob("*.tsv")):
        for line, row in _read_tsv(path, ["entity"], optional):
            if row["popularity"] not in {"", *"12345"}:
                said = f"popularity {row['popularity']!r}; allowed: 1 to 5"
                raise ProbeError(f"{path}:{line}: {said}")
            rows.append(_entity(**row))
    return rows


def _entity(
    entity: str, wikidata: str = "", types: str = "", popularity: str = "", aliases: str = ""
) -> dict:
    label = re.sub(r" \([^()]*\)$", "", entity)  # `Luxembourg (city)` reads "Luxembourg"
    known = {"entity": entity, "label": label, "wikidata": wikidata}
    known |= {"aliases": tuple(a for a in aliases.split("|") if a and a != label)}
    known |= {"types": tuple(filter(None, types.split("|"))), "popularity": int(popularity or 0)}
    return known


def _read_tsv(path: Path, needed: list[str], optional: tuple = ()) -> list[tuple[int, dict]]:
    """(line number, row) of a tab-separated file; absent optional columns read as ""."""
    header, *lines = (line.split("\t") for line in read_text(path).removesuffix("\n").split("\n"))
    if not set(needed) <= set(header) <= {*needed, *optional}:
        allowed = f"needed: {needed}, allowed: {list(optional)}"
        raise ProbeError(f"{path}:1: the header is {header}; {allowed}")
    rows = []
    for number, cells in enumerate(lines, 2):
        if len(cells) != len(header):
            what = f"{len(cells)} columns, the header has {len(header)}"
            raise ProbeError(f"{path}:{number}: {what}: {cells}")
        row = dict.fromkeys(optional, "") | dict(zip(header, map(str.strip, cells), strict=True))
        if not all(row[name] for name in needed):
            raise ProbeError(f"{path}:{number}: an empty cell in {needed}: {cells}")
        rows.append((number, row))
    return rows
