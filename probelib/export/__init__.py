"""Facts, tasks and results in the formats of other tools; ``FORMATS`` lists them.

``lm-eval``     the multiple choice of ZP-LKE as a task of lm-evaluation-harness, with results and samples of every model.
                A tie counts as wrong in them; the harness itself chooses the first of the tied options
``eee``         results of that test, per model and per fact, in the schema of Every Eval Ever
``hf``          for Hugging Face: ``.eval_results`` of every model, cards of all organisms, the atlas as CSV with its data card
``croissant``   the facts as CSV with Croissant metadata
"""

from probelib.export.cards import atlas_card, eval_results, model_card
from probelib.export.croissant import write_croissant
from probelib.export.evaluations import write_evaluation
from probelib.export.tasks import Choice, choice_test, write_results, write_task

FORMATS = ("lm-eval", "eee", "hf", "croissant")
