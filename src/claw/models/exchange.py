"""One request and its reply over a transport: what every dialect's client does alike."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import msgspec

from claw.errors import ModelError, ModelUnavailable, RequestRejected
from claw.models.address import parse_address
from claw.models.classify import MAX_BODY, classify_error
from claw.models.dialect import Decoder
from claw.models.http import HttpRequest, HttpResponse, StreamCut, Transport
from claw.types.events import AssistantEvent, MessageStart, WireChunk

__all__ = ["Peer", "endpoint", "exchange", "header_value"]

DRAIN = 0.25
"""Seconds to wait for the body's end after the dialect's, so that the connection can stay."""

SHORTEST_SECRET = 8
"""Characters; to take out a shorter one would mangle words and hide nothing."""

ECHOED = r"(?i)(\bauthorization['\"]?\s*[:=]\s*['\"]?(?:(?:basic|bearer) )?)[^\s'\",;]+"
"""The header as servers quote it, with the login of a URL in it, or the key cut short."""


class Peer(msgspec.Struct, frozen=True):
    """Who is asked; ``secret`` never shows in an error, nor here."""

    provider: str
    model: str
    secret: str = ""

    def __repr__(self) -> str:
        return f"Peer({self.provider!r}, {self.model!r})"

    def sign(self, error: ModelError, request_id: str) -> ModelError:
        """The same error with the peer's name on it and without the key."""
        error.provider = error.provider or self.provider
        error.model = error.model or self.model
        error.request_id = error.request_id or request_id
        message = re.sub(ECHOED, r"\1***", error.message)
        if len(self.secret) >= SHORTEST_SECRET:
            message = message.replace(self.secret, "***")
        if message != error.message:
            error.message = message
            error.args = (message,)
        return error


def endpoint(base_url: str, path: str) -> str:
    """``base_url`` with ``path`` behind it, once, and before its query."""
    base, question, query = base_url.partition("?")
    base = base.rstrip("/")
    if not base.endswith(path):
        base += path
    return base + question + query


def header_value(text: str) -> str:
    """Raises ``ModelError`` for what no header can carry; does not quote it."""
    text = text.strip()
    if not text.isascii() or not text.isprintable():
        raise ModelError(
            "the API key holds characters that no HTTP header can carry",
            hint="Copy the key again, without quotes, spaces or line breaks.",
        )
    return text


async def exchange(
    transport: Transport, request: HttpRequest, decoder: Decoder, peer: Peer, *, record: str = ""
) -> AsyncGenerator[AssistantEvent, None]:
    """Yield the events of the reply; raise only ``ModelError``.

    A body that breaks off after its first event ends without ``MessageStop``. Where
    ``record`` names a dialect, the bytes of the body come as well, to its very end, each
    chunk before its events: unpacked, if the server had compressed them.
    """
    request_id = ""
    try:
        response = await transport.send(request)
        try:
            request_id = _request_id(response)
            if 300 <= response.status < 400:
                raise _redirected(response)
            if response.status >= 400:
                body = await _error_body(response)
                raise classify_error(response.status, body, response.headers)
            started = False
            async with aclosing(_events(response, decoder, record)) as events:
                async for event in events:
                    if not started and not isinstance(event, WireChunk):
                        started = True
                        if request_id:
                            yield MessageStart(request_id=request_id)
                    yield event
            if decoder.done:
                for chunk in await _drain(response, keep=bool(record)):
                    yield WireChunk(chunk)
        finally:
            await response.close()
    except ModelError as error:
        peer.sign(error, request_id)
        raise


async def _events(
    response: HttpResponse, decoder: Decoder, record: str
) -> AsyncGenerator[AssistantEvent, None]:
    loop = asyncio.get_running_loop()
    started = False
    last = loop.time()
    if record:
        yield WireChunk(b"", record)
    try:
        async for chunk in response.chunks:
            if record:
                yield WireChunk(chunk)
            for event in decoder.feed(chunk):
                started = True
                yield event
                last = loop.time()  # now: the consumer's time is not the server's
            if decoder.done:
                return
            if loop.time() - last > response.no_progress:
                raise StreamCut(f"only life signs came for {response.no_progress:g} s")
    except StreamCut as cut:
        if not started:
            raise ModelUnavailable(
                f"the reply broke off before it began: {cut}",
                hint="Try again, a smaller prompt, or another model.",
            ) from cut
    for event in decoder.end():
        yield event


def _redirected(response: HttpResponse) -> ModelError:
    """Not followed: the key is for the configured server, and a POST would lose its body."""
    try:
        place = parse_address(response.headers.get("location", "")).place
    except ValueError:
        place = "another address"
    return RequestRejected(
        f"the server redirects to {place} (status {response.status})",
        hint="Set the base URL to where the API really is.",
        status=response.status,
    )


async def _error_body(response: HttpResponse) -> bytes:
    parts: list[bytes] = []
    size = 0
    with suppress(StreamCut):  # half an explanation is better than none
        async for chunk in response.chunks:
            parts.append(chunk)
            size += len(chunk)
            if size >= MAX_BODY:
                break
    return b"".join(parts)


async def _drain(response: HttpResponse, *, keep: bool) -> list[bytes]:
    rest: list[bytes] = []
    with suppress(StreamCut, TimeoutError):
        async with asyncio.timeout(DRAIN):
            async for chunk in response.chunks:
                if keep:
                    rest.append(chunk)
    return rest


def _request_id(response: HttpResponse) -> str:
    for name in ("request-id", "x-request-id", "x-generation-id"):
        if value := response.headers.get(name):
            return value
    return ""
