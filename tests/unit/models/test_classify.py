from __future__ import annotations

import json

import pytest

from claw.errors import (
    AuthenticationFailed,
    ContextOverflow,
    ModelUnavailable,
    OutputLimitTooHigh,
    RequestRejected,
)
from claw.models.classify import classify_error, classify_event


def body(message: str, type: str = "invalid_request_error", **more: object) -> str:
    return json.dumps({"error": {"message": message, "type": type, **more}})


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_worth_a_retry(status):
    error = classify_error(status, body("come back later", "api_error"))
    assert type(error) is ModelUnavailable
    assert error.advice == "retry"
    assert error.status == status


@pytest.mark.parametrize("status", [400, 404, 405, 422])
def test_never_retried_unchanged(status):
    assert type(classify_error(status, body("no"))) is RequestRejected


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (401, body("who are you?", "authentication_error")),
        (401, "nonsense"),
        (403, body("not for you", "permission_error")),
        (400, body("Incorrect API key provided: ab***z.")),
    ],
)
def test_credentials(status, text):
    error = classify_error(status, text)
    assert type(error) is AuthenticationFailed
    assert error.hint


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (402, body("pay first")),
        (429, body("You exceeded your current quota.", "insufficient_quota")),
        (400, body("Your credit balance is too low to use this API.")),
        (429, body("Extra usage is required for long requests.", "rate_limit_error")),
    ],
)
def test_money_is_not_waited_for(status, text):
    error = classify_error(status, text)
    assert type(error) is RequestRejected
    assert error.advice == "never"


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("prompt is too long: 1234 tokens > 1000 maximum", 1000),
        ("the maximum context length is 4096 tokens, you sent 5000", 4096),
        ("Input length (9000) exceeds the context window of this model", None),
        ("5000 tokens exceed the available context size (4096 tokens)", 4096),
        ("The decoder prompt (length 9000) is longer than the maximum model length of 8192.", None),
        ("Trying to keep the first 9000 tokens when context the overflows.", None),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 and 500", None),
        ("`inputs` must have less than 4096 tokens. Given: 5000", None),
        ("tokens in request more than max tokens allowed: 5000 > 4096", None),
        ("too many tokens: size limit exceeded by 2000 tokens. Try shorter inputs.", None),
        ("输入的长度超过模型的最大上下文", None),
        ("Prompt 超出上下文长度限制", None),
        ("输入内容过长，请缩短后重试", None),
    ],
)
def test_overflow_in_many_words(text, limit):
    error = classify_error(400, body(text))
    assert isinstance(error, ContextOverflow)
    assert error.limit_tokens == limit


def test_overflow_by_code_status_and_wrapping():
    assert isinstance(
        classify_error(400, body("no", code="context_length_exceeded")), ContextOverflow
    )
    assert isinstance(classify_error(413, b""), ContextOverflow)
    inner = json.dumps({"error": {"message": "prompt is too long"}})
    assert isinstance(classify_error(400, body(inner)), ContextOverflow)
    routed = {"error": {"message": "Provider failed", "code": 400, "metadata": {"raw": inner}}}
    assert isinstance(classify_error(400, json.dumps(routed)), ContextOverflow)
    assert isinstance(classify_error(400, json.dumps([json.loads(inner)])), ContextOverflow)


@pytest.mark.parametrize(
    "text",
    [
        "messages[2]: bad value 'the tool printed: prompt is too long: 9 tokens > 8 maximum'",
        'unexpected "maximum context length is 5 tokens',
    ],
)
def test_quoted_text_never_decides(text):
    assert type(classify_error(400, body(text))) is RequestRejected


def test_tokens_a_minute_are_no_overflow():
    text = "on tokens per minute (TPM): Limit 6000, Requested 9000, reduce your message size"
    assert type(classify_error(413, body(text, code="rate_limit_exceeded"))) is RequestRejected
    text = text.replace("9000", "5000")
    assert type(classify_error(413, body(text, code="rate_limit_exceeded"))) is ModelUnavailable


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", 10000),
        ("max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens", 8192),
        (
            "max_tokens is too large: 99999. This model supports at most 16384 completion tokens",
            16384,
        ),
        ("'max_tokens' is too large: 20000. The window is 32768 (20000 > 32768 - 15000)", 17768),
        (
            "the maximum context length is 9000 tokens. However, you requested 10000 tokens "
            "(4000 in the messages, 6000 in the completion). Please reduce the length.",
            5000,
        ),
        (
            "The maximum context length is 9000 tokens, you requested about 12000 tokens "
            "(2000 of text input, 1000 of tool input, 9000 in the output).",
            6000,
        ),
        (
            "the maximum context length is 9000 tokens. However, you requested 8000 output tokens "
            "and your prompt contains 1500 input tokens, for a total of 9500 tokens.",
            7500,
        ),
        (  # counted only as far as needed
            "the maximum context length is 9000 tokens. However, you requested 8000 output tokens "
            "and your prompt contains at least 1001 input tokens, at least 9001 in all.",
            4000,
        ),
    ],
)
def test_output_limit(text, fits):
    error = classify_error(400, body(text))
    assert isinstance(error, OutputLimitTooHigh)
    assert error.max_tokens == fits


