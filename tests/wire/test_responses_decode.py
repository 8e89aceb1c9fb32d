"""Replies of the Responses API, as servers send them and as they should not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from claw.errors import (
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    ProtocolViolation,
    RequestRejected,
)
from claw.models.decode import decode, decoder
from claw.models.openai_responses.decode import MESSAGE
from claw.types.events import AssistantEvent, TextDelta, ThinkingDelta, ToolInputDelta
from claw.types.messages import Opaque, Text, Thinking, ToolUse
from claw.types.reply import Reply
from claw.types.usage import Usage

USAGE = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 4},
    "output_tokens": 7,
    "total_tokens": 37,
}


def of_item(name: str, at: int = 0, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{name}", "output_index": at, **fields}


def begun(at: int, **item: Any) -> dict[str, Any]:
    return of_item("output_item.added", at, item=item)


def done(at: int, **item: Any) -> dict[str, Any]:
    return of_item("output_item.done", at, item=item)


def said(piece: str, at: int = 0, part: int = 0) -> dict[str, Any]:
    return of_item("output_text.delta", at, content_index=part, delta=piece)


def message(*texts: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "id": "m", "role": "assistant", "content": content, **more}


def call(id: str, arguments: Any = "", **more: Any) -> dict[str, Any]:
    item = {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": "N"}
    return {**item, "arguments": arguments, **more}


def completed(*output: Any, kind: str = "completed", **more: Any) -> dict[str, Any]:
    response = {"id": "r1", "model": "gpt-x", "status": kind, "output": list(output), **more}
    return {"type": f"response.{kind}", "response": response}


CREATED = {"type": "response.created", "response": {"id": "r1", "model": "gpt-x", "output": []}}


def body(*events: Any) -> bytes:
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()


def read(*events: Any) -> Reply:
    return decode("openai-responses", [body(CREATED, *events)])


def whole(*output: Any, **more: Any) -> Reply:
    response = {"id": "r1", "model": "gpt-x", "status": "completed", "output": list(output)}
    return decode("openai-responses", [json.dumps({**response, **more}).encode()])


def events_of(*events: Any) -> list[AssistantEvent]:
    taking = decoder("openai-responses")
    return [*taking.feed(body(CREATED, *events)), *taking.end()]


def test_text_and_usage():
    reply = read(
        begun(0, **message()),
        said("Hello "),
        said("wörld"),
        done(0, **message("Hello wörld")),
        completed(message("Hello wörld"), usage=USAGE),
    )
    assert reply.blocks == (Text("Hello wörld"),)
    assert (reply.stop_reason, reply.model, reply.request_id) == ("stop", "gpt-x", "r1")
    assert reply.usage == Usage(6, 7, 20, 4)
    assert reply.usage.context_tokens == 37


def test_a_whole_body_means_the_same_as_a_stream():
    items = (
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e"},
        message("so"),
        call("a", '{"x": 1}'),
    )
    streamed = [event for at, item in enumerate(items) for event in (begun(at), done(at, **item))]
    assert whole(*items, usage=USAGE) == read(*streamed, completed(*items, usage=USAGE))


@pytest.mark.parametrize("last", ["output_text.done", "content_part.done", "item", "response"])
@pytest.mark.parametrize("pieces", [(), ("Hel",), ("Hel", "lo")])
def test_text_that_comes_without_its_pieces(last, pieces):
    text = message("Hello")
    steps = {
        "output_text.done": of_item("output_text.done", content_index=0, text="Hello"),
        "content_part.done": of_item("content_part.done", content_index=0, part=text["content"][0]),
        "item": done(0, **text),
        "response": None,
    }
    events = [e for e in (begun(0, **message()), *map(said, pieces), steps[last]) if e]
    seen = events_of(*events, completed(text))
    assert "".join(e.text for e in seen if isinstance(e, TextDelta)) == "Hello"
    assert read(*events, completed(text)).text == "Hello"
    if last == "output_text.done":  # a server whose last word has no output
        assert read(*events, completed()).text == "Hello"


def test_what_was_said_stands_where_the_end_tells_it_otherwise():
    reply = read(begun(0, **message()), said("one"), completed(message("two")))
    assert reply.text == "one"


def test_reasoning_is_shown_and_kept_for_the_round_trip():
    summary = [{"type": "summary_text", "text": t} for t in ("first", "then")]
    item = {"type": "reasoning", "id": "rs", "summary": summary, "encrypted_content": "enc+/=="}
    thought = [
        of_item("reasoning_summary_text.delta", summary_index=n, delta=t)
        for n, t in ((0, "fi"), (0, "rst"), (1, "then"))
    ]
    early = {**item, "summary": [], "encrypted_content": "half"}
    events = (
        begun(0, **early),
        *thought,
        done(0, **item, status="completed", content=[]),
        completed({**item, "encrypted_content": "other"}, message("so")),
    )
    assert read(*events).blocks == (
        Thinking("first\nthen"),
        Opaque("openai", item),
        Text("so"),
    )
    shown = "".join(e.text for e in events_of(*events) if isinstance(e, ThinkingDelta))
    assert shown == "first\nthen"


def test_reasoning_in_the_clear_and_reasoning_that_only_the_server_has():
    clear = {
        "type": "reasoning",
        "id": "rs",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}],
    }
    delta = of_item("reasoning_text.delta", content_index=0, delta="hm")
    reply = read(begun(0, type="reasoning", id="rs"), delta, done(0, **clear), completed(clear))
    assert reply.blocks == (Thinking("hm"), Opaque("openai", clear))
    assert whole({"type": "reasoning", "id": "rs", "summary": []}, message("so")).blocks == (
        Text("so"),
    )


def test_calls_side_by_side():
    pieces = [
        of_item("function_call_arguments.delta", at, delta=piece)
        for at, piece in ((0, '{"a'), (1, '{"b'), (1, '": 2}'), (0, '": 1}'))
    ]
    events = (
        begun(0, **call("one")),
        begun(1, **call("two")),
        *pieces,
        done(1, **call("two", '{"b": 2}')),
        done(0, **call("one", '{"a": 1}')),
        completed(usage=USAGE),
    )
    reply = read(*events)
    assert reply.tool_calls == (ToolUse("one", "N", {"a": 1}), ToolUse("two", "N", {"b": 2}))
    assert reply.stop_reason == "tool_use"
    deltas = [e for e in events_of(*events) if isinstance(e, ToolInputDelta)]
    assert "".join(e.partial_json for e in deltas if e.index == 1) == '{"b": 2}'


@pytest.mark.parametrize(
    ("arguments", "input", "raw"),
    [
        ('{"a": 1}', {"a": 1}, None),
        ({"a": 1}, {"a": 1}, None),
        ("", {}, None),
        (None, {}, None),
        ('{"a": ', {}, '{"a": '),
        ("[1]", {}, "[1]"),
    ],
)
def test_arguments(arguments, input, raw):
    (use,) = whole(call("a", arguments)).tool_calls
    assert (use.input, use.raw_input) == (input, raw)
    (use,) = read(begun(0, **call("a")), done(0, **call("a", arguments)), completed()).tool_calls
    assert (use.input, use.raw_input) == (input, raw)


def test_arguments_in_pieces_only():
    piece = of_item("function_call_arguments.delta", delta='{"a": 1}')
    (use,) = read(begun(0, **call("a")), piece, completed()).tool_calls
    assert use == ToolUse("a", "N", {"a": 1})


def test_a_call_without_a_call_id_has_its_items():
    item = {"type": "function_call", "id": "fc_1", "name": "N", "arguments": "{}"}
    assert whole(item).tool_calls == (ToolUse("fc_1", "N"),)


def test_what_goes_back_with_a_call():
    reply = whole(call("a", "{}"), call("b", "{}", namespace="files"))
    assert reply.provider_metadata == {"calls": {"1": {"namespace": "files"}}}


def test_a_custom_call_is_a_call():
    item = {
        "type": "custom_tool_call",
        "id": "ct",
        "call_id": "a",
        "name": "sql",
        "input": "SELECT",
    }
    piece = of_item("custom_tool_call_input.delta", delta="SELECT")
    for reply in (whole(item), read(begun(0, **{**item, "input": ""}), piece, completed(item))):
        assert reply.tool_calls == (ToolUse("a", "sql", {}, "SELECT"),)
        assert reply.stop_reason == "tool_use"


def test_the_servers_own_tools_stay_as_they_are_and_in_order():
    search = {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"q": None}}
    listed: dict[str, Any] = {"type": "mcp_list_tools", "id": "l", "tools": [], "error": None}
    reply = read(
        begun(0, type="mcp_list_tools", id="l"),  # never finished, but for the last word
        begun(1, type="web_search_call", id="ws"),
        of_item("web_search_call.searching", 1, item_id="ws"),
        done(1, **search),
        begun(2, **message()),
        said("found", 2),
        done(2, **message("found")),
        completed(listed, search, message("found")),
    )
    assert reply.blocks == (Opaque("openai", listed), Opaque("openai", search), Text("found"))


def test_a_message_with_a_phase_and_annotations_leaves_a_marker():
    cited = message("It is known", " here.", phase="final_answer")
    cited["content"][0]["annotations"] = [{"type": "url_citation", "url": "u"}]
    text, marker = whole(cited).blocks
    assert text == Text("It is known here.")
    assert marker == Opaque(
        "openai",
        {
            "type": MESSAGE,
            "phase": "final_answer",
            "parts": [
                {"length": 11, "annotations": [{"type": "url_citation", "url": "u"}]},
                {"length": 6, "annotations": []},
            ],
        },
    )


@pytest.mark.parametrize(
    ("kind", "details", "reason"),
    [
        ("completed", None, "stop"),
        ("incomplete", {"reason": "max_output_tokens"}, "max_tokens"),
        ("incomplete", {"reason": "content_filter"}, "refusal"),
        ("incomplete", {"reason": "tired"}, "tired"),
        ("incomplete", None, "incomplete"),
        ("cancelled", None, "cancelled"),
    ],
)
def test_stop_reasons(kind, details, reason):
    last = completed(message("x"), kind=kind, incomplete_details=details)
    reply = read(begun(0, **message()), said("x"), last)
    assert (reply.stop_reason, reply.complete) == (reason, True)
    assert whole(message("x"), status=kind, incomplete_details=details).stop_reason == reason


def test_odd_and_missing_states():
    assert whole(message("x"), status="complete").stop_reason == "stop"
    assert whole(message("x"), status=None).stop_reason == "stop"
    assert whole(status="queued").stop_reason == "queued"


def test_a_call_that_the_limit_cut_keeps_the_limit_as_its_reason():
    last = completed(
        call("a", '{"x": 1}', status="incomplete"),
        kind="incomplete",
        incomplete_details={"reason": "max_output_tokens"},
    )
    assert read(last).stop_reason == "max_tokens"


@pytest.mark.parametrize("streamed", [True, False])
def test_a_call_that_the_server_itself_calls_incomplete_was_cut(streamed):
    half = call("a", '{"x": 1}', status="incomplete")
    reply = read(begun(0, **half), done(0, **half), completed(half)) if streamed else whole(half)
    assert reply.stop_reason == "max_tokens"  # of such a reply the last call does not run


def test_a_refusal_is_shown_and_named():
    refusal = message()
    refusal["content"] = [{"type": "refusal", "refusal": "I cannot."}]
    piece = of_item("refusal.delta", content_index=0, delta="I can")
    for reply in (whole(refusal), read(begun(0, **message()), piece, completed(refusal))):
        assert (reply.text, reply.stop_reason) == ("I cannot.", "refusal")


EVENTS = (
    begun(0, **message()),
    said("half"),
    done(0, **message("half")),
    begun(1, **call("a")),
    of_item("function_call_arguments.delta", 1, delta='{"x": 1}'),
    done(1, **call("a", '{"x": 1}')),
)


@pytest.mark.parametrize("seen", range(len(EVENTS) + 1))
@pytest.mark.parametrize("mark", [b"", b"data: [DONE]\n\n"])
def test_without_its_last_event_a_reply_is_incomplete(seen, mark):
    reply = decode("openai-responses", [body(CREATED, *EVENTS[:seen]) + mark])
    assert not reply.complete
    assert reply.stop_reason == ""
    assert reply.text == ("half" if seen > 1 else "")


def test_nothing_at_all_is_a_violation():
    for nothing in (b"", b": ping\n\n", b"data: [DONE]\n\n"):
        with pytest.raises(ProtocolViolation):
            decode("openai-responses", [nothing])


@pytest.mark.parametrize(
    "other", [{"choices": []}, {"output": "text"}, [], ["x"], {"id": "r", "object": "response"}]
)
def test_a_body_that_is_no_response(other):
    with pytest.raises(ModelError):
        decode("openai-responses", [json.dumps(other).encode()])


def failed(code: str, message: str) -> dict[str, Any]:
    return completed(kind="failed", error={"code": code, "message": message})


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (failed("server_error", "sorry"), ModelUnavailable),
        (failed("rate_limit_exceeded", "Try again in 3s."), ModelUnavailable),
        (failed("insufficient_quota", "pay"), RequestRejected),
        (failed("context_length_exceeded", "too long"), ContextOverflow),
        (failed("invalid_prompt", "no"), ModelError),
        (completed(kind="failed"), ModelUnavailable),
        ({"type": "error", "code": "server_error", "message": "sorry"}, ModelUnavailable),
        ({"type": "error", "error": {"type": "invalid_request_error"}}, RequestRejected),
        ({"type": "response.error", "error": "plain words"}, ModelUnavailable),
    ],
)
def test_errors_in_the_stream_come_after_what_was_said(event, kind):
    taking = decoder("openai-responses")
    seen: list[AssistantEvent] = []

    def take() -> None:
        for one in taking.feed(body(CREATED, begun(0, **message()), said("half"), event)):
            seen.append(one)

    with pytest.raises(kind):
        take()
    assert TextDelta("half") in seen


def test_a_failed_response_as_a_body():
    with pytest.raises(ModelUnavailable) as raised:
        whole(status="failed", error={"code": "server_error", "message": "sorry"})
    assert "sorry" in raised.value.message


def test_nothing_counts_after_the_end():
    last = completed(message("x"))
    assert read(last, said("y"), last, failed("server_error", "late")).text == "x"


def test_usage_that_nobody_reported_is_estimated():
    reply = read(begun(0, **message()), said("a text of some length"), completed())
    assert reply.usage.estimated
    assert reply.usage.output_tokens > 0


def test_events_without_the_items_beginning():
    reply = read(said("a", 0), said("b", 0), completed(message("ab")))
    assert reply.blocks == (Text("ab"),)
    arguments = of_item("function_call_arguments.delta", item_id="fc_a", delta='{"x": ')
    reply = read(arguments, done(0, **call("a", '{"x": 1}')), completed())
    assert reply.tool_calls == (ToolUse("a", "N", {"x": 1}),)


def test_ids_that_change_with_every_event_and_places_that_never_do():
    turning = [{**said(piece), "item_id": f"id_{piece}"} for piece in "abc"]
    final = {**message("abc"), "id": "another"}
    assert read(begun(0, **message()), *turning, done(0, **final), completed(final)).text == "abc"
    same_place = (
        begun(0, **call("a")),
        done(0, **call("a", '{"n": 1}')),
        begun(0, **call("b")),
        done(0, **call("b", '{"n": 2}')),
    )
    output = (call("a", '{"n": 1}'), call("b", '{"n": 2}'))
    assert [c.input["n"] for c in read(*same_place, completed(*output)).tool_calls] == [1, 2]


def test_an_item_that_only_the_end_tells_is_not_taken_for_another():
    one, two = {**message("one"), "id": "m1"}, {**message("two"), "id": "m2"}
    reply = read(begun(0, **two), said("two"), done(0, **two), completed(one, two))
    assert reply.text == "twoone"  # late, but not lost


def test_an_error_of_a_tool_is_no_error_of_the_reply():
    event = of_item("mcp_call.failed", error="no such server")
    assert read(event, completed(message("x"))).text == "x"


def test_without_places_the_open_item_is_meant():
    def bare(event: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in event.items() if name != "output_index"}

    events = (begun(0, **message()), said("a"), said("b"), done(0, **message("ab")))
    assert read(*map(bare, events), completed(message("ab"))).blocks == (Text("ab"),)


def test_events_by_their_names_alone():
    data = json.dumps({"output_index": 0, "content_index": 0, "delta": "hi"})
    last = json.dumps({"response": {"status": "completed", "output": []}})
    stream = (
        f"event: response.output_text.delta\ndata: {data}\n\n"
        f"event: response.completed\ndata: {last}\n\n"
    )
    reply = decode("openai-responses", [stream.encode()])
    assert (reply.text, reply.complete) == ("hi", True)


def test_half_a_character_in_each_of_two_pieces():
    events = (begun(0, **message()), said("\ud83c"), said("\udf0d"), completed(message("🌍")))
    assert read(*events).text == "🌍"
    lone = read(begun(0, **message()), said("a\ud83c"), completed())
    assert lone.text == "a\ufffd"


def test_what_is_nested_too_deeply_is_an_error_of_the_server():
    deep = "[" * 700 + "]" * 700
    item = f'{{"type": "response.output_item.done", "item": {{"type": "x", "y": {deep}}}}}'
    with pytest.raises(ModelError):
        decode("openai-responses", [f"data: {item}\n\n".encode()])
