"""Whatever happened in a session happens again when it is replayed."""

from __future__ import annotations

import asyncio
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from claw.engine.replaying import replay_session
from claw.errors import (
    AuthenticationFailed,
    ContextOverflow,
    ModelUnavailable,
    OutputLimitTooHigh,
    ParameterRefused,
    ReplayMismatch,
)
from claw.sessions.load import read_entries
from claw.testing import (
    FakeTool,
    Gate,
    Harness,
    ScriptedApprover,
    calls,
    cut,
    fails,
    says,
    waits,
)
from claw.types.effects import Execute
from claw.types.entries import (
    Compacted,
    ReplyReceived,
    Retried,
    Steered,
    ToolFinished,
    TurnEnded,
    UserMessaged,
)
from claw.types.permissions import Answer, Rule
from claw.types.reply import Reply
from tests.replay.recordings import HOOK, changed, hooked, journal, same, shortened, with_text

LOOK = FakeTool("Look", text="seen", required=("at",))
DO = FakeTool("Do", text="done", read_only=False, does=(Execute("do"),))


async def test_parallel_reads_edits_and_failures(tmp_path: Path):
    read = [("Read", {"file_path": name}) for name in ("a.txt", "b.txt", "absent")]
    edit = ("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"})
    script: list[Any] = [calls(*read), calls(edit, ("Bash", {"command": "exit 3"})), says("done")]
    files = {"a.txt": "one\n", "b.txt": "x\n" * 30_000}
    async with Harness(tmp_path, script, files=files, mode="bypassPermissions") as run:
        await run.turn("go")
        await same(run)


async def test_calls_that_are_unknown_unreadable_or_repeated(tmp_path: Path):
    script: list[Any] = [
        calls(("Nothing", {}), ("Read", {}), ("Read", {"file_path": 3}), ("Look", {"at": 1})),
        calls(("Look", {"at": 1})),
        says("done"),
    ]
    async with Harness(tmp_path, script, tools=(LOOK,), mode="bypassPermissions") as run:
        await run.turn("go")
        await same(run)


ERRORS = [
    fails(ModelUnavailable("overloaded", status=529)),
    fails(ModelUnavailable("later", retry_after=3.5)),
    fails(ModelUnavailable("broke off"), after="half an ans"),
    fails(OutputLimitTooHigh("too many", max_tokens=300)),
    fails(ParameterRefused("strange", parameter="effort")),
    cut("half"),
    says(""),
]


@pytest.mark.parametrize("error", ERRORS, ids=range(len(ERRORS)))
async def test_what_was_asked_again(tmp_path: Path, error: Any):
    async with Harness(tmp_path, [error, says("done")]) as run:
        summary = await run.turn("go")
        assert summary.stop_reason == "completed"
        assert [e for e in run.entries if isinstance(e, Retried)]
        await same(run)


FATAL = [
    [fails(AuthenticationFailed("no key", hint="Get one."))],
    [fails(ModelUnavailable("in an hour", retry_after=3600.0))],
    [fails(ModelUnavailable("down"))] * 6,
    [fails(ContextOverflow("too long", limit_tokens=10))],
    [fails(AuthenticationFailed("expired"), after="half")],
    [cut(calls(("Look", {"at": 1})), after=3), cut(calls(("Look", {"at": 1})))] * 3,
    [says(""), says("")],
    [Reply(stop_reason="refusal")],
    [Reply(stop_reason="strange")],
]


@pytest.mark.parametrize("script", FATAL, ids=range(len(FATAL)))
async def test_how_a_turn_failed(tmp_path: Path, script: list[Any]):
    async with Harness(tmp_path, [*script, says("fine")], tools=(LOOK,)) as run:
        summary = await run.turn("go")
        assert summary.stop_reason != "completed"
        await run.turn("go on")
        await same(run)


async def test_hooks_that_deny_fail_and_add(tmp_path: Path):
    script: list[Any] = [
        calls(("Read", {"file_path": "secret.txt"}), ("Read", {"file_path": "a.txt"})),
        calls(("Read", {"file_path": "absent"})),
        says("done"),
    ]
    events = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop")
    files = {"hook.sh": HOOK, "a.txt": "one", "secret.txt": "two"}
    async with Harness(tmp_path, script, files=files, settings=hooked(*events)) as run:
        await run.turn("go")
        await same(run)


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"])
async def test_hooks_that_end_the_turn(tmp_path: Path, event: str):
    files = {"hook.sh": """echo '{"continue": false, "stopReason": "enough"}'"""}
    script: list[Any] = [calls(("Look", {"at": 1}), ("Do", {})), says("done")]
    used: Any = script if event == "Stop" else script[: event != "UserPromptSubmit"]
    options: Any = {"settings": hooked(event), "tools": (LOOK, DO), "mode": "bypassPermissions"}
    async with Harness(tmp_path, used, files=files, **options) as run:
        await run.turn("go")
        await same(run)


