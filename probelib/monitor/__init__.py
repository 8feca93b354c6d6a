"""MONITOR: Wang et al. 2024, "Assessing Factual Reliability of Large Language Model Knowledge"
(NAACL 2024, arXiv 2310.09820).

Where to find it:

============================  ====================================================================
the prompts                   ``prompts.with_contexts`` (templates, positive and negative contexts)
what is scored                ``scores.score``, ``scores.score_answers``
anchors p, f, n (4.1, 4.2)    ``measures.anchors``
Eq. 1, PFD; Eq. 2, IRD        ``measures.pfd``, ``ird``; per fact: ``distances``, ``measure_facts``
Eq. 3, MONITOR                ``measures.root``, ``monitor``; all models: ``measure``
accuracy runs (4.3)           ``measures.verdicts``, ``accuracy``
is a generated text right?    ``scores.extract``, ``scores.matches``
fewer prompts (6.2)           ``measures.fewer_frames``
tables 1 to 11                ``artifacts.table2``, ...; 1 and 7 need no more than their frame
figures 1 to 12               ``artifacts.figure1``, ...
paper against released code   ``artifacts.correlations``, ``artifacts.readings``
============================  ====================================================================

Where paper, released code and this kit differ (the released script cannot finish on any file):

====================  ===============  ===================  =======================================
                      paper            released eval.py     here (the argument that selects)
====================  ===============  ===================  =======================================
alphas                0.33 each        1/3 each             1/3 (``alphas``)
root and mean         not stated       root per fact, sum   the same
which facts count     "anchored"       anchored, with case  anchored, case folded
P(answer token)       of the object    of its own 5 beams   of the object
PFD divided by        R                7, for every R       R
accuracy denominator  not stated       anchored facts       all facts; ``readings``
accuracy runs         R x M            13                   R x M (``runs``)
distractors           as drawn         right ones too       as drawn (table 9 counts the right ones)
verdict of FC         first word       -                    the more probable of True and False
====================  ===============  ===================  =======================================
"""

from probelib.lm.names import tuned_pairs
from probelib.monitor import artifacts, measures, scores
from probelib.monitor.measures import measure
from probelib.monitor.scores import score
