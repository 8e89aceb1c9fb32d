"""A child's pipes on the event loop: output bounded in memory, input never in the way."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from typing import IO

__all__ = ["Feed", "Output"]

_PIECE = 256 * 1024  # bytes read at once, so that other tasks get their turn
_LAST_LOOK = 1024 * 1024  # bytes taken at the end; a pipe holds no more


class Output:
    """Reads a pipe and keeps the first and the last ``keep`` bytes.

    ``closed`` is done when nobody holds the pipe's other end any more.
    """

    def __init__(
        self, pipe: IO[bytes], keep: int, on_output: Callable[[bytes], None] | None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._pipe = pipe
        self._keep = keep
        self._told = on_output
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._dropped = 0
        self.closed: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(pipe.fileno(), False)
        self._loop.add_reader(pipe.fileno(), self._take)

    def joined(self) -> tuple[bytes, int]:
        """What was kept, and how many bytes are missing after the first ``keep``."""
        surplus = max(self._tail_size - self._keep, 0)  # less than the first piece holds
        first, *rest = self._tail or (b"",)
        return b"".join((self._head, first[surplus:], *rest)), self._dropped + surplus

    def take_rest(self) -> None:
        """Take what is in the pipe now, without waiting."""
        taken = 0
        while not self.closed.done() and taken < _LAST_LOOK:
            size = self._take()
            if size == 0:
                return
            taken += size

    def close(self) -> None:
        if not self.closed.done():
            self._loop.remove_reader(self._pipe.fileno())
            self.closed.set_result(None)
        self._pipe.close()

    def _take(self) -> int:
        try:
            data = os.read(self._pipe.fileno(), _PIECE)
        except BlockingIOError:
            return 0
        if not data:
            self._loop.remove_reader(self._pipe.fileno())
            self.closed.set_result(None)
            return 0
        self._add(data)
        if self._told is not None:
            self._told(data)
        return len(data)

    def _add(self, data: bytes) -> None:
        room = self._keep - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) >= self._keep:
            first = self._tail.popleft()
            self._tail_size -= len(first)
            self._dropped += len(first)


class Feed:
    """Writes ``data`` to a pipe as the other side reads it, then closes the pipe."""

    def __init__(self, pipe: IO[bytes], data: bytes) -> None:
        self._loop = asyncio.get_running_loop()
        self._pipe = pipe
        self._rest = memoryview(data)
        os.set_blocking(pipe.fileno(), False)
        self._loop.add_writer(pipe.fileno(), self._give)

    def close(self) -> None:
        if not self._pipe.closed:
            self._loop.remove_writer(self._pipe.fileno())
            self._pipe.close()

    def _give(self) -> None:
        try:
            self._rest = self._rest[os.write(self._pipe.fileno(), self._rest) :]
        except BlockingIOError:
            return
        except OSError:  # the program closed its input: it has read enough
            self._rest = self._rest[:0]
        if not self._rest:
            self.close()
