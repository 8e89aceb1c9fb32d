"""What the fixture ``replay`` leaves where a recording goes another way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from claw.errors import ReplayMismatch
from claw.testing import says
from claw.types.entries import UserMessaged
from tests.replay.recordings import changed, with_text


@pytest.mark.no_replay("the recording was changed")
def test_both_sides_are_left_as_a_page(
    claw_session: Callable[..., Any], replay: Callable[..., Any], tmp_path: Path
) -> None:
    run = claw_session([says("done")])
    run.turn("go")
    assert replay(run.journal).same
    assert not (tmp_path / "replay.html").exists()
    changed(run.journal, lambda entry: with_text(entry, UserMessaged, "come"))
    with pytest.raises(ReplayMismatch) as caught:
        replay(run.journal)
    assert caught.value.__notes__ == [f"Both sides are in {tmp_path / 'replay.html'}"]
    assert "Differs from the recording" in (tmp_path / "replay.html").read_text()
