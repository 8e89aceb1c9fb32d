"""What holds in every dialect: cuts, damage, errors, and how a reply ends."""

from __future__ import annotations

import json
from itertools import chain

import pytest
from msgspec.structs import replace

from claw.errors import ModelError, ModelUnavailable, RequestRejected
from claw.models.decode import decode, decoder
from claw.models.dialect import DIALECTS
from claw.runtime.tool_calls import calls_not_to_run
from claw.types.events import AssistantEvent, TextDelta
from claw.types.messages import Text, Thinking
from tests.wire.shapes import WORDS, WORK, anthropic_stream, chat_stream, responses_stream, spliced

FINAL = {
    "anthropic": b'"message_delta"',
    "openai-chat": b'"finish_reason": "',
    "openai-responses": b'"response.completed"',
}
"""What the event has in it by which a stream says that it ended, and how."""


def final_at(dialect: str) -> int:
    """Where the last event of the whole work begins."""
    body = WORK[dialect, "whole"]
    return body.rindex(b"\n\n", 0, body.index(FINAL[dialect])) + 2


def events_until_error(dialect: str, body: bytes) -> tuple[list[AssistantEvent], ModelError]:
    taking = decoder(dialect)
    seen: list[AssistantEvent] = []
    try:
        for event in chain(taking.feed(body), taking.end()):
            seen.append(event)
    except ModelError as error:
        return seen, error
    raise AssertionError("no error")


# Cut


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_split_anywhere_characters_stay_whole(dialect: str, end: bytes):
    body = WORK[dialect, "whole"].replace(b"\n", end)
    whole = decode(dialect, [body])
    assert whole.text == WORDS
    assert whole.tool_calls[0].input == {"path": WORDS}
    delicate = {at for at in range(1, len(body)) if body[at] >= 0x80 or body[at - 1] in b"\r\n"}
    for at in sorted(delicate | {*range(1, len(body), 7)}):
        assert decode(dialect, [body[:at], body[at:]]) == whole


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_that_ends_inside_a_character_is_incomplete(dialect: str):
    body = WORK[dialect, "whole"]
    inside = [at for at in range(len(body)) if body[at] & 0xC0 == 0x80 and at < final_at(dialect)]
    assert len(inside) > 10
    for at in inside:
        reply = decode(dialect, [body[:at]])
        assert not reply.complete
        assert WORDS.startswith(reply.text)
        assert not any("\ufffd" in (call.raw_input or "") for call in reply.tool_calls)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_all_blocks_but_no_end_is_a_cut_reply(dialect: str):
    reply = decode(dialect, [WORK[dialect, "whole"][: final_at(dialect)]])
    assert (reply.text, reply.complete, reply.stop_reason) == (WORDS, False, "")
    assert len(reply.tool_calls) == 2
    assert len(calls_not_to_run(reply)) == 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_of_a_reply_cut_by_the_limit_the_last_call_does_not_run(dialect: str):
    """Though its JSON parses."""
    reply = decode(dialect, [WORK[dialect, "limit"]])
    assert (reply.complete, reply.stop_reason) == (True, "max_tokens")
    first, last = reply.tool_calls
    assert (first.input, last.input, last.raw_input) == ({"path": WORDS}, {}, None)
    assert calls_not_to_run(reply).keys() == {last.id}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "cancelled", "incomplete"])
def test_of_a_reply_that_is_not_whole_by_its_own_words_no_call_runs(dialect: str, reason: str):
    reply = replace(decode(dialect, [WORK[dialect, "whole"]]), stop_reason=reason)
    assert len(calls_not_to_run(reply)) == 2


@pytest.mark.parametrize("first", ["length", "content_filter"])
def test_a_reply_that_was_cut_stays_so_whatever_reason_comes_later(first: str):
    call = {"index": 0, "id": "a", "function": {"name": "N", "arguments": "{}"}}
    body = chat_stream({"tool_calls": [call]}, finish=first).replace(b"data: [DONE]\n\n", b"")
    reply = decode("openai-chat", [body + chat_stream({}, finish="stop")])
    assert len(calls_not_to_run(reply)) == 1


@pytest.mark.parametrize("first", ["max_tokens", "refusal"])
def test_a_message_that_was_cut_stays_so_whatever_reason_comes_later(first: str):
    body = anthropic_stream(stop=first)
    at = body.index(b"event: message_stop")
    later = b'data: {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}\n\n'
    assert decode("anthropic", [body[:at] + later + body[at:]]).stop_reason == first


