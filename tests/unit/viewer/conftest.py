from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.viewing import everything, hostile


@pytest.fixture(scope="session")
def all_kinds(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The journal of a session in which everything happens."""
    return asyncio.run(everything(tmp_path_factory.mktemp("everything")))


@pytest.fixture(scope="session")
def hostile_session(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The journal of a session in which all foreign text is an attack."""
    return asyncio.run(hostile(Path(tmp_path_factory.mktemp("hostile"))))
