"""Facts: what a language model is probed for.

=================  =================================================================================================
``model``          the five tidy frames of ``Facts``, their rules and the operations on them
``shipped``        the atlas, the facts that are shipped as text, and the panel that all four papers score by default
``loading``        ``load``, the entrance for notebooks: facts of any format, with distractors
``options``        multiple choice with 100 options per fact
``validity``       when a fact holds
``formats``        one reader per published format
``convert``        published formats as tables: ``python -m probelib.facts convert``
``downloads``      where published data are, and ``python -m probelib.facts fetch``
``graphs``         knowledge graphs in columns, with readers of DBpedia and Wikidata dumps
``text`` ``check`` reading text files with errors that name the line; problems of a collection of facts
=================  =================================================================================================

>>> from probelib import facts
>>> atlas = facts.load(n_facts="all")
>>> "P36:France:Paris" in set(atlas.facts["fact"])
True
"""

from probelib.facts.formats.fktc import read_fktc
from probelib.facts.loading import everything, load, multiple_choice, require_examples, substitute_relations
from probelib.facts.model import (
    Facts,
    choose,
    current,
    draw_distractors,
    keep,
    pick,
    sample,
    with_templates,
    without_subjects,
)
from probelib.facts.options import chance_levels
from probelib.facts.shipped import atlas, data_card, read_panel
