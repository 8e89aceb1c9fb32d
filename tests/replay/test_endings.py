"""Limits, pictures, fallbacks, schemas, other processes: they replay, and their values count."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from claw.engine.query_engine import QueryEngine, QueryEngineConfig
from claw.engine.replaying import replay, replay_session
from claw.engine.store import load_session
from claw.errors import (
    AuthenticationFailed,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    OutputLimitTooHigh,
)
from claw.models.fallback import FallbackModel, Link
from claw.models.scripted import ScriptedModel, ScriptReply
from claw.runtime.limits import MaxCost, MaxTokens
from claw.sessions.fork import fork
from claw.testing import (
    FakeTool,
    Gate,
    Harness,
    ScriptedApprover,
    calls,
    cut,
    fails,
    refuses,
    says,
    waits,
)
from claw.types.entries import (
    Compacted,
    Entry,
    HookFinished,
    Interrupted,
    KnownEntry,
    ModelChanged,
    RecoveryFailed,
    ReplyReceived,
    Retried,
    Steered,
    StepRequested,
    ToolFinished,
    TurnEnded,
    TurnStarted,
    UserMessaged,
)
from claw.types.messages import Image, Text
from claw.types.permissions import Answer, PermissionDenial
from claw.types.request import Request
from claw.types.results import Failure
from claw.types.tools import ToolOutput
from claw.types.usage import Usage
from claw.workspace.disk import SystemDisk
from tests.replay.recordings import changed, hooked, journal, same

LOOK = FakeTool("Look", text="seen", required=("at",))
LONG = FakeTool("Long", text="word " * 4000, required=("at",))
PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00"
    b"\x1f\x15\xc4\x89"
)

Change = Callable[[Any], Any]


async def differs(path: Path, kind: type, change: Change, nth: int = 1) -> str:
    """The first difference where the n-th entry of a kind is another one."""
    before = path.read_bytes()
    seen = 0

    def other(entry: Entry) -> Entry:
        nonlocal seen
        seen += isinstance(entry, kind)
        if not isinstance(entry, kind) or seen != nth:
            return entry
        new: Entry = change(entry)
        assert new != entry
        return new

    changed(path, other)
    report = await replay_session(str(path))
    path.write_bytes(before)
    return str(report.differences[0]) if report.differences else "same"


def looks(times: int) -> list[ScriptReply]:
    return [calls(("Look", {"at": n}), usage=Usage(100, 10)) for n in range(times)]


class Priced:
    """A model whose every reply costs a quarter of a dollar."""

    def __init__(self, script: Sequence[ScriptReply]) -> None:
        self._model = ScriptedModel(script)
        self.window = self._model.window

    def cost(self, usage: Usage, model: str) -> float | None:
        return 0.25

    async def stream(self, request: Request) -> AsyncGenerator[Any, None]:
        async for event in self._model.stream(request):
            yield event


# -- limits ------------------------------------------------------------------------------


async def test_tokens_that_are_spent(tmp_path: Path):
    async with Harness(tmp_path, looks(3), tools=(LOOK,), max_tokens=250) as run:
        assert (await run.turn("go")).stop_reason == "max_budget_reached"
    await same(run)
    more = {"max_turns": 500.0, "max_budget_tokens": 1000.0}
    found = await differs(journal(run), TurnStarted, lambda e: replace(e, limits=more))
    assert found == "turn 1, step 4: turn_ended.kind"
    more_used = Usage(300, 10)
    found = await differs(journal(run), ReplyReceived, lambda e: replace(e, usage=more_used))
    assert found == "turn 1, step 1: step_requested.kind"


async def test_money_that_is_spent(tmp_path: Path):
    async with Harness(tmp_path, Priced(looks(3)), tools=(LOOK,)) as run:
        options = replace(run.house.runtime.options, limits=(MaxCost(0.6),))
        summary = await run.house.runtime.run_turn("go", options=options)
        assert (summary.stop_reason, summary.cost.usd) == ("max_budget_reached", 0.75)
    await same(run)
    found = await differs(journal(run), TurnEnded, lambda e: replace(e, cost=0.5))
    assert found == "turn 1, step 4: turn_ended.kind"


async def test_budgets_of_a_session(tmp_path: Path):
    async with Harness(tmp_path, [*looks(1), *looks(1)], tools=(LOOK,)) as run:
        for left in (50, 40):
            limits = (MaxTokens(left, "session_budget_tokens"),)
            options = replace(run.house.runtime.options, limits=limits)
            summary = await run.house.runtime.run_turn("go", options=options)
            assert summary.stop_reason == "max_budget_reached"
    await same(run)


async def test_another_time_limit_is_a_difference(tmp_path: Path):
    slow = FakeTool("Slow", read_only=True)
    run = Harness(tmp_path, [calls(("Slow", {}))], tools=(slow,), max_seconds=0.25)
    slow.clock, slow.takes = run._clock, 0.3  # type: ignore[assignment]
    async with run:
        assert (await run.turn("go")).stop_reason == "max_time_reached"
    await same(run)
    limits = {"max_turns": 500.0, "max_time": 9.0}
    found = await differs(journal(run), TurnStarted, lambda e: replace(e, limits=limits))
    assert found == "turn 1, step 1: turn_ended.digest"


# -- other models ------------------------------------------------------------------------


async def test_a_chain_of_models(tmp_path: Path):
    down = fails(ModelUnavailable("down", status=503))
    first = ScriptedModel([calls(("Look", {"at": 1})), *[down] * 9], strict=False)
    second = ScriptedModel([calls(("Look", {"at": 2})), *[down] * 9], strict=False)
    third = ScriptedModel([says("the third"), says("again")], strict=False)
    links = [Link(first, "one"), Link(second, "two"), Link(third, "three")]
    model = FallbackModel(links, lambda notice: None)
    async with Harness(tmp_path, model, tools=(LOOK,)) as run:
        assert (await run.turn("go")).stop_reason == "completed"
        await run.turn("go on")
        models = [e.model for e in run.entries if isinstance(e, ModelChanged)]
        assert models == ["two", "three"]
    await same(run)
    found = await differs(journal(run), ModelChanged, lambda e: ModelChanged("four"), 2)
    assert found == "turn 1, step 3: model_changed.model"


# -- pictures ----------------------------------------------------------------------------


class Camera(FakeTool):
    """Gives a text, a picture, and what is none."""

    blobs: Any = None

    async def run(self, args: dict[str, Any], call: Any) -> ToolOutput:
        pictures = tuple(Image("image/jpeg", self.blobs.put(b)) for b in (PNG, b"<svg/>"))
        return ToolOutput((Text("two pictures"), *pictures, Image("image/png", "0" * 64)))


async def test_pictures_that_were_shown_and_taken(tmp_path: Path):
    camera = Camera("Shoot")
    script: list[Any] = [calls(("Shoot", {})), says("fine")]
    async with Harness(tmp_path, script, tools=(camera,)) as run:
        camera.blobs = run.house.blobs
        shown = tuple(Image("image/gif", run.house.blobs.put(b)) for b in (PNG, b"GIF89a"))
        await run.house.runtime.run_turn((Text("look"), *shown))
        (said,) = (e for e in run.entries if isinstance(e, UserMessaged))
        (done,) = (e for e in run.entries if isinstance(e, ToolFinished))
        assert [type(block) for block in said.content] == [Text, Image, Text]
        assert [type(block) for block in done.content] == [Text, Image, Text, Text]
    await same(run)

    def wrong(entry: Any) -> Any:
        picture = replace(entry.content[1], media_type="image/jpeg")
        return replace(entry, content=(entry.content[0], picture, *entry.content[2:]))

    assert (await differs(journal(run), UserMessaged, wrong)).startswith("turn 1, step 0: user_me")
    assert (await differs(journal(run), ToolFinished, wrong)).startswith("turn 1, step 1: tool_fi")


# -- ends of replies ---------------------------------------------------------------------


async def test_pauses_refusals_and_cut_calls(tmp_path: Path):
    script: list[Any] = [
        replace(says("wait"), stop_reason="pause_turn"),
        replace(calls(("Look", {"at": 1}), usage=Usage(10, 500)), stop_reason="max_tokens"),
        calls(("Look", {"at": 2})),
        refuses("no"),
        replace(says("and so"), stop_reason="max_tokens"),
    ]
    async with Harness(tmp_path, script, tools=(LOOK,)) as run:
        assert (await run.turn("go")).stop_reason == "refused"
        assert (await run.turn("on")).stop_reason == "output_limit"
        asked = [e.max_tokens for e in run.entries if isinstance(e, StepRequested)]
        assert asked[2] == 1000
    await same(run)
    found = await differs(journal(run), StepRequested, lambda e: replace(e, max_tokens=2000), 3)
    assert found.endswith("step_requested.max_tokens")
    found = await differs(journal(run), ReplyReceived, lambda e: replace(e, stop_reason="stop"), 4)
    assert found == "turn 1, step 4: turn_ended.stop_reason"


async def test_ids_that_come_twice(tmp_path: Path):
    same_id = [replace(c, id="x") for c in calls(("Look", {"at": 1}), ("Look", {"at": 2})).blocks]
    twice = replace(calls(("Look", {"at": 1})), blocks=tuple(same_id))
    blank = replace(twice, blocks=tuple(replace(c, id=" ") for c in same_id))
    script: list[Any] = [twice, cut(twice, after=3), twice, blank, says("done")]
    async with Harness(tmp_path, script, tools=(LOOK,)) as run:
        assert (await run.turn("go")).stop_reason == "completed"
        ids = [e.call_id for e in run.entries if isinstance(e, ToolFinished)]
        assert len(set(ids)) == len(ids)
    await same(run)


@pytest.mark.parametrize("answer", [True, False])
async def test_circles_are_asked_about(tmp_path: Path, answer: bool):
    script: list[Any] = [calls(("Look", {"at": 1}))] * (6 if answer else 5)
    approver = ScriptedApprover([Answer(answer)])
    extra = [says("enough")] if answer else []
    async with Harness(tmp_path, [*script, *extra], tools=(LOOK,), approver=approver) as run:
        await run.turn("go")
        assert [e.source for e in run.entries if isinstance(e, Steered)] == ["runtime"]
    await same(run)

    def weaker(entry: Any) -> Any:
        return replace(entry, content=(Text("do as you like"),))

    assert (await differs(journal(run), Steered, weaker)).endswith("steered.content[0].text")


async def test_objections_of_stop_hooks(tmp_path: Path):
    hook = "test -e met && exit 0; touch met; echo 'not yet' >&2; exit 2"
    options: Any = {"settings": hooked("Stop"), "files": {"hook.sh": hook}}
    async with Harness(tmp_path, [says("done"), says("now, yes")], **options) as run:
        assert (await run.turn("go")).stop_reason == "completed"
    await same(run)
    found = await differs(journal(run), HookFinished, lambda e: replace(e, messages=("well",)))
    assert found == "turn 1, step 2: turn_ended.digest"
    found = await differs(journal(run), Steered, lambda e: replace(e, content=(Text("not now"),)))
    assert found == "turn 1, step 1: steered.content[0].text"


async def test_retries_with_parts_of_seconds(tmp_path: Path):
    script: list[Any] = [
        fails(ModelUnavailable("later", retry_after=0.125)),
        fails(OutputLimitTooHigh("too many", max_tokens=300)),
        says("done"),
    ]
    async with Harness(tmp_path, script) as run:
        began = time.monotonic()
        await run.turn("go")
    await same(run)
    assert time.monotonic() - began < 20
    found = await differs(journal(run), Retried, lambda e: replace(e, delay=e.delay + 1))
    assert found == "turn 1, step 1: turn_ended.digest"
    found = await differs(journal(run), Retried, lambda e: replace(e, fits=200), 2)
    assert found.startswith("turn 1, step 1: step_requested.")


# -- interrupts at each stage --------------------------------------------------------------


class _Waiting:
    """Asks nobody, and waits."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def ask(self, question: Any) -> Answer:
        self.asked.set()
        await asyncio.sleep(60)
        raise AssertionError("it was not interrupted")


