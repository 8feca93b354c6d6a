"""Distractors: Ammar Khodja et al. 2025, "Factual Knowledge Assessment of Language Models Using
Distractors" (COLING 2025).

Where to find it:

=====================================  ==========================================================
Eq. 1, plausibility Pl(o|c)            ``measures.plausibility``
Eq. 2, K(f|c): Min@n, Avg@n            ``measures.outcomes``, ``measures.aggregated``
Eq. 3, K(f)                            ``measures.over_sentences``
Eq. 4, optimal distractors             ``store.search`` with "best_first", ``retrieval.allowed``
Omega(f), the four strategies (3.3)    ``retrieval.omega``, ``retrieval.retrieve``, ``.searches``
baselines (table 2)                    ``baselines``: probability, precision, rouge_l, karr, ...
calibration on folds (4.2)             ``measures.calibrations``
robustness (4.3)                       ``measures.robustness``; errors by rule: ``prompts.flawed``
proportional gain (appendix C)         ``measures.by_sentences``
scaling (appendix E)                   ``measures.scaling``
prompts; what is scored                ``scores.cloze_sentences``; ``scores.MEASURES``, ``.score``
tables 1 to 9, figures 1 to 8          ``artifacts.table1``, ..., ``artifacts.figure8``
additions of this kit                  ``artifacts.optimum`` (Opt against ApprOpt), ``.endings``
=====================================  ==========================================================

Where the paper's released code and the kit differ: see ``measures``, ``retrieval``, ``baselines``.
Settings that rarely change: ``scores.DistractorSettings``.
"""

from probelib.distractors import artifacts, baselines, measures, prompts, retrieval, scores
