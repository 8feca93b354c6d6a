"""``load``: facts of any format that hold today, with their distractors."""

import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from probelib.errors import ProbeError, unknown
from probelib.facts import formats, model
from probelib.facts.model import Facts, check_seed, choose, current, keep, sample, tuples, within
from probelib.facts.shipped import atlas, read_panel
from probelib.facts.text import check_relations, is_a

PANEL_SIZES = {"panel": 12, "natural": 40, "trial": 40}  # facts per relation in the panel's parts


def load(
    data: str = "atlas",
    folder: str | Path | None = None,
    relations: list[str] | None = None,
    n_facts: int | str = "panel",
    n_distractors: int = 5,
    seed: int = 0,
    among: Iterable[str] | None = None,
    *,
    released: bool = False,
) -> Facts:
    """Facts that hold today, with their distractors.

    data       "atlas" (shipped), "fktc", "bear", "trex_mc", or "table"; with the columns of the
               table where they are called otherwise: "table?subject:s,relation:prop,object:o"
    folder     the files of the data (not of the atlas); for "table" the path of the table
    relations  relations to load. None: all; of the atlas those of the panel, unless n_facts="all"
               or ``among`` is given
    n_facts    "panel" (12 facts per relation), "natural" or "trial" (40): a part of the panel of
               the atlas (``read_panel``); of others as many, sampled with ``seed``; "all": every
               a number: that many facts per relation (all, if it has fewer), those of the panel
               first, then sampled ones
    among      fact ids of the atlas: sample among these facts only, ignoring the panel
    released   keep the distractors that the data name, also those that are right answers
    """
    size, seed = _size(n_facts), check_seed(seed)
    if data == "atlas" and folder is None:
        part = n_facts if n_facts in ("natural", "trial") else "stratified"
        chosen = _from_atlas(relations, size, seed, among, part)
        return model.draw_distractors(chosen, pool=atlas(), n=n_distractors, seed=seed)
    whole = everything(data, folder, relations)
    now = current(whole)
    if now.facts.empty:
        raise ProbeError(f"{folder}: no fact holds today")
    chosen = now if size is None else sample(now, size, seed)
    if size is not None and len(chosen.facts) < len(now.facts):
        used = f"{len(chosen.facts)} of {len(now.facts)} facts are used, {size} per relation"
        warnings.warn(f"{now.source}: {used}; n_facts=all takes all", stacklevel=2)
    if chosen.distractors.empty:
        return model.draw_distractors(chosen, whole, n_distractors, seed)
    return chosen if released else model.without_right(chosen, whole)


def everything(data: str = "atlas", folder=None, relations: list[str] | None = None) -> Facts:
    """All facts of the data, former ones included: the knowledge base that distractors come from.
    Relations of the atlas get its names, and its templates for the roles without any."""
    relations, (name, _, query) = check_relations(relations), data.partition("?")
    if name not in (known := ["atlas", *formats.READERS]):
        raise ProbeError(f"{unknown('data', name, known)} A table is data=table folder=PATH.")
    if (name == "atlas") != (folder is None):
        takes = "no folder: it is shipped" if name == "atlas" else "folder=, the path of its files"
        said = f"{name} takes {takes}. A table of your own facts is data=table folder=PATH"
        raise ProbeError(f"data={data}, folder={folder}: {said}")
    if data == "atlas":
        return choose(atlas(), relations)
    columns = dict(pair.partition(":")[::2] for pair in query.split(",") if query)
    if query and (name != "table" or not all(columns.values())):
        raise ProbeError(f"{data!r}: columns are written table?subject:s,relation:prop,object:o")
    options = {"columns": columns} if query else {}
    return _with_atlas_texts(formats.READERS[name](folder, relations, **options))


