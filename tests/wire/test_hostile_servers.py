"""HTTP as it should not be: whatever a server sends, a client reads it or says what is wrong."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
import zlib

import pytest

from claw.errors import ContextOverflow, ModelError, ModelUnavailable, ProtocolViolation
from claw.models.anthropic.client import AnthropicClient
from claw.models.http import Timeouts
from claw.models.local_transport import LocalTransport
from claw.models.sse import MAX_EVENT
from claw.models.transport import HttpxTransport
from claw.types.messages import Text, UserMessage
from claw.types.reply import Reply, assemble
from claw.types.request import Request, Sampling
from tests.sockets import HEAD, piece, serving, take_request

REQUEST = Request("", (UserMessage((Text("hello"),)),), (), Sampling("m", max_tokens=50))
BODY = b"".join(
    f"data: {json.dumps(event)}\n\n".encode()
    for event in (
        {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "hi"},
        },
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )
)
SECRET = "sk-very-secret"
TOO_LARGE = b'{"error": {"type": "request_too_large", "message": "too large"}}'
CLOSE = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"

pytestmark = pytest.mark.parametrize("kind", [LocalTransport, HttpxTransport])


async def ask(kind, *raw: bytes, request: Request = REQUEST, times: int = 1) -> list[Reply]:
    """The replies to one request after the other, each connection answered with ``raw``."""

    async def answer(reader, writer, number):
        await take_request(reader)
        for part in raw:
            writer.write(part)
            await writer.drain()

    async with serving(kind, answer, Timeouts(first_byte=20, idle=20)) as (_, transport, where):
        client = AnthropicClient(
            transport, base_url=where.url.removesuffix("/v1/x"), api_key=SECRET
        )
        return [assemble([e async for e in client.stream(request)]) for _ in range(times)]


def with_length(body: bytes, length: int, more: str = "") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{more}\r\n".encode() + body


GOOD = {
    "until the connection closes": CLOSE + BODY,
    "of HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\n" + BODY,
    "in odd chunks": HEAD + b"".join(piece(BODY[i : i + 3]) for i in range(0, 900, 3)),
    "with a length": with_length(BODY, len(BODY)),
    "after early hints": b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 3 + CLOSE + BODY,
    "after 100 Continue": b"HTTP/1.1 100 Continue\r\n\r\n" + CLOSE + BODY,
    "in gzip": with_length(
        gzip.compress(BODY), len(gzip.compress(BODY)), "Content-Encoding: gzip\r\n"
    ),
    "in deflate": with_length(
        zlib.compress(BODY), len(zlib.compress(BODY)), "Content-Encoding: deflate\r\n"
    ),
    "cut after its end": HEAD + piece(BODY),
    "longer than its length": with_length(BODY + b"HTTP/1.1 500 No\r\n\r\n", len(BODY)),
}


@pytest.mark.parametrize("name", GOOD)
async def test_a_body(kind, name):
    (reply,) = await ask(kind, GOOD[name])
    assert (reply.complete, reply.text) == (True, "hi")


CUT = {
    "in a chunk": HEAD + piece(BODY)[:-60],
    "between chunks": HEAD + piece(BODY[:-40]),
    "shorter than its length": with_length(BODY[:-40], len(BODY)),
    "by too small a length": with_length(BODY, len(BODY) - 100),
    "with a bad chunk length": HEAD + piece(BODY[:-100]) + b"zz\r\n",
    "in gzip": CLOSE.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
    + gzip.compress(BODY[:-100])[:-8],
}


@pytest.mark.parametrize("name", CUT)
async def test_a_cut_body(kind, name):
    (reply,) = await ask(kind, CUT[name])
    assert not reply.complete
    assert reply.text == "hi"


async def test_damaged_gzip_before_the_first_event(kind):
    with pytest.raises(ModelUnavailable, match="damaged"):
        await ask(kind, with_length(BODY, len(BODY), "Content-Encoding: gzip\r\n"))


async def test_a_compression_that_nobody_reads(kind):
    with pytest.raises(ModelError, match="`br`") as raised:
        await ask(kind, with_length(BODY, len(BODY), "Content-Encoding: br\r\n"))
    assert raised.value.hint


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("to", ["http://other.invalid/v1/messages?k=secret", "/login", ""])
async def test_redirects_are_not_followed(kind, status, to):
    head = f"HTTP/1.1 {status} Moved\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"
    with pytest.raises(ModelError, match="redirects to") as raised:
        await ask(kind, head.encode())
    assert raised.value.status == status
    assert raised.value.advice == "never"
    assert "base URL" in raised.value.hint
    assert "secret" not in raised.value.message


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\n" + b"x-a: b\r\n" * 200_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nx-a: " + b"b" * 2_000_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x15\x03\x01\x00\x02\x02\x28",
        b"\x00" * 300_000,
        b"",
    ],
)
async def test_no_head_of_http(kind, head):
    with pytest.raises(ModelUnavailable):
        await ask(kind, head)


async def test_who_hangs_up_is_told_in_plain_words(kind):
    with pytest.raises(ModelUnavailable, match=r"(?i)server (closed|disconnected)") as raised:
        await ask(kind, b"")
    assert "state=" not in raised.value.message


@pytest.mark.parametrize("lingers", [True, False])
async def test_refused_before_the_request_was_read(kind, lingers):
    """As nginx does it, which then reads the rest for a while, or by closing at once."""
    if kind is HttpxTransport and not lingers:
        pytest.skip("httpcore reads nothing while it writes, and a reset takes the answer away")

    async def answer(reader, writer, number):
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 413 Too Large\r\nContent-Length: {len(TOO_LARGE)}\r\n"
        writer.write(head.encode() + b"Connection: close\r\n\r\n" + TOO_LARGE)
        await writer.drain()
        await asyncio.sleep(0.2)
        while lingers and await reader.read(65536):
            pass

    big = Request("", (UserMessage((Text("x" * 5_000_000),)),), (), Sampling("m", max_tokens=50))
    async with serving(kind, answer) as (_, transport, where):
        client = AnthropicClient(transport, base_url=where.url.removesuffix("/v1/x"))
        with pytest.raises(ContextOverflow, match="too large"):
            async for _event in client.stream(big):
                pass


async def test_what_follows_an_answer_is_not_the_next_one(kind):
    """A server that sends more than it announced cannot answer the next request by that."""
    fake = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"
    replies = await ask(kind, with_length(BODY + fake, len(BODY)), times=2)
    assert [reply.text for reply in replies] == ["hi", "hi"]


@pytest.mark.parametrize("start", [b"data: ", b"", b": ", b"{"])
async def test_one_endless_event(kind, start):
    """50 MB without an end are refused by name, and are never held in memory at once."""
    filling = b"x" if start != b"{" else b" "
    chunk = piece(filling * 500_000)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolViolation, match="more than 32 MiB"):
            await ask(kind, HEAD, piece(start or b"x"), *[chunk] * 100)
        assert tracemalloc.get_traced_memory()[1] < 4 * MAX_EVENT
    finally:
        tracemalloc.stop()


async def test_many_empty_lines_before_the_reply(kind):
    (reply,) = await ask(kind, HEAD, *[piece(b"\n" * 500_000)] * 20, piece(BODY))
    assert reply.text == "hi"


async def test_an_error_of_5_mb(kind):
    head = b"HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\n"
    with pytest.raises(ModelUnavailable) as raised:
        await ask(kind, head, b"<html><title>Busy</title>", *[b"x" * 1_000_000] * 5)
    assert raised.value.status == 503
    assert len(raised.value.message) < 1000
