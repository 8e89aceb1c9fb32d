"""The real transport against raw sockets of this machine."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from claw.errors import ModelError, ModelUnavailable
from claw.models.http import HttpRequest, StreamCut, Timeouts, Transport
from claw.models.transport import HttpTransport, HttpxTransport
from tests import sockets
from tests.sockets import HEAD, Answer, Server, piece, take_request


class Chosen:
    """What the tests run on: each of them runs once on either."""

    kind: type[HttpTransport] | type[HttpxTransport] = HttpTransport


@pytest.fixture(autouse=True, params=[HttpTransport, HttpxTransport])
def _each_transport(request):
    Chosen.kind = request.param


@asynccontextmanager
async def serving(
    answer: Answer, timeouts: Timeouts | None = None
) -> AsyncIterator[tuple[Server, Transport, HttpRequest]]:
    async with sockets.serving(Chosen.kind, answer, timeouts) as served:
        yield served


async def body_of(transport: Transport, request: HttpRequest) -> bytes:
    response = await transport.send(request)
    try:
        return b"".join([chunk async for chunk in response.chunks])
    finally:
        await response.close()


async def answer_all(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
) -> None:
    while True:
        await take_request(reader)
        writer.write(HEAD + piece(b"one ") + piece(b"two") + piece(b""))


async def test_status_headers_and_body():
    async with serving(answer_all) as (_, transport, request):
        response = await transport.send(request)
        assert (response.status, response.headers["x-request-id"]) == (200, "r")
        assert b"".join([chunk async for chunk in response.chunks]) == b"one two"
        await response.close()


async def test_one_connection_serves_many_requests():
    async with serving(answer_all) as (server, transport, request):
        for _ in range(3):
            assert await body_of(transport, request) == b"one two"
        assert server.connections == 1


async def test_chunks_arrive_as_they_come():
    go = asyncio.Event()

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        await take_request(reader)
        writer.write(HEAD + piece(b"first"))
        await go.wait()
        writer.write(piece(b"second") + piece(b""))
        await writer.drain()

    async with serving(answer) as (_, transport, request):
        response = await transport.send(request)
        assert await anext(aiter(response.chunks)) == b"first"
        go.set()
        assert [chunk async for chunk in response.chunks] == [b"second"]
        await response.close()


async def test_a_dead_kept_connection_is_replaced_once():
    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        await take_request(reader)
        writer.write(HEAD + piece(b"fine") + piece(b""))
        if number == 1:
            await take_request(reader)  # and hang up without a byte

    async with serving(answer) as (server, transport, request):
        assert await body_of(transport, request) == b"fine"
        assert await body_of(transport, request) == b"fine"
        assert server.connections == 2


async def test_a_new_connection_that_dies_is_not_repeated():
    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        await take_request(reader)

    async with serving(answer) as (server, transport, request):
        with pytest.raises(ModelUnavailable):
            await transport.send(request)
        assert server.connections == 1


async def test_a_cut_body():
    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        await take_request(reader)
        writer.write(HEAD + piece(b"half"))

    async with serving(answer) as (_, transport, request):
        response = await transport.send(request)
        chunks = aiter(response.chunks)
        assert await anext(chunks) == b"half"
        with pytest.raises(StreamCut):
            await anext(chunks)
        await response.close()


async def test_silence():
    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        await take_request(reader)
        if number == 1:
            writer.write(HEAD + piece(b"half"))
        await reader.readexactly(1)

    async with serving(answer, Timeouts(first_byte=0.2, idle=0.1)) as (_, transport, request):
        with pytest.raises(StreamCut):
            await body_of(transport, request)
        with pytest.raises(ModelUnavailable, match="did not answer"):
            await transport.send(request)


async def test_cancelling_hangs_up():
    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        await take_request(reader)
        writer.write(HEAD + piece(b"half"))
        await reader.readexactly(1)

    async with serving(answer) as (server, transport, request):
        task = asyncio.create_task(body_of(transport, request))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(2):
            await server.hung_up.wait()


async def test_nobody_there():
    transport = Chosen.kind()
    with pytest.raises(ModelUnavailable) as raised:
        await transport.send(HttpRequest("http://127.0.0.1:1/", {}, b""))
    assert raised.value.hint
    await transport.aclose()


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "nonsense", "http://[::"])
async def test_no_web_address(url):
    transport = Chosen.kind()
    with pytest.raises(ModelError):
        await transport.send(HttpRequest(url, {}, b""))
    await transport.aclose()


async def test_a_header_with_a_line_break_does_not_show():
    async with serving(answer_all) as (_, transport, request):
        bad = HttpRequest(request.url, {"x-api-key": "sk-secret\nx"}, b"")
        with pytest.raises(ModelError) as raised:
            await transport.send(bad)
        assert "secret" not in str(raised.value)
        assert raised.value.__cause__ is None


async def test_this_machine_is_reached_without_the_proxy(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with serving(answer_all) as (_, transport, request):
        assert await body_of(transport, request) == b"one two"


async def test_other_hosts_are_reached_through_the_proxy(monkeypatch):
    async with serving(answer_all) as (server, transport, request):
        monkeypatch.setenv("HTTP_PROXY", request.url.removesuffix("/v1/x"))
        elsewhere = HttpRequest("http://model.invalid/v1/x", {}, b"{}")
        assert await body_of(transport, elsewhere) == b"one two"
        assert server.connections == 1


def test_importing_the_registry_brings_no_http_library():
    code = (
        "import sys, claw.models.registry\n"
        "heavy = {'httpx2', 'httpcore2', 'anyio', 'h11', 'pydantic', 'difflib', 'email',"
        " 'urllib.request', 'importlib.metadata', 'concurrent.futures.thread', 'tempfile'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