@pytest.mark.parametrize("reason", ["abort", "ABORTED", "cancelled", "error"])
def test_a_finish_by_which_the_server_says_that_it_failed(reason: str):
    with pytest.raises(ModelUnavailable, match=f"(?i){reason}"):
        decode("openai-chat", [chat_stream({"content": "x"}, finish=reason)])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_of_a_refused_reply_no_call_runs(dialect: str):
    reply = decode(dialect, [WORK[dialect, "refused"]])
    assert (reply.complete, reply.stop_reason) == (True, "refusal")
    assert len(calls_not_to_run(reply)) == 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_of_a_whole_reply_every_call_runs(dialect: str):
    reply = decode(dialect, [WORK[dialect, "whole"]])
    assert (reply.complete, reply.stop_reason) == (True, "tool_use")
    assert calls_not_to_run(reply) == {}


# Damaged


def damaged(event: bytes) -> dict[str, bytes]:
    """What proxies make of an event, of which none may be passed over."""
    half = len(event) // 2
    return {
        "cut and padded": event[:half] + b" " * (len(event) - half - 1) + b"}",
        "a line end inside": event[:half] + b"\n" + event[half:],
        "two line ends inside": event[:half] + b"\n\n" + event[half:],
        "without its beginning": b"data: " + event[half:],
        "without its end": event[:half],
    }


@pytest.mark.parametrize("damage", damaged(b"data: {}"))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_damaged_event_is_an_error_and_worth_another_try(dialect: str, damage: str):
    events = WORK[dialect, "whole"].split(b"\n\n")
    at = next(n for n, event in enumerate(events) if "🌍".encode() in event)
    name, line, data = events[at].rpartition(b"data: ")
    events[at] = name + damaged(line + data)[damage]
    with pytest.raises(ModelUnavailable) as raised:
        decode(dialect, [b"\n\n".join(events)])
    assert raised.value.advice == "retry"


