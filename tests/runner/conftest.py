"""A place for the products of a test."""

from pathlib import Path

import pytest

from probelib import paths


def set_out(patch: pytest.MonkeyPatch, out: Path) -> Path:
    """Move all products to a folder."""
    for key, path in (("OUT", out), ("RUNS", out / "runs"), ("FIGURES", out / "figures")):
        patch.setattr(paths, key, path)
    return out
