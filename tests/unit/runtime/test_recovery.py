"""A request that does not fit: the ladder, inside the turn."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from claw.compaction.compactor import PruningCompactor
from claw.compaction.plan import Estimates
from claw.compaction.summarize import Summarizer
from claw.compaction.trigger import Policy
from claw.errors import ContextOverflow, OutputLimitTooHigh
from claw.models.estimate import estimate_request, estimate_tokens
from claw.runtime.conversation import ConversationRuntime
from claw.runtime.limits import Limit, MaxCost, MaxTokens
from claw.runtime.turn import TurnOptions
from claw.testing import (
    FakeHooks,
    FakeTool,
    Gate,
    MemoryJournal,
    RecordingSink,
    ScriptedModel,
    ScriptReply,
    calls,
    conversation,
    fails,
    says,
    waits,
)
from claw.types.entries import (
    Compacted,
    KnownEntry,
    RecoveryFailed,
    Steered,
    TurnEnded,
    TurnStarted,
    UserMessaged,
)
from claw.types.events import Notice
from claw.types.hooks import HookOutcome
from claw.types.messages import Text, UserMessage, text_of
from claw.types.results import final_assistant_text
from claw.types.session import SessionState
from claw.types.usage import Usage

TOO_LONG = fails(ContextOverflow("too long for the window", limit_tokens=None))
USED = Usage(100, 10)
ESTIMATES = Estimates(estimate_request, estimate_tokens)


class Priced(ScriptedModel):
    """Ten cents for a token that is written, if there are few."""

    def cost(self, usage: Usage, model: str) -> float | None:
        return 0.1 * usage.output_tokens if usage.output_tokens < 10 else 0.0


def steps(number: int) -> list[ScriptReply]:
    return [calls(("Look", {"at": n}), usage=USED) for n in range(number)]


def with_compactor(*replies: ScriptReply, **options: Any) -> tuple[ConversationRuntime, FakeTool]:
    look = FakeTool("Look", "a finding " * 100)
    compactor = PruningCompactor(Policy(), ESTIMATES, lambda notice: None)
    runtime = conversation(ScriptedModel(replies), [look], compactor=compactor, **options)
    return runtime, look


def told(sink: RecordingSink, code: str) -> list[str]:
    return [e.text for e in sink.events if isinstance(e, Notice) and e.code == code]


async def test_the_turn_goes_on_where_it_was() -> None:
    sink = RecordingSink()
    runtime, look = with_compactor(*steps(6), TOO_LONG, says("done"), sink=sink)
    summary = await runtime.run_turn("the request")
    assert summary.stop_reason == "completed"
    assert final_assistant_text(summary) == "done"
    assert look.runs == 6
    assert told(sink, "recovery") == ["Auto-compacting session (round 1/4, preserving 4 recent)..."]
    assert [c.trigger for c in summary.compactions] == ["overflow"]
    assert len(runtime.state.transcript.messages) == 1 + 2 * 4 + 1


async def test_the_ladder_goes_down_rung_by_rung() -> None:
    sink = RecordingSink()
    runtime, _ = with_compactor(*steps(6), *[TOO_LONG] * 4, says("done"), sink=sink)
    summary = await runtime.run_turn("the request")
    assert final_assistant_text(summary) == "done"
    assert [text.split("preserving ")[1] for text in told(sink, "recovery")] == [
        f"{keep} recent)..." for keep in (4, 2, 1, 0)
    ]
    first = runtime.state.transcript.messages[0]
    assert text_of(first.content).count("the request") == 1
    assert len(runtime.state.transcript.messages) == 2


async def test_a_rung_that_removes_nothing_is_not_tried() -> None:
    sink = RecordingSink()
    runtime, _ = with_compactor(*steps(2), TOO_LONG, says("done"), sink=sink)
    assert (await runtime.run_turn("go")).stop_reason == "completed"
    assert told(sink, "recovery") == ["Auto-compacting session (round 3/4, preserving 1 recent)..."]


async def test_a_hopeless_one_ends_with_the_first_error_and_all_as_it_was() -> None:
    others = [fails(ContextOverflow(f"attempt {n}")) for n in range(4)]
    sink = RecordingSink()
    runtime, look = with_compactor(*steps(6), TOO_LONG, *others, says("next"), sink=sink)
    summary = await runtime.run_turn("the request")
    assert summary.stop_reason == "context_overflow"
    assert summary.error is not None
    assert summary.error.message == "too long for the window"
    assert summary.compactions == ()
    assert len(runtime.state.transcript.messages) == 1 + 2 * 6
    assert "as it was" in told(sink, "recovery")[-1]
    assert final_assistant_text(await runtime.run_turn("smaller")) == "next"
    assert look.runs == 6


async def test_with_nothing_to_remove_no_request_is_spent() -> None:
    journal = MemoryJournal()
    runtime, _ = with_compactor(TOO_LONG, journal=journal)
    assert (await runtime.run_turn("go")).stop_reason == "context_overflow"
    assert not any(isinstance(e, RecoveryFailed) for e in journal.entries)


async def test_half_a_reply_before_the_overflow_is_taken_back() -> None:
    half = fails(ContextOverflow("too long"), after=says("half an answ"))
    runtime, _ = with_compactor(*steps(6), half, says("done"))
    summary = await runtime.run_turn("go")
    assert final_assistant_text(summary) == "done"
    assert not any("half an" in text_of(m.content) for m in runtime.state.transcript.messages)


async def test_no_room_for_an_answer_of_any_size_is_an_overflow() -> None:
    refusal = fails(OutputLimitTooHigh("no room", max_tokens=2_000))
    runtime, _ = with_compactor(*steps(6), refusal, refusal, says("done"))
    assert (await runtime.run_turn("go")).compactions[0].trigger == "overflow"


async def test_an_interrupt_on_the_way_leaves_the_conversation_as_it_was() -> None:
    gate, journal = Gate(), MemoryJournal()
    script = [*steps(6), TOO_LONG, waits(gate, says("never")), says("next")]
    runtime, _ = with_compactor(*script, journal=journal)
    running = asyncio.ensure_future(runtime.run_turn("the request"))
    await gate.reached()
    runtime.interrupt()
    summary = await running
    assert (summary.stop_reason, summary.compactions) == ("interrupted", ())
    assert len(runtime.state.transcript.messages) == 1 + 2 * 6
    assert sum(isinstance(entry, RecoveryFailed) for entry in journal.entries) == 1
    assert final_assistant_text(await runtime.run_turn("again")) == "next"


@pytest.mark.parametrize(
    ("limit", "usage"), [(MaxTokens(5_000), Usage(9_000)), (MaxCost(0.5), Usage(5, 5))]
)
async def test_what_a_summary_costs_counts(limit: Limit, usage: Usage) -> None:
    writer = Priced([says("Notes.", usage=usage)])
    options = TurnOptions(limits=(limit,))
    look = FakeTool("Look", "a finding " * 400)
    model = Priced([*steps(6), TOO_LONG])
    compactor = PruningCompactor(
        Policy(),
        ESTIMATES,
        lambda notice: None,
        summarizer=Summarizer(writer, "m", estimate_tokens),
    )
    runtime = conversation(model, [look], compactor=compactor, options=options)
    summary = await runtime.run_turn("go")
    assert (summary.stop_reason, summary.compactions) == ("max_budget_reached", ())
    assert summary.usage.input_tokens == 600 + usage.input_tokens
    assert len(runtime.state.transcript.messages) == 1 + 2 * 6


async def test_a_hook_may_forbid_it() -> None:
    hooks = FakeHooks({"PreCompact": HookOutcome("denied", "not now")})
    runtime, _ = with_compactor(*steps(6), TOO_LONG, hooks=hooks)
    assert (await runtime.run_turn("go")).stop_reason == "context_overflow"
    assert sum(p.event == "PreCompact" for p in hooks.fired) == 1


# -- the fold ------------------------------------------------------------------------------


def provisional(kept_from: int = 1) -> Compacted:
    return Compacted("overflow", 1, kept_from, (Text("notes"),), 100, 10, provisional=True)


def said(state: SessionState) -> list[str]:
    return [text_of(m.content) for m in state.transcript.messages if isinstance(m, UserMessage)]


@pytest.mark.parametrize("killed", [True, False])
def test_what_the_user_says_later_outlives_a_failed_recovery(killed: bool) -> None:
    state = SessionState()
    end: list[KnownEntry] = [TurnEnded(1, "interrupted", 0, Usage())]
    for entry in (
        TurnStarted(1),
        UserMessaged((Text("one"),)),
        provisional(),
        Steered((Text("steer"),)),
        *(end if killed else [RecoveryFailed(1, "no")]),
        TurnStarted(2),
        UserMessaged((Text("two"),)),
    ):
        state = state.fold(entry)
    assert said(state) == ["one", "steer", "two"]
    assert state.context == Usage()
