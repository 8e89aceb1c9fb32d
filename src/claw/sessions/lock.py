"""One writer a session: ``flock`` on the journal, and a file that tells people who it is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import TypeVar

from claw.errors import SessionError, SessionLocked, SessionNotFound
from claw.ports import Disk
from claw.sessions.directories import NO_PERSISTENCE_HINT
from claw.sessions.load import refuse_foreign
from claw.sessions.writing import reason, write_all

__all__ = ["APPENDING", "is_at", "lock", "lock_path", "locked", "open_existing", "unlock"]

APPENDING = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC

T = TypeVar("T")


def open_existing(path: str, disk: Disk) -> int:
    """A descriptor of a journal to append to. Raises ``SessionNotFound``, ``SessionError``."""
    try:
        return disk.open(path, APPENDING)
    except FileNotFoundError as error:
        raise SessionNotFound(
            f"there is no session file {path}", hint="`--resume latest` takes the newest one."
        ) from error
    except OSError as error:
        raise SessionError(
            f"cannot open {path} for writing: {reason(error)}",
            hint="Check the permissions. `claw sessions show` and `claw export` only read.",
        ) from error


def lock(fd: int, path: str, disk: Disk) -> None:
    """Become the one writer of an open journal. Raises ``SessionLocked``, ``SessionError``."""
    try:
        disk.flock(fd)
    except BlockingIOError as error:
        pid = _holder(path)
        raise SessionLocked(
            f"{path} is in use by another claw" + (f" (process {pid})" if pid else ""),
            pid=pid,
            hint="Close the other one, or go on with a copy: `--fork-session`.",
        ) from error
    except OSError as error:
        raise SessionError(
            f"cannot lock {path}: {reason(error)}", hint=NO_PERSISTENCE_HINT
        ) from error
    if not is_at(fd, path):
        raise SessionError(f"{path} was moved or deleted while it was opened", hint="Try again.")
    with contextlib.suppress(OSError):  # the lock itself is the flock
        _write_holder(path, disk)


def unlock(fd: int, path: str, disk: Disk) -> None:
    """Let go of a journal and close it; nothing that was written depends on this."""
    with contextlib.suppress(OSError):
        disk.unlink(lock_path(path))  # while the lock is held, so it is surely our own
    with contextlib.suppress(OSError):
        disk.close(fd)


def lock_path(path: str) -> str:
    """Where the id of the process that writes a journal stands."""
    return path.removesuffix(".jsonl") + ".lock"


def is_at(fd: int, path: str) -> bool:
    """Whether an open file is the one that has this name."""
    try:
        at_path = os.stat(path)
    except OSError:
        return False
    return os.path.samestat(os.fstat(fd), at_path)


def _write_holder(path: str, disk: Disk) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    fd = disk.open(lock_path(path), flags, 0o600)
    try:
        write_all(disk, fd, b"%d\n" % os.getpid())
    finally:
        disk.close(fd)


def _holder(path: str) -> int:
    try:
        with open(lock_path(path), "rb") as file:
            return int(file.read(20))
    except (OSError, ValueError):
        return 0


def locked(path: str, disk: Disk, action: Callable[[str], T]) -> T:
    """What ``action`` gives for the absolute path of a session that nobody else has in use.

    Raises ``SessionNotFound``, ``SessionLocked``, ``SessionError``.
    """
    path = os.path.abspath(path)
    fd = open_existing(path, disk)
    try:
        refuse_foreign(path)
        lock(fd, path, disk)
    except BaseException:
        with contextlib.suppress(OSError):
            disk.close(fd)
        raise
    try:
        return action(path)
    finally:
        unlock(fd, path, disk)
