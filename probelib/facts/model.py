"""What a fact is: the kit's five tidy frames, and their rules.

Glossary (one word per concept, in the whole kit)

=============== ===========================================================================================
fact            a triple (subject, relation, object) that holds for ever or from ``start`` to ``end`` ("" = open, "?" = a date
                that is unknown)
entity          what a subject or an object is; its key is unique, its label is what a reader sees
alias           another label of the same entity
relation        the kind of a fact, named by its Wikidata property (P36, "capital")
functional      a relation whose subject has one right object at a time
type            what kind of thing an entity is; a relation's ``object_type`` "city|town": its objects are one of these
template        a text with ``[X]`` for the subject (and ``[Y]`` for the object)
role            use of a template: ``question`` ends in "?" (MONITOR's QA); ``cloze`` ends just before the object (WP);
                ``statement`` has ``[X]`` and ``[Y]`` (MONITOR's FC);
                ``hgp``, ``mmp``: human-written and mined prompts (ZP-LKE)
prompt          a template with its subject filled in, after a context or without one
candidate       an entity offered as the answer; the right one is the gold object
answer space    all candidates of a relation: the objects of its facts
distractor      a candidate that is wrong for the subject
popularity      how well an entity is known, from 1 (obscure) to 5 (known to nearly everyone); ordinal, estimated
=============== ===========================================================================================
"""

import difflib
import hashlib
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pandas as pd

from probelib.errors import ProbeError, texts_of, unknown
from probelib.facts.text import check_relations, is_a
from probelib.facts.validity import UNKNOWN

FACTS = ["fact", "relation", "subject", "object", "start", "end"]
ENTITIES = ["entity", "label", "wikidata", "aliases", "types", "popularity"]
RELATIONS = ["relation", "name", "subject_type", "object_type", "functional"]
TEMPLATES = ["relation", "role", "number", "template"]
DISTRACTORS = ["fact", "number", "object"]
FRAMES = dict(facts=FACTS, entities=ENTITIES, relations=RELATIONS, templates=TEMPLATES, distractors=DISTRACTORS)
LITERALS = ("year", "number")  # object types whose objects need no row in entities/*.tsv: they are their own labels


@dataclass(frozen=True)
class Facts:
    """Facts and everything that is needed to build prompts for them.

    facts        one row per fact: ``fact`` (its id), ``relation``, ``subject`` and ``object`` (entity keys), ``start`` and
                 ``end`` ("" = open; a year or a date otherwise)
    entities     one row per entity: ``entity`` (its key), ``label``, ``wikidata`` (Wikidata id, or another id that several
                 labels share; or ""), ``aliases`` (tuple), ``types`` (tuple, the most specific first), ``popularity`` (1-5,
                 0 = unknown)
    relations    one row per relation: ``relation``, ``name``, ``subject_type``, ``object_type``, ``functional``
    templates    one row per template: ``relation``, ``role``, ``number`` (from 1; the base template is 1), ``template``
    distractors  distractors that the data name for a fact: ``fact``, ``number``, ``object``; may be empty
    source       origin of the facts, for the provenance record
    """

    facts: pd.DataFrame
    entities: pd.DataFrame
    relations: pd.DataFrame
    templates: pd.DataFrame
    distractors: pd.DataFrame
    source: str

    def digest(self) -> str:
        """SHA-256 (first 16 hex digits) of facts, labels, templates and distractors; independent of the source's name."""
        sha = hashlib.sha256()
        for name in FRAMES:
            sha.update(getattr(self, name).to_csv(index=False).encode())
        return sha.hexdigest()[:16]

    def label(self, entities: Iterable[str]) -> list[str]:
        """Labels of entity keys."""
        labels = dict(tuples(self.entities, "entity", "label"))
        return [labels[e] for e in entities]

    def __repr__(self) -> str:
        return f"Facts({self.source}: {len(self.facts)} facts, {len(self.relations)} relations)"


def keep(facts: Facts, mask: pd.Series) -> Facts:
    """The facts for which ``mask`` holds, without relations, templates, entities and distractors that are no longer used."""
    kept = lambda frame, key, values: frame[within(frame[key], values)].reset_index(drop=True)
    rows = facts.facts[mask].reset_index(drop=True)
    distractors = kept(facts.distractors, "fact", rows["fact"])
    used = {*rows["subject"], *rows["object"], *distractors["object"]}
    relations, templates = (kept(frame, "relation", rows["relation"]) for frame in (facts.relations, facts.templates))
    return Facts(rows, kept(facts.entities, "entity", used), relations, templates, distractors, facts.source)


