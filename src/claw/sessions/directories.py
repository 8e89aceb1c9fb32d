"""Directories that only the user may enter."""

from __future__ import annotations

import os

from claw.errors import SessionError
from claw.ports import Disk

__all__ = ["make_private", "may_create", "memory_only", "sync_directory"]

NO_PERSISTENCE_HINT = "Check the permissions and the free space, or use --no-session-persistence."


def memory_only(home: str) -> str:
    """What a person is told of a home in which no session can be kept."""
    return f"{home} cannot be written: sessions are kept in memory only"


def make_private(path: str, disk: Disk) -> None:
    """Make a directory and those above it, 0700 each; what exists stays as it is.

    Raises ``SessionError``.
    """
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        parent = os.path.dirname(path)
        if parent == path:
            break
        path = parent
    try:
        for directory in reversed(missing):
            try:
                disk.mkdir(directory, 0o700)
            except FileExistsError:  # another process was first
                if not os.path.isdir(directory):
                    raise
    except OSError as error:
        raise SessionError(
            f"cannot make the directory {missing[0]}: {error.strerror}",
            hint=NO_PERSISTENCE_HINT,
        ) from error


def sync_directory(path: str, disk: Disk) -> None:
    """Make the names in a directory survive power loss. Raises ``OSError``."""
    fd = disk.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        disk.fsync(fd)
    finally:
        disk.close(fd)


def may_create(path: str) -> bool:
    """Whether files can be made in a directory that may not exist yet; leaves nothing behind."""
    missing = False
    while not os.path.exists(path):
        if os.path.islink(path):  # to nothing: no directory can be made there
            return False
        parent = os.path.dirname(path)
        if parent == path:
            return False
        path, missing = parent, True
    if not os.path.isdir(path) or not os.access(path, os.W_OK | os.X_OK):
        return False
    return not missing or _takes_directories(path)


def _takes_directories(path: str) -> bool:
    """By a try: file systems such as /proc give a permission that means nothing."""
    attempt = os.path.join(path, f".claw-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        os.mkdir(attempt, 0o700)
        os.rmdir(attempt)
    except OSError:
        return False
    return True
