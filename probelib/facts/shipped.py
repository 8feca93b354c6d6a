"""The atlas: the facts that are shipped, as plain text in ``probelib/facts/atlas``.

``P36.yaml``        a relation (a Wikidata property, or ``K1``, the year of a Nobel prize): its
                    name, types of subjects and objects, seven questions, seven cloze sentences
``P36.tsv``         its facts: subject, object and, where time matters, start and end
``entities/*.tsv``  the subjects and objects: wikidata id, types, popularity, aliases
``README.md``       the data card
``panel.tsv``       the facts that all four papers score by default (``read_panel``)
"""

import csv
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pandas as pd

from probelib.errors import ProbeError
from probelib.facts import model
from probelib.facts.model import ROLES, Facts, tuples, within
from probelib.facts.text import read_yaml
from probelib.paths import PACKAGE

ATLAS = PACKAGE / "facts" / "atlas"
REQUIRED = {*model.RELATIONS, "question", "cloze"}


def read_atlas(folder: Path = ATLAS) -> Facts:
    """Every fact of the atlas, current and former."""
    by_number = lambda path: (path.stem[0] == "K", int(path.stem[1:]))
    paths = sorted(folder.glob("[PK]*.yaml"), key=by_number)
    about = [_read_relation(path) for path in paths]
    relations = pd.DataFrame(about, columns=model.RELATIONS)
    templates = [
        (data["relation"], role, number, text)
        for data in about
        for role in ROLES
        for number, text in enumerate(data.get(role, ()), 1)
    ]
    templates = pd.DataFrame(templates, columns=model.TEMPLATES)
    rows = _read_facts([path.with_suffix(".tsv") for path in paths])
    entities = _read_entities(folder / "entities", rows, relations)
    none = pd.DataFrame([], columns=model.DISTRACTORS)
    return model.validate(Facts(rows, entities, relations, templates, none, source="atlas"))


def _read_relation(path: Path) -> dict:
    data = read_yaml(path)
    if data.get("relation") != path.stem or not REQUIRED <= set(data) <= {*REQUIRED, *ROLES}:
        missing, odd = sorted(REQUIRED - set(data)), sorted(set(data) - REQUIRED - set(ROLES))
        said = f"`relation` must be {path.stem}; missing keys: {missing}, unknown: {odd}"
        raise ProbeError(f"{path}: {said}")
    # a statement is a cloze sentence with its object, unless the file has statement templates
    return {"statement": [f"{cloze} [Y]." for cloze in data["cloze"]]} | data


def _read_facts(paths: list[Path]) -> pd.DataFrame:
    rows = [_read_tsv(path).assign(relation=path.stem) for path in paths]
    rows = pd.concat(rows, ignore_index=True).reindex(columns=model.FACTS).fillna("")
    fact = rows["relation"] + ":" + rows["subject"] + ":" + rows["object"]
    # a repeated fact is told apart by its start (an office held for two terms)
    again = fact.duplicated() & (rows["start"] != "")
    return rows.assign(fact=fact.mask(again, fact + ":" + rows["start"]))


def _read_entities(folder: Path, rows: pd.DataFrame, relations: pd.DataFrame) -> pd.DataFrame:
    """The entities of the facts ``rows``, years and numbers among them."""
    known = pd.concat([_read_tsv(path) for path in sorted(folder.glob("*.tsv"))])
    literal = relations["relation"][relations["object_type"].isin(model.LITERALS)]
    values = rows["object"][within(rows["relation"], literal)].drop_duplicates().sort_values()
    values = pd.DataFrame({"entity": values, "types": "literal"})[~within(values, known["entity"])]
    known = pd.concat([known, values]).fillna("")
    known = known[within(known["entity"], rows["subject"].tolist() + rows["object"].tolist())]
    # `Luxembourg (city)` reads "Luxembourg"
    label = known["entity"].str.replace(r" \([^()]*\)$", "", regex=True)
    names = zip(known["aliases"].tolist(), label.tolist(), strict=True)
    aliases = [tuple(a for a in own.split("|") if a and a != name) for own, name in names]
    types = [tuple(filter(None, own.split("|"))) for own in known["types"].tolist()]
    if odd := set(known["popularity"]) - {"", *"12345"}:
        raise ProbeError(f"{folder}: popularity {min(odd)!r}; allowed: 1 to 5")
    popularity = known["popularity"].replace("", "0").astype(int)
    known = known.assign(label=label, aliases=aliases, types=types, popularity=popularity)
    return _unambiguous(known[model.ENTITIES].reset_index(drop=True), rows)


def _unambiguous(entities: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """Entities whose names are distinct within every relation: if two entities of a relation share
    a label, those with a bracket in their key keep it (`Georgia (state)`); an alias that is the
    label of another entity of the relation is left out."""
    label, aliases = dict(tuples(entities, "entity", "label")), {}
    own = dict(tuples(entities, "entity", "aliases"))
    ambiguous, taken = set(), defaultdict(set)
    for _, rows in facts.groupby("relation"):
        inside = {*rows["subject"].tolist(), *rows["object"].tolist()} & label.keys()
        number = Counter(label[entity] for entity in inside)
        ambiguous |= {entity for entity in inside if number[label[entity]] > 1}
        for entity in inside:
            taken[entity] |= number.keys() & set(own[entity])
    labels = [e if e in ambiguous else label[e] for e in entities["entity"].tolist()]
    own = tuples(entities, "entity", "aliases")  # an entity given twice is found by ``validate``
    aliases = [tuple(a for a in names if a not in taken[e]) for e, names in own]
    return entities.assign(label=labels, aliases=aliases)


def _read_tsv(path: Path) -> pd.DataFrame:
    """The cells as they are: an empty one is "", quotation marks are part of a name."""
    return pd.read_csv(path, sep="\t", dtype=str, na_filter=False, quoting=csv.QUOTE_NONE)


def data_card() -> str:
    """Sources, cut-off and measured precision of the atlas, and what is estimated, as Markdown."""
    return (ATLAS / "README.md").read_text(encoding="utf-8")


@cache
def atlas() -> Facts:
    """The shipped atlas, read once per process."""
    return read_atlas()


def read_panel(facts: Facts, part: str = "stratified") -> Facts:
    """The facts of a part of the panel, in the panel's order: "stratified", spread over the
    exposure counts; "natural", sampled at random from each relation; "trial", with exposures
    assigned as in a randomized trial."""
    return model.pick(facts, _read_tsv(ATLAS / "panel.tsv").query("part == @part")["fact"])