async def interrupted(run: Harness, reached: Any) -> list[str]:
    turn = asyncio.ensure_future(run.turn("go"))
    async with asyncio.timeout(20):
        await reached
    run.house.runtime.interrupt()
    assert (await turn).stop_reason == "interrupted"
    await same(run)
    return [e.stage for e in run.entries if isinstance(e, Interrupted)]


async def test_an_interrupt_before_it_began(tmp_path: Path):
    run = Harness(tmp_path, [says("never")])
    run.script = None
    async with run:
        turn = asyncio.ensure_future(run.turn("go"))
        await asyncio.sleep(0)
        run.house.runtime.interrupt()
        assert (await turn).stop_reason == "interrupted"
        await same(run)


async def test_an_interrupt_while_the_model_is_asked(tmp_path: Path):
    gate = Gate()
    async with Harness(tmp_path, [waits(gate, "hello", after=0)]) as run:
        assert await interrupted(run, gate.reached()) == ["sampling"]


async def test_an_interrupt_while_somebody_is_asked(tmp_path: Path):
    approver = _Waiting()
    do = FakeTool("Do", read_only=False)
    async with Harness(tmp_path, [calls(("Do", {}))], tools=(do,), approver=approver) as run:
        assert await interrupted(run, approver.asked.wait()) == ["tools"]


