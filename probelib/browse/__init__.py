"""One static page with every answer of every model: ``runs/<profile>/browse.html``.

Pick a model, a relation and a fact; see the prompts, the answers, probabilities, all measures, the exposure count, and
neighbouring facts. The page needs no server and no network. ``gather_answers`` collects its content (from the store, as far as
the notebooks have scored), ``render`` writes it.
"""

from probelib.browse.collect import gather_answers
from probelib.browse.page import render
