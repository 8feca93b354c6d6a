"""ZP-LKE: Wu et al. 2025, "Towards Reliable Latent Knowledge Estimation in LLMs: Zero-Prompt Many-Shot Based Factual Knowledge
Extraction" (WSDM 2025, arXiv 2404.12957).

Where to find it:

==================================  =============================================================
Eq. 1, the input sigma              ``prompts.many_shot``, ``prompts.many_shots``
Eq. 2, log P(y | sigma)             ``score``
Eq. 3, choice; q, confidence        ``choices``, ``measure`` (all models)
Eq. 4, accuracy                     ``by_relation``, ``overall_accuracy``
Eq. 5, Acc@K                        ``accuracy_at``
response test                       ``generate``, ``response``
eta (4.2.2)                         ``subsumption``, ``mean_subsumption``
probabilities by position (sec. 3)  ``sequence``, ``replaced``; in ``examples``: ``by_position``, ``harm``
tables 1 to 11                      ``table2``, ``table4``, ... in ``tables``
figures 1 to 16                     ``figure1``, ... in ``figures``, drawn with ``charts``
additions of this kit               ``health``, ``options``, ``sensitivity``
==================================  =============================================================

Where paper, released code and this kit differ:

====================  ==============================  ===============================  ================================
                      paper                           released code                    here (the argument that selects)
====================  ==============================  ===============================  ================================
input                 one blank everywhere            colons, commas, one colon twice  one blank (``variant``, ``gap``)
ties                  not stated                      the right object comes last and  wrong, and counted (``tie``)
                                                      loses: wrong
underflow, NaN        not stated                      wrong                            log space; NaN is not valid and
                                                                                       counted (``variant``)
length, frequency     product over tokens             the same                         the same (``per_token``, ``pmi``)
response              contains the object             lower case; removes , . : from   starts with it, at the end of a
                                                      the object only                  word (``mode``)
subsumption           eta, but the numbers fit the    not released                     both (``subsumption``)
                      other direction
====================  ==============================  ===============================  ================================
"""

from probelib.zplke.examples import (
    best_models,
    by_decision,
    by_position,
    harm,
    harm_by_kind,
    harm_by_model,
    measure_positions,
)
from probelib.zplke.figures import (
    figure1,
    figure2,
    figure3,
    figure4,
    figure5,
    figure6,
    figure7,
    figure8,
    figure9,
    figure10,
    figure11,
    figure12,
    figure13,
    figure14,
    figure15,
    figure16,
    options,
)
from probelib.zplke.measures import (
    accuracies,
    accuracy_at,
    accuracy_by_method,
    accuracy_matrix,
    against_blank,
    answers_of_inputs,
    by_relation,
    chance,
    choices,
    correlations,
    difficulty,
    family_correlations,
    fewer_options,
    first_draw,
    forwarding_work,
    guessers,
    mean_subsumption,
    measure,
    measure_responses,
    n95,
    object_frequency,
    overall_accuracy,
    pmi,
    response,
    responses,
    run_health,
    subsumption,
)
from probelib.zplke.prompts import (
    eight_inputs,
    few_examples,
    five_ways,
    lists_of_lengths,
    often_taught,
    own_objects,
    positions,
    relations_with_prompts,
    replaced,
    separated,
    sequence,
    sequence_examples,
    sequence_inputs,
    sequences,
    three_inputs,
    with_prompts,
)
from probelib.zplke.scores import (
    bases,
    describe,
    facts_beside_examples,
    fit_examples,
    generate,
    generate_ways,
    score,
    score_decisions,
    score_ways,
    shared_examples,
)
from probelib.zplke.settings import DesignSettings, ModelsSettings, PromptsSettings
from probelib.zplke.tables import (
    facts_used,
    health,
    known_where_taught,
    sensitivity,
    table1,
    table2,
    table3,
    table4,
    table5,
    table6,
    table7,
    table8,
    table9,
    table10,
    table11,
    telling_fact,
    tokens_saved,
    without_model,
)
