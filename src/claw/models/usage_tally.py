"""Usage figures as servers report them, in one convention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from claw.models.estimate import estimate_tokens
from claw.types.usage import Usage

__all__ = ["count", "estimated", "nothing_sent", "openai_usage"]

_ABSURD = 10**12
"""Tokens that no request has. NaN is not below it either."""


def count(figures: Mapping[str, Any], *names: str) -> int | None:
    """The first of ``names`` that holds a number, as a count of tokens."""
    for name in names:
        value = figures.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if abs(value) < _ABSURD:
            return max(0, int(value))
    return None


def nothing_sent() -> int:
    """The input estimate of a decoder that has no request."""
    return 0


def estimated(input_tokens: int, written: list[str]) -> Usage:
    """For a server that reported nothing: what was sent by estimate, and what was written."""
    return Usage(input_tokens, estimate_tokens("".join(written)), estimated=True)


def openai_usage(figures: Any) -> Usage | None:
    """OpenAI's figures, whose input includes what the cache gave and took; None without any."""
    if not isinstance(figures, dict):
        return None
    sent = count(figures, "prompt_tokens", "input_tokens")
    written = count(figures, "completion_tokens", "output_tokens")
    total = count(figures, "total_tokens")
    if sent is None and written is None and total is None:
        return None
    if sent is None:
        sent = max(0, (total or 0) - (written or 0))
    details = figures.get("prompt_tokens_details") or figures.get("input_tokens_details")
    details = details if isinstance(details, dict) else {}
    read = count(details, "cached_tokens")
    if read is None:
        read = count(figures, "cached_tokens", "prompt_cache_hit_tokens") or 0
    made = count(details, "cache_write_tokens", "cache_creation_tokens") or 0
    # Some servers report more from the cache than was sent; their figure stands.
    return Usage(max(0, sent - read - made), written or 0, read, made)
