"""The shipped atlas is sound: no contradictions, no impossible dates, no wrong distractors."""

from dataclasses import replace

from probelib import facts
from probelib.facts import model
from probelib.facts.model import LITERALS, Facts, current, tuples
from probelib.facts.names import NO_NAME, clean
from probelib.facts.validity import days, is_date


def problems(facts: Facts) -> list[str]:
    """Problems for a person to solve: contradictions, dates, entities without a type or a name,
    duplicate ids, relations with few objects."""
    rows, entities, relations = facts.facts, facts.entities, facts.relations.set_index("relation")
    now = current(facts).facts
    own = now[now["relation"].map(relations["functional"]).astype(bool)]
    several = own.groupby(["relation", "subject"])["object"].agg(lambda o: sorted(set(o)))
    what = "current objects in a functional relation"
    several = several[several.map(len) > 1].items()
    found = [f"{r}: {s} has {len(o)} {what}: {', '.join(o)}" for (r, s), o in several]
    dates = [(fact, *ends) for fact, *ends in tuples(rows, "fact", "start", "end") if any(ends)]
    odd = [fact for fact, *ends in dates if not all(end == "" or is_date(end) for end in ends)]
    found += [f"{fact}: a date that is none" for fact in odd]
    both = [each for each in dates if all(each) and each[0] not in odd]
    found += [f"{f}: ends before it starts" for f, s, e in both if days([e])[1] < days([s])[0]]
    for entity, label, types in tuples(entities, "entity", "label", "types"):
        found += [f"entity {entity!r} has no type"] * (not types)
        bare = NO_NAME.fullmatch(label) and label[0] != "P"  # the P90 is a product
        odd = bare or clean(label) != label
        found += [f"entity {entity!r}: {label!r} is not a name as a reader sees it"] * bool(odd)
    types = dict(tuples(entities, "entity", "types"))
    for relation, own in rows.groupby("relation"):
        for side in ("subject", "object"):
            kind = relations.at[relation, f"{side}_type"]
            odd = sorted(e for e in set(own[side]) if not {*kind.split("|")} & {*types[e]})
            if odd and kind not in LITERALS:
                found.append(f"{relation}: {len(odd)} {side}s are no {kind}, e.g. {odd[0]}")
    ids = entities[entities["wikidata"] != ""].groupby("wikidata")["entity"].agg(list)
    found += [f"{q} is the id of {', '.join(keys)}" for q, keys in ids.items() if len(keys) > 1]
    few = rows[~rows["relation"].map(relations["object_type"].isin(LITERALS)).astype(bool)]
    few = few.groupby("relation")["object"].nunique()
    return found + [f"{r}: only {n} distinct objects" for r, n in few.items() if n < 5]


def wrong_distractors(facts: Facts, known: Facts) -> int:
    """Number of distractors that are or were right answers. Facts without distractors get sampled
    ones.

    known   everything that is right, former values included: ``atlas()``, ``everything(...)``
    """
    facts = facts if len(facts.distractors) else model.draw_distractors(facts, known)
    right = model.right_objects(known)
    asked = dict(zip(facts.facts["fact"], tuples(facts.facts, "relation", "subject"), strict=True))
    given = tuples(facts.distractors, "fact", "object")
    return sum(obj in right.get(asked[fact], ()) for fact, obj in given)


def test_the_shipped_atlas_is_sound():
    atlas = facts.atlas()
    assert problems(atlas) == [] and wrong_distractors(current(atlas), atlas) == 0
    table = facts.counts(atlas)
    assert (table["objects"] >= 100).sum() >= 12 and table["former"].sum() >= 150
    assert table["object in subject"].sum() <= 0.03 * len(atlas.facts)


def test_problems_are_named():
    """A date that is none, an end before a start, a type that is not the relation's."""
    atlas = facts.keep(facts.atlas(), facts.atlas().facts["relation"] == "P36")
    rows = atlas.facts.copy()
    rows.loc[0, "start"], rows.loc[1, ["start", "end"]] = "194x", ["1990", "1949"]
    rows.loc[2, "object"] = rows.loc[2, "subject"]
    found = problems(replace(atlas, facts=rows))
    assert f"{rows.loc[0, 'fact']}: a date that is none" in found
    assert f"{rows.loc[1, 'fact']}: ends before it starts" in found
    assert any(said.startswith("P36: 1 objects are no ") for said in found)
