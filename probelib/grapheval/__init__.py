"""GraphEval (Liu et al. 2024, "Evaluating the Factuality of Large Language Models using Large-Scale
Knowledge Graphs").

A model answers a few hundred statements of a knowledge graph; a small network, the judge, learns to
predict its answers from one hidden state; then the judge reads the whole graph.

==================================  ================================================================
statements and corruptions (3.1)    ``open_verbalized``, ``sample_statements``: ``whole_graph``
labels (4.1)                        ``label_statements``, ``parse_answer``: ``scores``
answers and outcomes (4.1)          ``Answer``, ``Outcome``, ``outcome``, ``decide``: ``measures``
judge (3.2)                         ``judge.train``, ``judge.predict``
prompt encoder (3.2)                ``soft_prompt.train_soft_prompt``
Eq. 2 (3.3)                         ``eq2``, ``score_answers``: ``measures``
whole graph (3.3)                   ``judge_graph``, ``graph_answers``: ``whole_graph``
tables 1 to 6, figures 1 to 9       ``table1`` ... ``figure9``: ``artifacts``
their numbers                       ``measures``; ``graph_statistics``, ``about_triples``:
                                    ``whole_graph`` (table 1, figure 8); ``speed`` (table 4)
beyond the paper                    ``instruction_table``: ``artifacts``;
                                    ``prediction_powered``, ``heterogeneity``: ``measures``
settings of a study                 ``GraphEvalSettings``: ``scores``
==================================  ================================================================

``judge``, ``soft_prompt`` (torch) and ``speed`` are imported by name. Where paper, released code
and kit differ: ``measures`` (answers and Eq. 2), ``judge`` (modes), ``scores`` (settings).
"""

from probelib.grapheval.artifacts import (
    WORDS,
    figure1,
    figure2,
    figure3,
    figure4,
    figure5,
    figure6,
    figure7,
    figure8,
    figure9,
    instruction_table,
    table1,
    table2,
    table3,
    table4,
    table5,
    table6,
)
from probelib.grapheval.measures import (
    METRICS,
    UNEVALUATED,
    Answer,
    Outcome,
    answer_from_outcome,
    beside_mirror,
    by_type,
    cause_over_degree,
    compare_instructions,
    correlate_models,
    decide,
    eq2,
    eq2_bounds,
    heterogeneity,
    judge_quality,
    largest_types,
    majority,
    majority_given_truth,
    outcome,
    prediction_powered,
    score_answers,
    score_interval,
    score_models,
)
from probelib.grapheval.scores import (
    GraphEvalSettings,
    answering_models,
    instructions,
    label_by_instruction,
    label_statements,
    label_texts,
    majority_vote,
    model_sizes,
    parse_answer,
    statement_prompts,
    substitutes,
    write_template,
)
from probelib.grapheval.whole_graph import (
    DEFAULT_TEMPLATE,
    about_triples,
    graph_answers,
    graph_statistics,
    judge_graph,
    load_graph,
    most_frequent,
    open_verbalized,
    sample_statements,
    samples_for_template,
    scores_by_type,
    verbalize,
)
