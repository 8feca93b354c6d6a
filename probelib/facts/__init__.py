"""Facts: what a language model is probed for.

``model``       the five tidy frames of ``Facts``, their rules and the operations on them
``names``       how labels are written, and which of them are one name
``shipped``     the atlas, the shipped facts, and the panel that all four papers score
``loading``     ``load``, the entrance for notebooks: facts of any format, with distractors
``options``     multiple choice with 100 options per fact
``table``       any table of triples, and the frames that are made of triples
``formats``     published data sets, described in ``datasets.yaml`` or read by a function
``annotated``   human ratings and annotated verbalizations
``validity``    when a fact holds
``graphs``      knowledge graphs in columns, with a reader of DBpedia's dumps
``downloads``   where published data are, and ``python -m probelib.facts fetch``
``text``        reading text files with errors that name the line
``check``       counts and problems of facts

>>> from probelib import facts
>>> atlas = facts.load(n_facts="all")
>>> "P36:France:Paris" in set(atlas.facts["fact"])
True
"""

from probelib.facts.formats import read_fktc
from probelib.facts.loading import everything, load, multiple_choice, substitute_relations
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
