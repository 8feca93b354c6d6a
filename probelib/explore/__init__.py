"""The first notebooks: a tour, the facts, the shipped models, and one fact by all measures.

tour/figure1          ``tour.candidates_figure``    the most probable candidates for one question
facts/table1          ``facts.counts``              the relations of the atlas
facts/figure1         ``tour.popularity_figure``    popularity of its entities
models/training       ``models.training_table``     size and training of the shipped models
models/recall         ``models.recall_figure``      share of facts recalled, by exposure count
models/requirements   ``models.requirements_table`` what the design requires, and what was measured
explore/figure1       ``board.board_figure``        one fact by all measures of the four papers
explore/table1        ``Look.measures``             the values of these measures
explore/facts         ``compare.facts_known``       which facts a model knows
explore/formats       ``formats.formats_table``     in which format a model answers, and is right

``seen``    ``look``: the numbers of one model for one fact, scored through the store
``board``   ``menu``: three fields (model, relation, fact) above the picture, in a notebook
"""

from probelib.explore.board import board_figure, menu
from probelib.explore.formats import formats_table
from probelib.explore.models import recall_figure, requirements_table, training_table
from probelib.explore.seen import FactPool, facts_of, load_pool, look
from probelib.explore.tour import candidates_figure, fact_about, popularity_figure, tour_facts
