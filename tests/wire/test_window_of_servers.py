"""The clients do not take a full or a cut context for a success."""

from __future__ import annotations

import json

import pytest

from claw.errors import ContextOverflow, ModelError
from claw.types.events import AssistantEvent, Notice
from claw.types.messages import Text, UserMessage
from claw.types.reply import Reply, assemble
from claw.types.request import Request, Sampling
from claw.types.usage import Usage
from tests.wire.test_clients import FakeTransport, anthropic, chat, responses

WINDOW = 1_000
CLIENTS = pytest.mark.parametrize("client", [anthropic, chat, responses])


def body(client: object, text: str, stop: str, sent: int, written: int) -> bytes:
    """A plain reply; ``stop`` is in the words of the dialect."""
    if client is anthropic:
        return _json(
            type="message",
            model="m",
            content=[{"type": "text", "text": text}] if text else [],
            stop_reason=stop,
            usage={"input_tokens": sent, "output_tokens": written},
        )
    if client is chat:
        return _json(
            model="m",
            choices=[{"index": 0, "message": {"content": text}, "finish_reason": stop}],
            usage={"prompt_tokens": sent, "completion_tokens": written},
        )
    content = [{"type": "output_text", "text": text}]
    return _json(
        object="response",
        model="m",
        status="completed",
        output=[{"type": "message", "role": "assistant", "content": content}] if text else [],
        usage={"input_tokens": sent, "output_tokens": written},
    )


def _json(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def asking(size: int) -> Request:
    """``size`` in tokens, about."""
    return Request("", (UserMessage((Text("word" * size),)),), (), Sampling("m"))


async def events_of(
    client, request: Request, *chunks: bytes, window: int | None = WINDOW
) -> list[AssistantEvent]:
    model = client(FakeTransport(*chunks), window=window)
    return [event async for event in model.stream(request)]


async def reply_of(client, request: Request, *chunks: bytes) -> Reply:
    return assemble(await events_of(client, request, *chunks))


@CLIENTS
async def test_more_than_the_window_holds_is_an_overflow(client):
    with pytest.raises(ContextOverflow) as caught:
        await events_of(client, asking(1_400), body(client, "hi", "stop", 1_500, 1))
    assert caught.value.limit_tokens == WINDOW
    assert isinstance(caught.value, ModelError)
    assert caught.value.model == "m"


@CLIENTS
async def test_figures_that_nobody_sent_are_not_believed(client):
    reply = await reply_of(client, asking(40), body(client, "hi", "stop", 1_500, 1))
    assert reply.usage.estimated
    assert reply.usage.context_tokens < 100
    assert reply.text == "hi"


@pytest.mark.parametrize(("client", "stop"), [(anthropic, "max_tokens"), (chat, "length")])
async def test_a_full_window_without_output_is_an_overflow(client, stop: str):
    with pytest.raises(ContextOverflow):
        await events_of(client, asking(40), body(client, "", stop, 995, 0))
    reply = await reply_of(client, asking(40), body(client, "hi", stop, 995, 1))
    assert reply.stop_reason == "max_tokens"


@pytest.mark.parametrize("client", [anthropic, chat])
async def test_the_stop_that_says_so(client):
    stop = "model_context_window_exceeded"
    with pytest.raises(ContextOverflow):
        await events_of(client, asking(40), body(client, "", stop, 10, 0))
    reply = await reply_of(client, asking(40), body(client, "hi", stop, 10, 1))
    assert (reply.text, reply.stop_reason) == ("hi", stop)


@CLIENTS
async def test_a_request_that_was_cut_is_told_of_once(client):
    model = client(FakeTransport(body(client, "hi", "stop", 2_048, 1)))
    told: list[Notice] = []
    for _ in range(2):
        events = [event async for event in model.stream(asking(12_000))]
        assert assemble(events).usage == Usage(2_048, 1)
        told += [event for event in events if isinstance(event, Notice)]
    assert [(notice.code, notice.level) for notice in told] == [("context_truncated", "warning")]
