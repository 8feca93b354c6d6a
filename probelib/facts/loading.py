"""``load``: facts of any format that hold today, with their distractors."""

import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from probelib.errors import ProbeError, unknown
from probelib.facts import formats, model
from probelib.facts.model import Facts, check_seed, choose, current, keep, sample, tuples, within
from probelib.facts.options import build_fktc_mc
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

    data       "atlas" (shipped), "fktc", "lama", "bear", "trex_mc", "table", a data set of
               ``datasets.yaml``, or "hub:OWNER/NAME" of the Hugging Face Hub. Columns of a table:
               "table?subject:s,relation:prop,object:o"
    folder     the files of the data (not of the atlas); for "table" the path of the table
    relations  relations to load. None: all; of the atlas those of the panel, unless n_facts="all"
               or ``among`` is given
    n_facts    "panel" (12 facts per relation), "natural" or "trial" (40): a part of the panel of
               the atlas (``read_panel``); of others as many, sampled with ``seed``
               "all": every fact
               a number: that many facts per relation (all, if it has fewer), those of the panel
               first, then sampled ones
    among      fact ids of the atlas: sample among these facts only, ignoring the panel
    released   keep the distractors that the data name as they are: also those that are right
               answers
    """
    size, seed = _size(n_facts), check_seed(seed)
    _check_folder(data, folder)
    if data == "atlas":
        part = n_facts if n_facts in ("natural", "trial") else "stratified"
        chosen = _from_atlas(relations, size, seed, among, part)
        return model.draw_distractors(chosen, pool=atlas(), n=n_distractors, seed=seed)
    whole = everything(data, folder, relations)
    now = current(whole)
    if now.facts.empty:
        raise ProbeError(f"{folder}: no fact holds today")
    chosen = now if size is None else sample(now, size, seed)
    if chosen.distractors.empty:
        return model.draw_distractors(chosen, whole, n_distractors, seed)
    return chosen if released else model.without_right(chosen, whole)


def everything(
    data: str = "atlas", folder: str | Path | None = None, relations: list[str] | None = None
) -> Facts:
    """All facts of the data, former ones included: the knowledge base that distractors come from.
    Relations of the atlas get its names, and its templates for the roles without any."""
    _check_folder(data, folder)
    if data == "atlas":
        return choose(atlas(), relations)
    name, _, query = data.partition("?")
    relations, pairs = check_relations(relations), [p.partition(":") for p in query.split(",") if p]
    columns = {name.strip(): column.strip() for name, _, column in pairs}
    if not all(name and column for name, column in columns.items()):
        raise ProbeError(f"columns: {query!r}; write subject:s,relation:prop,object:o")
    if name.startswith("hub:"):
        return _with_atlas_texts(formats.read_hub(name, columns, relations))
    if name not in formats.READERS:
        raise unknown("data", name, ["atlas", "hub:OWNER/NAME", *formats.READERS])
    if columns and name != "table":
        raise ProbeError(f"data={data!r}: columns are for data=table and data=hub:OWNER/NAME")
    options = {"columns": columns} if columns else {}
    return _with_atlas_texts(formats.READERS[name](folder, relations, **options))


def _check_folder(data: str, folder: str | Path | None) -> None:
    """Raise ProbeError for a folder where none is read, and for a missing one."""
    if (data == "atlas" or data.startswith("hub:")) != (folder is None):
        if folder is None:
            how = f"{data!r} needs folder=..., the path of its files"
            if Path(data).suffix or "/" in data:
                how = f"{data!r} looks like a path: data='table' with folder={data!r} reads it"
            raise ProbeError(f"data={how}")
        what = "the atlas is shipped" if data == "atlas" else f"{data} is downloaded"
        said = f"{what} and takes no folder. Name the data that the folder holds: data='table' for"
        raise ProbeError(f"folder={str(folder)!r}: {said} a table of facts of your own")


def multiple_choice(
    data: str = "atlas",
    folder: str | Path | None = None,
    relations: list[str] | None = None,
    n_facts: int | str = "panel",
    seed: int = 0,
    among: Iterable[str] | None = None,
    *,
    released: bool = False,
) -> tuple[Facts, Facts]:
    """ZP-LKE's multiple-choice test: (facts to score, each with up to 99 wrong options; pool of its
    many-shot examples).

    Arguments as in ``load``. T-REx-MC has these two splits; FKTC is split by T-REx-MC's rule
    (``options.build_fktc_mc``). With other data, the test has the facts of ``load``, and the pool
    has all other subjects of their relations. Relations without ZP-LKE's prompts get those of the
    atlas. Raise ProbeError for data without relations (SimpleQA, TriviaQA).
    """
    _check_folder(data, folder)
    if data in ("fktc", "trex_mc"):
        size, seed, relations = _size(n_facts), check_seed(seed), check_relations(relations)
        if data == "fktc":
            splits = build_fktc_mc(current(formats.read_fktc(folder)), seed)
        else:
            splits = {split: formats.read_trex_mc(folder, split) for split in formats.SPLITS}
        tested, pool = (_with_atlas_texts(choose(splits[s], relations)) for s in ("test", "train"))
        tested = tested if size is None else sample(tested, size, seed)
        if data == "trex_mc" and not released:
            tested = model.without_right(tested, tested)
    else:
        n = formats.OPTIONS - 1
        tested = load(data, folder, relations, n_facts, n, seed, among, released=released)
        formats.require_relations(tested)
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


def _from_atlas(
    relations: list[str] | None, size: int | None, seed: int, among: Iterable | None, part: str
) -> Facts:
    """Facts of the atlas: first those of the panel, in its order, then sampled ones, in the order
    of the atlas."""
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
    """Give relations the names and templates of the atlas where they have none of their own, then
    make questions of statements. Raise ProbeError for a relation without templates whose name
    resembles one of the atlas (p36, capital)."""
    names = facts.relations["relation"].map(atlas().relations.set_index("relation")["name"])
    unnamed = (facts.relations["name"] == facts.relations["relation"]) & names.notna()
    relations = facts.relations.assign(name=facts.relations["name"].mask(unnamed, names))
    complete = model.with_templates(replace(facts, relations=relations), atlas(), model.ROLES)
    known = {name.casefold(): each for each, name in tuples(atlas().relations, "relation", "name")}
    known |= {each.casefold(): each for each in known.values()}
    for relation in facts.relations["relation"]:
        near = known.get(relation.casefold())
        if near and relation not in set(complete.templates["relation"]):
            raise ProbeError(
                f"{facts.source}: relation {relation!r} has no templates. Did you mean {near}, "
                "which gets those of the atlas? Otherwise write templates to FACTS.templates.csv "
                "beside FACTS.csv"
            )
    # "[X] is part of [Y]." becomes "[X] is part of what?"
    own = complete.templates
    asked = within(own["relation"], own["relation"][own["role"] == "question"])
    made = own[(own["role"] == "statement") & ~asked]
    if made.empty:
        return complete
    texts = made["template"].str.rstrip(" .").str.replace("[Y]", "what", regex=False) + "?"
    texts = texts.str[:1].str.upper() + texts.str[1:]
    said = f"no questions for {', '.join(made['relation'].unique())}; made from their statements"
    warnings.warn(f"{facts.source}: {said}: {texts.iloc[0]!r}", stacklevel=2)
    made = made.assign(role="question", template=texts)
    return replace(complete, templates=pd.concat([own, made], ignore_index=True))
