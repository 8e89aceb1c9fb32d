"""Usage figures as servers report them, in one convention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from claw.models.estimate import estimate_tokens
from claw.types.usage import Usage

__all__ = ["count", "estimated", "nothing_sent"]


def count(figures: Mapping[str, Any], *names: str) -> int | None:
    """The first of ``names`` that holds a number, as a count of tokens."""
    for name in names:
        value = figures.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return max(0, int(value))
    return None


def nothing_sent() -> int:
    """The input estimate of a decoder that has no request."""
    return 0


def estimated(input_tokens: int, written: list[str]) -> Usage:
    """For a server that reported nothing: what was sent by estimate, and what was written."""
    return Usage(input_tokens, estimate_tokens("".join(written)), estimated=True)
