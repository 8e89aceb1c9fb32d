"""HTTP/1.1 to a server of this machine: no proxy, no TLS, and little to load.

Of what a start costs, loading a full HTTP library is the largest part; a server on
loopback needs none of what makes it large. The protocol is h11's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from claw.errors import ModelError, ModelUnavailable
from claw.models.address import Address, parse_address
from claw.models.http import HttpRequest, HttpResponse, StreamCut, Timeouts, unreachable

if TYPE_CHECKING:
    import h11

__all__ = ["LocalTransport"]

CHUNK = 64 * 1024


class LocalTransport:
    """Keeps connections open. One that turns out dead before any byte came is replaced.

    h11 is imported at the first ``send``.
    """

    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._idle: dict[str, list[_Connection]] = {}

    def warm(self) -> None:
        """Load now what the first request needs."""
        import h11

        del h11

    async def send(self, request: HttpRequest) -> HttpResponse:
        import h11

        address = parse_address(request.url)
        try:
            head = _head(request, address)
        except (h11.LocalProtocolError, UnicodeEncodeError):
            # Its text quotes the header that it refuses, which may be the key's.
            raise ModelError(
                f"the request to {address.place} has a header that HTTP does not allow",
                hint="Check the API key and the configured headers for stray characters.",
            ) from None
        while True:
            kept = self._kept(address)
            connection = kept or await self._connect(address)
            try:
                async with asyncio.timeout(self._timeouts.first_byte):
                    response = await connection.ask(head, request.body)
            except TimeoutError as error:
                connection.abort()
                raise ModelUnavailable(
                    f"{address.place} did not answer within {self._timeouts.first_byte:g} s"
                ) from error
            except (OSError, h11.RemoteProtocolError) as error:
                connection.abort()
                if kept is not None and not connection.heard:
                    continue
                raise unreachable(address, error) from error
            except BaseException:
                connection.abort()
                raise
            return self._answer(address, connection, response)

    async def aclose(self) -> None:
        idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.abort()

    def _kept(self, address: Address) -> _Connection | None:
        kept = self._idle.get(address.place, [])
        while kept:
            connection = kept.pop()
            if not connection.is_over:
                return connection
            connection.abort()
        return None

    async def _connect(self, address: Address) -> _Connection:
        try:
            async with asyncio.timeout(self._timeouts.connect):
                streams = await asyncio.open_connection(address.host, address.port)
        except TimeoutError as error:
            raise ModelUnavailable(
                f"no connection to {address.place} within {self._timeouts.connect:g} s"
            ) from error
        except OSError as error:
            raise unreachable(address, error) from error
        return _Connection(*streams)

    def _answer(
        self, address: Address, connection: _Connection, response: h11.Response
    ) -> HttpResponse:
        chunks = self._chunks(address, connection)

        async def close() -> None:
            await chunks.aclose()
            if not connection.is_free:
                connection.abort()

        headers = {name.decode(): value.decode("latin-1") for name, value in response.headers}
        return HttpResponse(response.status_code, headers, chunks, close)

    async def _chunks(
        self, address: Address, connection: _Connection
    ) -> AsyncGenerator[bytes, None]:
        import h11

        idle = self._timeouts.idle
        while True:
            try:
                async with asyncio.timeout(idle):
                    event = await connection.next_event()
            except TimeoutError as error:
                raise StreamCut(f"nothing came for {idle:g} s") from error
            except (OSError, h11.RemoteProtocolError) as error:
                raise StreamCut("the connection broke") from error
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                if connection.start_anew():
                    self._idle.setdefault(address.place, []).append(connection)
                return


class _Connection:
    """``heard`` says that a byte of the present answer came; ``is_free`` that none is under way."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        import h11

        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(our_role=h11.CLIENT)
        self.heard = False
        self.is_free = True

    @property
    def is_over(self) -> bool:
        return self._reader.at_eof() or self._writer.is_closing()

    async def ask(self, head: h11.Request, body: bytes) -> h11.Response:
        """Send the request; the head of the answer. Raises as ``next_event`` does."""
        import h11

        self.heard = self.is_free = False
        events = (head, h11.Data(data=body), h11.EndOfMessage())
        self._writer.write(b"".join(self._http.send(event) or b"" for event in events))
        await self._writer.drain()
        while not isinstance(event := await self.next_event(), h11.Response):
            pass
        return event

    async def next_event(self) -> h11.Event:
        """Raises ``OSError``, and ``RemoteProtocolError`` also where the server hung up."""
        import h11

        while not isinstance(event := self._http.next_event(), h11.Event):
            data = await self._reader.read(CHUNK)
            self.heard = self.heard or bool(data)
            self._http.receive_data(data)
        if isinstance(event, h11.ConnectionClosed):
            raise h11.RemoteProtocolError("the server closed the connection")
        return event

    def start_anew(self) -> bool:
        """After a whole answer: whether the connection can take another request."""
        import h11

        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            self.is_free = True
        else:
            self.abort()
        return self.is_free

    def abort(self) -> None:
        self._writer.transport.abort()


def _head(request: HttpRequest, address: Address) -> h11.Request:
    """Raises ``LocalProtocolError`` and ``UnicodeEncodeError`` for what no header may hold."""
    import h11

    headers = {
        "host": address.place,
        "accept-encoding": "identity",
        "content-length": str(len(request.body)),
        **request.headers,
    }
    return h11.Request(method=request.method, target=address.target, headers=[*headers.items()])