def multiple_choice(
    data: str = "atlas",
    folder: str | Path | None = None,
    relations: list[str] | None = None,
    n_facts: int | str = "panel",
    seed: int = 0,
    among: Iterable[str] | None = None,
) -> tuple[Facts, Facts]:
    """ZP-LKE's multiple-choice test: (facts to score, each with up to 99 wrong options; pool of its
    many-shot examples).

    Arguments as in ``load``. T-REx-MC has these two splits. With other data, the test has the facts
    of ``load``, and the pool has all other subjects of their relations; options that the data name
    are the wrong ones (FKTC: five). Relations without ZP-LKE's prompts get those of the atlas."""
    if data == "trex_mc":
        tested = load(data, folder, relations, n_facts, 0, seed)
        pool = _with_atlas_texts(formats.read_trex_mc(folder, relations, "train"))
    else:
        n = formats.OPTIONS - 1
        tested = load(data, folder, relations, n_facts, n, seed, among)
        pool = current(everything(data, folder, relations))
    offered = within(tested.facts["fact"], tested.distractors["fact"])
    if not offered.all():
        left_out = tested.facts["fact"][~offered].tolist()
        said = f"{tested.source}: {len(left_out)} of {len(offered)} facts have no wrong option "
        said += f"(another object of the relation): {', '.join(left_out[:5])}"
        if not offered.any():
            raise ProbeError(f"{said}. Add facts of the same relations with other objects")
        warnings.warn(f"{said}; left out", stacklevel=2)
        tested = keep(tested, offered)
    return tested, model.without_subjects(pool, tested)


def substitute_relations(facts: Facts, wanted: list[str]) -> list[str]:
    """The relations that an artifact of the paper shows, ``wanted``, with the first other ones in
    place of those that the data lack (fewer, if there are no others). Raise ProbeError for a
    relation that the atlas does not have either: it is mistyped."""
    names = dict(tuples(facts.relations, "relation", "name"))
    missing = [relation for relation in wanted if relation not in names]
    if odd := set(missing) - set(atlas().relations["relation"]):
        raise unknown("relation", min(odd), names, names)
    others = dict(zip(missing, (r for r in names if r not in wanted), strict=False))
    return [others.get(r, r) for r in wanted if r in names or r in others]


def _size(n_facts: int | str) -> int | None:
    """Number of facts per relation; None: all."""
    sizes = PANEL_SIZES | {"all": None}
    if n_facts not in sizes and not (is_a(n_facts, int) and n_facts > 0):
        allowed = f"{', '.join(map(repr, sizes))}, or a number of facts per relation (from 1)"
        raise ProbeError(f"n_facts is {n_facts!r}; allowed: {allowed}")
    return sizes.get(n_facts, n_facts)


def _from_atlas(relations: list | None, size, seed: int, among, part: str) -> Facts:
    """Facts of the atlas: those of the panel, in its order, then sampled ones, in the atlas's."""
    now = current(atlas())
    wanted = choose(now, relations)
    if among is not None:
        wanted = keep(wanted, within(wanted.facts["fact"], among))
    if size is None or among is not None:
        return wanted if size is None else sample(wanted, size, seed)
    panel = read_panel(now, part)
    if part == "trial":
        return choose(panel, relations)
    if relations is None:
        wanted = choose(now, panel.relations["relation"].tolist())
    chosen = sample(wanted, size, seed, first=panel.facts["fact"])
    from_panel = panel.facts["fact"][within(panel.facts["fact"], chosen.facts["fact"])]
    return model.pick(chosen, dict.fromkeys([*from_panel, *chosen.facts["fact"]]))


def _with_atlas_texts(facts: Facts) -> Facts:
    """Give relations the names and templates of the atlas where they have none of their own."""
    names = facts.relations["relation"].map(atlas().relations.set_index("relation")["name"])
    unnamed = (facts.relations["name"] == facts.relations["relation"]) & names.notna()
    relations = facts.relations.assign(name=facts.relations["name"].mask(unnamed, names))
    return model.with_templates(replace(facts, relations=relations), atlas(), model.ROLES)
