from __future__ import annotations

import json
from typing import Any

import pytest

from claw.errors import ModelUnavailable, ProtocolViolation, RequestRejected
from claw.models.decode import decode
from claw.types.messages import Text, Thinking, ToolUse
from claw.types.reply import Reply
from claw.types.usage import Usage


def chunk(delta: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "model": "gpt-x", "choices": [choice], **more}


def fragment(index: int | None = 0, id: str | None = None, **function: Any) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "function", "function": function}
    if index is not None:
        part["index"] = index
    if id is not None:
        part["id"] = id
    return chunk({"tool_calls": [part]})


def body(*chunks: Any, done: bool = True) -> bytes:
    lines = [f"data: {json.dumps(c)}\n\n" for c in chunks]
    return "".join([*lines, *(["data: [DONE]\n\n"] if done else [])]).encode()


def read(*chunks: Any, done: bool = True) -> Reply:
    return decode("openai-chat", [body(*chunks, done=done)])


USAGE = {"prompt_tokens": 30, "completion_tokens": 4, "total_tokens": 34}


def test_text_and_usage_at_the_end():
    reply = read(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hello "}, usage=None),
        chunk({"content": "wörld"}),
        chunk({}, "stop"),
        {"choices": [], "usage": {**USAGE, "prompt_tokens_details": {"cached_tokens": 20}}},
    )
    assert reply.blocks == (Text("Hello wörld"),)
    assert (reply.stop_reason, reply.model, reply.request_id) == ("stop", "gpt-x", "c1")
    assert reply.usage == Usage(10, 4, 20)


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", "stop"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL"),
        ("tool_calls", "tool_calls"),  # announced, and none came
    ],
)
def test_finish_reasons(finish, reason):
    assert read(chunk({"content": "x"}), chunk({}, finish)).stop_reason == reason


@pytest.mark.parametrize("finish", ["tool_calls", "function_call", "stop", "", None])
def test_calls_make_it_a_tool_use(finish):
    reply = read(fragment(0, "a", name="N", arguments="{}"), chunk({}, finish))
    assert reply.stop_reason == "tool_use"
    assert reply.tool_calls == (ToolUse("a", "N"),)


def test_cut_off_by_the_limit_in_a_call():
    reply = read(fragment(0, "a", name="N", arguments='{"x": 1}'), chunk({}, "length"))
    assert reply.stop_reason == "max_tokens"


def test_a_finish_reason_without_the_end_mark_is_complete():
    assert read(chunk({"content": "x"}, "stop"), done=False).complete
    assert read(chunk({"content": "x"})).complete
    assert not read(chunk({"content": "x"}), done=False).complete


def test_a_cut_call_keeps_its_text():
    reply = read(fragment(0, "a", name="N", arguments='{"x'), done=False)
    assert not reply.complete
    assert reply.tool_calls == (ToolUse("a", "N", {}, '{"x'),)


A = ToolUse("a", "Read", {"path": "x"})
B = ToolUse("b", "Bash", {"command": "ls"})

