"""What the tests of models need."""

import pytest

from probelib.lm import names


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """No display names of other tests: their folders have the same last two parts."""
    monkeypatch.setattr(names, "_sources", {})
