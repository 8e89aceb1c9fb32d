"""HTTP as the clients see it: a request, a response, and what goes wrong between them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Literal, Protocol

import msgspec

from claw.errors import ModelError, ModelUnavailable
from claw.models.address import Address, is_loopback

__all__ = [
    "HttpRequest",
    "HttpResponse",
    "StreamCut",
    "Timeouts",
    "Transport",
    "no_answer",
    "unpacker",
    "unreachable",
]

DEEPEST_CAUSE = 10
LARGEST_PIECE = 1024 * 1024


class StreamCut(Exception):
    """The body ended before its end, or fell silent for too long."""


class HttpRequest(msgspec.Struct, frozen=True):
    """Headers and body stay out of ``repr``: they hold the key and the prompt."""

    url: str
    headers: Mapping[str, str]
    body: bytes = b""
    method: Literal["GET", "POST"] = "POST"

    def __repr__(self) -> str:
        return f"HttpRequest({self.url!r}, {len(self.body)} bytes)"


class HttpResponse(msgspec.Struct, frozen=True):
    """``headers`` have names in lower case. Whoever got it calls ``close``, whatever happened.

    ``no_progress`` as in ``Timeouts``: only who reads the body can tell life signs.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]
    close: Callable[[], Awaitable[None]]
    no_progress: float = 600.0


class Transport(Protocol):
    async def send(self, request: HttpRequest) -> HttpResponse:
        """Raises ``ModelError`` where no answer came; what the status means is the caller's."""

    async def aclose(self) -> None: ...


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds; there is no total.

    ``first_byte`` is for the head of the answer, and again for the first of its body:
    many servers send the head before they read the prompt. ``idle`` is the longest
    silence after that, and ``no_progress`` the longest time in which nothing but life
    signs come. What the reader of a body needs for itself counts nowhere.
    """

    connect: float = 10.0
    first_byte: float = 600.0
    idle: float = 180.0
    no_progress: float = 600.0


def no_answer(address: Address, seconds: float) -> ModelError:
    return ModelUnavailable(
        f"{address.place} did not answer within {seconds:g} s",
        hint="It took the request and sent nothing: try again, a smaller prompt, or another model.",
    )


def unpacker(headers: Mapping[str, str]) -> Callable[[bytes], Iterator[bytes]]:
    """What makes plain bytes of a body's, in pieces of at most ``LARGEST_PIECE``.

    Nobody is asked to compress; some proxies do it all the same. Raises ``ModelError``
    for a coding that is neither gzip nor deflate; the result raises ``StreamCut``.
    """
    coding = headers.get("content-encoding", "").strip().lower()
    if coding in ("", "identity"):
        return _plain
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise ModelError(
            f"the server compresses its answers as `{coding[:40]}`, which was not asked for",
            hint="Configure the server or the proxy before it to leave `text/event-stream` alone.",
        )
    import zlib  # hardly ever needed

    inflater = zlib.decompressobj(wbits=47)  # 32 + 15: by its head, gzip or zlib

    def unpack(chunk: bytes) -> Iterator[bytes]:
        try:
            while chunk:
                if piece := inflater.decompress(chunk, LARGEST_PIECE):
                    yield piece
                chunk = inflater.unconsumed_tail
        except zlib.error as error:
            raise StreamCut("the compressed body is damaged") from error

    return unpack


def _plain(chunk: bytes) -> Iterator[bytes]:
    yield chunk


def _is_refusal(error: BaseException) -> bool:
    """Libraries wrap it, with words of their own."""
    causes: list[BaseException] = [error]
    while len(causes) < DEEPEST_CAUSE and (cause := causes[-1].__cause__ or causes[-1].__context__):
        causes.append(cause)
    return any(isinstance(cause, ConnectionRefusedError) for cause in causes)


def unreachable(address: Address, error: Exception) -> ModelError:
    while isinstance(error, ExceptionGroup):  # one address after the other was tried
        error = error.exceptions[0]
    reason = "connection refused" if _is_refusal(error) else str(error) or type(error).__name__
    if isinstance(error, ValueError | OverflowError):  # the proxy's: ours was looked at before
        return ModelError(
            f"cannot connect to {address.place}: {reason}",
            hint="Correct or unset `HTTP_PROXY`, `HTTPS_PROXY` and `ALL_PROXY`.",
        )
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return ModelError(
            f"the certificate of {address.place} is not trusted: {reason}",
            hint="Set SSL_CERT_FILE to the certificate authority of your network.",
        )
    if is_loopback(address.host):
        hint = "Is the server running, and does it listen on this port?"
    else:
        hint = "Check the base URL and the network, and HTTPS_PROXY if a proxy is needed."
    return ModelUnavailable(f"no answer from {address.place}: {reason}", hint=hint)
