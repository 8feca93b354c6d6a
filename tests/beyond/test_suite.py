"""The measures in common use and the controls: how many there are, and their worked examples."""

import doctest

import numpy as np
import pandas as pd
import pytest

from probelib.beyond.suite import MEASURES, common, measure, measures_of
from probelib.errors import ProbeError


def test_every_measure_in_common_use_has_a_worked_example():
    failed, tried = doctest.testmod(common, extraglobs={"np": np, "pd": pd})
    assert tried >= 7 and not failed


def test_measures_and_their_names():
    controls = [each.name for each in MEASURES.values() if each.control]
    assert controls == ["Chance", "Confidence", "Object prior", "Familiarity"]
    assert len(MEASURES) - len(controls) == 33
    assert measures_of("distractors", without=("generation",))[-1] == "KaRR"


def test_a_name_is_registered_once():
    with pytest.raises(ProbeError, match="there is a measure 'MONITOR' already"):
        measure("MONITOR", "monitor", "questions")
    with pytest.raises(ProbeError, match="did you mean monitor"):
        measure("Another", "monitr", "questions")
