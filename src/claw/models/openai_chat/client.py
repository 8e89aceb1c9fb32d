"""A model that speaks Chat Completions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial

from claw.models.estimate import estimate_request
from claw.models.exchange import Peer, endpoint, exchange, header_value
from claw.models.http import HttpRequest, Transport
from claw.models.openai_chat.decode import ChatDecoder
from claw.models.openai_chat.encode import encode
from claw.models.prices import cost as list_price
from claw.models.wire_text import BlobsGet, Memo, no_blobs, to_bytes
from claw.types.events import AssistantEvent
from claw.types.request import Request
from claw.types.usage import Usage
from claw.version import __version__

__all__ = ["OpenAIChatClient"]


class OpenAIChatClient:
    """``base_url`` goes up to and including ``/v1``. ``window`` is in tokens, None if unknown."""

    def __init__(
        self,
        transport: Transport,
        *,
        base_url: str = "https://api.openai.com/v1",
        api_key: str = "",
        headers: Mapping[str, str] | None = None,
        window: int | None = None,
        provider: str = "openai",
        quirks: frozenset[str] = frozenset(),
        blobs_get: BlobsGet = no_blobs,
    ) -> None:
        self._url = endpoint(base_url, "/chat/completions")
        self._transport = transport
        self._key = api_key.strip()
        self._headers = dict(headers or {})
        self._window = window
        self._provider = provider
        self._quirks = quirks
        self._blobs_get = blobs_get
        self._memo = Memo()

    @property
    def window(self) -> int | None:
        return self._window

    async def stream(self, request: Request) -> AsyncGenerator[AssistantEvent, None]:
        body = encode(request, blobs_get=self._blobs_get, quirks=self._quirks, memo=self._memo)
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "user-agent": f"claw/{__version__}",
        }
        if self._key:
            headers["authorization"] = f"Bearer {header_value(self._key)}"
        headers.update(self._headers)
        replies = exchange(
            self._transport,
            HttpRequest(self._url, headers, to_bytes(body)),
            ChatDecoder(input_estimate=partial(estimate_request, request)),
            Peer(self._provider, request.sampling.model, self._key),
        )
        async with aclosing(replies):
            async for event in replies:
                yield event

    def cost(self, usage: Usage, model: str) -> float | None:
        return list_price(usage, model)
