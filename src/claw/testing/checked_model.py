"""``CheckedModel``: what any provider would refuse fails the test that sends it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from claw.models.encode import encode_request
from claw.ports import ModelClient
from claw.testing.prefix import first_difference
from claw.testing.validate import (
    validate_anthropic,
    validate_chat,
    validate_request,
    validate_responses,
)
from claw.types.entries import (
    Compacted,
    Event,
    ModelChanged,
    PromptInstalled,
    RecoveryFailed,
    Rewound,
)
from claw.types.events import AssistantEvent
from claw.types.request import Request
from claw.types.usage import Usage

__all__ = ["CheckedModel"]


class CheckedModel:
    """Any client, with every request checked the way the strictest provider would.

    A request that some provider would refuse, or that does not extend the one before
    it in every dialect, is an ``AssertionError`` at once. Where ``heard`` was an entry
    that explains another beginning, the next request may have one.
    """

    def __init__(self, inner: ModelClient) -> None:
        self.requests: list[Request] = []
        self._inner = inner
        self._bodies: dict[str, dict[str, Any]] = {}

    @property
    def window(self) -> int | None:
        return self._inner.window

    def cost(self, usage: Usage, model: str) -> float | None:
        return self._inner.cost(usage, model)

    async def stream(self, request: Request) -> AsyncGenerator[AssistantEvent, None]:
        bodies = {dialect: _encoded(dialect, request) for dialect in _CHECKS}
        found = _complaints(request, bodies)
        for dialect, before in self._bodies.items():
            if change := first_difference(dialect, before, bodies[dialect]):
                found.append(f"{dialect}: it does not extend the request before it: {change}")
        assert not found, f"request {len(self.requests) + 1}: " + "; ".join(found)
        self._bodies = bodies
        self.requests.append(request)
        stream = self._inner.stream(request)
        try:
            async for event in stream:
                yield event
        finally:
            await stream.aclose()

    def heard(self, event: Event) -> None:
        """Listen to the conversation."""
        if isinstance(event, _EXPLAINS):
            self._bodies = {}


_EXPLAINS = (Compacted, ModelChanged, PromptInstalled, RecoveryFailed, Rewound)
"""Entries after which a request may begin otherwise than the one before it."""

_CHECKS = {
    "anthropic": validate_anthropic,
    "openai-chat": validate_chat,
    "openai-responses": validate_responses,
}


def _complaints(request: Request, bodies: Mapping[str, dict[str, Any]]) -> list[str]:
    """What any provider would have against a request, in every dialect; none is good."""
    found = validate_request(request)
    for dialect, body in bodies.items():
        found += [f"{dialect}: {complaint}" for complaint in _CHECKS[dialect](body)]
    return found


def _encoded(dialect: str, request: Request) -> dict[str, Any]:
    return encode_request(
        dialect,
        request.messages,
        request.tools,
        request.system,
        model=request.sampling.model,
        max_tokens=request.sampling.max_tokens,
    )