async def test_an_interrupt_while_it_is_asked_whether_to_go_on(tmp_path: Path):
    approver = _Waiting()
    script: list[Any] = [calls(("Look", {"at": 1}))] * 5
    async with Harness(tmp_path, script, tools=(LOOK,), approver=approver) as run:
        assert await interrupted(run, approver.asked.wait()) == ["waiting"]


async def begun(path: Path) -> None:
    while not path.exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("event", "stage"),
    [("Stop", "waiting"), ("PreCompact", "compacting"), ("PreToolUse", "tools")],
)
async def test_an_interrupt_while_hooks_run(tmp_path: Path, event: str, stage: str):
    options: Any = {"files": {"hook.sh": "touch begun; sleep 60"}, "settings": hooked(event)}
    script: list[Any] = [calls(("Long", {"at": 1})), fails(ContextOverflow("too long"))]
    script = [says("done")] if event == "Stop" else script
    script = script[:1] if event == "PreToolUse" else script
    async with Harness(tmp_path, script, tools=(LONG,), **options) as run:
        assert await interrupted(run, begun(run.workspace / "begun")) == [stage]


# -- other processes, other places ---------------------------------------------------------


async def test_a_session_of_several_processes(tmp_path: Path):
    options: Any = {"tools": (LOOK,)}
    async with Harness(tmp_path, [calls(("Look", {"at": 1})), says("one")], **options) as run:
        await run.turn("go")
    options["session"] = "latest"
    for name, mode in (("other", "plan"), ("third", "acceptEdits")):
        gone = ScriptedModel([fails(ModelUnavailable("gone"))] * 2)
        links = [Link(gone, "gone"), Link(ScriptedModel([says(name)]), name)]
        model = FallbackModel(links, lambda notice: None)
        async with Harness(tmp_path, model, mode=mode, **options) as run:
            await run.turn("on")
    assert [e.model for e in run.entries if isinstance(e, ModelChanged)] == ["other", "third"]
    assert [e.mode for e in run.entries if isinstance(e, TurnStarted)][1:] == [
        "plan",
        "acceptEdits",
    ]
    await same(run)


