"""Facts: what they are (``model``), the ones that are shipped (``shipped``), and readers of real formats (``fktc``, ...).

>>> from probelib import facts
>>> atlas = facts.load(n_facts="all")
>>> "P36:France:Paris" in set(atlas.facts["fact"])
True
"""

from pathlib import Path

from probelib.errors import ProbeError, unknown
from probelib.facts.fktc import read_fktc
from probelib.facts.model import Facts, choose, current, draw_distractors, keep, sample, stand_in, with_templates
from probelib.facts.shipped import atlas, read_panel

__all__ = [
    "Facts",
    "atlas",
    "choose",
    "current",
    "draw_distractors",
    "keep",
    "load",
    "read_fktc",
    "read_panel",
    "sample",
    "stand_in",
    "with_templates",
]

PANEL_SIZE = 24  # facts a relation on the panel


def load(
    data: str = "atlas",
    folder: str | Path | None = None,
    relations: list[str] | None = None,
    n_facts: int | str = "panel",
    n_distractors: int = 5,
    seed: int = 0,
) -> Facts:
    """Facts that hold today, with their distractors: the entrance that notebooks use.

    data       "atlas" (shipped); or "fktc", "lama", "bear", "trex_mc", "table": ``folder`` holds the files (of a table of
               triples: it is the file)
    relations  the ones wanted (None: all that there are)
    n_facts    "panel": the shared panel of the atlas (of other data: 24 facts a relation, drawn with ``seed``);
               "all"; or a number of facts a relation (the first of the panel; of other data: drawn with ``seed``)
    """
    if n_facts not in ("panel", "all") and not (isinstance(n_facts, int) and n_facts > 0):
        raise ProbeError(
            f"n_facts is {n_facts!r}; allowed: 'panel', 'all', or a number of facts a relation (1 or more)"
        )
    if data != "atlas":
        return _load_other(data, folder, relations, n_facts, n_distractors, seed)
    everything = current(atlas())
    chosen = choose(everything if n_facts == "all" else read_panel(everything), relations)
    if isinstance(n_facts, int):
        chosen = keep(chosen, chosen.facts.groupby("relation").cumcount() < n_facts)
    return draw_distractors(chosen, pool=atlas(), n=n_distractors, seed=seed)


def _load_other(
    data: str, folder, relations: list[str] | None, n_facts: int | str, n_distractors: int, seed: int
) -> Facts:
    """Facts of a real format; those that come without distractors of their own get them drawn."""
    from probelib.facts import bear, lama, tables, trex_mc

    readers = {
        "fktc": read_fktc,
        "lama": lama.read_lama,
        "bear": bear.read_bear,
        "trex_mc": lambda folder, relations: choose(trex_mc.read_trex_mc(folder), relations),
        "table": lambda path, relations: choose(tables.read_triples(path), relations),
    }
    if data not in readers:
        raise unknown("data", data, ["atlas", *readers])
    if folder is None:
        raise ProbeError(f"data={data!r} needs folder=..., where its files lie")
    everything = current(readers[data](folder, relations))
    size = PANEL_SIZE if n_facts == "panel" else n_facts
    chosen = everything if n_facts == "all" else sample(everything, size, seed)
    return chosen if len(chosen.distractors) else draw_distractors(chosen, everything, n_distractors, seed)
