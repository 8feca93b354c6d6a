"""The atlas: the facts that are shipped, written as plain text in ``probelib/facts/atlas``.

``P36.yaml``      a relation (a Wikidata property, or ``K1``, the year of a Nobel prize): its name, the types of its
                  subjects and objects, seven questions and seven cloze sentences
``P36.tsv``       its facts: subject, object and, where time matters, start and end
``entities/*.tsv``  what the subjects and objects are: wikidata id, types, popularity, aliases
``README.md``     the data card
``panel.tsv``     the ids of the facts that all four papers score by default, so that they can be compared: a stratified and a
                  natural part; and those of the randomized trial
"""

import re
from functools import cache
from pathlib import Path

import pandas as pd

from probelib.errors import ProbeError
from probelib.facts.model import FRAMES, LITERALS, RELATIONS, Facts, pick, validate, within
from probelib.facts.text import read_tsv, read_yaml
from probelib.facts.validity import is_date
from probelib.paths import PACKAGE

ATLAS = PACKAGE / "facts" / "atlas"
ROLES = ("question", "cloze", "statement", "hgp", "mmp")  # the last two: ZP-LKE's own prompts, as printed
REQUIRED = {*RELATIONS, "question", "cloze"}


def read_atlas(folder: Path = ATLAS) -> Facts:
    """Every fact of the atlas, current and former."""
    rows = {name: [] for name in FRAMES}
    for path in sorted(folder.glob("[PK]*.yaml"), key=lambda p: (p.stem[0] == "K", int(p.stem[1:]))):
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
    """Entities whose names are distinct within every relation: if two entities of a relation share a label, those with a bracket
    in their key keep it (`Georgia (state)`); an alias that is the label of another entity of the relation is left out."""
    label = dict(zip(entities["entity"], entities["label"], strict=True))
    aliased = {}
    for entity, aliases in zip(entities["entity"], entities["aliases"], strict=True):
        for alias in aliases:
            aliased.setdefault(alias, set()).add(entity)
    ambiguous, taken = set(), {}
    for _, rows in facts.groupby("relation"):
        inside, by_label = {*rows["subject"], *rows["object"]} & label.keys(), {}
        for entity in inside:
            by_label.setdefault(label[entity], set()).add(entity)
        for name, same in by_label.items():
            ambiguous |= same if len(same) > 1 else set()
            for entity in inside & aliased.get(name, set()):
                taken.setdefault(entity, set()).add(name)
    labels = [entity if entity in ambiguous else label[entity] for entity in entities["entity"]]
    aliases = [
        tuple(alias for alias in own if alias not in taken.get(entity, ()))
        for entity, own in zip(entities["entity"], entities["aliases"], strict=True)
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

    part   "stratified": spread over the exposure counts; "natural": sampled at random from the facts of each relation; "trial":
           those whose exposures were assigned as in a randomized trial
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
    if data.get("relation") != path.stem:
        raise ProbeError(f"{path}: `relation` is {data.get('relation')!r}, the file is called {path.stem}")
    if odd := set(data) - REQUIRED - set(ROLES):
        raise ProbeError(f"{path}: unknown keys {sorted(odd)}; allowed: {sorted(REQUIRED | set(ROLES))}")
    if lost := REQUIRED - set(data):
        raise ProbeError(f"{path}: missing keys {sorted(lost)}")
    for role in [role for role in ROLES if role in data]:
        odd = [t for t in data[role] if not isinstance(t, str)] if isinstance(data[role], list) else [data[role]]
        if odd:
            raise ProbeError(f"{path}: `{role}` takes a list of texts, not {odd[0]!r}")
    # a statement is a cloze sentence with its object, unless the file has statement templates
    data.setdefault("statement", [f"{cloze} [Y]." for cloze in data["cloze"]])
    templates = [(path.stem, role, n, text) for role in ROLES for n, text in enumerate(data.get(role, ()), 1)]
    for _, role, _, text in templates:
        if role == "question" and not text.endswith("?") or role == "cloze" and re.search(r"\s$|\[Y\]", text):
            wanted = "a question ends in '?', a cloze just before the object"
            raise ProbeError(f"{path}: {role} template {text!r}: {wanted}")
    return {key: data[key] for key in RELATIONS}, templates


def _read_facts(path: Path) -> list[dict]:
    rows, seen = [], {}
    for line, row in read_tsv(path, ["subject", "object"], optional=("start", "end")):
        for key in ("start", "end"):
            if row[key] and not is_date(row[key]):
                wanted = "a year, a month (1990-10) or a day (1990-10-03) is needed"
                raise ProbeError(f"{path}:{line}: {key} {row[key]!r} is not a date; {wanted}")
        subject, obj = row["subject"], row["object"]
        fact = f"{path.stem}:{subject}:{obj}"
        if fact in seen and row["start"] == "":
            raise ProbeError(f"{path}:{line}: a duplicate of the fact in line {seen[fact]}: {subject} - {obj}")
        # the start distinguishes the two facts of one that held twice (Cleveland's two terms)
        rows.append({"fact": f"{fact}:{row['start']}" if fact in seen else fact, "relation": path.stem} | row)
        seen[fact] = line
    return rows


def _read_entities(folder: Path) -> list[dict]:
    rows, seen = [], {}
    for path in sorted(folder.glob("*.tsv")):
        for line, row in read_tsv(path, ["entity"], optional=("wikidata", "types", "popularity", "aliases")):
            if row["entity"] in seen:
                raise ProbeError(f"{path}:{line}: entity {row['entity']!r} is already at {seen[row['entity']]}")
            seen[row["entity"]] = f"{path.name}:{line}"
            if row["popularity"] not in {"", "1", "2", "3", "4", "5"}:
                raise ProbeError(f"{path}:{line}: popularity {row['popularity']!r}; allowed: 1 to 5")
            rows.append(_entity(**row))
    return rows


def _entity(entity: str, wikidata: str = "", types: str = "", popularity: str = "", aliases: str = "") -> dict:
    label = re.sub(r" \([^()]*\)$", "", entity)  # `Luxembourg (city)` reads "Luxembourg"
    return {
        "entity": entity,
        "label": label,
        "wikidata": wikidata,
        "popularity": int(popularity or 0),
        "aliases": tuple(a for a in aliases.split("|") if a and a != label),
        "types": tuple(t for t in types.split("|") if t),
    }
