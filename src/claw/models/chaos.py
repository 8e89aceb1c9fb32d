"""A model that misbehaves on purpose: any client, with faults from a seed.

The same seed and the same order of requests give the same faults, so a failure is
repeated by its seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Literal, get_args

from msgspec.structs import replace

from claw.errors import ModelUnavailable
from claw.ports import Clock, ModelClient
from claw.types.events import AssistantEvent, MessageStop
from claw.types.messages import ToolUse
from claw.types.request import Request
from claw.types.usage import Usage

__all__ = ["FAULTS", "ChaosModel", "Fault"]

Fault = Literal[
    "cut",
    "duplicate_ids",
    "empty",
    "malformed_arguments",
    "missing_stop",
    "overloaded",
    "slow",
]
"""``cut``: the stream dies after a few events. ``duplicate_ids``: every call has the
same id. ``empty``: not one event. ``malformed_arguments``: no call's input parses.
``missing_stop``: the stream dies just before its end. ``overloaded``: 529 before the
first byte. ``slow``: up to five seconds before each event."""

FAULTS: tuple[Fault, ...] = get_args(Fault)
LATEST_CUT = 8
SLOWEST = 5.0  # seconds


class ChaosModel:
    """A ``ModelClient`` around another one. ``rate`` of the requests get one of ``faults``.

    ``injected`` lists what was done, as (request number from 1, fault). A fault that
    finds nothing to spoil (ids in a reply without calls) changes nothing. ``clock``
    is what a slow stream waits by.
    """

    def __init__(
        self,
        inner: ModelClient,
        seed: int,
        *,
        clock: Clock,
        faults: Sequence[Fault] = FAULTS,
        rate: float = 0.25,
    ) -> None:
        self.injected: list[tuple[int, Fault]] = []
        self._inner = inner
        self._seed = seed
        self._clock = clock
        self._faults = tuple(faults)
        self._rate = rate
        self._requests = 0

    @property
    def window(self) -> int | None:
        return self._inner.window

    def cost(self, usage: Usage, model: str) -> float | None:
        return self._inner.cost(usage, model)

    async def stream(self, request: Request) -> AsyncGenerator[AssistantEvent, None]:
        """The inner stream, spoiled or not. Raises what it raises, and ``ModelUnavailable``."""
        self._requests += 1
        # One generator a request: concurrent streams cannot take each other's numbers.
        chance = random.Random(f"{self._seed}:{self._requests}")
        fault: Fault | None = None
        if self._faults and chance.random() < self._rate:
            chosen = chance.choice(self._faults)
            self.injected.append((self._requests, chosen))
            fault = chosen
        if fault == "overloaded":
            raise ModelUnavailable("overloaded (injected)", status=529, retry_after=1.0)
        left = chance.randint(1, LATEST_CUT) if fault == "cut" else -1
        # aclosing: a cut ends the inner exchange at once, too.
        async with aclosing(self._inner.stream(request)) as events:
            async for event in events:
                if left == 0 or fault == "empty":
                    return
                if fault in ("cut", "missing_stop") and isinstance(event, MessageStop):
                    return
                if fault == "slow":
                    await self._clock.sleep(chance.random() * SLOWEST)
                left -= 1
                yield _spoiled(event, fault)


def _spoiled(event: AssistantEvent, fault: Fault | None) -> AssistantEvent:
    if not isinstance(event, ToolUse):
        return event
    if fault == "duplicate_ids":
        return replace(event, id="call")
    if fault == "malformed_arguments":
        return replace(event, input={}, raw_input=json.dumps(event.input)[:-1])
    return event
