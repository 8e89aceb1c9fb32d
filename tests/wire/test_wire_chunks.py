"""A client that records shows the bytes of a body, and says nothing else than one that does not."""

from __future__ import annotations

from typing import Any

import pytest

from claw.errors import ModelUnavailable, ProtocolViolation
from claw.models.decode import decode_again
from claw.models.dialect import SPOKEN
from claw.models.http import StreamCut
from claw.models.openai_chat.schema_client import SchemaChatClient
from claw.types.events import AssistantEvent, MessageStart, WireChunk
from claw.types.reply import assemble
from tests.wire.test_clients import (
    CLIENTS,
    REQUEST,
    WHOLE,
    Client,
    FakeTransport,
    anthropic,
    chat,
    events_of,
    responses,
)

NAMES = {anthropic: SPOKEN[0], chat: SPOKEN[1], responses: SPOKEN[2]}


def chunks_in(events: list[AssistantEvent]) -> list[WireChunk]:
    return [event for event in events if isinstance(event, WireChunk)]


async def listen(client: Client, seen: list[AssistantEvent]) -> None:
    async for event in client.stream(REQUEST):
        seen.append(event)


@WHOLE
async def test_every_chunk_comes_before_its_events(client: Any, body: list[bytes]):
    events = await events_of(client(FakeTransport(*body, headers={"request-id": "r"})))
    recorded = await events_of(
        client(FakeTransport(*body, headers={"request-id": "r"}), record_wire=True)
    )
    assert not chunks_in(events)
    assert [event for event in recorded if not isinstance(event, WireChunk)] == events
    begin, *rest = chunks_in(recorded)
    assert begin == WireChunk(b"", NAMES[client])
    assert rest == [WireChunk(chunk) for chunk in body]
    assert recorded[:3] == [begin, rest[0], MessageStart(request_id="r")]
    assert assemble(recorded) == assemble(events)


@WHOLE
async def test_what_follows_the_end_is_shown_too(client: Any, body: list[bytes]):
    transport = FakeTransport(*body, b"\n", b": bye\n", StreamCut("gone"))
    events = await events_of(client(transport, record_wire=True))
    assert chunks_in(events)[-2:] == [WireChunk(b"\n"), WireChunk(b": bye\n")]
    assert assemble(events).complete


@CLIENTS
async def test_bytes_without_an_event_are_no_beginning(client: Any):
    transport = FakeTransport(b": hello\n\n", StreamCut("gone"))
    seen: list[AssistantEvent] = []
    with pytest.raises(ModelUnavailable):
        await listen(client(transport, record_wire=True), seen)
    assert seen == [WireChunk(b"", NAMES[client]), WireChunk(b": hello\n\n")]
    with pytest.raises(ProtocolViolation):
        assemble(seen)


@CLIENTS
async def test_an_error_status_has_no_wire(client: Any):
    seen: list[AssistantEvent] = []
    with pytest.raises(ModelUnavailable):
        await listen(client(FakeTransport(b"{}", status=503), record_wire=True), seen)
    assert not seen


@WHOLE
async def test_the_bytes_give_the_same_reply_again(client: Any, body: list[bytes]):
    events = await events_of(client(FakeTransport(*body), record_wire=True))
    begin, *rest = chunks_in(events)
    again = [*decode_again(begin.dialect, (chunk.data for chunk in rest), REQUEST)]
    assert again == [event for event in events if not isinstance(event, WireChunk)]


async def test_replies_that_a_schema_binds_have_a_name_of_their_own():
    client = SchemaChatClient(FakeTransport(), record_wire=True)
    events = [event async for event in client.stream(REQUEST)]
    assert events == [WireChunk(b"", "openai-chat/json_schema")]
    assert "openai-chat/json_schema" in SPOKEN
