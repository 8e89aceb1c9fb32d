"""HTTP as the clients see it: a request, a response, and what goes wrong between them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
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
    "unreachable",
]

DEEPEST_CAUSE = 10


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
    """``headers`` have names in lower case. Whoever got it calls ``close``, whatever happened."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]
    close: Callable[[], Awaitable[None]]


class Transport(Protocol):
    async def send(self, request: HttpRequest) -> HttpResponse:
        """Raises ``ModelError`` where no answer came; what the status means is the caller's."""

    async def aclose(self) -> None: ...


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds. ``idle`` is the longest silence between two chunks; there is no total."""

    connect: float = 10.0
    first_byte: float = 600.0
    idle: float = 180.0


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
