"""When a conversation has grown too large. Pure; all sizes are in tokens.

The live size is what the last request reported plus an estimate of what was added since.
Reports and estimates of the same messages differ by some factor; it is learnt from the
last report and applied to every estimate.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from claw.types.request import Request
from claw.types.session import SessionState

__all__ = ["Count", "Look", "Policy", "has_grown", "is_due", "limit_of", "look_at", "may_be_due"]

Count = Callable[[Request], int]
"""Estimates the input tokens of a request."""

LEAST_SCALE, MOST_SCALE = 0.5, 2.0
"""A report further from the estimate than that tells of something else than tokenizers."""
MARGIN = 10
"""A tenth of the limit: what a conversation grows by before it is compacted again."""
MOST_RESERVED = 4
"""At most a fourth of a small window is kept free for the answer."""


class Policy(msgspec.Struct, frozen=True):
    """``threshold``: up to 1 a share of the usable window, up to 100 per cent of it, else
    tokens. ``reserve`` is kept free for the answer."""

    auto: bool = True
    threshold: float = 0.8
    reserve: int = 32_000


class Look(msgspec.Struct, frozen=True):
    """``live`` is the size of all, ``fixed`` of the system prompt and the tools in it;
    an estimate of anything times ``scale`` is its size. ``usable`` is the window without
    the reserve, None where it is unknown."""

    live: int
    fixed: int
    scale: float
    usable: int | None


def limit_of(policy: Policy, window: int | None) -> int | None:
    """The size above which a conversation is compacted, None where there is none."""
    usable = _usable(policy, window)
    if policy.threshold > 100:
        given = int(policy.threshold)
        return given if usable is None else min(given, usable)
    share = policy.threshold if policy.threshold <= 1 else policy.threshold / 100
    return None if usable is None else int(share * usable)


def may_be_due(
    request: Request, state: SessionState, window: int | None, limit: int, count: Count
) -> bool:
    """False where even a pessimist sees no need to look closer: cheap in long sessions."""
    reported = _reported(state, window)
    if not reported:
        return count(request) > limit
    return reported + MOST_SCALE * count(_only(request, state.measured)) > limit


def look_at(
    request: Request, state: SessionState, window: int | None, policy: Policy, count: Count
) -> Look:
    reported, usable = _reported(state, window), _usable(policy, window)
    fixed = count(replace(request, messages=()))
    if not reported:
        return Look(count(request), fixed, 1.0, usable)
    measured = count(replace(request, messages=request.messages[: state.measured]))
    scale = min(max(reported / max(measured, 1), LEAST_SCALE), MOST_SCALE)
    added = count(_only(request, state.measured))
    known = max(reported, round(LEAST_SCALE * measured))
    return Look(known + round(scale * added), round(scale * fixed), scale, usable)


def is_due(look: Look, state: SessionState, limit: int) -> bool:
    """Whether it is over the limit, and has grown since the last compaction came there."""
    return look.live > limit and has_grown(look, state.floor.context_tokens, limit)


def has_grown(look: Look, since: int, limit: int) -> bool:
    """Whether it is clearly larger than it was; 0 for a size that it never had."""
    return not since or look.live > since + limit // MARGIN


def _reported(state: SessionState, window: int | None) -> int:
    """What the last request reported; 0 where that is nothing, or more than a window holds."""
    reported = state.context.context_tokens
    return 0 if window is not None and reported > window else reported


def _usable(policy: Policy, window: int | None) -> int | None:
    if window is None:
        return None
    return window - min(policy.reserve, window // MOST_RESERVED)


def _only(request: Request, start: int) -> Request:
    """The messages from a place on, without what stands before them all."""
    return Request("", request.messages[start:], (), request.sampling)
