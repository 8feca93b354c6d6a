"""The GPU core: the only part of the kit that touches a model. Four papers, four questions to a model:

``logprobs(prompts, continuations)``   log P(token) of every continuation token after its prompt
``generate(prompts)``                  greedy or beam text
``top_continuations(prompt, labels)``  the n most probable of a huge set of labels
``hidden_states(texts)``               what the model holds at the last token

    >>> from probelib import lm
    >>> model = lm.load("atlas-neox-2m")                                        # doctest: +SKIP
    >>> model.logprobs(["What is the capital of France?"], [[" Paris", " Rome"]])   # doctest: +SKIP

=================  ============================================================================
``loading``        ``load``: a name -> a model
``model``          what a loaded model is
``tokens``         text -> ids, with one rule for the boundary between prompt and continuation
``tree``           the fast path: every distinct token of the prefix tree forwarded once
``families``       what differs between families when a tree is packed into one row
``attention``      attention of such a row on a CPU, in parts
``linear``         linear layers on a CPU
``encdec``         the fast path of T5 and UL2
``plain``          the reference: one padded sequence a row
``scoring``        ``logprobs`` on top of these
``search``         searches side by side in one cache: what ``generate`` and ``top_continuations`` stand on
``generation``     ``generate``
``labels``         ``top_continuations``: best-first search on the label trie, and the beam
``states``         ``hidden_states``
``gradients``      ``integrated_gradients``: which tokens of a prompt an answer rests on
``similarity``     BERT-score with any encoder
``meter``          seconds and memory of a piece of work
``served``         a model behind an OpenAI-style completions server: the same verbs, as far as a server can
``endpoint``       requests to servers and their keys; chat models of which only texts are wanted
=================  ============================================================================

To read how it works, begin with ``plain`` (what is asked), ``tree`` (the same, each token once), ``tokens`` and ``scoring``; the
others stand on these four.
"""

import logging
import warnings

from probelib.lm.loading import load, load_decoders, organisms, short_names
from probelib.lm.model import LM

__all__ = ["LM", "load", "load_decoders", "organisms", "short_names"]

# huggingface_hub looks for notebook widgets when it is imported; the kit's bars are plain text and need none
warnings.filterwarnings("ignore", message="IProgress not found")
# says before every product in 8 bits what its method is, and asks for a package that would fetch code
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
