"""The three introductory notebooks: a tour, the facts, the shipped models.

=====================  ======================================  =====================================================
artifact               function                                shows
=====================  ======================================  =====================================================
tour/figure1           ``figures.tour_figure1``                the most probable candidates for one question
facts/table1           ``tables.facts_table1``                 the relations of the atlas
facts/figure1          ``figures.facts_figure1``               popularity of its entities
facts/table2           ``tables.facts_table2``                 facts left after each filter
models/table1          ``tables.models_table1``                size and training of the shipped models
models/figure1         ``figures.models_figure1``              training loss by step
models/figure2         ``figures.models_figure2``              share of questions answered rightly, by exposure count
models/table2          ``tables.models_table2``                multiple-choice accuracy, taught and never taught facts
models/figure3         ``figures.models_figure3``              multiple-choice accuracy by exposure count
models/figure4         ``figures.models_figure4``              one fact in all models
models/table3          ``tables.models_table3``                probability of the object after MONITOR's contexts
models/table4          ``tables.models_table4``                how well verdicts tell true from false statements
models/table5          ``tables.models_table5``                how often instruction-tuned models say "I don't know"
models/table6          ``tables.models_table6``                what permuted examples do
models/table7          ``tables.models_table7``                what the design requires, and what was measured
=====================  ======================================  =====================================================

``scores`` has the prompts and scores of these notebooks.
"""

from probelib.overview.figures import (
    facts_figure1,
    median_facts,
    models_figure1,
    models_figure2,
    models_figure3,
    models_figure4,
    tour_figure1,
)
from probelib.overview.scores import (
    contexts,
    corpus_summary,
    fact_about,
    list_gains,
    only_shipped,
    score_multiple_choice,
    tour_facts,
    training,
)
from probelib.overview.tables import (
    facts_table1,
    facts_table2,
    models_table1,
    models_table2,
    models_table3,
    models_table4,
    models_table5,
    models_table6,
    models_table7,
)
