"""What the pytest plugin notes for its fixtures."""

from __future__ import annotations

import pytest

__all__ = ["ENVIRONMENT", "PASSED"]

PASSED = pytest.StashKey[bool]()
"""Of a test: it has run, and passed."""
ENVIRONMENT = pytest.StashKey[dict[str, str]]()
"""As pytest was started with."""
