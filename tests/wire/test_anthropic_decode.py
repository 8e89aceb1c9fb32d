from __future__ import annotations

import json
from typing import Any

import pytest

from claw.errors import (
    AuthenticationFailed,
    ContextOverflow,
    ModelUnavailable,
    ProtocolViolation,
    RequestRejected,
)
from claw.models.decode import decode
from claw.types.messages import Opaque, RedactedThinking, Text, Thinking, ToolUse
from claw.types.reply import Reply
from claw.types.usage import Usage


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(
        f"event: {e.get('type', '')}\ndata: {json.dumps(e)}\n\n".encode() for e in events
    )


def start(**usage: object) -> dict[str, Any]:
    usage = usage or {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "msg_1", "model": "claude-x", "content": [], "usage": usage}
    return {"type": "message_start", "message": message}


def opens(index: int, **block: object) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, type: str, **fields: object) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": type, **fields}}


def closes(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def ends(reason: str | None = "end_turn", **usage: int) -> tuple[dict[str, Any], dict[str, Any]]:
    return (
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason},
            "usage": usage or {"output_tokens": 7},
        },
        {"type": "message_stop"},
    )


def text(index: int, *parts: str) -> list[dict[str, Any]]:
    said = [delta(index, "text_delta", text=part) for part in parts]
    return [opens(index, type="text", text=""), *said, closes(index)]


def call(index: int, *parts: str, id: str = "t1", name: str = "Bash") -> list[dict[str, Any]]:
    return [
        opens(index, type="tool_use", id=id, name=name, input={}),
        *[delta(index, "input_json_delta", partial_json=part) for part in parts],
        closes(index),
    ]


def read(*events: dict[str, Any]) -> Reply:
    return decode("anthropic", [sse(*events)])


def test_text_thinking_and_calls():
    reply = read(
        start(),
        {"type": "ping"},
        opens(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="hm "),
        delta(0, "thinking_delta", thinking="yes"),
        delta(0, "signature_delta", signature="ab+"),
        delta(0, "signature_delta", signature="/c=="),
        closes(0),
        opens(1, type="redacted_thinking", data="xyz"),
        closes(1),
        *text(2, "Hello ", "wörld 🌍"),
        *call(3, '{"command"', ': "ls"}'),
        *call(4, id="t2", name="Empty"),
        *ends("tool_use"),
    )
    assert reply.blocks == (
        Thinking("hm yes", "ab+/c=="),
        RedactedThinking("xyz"),
        Text("Hello wörld 🌍"),
        ToolUse("t1", "Bash", {"command": "ls"}),
        ToolUse("t2", "Empty", {}),
    )
    assert (reply.stop_reason, reply.model, reply.complete) == ("tool_use", "claude-x", True)
    assert reply.usage == Usage(10, 7)


def test_usage_is_merged_and_nulls_change_nothing():
    first = start(input_tokens=5, cache_read_input_tokens=100, cache_creation_input_tokens=3)
    reply = read(
        first,
        *text(0, "x"),
        *ends(output_tokens=9, input_tokens=6, cache_read_input_tokens=None),  # type: ignore[arg-type]
    )
    assert reply.usage == Usage(6, 9, 100, 3)


def test_no_usage_at_all_is_estimated():
    events = [start(), *text(0, "x" * 400), *ends()]
    events[0]["message"]["usage"] = None
    events[-2]["usage"] = None
    assert read(*events).usage == Usage(0, 100, estimated=True)


@pytest.mark.parametrize(
    "reason",
    [
        "max_tokens",
        "refusal",
        "pause_turn",
        "stop_sequence",
        "model_context_window_exceeded",
        "new_thing",
    ],
)
def test_stop_reasons_are_kept(reason):
    assert read(start(), *text(0, "x"), *ends(reason)).stop_reason == reason


def test_a_missing_stop_reason_follows_from_the_content():
    assert read(start(), *text(0, "x"), {"type": "message_stop"}).stop_reason == "end_turn"
    assert read(start(), *call(0, "{}"), {"type": "message_stop"}).stop_reason == "tool_use"


def test_a_cut_stream_is_incomplete_and_keeps_what_came():
    whole = sse(start(), *text(0, "Hello"), *call(1, '{"command": "rm -r', 'f /"}'), *ends())
    cut = whole.index(b"f /")
    reply = decode("anthropic", [whole[:cut]])
    assert not reply.complete
    assert reply.stop_reason == ""
    assert reply.blocks == (
        Text("Hello"),
        ToolUse("t1", "Bash", {}, '{"command": "rm -r'),
    )
    assert reply.usage == Usage(10, 1)


def test_input_that_does_not_parse():
    reply = read(start(), *call(0, "{oops"), *ends("tool_use"))
    assert reply.tool_calls == (ToolUse("t1", "Bash", {}, "{oops"),)


