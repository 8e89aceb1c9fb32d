"""Servers of raw bytes on this machine, for what no well-behaved server does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from claw.models.http import HttpRequest, Timeouts, Transport
from claw.models.local_transport import LocalTransport
from claw.models.transport import HttpTransport, HttpxTransport

__all__ = ["HEAD", "Answer", "Server", "piece", "serving", "take_request"]

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]
Kind = type[HttpTransport] | type[HttpxTransport] | type[LocalTransport]

HEAD = b"HTTP/1.1 200 OK\r\nX-Request-Id: r\r\nTransfer-Encoding: chunked\r\n\r\n"


def piece(data: bytes) -> bytes:
    """A chunk of a chunked body; the empty one ends it."""
    return b"%x\r\n%s\r\n" % (len(data), data)


async def take_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return head + await reader.readexactly(length)


class Server:
    """Gives each connection, by its number, to ``answer``; closes it when that returns.

    ``hung_up`` is set where the client left before that.
    """

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.connections = 0
        self.open = 0
        self.hung_up = asyncio.Event()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            await self.answer(reader, writer, self.connections)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.hung_up.set()
        finally:
            self.open -= 1
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@asynccontextmanager
async def serving(
    kind: Kind, answer: Answer, timeouts: Timeouts | None = None
) -> AsyncIterator[tuple[Server, Transport, HttpRequest]]:
    """A server, a transport of this kind, and a request for it."""
    server = Server(answer)
    listener = await asyncio.start_server(server.handle, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    transport = kind(timeouts or Timeouts())
    request = HttpRequest(f"http://127.0.0.1:{port}/v1/x", {"x-a": "b"}, b"{}")
    try:
        yield server, transport, request
    finally:
        await transport.aclose()
        listener.close()
        await listener.wait_closed()
        await asyncio.sleep(0)
