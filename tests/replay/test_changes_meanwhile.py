"""What people change while a turn runs: the mode, the title, a rule."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from claw.engine.replaying import replay_session
from claw.errors import AuthenticationFailed, ContextOverflow
from claw.testing import FakeTool, Harness, ScriptedApprover, calls, cut, fails, says
from claw.types.effects import Execute
from claw.types.entries import Entry, KnownEntry, ModeChanged, RuleAdded, Titled, TurnEnded
from claw.types.permissions import Answer, Rule
from claw.types.reply import Reply
from tests.replay.recordings import changed, hooked, journal, same, shortened

LOOK = FakeTool("Look", text="seen", required=("at",))
DO = FakeTool("Do", text="done", read_only=False, does=(Execute("do"),))
ENTRIES = 33  # of the turn, and some


class Then:
    """A listener that does something soon after the n-th entry."""

    def __init__(self, at: int, do: Callable[[], None], *, at_once: bool = False) -> None:
        self.left, self.do, self.at_once = at, do, at_once

    def __call__(self, event: Any) -> None:
        self.left -= isinstance(event, KnownEntry)
        if self.left == 0:
            self.left = -1
            if self.at_once:
                self.do()
            else:
                asyncio.get_running_loop().call_soon(self.do)


async def meanwhile(
    folder: Path, at: int, change: Callable[[Any], None], *, at_once: bool, mode: str = "default"
) -> Harness:
    script: list[Any] = [
        calls(("Look", {"at": 1}), ("Do", {}), ("Look", {"at": 3})),
        calls(("Write", {"file_path": "new.txt", "content": "x"})),
        says("done"),
        says("on"),
    ]
    options: Any = {"settings": hooked("PreToolUse", "Stop"), "files": {"hook.sh": "exit 1"}}
    run = Harness(folder, script, tools=(LOOK, DO), mode=mode, **options)
    run.script = None  # words that come late want one more
    async with run:
        runtime = run.house.runtime
        runtime.listen(Then(at, lambda: change(runtime), at_once=at_once))
        await run.turn("go")
        await run.turn("go on")
        assert len([entry for entry in run.entries if isinstance(entry, TurnEnded)]) == 2
        return run


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("at", range(1, ENTRIES))
@pytest.mark.parametrize("mode", ["plan", "acceptEdits"])
async def test_another_mode(tmp_path: Path, at: int, mode: Any, at_once: bool):
    run = await meanwhile(tmp_path, at, lambda r: r.set_mode(mode), at_once=at_once)
    assert [e.mode for e in run.entries if isinstance(e, ModeChanged)] == [mode]
    await same(run)


@pytest.mark.parametrize("at", range(1, ENTRIES))
async def test_another_title(tmp_path: Path, at: int):
    run = await meanwhile(tmp_path, at, lambda r: r.rename("a title"), at_once=at % 2 == 0)
    assert {e.title for e in run.entries if isinstance(e, Titled)} == {"a title"}
    await same(run)


@pytest.mark.parametrize("at", range(1, ENTRIES, 2))
async def test_another_rule(tmp_path: Path, at: int):
    rule = Rule("allow", "Do", source="by hand")
    run = await meanwhile(tmp_path, at, lambda r: r.add_rule(rule), at_once=False)
    assert [e.rule for e in run.entries if isinstance(e, RuleAdded)] == [rule]
    await same(run)


def everything(runtime: Any) -> None:
    runtime.rename("one")
    runtime.set_mode("acceptEdits")
    runtime.add_rule(Rule("allow", "Do"))
    runtime.rename("two")
    runtime.steer("and that, too")


@pytest.mark.parametrize("at", range(2, 24, 3))
async def test_all_of_it_and_then_the_process_is_killed(tmp_path: Path, at: int):
    run = await meanwhile(tmp_path, at, everything, at_once=False)
    await same(run)
    path = journal(run)
    whole = path.read_bytes().splitlines(keepends=True)
    for records in range(3, len(whole)):
        path.write_bytes(b"".join(whole))
        report = await replay_session(str(shortened(path, records)))
        report.check()
    path.write_bytes(b"".join(whole))


ENDINGS: list[Any] = [
    fails(AuthenticationFailed("no key")),
    fails(ContextOverflow("too long", limit_tokens=10)),
    Reply(stop_reason="refusal"),
    cut("half"),
    says("well"),
]


@pytest.mark.parametrize("ending", ENDINGS, ids=range(len(ENDINGS)))
async def test_a_session_with_a_title_whatever_its_turns_end_with(tmp_path: Path, ending: Any):
    run = Harness(tmp_path, [calls(("Look", {"at": 1})), ending, ending], tools=(LOOK,))
    run.script = None
    async with run:
        run.house.runtime.rename("a title")
        await run.turn("go")
        await same(run)


async def test_a_session_with_a_title_whose_time_is_up(tmp_path: Path):
    slow = FakeTool("Slow", read_only=True)
    run = Harness(tmp_path, [calls(("Slow", {}))], tools=(slow,), max_seconds=60.0)
    slow.clock, slow.takes = run._clock, 100.0  # type: ignore[assignment]
    async with run:
        run.house.runtime.rename("a title")
        assert (await run.turn("go")).stop_reason == "max_time_reached"
        await same(run)


async def test_a_session_with_a_title_that_goes_round_in_circles(tmp_path: Path):
    approver = ScriptedApprover([Answer(False)])
    script: list[Any] = [calls(("Look", {"at": 1}))] * 5
    async with Harness(tmp_path, script, tools=(LOOK,), approver=approver) as run:
        run.house.runtime.rename("a title")
        assert (await run.turn("go")).stop_reason == "no_progress"
        await same(run)


@pytest.mark.no_replay("the recording was changed")
async def test_another_title_than_was_recorded_is_a_difference(tmp_path: Path):
    async with Harness(tmp_path, [says("hi")]) as run:
        run.house.runtime.rename("a title")
        await run.turn("go")
    titles = iter(("a title", "a titel"))

    def second(entry: Entry) -> Entry:
        return Titled(next(titles)) if isinstance(entry, Titled) else entry

    report = await replay_session(str(changed(journal(run), second)))
    assert [str(d) for d in report.differences] == ["turn 1, step 1: titled.title"]


@pytest.mark.no_replay("the recording was changed")
async def test_another_mode_than_was_recorded_is_a_difference(tmp_path: Path):
    run = await meanwhile(tmp_path, 12, lambda r: r.set_mode("plan"), at_once=False)

    def other(entry: Entry) -> Entry:
        return ModeChanged("acceptEdits") if isinstance(entry, ModeChanged) else entry

    report = await replay_session(str(changed(journal(run), other)))
    assert [str(d) for d in report.differences] == ["turn 1, step 3: turn_ended.digest"]
