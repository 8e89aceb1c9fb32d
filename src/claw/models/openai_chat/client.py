"""A model that speaks Chat Completions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from claw.models.dialect import Decoder
from claw.models.estimate import estimate_request
from claw.models.exchange import endpoint
from claw.models.http import Transport
from claw.models.openai_chat.decode import ChatDecoder
from claw.models.openai_chat.encode import encode
from claw.models.wire_client import WireClient, bearer
from claw.models.wire_text import BlobsGet, no_blobs
from claw.types.request import Request

__all__ = ["OpenAIChatClient"]


class OpenAIChatClient(WireClient):
    """``base_url`` goes up to and including ``/v1``."""

    dialect = "openai-chat"
    optional = ("stream_options", "max_completion_tokens", "max_tokens", "reasoning_effort")

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
        sells: tuple[str, ...] = ("",),
        record_wire: bool = False,
    ) -> None:
        super().__init__(
            transport,
            url=endpoint(base_url, "/chat/completions"),
            key=api_key,
            headers=headers,
            window=window,
            provider=provider,
            blobs_get=blobs_get,
            sells=sells,
            record_wire=record_wire,
        )
        self._quirks = quirks

    def _body(self, request: Request) -> dict[str, Any]:
        return encode(request, blobs_get=self._blobs_get, quirks=self._quirks, memo=self._memo)

    def _decoder(self, request: Request) -> Decoder:
        return ChatDecoder(input_estimate=partial(estimate_request, request))

    def _signature(self) -> dict[str, str]:
        return bearer(self._key)
