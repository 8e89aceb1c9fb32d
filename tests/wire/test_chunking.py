"""Any split of a reply's bytes gives the same events, cut anywhere or whole."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.errors import ModelError
from claw.models.decode import decoder
from claw.models.dialect import DIALECTS
from claw.types.events import AssistantEvent

ANTHROPIC: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}},
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "thinking_delta", "thinking": "思考 🤔"},
    },
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "signature_delta", "signature": "Zm9v"},
    },
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "é\r\n"}},
    {"type": "content_block_stop", "index": 1},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "t", "name": "N", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 2,
        "delta": {"type": "input_json_delta", "partial_json": '{"a": "ü'},
    },
    {
        "type": "content_block_delta",
        "index": 2,
        "delta": {"type": "input_json_delta", "partial_json": '"}'},
    },
    {"type": "content_block_stop", "index": 2},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {"output_tokens": 9},
    },
    {"type": "message_stop"},
]

CHAT: list[dict[str, Any]] = [
    {"model": "m", "choices": [{"index": 0, "delta": {"reasoning_content": "思考"}}]},
    {"model": "m", "choices": [{"index": 0, "delta": {"content": "é🌍"}}]},
    {
        "choices": [
            {
                "index": 0,
                "delta": {
                    "tool_calls": [
                        {"index": 0, "id": "t", "function": {"name": "N", "arguments": '{"a": "ü'}}
                    ]
                },
            }
        ]
    },
    {
        "choices": [
            {
                "index": 0,
                "delta": {"tool_calls": [{"index": 0, "function": {"arguments": '"}'}}]},
                "finish_reason": "tool_calls",
            }
        ]
    },
    {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 6}},
]

RESPONSES: list[dict[str, Any]] = [
    {"type": "response.created", "response": {"id": "r", "model": "m", "output": []}},
    {
        "type": "response.output_item.added",
        "output_index": 0,
        "item": {"type": "reasoning", "id": "rs"},
    },
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "思考 🤔"},
    {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": {
            "type": "reasoning",
            "id": "rs",
            "summary": [{"type": "summary_text", "text": "思考 🤔"}],
            "encrypted_content": "Zm9v",
        },
    },
    {"type": "response.output_text.delta", "output_index": 1, "delta": "é\r\n"},
    {
        "type": "response.output_item.added",
        "output_index": 2,
        "item": {"type": "function_call", "id": "fc", "call_id": "t", "name": "N"},
    },
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"a": "ü'},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '"}'},
    {
        "type": "response.completed",
        "response": {
            "status": "completed",
            "output": [{"type": "message", "content": [{"type": "output_text", "text": "é\r\n!"}]}],
            "usage": {"input_tokens": 5, "output_tokens": 6},
        },
    },
]


def stream(
    events: list[dict[str, Any]], *, end: str = "\n", last: str = "", ascii: bool = False
) -> bytes:
    lines = [f": ping{end}{end}"]
    for event in events:
        data = json.dumps(event, ensure_ascii=ascii)
        lines.append(f"event: {event.get('type', 'x')}{end}data: {data}{end}{end}")
    return ("".join(lines) + last).encode()


BODIES = {
    ("anthropic", "LF"): stream(ANTHROPIC),
    ("anthropic", "CRLF"): stream(ANTHROPIC, end="\r\n"),
    ("anthropic", "CR"): stream(ANTHROPIC, end="\r", ascii=True),
    ("anthropic", "error"): stream([*ANTHROPIC[:4], {"type": "error", "error": {}}]),
    ("openai-chat", "LF"): stream(CHAT, last="data: [DONE]\n\n"),
    ("openai-chat", "CRLF"): stream(CHAT, end="\r\n", last="data: [DONE]\r\n\r\n"),
    ("openai-chat", "bare"): stream(CHAT, last="data: [DONE]"),
    ("openai-responses", "LF"): stream(RESPONSES),
    ("openai-responses", "CRLF"): stream(RESPONSES, end="\r\n"),
    ("openai-responses", "CR"): stream(RESPONSES, end="\r", ascii=True, last="data: [DONE]"),
    ("openai-responses", "failed"): stream(
        [*RESPONSES[:6], {"type": "response.failed", "response": {"status": "failed"}}]
    ),
    ("openai-responses", "json"): json.dumps(
        RESPONSES[-1]["response"], ensure_ascii=False
    ).encode(),
    ("openai-chat", "page"): b"<html>not a model: \xc3\xa9</html>",
    ("openai-chat", "json"): json.dumps(
        {"choices": [{"message": {"content": "é"}, "finish_reason": "stop"}]}, ensure_ascii=False
    ).encode(),
}


def events_of(dialect: str, chunks: list[bytes]) -> list[AssistantEvent | str]:
    taking = decoder(dialect)
    events: list[AssistantEvent | str] = []
    try:
        for chunk in chunks:
            events.extend(taking.feed(chunk))
        events.extend(taking.end())
    except ModelError as error:
        events.append(f"{type(error).__name__}: {error.message}")
    return events


@pytest.mark.parametrize(("dialect", "name"), BODIES)
def test_one_byte_at_a_time(dialect, name):
    body = BODIES[dialect, name]
    whole = events_of(dialect, [body])
    assert events_of(dialect, [body[i : i + 1] for i in range(len(body))]) == whole
    assert events_of(dialect, [body[i : i + 7] for i in range(0, len(body), 7)]) == whole


@given(st.sampled_from(sorted(BODIES)), st.data())
def test_any_split_of_any_beginning(which, data):
    dialect, _ = which
    body = BODIES[which][: data.draw(st.integers(0, len(BODIES[which])))]
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=6))
    places = sorted({0, len(body), *cuts})
    pieces = [body[a:b] for a, b in pairwise(places)]
    assert events_of(dialect, pieces) == events_of(dialect, [body])


@given(st.sampled_from(DIALECTS), st.binary(max_size=300), st.booleans())
def test_noise_raises_only_model_errors(dialect, noise, as_event):
    events_of(dialect, [b"data: " + noise + b"\n\n"] if as_event else [noise])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 700) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = [
    "type",
    "index",
    "message",
    "content_block",
    "delta",
    "usage",
    "error",
    "choices",
    "content",
    "tool_calls",
    "function",
    "arguments",
    "name",
    "id",
    "finish_reason",
    "reasoning",
    "reasoning_details",
    "text",
    "input",
    "citations",
    "model",
    "input_tokens",
    "prompt_tokens_details",
    "stop_reason",
    "thinking",
    "partial_json",
    "object",
    "response",
    "output",
    "item",
    "output_index",
    "item_id",
    "summary",
    "status",
]
TYPES = st.sampled_from(
    [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "message",
        "text",
        "thinking",
        "tool_use",
        "text_delta",
        "input_json_delta",
        "reasoning",
        "function_call",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.function_call_arguments.delta",
        "response.completed",
    ]
)
SHAPED = st.recursive(
    JSON | TYPES,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5)
    ),
    max_leaves=15,
)


@given(st.sampled_from(DIALECTS), st.lists(SHAPED, max_size=5), st.booleans())
def test_wrong_shapes_raise_only_model_errors(dialect, values, whole):
    if whole:
        events_of(dialect, [json.dumps(values[:1]).encode()[1:-1]])
    else:
        events_of(dialect, [f"data: {json.dumps(value)}\n\n".encode() for value in values])