@pytest.mark.parametrize(
    "text",
    [
        "input length and `max_tokens` exceed context limit: 199990 + 20000 > 200000",
        "the maximum context length is 90000 tokens. However, you requested 98000 tokens "
        "(88000 in the messages, 10000 in the completion).",
        "the maximum context length is 9000 tokens. However, you requested 0 output tokens "
        "and your prompt contains at least 9001 input tokens.",
        "the maximum context length is 9000 tokens. However, you requested 600 output tokens "
        "and your prompt contains at least 8401 input tokens.",
    ],
)
def test_no_room_to_speak_of_is_an_overflow(text):
    assert type(classify_error(400, body(text))) is ContextOverflow


def test_a_refused_request_comes_with_advice_for_the_user():
    for status in (400, 405, 422):
        assert "try another model" in classify_error(status, body("no")).hint


def test_bodies_that_were_read_already():
    read = {"error": {"message": "prompt is too long", "type": "invalid_request_error"}}
    assert isinstance(classify_error(400, read), ContextOverflow)
    assert isinstance(classify_error(400, [read]), ContextOverflow)
    assert isinstance(classify_error(413, None), ContextOverflow)
    assert classify_error(503, {}).advice == "retry"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "850", "retry-after": "9"}, 0.85),
        (
            {
                "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT",
                "date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
            30.0,
        ),
        ({"retry-after": "Wed, 21 Oct 2020 07:28:30 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after(headers, seconds):
    assert classify_error(503, "", headers).retry_after == seconds


def test_the_longer_of_two_waits_counts():
    text = body("Rate limit reached. Please try again in 1m30s.", "requests")
    assert classify_error(429, text, {"retry-after-ms": "500"}).retry_after == 90.0
    assert classify_error(429, body("try again in 850ms")).retry_after == 0.85


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", '"text"', "{}", "<html><title>502</title></html>", "\x00", "[" * 100_000],
)
def test_any_body_makes_an_error(text):
    assert type(classify_error(502, text)) is ModelUnavailable


def test_a_huge_body_gives_a_short_message():
    error = classify_error(500, b"<p>" + b"x" * 5_000_000)
    assert len(error.message) < 1000


def test_request_id_provider_and_model():
    error = classify_error(500, "", {"Request-Id": "req_9"}, provider="p", model="m")
    assert (error.request_id, error.provider, error.model) == ("req_9", "p", "m")


def test_server_forbids_a_retry():
    assert classify_error(500, "", {"x-should-retry": "false"}).advice == "never"


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
            ModelUnavailable,
        ),
        ({"error": {"type": "invalid_request_error", "message": "no"}}, RequestRejected),
        ({"error": {"code": 429, "message": "slow down"}}, ModelUnavailable),
        ({"error": {"code": "context_length_exceeded", "message": "no"}}, ContextOverflow),
        ({"error": "something broke"}, ModelUnavailable),
        ("something broke", ModelUnavailable),
        ({"error": {"type": "authentication_error"}}, AuthenticationFailed),
        ({"error": {"code": "invalid_prompt", "message": "no"}}, RequestRejected),
        ({"error": {"code": "image_too_large", "message": "no"}}, RequestRejected),
        ({"error": {"type": "BadRequestError", "message": "no"}}, RequestRejected),
        ({"error": {"code": "content_policy_violation", "message": "no"}}, RequestRejected),
        ({"error": {"status": "INVALID_ARGUMENT", "message": "no"}}, RequestRejected),
        ({"error": {"status": "PERMISSION_DENIED", "message": "no"}}, AuthenticationFailed),
        ({"error": {"code": "server_error", "message": "no"}}, ModelUnavailable),
        ({"error": {"code": "vector_store_timeout", "message": "no"}}, ModelUnavailable),
    ],
)
def test_errors_inside_a_stream(event, kind):
    assert type(classify_event(event)) is kind


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ({"error": {"type": "overloaded_error", "message": "busy"}}, "busy (overloaded_error)"),
        ({"error": {"code": 503, "message": "busy"}}, "busy (status 503)"),
        ("busy", "busy (no status)"),
        ({"type": "error", "error": {"message": "busy"}}, "busy (no status)"),
    ],
)
def test_no_status_is_told_that_nobody_sent(event, told):
    assert classify_event(event).message == told


@pytest.mark.parametrize(
    ("wait", "said"), [("3600", "1 h 0 min"), ("10740", "2 h 59 min"), ("90", "2 min")]
)
def test_a_long_wait_is_named(wait, said):
    error = classify_error(429, body("slow down"), {"retry-after": wait})
    assert said in error.hint


def test_a_short_wait_is_nobodys_business():
    assert not classify_error(429, body("slow down"), {"retry-after": "5"}).hint
