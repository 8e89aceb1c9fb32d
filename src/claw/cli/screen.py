"""``Screen``: stdout, stderr and the one status line that may stand below them."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from claw.cli.style import Paint
from claw.cli.terminal import Terminal
from claw.errors import ConfigError

__all__ = ["BROKEN_PIPE", "Screen"]

BROKEN_PIPE = 141  # as a shell reports SIGPIPE

_ERASE = "\r\x1b[J"  # the line of the cursor and what is below
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
_MARK_PASTES, _DO_NOT = "\x1b[?2004h", "\x1b[?2004l"
_COLUMN = re.compile(r"\s*(?:\S+(?: \S+)*\s{2,})?")


class Screen:
    """All that a command writes goes through here, so that nothing writes over another.

    ``broken`` is why stdout takes no more, None while it does; ``on_broken`` is called
    then, once. A reader that went away is a ``BrokenPipeError``. Writing never raises.
    """

    def __init__(self, terminal: Terminal, out: TextIO | None, err: TextIO | None) -> None:
        self.terminal = terminal
        self.paint = Paint(terminal.color_stderr)
        self.broken: OSError | None = OSError(errno.EBADF, "it is closed") if out is None else None
        self.on_broken: Callable[[], None] = lambda: None
        self._out = out
        self._err = err
        self._in_line = False
        self._after_blank = True
        self._status = ""
        self._held = 0

    def product(self, text: str) -> None:
        """Write to stdout, and flush."""
        if self.broken is not None or self._out is None or not text:
            return
        if self.terminal.stdout:
            self._hide()
            self._after_blank = text.endswith("\n\n") or (text == "\n" and not self._in_line)
            self._in_line = not text.endswith("\n")
        try:
            self._out.write(text)
            self._out.flush()
        except OSError as error:
            self.broken = error
            self.on_broken()

    def exit_code(self, code: int) -> int:
        """``code``, where stdout took all it was given. Raises ``ConfigError`` where it did not;
        a reader that went away is no error."""
        if isinstance(self.broken, BrokenPipeError):
            return BROKEN_PIPE
        if self.broken is not None:
            raise ConfigError(f"cannot write to stdout: {self.broken.strerror}")
        return code

    def line(self, text: str = "") -> None:
        """Write whole lines to stderr."""
        self._hide()
        if self.terminal.stderr:
            self.end_line()
            self._after_blank = not text
        self._write(text + "\n")

    def say(self, text: str, *styles: str) -> None:
        """Write words of claw's own to stderr; on a terminal no line breaks inside one."""
        for line in self.wrapped(text):
            self.line(self.paint(line, *styles))

    def wrapped(self, text: str) -> list[str]:
        """The text in lines that fit a terminal; elsewhere they stay as they are."""
        lines = text.split("\n")
        width = self.terminal.width - 1
        if not self.terminal.stderr or all(len(line) <= width for line in lines):
            return lines
        import textwrap  # nobody else needs it

        wrapped = []
        for line in lines:
            # Under the second column, where a line has two.
            column = _COLUMN.match(line)
            hang = len(column[0]) if column else 0
            wrapped += textwrap.wrap(
                line,
                width,
                subsequent_indent=" " * (hang if hang <= width // 2 else 2),
                break_long_words=False,
                break_on_hyphens=False,
            ) or [""]
        return wrapped

    def gap(self) -> None:
        """One blank line on the terminal, unless there is one or nothing stands above."""
        if self._after_blank:
            return
        self.end_line()
        if self.terminal.stderr:
            self.line()
        else:
            self.product("\n")

    def ask(self, text: str) -> None:
        """Write the beginning of a line to stderr: the answer is typed behind it."""
        self._hide()
        self.end_line()
        self._after_blank = False
        self._write(text)

    def end_line(self) -> None:
        """What is written next begins at the left."""
        if self._in_line:
            self.product("\n")

    def status(self, text: str) -> None:
        """Show ``text`` as the last line, blank for none; it moves down as others write."""
        if not self.terminal.animated:
            return
        if not text:
            self._hide()
        elif text != self._status and not self._in_line and not self._held:
            self._status = text
            # The cursor waits at its beginning: there it is still when a narrower window
            # has broken the line in two.
            self._write(f"{_ERASE}{_NO_WRAP}{text}{_WRAP}\r")

    @contextmanager
    def held(self) -> Iterator[None]:
        """No status line inside the block."""
        self._hide()
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    @contextmanager
    def pastes_marked(self) -> Iterator[None]:
        """Inside the block the terminal, where it can, puts marks around what is pasted."""
        if not self.terminal.animated:
            yield
            return
        self._write(_MARK_PASTES)
        try:
            yield
        finally:
            self._write(_DO_NOT)

    def _hide(self) -> None:
        if self._status:
            self._status = ""
            self._write(_ERASE)

    def _write(self, text: str) -> None:
        if self._err is None:
            return
        with suppress(OSError, ValueError):
            self._err.write(text)
            self._err.flush()
