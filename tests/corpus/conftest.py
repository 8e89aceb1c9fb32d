"""The vendors' SDKs as oracles."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest


@pytest.fixture(scope="session")
def oracle() -> Iterator[Any]:
    """Importing the SDKs takes seconds: once, and only for whoever asks them."""
    pytest.importorskip("anthropic")
    pytest.importorskip("openai")
    oracle = import_module("tests.corpus.sdks").Oracle()
    yield oracle
    oracle.close()