def test_input_that_comes_with_the_block():
    block = opens(0, type="tool_use", id="t", name="N", input={"a": 1})
    reply = read(start(), block, closes(0), *ends("tool_use"))
    assert reply.tool_calls == (ToolUse("t", "N", {"a": 1}),)


def test_ids_that_repeat_are_renamed():
    reply = read(start(), *call(0, "{}"), *call(1, "{}"), *ends("tool_use"))
    assert [c.id for c in reply.tool_calls] == ["t1", "t1_d2"]


def test_server_tools_and_citations_go_into_opaque_blocks():
    reply = read(
        start(),
        opens(0, type="server_tool_use", id="s1", name="web_search", input={}),
        delta(0, "input_json_delta", partial_json='{"query": "x"}'),
        closes(0),
        opens(1, type="web_search_tool_result", tool_use_id="s1", content=[{"url": "u"}]),
        closes(1),
        opens(2, type="text", text="", citations=[]),
        delta(2, "citations_delta", citation={"url": "u"}),
        delta(2, "text_delta", text="found"),
        closes(2),
        opens(3, type="compaction", content=None),
        delta(3, "compaction_delta", content="short"),
        closes(3),
        *ends(),
    )
    search, result, said, cited, compaction = reply.blocks
    assert isinstance(search, Opaque)
    assert search.raw["input"] == {"query": "x"}
    assert isinstance(result, Opaque)
    assert result.raw["content"] == [{"url": "u"}]
    assert said == Text("found")
    assert isinstance(cited, Opaque)
    assert (cited.raw["length"], cited.raw["citations"]) == (5, [{"url": "u"}])
    assert isinstance(compaction, Opaque)
    assert compaction.raw["content"] == "short"


def test_unknown_events_blocks_and_fields_do_no_harm():
    events = [{"type": "surprise", "x": 1}, start(), *text(0, "a"), {"type": "ping"}]
    strange = delta(0, "surprise_delta", what=1)
    assert read(*events, strange, *ends()).text == "a"


def test_servers_that_skip_the_block_start_index_or_stop():
    reply = read(start(), delta(0, "text_delta", text="a"), *ends())
    assert reply.text == "a"
    loose = [opens(0, type="text"), delta(0, "text_delta", text="b")]
    for event in loose:
        event.pop("index")
    assert read(start(), *loose, *ends()).text == "b"


def test_a_pair_of_surrogates_split_over_two_deltas():
    body = sse(start(), *text(0, "A", "B"), *ends())
    body = body.replace(b'"A"', rb'"\ud83d"').replace(b'"B"', rb'"\ude00!"')
    assert decode("anthropic", [body]).text == "😀!"


def test_a_plain_body():
    message = {
        "type": "message",
        "id": "m",
        "model": "claude-x",
        "content": [
            {"type": "thinking", "thinking": "t", "signature": "s"},
            {"type": "text", "text": "hi"},
            {"type": "tool_use", "id": "c", "name": "N", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    reply = decode("anthropic", [json.dumps(message).encode()])
    assert reply.blocks == (Thinking("t", "s"), Text("hi"), ToolUse("c", "N", {"a": 1}))
    assert (reply.stop_reason, reply.usage) == ("tool_use", Usage(3, 4))


def error(type: str, message: str = "no") -> dict[str, Any]:
    return {"type": "error", "error": {"type": type, "message": message}}


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (error("overloaded_error"), ModelUnavailable),
        (error("invalid_request_error"), RequestRejected),
        (error("invalid_request_error", "prompt is too long"), ContextOverflow),
        (error("authentication_error"), AuthenticationFailed),
        ({"error": "broken"}, ModelUnavailable),
    ],
)
def test_errors_inside_a_stream(event, kind):
    with pytest.raises(kind):
        read(event)
    with pytest.raises(kind):
        read(start(), *text(0, "half"), event)


def test_broken_json_in_an_event_is_never_skipped():
    body = sse(start()) + b'data: {"type": "content_block_delta", "ind\n\n' + sse(*ends())
    with pytest.raises(ModelUnavailable):
        decode("anthropic", [body])


@pytest.mark.parametrize(
    "body",
    [b"", b"\r\n", b": only a comment\n\n", b"<html>Log in</html>", b'{"type": "mess', b"{}"],
)
def test_what_is_no_reply(body):
    with pytest.raises(ProtocolViolation):
        decode("anthropic", [body])


def test_a_status_of_failure():
    with pytest.raises(ModelUnavailable) as raised:
        decode("anthropic", [b"{", b"}"], status=529, headers={"retry-after": "3"})
    assert raised.value.retry_after == 3.0
