import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.errors import ProtocolViolation
from claw.types.events import (
    AssistantEvent,
    MessageStart,
    MessageStop,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from claw.types.messages import Opaque, RedactedThinking, Text, Thinking, ToolUse
from claw.types.reply import assemble
from claw.types.usage import Usage


def test_text_deltas_append_and_other_blocks_flush_them() -> None:
    reply = assemble(
        [
            MessageStart("m", "req"),
            ThinkingDelta("hm"),
            Thinking("hm", "sig"),
            TextDelta("a"),
            TextDelta("b"),
            ToolInputDelta(0, "{}"),
            ToolUse("1", "Read", {"p": 1}),
            Usage(1, 1),
            TextDelta("c"),
            Opaque("anthropic", {"type": "citation"}),
            RedactedThinking("zz"),
            MessageStop("tool_use", {"k": 1}),
            Usage(5, 7),
        ]
    )
    assert reply.blocks == (
        Thinking("hm", "sig"),
        Text("ab"),
        ToolUse("1", "Read", {"p": 1}),
        Text("c"),
        Opaque("anthropic", {"type": "citation"}),
        RedactedThinking("zz"),
    )
    assert (reply.text, reply.thinking, reply.stop_reason) == ("abc", "hm", "tool_use")
    assert reply.usage == Usage(5, 7)
    assert (reply.model, reply.request_id, reply.complete) == ("m", "req", True)
    assert reply.provider_metadata == {"k": 1}


def test_a_stream_without_a_stop_is_incomplete() -> None:
    reply = assemble([TextDelta("half")])
    assert not reply.complete
    assert reply.text == "half"
    assert reply.stop_reason == ""


@pytest.mark.parametrize(
    "events",
    [
        [],
        [MessageStop("stop"), TextDelta("x")],
        [MessageStop("stop"), ToolUse("a", "b")],
        [MessageStop("stop"), MessageStop("stop")],
    ],
)
def test_impossible_streams_are_violations(events: list[MessageStop]) -> None:
    with pytest.raises(ProtocolViolation):
        assemble(events)


def test_repeated_blank_and_taken_ids_are_renamed() -> None:
    ids = ["x", "x", "x", "", " ", "y"]
    reply = assemble([*(ToolUse(i, "Read") for i in ids), MessageStop("tool_use")], taken={"y"})
    assert [c.id for c in reply.tool_calls] == ["x", "x_d2", "x_d3", "call", "call_d2", "y_d2"]


@given(st.lists(st.sampled_from(["", "x", "x_d2", "y"]), max_size=8), st.sets(st.just("x")))
def test_ids_are_unique_and_stable(ids: list[str], taken: set[str]) -> None:
    events: list[AssistantEvent] = [*(ToolUse(i, "Read") for i in ids), MessageStop("tool_use")]
    found = [call.id for call in assemble(events, taken).tool_calls]
    assert len(set(found) | taken) == len(ids) + len(taken)
    assert found == [call.id for call in assemble(events, taken).tool_calls]
