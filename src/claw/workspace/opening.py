"""Opening what a path leads to, one component at a time, and never through a link.

``real_path`` follows links as the kernel would; ``parent_of`` then opens the
result beneath a trusted directory without following any, so that a link swapped
in between is refused instead of followed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from claw.ports import Disk

__all__ = ["open_regular", "parent_of", "real_path"]

_MOST_LINKS = 40  # as the kernel
_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def real_path(path: str) -> str:
    """Every link of an absolute path resolved; what does not exist yet keeps its name.

    Raises ``OSError`` for loops, forbidden directories and impossible paths.
    """
    missing: list[str] = []
    links = 0
    while True:
        try:
            return os.path.join(os.path.realpath(path, strict=True), *reversed(missing))
        except FileNotFoundError:
            head, name = os.path.split(path.rstrip("/"))
            if os.path.islink(path):  # dangling: where would it create something?
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path) from None
                path = os.path.join(head, os.readlink(path))
            elif name in ("", ".."):
                raise
            else:
                if name != ".":
                    missing.append(name)
                path = head


@contextmanager
def parent_of(real: str, base: str, *, create: Disk | None = None) -> Iterator[tuple[int, str]]:
    """The open directory of ``real``, and the name in it.

    ``base`` is a trusted directory above ``real``. With a disk to ``create`` them on,
    missing directories are made. Raises ``OSError``, ``ENOTDIR`` where a component is a link.
    """
    *folders, name = os.path.relpath(real, base).split("/")
    fd = os.open(base, _DIRECTORY)
    try:
        for folder in folders:
            fd = _step(fd, folder, create)
        yield fd, name
    finally:
        os.close(fd)


def open_regular(directory: int, name: str) -> tuple[int, os.stat_result]:
    """Open a regular file for reading; raises ``OSError`` (``EINVAL`` for any other kind)."""
    _demand_regular(os.stat(name, dir_fd=directory, follow_symlinks=False))
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
    fd = os.open(name, flags, dir_fd=directory)
    try:
        found = os.fstat(fd)
        _demand_regular(found)
    except BaseException:
        os.close(fd)
        raise
    return fd, found


def _step(fd: int, folder: str, create: Disk | None) -> int:
    """From an open directory to one in it; closes the first one on success."""
    if create is not None:
        with suppress(FileExistsError):
            create.mkdir(folder, 0o777, dir_fd=fd)
    inner = os.open(folder, _DIRECTORY, dir_fd=fd)
    os.close(fd)
    return inner


def _demand_regular(found: os.stat_result) -> None:
    if stat.S_ISREG(found.st_mode):
        return
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise OSError(errno.EINVAL, "not a regular file")
