"""GraphEval (Liu et al. 2024, "Evaluating the Factuality of Large Language Models using Large-Scale
Knowledge Graphs").

A model answers a few hundred statements of a knowledge graph; a small network, the judge, learns to
predict its answers from one hidden state; then the judge reads the whole graph.

================================  ==================================================================
statements, corruptions (3.1)     ``whole_graph.open_verbalized``, ``whole_graph.sample_statements``
labels (4.1)                      ``scores.label_statements``, ``scores.parse_answer``
answers and outcomes (4.1)        ``measures.outcome``, ``measures.likeliest_answers``
judge, prompt encoder (3.2)       ``judge.train``, ``judge.predict``, ``soft_prompt``
Eq. 2 (3.3)                       ``measures.eq2``, ``measures.score_triples``
whole graph (3.3)                 ``whole_graph.judge_graph``, ``whole_graph.graph_answers``
tables 1 to 6, figures 1 to 9     ``artifacts.table1`` ... ``artifacts.figure9``
their numbers                     ``measures``, ``whole_graph``, ``speed`` (table 4)
beyond the paper                  ``measures.prediction_powered``, ``stats.heterogeneity``
settings of a study               ``scores.GraphEvalSettings``
================================  ==================================================================

Where paper, released code and kit differ: ``measures`` (answers and Eq. 2), ``judge`` (modes),
``scores`` (settings). Below are the names that other packages use, without torch.
"""

from probelib.grapheval.measures import (
    METRICS,
    Answer,
    Outcome,
    eq2,
    majority,
    majority_given_truth,
    outcome,
    prediction_powered,
    score_interval,
)
from probelib.grapheval.scores import parse_answer, statement_prompts
from probelib.grapheval.whole_graph import load_graph, sample_statements, verbalize
