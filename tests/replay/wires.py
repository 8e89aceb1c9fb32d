"""Bodies of replies in the words of each dialect, and sessions that record them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from claw.models.anthropic.client import AnthropicClient
from claw.models.http import Transport
from claw.models.openai_chat.client import OpenAIChatClient
from claw.models.openai_responses.client import OpenAIResponsesClient
from claw.models.scripted import playback
from claw.models.transport import HttpTransport
from claw.ports import ModelClient
from claw.testing import Harness, ServerReply, StrictServer, answers
from claw.testing.strict_server import HttpReply
from claw.testing.wire import anthropic_stream, chat_stream, responses_stream
from claw.types.entries import ReplyReceived
from claw.types.reply import Reply
from tests.replay.recordings import journal

DIALECTS = ("anthropic", "openai-chat", "openai-responses")
STREAM = {"content-type": "text/event-stream"}


def body_of(dialect: str, reply: Reply, number: int = 1) -> bytes:
    """The stream, with every character as it is: JSON escapes none."""
    events = playback(reply, number, 9).events
    if dialect == "anthropic":
        stream = anthropic_stream(events, number, "m", 9)
    elif dialect == "openai-responses":
        stream = responses_stream(events, number, "m")
    else:
        stream = chat_stream(events, number, "m", with_usage=True)
    lines = (b"".join(stream.per_event) + stream.end).decode().split("\n")
    return "\n".join(map(_unescaped, lines)).encode()


def _unescaped(line: str) -> str:
    head, brace, rest = line.partition("{")
    return f"{head}{json.dumps(json.loads(brace + rest), ensure_ascii=False)}" if brace else line


def streamed(body: bytes, **headers: str) -> HttpReply:
    """An answer with this body."""
    return answers(200, body, {**STREAM, **headers})


def client(dialect: str, transport: Transport, url: str, **options: Any) -> ModelClient:
    if dialect == "anthropic":
        return AnthropicClient(transport, base_url=url, **options)
    kind = OpenAIChatClient if dialect == "openai-chat" else OpenAIResponsesClient
    return kind(transport, base_url=f"{url}/v1", **options)


@asynccontextmanager
async def recording(
    folder: Path,
    dialect: str,
    replies: Sequence[ServerReply],
    *,
    record: bool = True,
    **options: Any,
) -> AsyncIterator[Harness]:
    """A session with a server that gives these replies."""
    transport = HttpTransport()
    try:
        async with StrictServer(replies) as server:
            model = client(dialect, transport, server.base_url, record_wire=record)
            async with Harness(folder, model, **options) as run:
                yield run
    finally:
        await transport.aclose()


def replies_in(run: Harness) -> list[ReplyReceived]:
    return [entry for entry in run.entries if isinstance(entry, ReplyReceived)]


def blobs_of(run: Harness) -> Path:
    return journal(run).with_suffix(".blobs")


def kept(run: Harness, reply: ReplyReceived) -> bytes:
    """The bytes of a reply."""
    return (blobs_of(run) / reply.wire).read_bytes()
