"""Notices when the provider's prompt cache lets go of what it held.

The cached prefix is the largest saving of a long session; losing it in silence costs
money, and mostly means that a request was built differently from the one before.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from claw.ports import Clock, ModelClient
from claw.types.events import AssistantEvent, MessageStop, PromptCache
from claw.types.request import Request
from claw.types.usage import PromptCacheEvent, Usage

__all__ = ["CacheWatch"]

LARGE_DROP = 2_000  # tokens
LIFETIME = 300.0  # seconds that a provider keeps an entry at least


class CacheWatch:
    """A ``ModelClient`` around another one that adds ``PromptCache`` events to its streams."""

    def __init__(self, inner: ModelClient, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock
        self._last: tuple[Request, Usage, float] | None = None

    @property
    def window(self) -> int | None:
        return self._inner.window

    def cost(self, usage: Usage, model: str) -> float | None:
        return self._inner.cost(usage, model)

    async def stream(self, request: Request) -> AsyncGenerator[AssistantEvent, None]:
        usage = Usage()
        async with aclosing(self._inner.stream(request)) as events:
            async for event in events:
                if isinstance(event, Usage):
                    usage = event
                if isinstance(event, MessageStop) and (drop := self._compare(request, usage)):
                    yield PromptCache(drop)
                yield event

    def _compare(self, request: Request, usage: Usage) -> PromptCacheEvent | None:
        now = self._clock.monotonic()
        last, self._last = self._last, (request, usage, now)
        if last is None or usage.estimated:
            return None
        before, after = last[1].cache_read_input_tokens, usage.cache_read_input_tokens
        if before - after < LARGE_DROP:
            return None
        reason = _what_changed(last[0], request) or (
            "more than five minutes passed" if now - last[2] > LIFETIME else ""
        )
        return PromptCacheEvent(
            unexpected=not reason,
            reason=reason or "nothing changed on our side",
            previous_cache_read_input_tokens=before,
            current_cache_read_input_tokens=after,
            token_drop=before - after,
        )


def _what_changed(before: Request, after: Request) -> str:
    """The first part that breaks the prefix; blank where the request only grew."""
    if before.sampling.model != after.sampling.model:
        return "the model changed"
    if before.tools != after.tools:
        return "the tools changed"
    if before.system != after.system:
        return "the system prompt changed"
    if after.messages[: len(before.messages)] != before.messages:
        return "earlier messages changed"
    return ""
