"""The clients over a fake transport: what they send, and what their callers may see."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from claw.errors import (
    AuthenticationFailed,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    ProtocolViolation,
)
from claw.models.anthropic.client import AnthropicClient
from claw.models.http import HttpRequest, HttpResponse, StreamCut
from claw.models.openai_chat.client import OpenAIChatClient
from claw.models.openai_responses.client import OpenAIResponsesClient
from claw.types.events import AssistantEvent, MessageStart, MessageStop, TextDelta
from claw.types.messages import Text, UserMessage
from claw.types.reply import Reply, assemble
from claw.types.request import Request, Sampling
from claw.types.usage import Usage

SECRET = "sk-very-secret"


class FakeTransport:
    """Answers every request with the same status and chunks; an exception is raised in place."""

    def __init__(
        self,
        *chunks: bytes | Exception,
        status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.chunks = chunks
        self.status = status
        self.headers = headers or {}
        self.requests: list[HttpRequest] = []
        self.read = 0
        self.open = 0

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        self.open += 1

        async def close() -> None:
            self.open -= 1

        return HttpResponse(self.status, self.headers, self._body(), close)

    async def _body(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            if isinstance(chunk, Exception):
                raise chunk
            self.read += 1
            yield chunk

    async def aclose(self) -> None:
        pass


def anthropic(transport: FakeTransport, **options: Any) -> AnthropicClient:
    return AnthropicClient(transport, **{"api_key": SECRET, **options})


def chat(transport: FakeTransport, **options: Any) -> OpenAIChatClient:
    return OpenAIChatClient(transport, **{"api_key": SECRET, **options})


def responses(transport: FakeTransport, **options: Any) -> OpenAIResponsesClient:
    return OpenAIResponsesClient(transport, **{"api_key": SECRET, **options})


Client = AnthropicClient | OpenAIChatClient | OpenAIResponsesClient
CLIENTS = pytest.mark.parametrize("client", [anthropic, chat, responses])

REQUEST = Request("be good", (UserMessage((Text("hello"),)),), (), Sampling("m", max_tokens=50))


async def events_of(client: Client) -> list[AssistantEvent]:
    return [event async for event in client.stream(REQUEST)]


async def reply_of(client: Client) -> Reply:
    return assemble(await events_of(client))


def lines(*events: Any) -> list[bytes]:
    return [f"data: {e if isinstance(e, str) else json.dumps(e)}\n\n".encode() for e in events]


def chat_text(text: str) -> dict[str, Any]:
    return {"model": "m-1", "choices": [{"index": 0, "delta": {"content": text}}]}


ANTHROPIC = lines(
    {"type": "message_start", "message": {"model": "m-1", "usage": {"input_tokens": 3}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
)
CHAT = lines(
    chat_text("hi"),
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    "[DONE]",
)
RESPONSES = lines(
    {"type": "response.created", "response": {"model": "m-1", "output": []}},
    {"type": "response.output_text.delta", "output_index": 0, "delta": "hi"},
    {"type": "response.output_text.done", "output_index": 0, "text": "hi"},
    {"type": "response.in_progress"},
    {
        "type": "response.completed",
        "response": {"status": "completed", "usage": {"input_tokens": 3, "output_tokens": 2}},
    },
)
BODIES = {anthropic: ANTHROPIC, chat: CHAT, responses: RESPONSES}
WHOLE = pytest.mark.parametrize(("client", "body"), BODIES.items())


@WHOLE
async def test_a_reply(client, body):
    transport = FakeTransport(*body, headers={"request-id": "req_1"})
    events = await events_of(client(transport))
    assert events[0] == MessageStart(request_id="req_1")
    assert TextDelta("hi") in events
    assert isinstance(events[-1], MessageStop)
    reply = assemble(events)
    assert (reply.text, reply.model, reply.usage) == ("hi", "m-1", Usage(3, 2))
    assert transport.open == 0


@WHOLE
async def test_the_body_is_read_to_its_end_so_that_the_connection_can_stay(client, body):
    transport = FakeTransport(*body, b"\n", b"\n")
    await events_of(client(transport))
    assert transport.read == len(body) + 2


async def test_what_anthropic_gets():
    transport = FakeTransport(*ANTHROPIC)
    await events_of(anthropic(transport, headers={"anthropic-beta": "x"}))
    (request,) = transport.requests
    assert request.url == "https://api.anthropic.com/v1/messages"
    assert request.headers["x-api-key"] == SECRET
    assert request.headers["anthropic-version"]
    assert request.headers["anthropic-beta"] == "x"
    assert json.loads(request.body)["max_tokens"] == 50


async def test_what_chat_gets():
    transport = FakeTransport(*CHAT)
    await events_of(chat(transport))
    (request,) = transport.requests
    assert request.url == "https://api.openai.com/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert json.loads(request.body)["stream_options"] == {"include_usage": True}


async def test_what_responses_gets():
    transport = FakeTransport(*RESPONSES)
    await events_of(responses(transport))
    (request,) = transport.requests
    assert request.url == "https://api.openai.com/v1/responses"
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert json.loads(request.body)["store"] is False


@pytest.mark.parametrize(
    ("client", "base_url", "url"),
    [
        (anthropic, "http://h", "http://h/v1/messages"),
        (anthropic, "http://h/v1/", "http://h/v1/messages"),
        (anthropic, "http://h/proxy", "http://h/proxy/v1/messages"),
        (chat, "http://h/v1", "http://h/v1/chat/completions"),
        (chat, "http://h/x/chat/completions?v=1", "http://h/x/chat/completions?v=1"),
        (chat, "http://h/x?v=1", "http://h/x/chat/completions?v=1"),
        (responses, "http://h/v1/", "http://h/v1/responses"),
    ],
)
async def test_base_urls(client, base_url, url):
    transport = FakeTransport(*BODIES[client])
    await events_of(client(transport, base_url=base_url))
    assert transport.requests[0].url == url


async def test_without_a_key_none_is_sent_and_tokens_go_as_bearer():
    transport = FakeTransport(*ANTHROPIC)
    await events_of(anthropic(transport, api_key=""))
    await events_of(anthropic(transport, api_key="", auth_token="t"))
    assert not {"x-api-key", "authorization"} & set(transport.requests[0].headers)
    assert transport.requests[1].headers["authorization"] == "Bearer t"


@CLIENTS
@pytest.mark.parametrize(
    ("status", "kind"), [(401, AuthenticationFailed), (529, ModelUnavailable), (302, ModelError)]
)
async def test_a_status_raises_before_any_event(client, status, kind):
    transport = FakeTransport(b'{"error": {"message"', b': "no"}}', status=status)
    with pytest.raises(kind) as raised:
        await events_of(client(transport))
    assert (raised.value.status, raised.value.model) == (status, "m")
    assert raised.value.provider
    assert transport.open == 0


@CLIENTS
async def test_an_endless_error_body_is_read_in_part(client):
    transport = FakeTransport(*[b"x" * 65536] * 1000, status=500)
    with pytest.raises(ModelUnavailable):
        await events_of(client(transport))
    assert transport.read < 10


@CLIENTS
async def test_an_overflow(client):
    body = b'{"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}'
    with pytest.raises(ContextOverflow) as raised:
        await events_of(client(FakeTransport(body, status=400)))
    assert raised.value.limit_tokens == 8


@WHOLE
async def test_a_cut_stream_ends_without_a_stop(client, body):
    for end in ((), (StreamCut("gone"),)):
        transport = FakeTransport(*(body[:-4] or body[:1]), *end)
        reply = await reply_of(client(transport))
        assert not reply.complete
        assert transport.open == 0


@CLIENTS
async def test_cut_before_anything_came_is_worth_a_retry(client):
    transport = FakeTransport(b": hello\n\n", StreamCut("gone"))
    with pytest.raises(ModelUnavailable):
        await events_of(client(transport))


@CLIENTS
async def test_an_empty_stream_is_left_to_assemble(client):
    assert await events_of(client(FakeTransport(headers={"request-id": "r"}))) == []


@CLIENTS
async def test_a_page_instead_of_a_reply(client):
    with pytest.raises(ProtocolViolation) as raised:
        await events_of(client(FakeTransport(b"<html>Log in</html>")))
    assert raised.value.hint


@WHOLE
async def test_an_error_inside_the_stream_comes_after_what_was_said(client, body):
    error = lines({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
    said = {anthropic: 3, chat: 1, responses: 2}[client]
    transport = FakeTransport(b"".join(body[:said]) + error[0])
    seen: list[AssistantEvent] = []

    async def run() -> None:
        async for event in client(transport).stream(REQUEST):
            seen.append(event)

    with pytest.raises(ModelUnavailable):
        await run()
    assert TextDelta("hi") in seen


@WHOLE
async def test_closing_the_iterator_ends_the_exchange(client, body):
    transport = FakeTransport(*body)
    async with aclosing(client(transport).stream(REQUEST)) as events:
        async for _ in events:
            assert transport.open == 1
            break
    assert transport.open == 0


@CLIENTS
async def test_the_key_never_shows(client: Callable[..., Client]):
    body = f'{{"error": {{"message": "bad key {SECRET}"}}}}'.encode()
    with pytest.raises(ModelError) as raised:
        await events_of(client(FakeTransport(body, status=401)))
    assert SECRET not in f"{raised.value!r} {raised.value} {raised.value.message}"
    assert SECRET not in repr(HttpRequest("http://h", {"x-api-key": SECRET}, b"{}"))


@pytest.mark.parametrize(
    "echo",
    ["Authorization: Basic dXNlcjpwYXNz", "'authorization': 'Bearer sk-ve'", "authorization=sk-ve"],
)
@CLIENTS
async def test_a_header_that_a_server_quotes_is_not_shown(client: Callable[..., Client], echo: str):
    body = json.dumps({"error": {"message": f"cannot read {echo} as a key"}}).encode()
    with pytest.raises(ModelError, match=r"cannot read .+ as a key") as raised:
        await events_of(client(FakeTransport(body, status=400)))
    assert "dXNl" not in str(raised.value)
    assert "sk-ve" not in str(raised.value)


@CLIENTS
@pytest.mark.parametrize("key", ["sk-1\nx: y", "sk-“quoted”"])
async def test_a_key_that_no_header_can_carry(client, key):
    transport = FakeTransport()
    with pytest.raises(ModelError) as raised:
        await events_of(client(transport, api_key=key))
    assert not transport.requests
    assert "sk-" not in str(raised.value)


@CLIENTS
async def test_usage_that_was_never_reported_is_estimated(client):
    body = [line.replace(b'"usage"', b'"usages"') for line in BODIES[client]]
    usage = (await reply_of(client(FakeTransport(*body)))).usage
    assert usage.estimated
    assert usage.input_tokens > 0
    assert usage.output_tokens > 0


@CLIENTS
def test_window_and_cost(client):
    assert client(FakeTransport(), window=8000).window == 8000
    assert client(FakeTransport()).window is None
    assert client(FakeTransport()).cost(Usage(1, 1), "m") is None