async def test_files_went_back_and_turns_came_after(tmp_path: Path):
    def write(text: str) -> Any:
        return calls(("Write", {"file_path": "a.txt", "content": text}))

    script: list[Any] = [write("1"), says("1"), write("2"), says("2"), write("3"), says("3")]
    async with Harness(tmp_path, script, mode="bypassPermissions") as run:
        await run.turn("one")
        await run.turn("two")
        back = run.house.runtime.turns()[1]
        undo = run.house.runtime.rewind(back.seq).undo
        assert undo is not None
        run.house.runtime.rewind(undo)
        run.house.runtime.rewind(back.seq, conversation=False)
        await run.turn("three")
    await same(run)


async def test_a_fork_of_a_fork(tmp_path: Path):
    async with Harness(tmp_path, [calls(("Look", {"at": 1})), says("one")], tools=(LOOK,)) as run:
        await run.turn("go")
    for name in ("second", "third"):
        options: Any = {"session": "latest", "fork": True, "session_id": name}
        async with Harness(tmp_path, [says(name)], tools=(LOOK,), **options) as run:
            await run.turn("and on")
        await same(run)
    assert run.house.session_id == "third"
    assert sum(isinstance(e, TurnEnded) for e in run.entries) == 3
    short = journal(run).with_name("short.jsonl")
    fork(str(journal(run)), str(short), at_seq=9, now=lambda: 0.0, disk=SystemDisk())
    assert (await replay_session(str(short))).same


