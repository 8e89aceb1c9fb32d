from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.testing.clock import FakeClock


async def test_a_sleep_takes_its_time_and_no_time():
    clock = FakeClock(1000.0)
    await clock.sleep(3600)
    assert (clock.now(), clock.monotonic(), clock.sleeps) == (4600.0, 3600.0, [3600])


@given(st.lists(st.integers(0, 50), max_size=8))
async def test_sleepers_wake_in_order_of_their_deadlines(delays):
    clock = FakeClock()
    woken: list[tuple[float, int]] = []

    async def sleep(seconds: int) -> None:
        await clock.sleep(seconds)
        woken.append((clock.monotonic(), seconds))

    await asyncio.gather(*(sleep(seconds) for seconds in delays))
    assert [seconds for _, seconds in woken] == sorted(delays)
    assert all(at == seconds for at, seconds in woken)


async def test_the_nearest_of_nested_timeouts_fires_at_its_time():
    clock = FakeClock()
    async with clock.timeout(100):
        with pytest.raises(TimeoutError):
            async with clock.timeout(5):
                await clock.sleep(50)
    assert clock.monotonic() == 5


async def test_a_timeout_that_is_over_does_not_fire_later():
    clock = FakeClock()
    async with clock.timeout(5):
        pass
    await clock.sleep(10)


async def test_by_hand_only_advance_moves_time():
    clock = FakeClock(automatic=False)
    task = asyncio.create_task(clock.sleep(10))
    await asyncio.sleep(0)
    clock.advance(9)
    await asyncio.sleep(0)
    assert not task.done()
    clock.advance(1)
    await task
    assert clock.monotonic() == 10


async def test_advance_ends_work_that_never_sleeps():
    clock = FakeClock()

    async def hang() -> None:
        async with clock.timeout(60):
            await asyncio.Event().wait()

    task = asyncio.create_task(hang())
    await asyncio.sleep(0)
    clock.advance(60)
    with pytest.raises(TimeoutError):
        await task


async def test_a_cancelled_sleeper_holds_nobody_up():
    clock = FakeClock()
    gone = asyncio.create_task(clock.sleep(5))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    await clock.sleep(1)
    assert clock.monotonic() == 1
