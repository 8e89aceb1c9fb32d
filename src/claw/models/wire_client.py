"""What the clients of all dialects do alike; a dialect adds its body, its decoder, its headers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, ClassVar

from claw.errors import ContextOverflow, ParameterRefused, RequestRejected
from claw.models.dialect import Decoder
from claw.models.estimate import estimate_request
from claw.models.exchange import Peer, exchange, header_value
from claw.models.http import HttpRequest, Transport
from claw.models.mending import mended, refused_parameter
from claw.models.prices import cost as list_price
from claw.models.window import WindowWatch
from claw.models.wire_text import BlobsGet, Memo, own_names, to_bytes, with_own_name
from claw.types.events import AssistantEvent, Notice
from claw.types.request import Request
from claw.types.usage import Usage
from claw.version import __version__

__all__ = ["WireClient", "bearer"]


def bearer(key: str) -> dict[str, str]:
    """The header for a key, none for a blank one. Raises ``ModelError`` as ``header_value``."""
    return {"authorization": f"Bearer {header_value(key)}"} if key else {}


class WireClient(ABC):
    """A ``ModelClient`` over a transport. ``window`` is in tokens, None where unknown.

    ``sells`` are beginnings of the names of models that cost their list price there.
    A server that does not know a field of ``optional`` is not sent it again. With
    ``record_wire`` the stream has the bytes of the body as well, for a decoder that
    ``dialect`` names.
    """

    dialect: ClassVar[str]
    optional: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        transport: Transport,
        *,
        url: str,
        key: str,
        headers: Mapping[str, str] | None,
        window: int | None,
        provider: str,
        blobs_get: BlobsGet,
        sells: tuple[str, ...],
        record_wire: bool,
    ) -> None:
        self._transport = transport
        self._url = url
        self._key = key.strip()
        self._headers = dict(headers or {})
        self._window = window
        self._provider = provider
        self._blobs_get = blobs_get
        self._sells = sells
        self._record = self.dialect if record_wire else ""
        self._memo = Memo()
        self._refused: list[str] = []
        self._told_of_cut = False

    @property
    def window(self) -> int | None:
        return self._window

    async def stream(self, request: Request) -> AsyncGenerator[AssistantEvent, None]:
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "user-agent": f"claw/{__version__}",
            **self._signature(),
            **self._headers,
        }
        body = mended(self._body(request), self._refused)
        data = to_bytes(body)
        watch = WindowWatch(self._window, partial(estimate_request, request))
        peer = Peer(self._provider, request.sampling.model, self._key)
        names = own_names(request.tools)
        replies = exchange(
            self._transport,
            HttpRequest(self._url, headers, data),
            self._decoder(request),
            peer,
            record=self._record,
        )
        try:
            async with aclosing(replies):
                async for event in replies:
                    watch.see(event)
                    yield with_own_name(event, names)
        except RequestRejected as error:
            left = [name for name in self.optional if name not in self._refused]
            name = refused_parameter(error, body, left)
            if not name:
                raise
            self._refused.append(name)
            raise ParameterRefused(error.message, parameter=name, status=error.status) from error
        try:
            for event in watch.end():
                yield event
        except ContextOverflow as error:
            raise peer.sign(error, "") from None
        if not self._told_of_cut and (text := watch.cut_in_silence(request, len(data))):
            self._told_of_cut = True
            yield Notice("context_truncated", "warning", text)

    def cost(self, usage: Usage, model: str) -> float | None:
        return list_price(usage, model, self._sells)

    @abstractmethod
    def _body(self, request: Request) -> dict[str, Any]:
        """What is sent, but for the fields that the server refuses."""

    @abstractmethod
    def _decoder(self, request: Request) -> Decoder: ...

    @abstractmethod
    def _signature(self) -> dict[str, str]:
        """The headers that say who asks."""
