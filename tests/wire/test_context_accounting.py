"""How much of the window a conversation takes, in the two ways that servers count."""

from __future__ import annotations

import json
from typing import Any

import pytest

from claw.testing import decode_stream
from claw.types.entries import ReplyReceived
from claw.types.messages import Text
from claw.types.session import SessionState
from claw.types.usage import Usage


def anthropic(usage: dict[str, Any]) -> bytes:
    output = usage.pop("output_tokens")
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "usage": {**usage, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "hi"},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": output},
        },
        {"type": "message_stop"},
    ]
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def chat(usage: dict[str, Any] | None) -> bytes:
    about = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choice: dict[str, Any] = {"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}
    chunks: list[dict[str, Any]] = [{**about, "choices": [choice]}]
    if usage is not None:
        chunks.append({**about, "choices": [], "usage": usage})
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def responses(usage: dict[str, Any]) -> bytes:
    item = {
        "type": "message",
        "id": "i",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "hi", "annotations": []}],
    }
    done = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [item]}
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**done, "usage": usage}},
    ]
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


CASES = [
    (
        "anthropic",
        anthropic(
            {
                "input_tokens": 206,
                "cache_read_input_tokens": 98_432,
                "cache_creation_input_tokens": 0,
                "output_tokens": 78,
            }
        ),
        98_716,
    ),
    (
        "openai-chat",
        chat(
            {
                "prompt_tokens": 184_704,
                "prompt_tokens_details": {"cached_tokens": 183_936},
                "completion_tokens": 49,
            }
        ),
        184_753,
    ),
    (
        "openai-responses",
        responses(
            {
                "input_tokens": 184_704,
                "input_tokens_details": {"cached_tokens": 183_936},
                "output_tokens": 49,
            }
        ),
        184_753,
    ),
]


@pytest.mark.parametrize(("dialect", "stream", "size"), CASES)
def test_the_cache_is_counted_once(dialect: str, stream: bytes, size: int) -> None:
    assert decode_stream(dialect, [stream]).usage.context_tokens == size


def replied(state: SessionState, usage: Usage) -> SessionState:
    return state.fold(ReplyReceived(1, (Text("hi"),), "end_turn", usage, True, "m"))


def test_the_context_is_the_last_request_and_the_cost_is_the_sum() -> None:
    state = SessionState()
    for _ in range(12):
        state = replied(state, Usage(100, 50, cache_read_input_tokens=150_000))
    assert state.context.context_tokens == 150_150
    assert state.usage.context_tokens == 12 * 150_150


def test_a_report_of_nothing_changes_nothing() -> None:
    state = replied(SessionState(), Usage(1_000, 10))
    again = replied(state, Usage())
    assert (again.context, again.measured) == (state.context, state.measured)


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 0, "completion_tokens": 0}])
def test_a_stream_without_usage_has_an_estimate_or_nothing(usage: dict[str, Any] | None) -> None:
    found = decode_stream("openai-chat", [chat(usage)]).usage
    assert found.context_tokens < 10
