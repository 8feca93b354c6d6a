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
