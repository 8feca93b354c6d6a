"""The measures of the four papers, others in common use, and controls, by name and with one
signature:

    @measure("Entropy", paper="zplke", prompts="a list")
    def entropy(model, questions, folder):
        ...
        return values, tokens

values   pd.Series, fact -> value: the higher, the better the model knows the fact
tokens   float: tokens per fact that the model forwards for this measure alone

One module per paper, which calls the paper's own functions, and ``common``; any other module here
is imported after them. Measures of a family
read the same scores: the store keeps these, and ``shared`` what is computed from them.
"""

import importlib
import pkgutil
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from probelib.errors import ProbeError, unknown

# beyond: measures in common use, and controls
PAPERS = ("monitor", "zplke", "distractors", "grapheval", "beyond")


class Measure(NamedTuple):
    """A measure of the suite.

    paper        the paper that defines it, one of ``PAPERS``
    prompts      what the model is prompted with
    compute      (model, questions, folder of the store) -> (values, tokens); see the module
    probability  whether its values are probabilities in [0, 1]
    paraphrased  whether ``questions.templates`` selects its prompts: held-out paraphrases change it
    needs        beyond log-probabilities: "generation", "encoder", "tuned" (an instruction-tuned
                 partner), "states"
    control      whether it ignores the fact itself (it reads only the subject, only the object,
                 ...): a measure must beat it
    """

    name: str
    paper: str
    prompts: str
    compute: Callable
    probability: bool = False
    paraphrased: bool = False
    needs: tuple[str, ...] = ()
    control: bool = False


MEASURES: dict[str, Measure] = {}
_shared: list = []


def measure(name: str, paper: str, prompts: str, **fields) -> Callable:
    """Register a measure (a decorator); the arguments are the fields of ``Measure``. Raise
    ProbeError if there is a measure of this name."""
    if paper not in PAPERS:
        raise unknown("paper", paper, PAPERS)
    if name in MEASURES:
        raise ProbeError(f"there is a measure {name!r} already (of {MEASURES[name].paper})")

    def register(compute: Callable) -> Callable:
        MEASURES[name] = Measure(name, paper, prompts, compute, **fields)
        return compute

    return register


def shared(function: Callable) -> Callable:
    """Compute ``function(model, questions, folder)`` once for all measures of a call."""
    _shared.append(lru_cache(maxsize=1)(function))
    return _shared[-1]


def forget_shared() -> None:
    """Clear the cache of ``shared``, which also refers to models."""
    for function in _shared:
        function.cache_clear()


def measures_of(*papers: str, without: tuple[str, ...] = ()) -> list[str]:
    """Names of the measures of some papers (by default of all) that need none of ``without``."""
    chosen = [each for each in MEASURES.values() if each.paper in (papers or PAPERS)]
    return [each.name for each in chosen if not set(each.needs) & set(without)]


_there = (found.name for found in pkgutil.iter_modules(__path__))
for _module in dict.fromkeys((*PAPERS[:4], "common", *_there)):
    importlib.import_module(f"{__name__}.{_module}")
