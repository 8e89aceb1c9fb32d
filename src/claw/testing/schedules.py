"""Random schedules: what could happen in another order happens in another order.

A run whose record depends on which of two tasks the event loop took first is found by
running it a thousand times under ``ShuffledLoop``, each with a seed of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

__all__ = ["ShuffledLoop", "under_schedule"]

T = TypeVar("T")
_STEPS = ("TaskStepMethWrapper", "TaskWakeupMethWrapper")


class ShuffledLoop(asyncio.SelectorEventLoop):
    """Takes the tasks that could go on in a random order, and waits for no time.

    Its clock jumps to the next timer when nothing else is left to do: so it is for code
    whose input and output are doubles. Callbacks of transports stay in their order.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = Random(seed)
        self._passed = 0.0

    def time(self) -> float:
        return self._passed

    def _run_once(self) -> None:
        # asyncio offers no way to choose what goes on first: these parts of it are private, and
        # are not in its types.
        ready: Any = self._ready  # type: ignore[attr-defined]
        timers: Any = self._scheduled  # type: ignore[attr-defined]
        if not ready and timers:
            self._passed = max(self._passed, timers[0].when())
        places = [at for at, handle in enumerate(ready) if _is_step(handle)]
        steps = [ready[at] for at in places]
        self._random.shuffle(steps)
        for at, step in zip(places, steps, strict=True):
            ready[at] = step
        super()._run_once()  # type: ignore[misc]


def under_schedule(seed: int, run: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What ``run`` gives under the schedule of this seed."""
    with asyncio.Runner(loop_factory=lambda: ShuffledLoop(seed)) as runner:
        return runner.run(run())


def _is_step(handle: Any) -> bool:
    callback = handle._callback
    if type(callback).__name__ in _STEPS:
        return True
    return isinstance(getattr(callback, "__self__", None), asyncio.Task)
