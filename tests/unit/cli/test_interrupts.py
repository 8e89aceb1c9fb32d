"""Who gets a signal, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from claw.cli.interrupts import Interrupts


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


async def soon() -> None:
    await asyncio.sleep(0.01)


async def test_a_signal_reaches_what_is_in_front():
    told = []
    with Interrupts() as interrupts, interrupts.front(lambda: told.append("behind")):
        with interrupts.front(lambda: told.append("front")):
            send(signal.SIGINT)
            await soon()
        send(signal.SIGINT)
        await soon()
        assert not interrupts.ending
        assert interrupts.exit_code == 130
    assert told == ["front", "behind"]


async def test_with_nothing_in_front_the_task_is_cancelled():
    async def work() -> None:
        with Interrupts():
            send(signal.SIGINT)
            await asyncio.sleep(5)

    with pytest.raises(asyncio.CancelledError):
        await asyncio.ensure_future(work())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
async def test_a_signal_to_end_is_remembered(number: signal.Signals, code: int):
    told = []
    with Interrupts() as interrupts, interrupts.front(lambda: told.append(1)):
        send(number)
        await soon()
        send(signal.SIGINT)
        await soon()
        assert interrupts.ending
        assert interrupts.exit_code == code
    assert told == [1, 1]


async def test_former_handlers_come_back():
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    with Interrupts():
        assert [signal.getsignal(number) for number in numbers] != before
    assert [signal.getsignal(number) for number in numbers] == before
