"""The measures of the four papers, others in common use, and controls, by name and with one signature. A new measure is one new
file in this folder:

    @measure("Entropy", paper="zplke", prompts="a list")
    def entropy(model, questions, folder):
        ...
        return values, tokens

values   pd.Series, fact -> value: the higher, the better the model knows the fact
tokens   float: tokens per fact that the model forwards for this measure alone

Measures of a family read the same scores: the papers' ``scores`` functions find them in the store, and ``shared`` caches what is
computed from them.
"""

import importlib
import pkgutil
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import pandas as pd

from probelib.errors import unknown

PAPERS = (
    "monitor",
    "zplke",
    "distractors",
    "grapheval",
    "beyond",
)  # beyond: measures in common use, and controls


class Measure(NamedTuple):
    """A measure of the suite.

    paper        the paper that defines it, one of ``PAPERS``
    prompts      what the model is prompted with
    probability  whether its values are probabilities in [0, 1]
    paraphrased  whether ``questions.templates`` selects its prompts, so that held-out paraphrases change it
    needs        beyond log-probabilities: "generation", "encoder", "tuned" (an instruction-tuned partner), "states"
    control      whether it ignores the fact itself (it reads only the subject, only the object, ...): a measure must beat it
    compute      (model, questions, folder of the store) -> (values, tokens); see the module
    """

    name: str
    paper: str
    prompts: str
    probability: bool
    paraphrased: bool
    needs: tuple[str, ...]
    control: bool
    compute: Callable[..., tuple[pd.Series, float]]


MEASURES: dict[str, Measure] = {}
_shared: list = []


def measure(
    name: str,
    paper: str,
    prompts: str,
    probability: bool = False,
    paraphrased: bool = False,
    needs: tuple[str, ...] = (),
    control: bool = False,
):
    """Register a measure under a name; the arguments are the fields of ``Measure``."""
    if paper not in PAPERS:
        raise unknown("paper", paper, PAPERS)

    def register(compute: Callable) -> Callable:
        MEASURES[name] = Measure(
            name, paper, prompts, probability, paraphrased, needs, control, compute
        )
        return compute

    return register


def shared(function: Callable) -> Callable:
    """Compute ``function(model, questions, folder)`` once for all measures of a call (``forget_shared`` clears the cache)."""
    kept = lru_cache(maxsize=1)(function)
    _shared.append(kept)
    return kept


def forget_shared() -> None:
    """Clear the cache of ``shared``, which also refers to models."""
    for function in _shared:
        function.cache_clear()


def measures_of(*papers: str, without: tuple[str, ...] = ()) -> list[str]:
    """Names of the measures of some papers (by default of all) that need none of ``without``."""
    chosen = [each for each in MEASURES.values() if each.paper in (papers or PAPERS)]
    return [each.name for each in chosen if not set(each.needs) & set(without)]


_modules = {module.name for module in pkgutil.iter_modules(__path__)}
for _name in [*PAPERS[:4], *sorted(_modules - set(PAPERS))]:
    importlib.import_module(f"{__name__}.{_name}")
for _name in sorted(
    MEASURES, key=lambda name: PAPERS.index(MEASURES[name].paper)
):  # own ones after those of the paper
    MEASURES[_name] = MEASURES.pop(_name)
