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

from claw.engine.replaying import replay
from claw.testing import FakeTool, Harness, calls, says

TURN = 250
TARGET = 2.0  # seconds for 1,000 steps


async def recorded(folder: Path, steps: int) -> Path:
    look = FakeTool("Look", text="what was seen there, in a line or two\n" * 10)
    turns = max(1, steps // TURN)
    a_turn = [calls(("Look", {"at": n}), text="I look.") for n in range(steps // turns - 1)]
    script: list[Any] = [*a_turn, says("done")] * turns
    async with Harness(folder, script, tools=(look,), mode="bypassPermissions") as run:
        for _ in range(turns):
            await run.turn("go on")
        path = run.house.journal_path
    assert path is not None
    return Path(path)


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    with tempfile.TemporaryDirectory() as folder:
        path = asyncio.run(recorded(Path(folder), steps))
        times = []
        for _ in range(3):
            began = time.perf_counter()
            report = replay(path)
            times.append(time.perf_counter() - began)
            report.check()
    best, target = min(times), TARGET * steps / 1_000
    size = "ok" if best < target else "too slow"
    print(
        f"{report.steps:,} steps in {report.turns} turns: {best:.2f} s (target {target:.1f}): {size}"
    )


if __name__ == "__main__":
    main()
