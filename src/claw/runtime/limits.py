"""Limits of a turn: each looks at the progress so far and says whether it is spent.

A new limit is one more class here and one more line where ``app`` lists them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from claw.types.results import StopReason
from claw.types.usage import Usage

__all__ = ["Limit", "MaxCost", "MaxSteps", "MaxTokens", "Progress", "first_spent"]

DEFAULT_MAX_STEPS = 500


class Progress(msgspec.Struct, frozen=True):
    """Of the running turn. ``steps`` are finished model responses.

    ``cost`` is in US dollars, None where a price is unknown.
    """

    steps: int
    usage: Usage
    cost: float | None


class Limit(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def value(self) -> float: ...

    def spent(self, progress: Progress) -> StopReason | None:
        """The reason to end with, None while there is some left."""


class MaxSteps(msgspec.Struct, frozen=True):
    """``--max-turns``: at most this many model responses in one turn."""

    value: int = DEFAULT_MAX_STEPS
    name: str = "max_turns"

    def spent(self, progress: Progress) -> StopReason | None:
        return "max_turns_reached" if progress.steps >= self.value else None


class MaxTokens(msgspec.Struct, frozen=True):
    """``--max-budget-tokens``: input and output of all requests of the turn together."""

    value: int
    name: str = "max_budget_tokens"

    def spent(self, progress: Progress) -> StopReason | None:
        return "max_budget_reached" if progress.usage.context_tokens >= self.value else None


class MaxCost(msgspec.Struct, frozen=True):
    """``--max-budget-usd``: US dollars for all requests of the turn together.

    A cost that has become unknown spends it: nobody could tell any more.
    """

    value: float
    name: str = "max_budget_usd"

    def spent(self, progress: Progress) -> StopReason | None:
        if progress.cost is None or progress.cost >= self.value:
            return "max_budget_reached"
        return None


def first_spent(limits: Iterable[Limit], progress: Progress) -> StopReason | None:
    return next((reason for limit in limits if (reason := limit.spent(progress))), None)