async def test_hooks_that_change_the_input_or_block_the_result(tmp_path: Path):
    hook = """
    read -r payload
    case "$payload" in
      *PostToolUse*) echo '{"decision": "block", "reason": "look again"}' ;;
      *) echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"at": 2}}}'
    esac"""
    script: list[Any] = [calls(("Look", {"at": 1})), calls(("Look", {})), says("done")]
    options: Any = {"settings": hooked("PreToolUse", "PostToolUse"), "tools": (LOOK,)}
    async with Harness(tmp_path, script, files={"hook.sh": hook}, **options) as run:
        await run.turn("go")
        assert any(isinstance(e, ToolFinished) and e.added for e in run.entries)
        await same(run)


ANSWERS = [
    Answer(True),
    Answer(False, "not today"),
    Answer(True, rule=Rule("allow", "Do", source="this session")),
    Answer(True, input={"to": "that"}),
    Answer(True, input={"unreadable": 1}),
    Answer(False, "nobody", asked=False),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=range(len(ANSWERS)))
@pytest.mark.parametrize("with_hook", [False, True])
async def test_what_people_answered(tmp_path: Path, answer: Answer, with_hook: bool):
    do = FakeTool("Do", read_only=False, does=(Execute("do"),), required=("to",))
    if answer.input != {"unreadable": 1}:
        do = FakeTool("Do", read_only=False, does=(Execute("do"),))
    script: list[Any] = [calls(("Do", {"to": "this"})), calls(("Look", {"at": 1})), says("done")]
    options: Any = {"settings": hooked("PreToolUse")} if with_hook else {}
    approver = ScriptedApprover([answer, answer])
    options |= {"files": {"hook.sh": "exit 1"}, "tools": (LOOK, do), "approver": approver}
    async with Harness(tmp_path, script, **options) as run:
        await run.turn("go")
        await same(run)


async def test_a_denial_that_ends_the_turn(tmp_path: Path):
    script: list[Any] = [calls(("Do", {}), ("Look", {"at": 1}))]
    async with Harness(tmp_path, script, tools=(LOOK, DO), fail_on_denied=True) as run:
        assert (await run.turn("go")).stop_reason == "permission_denied"
        await same(run)


@pytest.mark.parametrize("after", [0, 1, 2])
async def test_an_interrupt_in_a_reply(tmp_path: Path, after: int):
    gate = Gate()
    reply = waits(gate, calls(("Look", {"at": 1}), text="I look"), after=after)
    async with Harness(tmp_path, [reply, says("fine")], tools=(LOOK,)) as run:
        turn = asyncio.ensure_future(run.turn("go"))
        await gate.reached()
        run.house.runtime.interrupt()
        assert (await turn).stop_reason == "interrupted"
        await run.turn("go on")
        await same(run)


class Interrupting:
    """A listener that interrupts after the n-th entry."""

    def __init__(self, run: Harness, at: int) -> None:
        self.left = at
        self.run = run

    def __call__(self, event: Any) -> None:
        if type(event).__module__ != "claw.types.entries":
            return
        self.left -= 1
        if self.left == 0:
            self.run.house.runtime.interrupt()


@pytest.mark.parametrize("at", range(1, 30))
async def test_an_interrupt_after_any_entry(tmp_path: Path, at: int):
    script: list[Any] = [
        calls(("Look", {"at": 1}), ("Look", {"at": 2}), ("Do", {}), ("Look", {"at": 3})),
        calls(("Write", {"file_path": "new.txt", "content": "x"})),
        says("done"),
    ]
    events = ("PreToolUse", "PostToolUse", "Stop", "UserPromptSubmit")
    options: Any = {"settings": hooked(*events), "files": {"hook.sh": "exit 1"}}
    options |= {"tools": (LOOK, DO), "mode": "bypassPermissions"}
    run = Harness(tmp_path, script, **options)
    run.script = None  # not all of it is used
    async with run:
        run.house.runtime.listen(Interrupting(run, at))
        await run.turn("go")
        await same(run)


