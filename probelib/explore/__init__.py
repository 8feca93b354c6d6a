"""The first notebooks: a tour, the facts, the shipped models, and one fact by all measures.

====================  ============================  =================================================
artifact              function                      shows
====================  ============================  =================================================
tour/figure1          ``tour.candidates_figure``    the most probable candidates for one question
facts/table1          ``data.relations_table``      the relations of the atlas
facts/figure1         ``data.popularity_figure``    popularity of its entities
facts/table2          ``data.filters_table``        facts left after each filter
models/training       ``models.training_table``     size and training of the shipped models
models/recall         ``models.recall_figure``      share of facts recalled, by exposure count
models/requirements   ``models.requirements_table`` what the design requires, and what was measured
explore/figure1       ``board.board_figure``        one fact by all measures of the four papers
explore/table1        ``board.measures_table``      the values of these measures
====================  ============================  =================================================

``seen``    ``look``: the numbers of one model for one fact, scored through the store
``menus``   ``menu``: three fields (model, relation, fact) above the picture, in a notebook

    seen = explore.look(explore.load_pool(), explore.load_model("atlas-neox-2.4m"),
                        "P36:France:Paris", folder)
    seen.measures           the value of each measure, and whether it counts the fact as known
    explore.board(seen)     everything in one picture
"""

from probelib.explore.board import board, board_figure, measures_table
from probelib.explore.data import filters_table, popularity_figure, relations_table
from probelib.explore.menus import menu
from probelib.explore.models import only_shipped, recall_figure, requirements_table, training_table
from probelib.explore.seen import ANSWERS, FactPool, Look, facts_of, load_model, load_pool, look
from probelib.explore.tour import candidates_figure, fact_about, tour_facts
