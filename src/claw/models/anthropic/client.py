"""A model that speaks the Messages API."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial

from claw.models.anthropic.decode import AnthropicDecoder
from claw.models.anthropic.encode import encode
from claw.models.estimate import estimate_request
from claw.models.exchange import Peer, endpoint, exchange, header_value
from claw.models.http import HttpRequest, Transport
from claw.models.prices import cost as list_price
from claw.models.wire_text import BlobsGet, Memo, no_blobs, to_bytes
from claw.types.events import AssistantEvent
from claw.types.request import Request
from claw.types.usage import Usage
from claw.version import __version__

__all__ = ["AnthropicClient"]


class AnthropicClient:
    """``api_key`` goes as ``x-api-key``, ``auth_token`` as a bearer token.

    ``window`` and ``max_output`` are in tokens, None where unknown.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        base_url: str = "https://api.anthropic.com",
        api_key: str = "",
        auth_token: str = "",
        headers: Mapping[str, str] | None = None,
        window: int | None = None,
        max_output: int | None = None,
        provider: str = "anthropic",
        blobs_get: BlobsGet = no_blobs,
    ) -> None:
        base = base_url.partition("?")[0].rstrip("/")
        self._url = endpoint(base_url, "/messages" if base.endswith("/v1") else "/v1/messages")
        self._transport = transport
        self._key, self._token = api_key.strip(), auth_token.strip()
        self._headers = dict(headers or {})
        self._window = window
        self._max_output = max_output
        self._provider = provider
        self._blobs_get = blobs_get
        self._memo = Memo()

    @property
    def window(self) -> int | None:
        return self._window

    async def stream(self, request: Request) -> AsyncGenerator[AssistantEvent, None]:
        body = encode(
            request, blobs_get=self._blobs_get, max_output=self._max_output, memo=self._memo
        )
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "anthropic-version": "2023-06-01",
            "user-agent": f"claw/{__version__}",
        }
        if self._key:
            headers["x-api-key"] = header_value(self._key)
        if self._token:
            headers["authorization"] = f"Bearer {header_value(self._token)}"
        headers.update(self._headers)
        replies = exchange(
            self._transport,
            HttpRequest(self._url, headers, to_bytes(body)),
            AnthropicDecoder(input_estimate=partial(estimate_request, request)),
            Peer(self._provider, request.sampling.model, self._key or self._token),
        )
        async with aclosing(replies):
            async for event in replies:
                yield event

    def cost(self, usage: Usage, model: str) -> float | None:
        return list_price(usage, model)