class _Interrupts(FakeTool):
    """Interrupts the turn while it runs."""

    harness: Any = None

    async def run(self, args: Any, call: Any) -> Any:
        self.harness.house.runtime.interrupt()
        await asyncio.sleep(10)
        raise AssertionError("it was not interrupted")


async def test_an_interrupt_while_tools_run(tmp_path: Path):
    stop = _Interrupts("Stop")
    script: list[Any] = [
        calls(("Do", {}), ("Look", {"at": 1}), ("Stop", {}), ("Do", {})),
        says("fine"),
    ]
    run = Harness(tmp_path, script, tools=(LOOK, DO, stop), mode="bypassPermissions")
    stop.harness = run
    async with run:
        assert (await run.turn("go")).stop_reason == "interrupted"
        statuses = [e.status for e in run.entries if isinstance(e, ToolFinished)]
        assert statuses == ["ok", "interrupted", "interrupted", "not_run"]
        await run.turn("go on")
        await same(run)


@pytest.mark.parametrize("at", range(2, 14))
async def test_words_that_came_in_between(tmp_path: Path, at: int):
    script: list[Any] = [calls(("Look", {"at": 1})), *[says("well")] * 3]
    run = Harness(tmp_path, script, tools=(LOOK,))
    run.script = None
    async with run:
        seen = 0

        def listener(event: Any) -> None:
            nonlocal seen
            seen += type(event).__module__ == "claw.types.entries"
            if seen == at:
                seen += 1
                run.house.runtime.steer("and that, too")

        run.house.runtime.listen(listener)
        await run.turn("go")
        await run.turn("on")
        assert at > 11 or any(isinstance(e, Steered) for e in run.entries)
        await same(run)


async def test_a_turn_whose_time_was_up(tmp_path: Path):
    slow = FakeTool("Slow", read_only=True)
    run = Harness(tmp_path, [calls(("Slow", {}), ("Look", {"at": 1}))], tools=(slow, LOOK),
                  max_seconds=60.0)  # fmt: skip
    slow.clock, slow.takes = run._clock, 100.0  # type: ignore[assignment]
    async with run:
        assert (await run.turn("go")).stop_reason == "max_time_reached"
        await same(run)


async def test_limits_are_reached_again(tmp_path: Path):
    script: list[Any] = [calls(("Look", {"at": n})) for n in range(2)]
    async with Harness(tmp_path, script, tools=(LOOK,), max_steps=2) as run:
        assert (await run.turn("go")).stop_reason == "max_turns_reached"
        await same(run)


async def test_circles_end_again(tmp_path: Path):
    script: list[Any] = [calls(("Look", {"at": 1}))] * 8
    approver = ScriptedApprover([Answer(True)])
    async with Harness(tmp_path, script, tools=(LOOK,), approver=approver) as run:
        assert (await run.turn("go")).stop_reason == "no_progress"
        await same(run)
    approver = ScriptedApprover([Answer(False)])
    async with Harness(tmp_path / "no", script[:5], tools=(LOOK,), approver=approver) as run:
        assert (await run.turn("go")).stop_reason == "no_progress"
        await same(run)


LONG = FakeTool("Look", text="word " * 4000, required=("at",))


async def test_compactions_before_a_step_and_after_an_overflow(tmp_path: Path):
    script: list[Any] = [
        *(calls(("Look", {"at": n})) for n in range(6)),
        says("one"),
        *(calls(("Look", {"at": n})) for n in range(6)),
        fails(ContextOverflow("too long", limit_tokens=20_000)),
        says("two"),
    ]
    options: Any = {"settings": hooked("PreCompact"), "files": {"hook.sh": "exit 0"}}
    async with Harness(tmp_path, script, tools=(LONG,), auto_compact=30_000, **options) as run:
        await run.turn("go")
        await run.turn("on")
        kinds = {e.trigger for e in run.entries if isinstance(e, Compacted)}
        assert kinds >= {"auto"}
        await run.house.runtime.compact()
        run.house.runtime.rename("a title")
        await same(run)


async def test_a_session_that_went_on_elsewhere_and_went_back(tmp_path: Path):
    write = calls(("Write", {"file_path": "new.txt", "content": "x"}))
    async with Harness(tmp_path, [write, says("done"), says("more")], mode="acceptEdits") as run:
        await run.turn("go")
        await run.turn("on")
        back = run.house.runtime.turns()[0]
        run.house.runtime.rewind(back.seq)
    options: Any = {"session": "latest", "mode": "plan"}
    async with Harness(tmp_path, [says("again")], **options) as run:
        await run.turn("once more")
        await same(run)


