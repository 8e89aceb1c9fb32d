"""``FaultyDisk``: a disk of which the n-th call fails, as SQLite tests its own.

Run the same thing with ``fail_at`` 1, 2, 3, ... until the fault is not reached any
more (``hit`` stays false); each time, look at what is left on the disk.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Literal, NoReturn, TypeVar

from claw.ports import Disk

__all__ = ["Fault", "FaultyDisk", "Killed"]

T = TypeVar("T")

Fault = Literal["EIO", "ENOSPC", "short_write", "kill", "torn_write", "late_kill"]
"""What happens to the n-th call:

* ``EIO``, ``ENOSPC``: it does nothing and raises that ``OSError`` (``close`` closes first).
* ``short_write``: a ``write`` writes half of the bytes and says so; the next one, or a call
  that is no ``write``, raises ``ENOSPC``.
* ``kill``: the process is killed before the call.
* ``torn_write``: it is killed in the middle: a ``write`` has written half.
* ``late_kill``: it is killed right after the call.
"""


class Killed(BaseException):
    """Stands for ``kill -9``: no I/O after it. No ``Exception``, so that nobody handles it."""


class FaultyDisk:
    """Any ``Disk``, of which call ``fail_at`` (counted from 1; 0 is none) fails with ``fault``.

    ``calls`` are the names of the calls so far, ``hit`` says that the fault came.
    With ``lasting``, every call from then on fails alike until ``heal()``, but those
    that need no room (``close``, ``truncate``, ``unlink``). After a kill the files
    that were open are closed, as the kernel does, and every call raises ``Killed``.
    """

    def __init__(
        self, disk: Disk, *, fail_at: int = 0, fault: Fault = "EIO", lasting: bool = False
    ) -> None:
        self.calls: list[str] = []
        self.hit = False
        self.killed = False
        self._disk = disk
        self._fail_at = fail_at
        self._fault = fault
        self._lasting = lasting
        self._failing = False
        self._open: set[int] = set()

    def heal(self) -> None:
        """From now on every call succeeds: there is space again."""
        self._fail_at = 0
        self._failing = False
        self._lasting = False

    def open(self, path: str, flags: int, mode: int = 0o600, *, dir_fd: int | None = None) -> int:
        def opened() -> int:
            fd = self._disk.open(path, flags, mode, dir_fd=dir_fd)
            self._open.add(fd)
            return fd

        return self._call("open", opened)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        half = data[: len(data) // 2]
        return self._call(
            "write", lambda: self._disk.write(fd, data), lambda: self._disk.write(fd, half)
        )

    def fsync(self, fd: int) -> None:
        self._call("fsync", lambda: self._disk.fsync(fd))

    def truncate(self, fd: int, size: int) -> None:
        self._call("truncate", lambda: self._disk.truncate(fd, size))

    def chmod(self, fd: int, mode: int) -> None:
        self._call("chmod", lambda: self._disk.chmod(fd, mode))

    def chown(self, fd: int, uid: int, gid: int) -> None:
        self._call("chown", lambda: self._disk.chown(fd, uid, gid))

    def flock(self, fd: int) -> None:
        self._call("flock", lambda: self._disk.flock(fd))

    def close(self, fd: int) -> None:
        def closed() -> None:
            self._open.discard(fd)
            self._disk.close(fd)

        try:
            self._call("close", closed)
        except OSError:
            if fd in self._open:
                closed()
            raise

    def rename(self, source: str, target: str, *, dir_fd: int | None = None) -> None:
        self._call("rename", lambda: self._disk.rename(source, target, dir_fd=dir_fd))

    def link(self, source: str, target: str, *, dir_fd: int | None = None) -> None:
        self._call("link", lambda: self._disk.link(source, target, dir_fd=dir_fd))

    def unlink(self, path: str, *, dir_fd: int | None = None) -> None:
        self._call("unlink", lambda: self._disk.unlink(path, dir_fd=dir_fd))

    def mkdir(self, path: str, mode: int = 0o700, *, dir_fd: int | None = None) -> None:
        self._call("mkdir", lambda: self._disk.mkdir(path, mode, dir_fd=dir_fd))

    def rmdir(self, path: str) -> None:
        self._call("rmdir", lambda: self._disk.rmdir(path))

    def _call(self, name: str, do: Callable[[], T], do_half: Callable[[], T] | None = None) -> T:
        if self.killed:
            raise Killed
        self.calls.append(name)
        if len(self.calls) == self._fail_at:
            self.hit = True
            return self._fail(name, do, do_half)
        if self._failing and (self._lasting or name == "write") and name not in _NEED_NO_ROOM:
            self._failing = self._lasting
            raise _error(self._fault)
        return do()

    def _fail(self, name: str, do: Callable[[], T], do_half: Callable[[], T] | None) -> T:
        self._failing = self._lasting
        match self._fault:
            case "short_write" if do_half is not None:
                self._failing = True
                return do_half()
            case "torn_write" if do_half is not None:
                do_half()
                self._die()
            case "kill" | "torn_write":
                self._die()
            case "late_kill":
                do()
                self._die()
        raise _error(self._fault)

    def _die(self) -> NoReturn:
        self.killed = True
        for fd in self._open:
            self._disk.close(fd)
        self._open.clear()
        raise Killed


_NEED_NO_ROOM = ("close", "truncate", "unlink")


def _error(fault: Fault) -> OSError:
    number = errno.EIO if fault == "EIO" else errno.ENOSPC
    return OSError(number, os.strerror(number))
