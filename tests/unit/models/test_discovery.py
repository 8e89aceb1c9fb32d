"""Local servers are found, and only such."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from claw.models.discovery import LocalServer, find_local_servers

PATIENT = 5.0  # seconds; a busy machine must not lose a server that is there


def http(body: str, status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return (head + body).encode()


LIST = json.dumps({"object": "list", "data": [{"id": "qwen3"}, {"id": "llama"}, {"odd": 1}, 2]})


@asynccontextmanager
async def answering(answer: bytes | None) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A port where every request gets ``answer``; None for silence."""
    heard: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        if answer is not None:
            writer.write(answer)
            await writer.drain()
        else:
            await reader.read()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], heard


async def test_a_server_and_its_models() -> None:
    async with answering(http(LIST)) as (port, heard):
        found = await find_local_servers([("Usual", port)], timeout=PATIENT)
    assert found == (LocalServer("Usual", f"http://127.0.0.1:{port}/v1", ("qwen3", "llama")),)
    assert heard[0].startswith(b"GET /v1/models HTTP/1.1\r\n")
    assert b"authorization" not in heard[0].lower()


@pytest.mark.parametrize(
    "answer",
    [
        http("<html>a web page</html>"),
        http("[1]"),
        http('{"data": "no list"}'),
        http("{}", "401 Unauthorized"),
        http(LIST, "302 Found"),
        http("[" * 100_000),
        http(" " * 2_000_000 + LIST),
        b"SSH-2.0-OpenSSH\r\n",
        b"",
    ],
    ids=["page", "list", "data", "401", "302", "nested", "long", "ssh", "hangs up"],
)
async def test_other_services_are_none(answer: bytes) -> None:
    async with answering(answer) as (port, _):
        assert await find_local_servers([("Usual", port)], timeout=PATIENT) == ()


async def test_a_silent_one_is_not_waited_for_and_hides_no_other() -> None:
    async with answering(None) as (silent, _), answering(http(LIST)) as (port, _):
        began = asyncio.get_running_loop().time()
        found = await find_local_servers([("Silent", silent), ("Usual", port)], timeout=1.0)
        assert asyncio.get_running_loop().time() - began < 10
    assert [server.name for server in found] == ["Usual"]


async def test_nobody_listens() -> None:
    async with answering(b"") as (port, _):
        pass
    assert await find_local_servers([("Usual", port)]) == ()
