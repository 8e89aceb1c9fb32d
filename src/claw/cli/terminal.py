"""What the three standard streams are, and how a terminal is set while it is ours."""

from __future__ import annotations

import os
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import msgspec

__all__ = ["Terminal", "forget_typed", "typed_at_once", "typing_hidden", "typing_shown"]

_LFLAG = 3  # place of the local modes in what tcgetattr gives


class Terminal(msgspec.Struct, frozen=True):
    """``stdin``, ``stdout``, ``stderr``: is that stream a terminal?

    ``animated``: the status line may move on stderr. ``pictures``: it shows UTF-8.
    """

    stdin: bool
    stdout: bool
    stderr: bool
    color_stdout: bool
    color_stderr: bool
    animated: bool
    pictures: bool

    @staticmethod
    def look(env: Mapping[str, str]) -> Terminal:
        """Of this process. Follows NO_COLOR (no-color.org), FORCE_COLOR and TERM=dumb."""
        stdin, stdout, stderr = (_is_terminal(fd) for fd in (0, 1, 2))
        dumb = env.get("TERM", "") in ("dumb", "")
        forced = env.get("FORCE_COLOR", "") not in ("", "0")
        never = bool(env.get("NO_COLOR"))

        def colored(is_terminal: bool) -> bool:
            return not never and (forced or (is_terminal and not dumb))

        return Terminal(
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            color_stdout=colored(stdout),
            color_stderr=colored(stderr),
            animated=stderr and not dumb,
            pictures=_is_utf8(env),
        )

    @property
    def width(self) -> int:
        """Columns, 80 where nobody knows."""
        try:
            return max(20, os.get_terminal_size(2).columns)
        except OSError:
            return 80


def _is_utf8(env: Mapping[str, str]) -> bool:
    """By the locale. Python itself sets LC_CTYPE to C.UTF-8 where the locale is C (PEP 538)."""
    ctype = "" if env.get("LANG") in ("C", "POSIX") else env.get("LC_CTYPE")
    locale = (env.get("LC_ALL") or ctype or env.get("LANG") or "").lower()
    return "utf-8" in locale or "utf8" in locale


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False


@contextmanager
def typing_hidden(fd: int) -> Iterator[None]:
    """What is typed does not show until the block ends; Ctrl-C still works."""
    with _local_mode(fd, on=0, off=termios.ECHO):
        yield


@contextmanager
def typing_shown(fd: int) -> Iterator[None]:
    """A line can be typed and seen until the block ends."""
    with _local_mode(fd, on=termios.ECHO | termios.ICANON | termios.ISIG, off=0):
        yield


@contextmanager
def typed_at_once(fd: int) -> Iterator[None]:
    """Characters can be read before their line ends, until the block does."""
    with _local_mode(fd, on=0, off=termios.ICANON):
        yield


def forget_typed(fd: int) -> None:
    """Throw away what was typed and not read yet."""
    with suppress(termios.error):
        termios.tcflush(fd, termios.TCIFLUSH)


@contextmanager
def _local_mode(fd: int, *, on: int, off: int) -> Iterator[None]:
    try:
        before = termios.tcgetattr(fd)
    except termios.error:  # no terminal
        yield
        return
    wanted = [*before]
    wanted[_LFLAG] = (before[_LFLAG] | on) & ~off
    try:
        termios.tcsetattr(fd, termios.TCSANOW, wanted)
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(fd, termios.TCSANOW, before)