async def test_compactions_by_hand_with_a_focus(tmp_path: Path):
    script: list[Any] = [calls(("Long", {"at": 1})), says("one"), says("two"), says("three")]
    options: Any = {"settings": hooked("PreCompact"), "files": {"hook.sh": "exit 1"}}
    async with Harness(tmp_path, script, tools=(LONG,), **options) as run:
        await run.turn("go")
        await run.turn("on")
        done = await run.house.runtime.compact("the essence")
        assert done is not None
        await run.turn("and on")
    await same(run)

    def shorter(entry: Any) -> Any:
        return replace(entry, summary=(Text("nothing happened"),))

    found = await differs(journal(run), Compacted, shorter)
    assert found == "turn 3, step 1: step_requested.messages[0]"


# -- answers with a schema, and denials ------------------------------------------------------

SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


def engine(folder: Path, script: Sequence[ScriptReply], **config: Any) -> QueryEngine:
    (folder / "work").mkdir(exist_ok=True)
    env = {"HOME": str(folder / "home"), "PATH": "/usr/bin:/bin"}
    options: Any = {"model": ScriptedModel(script), "env": env}
    return QueryEngine.from_workspace(
        str(folder / "work"), QueryEngineConfig(**config), permission_mode="plan", **options
    )


def test_answers_that_never_fit_a_schema_failed_in_any_process(tmp_path: Path):
    script = [says("no"), says("{}"), says('{"n": "x"}'), says('{"n": 3}')]
    with engine(tmp_path, script, structured_output=SCHEMA) as made:
        results = [made.submit_message("count"), made.submit_message("count")]
        path = made.persist_session()
    assert [result.stop_reason for result in results] == ["error", "completed"]
    env = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    stored = load_session(made.session_id, cwd=str(tmp_path / "work"), env=env)
    assert stored.stop_reasons == ("error", "completed")
    replay(path).check()


async def test_another_verdict_on_an_answer_is_a_difference(tmp_path: Path):
    failed = Failure("structured_output", "no JSON")
    async with Harness(tmp_path, [says("no")]) as run:
        options = replace(run.house.runtime.options, verdict=lambda: failed)
        summary = await run.house.runtime.run_turn("count", options=options)
        assert (summary.stop_reason, summary.error) == ("error", failed)
    await same(run)
    other = replace(failed, message="no YAML")
    found = await differs(journal(run), TurnEnded, lambda e: replace(e, error=other))
    assert found == "turn 1, step 1: turn_ended.digest"


def test_denials_that_were_handed_in_and_inferred_are_there_in_another_process(tmp_path: Path):
    given = PermissionDenial("Bash", "", "not wanted", "caller")
    with engine(tmp_path, [calls(("Write", {"file_path": "x", "content": ""})), says("ok")]) as m:
        result = m.submit_message("go", matched_tools=("Write",), denied_tools=(given,))
        before = m.permission_denials
        path = m.persist_session()
    assert [(d.tool_name, d.status) for d in result.permission_denials] == [
        ("Bash", "denied"),
        ("Write", "would-deny"),
        ("Write", "denied"),
    ]
    env = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    cwd = str(tmp_path / "work")
    assert load_session(m.session_id, cwd=cwd, env=env).permission_denials == before
    with QueryEngine.from_saved_session(m.session_id, cwd, env=env) as again:
        assert again.permission_denials == before == result.permission_denials
    replay(path).check()


async def test_room_that_was_doubled_in_the_next_turn_and_then_lowered(tmp_path: Path):
    cut_call = replace(calls(("Look", {"at": 1}), usage=Usage(9, 90)), stop_reason="max_tokens")
    script: list[Any] = [cut_call, fails(OutputLimitTooHigh("too many", max_tokens=300)), says("")]
    run = Harness(tmp_path, [*script, says("done"), says("again")], tools=(LOOK,), max_steps=1)
    run.script = None
    async with run:
        for prompt in ("go", "on", "and on"):
            await run.turn(prompt)
        asked = [e.max_tokens for e in run.entries if isinstance(e, StepRequested)]
        assert asked[:3] == [None, 180, 300]
    await same(run)


