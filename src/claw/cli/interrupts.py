"""One handler of SIGINT, SIGTERM and SIGHUP for the life of a command.

It tells whatever is in front: a turn, a line editor, a question. So there is no
gap in which a Ctrl-C would hit nobody, or the process.
"""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click

__all__ = ["Interrupts", "interruptible"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Use as a context manager in a running loop; former handlers come back at its end.

    What stands behind everything else is the task that opened it: with nothing
    in front, a signal cancels that task.
    """

    def __init__(self) -> None:
        self._front: list[Callable[[], None]] = []
        self._formers: dict[int, Any] = {}
        self._to_end = 0  # SIGTERM or SIGHUP, once one came

    def __enter__(self) -> Interrupts:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        self._front.append(lambda: _cancel(task))

        def on_signal(number: int, _frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self._fire, number)

        for number in _SIGNALS:
            former = signal.getsignal(number)
            if former is signal.SIG_IGN and number == signal.SIGHUP:
                continue  # `nohup claw ...`
            self._formers[number] = former
            signal.signal(number, on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, former in self._formers.items():
            signal.signal(number, former)

    @contextmanager
    def front(self, action: Callable[[], None]) -> Iterator[None]:
        """While the block runs, signals call ``action``."""
        self._front.append(action)
        try:
            yield
        finally:
            self._front.pop()

    @property
    def ending(self) -> bool:
        """Not only what is in front is to end, but the process."""
        return self._to_end != 0

    @property
    def exit_code(self) -> int:
        """Of a command that a signal ended: 130, 143, 129."""
        return 128 + (self._to_end or signal.SIGINT)

    def _fire(self, number: int) -> None:
        if number != signal.SIGINT:
            self._to_end = number
        self._front[-1]()


def _cancel(task: asyncio.Task[object]) -> None:
    task.cancel()


@contextmanager
def interruptible() -> Iterator[None]:
    """A signal ends the loop that runs in the block, and what it began, before the command."""
    ended: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        ended.append(number)
        signal.raise_signal(signal.SIGINT)  # that loop listens to that one

    gc.enable()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup claw ...`
            signal.signal(number, end)
    try:
        yield
    except KeyboardInterrupt:
        if ended:
            raise click.exceptions.Exit(128 + ended[0]) from None
        raise
