"""Whoever stops listening hangs up: at any moment, with nothing left behind."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Any

import pytest

from claw.errors import ModelError
from claw.models.anthropic.client import AnthropicClient
from claw.models.http import HttpRequest
from claw.models.local_transport import LocalTransport
from claw.models.transport import HttpxTransport
from claw.types.messages import Text, UserMessage
from claw.types.request import Request, Sampling
from tests.sockets import HEAD, piece, serving, take_request

MOMENTS = 400 if os.environ.get("CLAW_LONG") else 60
SOON = 3.0  # seconds; far more than hanging up takes

REQUEST = Request("", (UserMessage((Text("hello" * 100_000),)),), (), Sampling("m", max_tokens=50))
START = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}}
TEXT = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}}

pytestmark = pytest.mark.parametrize("kind", [LocalTransport, HttpxTransport])


def event(value: object) -> bytes:
    return piece(f"data: {json.dumps(value)}\n\n".encode())


async def in_small_steps(reader, writer, number):
    """An answer in every stage of which there is time to be cancelled."""
    while True:
        await take_request(reader)
        for at in range(0, len(HEAD), 20):
            writer.write(HEAD[at : at + 20])
            await asyncio.sleep(0.002)
        for part in (START, TEXT, TEXT, TEXT, {"type": "message_stop"}):
            writer.write(event(part))
            await writer.drain()
            await asyncio.sleep(0.002)
        await asyncio.sleep(0.01)  # the client waits for the end of the body meanwhile
        writer.write(piece(b""))


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(round(SOON * 500)):
        if holds():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("something is left behind")


async def listen(client: AnthropicClient) -> None:
    async with aclosing(client.stream(REQUEST)) as events:
        async for _ in events:
            pass


def client_for(transport: Any, request: HttpRequest) -> AnthropicClient:
    return AnthropicClient(transport, base_url=request.url.removesuffix("/v1/x"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no list of descriptors here")
async def test_at_any_moment(kind):
    troubles: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: troubles.append(context))
    rng = random.Random(7)
    async with serving(kind, in_small_steps) as (server, transport, request):
        client = client_for(transport, request)
        await listen(client)  # what stays for good is there from now on
        await transport.aclose()
        await until(lambda: server.open == 0)
        before, tasks = descriptors(), asyncio.all_tasks()
        for _ in range(MOMENTS):
            task = asyncio.create_task(listen(client))
            await asyncio.sleep(rng.random() * 0.05)
            is_over = task.done()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            if not is_over:
                assert task.cancelled()
                await until(lambda: server.open == 0)
        await transport.aclose()
        await until(lambda: server.open == 0)
        await until(lambda: descriptors() <= before)
        await until(lambda: not asyncio.all_tasks() - tasks)
    gc.collect()
    await asyncio.sleep(0)
    assert troubles == []


async def test_closing_after_an_event(kind):
    async def answer(reader, writer, number):
        await take_request(reader)
        writer.write(HEAD + event(START) + event(TEXT))
        await reader.readexactly(1)

    async with serving(kind, answer) as (server, transport, request):
        async with aclosing(client_for(transport, request).stream(REQUEST)) as events:
            await anext(events)
        async with asyncio.timeout(SOON):
            await server.hung_up.wait()


async def test_while_the_server_reads_nothing(kind):
    """The request is too large for the sockets' buffers: it is cancelled while it is sent."""

    async def answer(reader, writer, number):
        await asyncio.sleep(0.2)
        while await reader.read(65536):
            pass
        server.hung_up.set()

    big = Request("", (UserMessage((Text("x" * 20_000_000),)),), (), Sampling("m", max_tokens=50))
    async with serving(kind, answer) as (server, transport, request):
        events = client_for(transport, request).stream(big)
        task = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(SOON):
            await server.hung_up.wait()


async def test_two_at_once_do_not_cut_each_other(kind):
    """A connection that is free again may be another's before its last user has let go of it."""

    async def answer(reader, writer, number):
        while True:
            await take_request(reader)
            writer.write(HEAD + piece(b"one") + piece(b""))

    async with serving(kind, answer) as (_, transport, request):
        first = await transport.send(request)
        assert [chunk async for chunk in first.chunks] == [b"one"]
        second = await transport.send(request)
        await first.close()
        assert [chunk async for chunk in second.chunks] == [b"one"]
        await second.close()


async def test_nobody_left_to_answer(kind):
    async def answer(reader, writer, number):
        pass

    async with serving(kind, answer) as (server, transport, request):
        for _ in range(2):
            with pytest.raises(ModelError):
                await listen(client_for(transport, request))
        assert server.connections == 2