@pytest.mark.parametrize("chosen", [100, 300, 1000])
async def test_limits_of_output_that_somebody_chose(tmp_path: Path, chosen: int):
    script: list[Any] = [
        calls(("Long", {"at": 1})),
        fails(OutputLimitTooHigh("too many", max_tokens=300)),
        calls(("Long", {"at": 2})),
        fails(ContextOverflow("too long", limit_tokens=20_000)),
        says("smaller"),
        says("again"),
    ]
    options: Any = {"tools": (LONG,), "settings": {"maxOutputTokens": chosen}}
    async with Harness(tmp_path, script, **options) as run:
        await run.turn("go")
        await run.turn("on")
        assert {e.max_tokens for e in run.entries if isinstance(e, StepRequested)} >= {chosen}
    await same(run)


@pytest.mark.parametrize("updated", [False, True])
@pytest.mark.parametrize("at", range(1, 22))
async def test_a_call_that_could_not_be_read_and_then_an_end(
    tmp_path: Path, at: int, updated: bool
):
    script = [calls(("Look", {"at": 1}), ("Look", {"on": 2}), ("Do", {}), ("Look", {}))]
    hook = """echo '{"hookSpecificOutput": {"updatedInput": {"on": 1}}}'"""
    files = {"hook.sh": hook if updated else "exit 1"}
    do = FakeTool("Do", read_only=False)
    options: Any = {"tools": (LOOK, do), "files": files, "settings": hooked("PreToolUse")}
    run = Harness(
        tmp_path, ScriptedModel(script, strict=False), mode="bypassPermissions", **options
    )
    async with run:
        seen = 0

        def listener(event: Any) -> None:
            nonlocal seen
            seen += isinstance(event, KnownEntry)
            if seen == at and isinstance(event, KnownEntry):
                run.house.runtime.interrupt()

        run.house.runtime.listen(listener)
        await run.turn("go")
    await same(run)
    path = journal(run)
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[: at + 2]))
    (await replay_session(str(path))).check()


@pytest.mark.parametrize("then", [AuthenticationFailed("no key"), ContextOverflow("longer")])
async def test_room_that_was_made_for_nothing(tmp_path: Path, then: ModelError):
    overflow = ContextOverflow("too long", hint="Start anew.")
    script: list[Any] = [calls(("Long", {"at": 1})), calls(("Look", {"at": 1})), fails(overflow)]
    model = ScriptedModel([*script, *[fails(then)] * 4], strict=False)
    async with Harness(tmp_path, model, tools=(LOOK, LONG)) as run:
        await run.turn("go")
        (failed,) = (e for e in run.entries if isinstance(e, RecoveryFailed))
        assert failed.error == "too long"
    await same(run)


async def test_an_interrupt_right_after_room_was_made(tmp_path: Path):
    script: list[Any] = [
        calls(("Long", {"at": 1})),
        calls(("Look", {"at": 1})),
        fails(ContextOverflow("too long")),
        says("never"),
    ]
    async with Harness(tmp_path, ScriptedModel(script, strict=False), tools=(LOOK, LONG)) as run:
        runtime = run.house.runtime
        runtime.listen(lambda e: runtime.interrupt() if isinstance(e, Compacted) else None)
        assert (await run.turn("go")).stop_reason == "interrupted"
        (failed,) = (e for e in run.entries if isinstance(e, RecoveryFailed))
        assert (failed.rounds, failed.error) == (1, "too long")
    await same(run)


@pytest.mark.parametrize("failing", [False, True])
async def test_a_process_that_was_killed_between_a_hook_and_the_result(
    tmp_path: Path, failing: bool
):
    look = FakeTool("Look", text="seen", fails=failing)
    options: Any = {"settings": hooked("PostToolUse", "PostToolUseFailure"), "tools": (look,)}
    script: list[Any] = [calls(("Look", {}), ("Look", {})), says("done")]
    async with Harness(tmp_path, script, files={"hook.sh": "exit 0"}, **options) as run:
        await run.turn("go")
    path = journal(run)
    lines = path.read_bytes().splitlines(keepends=True)
    for left in range(3, len(lines)):
        path.write_bytes(b"".join(lines[:left]))
        (await replay_session(str(path))).check()
