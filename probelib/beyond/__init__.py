"""Beyond the papers: which measures see what a model was taught, and do they agree?

=====================================  ===========================================================================
suite of all measures                  ``suite`` (one file per family; a new measure is a new file), ``MEASURES``
what every model is prompted with      ``questions.load_questions``
what every model was taught            ``scores.load_design``
statistics that ties cannot win        ``concordance``
which prompts are scored               ``scores.score``; costs in tokens per fact beside the values
formulas                               ``measures``: against exposures, against another model, against each other
tables, figures                        one function per artifact of notebooks/beyond: ``tables``, ``figures``, and of the
                                       notebooks that they are named after ``gpt2``, ``robustness``, ``capacity``, ``hidden``,
                                       ``acquisition``
scores of other programs               ``imported.read`` (lm-pub-quiz, lm-evaluation-harness), ``choice``
claims of the four papers, recomputed  ``audit.table``
=====================================  ===========================================================================

Notebooks and the functions of their artifacts:

``beyond/audit``         ``audit_verdicts``, ``audit_failing``, ``audited_claims`` (beyond/audit)
``beyond/real_gpt2``     ``gpt2_accuracy``, ``gpt2_confidence``, ``gpt2_distractors``
``beyond/ground_truth``  ``placebo``, ``coarse_twins``, ``ground_truth``, ``quality_against_cost``, ``detection``,
                         ``calibration``, ``reliability``, ``kinds``
``beyond/robustness``    ``held_out_paraphrases`` (beyond/held_out), ``training_mixture``, ``popularity``, ``misconceptions``
``beyond/agreement``     ``agreement``, ``clusters``, ``agreement_models``, ``partial``, ``disagreements``
``beyond/quantization``  ``quantization_cost``, ``quantization``, ``quantization_change``
"""

from probelib.beyond import audit
from probelib.beyond.choice import choose_candidates
from probelib.beyond.figures import (
    agreement,
    agreement_models,
    audit_verdicts,
    detection,
    kinds,
    quality_against_cost,
    quantization_change,
    reliability,
)
from probelib.beyond.gpt2 import gpt2_accuracy, gpt2_confidence, gpt2_distractors
from probelib.beyond.imported import read_one
from probelib.beyond.measures import headline_pairs, partial_agreement
from probelib.beyond.quantized import answer_probabilities
from probelib.beyond.questions import load_questions
from probelib.beyond.robustness import held_out_paraphrases, misconceptions, popularity, training_mixture
from probelib.beyond.scores import (
    MISLED,
    POPULAR,
    PRECISIONS,
    TWINS,
    confounders,
    encoder_of,
    facts_in_finetuning,
    load_design,
    load_precisions,
    mean_exposures,
    mean_values,
    misled_facts,
    object_types,
    precision_costs,
    score,
    what_was_scored,
)
from probelib.beyond.suite import MEASURES, measures_of
from probelib.beyond.tables import (
    audit_failing,
    audited_claims,
    calibration,
    clusters,
    coarse_twins,
    disagreements,
    ground_truth,
    oracle,
    partial,
    placebo,
    quantization,
    quantization_cost,
    rank_measures,
)
