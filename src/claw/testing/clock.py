"""Virtual time: hours of waiting in no time at all."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

__all__ = ["FakeClock"]


@dataclass(order=True)
class _Timer:
    when: float
    number: int
    fire: Callable[[], None] = field(compare=False)
    is_live: bool = field(default=True, compare=False)


class FakeClock:
    """A ``Clock`` whose time moves only when somebody sleeps, or a test says ``advance``.

    Automatic (the default): a sleeper first lets every other task have its turn, then
    moves time to the nearest deadline, whosever it is, until its own has come. So sleepers
    wake in the order of their deadlines, and a timeout around a sleep that is too long
    fires. Nothing else moves time: a timeout around work that never sleeps here (a real
    process) does not fire by itself.
    Not automatic: only ``advance`` moves time.

    ``sleeps`` lists the seconds of every ``sleep`` in order of the calls.
    """

    def __init__(
        self, start: float = 1_700_000_000.0, *, automatic: bool = True, jitter: float = 0.5
    ) -> None:
        self.sleeps: list[float] = []
        self._start = start
        self._passed = 0.0
        self._automatic = automatic
        self._jitter = jitter
        self._timers: list[_Timer] = []
        self._made = 0
        self._waking: set[int] = set()

    def now(self) -> float:
        return self._start + self._passed

    def monotonic(self) -> float:
        """Seconds since this clock was made."""
        return self._passed

    def jitter(self) -> float:
        return self._jitter

    def advance(self, seconds: float) -> None:
        """Move time, firing what falls due on the way, in order; tasks wake afterwards."""
        target = self._passed + seconds
        while (timer := self._nearest()) is not None and timer.when <= target:
            self._fire_nearest()
        self._passed = target

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        awake = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not awake.done():  # a cancelled sleeper's is
                awake.set_result(None)

        timer = self._add(seconds, wake)
        try:
            if not self._automatic:
                await awake
            await asyncio.sleep(0)
            while timer.is_live:
                # One at a time: whoever was woken acts before time moves on.
                if not self._waking:
                    self._fire_nearest()
                if timer.is_live:
                    await asyncio.sleep(0)
        finally:
            timer.is_live = False
            self._waking.discard(timer.number)

    def timeout(self, seconds: float | None) -> AbstractAsyncContextManager[object]:
        return self._timeout(seconds)

    @asynccontextmanager
    async def _timeout(self, seconds: float | None) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(None) as scope:
            if seconds is None:
                yield
                return

            def cancel() -> None:
                scope.reschedule(loop.time())
                # Two passes of the loop: one cancels the task, in the next it acts.
                loop.call_soon(loop.call_soon, self._waking.discard, timer.number)

            timer = self._add(seconds, cancel)
            try:
                yield
            finally:
                timer.is_live = False

    def _add(self, seconds: float, fire: Callable[[], None]) -> _Timer:
        self._made += 1
        timer = _Timer(self._passed + max(0.0, seconds), self._made, fire)
        heapq.heappush(self._timers, timer)
        return timer

    def _nearest(self) -> _Timer | None:
        while self._timers and not self._timers[0].is_live:
            heapq.heappop(self._timers)
        return self._timers[0] if self._timers else None

    def _fire_nearest(self) -> None:
        timer = self._nearest()
        if timer is None:
            return
        self._passed = max(self._passed, timer.when)
        timer.is_live = False
        self._waking.add(timer.number)
        timer.fire()
