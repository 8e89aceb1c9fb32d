from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.running import Workplace
from tests.terminal.desk import Desk

Sit = Callable[..., Desk]


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


@pytest.fixture
def sit(place: Workplace) -> Iterator[Sit]:
    """Start claw in a terminal; nothing of it is left afterwards."""
    desks: list[Desk] = []

    def start(*args: str, env: dict[str, str] | None = None) -> Desk:
        desks.append(Desk.claw(place, *args, env=env))
        return desks[-1]

    yield start
    for desk in desks:
        desk.leave()
