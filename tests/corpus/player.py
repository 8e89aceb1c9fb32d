"""A server on loopback that plays recorded exchanges, and the real clients that ask it."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from claw.models.http import Transport
from claw.models.registry import Profile, build, resolve
from claw.ports import ModelClient
from tests.corpus.recorded import Case

__all__ = ["client_for", "playing"]


def client_for(case: Case, base_url: str, transport: Transport) -> ModelClient:
    choice = resolve("here/m", env={}, profiles={"here": Profile(case.dialect, base_url)})
    return build(choice, transport=transport)


@asynccontextmanager
async def playing(recorded: Sequence[Case]) -> AsyncIterator[str]:
    """Give the address of a server whose ``/whole/NUMBER`` and ``/split/NUMBER`` are base URLs.

    Whoever connects has to close its connections before it leaves.
    """

    serving: list[asyncio.Task[object] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.current_task())
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: *(\d+)", head)
                await reader.readexactly(int(length[1]) if length else 0)
                _, manner, number, *_ = head.split(b" ")[1].decode().split("/")
                await _answer(recorded[int(number)], manner == "split", writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await asyncio.wait_for(asyncio.gather(*filter(None, serving)), 10)  # clients have left


async def _answer(case: Case, split: bool, writer: asyncio.StreamWriter) -> None:
    headers = {**case.headers, "transfer-encoding": "chunked"}
    lines = [f"HTTP/1.1 {case.status} X", *(f"{k}: {v}" for k, v in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    for piece in _pieces(case) if split else [case.body]:
        if piece:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0)  # let the client read it
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def _pieces(case: Case) -> list[bytes]:
    """The body cut at up to twenty places, always the same ones."""
    size = len(case.body)
    cuts = sorted(random.Random(case.name).sample(range(1, size), min(20, max(0, size - 1))))
    return [case.body[a:b] for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
