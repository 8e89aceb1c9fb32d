"""A title that was given long ago still stands in the list."""

from __future__ import annotations

from pathlib import Path

from claw.sessions.index import list_sessions
from claw.testing import FakeTool, Harness, calls, says


async def test_the_title_outlasts_much_work(tmp_path: Path):
    look = FakeTool("Look", "a finding\n" * 2_000)
    script = [says("Hello."), *(calls(("Look", {"at": n})) for n in range(8)), says("Done.")]
    async with Harness(tmp_path, script, tools=[look]) as run:
        await run.turn("the first prompt")
        run.house.runtime.rename("The title")
        await run.turn("look around")
        (listed,) = list_sessions(str(run.home / ".claw"), str(run.workspace))
    assert listed.size > 128 * 1024
    assert (listed.title, listed.turns) == ("The title", 2)