CALLS = {
    "by the book": [
        fragment(0, "a", name="Read", arguments=""),
        fragment(0, arguments='{"path"'),
        fragment(0, arguments=': "x"}'),
        fragment(1, "b", name="Bash", arguments=""),
        fragment(1, arguments='{"command": "ls"}'),
    ],
    "interleaved": [
        fragment(0, "a", name="Read", arguments='{"path"'),
        fragment(1, "b", name="Bash", arguments='{"command"'),
        fragment(0, arguments=': "x"}'),
        fragment(1, arguments=': "ls"}'),
    ],
    "index missing": [
        fragment(None, "a", name="Read", arguments='{"path": "x"}'),
        fragment(None, "b", name="Bash", arguments='{"command": "ls"}'),
    ],
    "index missing, in pieces": [
        fragment(None, "a", name="Read", arguments=""),
        fragment(None, arguments='{"path"'),
        fragment(None, arguments=': "x"}'),
        fragment(None, "b", name="Bash", arguments='{"command"'),
        fragment(None, arguments=': "ls"}'),
    ],
    "index always 0": [
        fragment(0, "a", name="Read", arguments='{"path": "x"}'),
        fragment(0, "b", name="Bash", arguments='{"command": "ls"}'),
    ],
    "index from 1": [
        fragment(1, "a", name="Read", arguments='{"path": "x"}'),
        fragment(2, "b", name="Bash", arguments='{"command": "ls"}'),
    ],
    "another index for the arguments": [
        fragment(0, "a", name="Read", arguments=""),
        fragment(1, arguments='{"path": "x"}'),
        fragment(2, "b", name="Bash", arguments=""),
        fragment(3, arguments='{"command": "ls"}'),
    ],
    "id in every fragment": [
        fragment(0, "a", name="Read", arguments='{"path"'),
        fragment(0, "a", arguments=': "x"}'),
        fragment(1, "b", name="Bash", arguments='{"command"'),
        fragment(1, "b", arguments=': "ls"}'),
    ],
    "id and name in every fragment, index missing": [
        fragment(None, "a", name="Read", arguments='{"path"'),
        fragment(None, "a", name="Read", arguments=': "x"}'),
        fragment(None, "b", name="Bash", arguments='{"command"'),
        fragment(None, "b", name="Bash", arguments=': "ls"}'),
    ],
    "a new id for every fragment": [
        fragment(0, "a", name="Read", arguments='{"path"'),
        fragment(0, "a2", arguments=': "x"}'),
        fragment(1, "b", name="Bash", arguments='{"command"'),
        fragment(1, "b2", arguments=': "ls"}'),
    ],
    "name in pieces and again": [
        fragment(0, "a", name="Re", arguments=""),
        fragment(0, name="ad", arguments=""),
        fragment(0, name="Read", arguments='{"path": "x"}'),
        fragment(1, "b", name="Bash", arguments='{"command": '),
        fragment(1, name="Bash", arguments='"ls"}'),
    ],
    "arguments whole once more": [
        fragment(0, "a", name="Read", arguments='{"path"'),
        fragment(0, arguments=': "x"}'),
        fragment(0, "a", name=None, arguments='{"path": "x"}'),
        fragment(1, "b", name="Bash", arguments='{"command": "ls"}'),
    ],
    "arguments as objects": [
        fragment(0, "a", name="Read", arguments={"path": "x"}),
        fragment(1, "b", name="Bash", arguments={"command": "ls"}),
    ],
    "arguments null at first": [
        fragment(0, "a", name="Read", arguments=None),
        fragment(0, arguments='{"path": "x"}'),
        fragment(1, "b", name="Bash"),
        fragment(1, arguments='{"command": "ls"}'),
    ],
    "both in one chunk, and after the finish reason": [
        chunk({}, "tool_calls"),
        chunk(
            {
                "tool_calls": [
                    {"id": "a", "function": {"name": "Read", "arguments": '{"path": "x"}'}},
                    {"id": "b", "function": {"name": "Bash", "arguments": '{"command": "ls"}'}},
                ]
            }
        ),
    ],
}


@pytest.mark.parametrize("name", CALLS)
def test_fragments_of_calls(name):
    assert read(*CALLS[name], chunk({}, "tool_calls")).tool_calls == (A, B)


def test_one_id_for_two_calls_and_blank_ids():
    same = [fragment(i, "x", name="N", arguments=f'{{"n": {i}}}') for i in (0, 1)]
    assert [(c.id, c.input) for c in read(*same).tool_calls] == [
        ("x", {"n": 0}),
        ("x_d2", {"n": 1}),
    ]
    constant = [fragment(None, "x", name="N", arguments=f'{{"n": {i}}}') for i in (0, 1)]
    assert len(read(*constant).tool_calls) == 2
    blank = [fragment(0, " ", name="N", arguments="{}"), fragment(1, "", name="M", arguments="{}")]
    assert [(c.id, c.name) for c in read(*blank).tool_calls] == [("call", "N"), ("call_d2", "M")]


def test_no_arguments_at_all():
    assert read(fragment(0, "a", name="N")).tool_calls == (ToolUse("a", "N"),)


def test_the_old_function_call():
    reply = read(
        chunk({"function_call": {"name": "N", "arguments": '{"a"'}}),
        chunk({"function_call": {"arguments": ": 1}"}}),
        chunk({}, "function_call"),
    )
    assert [(c.name, c.input) for c in reply.tool_calls] == [("N", {"a": 1})]


