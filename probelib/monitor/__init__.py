"""MONITOR: Wang et al. 2024, "Assessing Factual Reliability of Large Language Model Knowledge" (NAACL 2024, arXiv 2310.09820).

Where to find it:

==============================  ====================================================================================
the prompts                     ``prompts.with_contexts`` (templates, positive and negative contexts)
what is scored                  ``score``, ``scores.score_answers``
anchors p, f, n (4.1, 4.2)      ``anchors``
Eq. 1, PFD; Eq. 2, IRD          ``pfd``, ``ird``; per fact: ``distances``, ``measure_facts``
Eq. 3, MONITOR                  ``root``, ``monitor``; ``per_relation``, ``overall``; all models: ``measure``
accuracy runs (4.3)             ``verdicts``, ``accuracy``, ``summarize``
is a generated text right?      ``answers.extract``, ``answers.matches``, ``answers.released``
the released algorithm          ``released_anchors``
other decisions (section 6)     ``alternatives``: fewer frames, ``decisions``, readings of Eq. 3 and of accuracy
tables 1 to 11                  ``table1``, ... in ``tables``; 5, 10, 11 in ``relations``, 7 in ``example``;
                                ``correlations``: ours beside the paper's
figures 1 to 12                 ``figure1``, ``figure2``, ... in ``figures``; section 6's (5, 6, 10) in ``discussion``
==============================  ====================================================================================

Where paper, released code and this kit differ (the released script cannot finish on any file; "as released" is its algorithm
with the crashes fixed):

======================  ============================  ==============================  =================================
                        paper                         released eval.py                here (the argument that selects)
======================  ============================  ==============================  =================================
alphas                  0.33 each                     1/3 each                        1/3 (``alphas``)
root and mean           not stated                    root per fact, then sum         the same (``average_first``)
which facts count       "anchored"                    anchored, case-sensitive        anchored, case folded (``answers.matches``)
P(answer token)         on the object's tokens        on the model's own 5-beam       on the object's tokens
                                                                                      (``released_anchors``: as released)
PFD divided by          R                             7, whatever R is                R (``released_anchors``)
accuracy denominator    not stated                    anchored facts                  all facts (``among``); both in
                                                                                      ``readings_of_accuracy``
accuracy runs           R x M                         13                              R x M (``runs``)
distractors             as drawn                      as drawn, right ones too        as drawn (``flaws`` finds the right ones)
======================  ============================  ==============================  =================================
"""

from probelib.lm.partners import tuned_pairs
from probelib.monitor.alternatives import (
    decisions,
    decisions_on_subset,
    readings_of_accuracy,
    readings_of_eq3,
    released_anchors,
    subsets,
)
from probelib.monitor.discussion import attention, extremes, figure5, figure6, figure10, readings, sensitivity
from probelib.monitor.example import example_fact, table7
from probelib.monitor.figures import (
    anchors_in_short,
    farthest_prompts,
    figure1,
    figure2,
    figure3,
    figure4,
    figure7,
    figure8,
    figure9,
    figure11,
    figure12,
    most_apart,
    most_unstable,
    size_and_coverage,
)
from probelib.monitor.measures import (
    Measured,
    accuracy,
    anchored,
    anchors,
    by_prompt,
    checking,
    clearest_fact,
    distances,
    ird,
    judge_forms,
    measure,
    measure_common,
    measure_facts,
    monitor,
    overall,
    per_relation,
    pfd,
    root,
    summarize,
    verdicts,
)
from probelib.monitor.relations import coverage, similar_models, table5, table10, table11
from probelib.monitor.scores import (
    as_released,
    attribute,
    context_shares,
    example_templates,
    facts_shown,
    first_facts,
    generate_for_fact,
    generate_framings,
    gold_label,
    misprimed_prompt,
    one_relation,
    prompts_by_form,
    score,
    score_forms,
    score_objects,
    scored_models,
    time_both,
    top_objects,
    with_answer_cue,
)
from probelib.monitor.tables import (
    accuracy_and_monitor,
    correlations,
    effect_of_tuning,
    flaws,
    table1,
    table2,
    table3,
    table4,
    table6,
    table8,
    table9,
)
