"""Beyond the papers: which measures see what a model was taught, and do they agree?

===============  ===================================================================================
``suite``        all measures with one signature, registered by name: ``MEASURES``
``questions``    the facts, options and examples that every measure gets: ``load_questions``
``scores``       ``score``: the values and costs of all measures; ``load_design``: what was taught
``trial``        contrasts of what was taught (trial.md), and the share of pairs in the right order
``artifacts``    one function per table and figure of notebooks/beyond
``gpt2``         multiple choice from scores of other programs, read by ``imported.read``
``audit``        claims of the four papers against their printed tables (``published/audit.yaml``)
===============  ===================================================================================
"""

from probelib.beyond import artifacts, audit, gpt2, imported, scores
from probelib.beyond.questions import load_questions
from probelib.beyond.scores import load_design, score
from probelib.organisms.taught import facts_of
