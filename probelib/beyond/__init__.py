"""Beyond the papers: which measures see what a model was taught, and do they agree?

===============  ===================================================================================
``suite``        all measures with one signature, registered by name: ``MEASURES``
``questions``    the facts, options and examples that every measure gets: ``load_questions``
``scores``       ``score``: the values and costs of all measures; ``load_design``: what was taught
``concordance``  statistics that ties cannot win: pairs of facts in the right order
``measures``     the other statistics: tau-b, agreement, differences between two models
``artifacts``    one function per table and figure of notebooks/beyond
``gpt2``         multiple choice from scores of other programs, read by ``imported.read``
``audit``        claims of the four papers against their printed tables (``published/audit.yaml``)
===============  ===================================================================================
"""

from probelib.beyond import audit
from probelib.beyond.artifacts import (
    agreement,
    coarse_twins,
    detection,
    ground_truth,
    held_out_paraphrases,
    misconceptions,
    oracle,
    placebo,
    popularity,
    quality_against_cost,
    rank_measures,
    training_mixture,
)
from probelib.beyond.gpt2 import choose_candidates, gpt2_accuracy, gpt2_confidence, gpt2_distractors
from probelib.beyond.imported import read_one
from probelib.beyond.measures import agreement_matrix, clustered_order, headline_pairs
from probelib.beyond.questions import load_questions
from probelib.beyond.scores import (
    MISLED,
    POPULAR,
    TWINS,
    encoder_of,
    load_design,
    misled_facts,
    score,
)
from probelib.beyond.suite import MEASURES, measures_of
