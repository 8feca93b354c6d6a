"""The default command makes every table and figure of the four papers; the list of them is
``coverage.csv``."""

import pandas as pd
import pytest

from probelib.paths import ROOT
from probelib.runner import plan

pytestmark = pytest.mark.fast

COVERAGE = pd.read_csv(ROOT / "tests" / "coverage.csv")


def test_every_table_and_figure_of_the_papers_is_made():
    whole = plan.read()
    made = {artifact for step in whole.steps for artifact in step.makes}
    assert len(COVERAGE) == 82 and COVERAGE["artifact"].is_unique
    assert sorted(set(COVERAGE["artifact"]) - made) == []


def test_the_list_is_in_order():
    """Every entry says where it stands in its paper, and its name says what it is."""
    assert COVERAGE.notna().all(axis=None)
    for artifact, paper, kind in COVERAGE[["artifact", "paper", "kind"]].itertuples(index=False):
        assert artifact.startswith(f"{paper}/{kind}") and kind in ("table", "figure")
