"""Whatever the model sends and wherever the turn is interrupted, the session stays whole."""

import os
from functools import reduce
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claw.errors import ContextOverflow, ModelError, ModelUnavailable, OutputLimitTooHigh
from claw.models.scripted import ScriptReply
from claw.testing import (
    FakeHooks,
    MemoryJournal,
    ScriptedModel,
    calls,
    cut,
    fails,
    raw,
    refuses,
    says,
    validate_request,
)
from claw.testing.pieces import FakeTool, FixedPolicy, conversation
from claw.types.effects import WritePath
from claw.types.entries import Entry, KnownEntry, ToolFinished, TurnEnded, TurnStarted
from claw.types.events import MessageStop
from claw.types.hooks import HookOutcome, HookPayload
from claw.types.messages import AssistantMessage, ToolResult, ToolUse, UserMessage
from claw.types.session import SessionState

EXAMPLES = 3000 if os.environ.get("CLAW_LONG") else 200

names = st.sampled_from(["Look", "Change", "Break", "Forbidden", "", "NoSuchTool", "look"])
inputs = st.sampled_from([{}, {"key": 1}])
uses = st.one_of(
    st.tuples(names, inputs),
    st.builds(ToolUse, st.sampled_from(["", " ", "x", "y"]), names, inputs),
    st.builds(ToolUse, st.just("x"), names, st.just({}), st.sampled_from(["{", "[1]", "null"])),
)
stop_reasons = st.sampled_from(
    ["end_turn", "tool_use", "max_tokens", "refusal", "pause_turn", "stop", "odd_one"]
)
texts = st.sampled_from(["", "hello", " \n"])
said = st.builds(lambda text, stop: says(text, stop_reason=stop), texts, stop_reasons)
called = st.builds(
    lambda wanted, text, stop: calls(*wanted, text=text, stop_reason=stop),
    st.lists(uses, min_size=1, max_size=4),
    texts,
    stop_reasons,
)
whole = st.one_of(called, called, said)
errors: list[ModelError] = [
    ModelUnavailable("busy"),
    ModelUnavailable("for hours", retry_after=9999.0),
    ContextOverflow("too long"),
    OutputLimitTooHigh("too much", max_tokens=10),
]
replies = st.one_of(
    whole,
    whole,
    whole,
    st.builds(lambda reply, n: cut(reply, after=n), whole, st.none() | st.integers(0, 6)),
    st.builds(lambda e, reply: fails(e, after=reply), st.sampled_from(errors), st.none() | whole),
    st.just(refuses()),
    st.just(raw()),
    st.just(raw(MessageStop("end_turn"), MessageStop("end_turn"))),
)


def hook_outcomes(payload: HookPayload) -> HookOutcome:
    if payload.fields.get("tool_input") == {"key": 1} and payload.subject == "Look":
        return HookOutcome("denied", reason="not with a key", by="hook")
    return HookOutcome(messages=("noted",) if payload.event == "PostToolUse" else ())


def assert_whole(entries: list[Entry], state: SessionState) -> None:
    known = [entry for entry in entries if isinstance(entry, KnownEntry)]
    assert reduce(SessionState.fold, known, SessionState()) == state
    turns = [e for e in known if isinstance(e, TurnStarted | TurnEnded)]
    assert [type(e) for e in turns] == [TurnStarted, TurnEnded] * (len(turns) // 2)
    assert state.transcript.reply is None
    finished = [e.call_id for e in known if isinstance(e, ToolFinished)]
    assert len(finished) == len(set(finished))
    messages = state.transcript.messages
    for message, after in pairwise((*messages, None)):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            assert isinstance(after, UserMessage)
            answered = [b.tool_use_id for b in after.content if isinstance(b, ToolResult)]
            assert answered == [call.id for call in message.tool_calls]


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    script=st.lists(replies, max_size=8),
    interrupt_at=st.none() | st.integers(0, 60),
    steer_at=st.none() | st.integers(0, 40),
    journal_fails_at=st.none() | st.integers(3, 60),
)
async def test_any_script_and_any_interrupt_leave_a_whole_session(
    script: list[ScriptReply],
    interrupt_at: int | None,
    steer_at: int | None,
    journal_fails_at: int | None,
) -> None:
    model = ScriptedModel([*script, says("done")], strict=False)
    journal = MemoryJournal(fail_at=journal_fails_at)
    tools = [
        FakeTool("Look"),
        FakeTool("Change", read_only=False, does=(WritePath("f"),)),
        FakeTool("Break", fails=True, required=("key",)),
        FakeTool("Forbidden"),
    ]
    hooks = FakeHooks({"PreToolUse": hook_outcomes, "PostToolUse": hook_outcomes})
    policy = FixedPolicy({"Change": "ask", "Forbidden": "deny"})
    runtime = conversation(model, tools, journal=journal, hooks=hooks, policy=policy)
    count = 0

    def on_event(_: object) -> None:
        nonlocal count
        if count == interrupt_at:
            runtime.interrupt()
        if count == steer_at:
            runtime.steer("also this")
        count += 1

    runtime.listen(on_event)
    summary = await runtime.run_turn("go")
    if interrupt_at is None and journal_fails_at is None:
        assert summary.stop_reason != "interrupted"
    if summary.stop_reason == "error":
        assert summary.error is not None
    if journal_fails_at is None:
        assert_whole(journal.entries, runtime.state)
        again = await runtime.run_turn("and again")
        assert again.iterations >= 0
        assert_whole(journal.entries, runtime.state)
    for request in model.requests:
        assert validate_request(request) == []


@pytest.mark.parametrize("at", range(40))
async def test_an_interrupt_at_every_event_of_one_turn(at: int) -> None:
    """Parallel reads, a write, a failure and an answer, cut at each event in turn."""
    model = ScriptedModel(
        [
            calls(("Look", {}), ("Look", {}), ("Change", {}), ("Break", {"key": 1}), text="so"),
            says("an answer of some length, in several pieces"),
            says("after it"),
        ],
        strict=False,
    )
    journal = MemoryJournal()
    tools = [
        FakeTool("Look"),
        FakeTool("Change", read_only=False, does=(WritePath("f"),)),
        FakeTool("Break", fails=True),
    ]
    runtime = conversation(model, tools, journal=journal)
    count = 0

    def on_event(_: object) -> None:
        nonlocal count
        if count == at:
            runtime.interrupt()
        count += 1

    forget = runtime.listen(on_event)
    summary = await runtime.run_turn("go")
    forget()
    in_time = count - 1 > at  # at the last event, `turn_ended`, there is nothing to interrupt
    assert summary.stop_reason == ("interrupted" if in_time else "completed")
    assert_whole(journal.entries, runtime.state)
    again = await runtime.run_turn("next")
    assert again.stop_reason == "completed"
    assert_whole(journal.entries, runtime.state)
    for request in model.requests:
        assert validate_request(request) == []
