"""Distractors: Ammar Khodja et al. 2025, "Factual Knowledge Assessment of Language Models Using Distractors" (COLING 2025).

Where to find it:

=====================================  ================================================================
Eq. 1, plausibility Pl(o|c)            ``measures.plausibility``
Eq. 2, K(f|c): Min@n, Avg@n            ``measures.outcomes``, ``measures.aggregated``
Eq. 3, K(f)                            ``measures.over_sentences``
Eq. 4, optimal distractors             ``scores.search`` with "best_first", ``retrieval.allowed``
Omega(f), the four strategies (3.3)    ``retrieval.omega``, ``retrieval.retrieve``, ``retrieval.searches``
baselines (table 2)                    ``baselines``: probability, precision, rouge_l, karr, ...
calibration on folds (4.2)             ``measures.calibrations``
robustness (4.3)                       ``measures.robustness``; errors by rule: ``prompts.flawed``
proportional gain (appendix C)         ``measures.by_sentences``
scaling (appendix E)                   ``measures.scaling``
what is scored                         ``scores.score``, ``scores.score_distractors``, ...
tables 1 to 9, figures 1 to 8          ``table1``, ... in ``tables``; ``figure1``, ... in ``figures``
additions of this kit                  ``optimum``, ``search_width`` (Opt against ApprOpt), ``endings_table``
=====================================  ================================================================

Where paper, released code and kit differ: see the docstrings of ``measures``, ``retrieval`` and ``baselines``. Settings
that rarely change: ``DistractorSettings``.
"""

from probelib.distractors.figures import (
    figure1,
    figure2,
    figure3,
    figure4,
    figure5,
    figure6,
    figure7,
    figure8,
    optimum,
    scaling,
    scaling_in_the_paper,
)
from probelib.distractors.measures import (
    ENDINGS,
    agreement_by_n,
    agreement_by_sentences,
    by_fact,
    calibrations,
    over_sentences,
    robustness,
)
from probelib.distractors.prompts import FLAWS, flawed
from probelib.distractors.retrieval import former_facts, former_taught, has_former, knowledge, retrieve, spread_facts
from probelib.distractors.scores import (
    cloze_sentences,
    cost_per_fact,
    load_helpers,
    sample_fact,
    sample_lists,
    score,
    score_distractors,
    score_endings,
    score_optimum,
    search_by_width,
    studied_model,
)
from probelib.distractors.settings import DistractorSettings, Study
from probelib.distractors.tables import (
    chance_in_the_paper,
    count_errors,
    endings,
    endings_table,
    facts_used,
    judge_accuracy,
    place_by_kappa,
    published_error_shares,
    search_width,
    table1,
    table2,
    table3,
    table4,
    table5,
    table6,
    table7,
    table8,
    table9,
    what_is_scored,
)
