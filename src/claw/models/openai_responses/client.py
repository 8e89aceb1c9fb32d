"""A model that speaks the Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from claw.models.dialect import Decoder
from claw.models.estimate import estimate_request
from claw.models.exchange import endpoint
from claw.models.http import Transport
from claw.models.openai_responses.decode import ResponsesDecoder
from claw.models.openai_responses.encode import encode
from claw.models.wire_client import WireClient, bearer
from claw.models.wire_text import BlobsGet, no_blobs
from claw.types.request import Request

__all__ = ["OpenAIResponsesClient"]


class OpenAIResponsesClient(WireClient):
    """``base_url`` goes up to and including ``/v1``."""

    dialect = "openai-responses"
    optional = ("include", "max_output_tokens", "parallel_tool_calls", "reasoning", "store")

    def __init__(
        self,
        transport: Transport,
        *,
        base_url: str = "https://api.openai.com/v1",
        api_key: str = "",
        headers: Mapping[str, str] | None = None,
        window: int | None = None,
        provider: str = "openai",
        blobs_get: BlobsGet = no_blobs,
        sells: tuple[str, ...] = ("",),
        record_wire: bool = False,
    ) -> None:
        super().__init__(
            transport,
            url=endpoint(base_url, "/responses"),
            key=api_key,
            headers=headers,
            window=window,
            provider=provider,
            blobs_get=blobs_get,
            sells=sells,
            record_wire=record_wire,
        )

    def _body(self, request: Request) -> dict[str, Any]:
        return encode(request, blobs_get=self._blobs_get, memo=self._memo)

    def _decoder(self, request: Request) -> Decoder:
        return ResponsesDecoder(input_estimate=partial(estimate_request, request))

    def _signature(self) -> dict[str, str]:
        return bearer(self._key)
