"""What the compactor does to a conversation, with and without a model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from claw.compaction.summarize import Summarizer
from claw.compaction.trigger import Policy
from claw.errors import ContextOverflow, ModelUnavailable, OutputLimitTooHigh
from claw.models.estimate import estimate_request, estimate_tokens
from claw.testing import Gate, ScriptedModel, ScriptReply, cut, fails, refuses, says, waits
from claw.types.effects import WritePath
from claw.types.entries import (
    Compacted,
    ReplyReceived,
    ToolFinished,
    ToolIntended,
    TurnStarted,
    UserMessaged,
)
from claw.types.messages import AssistantMessage, Text, ToolUse, text_of
from claw.types.request import Request, Sampling
from claw.types.session import SessionState
from claw.types.tools import ToolSpec
from claw.types.transcript import Transcript
from claw.types.usage import Usage
from tests.unit.compaction.building import a_turn, asks, compactor, read, step


def writing(
    *replies: ScriptReply, window: int | None = 100_000
) -> tuple[Summarizer, ScriptedModel]:
    model = ScriptedModel(replies, window=window)
    return Summarizer(model, "m", estimate_tokens), model


async def compacted(
    transcript: Transcript, keep: int, target: int | None = None, focus: str = "", **options: Any
) -> Compacted:
    entry = await compactor(**options)[0].make_room(transcript, keep, target, focus)
    assert entry is not None
    return entry


def first(transcript: Transcript) -> str:
    return text_of(transcript.messages[0].content)


async def test_old_results_go_before_messages_do() -> None:
    transcript = a_turn(10)
    entry = await compacted(transcript, 8, 3_000)
    after = transcript.compact(entry.kept_from, entry.summary, entry.pruned)
    assert (entry.removed_messages, entry.summary) == (0, ())
    assert len(after.messages) == len(transcript.messages)
    assert estimate_request(Request("", after.messages, (), Sampling(""))) <= 3_000
    assert after.messages[-6:] == transcript.messages[-6:]
    assert entry.dropped == (f"{len(entry.pruned)} old results",)


async def test_as_many_rounds_stay_as_the_target_allows() -> None:
    transcript = a_turn(40, size=1_000)
    entry = await compacted(transcript, 8, 2_600)
    after = transcript.compact(entry.kept_from, entry.summary, entry.pruned)
    assert first(after).endswith("the request")
    assert len(after.messages) == 1 + 2 * 8
    small = await compacted(transcript, 8, 700)
    assert small.kept_from > entry.kept_from


async def test_without_a_target_exactly_so_many_rounds_stay() -> None:
    transcript = a_turn(10)
    for keep in (4, 2, 1, 0):
        entry = await compacted(transcript, keep)
        after = transcript.compact(entry.kept_from, entry.summary, entry.pruned)
        assert after.messages[1:] == transcript.messages[len(transcript.messages) - 2 * keep :]


@pytest.mark.parametrize(
    "transcript", [Transcript(), Transcript().user(asks("only this")), a_turn(2)]
)
async def test_where_nothing_would_go_there_is_no_entry(transcript: Transcript) -> None:
    model = writing()[0]
    assert await compactor(summarizer=model)[0].make_room(transcript, 2, None, "") is None


async def test_what_would_not_shrink_is_left_alone() -> None:
    transcript = step(Transcript().user(asks("go")), read(1), "short")
    assert await compactor()[0].make_room(transcript, 0, None, "") is None


async def test_open_calls_are_waited_for() -> None:
    transcript = a_turn(5).assistant(AssistantMessage((read(99),)))
    assert await compactor()[0].make_room(transcript, 0, None, "") is None


# -- the model's summary ---------------------------------------------------------------


async def test_the_model_writes_the_summary() -> None:
    summarizer, model = writing(says("All files were read.", usage=Usage(900, 20)))
    entry = await compacted(a_turn(10), 1, focus="the colours", summarizer=summarizer)
    assert "All files were read." in text_of(entry.summary)
    assert entry.usage == Usage(900, 20)
    (request,) = model.requests
    assert request.tools == ()
    assert "the colours" in text_of(request.messages[0].content)
    assert "Read" in text_of(request.messages[0].content)


@pytest.mark.parametrize(
    "bad",
    [
        says(""),
        says("  \n"),
        cut("half"),
        refuses("no"),
        says("I cannot help with that."),
        says("so much " * 4_000),
        says("cut", stop_reason="max_tokens"),
        fails(ModelUnavailable("gone")),
    ],
)
async def test_a_summary_that_is_no_good_is_tried_once_more(bad: ScriptReply) -> None:
    summarizer, model = writing(bad, says("Good notes."))
    entry = await compacted(a_turn(10), 1, summarizer=summarizer)
    assert "Good notes." in text_of(entry.summary)
    assert len(model.requests) == 2


async def test_after_two_bad_ones_a_list_takes_its_place_and_that_is_said() -> None:
    summarizer, _ = writing(says("", usage=Usage(100, 1)), says("", usage=Usage(100, 1)))
    made, told = compactor(summarizer=summarizer)
    entry = await made.make_room(a_turn(10), 1, None, "")
    assert entry is not None
    assert "- Read: file3.py" in text_of(entry.summary)
    assert entry.usage == Usage(200, 2)
    assert "summary failed" in told[0].text


async def test_a_record_that_does_not_fit_is_given_in_pieces() -> None:
    too_long = fails(ContextOverflow("too long"))
    summarizer, model = writing(too_long, *[says(f"Notes {n}.") for n in range(20)], window=12_000)
    entry = await compacted(a_turn(10), 1, summarizer=summarizer)
    texts = [text_of(request.messages[0].content) for request in model.requests]
    assert len(texts[1]) < 0.7 * len(texts[0])
    assert "Notes 0." in texts[2]
    assert f"Notes {len(texts) - 2}." in text_of(entry.summary)
    assert all(sum(f"file{n}.py" in text for text in texts[1:]) >= 1 for n in range(9))


async def test_pieces_fit_the_window_of_the_model() -> None:
    summarizer, model = writing(*[says("Notes.") for _ in range(20)], window=2_000)
    await compacted(a_turn(10), 1, summarizer=summarizer)
    sizes = [estimate_request(r) + (r.sampling.max_tokens or 0) for r in model.requests]
    assert max(sizes) <= 2_000


@pytest.mark.parametrize("refusal", [ContextOverflow("no"), OutputLimitTooHigh("no", max_tokens=1)])
async def test_a_model_that_takes_nothing_is_left_alone_soon(refusal: Any) -> None:
    summarizer, model = writing(*[fails(refusal)] * 40)
    entry = await compacted(a_turn(10), 1, summarizer=summarizer)
    assert len(model.requests) == 2
    assert "file3.py" in text_of(entry.summary)


async def test_it_can_be_cancelled_at_once() -> None:
    gate = Gate()
    summarizer, _ = writing(waits(gate, says("never")))
    made, _ = compactor(summarizer=summarizer)
    task = asyncio.ensure_future(made.make_room(a_turn(10), 1, None, ""))
    await gate.reached()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)


# -- chains, and what is carried over ------------------------------------------------------


def folded(state: SessionState, *entries: Any) -> SessionState:
    for entry in entries:
        state = state.fold(entry)
    return state


def stepped(state: SessionState, number: int, call: ToolUse) -> SessionState:
    effects = (WritePath(call.input["file_path"]),) if call.name == "Write" else ()
    return folded(
        state,
        ReplyReceived(number, (call,), "tool_use", Usage(), True, "m"),
        ToolIntended(call.id, call.name, effects),
        ToolFinished(call.id, (Text(f"{call.id} " + "x" * 3_000),), "ok"),
    )


async def test_chains_keep_what_the_user_said_and_do_not_nest() -> None:
    made, _ = compactor()
    state = SessionState()
    todo = ToolUse("t", "TodoWrite", {"todos": [{"content": "BUY-MILK", "status": "pending"}]})
    for turn in range(1, 5):
        said = UserMessaged((Text(f"request {turn}\nKEY-{turn}"),))
        state = folded(state, TurnStarted(turn), said)
        for n in range(1, 6):
            state = stepped(state, n, read(turn * 10 + n, f"f{turn}{n}.py"))
        state = stepped(state, 6, ToolUse(f"w{turn}", "Write", {"file_path": f"new{turn}.py"}))
        state = stepped(state, 7, todo) if turn == 1 else state
        entry = await made.make_room(state.transcript, 1, None, "")
        assert entry is not None
        state = state.fold(entry)
    text = "".join(text_of(m.content) for m in state.transcript.messages)
    assert text.count("replaced by these notes") == 1
    assert text.count("BUY-MILK") == 1
    for turn in range(1, 5):
        assert text.count(f"KEY-{turn}") == 1
        assert first(state.transcript).count(f"\nnew{turn}.py") == 1
    assert first(state.transcript).endswith("request 4\nKEY-4")


# -- when ---------------------------------------------------------------------------------


def seen(made: Any, state: SessionState, *, tools: tuple[ToolSpec, ...] = ()) -> int | None:
    request = Request("s", state.transcript.messages, tools, Sampling("m"))
    target: int | None = made.target(request, state, 32_768)
    return target


async def test_the_fixed_part_alone_is_told_once() -> None:
    made, told = compactor()
    tools = (ToolSpec("T", "word " * 25_000, {}),)
    state = folded(SessionState(), UserMessaged((Text("hi"),)))
    assert [seen(made, state, tools=tools) for _ in range(3)] == [None, None, None]
    assert len(told) == 1
    assert "--auto-compact" in told[0].text


async def test_it_can_be_turned_off() -> None:
    made, _ = compactor(Policy(auto=False))
    assert seen(made, SessionState(transcript=a_turn(100, size=5_000))) is None


async def test_where_nothing_could_go_nobody_tries_again_at_once() -> None:
    made, _ = compactor(Policy(threshold=1_000))
    state = SessionState(transcript=Transcript().user(asks("word " * 4_000)))
    target = seen(made, state)
    assert target is not None
    assert await made.make_room(state.transcript, 8, target, "") is None
    assert seen(made, state) is None