@pytest.mark.parametrize("killed_after", range(3, 24))
async def test_a_killed_session_replays_to_its_end_and_goes_on(tmp_path: Path, killed_after: int):
    script: list[Any] = [
        calls(("Look", {"at": 1}), ("Do", {})),
        calls(("Write", {"file_path": "new.txt", "content": "x"})),
        says("done"),
    ]
    options: Any = {"tools": (LOOK, DO), "mode": "bypassPermissions"}
    async with Harness(tmp_path, script, **options) as run:
        await run.turn("go")
        path = journal(run)
    whole = len(path.read_bytes().splitlines())
    shortened(path, killed_after)
    report = await replay_session(str(path))
    report.check()
    assert report.ended_early == (killed_after < whole)
    async with Harness(tmp_path, [says("fine")], session="latest", **options) as run:
        await run.turn("go on")
        (await replay_session(str(path))).check()


async def test_a_hole_in_the_recording_ends_it(tmp_path: Path):
    async with Harness(tmp_path, [calls(("Look", {"at": 1})), says("done")], tools=(LOOK,)) as run:
        await run.turn("go")
        path = journal(run)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:6], *lines[7:]]))
    report = await replay_session(str(path))
    assert report.same
    assert report.ended_early


# -- changed recordings --------------------------------------------------------------


async def recorded(folder: Path) -> Path:
    script: list[Any] = [calls(("Look", {"at": 1})), calls(("Look", {"at": 2})), says("done")]
    async with Harness(folder, script, tools=(LOOK,)) as run:
        await run.turn("go")
        return journal(run)


@pytest.mark.no_replay("the recording was changed")
@pytest.mark.parametrize(
    ("kind", "step"), [(UserMessaged, 1), (ToolFinished, 2)], ids=["prompt", "result"]
)
async def test_one_changed_byte_is_named(tmp_path: Path, kind: type, step: int):
    path = changed(await recorded(tmp_path), lambda entry: with_text(entry, kind, "sean"))
    report = await replay_session(str(path))
    first = report.differences[0]
    assert (first.turn, first.step) == (1, step)
    assert (first.entry, first.field) == ("step_requested", f"messages[{2 * step - 2}]")
    assert "sean" in first.actual
    assert first.expected != first.actual
    with pytest.raises(ReplayMismatch) as caught:
        report.check()
    assert (caught.value.turn, caught.value.step) == (1, step)
    assert "messages[" in caught.value.field


@pytest.mark.no_replay("the recording was changed")
async def test_a_reply_that_is_no_longer_followed_is_named(tmp_path: Path):
    def silenced(entry: Any) -> Any:
        said = isinstance(entry, ReplyReceived) and entry.step == 2
        return replace(entry, blocks=(), stop_reason="end_turn") if said else entry

    first = (await replay_session(str(changed(await recorded(tmp_path), silenced)))).differences[0]
    assert (first.turn, first.step, first.field) == (1, 2, "kind")
    assert (first.expected, first.actual) == ("decision_made", "turn_ended")


@pytest.mark.no_replay("the recording was changed")
async def test_what_was_recorded_and_is_not_used_is_a_difference(tmp_path: Path):
    path = await recorded(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    one_more = [*read_entries(str(path))][-2].entry
    extra = changed(path, lambda entry: one_more if isinstance(entry, TurnEnded) else entry)
    assert len(lines) == len(extra.read_bytes().splitlines())
    report = await replay_session(str(extra))
    assert not report.same


# -- nothing of the machine ----------------------------------------------------------


async def test_nothing_is_read_and_nobody_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    script: list[Any] = [calls(("Read", {"file_path": "a.txt"})), says("done")]
    async with Harness(tmp_path / "there", script, files={"a.txt": "one"}) as run:
        await run.turn("go")
        path = journal(run)
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(path.parent, elsewhere)
    shutil.rmtree(tmp_path / "there")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    monkeypatch.setenv("TZ", "Asia/Tokyo")

    def refused(*args: Any, **named: Any) -> Any:
        raise AssertionError("a replay opened a connection")

    monkeypatch.setattr(socket, "create_connection", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)
    report = await replay_session(str(elsewhere / path.name))
    assert report.same
    assert [*(tmp_path / "empty").iterdir()] == []


async def test_waits_are_not_waited_for(tmp_path: Path):
    script: list[Any] = [fails(ModelUnavailable("later", retry_after=100.0)), says("done")]
    async with Harness(tmp_path, script) as run:
        await run.turn("go")
        async with asyncio.timeout(20):
            await same(run)
