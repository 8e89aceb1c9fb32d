"""A model that speaks the Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from claw.models.anthropic.decode import AnthropicDecoder
from claw.models.anthropic.encode import encode
from claw.models.dialect import Decoder
from claw.models.estimate import estimate_request
from claw.models.exchange import endpoint, header_value
from claw.models.http import Transport
from claw.models.wire_client import WireClient, bearer
from claw.models.wire_text import BlobsGet, no_blobs
from claw.types.request import Request

__all__ = ["AnthropicClient"]


class AnthropicClient(WireClient):
    """``api_key`` goes as ``x-api-key``, ``auth_token`` as a bearer token.

    ``max_output`` is in tokens, None where unknown.
    """

    dialect = "anthropic"
    optional = ("cache_control", "output_config", "thinking")

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
        sells: tuple[str, ...] = ("",),
        record_wire: bool = False,
    ) -> None:
        base = base_url.partition("?")[0].rstrip("/")
        super().__init__(
            transport,
            url=endpoint(base_url, "/messages" if base.endswith("/v1") else "/v1/messages"),
            key=api_key.strip() or auth_token,
            headers=headers,
            window=window,
            provider=provider,
            blobs_get=blobs_get,
            sells=sells,
            record_wire=record_wire,
        )
        self._api_key, self._token = api_key.strip(), auth_token.strip()
        half = window // 2 if window else None  # more would leave no room for the question
        self._max_output = min((n for n in (max_output, half) if n), default=None)

    def _body(self, request: Request) -> dict[str, Any]:
        return encode(
            request, blobs_get=self._blobs_get, max_output=self._max_output, memo=self._memo
        )

    def _decoder(self, request: Request) -> Decoder:
        return AnthropicDecoder(input_estimate=partial(estimate_request, request))

    def _signature(self) -> dict[str, str]:
        signed = {"anthropic-version": "2023-06-01", **bearer(self._token)}
        if self._api_key:
            signed["x-api-key"] = header_value(self._api_key)
        return signed
