"""Facts: what a language model is probed for.

``model``       the five tidy frames of ``Facts``, their rules and the operations on them
``names``       how labels are written, and which of them are one name
``shipped``     the atlas, the shipped facts, and the panel that all four papers score
``loading``     ``load``, the entrance for notebooks: facts of any format, with distractors
``table``       any table of triples, and the frames that are made of triples
``formats``     the papers' data in their own files
``annotated``   human ratings and annotated verbalizations
``validity``    when a fact holds
``graphs``      knowledge graphs in columns, with a reader of DBpedia's dumps
``text``        reading text files with errors that name the line

>>> from probelib import facts
>>> atlas = facts.load(n_facts="all")
>>> "P36:France:Paris" in set(atlas.facts["fact"])
True
"""

from probelib.facts.formats import read_fktc
from probelib.facts.loading import everything, load, multiple_choice, substitute_relations
from probelib.facts.model import (
    Facts,
    chance_levels,
    choose,
    counts,
    current,
    draw_distractors,
    keep,
    pick,
    sample,
    with_templates,
    without_subjects,
)
from probelib.facts.shipped import atlas, data_card