def pick(facts: Facts, ids: Iterable[str]) -> Facts:
    """The facts of these ids, in this order. Raise ProbeError for ids that the facts lack."""
    order = {fact: i for i, fact in enumerate(texts_of("ids", ids))}
    known = set(facts.facts["fact"])
    if missing := [fact for fact in order if fact not in known]:
        raise _unknown_ids(facts, missing, len(order))
    chosen = keep(facts, within(facts.facts["fact"], order))
    rows = chosen.facts.sort_values("fact", key=lambda column: column.map(order), ignore_index=True)
    return replace(chosen, facts=rows)


def _unknown_ids(facts: Facts, missing: list[str], n: int) -> ProbeError:
    of_relation = [fact for fact in facts.facts["fact"] if fact.startswith(missing[0].split(":")[0] + ":")]
    near = " or ".join(difflib.get_close_matches(missing[0], of_relation, n=3))
    hint = f"did you mean {near}?" if near else "a fact is named relation:subject:object (P36:France:Paris)."
    return ProbeError(
        f"{len(missing)} of {n} ids name no fact of {facts.source}, the first is {missing[0]!r}; {hint} "
        'FACTS.facts["fact"] lists the ids.'
    )


def within(column: pd.Series, values: Iterable[str]) -> pd.Series:
    """``column.isin(values)`` for text; pandas' own takes tens of milliseconds to convert text columns."""
    values = set(values)
    return pd.Series([value in values for value in column.tolist()], index=column.index, dtype=bool)


def current(facts: Facts) -> Facts:
    """The facts that hold today (no ``end``). Facts of one point in time, such as an award, hold for ever and are kept."""
    return keep(facts, holds(facts.facts))


def holds(rows: pd.DataFrame) -> pd.Series:
    """Whether each fact (columns ``start``, ``end``) has no end, or belongs to one known point in time (an award)."""
    return (rows["end"] == "") | (rows["start"] == rows["end"]) & (rows["end"] != UNKNOWN)


def sample(facts: Facts, n_facts: int, seed: int = 0, first: Iterable[str] = ()) -> Facts:
    """``n_facts`` facts per relation (all, if it has fewer), sampled without replacement.

    Each fact gets a random number from (seed, fact id), so the sample depends neither on the order of the facts nor on other
    relations. The ids in ``first`` are taken before all others, in their order.
    """
    first = list(first)
    place = {fact: i - len(first) for i, fact in enumerate(first)}  # below every random number
    order = facts.facts["fact"].map(lambda fact: place[fact] if fact in place else rng(seed, fact).random())
    return keep(facts, order.groupby(facts.facts["relation"]).rank() <= n_facts)


def with_templates(facts: Facts, other: Facts, roles: Iterable[str]) -> Facts:
    """``facts`` with the templates of ``other`` for relations and roles that have none of their own. (FKTC has questions only;
    the atlas has cloze sentences and statements, too.)"""
    own = set(zip(facts.templates["relation"], facts.templates["role"], strict=True))
    rows = other.templates
    lent = rows[rows["relation"].isin(facts.relations["relation"]) & rows["role"].isin(list(roles))]
    lent = lent[[pair not in own for pair in zip(lent["relation"], lent["role"], strict=True)]]
    return replace(facts, templates=pd.concat([facts.templates, lent], ignore_index=True))


def choose(facts: Facts, relations: list[str] | None) -> Facts:
    """The facts of these relations (None: of all). Raises ProbeError for an unknown relation."""
    if (relations := check_relations(relations)) is None:
        return facts
    known = dict(zip(facts.relations["relation"], facts.relations["name"], strict=True))
    for name in relations:
        if name not in known:
            raise unknown("relation", name, known, known)
    return keep(facts, facts.facts["relation"].isin(relations))


