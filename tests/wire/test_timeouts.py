"""How long a client waits for what, over real sockets; and what the user is told.

Limits are small and servers slow by a multiple of them: only what is awaited in vain
takes time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from claw.errors import ModelUnavailable
from claw.models.anthropic.client import AnthropicClient
from claw.models.http import Timeouts
from claw.models.local_transport import LocalTransport
from claw.models.transport import HttpxTransport
from claw.types.events import AssistantEvent, TextDelta
from claw.types.messages import Text, UserMessage
from claw.types.reply import Reply, assemble
from claw.types.request import Request, Sampling
from tests.sockets import HEAD, Answer, Kind, Server, piece, serving, take_request

REQUEST = Request("", (UserMessage((Text("hello"),)),), (), Sampling("m", max_tokens=50))
START = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}}
TEXT = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}}
STOP = {"type": "message_stop"}
PINGS = [b": keepalive\n\n", b'event: ping\ndata: {"type": "ping"}\n\n', b"x", b"\n"]

LONG = 30.0  # a limit that is not reached

pytestmark = pytest.mark.parametrize("kind", [LocalTransport, HttpxTransport])


def event(value: object) -> bytes:
    return piece(f"data: {json.dumps(value)}\n\n".encode())


async def until_hung_up(reader: asyncio.StreamReader) -> None:
    await reader.readexactly(1)


@asynccontextmanager
async def asking(
    kind: Kind, answer: Answer, timeouts: Timeouts
) -> AsyncIterator[tuple[Server, AnthropicClient]]:
    async with serving(kind, answer, timeouts) as (server, transport, request):
        yield server, AnthropicClient(transport, base_url=request.url.removesuffix("/v1/x"))


async def reply_of(client: AnthropicClient) -> Reply:
    return assemble([event async for event in client.stream(REQUEST)])


async def test_no_head(kind):
    async def answer(reader, writer, number):
        await take_request(reader)
        await until_hung_up(reader)

    async with asking(kind, answer, Timeouts(first_byte=0.1)) as (server, client):
        with pytest.raises(ModelUnavailable, match=r"did not answer within 0\.1 s") as raised:
            await reply_of(client)
        assert raised.value.hint
        async with asyncio.timeout(5):
            await server.hung_up.wait()


async def test_a_head_a_byte_at_a_time(kind):
    async def answer(reader, writer, number):
        await take_request(reader)
        for at in range(len(HEAD)):
            writer.write(HEAD[at : at + 1])
            await asyncio.sleep(0.05)
        await until_hung_up(reader)

    async with asking(kind, answer, Timeouts(first_byte=0.2)) as (_, client):
        with pytest.raises(ModelUnavailable, match="did not answer"):
            await reply_of(client)


async def test_the_head_comes_before_the_prompt_is_read(kind):
    async def answer(reader, writer, number):
        await take_request(reader)
        writer.write(HEAD)
        await asyncio.sleep(0.3)
        writer.write(event(START) + event(TEXT) + event(STOP) + piece(b""))
        await writer.drain()

    async with asking(kind, answer, Timeouts(first_byte=LONG, idle=0.1)) as (_, client):
        assert (await reply_of(client)).text == "hi"


async def test_a_head_and_then_nothing(kind):
    async def answer(reader, writer, number):
        await take_request(reader)
        writer.write(HEAD)
        await until_hung_up(reader)

    async with asking(kind, answer, Timeouts(first_byte=0.1)) as (_, client):
        with pytest.raises(ModelUnavailable, match=r"nothing came for 0\.1 s") as raised:
            await reply_of(client)
        assert raised.value.hint


@pytest.mark.parametrize("said", [[START], [START, TEXT]])
async def test_silence_after_the_beginning(kind, said):
    async def answer(reader, writer, number):
        await take_request(reader)
        writer.write(HEAD + b"".join(map(event, said)))
        await until_hung_up(reader)

    async with asking(kind, answer, Timeouts(idle=0.1)) as (server, client):
        reply = await reply_of(client)
        assert not reply.complete
        assert reply.text == ("hi" if TEXT in said else "")
        async with asyncio.timeout(5):
            await server.hung_up.wait()


@pytest.mark.parametrize("ping", PINGS)
@pytest.mark.parametrize("begins", [False, True])
async def test_nothing_but_life_signs(kind, ping, begins):
    async def answer(reader, writer, number):
        await take_request(reader)
        writer.write(HEAD + (event(START) + event(TEXT) if begins else b""))
        while True:
            writer.write(piece(ping))
            await writer.drain()
            await asyncio.sleep(0.02)

    limits = Timeouts(first_byte=LONG, idle=LONG, no_progress=0.2)
    async with asking(kind, answer, limits) as (server, client):
        if begins:
            reply = await reply_of(client)
            assert (reply.complete, reply.text) == (False, "hi")
        else:
            with pytest.raises(ModelUnavailable, match=r"only life signs came for 0\.2 s"):
                await reply_of(client)
        async with asyncio.timeout(5):
            await server.hung_up.wait()


async def test_life_signs_carry_a_slow_reply_over_the_idle_limit(kind):
    async def answer(reader, writer, number):
        await take_request(reader)
        writer.write(HEAD)
        for part in (START, TEXT, STOP):
            for _ in range(20):
                writer.write(piece(b": keepalive\n\n"))
                await asyncio.sleep(0.02)
            writer.write(event(part))
        writer.write(piece(b""))
        await writer.drain()

    limits = Timeouts(first_byte=0.3, idle=0.3, no_progress=LONG)
    async with asking(kind, answer, limits) as (_, client):
        reply = await reply_of(client)
        assert (reply.complete, reply.text) == (True, "hi")


async def test_framing_without_end_is_silence(kind):
    """The length of the next chunk, a digit at a time: no byte of a body ever comes."""

    async def answer(reader, writer, number):
        await take_request(reader)
        writer.write(HEAD + event(START) + b"1;")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with asking(kind, answer, Timeouts(idle=0.2)) as (server, client):
        assert not (await reply_of(client)).complete
        async with asyncio.timeout(5):
            await server.hung_up.wait()


async def test_the_time_of_the_consumer_does_not_count(kind):
    async def answer(reader, writer, number):
        await take_request(reader)
        writer.write(HEAD)
        for part in (START, TEXT, TEXT):
            writer.write(event(part) + piece(b": keepalive\n\n"))
            await asyncio.sleep(0.02)
        writer.write(event(STOP) + piece(b""))
        await writer.drain()

    limits = Timeouts(first_byte=0.3, idle=0.3, no_progress=0.3)
    async with asking(kind, answer, limits) as (_, client):
        seen: list[AssistantEvent] = []
        async for one in client.stream(REQUEST):
            seen.append(one)
            if isinstance(one, TextDelta):
                await asyncio.sleep(0.6)
        reply = assemble(seen)
        assert (reply.complete, reply.text) == (True, "hihi")
