"""Writing through the port ``Disk``: all bytes, whole files, and what a failure is called."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable

from claw.ports import Disk
from claw.sessions.directories import sync_directory

__all__ = ["free_name", "put_file", "reason", "write_all"]


def write_all(disk: Disk, fd: int, data: bytes) -> None:
    """In one write, as a rule; after one that was cut short, the next says what is wrong.

    Raises ``OSError``.
    """
    rest = memoryview(data)
    while rest:
        written = disk.write(fd, rest)
        if not written:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rest = rest[written:]


def put_file(disk: Disk, temporary: str, pieces: Iterable[bytes]) -> None:
    """A new private file with these bytes, which survives power loss; none where that fails.

    Raises ``OSError``, and whatever ``pieces`` raise.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = disk.open(temporary, flags, 0o600)
    try:
        try:
            for piece in pieces:
                write_all(disk, fd, piece)
            disk.fsync(fd)
        finally:
            disk.close(fd)
        sync_directory(os.path.dirname(temporary), disk)
    except BaseException:
        with contextlib.suppress(OSError):
            disk.unlink(temporary)
        raise


def free_name(path: str) -> str:
    """The path, with a number where there is something already."""
    name, n = path, 1
    while os.path.lexists(name):
        n += 1
        name = f"{path}-{n}"
    return name


def reason(error: OSError) -> str:
    """What a person is told of a failed call."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full ({error.strerror})"
    return error.strerror or str(error)
