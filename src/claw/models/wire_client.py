"""What the clients of all dialects do alike; a dialect adds its body, its decoder, its headers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, ClassVar

from claw.errors import ParameterRefused, RequestRejected
from claw.models.dialect import Decoder
from claw.models.exchange import Peer, exchange, header_value
from claw.models.http import HttpRequest, Transport
from claw.models.mending import mended, refused_parameter
from claw.models.prices import cost as list_price
from claw.models.wire_text import BlobsGet, Memo, to_bytes
from claw.types.events import AssistantEvent
from claw.types.request import Request
from claw.types.usage import Usage
from claw.version import __version__

__all__ = ["WireClient", "bearer"]


def bearer(key: str) -> dict[str, str]:
    """The header for a key, none for a blank one. Raises ``ModelError`` as ``header_value``."""
    return {"authorization": f"Bearer {header_value(key)}"} if key else {}


class WireClient(ABC):
    """A ``ModelClient`` over a transport. ``window`` is in tokens, None where unknown.

    A server that does not know a field of ``optional`` is not sent it again.
    """

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
    ) -> None:
        self._transport = transport
        self._url = url
        self._key = key.strip()
        self._headers = dict(headers or {})
        self._window = window
        self._provider = provider
        self._blobs_get = blobs_get
        self._memo = Memo()
        self._refused: list[str] = []

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
        replies = exchange(
            self._transport,
            HttpRequest(self._url, headers, to_bytes(body)),
            self._decoder(request),
            Peer(self._provider, request.sampling.model, self._key),
        )
        try:
            async with aclosing(replies):
                async for event in replies:
                    yield event
        except RequestRejected as error:
            left = [name for name in self.optional if name not in self._refused]
            name = refused_parameter(error, body, left)
            if not name:
                raise
            self._refused.append(name)
            raise ParameterRefused(error.message, parameter=name, status=error.status) from error

    def cost(self, usage: Usage, model: str) -> float | None:
        return list_price(usage, model)

    @abstractmethod
    def _body(self, request: Request) -> dict[str, Any]:
        """Raises ``RequestRejected`` for attachments that are gone."""

    @abstractmethod
    def _decoder(self, request: Request) -> Decoder: ...

    @abstractmethod
    def _signature(self) -> dict[str, str]:
        """The headers that say who asks."""