@pytest.mark.parametrize(
    "deltas",
    [
        [{"reasoning_content": "hm"}, {"content": "yes"}],
        [{"reasoning": "h"}, {"reasoning": "m", "content": ""}, {"content": "yes"}],
        [{"reasoning": "hm", "reasoning_content": "hm"}, {"content": "yes"}],
        [{"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}, {"content": "yes"}],
        [
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
            {"content": [{"type": "text", "text": "yes"}]},
        ],
    ],
)
def test_reasoning_under_its_many_names(deltas):
    reply = read(*[chunk(d) for d in deltas], chunk({}, "stop"))
    assert reply.blocks == (Thinking("hm"), Text("yes"))


def test_what_must_be_echoed_is_kept():
    detail = {"type": "reasoning.encrypted", "data": "ab", "index": 0}
    signed = {"index": 0, "id": "a", "function": {"name": "N", "arguments": "{}"}}
    reply = read(
        chunk({"reasoning_details": [detail]}),
        chunk({"reasoning_details": [{**detail, "data": "cd"}]}),
        chunk({"tool_calls": [{**signed, "extra_content": {"google": {"s": "t"}}}]}),
    )
    assert reply.provider_metadata == {
        "reasoning_details": [{**detail, "data": "abcd"}],
        "extra_content": {"0": {"google": {"s": "t"}}},
    }


def test_odd_chunks_do_no_harm():
    reply = read(
        {"choices": [], "prompt_filter_results": []},
        {"id": "x"},
        chunk(None),
        chunk({"content": None, "tool_calls": None}),
        [chunk({"content": "a"})],
        chunk({"content": "b", "annotations": [{}]}),
        {"choices": [{"index": 1, "delta": {"content": "another choice"}}]},
        {"choices": None},
        chunk({}, "stop"),
        chunk({"content": ""}, "stop"),
    )
    assert reply.text == "ab"


def test_life_signs():
    raw = b": waiting\n\ndata: keep-alive\n\n" + body(chunk({"content": "x"}, "stop"))
    assert decode("openai-chat", [raw]).text == "x"


@pytest.mark.parametrize(
    ("usages", "expected"),
    [
        ([{**USAGE, "completion_tokens": 1}, USAGE], Usage(30, 4)),
        ([USAGE, None], Usage(30, 4)),
        (
            [{"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 5}],
            Usage(4, 2, 5),
        ),
        ([{"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 9}], Usage(0, 2, 9)),
        ([{"completion_tokens": 4, "total_tokens": 34}], Usage(30, 4)),
        ([None], Usage(0, 1, estimated=True)),
        ([{"prompt_tokens": 0, "completion_tokens": 0}], Usage(0, 1, estimated=True)),
    ],
)
def test_usage(usages, expected):
    reply = read(
        *[chunk({"content": "x"[:1]} if i == 0 else {}, usage=u) for i, u in enumerate(usages)]
    )
    assert reply.usage == expected


def test_usage_inside_a_choice():
    choice = {"index": 0, "delta": {"content": "x"}, "usage": USAGE, "finish_reason": "stop"}
    assert read({"choices": [choice]}).usage == Usage(30, 4)


def test_a_refusal_is_said():
    reply = read(chunk({"refusal": "I can't "}), chunk({"refusal": "do that."}), chunk({}, "stop"))
    assert (reply.text, reply.stop_reason) == ("I can't do that.", "refusal")


def test_a_plain_body():
    message = {
        "content": "hi",
        "reasoning_content": "hm",
        "tool_calls": [{"id": "a", "function": {"name": "N", "arguments": '{"x": 1}'}}],
    }
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    whole = {"id": "c", "model": "m", "choices": [choice], "usage": USAGE}
    reply = decode("openai-chat", [json.dumps(whole).encode()])
    assert reply.blocks == (Thinking("hm"), Text("hi"), ToolUse("a", "N", {"x": 1}))
    assert (reply.stop_reason, reply.usage) == ("tool_use", Usage(30, 4))


def test_a_whole_message_in_a_stream():
    choice = {"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}
    assert read({"choices": [choice]}).text == "hi"
    both = {"index": 0, "delta": {"content": "b"}, "message": {"content": "ab"}}
    assert read(chunk({"content": "a"}), {"choices": [both]}).text == "ab"


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"error": {"message": "busy", "code": 503}}, ModelUnavailable),
        ({"error": {"message": "no", "type": "invalid_request_error"}}, RequestRejected),
        ({"error": "broken"}, ModelUnavailable),
        ({"object": "error", "message": "no", "code": 400}, RequestRejected),
        (chunk({}, "error"), ModelUnavailable),
    ],
)
def test_errors_inside_a_stream(event, kind):
    with pytest.raises(kind):
        read(event)
    with pytest.raises(kind):
        read(chunk({"content": "half"}), event)


def test_an_error_event_that_is_plain_text():
    with pytest.raises(ModelUnavailable, match="it broke"):
        decode("openai-chat", [b"event: error\ndata: it broke\n\n"])


def test_an_error_after_the_end_changes_nothing():
    reply = read(chunk({"content": "x"}, "length"), {"error": {"message": "limit", "code": 400}})
    assert reply.stop_reason == "max_tokens"


@pytest.mark.parametrize(
    "raw", [b"", b"GET /index.html", b"<!doctype html>", b'{"choices": []}', b'{"x']
)
def test_what_is_no_reply(raw):
    with pytest.raises(ProtocolViolation):
        decode("openai-chat", [raw])


def test_an_error_body_with_a_good_status():
    with pytest.raises(RequestRejected):
        decode("openai-chat", [b'[{"error": {"code": 400, "message": "no"}}]'])
