"""HTTP behind one method, so that nothing above knows which library does it.

``send`` gives the status and the headers as soon as they are there, and the body
as it comes. Everything that goes wrong before that is a ``ModelError``; a body
that ends early raises ``StreamCut`` from its chunks, for the client to judge.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import msgspec

from claw.errors import ModelError, ModelUnavailable

if TYPE_CHECKING:
    import ssl

    import httpx2

__all__ = [
    "HttpRequest",
    "HttpResponse",
    "HttpxTransport",
    "StreamCut",
    "Timeouts",
    "Transport",
    "is_loopback",
]


class StreamCut(Exception):
    """The body ended before its end, or fell silent for too long."""


class HttpRequest(msgspec.Struct, frozen=True):
    """A POST. Headers and body stay out of ``repr``: they hold the key and the prompt."""

    url: str
    headers: Mapping[str, str]
    body: bytes

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


def is_loopback(host: str) -> bool:
    return host in {"localhost", "::1"} or host.startswith("127.")


class HttpxTransport:
    """Over httpx2, which is imported at the first ``send``.

    Proxies and certificate stores come from the environment as httpx2 reads them;
    plain HTTP to this machine looks at neither. A connection that was kept open
    and turns out dead before any byte came is replaced once.
    """

    def __init__(self, timeouts: Timeouts | None = None) -> None:
        self._timeouts = timeouts or Timeouts()
        self._clients: dict[str, httpx2.AsyncClient] = {}

    def warm(self) -> None:
        """Load now what the first request needs: most of a start is spent on that."""
        import anyio._backends._asyncio
        import httpcore2._async.connection_pool
        import httpx2

        del anyio, httpcore2, httpx2

    async def send(self, request: HttpRequest) -> HttpResponse:
        import httpx2

        try:
            host = urlsplit(request.url).netloc.rpartition("@")[2]
        except ValueError as error:
            raise _no_address("the server", error) from error
        client = self._client(request.url)
        connected = False

        async def trace(name: str, info: Mapping[str, Any]) -> None:
            nonlocal connected
            connected = connected or name == "connection.connect_tcp.started"

        for last in (False, True):
            try:
                async with asyncio.timeout(self._timeouts.first_byte):
                    response = await client.send(
                        client.build_request(
                            "POST",
                            request.url,
                            content=request.body,
                            headers=request.headers,
                            extensions={"trace": trace},
                        ),
                        stream=True,
                    )
            except TimeoutError as error:
                raise ModelUnavailable(
                    f"{host} did not answer within {self._timeouts.first_byte:g} s"
                ) from error
            except httpx2.ConnectTimeout as error:
                raise ModelUnavailable(
                    f"no connection to {host} within {self._timeouts.connect:g} s",
                    hint="Check the network, and HTTPS_PROXY if a proxy is needed.",
                ) from error
            except httpx2.LocalProtocolError:
                # Its text quotes the header that it refuses, which may be the key's.
                raise ModelError(
                    f"the request to {host} has a header that HTTP does not allow",
                    hint="Check the API key and the configured headers for stray characters.",
                ) from None
            except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
                if not last and not connected and not isinstance(error, httpx2.ConnectError):
                    continue
                raise _unreachable(host, error) from error
            except (httpx2.UnsupportedProtocol, httpx2.InvalidURL) as error:
                raise _no_address(host or "the server", error) from error
            except httpx2.TransportError as error:
                raise _unreachable(host, error) from error
            return self._answer(response)
        raise AssertionError("unreachable")

    def _answer(self, response: httpx2.Response) -> HttpResponse:
        chunks = self._chunks(response)

        async def close() -> None:
            await chunks.aclose()
            await response.aclose()

        headers = {name.lower(): value for name, value in response.headers.items()}
        return HttpResponse(response.status_code, headers, chunks, close)

    async def _chunks(self, response: httpx2.Response) -> AsyncGenerator[bytes, None]:
        import httpx2

        idle = self._timeouts.idle
        async with aclosing(response.aiter_bytes()) as chunks:
            while True:
                try:
                    async with asyncio.timeout(idle):
                        chunk = await anext(chunks)
                except StopAsyncIteration:
                    return
                except TimeoutError as error:
                    raise StreamCut(f"nothing came for {idle:g} s") from error
                except (httpx2.TransportError, httpx2.DecodingError) as error:
                    raise StreamCut("the connection broke") from error
                yield chunk

    def _client(self, url: str) -> httpx2.AsyncClient:
        import httpx2

        parts = urlsplit(url)
        secure = parts.scheme == "https"
        direct = not secure and is_loopback(parts.hostname or "")
        name = "direct" if direct else parts.scheme
        if name not in self._clients:
            self._clients[name] = httpx2.AsyncClient(
                verify=httpx2.create_ssl_context() if secure else _no_tls(),
                trust_env=not direct,
                timeout=httpx2.Timeout(None, connect=self._timeouts.connect),
                limits=httpx2.Limits(keepalive_expiry=60.0),
                headers={"accept-encoding": "identity"},
            )
        return self._clients[name]

    async def aclose(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.aclose()


def _no_tls() -> ssl.SSLContext:
    """A context without certificates: loading them costs 20 ms and plain HTTP needs none."""
    import ssl

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _no_address(host: str, error: Exception) -> ModelError:
    return ModelError(
        f"cannot use the URL of {host}: {error}",
        hint="A base URL begins with `https://` or `http://`.",
    )


def _unreachable(host: str, error: Exception) -> ModelError:
    reason = str(error) or type(error).__name__
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return ModelError(
            f"the certificate of {host} is not trusted: {reason}",
            hint="Set SSL_CERT_FILE to the certificate authority of your network.",
        )
    return ModelUnavailable(
        f"no answer from {host}: {reason}",
        hint="Is the server running?" if is_loopback(host.partition(":")[0]) else "",
    )
