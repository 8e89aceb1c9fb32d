"""Notices when the provider's prompt cache lets go of what it held.

The cached prefix is the largest saving of a long session; losing it in silence costs
money, and mostly means that a request was built differently from the one before.
What a server reports of its cache is compared from one request to the next; a request
without such figures is passed over. A new process begins anew.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from claw.models.catalog import canonical
from claw.ports import Clock, ModelClient
from claw.types.events import AssistantEvent, MessageStart, MessageStop, PromptCache
from claw.types.request import Request
from claw.types.usage import PromptCacheEvent, Usage

__all__ = ["CacheWatch"]

LARGE_DROP = 2_000  # tokens
LIFETIME = 300.0  # seconds that a provider keeps an entry at least, from its last use


class _Exchange(msgspec.Struct, frozen=True):
    """A request that was answered; ``began`` is on the monotonic clock.

    ``asked`` is the model that its last taker was asked for, ``answered`` what the server
    calls it.
    """

    request: Request
    began: float
    asked: str
    answered: str
    usage: Usage


class CacheWatch:
    """A ``ModelClient`` around another one that adds ``PromptCache`` events to its streams."""

    def __init__(self, inner: ModelClient, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock
        self._last: _Exchange | None = None

    @property
    def window(self) -> int | None:
        return self._inner.window

    def cost(self, usage: Usage, model: str) -> float | None:
        return self._inner.cost(usage, model)

    async def stream(self, request: Request) -> AsyncGenerator[AssistantEvent, None]:
        began = self._clock.monotonic()
        usage = None
        asked, answered = request.sampling.model, ""
        async with aclosing(self._inner.stream(request)) as events:
            async for event in events:
                if isinstance(event, Usage):
                    usage = event
                elif isinstance(event, MessageStart):
                    asked, answered = event.asked or asked, event.model or answered
                elif isinstance(event, MessageStop) and usage and not usage.estimated:
                    now = _Exchange(request, began, asked, answered, usage)
                    drop, self._last = _drop(self._last, now), now
                    if drop is not None:
                        yield PromptCache(drop)
                yield event


def _drop(before: _Exchange | None, after: _Exchange) -> PromptCacheEvent | None:
    if before is None:
        return None
    held, read = before.usage.cache_read_input_tokens, after.usage.cache_read_input_tokens
    if held - read < LARGE_DROP:
        return None
    reason = _what_changed(before, after)
    return PromptCacheEvent(
        unexpected=not reason,
        reason=reason or "nothing changed on our side",
        previous_cache_read_input_tokens=held,
        current_cache_read_input_tokens=read,
        token_drop=held - read,
    )


def _what_changed(before: _Exchange, after: _Exchange) -> str:
    """The first thing that explains a loss; blank where the request only grew, and soon."""
    one, other = before.request, after.request
    if before.asked != after.asked or canonical(before.answered) != canonical(after.answered):
        return "the model changed"
    if one.tools != other.tools:
        return "the tools changed"
    if one.system != other.system:
        return "the system prompt changed"
    if one.sampling.effort != other.sampling.effort:
        return "the effort changed"
    if other.messages[: len(one.messages)] != one.messages:
        return "earlier messages changed"
    if after.began - before.began >= LIFETIME:
        return "more than five minutes passed"
    return ""
