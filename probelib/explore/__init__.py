"""One fact, one model, all measures of the four papers: the library of ``notebooks/explore.ipynb``.

    seen = explore.look(explore.load_pool(), explore.load_model("atlas-neox-2.4m"), "P36:France:Paris", folder)
    seen.measures            the value of each measure, and whether it counts the fact as known
    explore.board(seen)      everything in one picture
    explore.details(seen)    how to read it, and the numbers of each panel
    explore.menu(...)        all of this with three menus, if notebook widgets are installed

Scores go through the store, and whatever does not depend on the selection is cached in memory: another fact takes about a second
with a shipped model. Any model that ``lm.load`` accepts works; a served one without the parts that need hidden states or beams.
"""

from probelib.explore.details import details
from probelib.explore.drawing import (
    board,
    board_as_html,
    board_in_words,
    monitor_in_words,
    shown_board,
    shown_measures,
    title,
    why_unjudged,
)
from probelib.explore.menus import menu
from probelib.explore.seen import ANSWERS, FactPool, Look, facts_of, load_model, load_pool, look
