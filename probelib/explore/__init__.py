"""One fact, one model: what the measures of the four papers see of it, at once. The library of ``notebooks/explore.ipynb``.

    seen = explore.look(explore.load_pool(), explore.load_model("atlas-neox-2.4m"), "P36:France:Paris", folder)
    seen.measures            what each of them says: known, or not
    explore.board(seen)      all of it as one picture
    explore.details(seen)    how to read it, and the numbers behind each panel
    explore.menu(...)        all of this with three menus, if there are notebook widgets

Scores go through the store, and what does not depend on the selection is kept in memory: another fact takes about a second on
a shipped model. Any model that ``lm.load`` takes works; a served one without the parts that need hidden states or beams.
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