@pytest.mark.parametrize("sign", [b": keep-alive", b"data: ping", b"data:", b"event: ping"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_life_signs_change_nothing(dialect: str, sign: bytes):
    body = WORK[dialect, "whole"]
    whole = decode(dialect, [body])
    events = body.split(b"\n\n")
    for at in range(len(events)):
        assert decode(dialect, [b"\n\n".join([*events[:at], sign, *events[at:]])]) == whole


# Errors inside a good status


OVERLOADED = {
    "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "Oops"}},
    "openai-chat": {"error": {"type": "server_error", "message": "Oops", "code": 503}},
    "openai-responses": {
        "type": "response.failed",
        "response": {
            "status": "failed",
            "error": {"code": "server_is_overloaded", "message": "Oops"},
        },
    },
}
REFUSED = {
    "anthropic": {"type": "error", "error": {"type": "invalid_request_error", "message": "Oops"}},
    "openai-chat": {"error": {"type": "invalid_request_error", "message": "Oops"}},
    "openai-responses": {"type": "error", "code": "invalid_request_error", "message": "Oops"},
}
UNNAMED = {"error": "Oops"}


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        (OVERLOADED, ModelUnavailable),
        (REFUSED, RequestRejected),
        (dict.fromkeys(DIALECTS, UNNAMED), ModelUnavailable),
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_inside_the_stream_is_one_wherever_it_comes(dialect: str, events, kind):
    body = WORK[dialect, "whole"]
    last = body[: final_at(dialect)].count(b"\n\n")
    said = ""
    for at in range(last + 1):
        seen, error = events_until_error(dialect, spliced(body, events[dialect], at))
        assert type(error) is kind, at
        assert "Oops" in error.message
        said = "".join(event.text for event in seen if isinstance(event, TextDelta))
        assert WORDS.startswith(said)
    assert said == WORDS


BODIES = {
    "JSON": b'{"error": {"message": "Oops"}}',
    "a string": b'"Oops"',
    "a list": b'[{"error": {"message": "Oops"}}]',
    "HTML": b"<html><head><title>Oops</title></head><body>nginx</body></html>",
    "nothing": b"",
    "5 MB": b"Oops " * 1_000_000,
    "JSON in JSON": b'{"error": {"message": "{\\"error\\": {\\"message\\": \\"Oops\\"}}"}}',
    "bad UTF-8": b"Oops \xff\xfe",
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(("status", "kind"), [(503, ModelUnavailable), (400, RequestRejected)])
def test_an_error_status_has_its_class_whatever_the_body(status: int, kind, body: str):
    for dialect in DIALECTS:
        with pytest.raises(kind) as raised:
            decode(dialect, [BODIES[body]], status=status)
        assert ("Oops" in raised.value.message) == bool(BODIES[body])
        assert len(raised.value.message) < 1000


ECHO = "bad value: 'Error 429: rate limit exceeded, overloaded, prompt is too long'"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_an_error_quotes_decides_nothing(dialect: str):
    error = {"type": "invalid_request_error", "message": ECHO}
    body = json.dumps({"type": "error", "error": error}).encode()
    for chunks, status in (([body], 400), ([b"event: error\ndata: " + body + b"\n\n"], 200)):
        with pytest.raises(RequestRejected) as raised:
            decode(dialect, chunks, status=status)
        assert raised.value.kind == "request_rejected"


# Ends


def says_nothing(dialect: str) -> bytes:
    match dialect:
        case "anthropic":
            return anthropic_stream()
        case "openai-chat":
            return chat_stream()
        case _:
            return responses_stream()


@pytest.mark.parametrize("body", [b"[]", b"{}", b'""', b" [ ] "])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_body_that_holds_nothing_is_no_reply_and_no_error_of_the_servers(dialect: str, body):
    with pytest.raises(ModelError) as raised:
        decode(dialect, [body])
    assert raised.value.kind == "protocol_violation"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_reply_may_say_nothing_and_has_no_empty_blocks_then(dialect: str):
    reply = decode(dialect, [says_nothing(dialect)])
    assert reply.complete
    assert reply.blocks == ()
    assert reply.stop_reason in {"end_turn", "stop"}


def test_a_reply_may_be_all_reasoning():
    reply = decode("openai-chat", [chat_stream({"reasoning": "hm"})])
    assert (reply.blocks, reply.stop_reason) == ((Thinking("hm"),), "stop")


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("content_filter", "refusal"),
        ("SAFETY", "refusal"),
        ("RECITATION", "refusal"),
        ("PROHIBITED_CONTENT", "refusal"),
        ("MAX_TOKENS", "max_tokens"),
        ("model_length", "model_context_window_exceeded"),
        ("MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL"),
        ("something_new", "something_new"),
        ("", "stop"),
        (None, "stop"),
    ],
)
def test_every_finish_reason_means_something(finish: str | None, reason: str):
    reply = decode("openai-chat", [chat_stream({"content": "x"}, finish=finish)])
    assert (reply.blocks, reply.complete, reply.stop_reason) == ((Text("x"),), True, reason)


@pytest.mark.parametrize(
    "reason", ["refusal", "pause_turn", "model_context_window_exceeded", "something_new"]
)
def test_stop_reasons_of_the_messages_api_keep_their_names(reason: str):
    assert decode("anthropic", [anthropic_stream(stop=reason)]).stop_reason == reason


def test_a_custom_tool_of_chat_completions_is_a_call():
    call = {"index": 0, "id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT"}}
    reply = decode("openai-chat", [chat_stream({"tool_calls": [call]}, finish="tool_calls")])
    (use,) = reply.tool_calls
    assert (use.id, use.name, use.input, use.raw_input) == ("c", "sql", {}, "SELECT")


@pytest.mark.parametrize("depth", [300, 700, 100_000])
@pytest.mark.parametrize("cut", [True, False])
def test_what_is_nested_too_deeply_is_an_error_or_kept(depth: int, cut: bool):
    nested = "[" * depth + "]" * depth
    block = f'{{"type": "tool_use", "id": "a", "name": "N", "input": {{"x": {nested}}}}}'
    begun = f'data: {{"type": "content_block_start", "index": 0, "content_block": {block}}}\n\n'
    body = begun + ("" if cut else 'data: {"type": "message_stop"}\n\n')
    try:
        reply = decode("anthropic", [body.encode()])
    except ModelError:
        return
    assert reply.complete is not cut
    assert len(json.dumps(reply.tool_calls[0].input)) > depth


def test_a_cache_that_gave_more_than_was_sent():
    usage = {
        "prompt_tokens": 30,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 40},
    }
    reply = decode("openai-chat", [chat_stream({"content": "x"}, usage=usage)])
    assert (reply.usage.input_tokens, reply.usage.cache_read_input_tokens) == (0, 40)
