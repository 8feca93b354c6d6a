"""GraphEval (Liu et al. 2024, "Evaluating the Factuality of Large Language Models using Large-Scale Knowledge Graphs").

A model answers a few hundred statements of a knowledge graph; a small network, the judge, learns to predict its answers from
one hidden state; then the judge reads the whole graph.

==================================  ======================================================================
statements and corruptions (3.1)    ``open_verbalized``, ``sample_statements``: ``whole_graph``
labels (4.1)                        ``label_statements``: ``scores``; ``parse_answer``, ``outcome``: ``answers``
judge (3.2)                         ``judge.train``, ``judge.predict``
prompt encoder (3.2)                ``soft_prompt.train_soft_prompt``
Eq. 2 (3.3)                         ``eq2``: ``measures``
whole graph (3.3)                   ``judge_graph``, ``graph_scores``: ``whole_graph``
tables 1 to 6                       ``table1`` ... ``table6``: ``tables``; ``table3``: ``judge_figures``
figures 1 to 9                      ``figure1`` ... ``figure9``: ``figures``; ``figure4``: ``judge_figures``
their numbers                       ``describe`` (table 1, figure 8), ``measures`` (table 2, figures 3 to 8), ``quality``
                                    (figure 4, table 3), ``speed`` (table 4)
beyond the paper                    ``exposure_figure``: ``figures``; ``instruction_table``: ``tables``;
                                    ``reliability_figure``, ``learning_curve_figure``: ``judge_figures``;
                                    ``prediction_powered``: ``measures``
settings of a study                 ``settings.Settings``
==================================  ======================================================================

``judge``, ``soft_prompt``, ``learning_curve`` (torch) and ``speed`` are imported by name. Where paper, released code and kit
differ: ``measures`` (answers and Eq. 2), ``judge`` (modes), ``settings`` (the paper's values).
"""

from probelib.grapheval.answers import (
    UNEVALUATED,
    Answer,
    Outcome,
    answer_from_outcome,
    label_texts,
    majority_vote,
    outcome,
    parse_answer,
)
from probelib.grapheval.describe import (
    about_triples,
    graph_statistics,
    most_frequent,
    note_on_popularity,
    samples_for_template,
)
from probelib.grapheval.figures import (
    WORDS,
    agreement_of_metrics,
    exposure_figure,
    figure1,
    figure2,
    figure3,
    figure5,
    figure6,
    figure7,
    figure8,
    figure9,
)
from probelib.grapheval.judge_figures import figure4, learning_curve_figure, reliability_figure, table3
from probelib.grapheval.measures import (
    METRICS,
    beside_mirror,
    by_band,
    by_type,
    change_with_size,
    compare_instructions,
    correlate_models,
    eq2,
    eq2_bounds,
    largest_types,
    outcome_shares,
    own_scores,
    prediction_powered,
    score_interval,
    score_models,
    triple_bands,
    with_mirror,
)
from probelib.grapheval.quality import (
    baseline_quality,
    calibration,
    compare_with_baselines,
    held_out_quality,
    judge_differences,
    judge_quality,
    majority,
    majority_given_truth,
)
from probelib.grapheval.scores import (
    answering_models,
    instructions,
    label_by_instruction,
    label_statements,
    model_sizes,
    note_on_answering,
    statement_prompts,
    substitutes,
    write_template,
)
from probelib.grapheval.settings import GraphEvalSettings
from probelib.grapheval.tables import (
    instruction_table,
    judge_against_answers,
    mirror_image,
    table1,
    table2,
    table4,
    table5,
    table6,
)
from probelib.grapheval.whole_graph import (
    DEFAULT_TEMPLATE,
    graph_answers,
    graph_scores,
    judge_graph,
    load_graph,
    open_verbalized,
    sample_statements,
    scores_by_type,
    verbalize,
)