def rng(*key) -> np.random.Generator:
    """A random generator for a key such as (seed, fact id): independent of order, sharding and other facts."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8], "big"))


def without_subjects(pool: Facts, asked: Facts) -> Facts:
    """The facts of the pool that many-shot examples may come from: the relations of ``asked``, the facts to score, with other
    subjects."""
    keys, relations = set(subjects(asked)), set(asked.facts["relation"])
    free = [pair[0] in relations and pair not in keys for pair in subjects(pool)]
    return keep(pool, pd.Series(free, index=pool.facts.index, dtype=bool))


def subjects(facts: Facts) -> pd.MultiIndex:
    """(relation, subject) per fact, the subject by its id if it has one: two labels of one id are one subject."""
    ids = dict(tuples(facts.entities, "entity", "wikidata"))
    one = [ids[subject] or subject for subject in facts.facts["subject"].tolist()]
    return pd.MultiIndex.from_arrays([facts.facts["relation"], one], names=["relation", "subject"])


def tuples(frame: pd.DataFrame, *columns: str) -> Iterator[tuple]:
    """The rows of some columns, as tuples. They are read from lists: iterating over a column of texts is slow."""
    return zip(*(frame[name].tolist() for name in columns), strict=True)


def right_objects(facts: Facts) -> dict[tuple[str, str], set[str]]:
    """(relation, subject) -> every object that is or was right for it; none of them may be a distractor."""
    right: dict[tuple[str, str], set[str]] = {}
    known = subjects(facts).tolist()
    for pair, obj in zip(known, facts.facts["object"].tolist(), strict=True):
        right.setdefault(pair, set()).add(obj)
    keys = tuples(facts.facts, "relation", "subject")
    return {key: right[pair] for key, pair in zip(keys, known, strict=True)}


def draw_distractors(facts: Facts, pool: Facts | None = None, n: int = 5, seed: int = 0) -> Facts:
    """Give every fact ``n`` distractors: objects of other facts of its relation that are wrong for its subject.

    pool   facts whose objects are the candidates (default: ``facts``). An object is excluded if it is right for the subject,
           or shares a label or alias with a right object. A fact with fewer than ``n`` possible distractors gets them all.
    """
    if not is_a(n, int) or n < 0:
        raise ProbeError(f"n={n!r} distractors; an integer of at least 0 is needed")
    pool = pool or facts
    right, entities = right_objects(pool), pd.concat([pool.entities, facts.entities])
    names = _names(entities[within(entities["entity"], {*pool.facts["object"], *facts.facts["object"]})])
    space = pool.facts.groupby("relation")["object"].agg(lambda objects: sorted(set(objects))).to_dict()
    rows = []
    for fact, relation, subject, obj in tuples(facts.facts, "fact", "relation", "subject", "object"):
        answers = right.get((relation, subject), set()) | {obj}
        answer_names = set().union(*(names[a] for a in answers))
        objects = space.get(relation, [])
        drawn = (objects[i] for i in rng(seed, fact).permutation(len(objects)))
        wrong = (o for o in drawn if o not in answers and not (names[o] & answer_names))
        rows += [(fact, number, o) for number, o in enumerate(islice(wrong, n), 1)]
    distractors = pd.DataFrame(rows, columns=DISTRACTORS)
    known = set(facts.entities["entity"])
    more = pool.entities[pool.entities["entity"].isin(set(distractors["object"]) - known)]
    return replace(facts, distractors=distractors, entities=pd.concat([facts.entities, more], ignore_index=True))


def fold(name: str) -> str:
    """Normal form of a name for comparisons: no case, one encoding of accents (letters and accents decomposed, so that a prefix
    of a name stays a prefix)."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def _names(entities: pd.DataFrame) -> dict[str, set[str]]:
    """entity -> its label and aliases, folded."""
    rows = tuples(entities, "entity", "label", "aliases")
    return {entity: {fold(n) for n in (label, *aliases)} for entity, label, aliases in rows}


def validate(facts: Facts) -> Facts:
    """Return the facts if they keep all rules of the frames. Raise ProbeError for the first broken rule, with the rows."""
    rows, where = facts.facts, facts.source
    for name, columns in FRAMES.items():
        if (found := list(getattr(facts, name).columns)) != columns:
            raise ProbeError(f"{where}: the frame {name} has columns {found}, not {columns}")
    if rows.empty:
        raise ProbeError(f"{where}: no facts; a file holds one per row, below the names of the columns")
    _refuse(rows["fact"].duplicated(), rows["fact"], f"{where}: duplicate fact id")
    entities = facts.entities
    _refuse(entities["entity"].duplicated(), entities["entity"], f"{where}: duplicate entity")
    _refuse(entities["label"].str.strip() == "", entities["entity"], f"{where}: entity with an empty label")
    for column in ("subject", "object"):
        _refuse(~within(rows[column], entities["entity"]), rows[column], f"{where}: {column} without a row in entities")
    _refuse(~rows["relation"].isin(facts.relations["relation"]), rows["fact"], f"{where}: fact of an unknown relation")
    templates = facts.templates
    named = templates["relation"] + ": " + templates["template"]
    _refuse(templates["template"].str.count(r"\[X\]") != 1, named, f"{where}: template without exactly one [X]")
    return facts


def _refuse(broken: pd.Series, names: pd.Series, rule: str) -> None:
    if broken.any():
        examples = names[broken].unique()
        more = f" and {len(examples) - 5} more" if len(examples) > 5 else ""
        raise ProbeError(f"{rule}: {', '.join(map(repr, examples[:5]))}{more}")
