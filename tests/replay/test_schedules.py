"""One scenario, a thousand schedules, one record."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from random import Random
from typing import Any

import pytest

from claw.errors import ModelUnavailable
from claw.recordings.trajectory import dumps, trajectory
from claw.testing import (
    FakeHooks,
    FakeTool,
    FixedPolicy,
    MemoryJournal,
    ScriptedModel,
    calls,
    conversation,
    fails,
    says,
)
from claw.testing.schedules import under_schedule
from claw.types.entries import Compacted, HookFinished, Interrupted, Retried, ToolFinished
from claw.types.hooks import HookOutcome, HookPayload, HookRun
from claw.types.request import Request
from claw.types.session import SessionState
from claw.types.tools import ToolOutput
from claw.types.transcript import Transcript

SEEDS = 1_000 if os.environ.get("CLAW_LONG") else 50
FOUR = ("A", "B", "C", "D")


class Slow(FakeTool):
    """Takes a while that nobody knows before, and says in ``ended`` when it is done."""

    random: Any = None
    ended: Any = None

    async def run(self, args: dict[str, Any], call: Any) -> ToolOutput:
        await asyncio.sleep(self.random.random())
        self.ended.append(self.name)
        return await super().run(args, call)


class Stops(FakeTool):
    """Interrupts the turn: an interrupt at a logical point."""

    runtime: Any = None

    async def run(self, args: dict[str, Any], call: Any) -> ToolOutput:
        self.runtime.interrupt()
        return await super().run(args, call)


class CompactsOnce:
    """Leaves out the results of the first step, before the third."""

    def target(self, request: Request, state: SessionState, window: int | None) -> int | None:
        return 1 if state.steps == 2 and not state.compactions else None

    async def make_room(
        self, transcript: Transcript, keep_rounds: int, target_tokens: int | None, focus: str
    ) -> Compacted | None:
        await asyncio.sleep(0)
        pruned = dict.fromkeys(sorted(transcript.call_ids)[:4], "[left out]")
        return Compacted("auto", 0, 0, (), 100, 50, pruned=pruned)


def failing(payload: HookPayload) -> HookOutcome:
    run = HookRun("hook", "hook", "error", ("it broke",), 1)
    return HookOutcome(messages=("the hook broke",), runs=(run,))


async def scenario(seed: int) -> tuple[str, list[Any], str]:
    """The record, the entries, and the order in which tools were done."""
    random = Random(seed)
    ended: list[str] = []
    tools: list[Any] = [Slow(name, text=f"{name} is done") for name in FOUR]
    for tool in tools:
        tool.random, tool.ended = random, ended
    stop = Stops("Stop")
    denied = FakeTool("Denied", read_only=False)
    script: list[Any] = [
        fails(ModelUnavailable("overloaded", status=529)),
        calls(*((name, {}) for name in FOUR)),
        calls(("Denied", {}), ("A", {"again": True}), ("B", {"again": True})),
        says("done"),
        calls(*((name, {"more": True}) for name in FOUR), ("Stop", {})),
        says("went on"),
    ]
    journal = MemoryJournal()
    runtime = conversation(
        ScriptedModel(script),
        [*tools, stop, denied],
        journal=journal,
        hooks=FakeHooks({"PostToolUse": failing}),
        policy=FixedPolicy({"Denied": "deny"}),
        compactor=CompactsOnce(),
    )
    stop.runtime = runtime
    for prompt in ("go", "once more", "and on"):
        await runtime.run_turn(prompt)
    return dumps(trajectory(journal.entries, {})), journal.entries, "".join(ended)


def test_the_scenario_has_all_that_could_go_wrong():
    _, entries, _ = under_schedule(0, partial(scenario, 0))
    kinds = {type(entry) for entry in entries}
    assert kinds >= {Retried, Compacted, Interrupted}
    statuses = [entry.status for entry in entries if isinstance(entry, ToolFinished)]
    assert statuses == [*["ok"] * 4, "denied", "ok", "ok", *["interrupted"] * 5]
    assert "error" in {entry.outcome for entry in entries if isinstance(entry, HookFinished)}


def test_schedules_differ():
    async def order() -> tuple[str, ...]:
        seen: list[str] = []

        async def step(name: str) -> None:
            await asyncio.sleep(0)
            seen.append(name)

        await asyncio.gather(*map(step, FOUR))
        return tuple(seen)

    assert len({under_schedule(seed, order) for seed in range(20)}) > 5


def test_time_does_not_pass():
    async def wait() -> float:
        await asyncio.sleep(3_600)
        return asyncio.get_running_loop().time()

    assert under_schedule(1, wait) == 3_600


@pytest.mark.timeout(600)
def test_every_schedule_gives_one_record():
    runs = [under_schedule(seed, partial(scenario, seed)) for seed in range(SEEDS)]
    assert len({record for record, _, _ in runs}) == 1
    assert len({order[:4] for _, _, order in runs}) > 10  # of 24: they were not done alike
