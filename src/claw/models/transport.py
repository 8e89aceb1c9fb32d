"""HTTP behind one method, so that nothing above knows which library does it.

``send`` gives the status and the headers as soon as they are there, and the body
as it comes. Everything that goes wrong before that is a ``ModelError``; a body
that ends early raises ``StreamCut`` from its chunks, for the client to judge.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

from claw.errors import ModelError, ModelUnavailable
from claw.models.address import Address, is_loopback, parse_address
from claw.models.http import (
    HttpRequest,
    HttpResponse,
    StreamCut,
    Timeouts,
    no_answer,
    unpacker,
    unreachable,
)
from claw.models.local_transport import LocalTransport

if TYPE_CHECKING:
    import ssl

    import httpx2

__all__ = ["HttpTransport", "HttpxTransport"]


class HttpTransport:
    """Implements ``Transport``: a server of this machine directly, every other over httpx2."""

    def __init__(self, timeouts: Timeouts | None = None) -> None:
        timeouts = timeouts or Timeouts()
        self._local = LocalTransport(timeouts)
        self._full = HttpxTransport(timeouts)

    def warm(self, url: str) -> None:
        """Load now what a request to ``url`` needs: most of a start is spent on that."""
        (self._local if _is_local(parse_address(url)) else self._full).warm()

    async def send(self, request: HttpRequest) -> HttpResponse:
        try:
            address = parse_address(request.url)
        except ValueError as error:
            raise _no_address(error) from error
        return await (self._local if _is_local(address) else self._full).send(request)

    async def aclose(self) -> None:
        await self._local.aclose()
        await self._full.aclose()


def _is_local(address: Address) -> bool:
    return address.scheme == "http" and is_loopback(address.host) and not address.login


class HttpxTransport:
    """Over httpx2, which is imported at the first ``send``.

    Proxies and certificate stores come from the environment as httpx2 reads them; this
    machine is reached without a proxy. A connection that was kept open
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
            address = parse_address(request.url)
        except ValueError as error:
            raise _no_address(error) from error
        client = self._client(address)
        connected = False

        async def trace(name: str, info: Mapping[str, Any]) -> None:
            nonlocal connected
            connected = connected or name == "connection.connect_tcp.started"

        for last in (False, True):
            try:
                async with asyncio.timeout(self._timeouts.first_byte):
                    response = await client.send(
                        client.build_request(
                            request.method,
                            request.url,
                            content=request.body,
                            headers=request.headers,
                            extensions={"trace": trace},
                        ),
                        stream=True,
                    )
            except TimeoutError as error:
                raise no_answer(address, self._timeouts.first_byte) from error
            except httpx2.ConnectTimeout as error:
                raise ModelUnavailable(
                    f"no connection to {address.place} within {self._timeouts.connect:g} s",
                    hint="Check the network, and HTTPS_PROXY if a proxy is needed.",
                ) from error
            except (httpx2.LocalProtocolError, UnicodeEncodeError):
                # Its text quotes the header that it refuses, which may be the key's.
                raise ModelError(
                    f"the request to {address.place} has a header that HTTP does not allow",
                    hint="Check the API key and the configured headers for stray characters.",
                ) from None
            except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
                if not last and not connected and not isinstance(error, httpx2.ConnectError):
                    continue
                raise unreachable(address, error) from error
            except httpx2.ProxyError as error:
                raise _refused_by_proxy(address, str(error)) from error
            except (httpx2.TransportError, OSError, OverflowError, ExceptionGroup) as error:
                raise unreachable(address, error) from error
            except (httpx2.InvalidURL, ValueError) as error:  # a host that IDNA refuses, too
                raise _no_address(error) from error
            try:
                return self._answer(response)
            except ModelError:
                await response.aclose()
                raise
        raise AssertionError("unreachable")

    def _answer(self, response: httpx2.Response) -> HttpResponse:
        import httpx2

        headers = {name.lower(): value for name, value in response.headers.items()}
        chunks = self._chunks(response, unpacker(headers))

        async def close() -> None:
            await chunks.aclose()
            with suppress(httpx2.TransportError, OSError):  # broken already: it is gone
                await response.aclose()

        return HttpResponse(
            response.status_code, headers, chunks, close, self._timeouts.no_progress
        )

    async def _chunks(
        self, response: httpx2.Response, unpack: Callable[[bytes], Iterator[bytes]]
    ) -> AsyncGenerator[bytes, None]:
        import httpx2

        patience = self._timeouts.first_byte
        async with aclosing(response.aiter_raw()) as chunks:
            while True:
                try:
                    async with asyncio.timeout(patience):
                        chunk = await anext(chunks)
                except StopAsyncIteration:
                    return
                except TimeoutError as error:
                    raise StreamCut(f"nothing came for {patience:g} s") from error
                except (httpx2.TransportError, OSError, ValueError, ExceptionGroup) as error:
                    raise StreamCut("the connection broke") from error
                for piece in unpack(chunk):
                    yield piece
                patience = self._timeouts.idle

    def _client(self, address: Address) -> httpx2.AsyncClient:
        import httpx2

        secure = address.scheme == "https"
        direct = is_loopback(address.host)  # a proxy's loopback is another machine's
        name = f"{address.scheme} direct" if direct else address.scheme
        if name not in self._clients:
            tls = _tls() if secure else _no_tls()
            try:
                self._clients[name] = httpx2.AsyncClient(
                    verify=tls,
                    trust_env=not direct,
                    timeout=httpx2.Timeout(None, connect=self._timeouts.connect),
                    limits=httpx2.Limits(keepalive_expiry=60.0),
                    headers={"accept-encoding": "identity"},
                )
            except ImportError:  # of what httpx2 needs for SOCKS
                raise ModelError(
                    "the environment names a SOCKS proxy, which needs the package `socksio`",
                    hint="Install it beside claw, or name an HTTP proxy in `HTTPS_PROXY`.",
                ) from None
            except (ValueError, httpx2.InvalidURL):
                # Its text quotes a part of the address, which may be of the login.
                raise ModelError(
                    "the proxy that the environment names cannot be used",
                    hint="Write `HTTP_PROXY`, `HTTPS_PROXY` and `ALL_PROXY` like "
                    "`http://host:port` or `http://user:password@host:port`, with `%2F` for a `/` "
                    "in the login and the like; or unset them.",
                ) from None
        return self._clients[name]

    async def aclose(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.aclose()


def _tls() -> ssl.SSLContext:
    """The certificate authorities that the environment names, or else the usual ones."""
    import httpx2

    try:
        return httpx2.create_ssl_context()
    except OSError as error:  # of which SSLError is one
        named = [f"`{v}`" for v in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(v)]
        variables = " and ".join(named)
        raise ModelError(
            f"the trusted certificates cannot be loaded: {error}",
            hint=f"Correct or unset {variables}." if named else "",
        ) from error


def _no_tls() -> ssl.SSLContext:
    """A context without certificates: loading them costs 20 ms and plain HTTP needs none."""
    import ssl

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _refused_by_proxy(address: Address, answer: str) -> ModelError:
    """``answer`` is its status line's status and reason; other words are of a SOCKS proxy."""
    message = f"the proxy does not connect to {address.place}: {answer or 'it hung up'}"
    if answer.startswith("407"):
        hint = "It wants a login that it knows: `HTTPS_PROXY=http://user:password@host:port`."
        return ModelError(message, hint=hint)
    hint = f"Ask who runs the proxy, or name `{address.host}` in `NO_PROXY`."
    return (ModelError if answer.startswith("4") else ModelUnavailable)(message, hint=hint)


def _no_address(error: Exception) -> ModelError:
    return ModelError(
        f"the base URL cannot be used: {error}",
        hint="Write it like `https://host/path`.",
    )
