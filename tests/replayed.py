"""Every session that a test leaves behind is replayed at its end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from claw.engine.replaying import replay
from claw.errors import SessionCorrupt, SessionNotFound, SessionTooNew
from claw.recordings.align import pairs

__all__ = ["sessions_replay"]


@pytest.fixture(autouse=True)
def sessions_replay(request: pytest.FixtureRequest) -> Iterator[None]:
    """But for tests marked ``no_replay``, which say why."""
    used = "tmp_path" in request.fixturenames
    folder: Path | None = request.getfixturevalue("tmp_path") if used else None
    yield
    if folder is None or request.node.get_closest_marker("no_replay"):
        return
    for path in sorted(folder.glob("**/.claw/sessions/*/*.jsonl")):
        with contextlib.suppress(SessionCorrupt, SessionNotFound, SessionTooNew):
            report = replay(path)
            report.check()
            assert not [pair for pair in pairs(report) if pair.reached and not pair.same]
