"""How long the replay of a session takes: one of 1,000 steps, in turns of 250.

.venv/bin/python benchmarks/replay.py [STEPS]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from claw.app.furnish import furnish
from claw.app.wishes import Lent, Wishes
from claw.engine.replaying import replay
from claw.testing import FakeTool, ScriptedModel, calls, says

TURN = 250
TARGET = 2.0  # seconds for 1,000 steps


async def recorded(folder: Path, steps: int) -> str:
    look = FakeTool("Look", text="what was seen there, in a line or two\n" * 10)
    turns = max(1, steps // TURN)
    a_turn = [calls(("Look", {"at": n}), text="I look.") for n in range(steps // turns - 1)]
    script: list[Any] = [*a_turn, says("done")] * turns
    (folder / "work").mkdir()
    wishes = Wishes(cwd=str(folder / "work"), mode="bypassPermissions", env={"HOME": str(folder)})
    # Not the harness: it checks each request as every provider would, all of it.
    house = await furnish(wishes, lent=Lent(model=ScriptedModel(script), tools=(look,)))
    try:
        for _ in range(turns):
            await house.runtime.run_turn("go on")
    finally:
        await house.close()
    assert house.journal_path is not None
    return house.journal_path


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    with tempfile.TemporaryDirectory() as folder:
        path = asyncio.run(recorded(Path(folder), steps))
        began = time.perf_counter()
        report = replay(path)
        took, target = time.perf_counter() - began, TARGET * steps / 1_000
    report.check()
    verdict = "ok" if took < target else "too slow"
    what = f"{report.steps:,} steps in {report.turns} turns"
    print(f"{what}: {took:.2f} s, target {target:.1f}: {verdict}")


if __name__ == "__main__":
    main()
