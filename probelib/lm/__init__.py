"""The core, which runs language models; the first five files show how. Four verbs:

``logprobs(prompts, continuations)``      log P of every continuation token after its prompt
``generate(prompts)``                     greedy or beam text
``top_continuations(prompt, labels, n)``  the n most probable labels of a large set
``hidden_states(texts)``                  hidden states at the last token

==============  ====================================================================================
``text``        the tokenizer held against its file; chat turns up to the place of the answer
``tokens``      text -> ids, with one rule for the boundary between prompt and continuation
``plain``       the reference: one sequence per request; what has no tree (T5, BERT, Mamba)
``tree``        the fast path: every distinct token of the prefix tree is forwarded once
``scoring``     ``logprobs``
--------------  ------------------------------------------------------------------------------------
``families``    what differs between model families when a tree is packed into one row
``selfcheck``   which path scores a model: does the tree agree with plain sequences?
``model``       ``Model`` (what local and served models share) and ``LM`` (a local model)
``loading``     ``load``: a name -> a model, also one that is in memory
``names``       shipped models, display names, families
``version``     code and libraries that compute scores, part of every key
``decode/``     ``generate``, ``top_continuations``: searches in one shared cache
``internals/``  a model's files and weights, how it is run; memory; states, gradients
``remote/``     models behind OpenAI-style servers
==============  ====================================================================================
"""

import logging
import warnings

from probelib.lm.loading import load, load_decoders
from probelib.lm.model import LM
from probelib.lm.names import organisms, short_names

# huggingface_hub looks for notebook widgets at import; the kit's progress bars are plain text
warnings.filterwarnings("ignore", message="IProgress not found")
# it describes its method before every 8-bit product
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
