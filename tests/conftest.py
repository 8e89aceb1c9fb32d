"""What all tests share: where the outside corpora are, and golden files."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from claw.testing.fixtures import check_golden
from tests.replayed import sessions_replay

__all__ = ["sessions_replay"]

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session", autouse=True)
def _empty_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test sees or changes the home of whoever runs it."""
    os.environ["HOME"] = str(tmp_path_factory.mktemp("home"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("CLAW_LONG"):
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="a full sweep: scripts/test --long"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the outside corpora; tests that need it skip where it is absent."""
    folder = Path(os.environ.get("CLAW_SHARED", PROJECT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip("the outside corpora are not here (set CLAW_SHARED)")
    return folder


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[dict[str, Any]], None]:
    """Compare a trajectory with ``golden/TEST.json`` beside the test."""

    def check(record: dict[str, Any]) -> None:
        name = request.node.name.removeprefix("test_")
        check_golden(Path(request.path).parent / "golden" / f"{name}.json", record, request.config)

    return check
