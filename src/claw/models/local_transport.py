"""HTTP/1.1 to a server of this machine: no proxy, no TLS, and little to load.

Of what a start costs, loading a full HTTP library is the largest part; a server on
loopback needs none of what makes it large. The protocol is h11's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import TYPE_CHECKING

from claw.errors import ModelError, ModelUnavailable
from claw.models.address import Address, parse_address
from claw.models.http import (
    HttpRequest,
    HttpResponse,
    StreamCut,
    Timeouts,
    no_answer,
    unpacker,
    unreachable,
)

if TYPE_CHECKING:
    import h11

__all__ = ["LocalTransport"]

CHUNK = 64 * 1024
LARGEST_HEAD = 100 * 1024


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
        for last in (False, True):
            kept = None if last else self._kept(address)
            connection = kept or await self._connect(address)
            try:
                async with asyncio.timeout(self._timeouts.first_byte):
                    response = await connection.ask(head, request.body)
            except TimeoutError as error:
                connection.abort()
                raise no_answer(address, self._timeouts.first_byte) from error
            except (OSError, h11.RemoteProtocolError) as error:
                connection.abort()
                if kept is not None and not connection.heard:
                    continue
                raise unreachable(address, error) from error
            except BaseException:
                connection.abort()
                raise
            try:
                return self._answer(address, connection, response)
            except ModelError:
                connection.abort()
                raise
        raise AssertionError("unreachable")

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
        headers = {name.decode(): value.decode("latin-1") for name, value in response.headers}
        chunks = self._chunks(connection, unpacker(headers))
        closed = False

        async def close() -> None:
            nonlocal closed
            await chunks.aclose()
            if not closed and connection.start_anew():
                self._idle.setdefault(address.place, []).append(connection)
            elif not closed:
                connection.abort()
            closed = True

        return HttpResponse(
            response.status_code, headers, chunks, close, self._timeouts.no_progress
        )

    async def _chunks(
        self, connection: _Connection, unpack: Callable[[bytes], Iterator[bytes]]
    ) -> AsyncGenerator[bytes, None]:
        import h11

        patience = self._timeouts.first_byte
        while True:
            try:
                async with asyncio.timeout(patience):
                    event = await connection.next_event()
            except TimeoutError as error:
                raise StreamCut(f"nothing came for {patience:g} s") from error
            except (OSError, h11.RemoteProtocolError) as error:
                raise StreamCut("the connection broke") from error
            if isinstance(event, h11.Data):
                for piece in unpack(bytes(event.data)):
                    yield piece
                patience = self._timeouts.idle
            elif isinstance(event, h11.EndOfMessage):
                return


class _Connection:
    """``heard`` says that a byte of the present answer came."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        import h11

        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=LARGEST_HEAD)
        self.heard = False

    @property
    def is_over(self) -> bool:
        return self._reader.at_eof() or self._writer.is_closing()

    async def ask(self, head: h11.Request, body: bytes) -> h11.Response:
        """Send the request; the head of the answer. Raises as ``next_event`` does."""
        import h11

        self.heard = False
        events = (head, h11.Data(data=body), h11.EndOfMessage())
        # Nobody waits until all of it is gone: a server may refuse it before it has read it.
        self._writer.write(b"".join(self._http.send(event) or b"" for event in events))
        while not isinstance(event := await self.next_event(), h11.Response):
            pass
        return event

    async def next_event(self) -> h11.Event:
        """Raises ``OSError``, and ``RemoteProtocolError`` also where the server hung up."""
        import h11

        while not isinstance(event := self._http.next_event(), h11.Event):
            data = await self._reader.read(CHUNK)
            if not data and not self.heard:
                raise h11.RemoteProtocolError("the server closed the connection")
            self.heard = self.heard or bool(data)
            self._http.receive_data(data)
        if isinstance(event, h11.ConnectionClosed):
            raise h11.RemoteProtocolError("the server closed the connection")
        return event

    def start_anew(self) -> bool:
        """Whether the answer is whole, and the connection can take another request."""
        import h11

        ended = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        if not ended or self._http.trailing_data[0]:  # more than it had announced
            return False
        self._http.start_next_cycle()
        return True

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
