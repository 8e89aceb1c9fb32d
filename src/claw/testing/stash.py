"""What the pytest plugin notes for its fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest

__all__ = ["ENVIRONMENT", "PASSED", "RECORDED"]

PASSED = pytest.StashKey[bool]()
"""Of a test: it has run, and passed."""
ENVIRONMENT = pytest.StashKey[dict[str, str]]()
"""As pytest was started with."""
RECORDED = pytest.StashKey[dict[Path, str]]()
"""Which test wrote a recording in this run, by its file."""
