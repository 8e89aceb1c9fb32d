"""Putting a file's new content in place in one step: old or new on disk, never half."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress

from claw.errors import ToolFailed
from claw.ports import Disk
from claw.workspace.opening import open_regular

__all__ = ["current_file", "digest", "read_all", "replace_file"]

_CHUNK = 1024 * 1024


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read_all(fd: int, size: int) -> bytes:
    """At most ``size`` bytes: a growing file is read as it was when it was opened."""
    pieces: list[bytes] = []
    while size > 0 and (piece := os.read(fd, min(size, _CHUNK))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def current_file(directory: int, name: str, path: str, expect: str | None) -> os.stat_result | None:
    """What is to be replaced, None for a new file; raises ``ToolFailed`` for any surprise."""
    try:
        fd, found = open_regular(directory, name)
    except FileNotFoundError:
        if expect is None:
            return None
        raise ToolFailed(f"{path} was deleted since it was read.") from None
    try:
        if expect is None:
            raise ToolFailed(f"{path} exists already. Read it before replacing it.")
        if digest(read_all(fd, found.st_size)) != expect:
            raise ToolFailed(f"{path} was changed since it was read. Read it again.")
    finally:
        os.close(fd)
    if found.st_nlink > 1:
        raise ToolFailed(
            f"{path} has {found.st_nlink} hard links: replacing it would part them. "
            "Change it with Bash (`cat > file`), which writes into the same file."
        )
    if not found.st_mode & 0o222:
        raise ToolFailed(f"{path} is read-only (mode {stat.S_IMODE(found.st_mode):04o}).")
    return found


def replace_file(
    directory: int,
    name: str,
    path: str,
    data: bytes,
    before: os.stat_result | None,
    *,
    disk: Disk,
    mode: int | None = None,
) -> int:
    """Put ``data`` in place in one step; returns the file's mode.

    A new file gets ``mode``, or what the process's mask makes of 0666.
    """
    temporary = f".claw-{os.urandom(8).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = disk.open(temporary, flags, 0o666 if before is None else 0o600, dir_fd=directory)
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[disk.write(fd, rest) :]
            if before is not None:
                _keep_owner_and_mode(fd, path, before, disk)
            elif mode is not None:
                disk.chmod(fd, mode)
            disk.fsync(fd)
            became = stat.S_IMODE(os.fstat(fd).st_mode)
        finally:
            disk.close(fd)
        if before is None:
            _put_new(directory, temporary, name, path, disk)
        else:
            disk.rename(temporary, name, dir_fd=directory)
    except BaseException:
        with suppress(OSError):
            disk.unlink(temporary, dir_fd=directory)
        raise
    return became


def _keep_owner_and_mode(fd: int, path: str, before: os.stat_result, disk: Disk) -> None:
    now = os.fstat(fd)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        try:
            disk.chown(fd, before.st_uid, before.st_gid)
        except PermissionError:
            raise ToolFailed(
                f"{path} belongs to another user or group, which replacing it would change. "
                "Change it with Bash (`cat > file`), which writes into the same file."
            ) from None
    disk.chmod(fd, stat.S_IMODE(before.st_mode))


def _put_new(directory: int, temporary: str, name: str, path: str, disk: Disk) -> None:
    """Give the finished file its name, unless somebody took the name meanwhile."""
    try:
        disk.link(temporary, name, dir_fd=directory)
    except FileExistsError:
        raise ToolFailed(f"{path} exists already. Read it before replacing it.") from None
    except OSError:  # a file system without hard links; the name was free a moment ago
        disk.rename(temporary, name, dir_fd=directory)
    else:
        with suppress(OSError):  # the file is in place, whatever else it is called
            disk.unlink(temporary, dir_fd=directory)
