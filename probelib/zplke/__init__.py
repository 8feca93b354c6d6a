"""ZP-LKE: Wu et al. 2025, "Towards Reliable Latent Knowledge Estimation in LLMs: Zero-Prompt
Many-Shot Based Factual Knowledge Extraction" (WSDM 2025, arXiv 2404.12957).

Where to find it:

==================================  ===============================================================
Eq. 1, the input sigma              ``probelib.prompts.many_shot``, ``many_shots``
Eq. 2, log P(y | sigma)             ``store.score``
Eq. 3, choice; q, confidence        ``measures.choices``, ``measure`` (all models)
Eq. 4, accuracy; Eq. 5, Acc@K       ``measures.accuracies``, ``leaderboard``; ``accuracy_at``
response test                       ``measures.response``
eta (4.2.2)                         ``measures.subsumption``, ``subsumptions``
probabilities by position (sec. 3)  ``scores.sequence``, ``replaced``; ``measures.by_position``
tables 1 to 11, figures 1 to 16     ``artifacts``
additions of this kit               ``artifacts.harm`` (``measures.effects``), ``sensitivity``
==================================  ===============================================================

Where paper, released code and this kit differ:

==================  ========================  ============================  =======================
                    paper                     released code                 here (its name)
==================  ========================  ============================  =======================
input               one blank everywhere      colons, commas, one colon     one blank (``variant``,
                                              twice                         ``gap``)
ties                not stated                the right object comes last   wrong, and counted
                                              and loses: wrong              (``tie``)
underflow, NaN      not stated                wrong                         log space; NaN is not
                                                                            valid and counted
length, frequency   product over tokens       the same                      the same
                                                                            (``per_token``, ``pmi``)
response            contains the object       lower case; removes , . :     starts with it, up to
                                              from the object only          a word's end (``mode``)
subsumption         eta, but the numbers fit  not released                  both (``subsumption``)
                    the other direction
==================  ========================  ============================  =======================
"""

from probelib.zplke.measures import accuracy_at, choices
from probelib.zplke.scores import replaced
