"""A line that a person typed as an answer, told apart from one that was pasted.

Pasted text may hold a line that reads like an answer. It is known by the marks that a
terminal puts around it where it is asked to (bracketed paste mode,
https://invisible-island.net/xterm/ctlseqs/ctlseqs.html), or by more input right behind
the line.
"""

from __future__ import annotations

import asyncio
import os

import msgspec

from claw.cli.terminal import typed_at_once

__all__ = ["Answers", "Entered"]

SETTLED = 0.05  # seconds without input after which nothing more belongs to a line
PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"
_MOST = 64 * 1024  # bytes


class Entered(msgspec.Struct, frozen=True):
    """A line without its end. ``typed``: whole, alone, and nothing of it was pasted.

    ``alone``: nothing came right behind it.
    """

    text: str
    typed: bool
    alone: bool


class Answers:
    """Reads lines from a terminal. No thread: cancelling leaves none behind."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pasting = False  # a paste has begun and not ended, however long it takes

    async def next(self) -> Entered | None:
        """The next line, None at the end of input. What comes right behind it is thrown away."""
        await self._readable()
        line = self._read()
        if not line:
            return None
        behind = await self._rest()
        pasted = self._pasting or PASTE_BEGINS in line or PASTE_ENDS in line
        begun, ended = ((line + behind).rfind(mark) for mark in (PASTE_BEGINS, PASTE_ENDS))
        if begun != ended:
            self._pasting = begun > ended
        return Entered(
            line.replace(PASTE_BEGINS, "").replace(PASTE_ENDS, "").strip(),
            typed=line.endswith("\n") and not pasted and not behind,
            alone=not behind.replace(PASTE_ENDS, ""),
        )

    async def _rest(self) -> str:
        """All that is there already or follows at once, also a line without an end."""
        rest = ""
        with typed_at_once(self._fd):
            while True:
                try:
                    await asyncio.wait_for(self._readable(), SETTLED)
                except TimeoutError:
                    return rest
                more = self._read()
                if not more:
                    return rest
                rest += more

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self._fd, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._fd)

    def _read(self) -> str:
        try:
            return os.read(self._fd, _MOST).decode(errors="replace")
        except OSError:  # the terminal is gone
            return ""
