"""Deleting sessions, with all that lies beside their journals."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from functools import partial

import msgspec

from claw.errors import SessionError
from claw.ports import Disk
from claw.sessions.blobs import blobs_dir
from claw.sessions.lock import locked
from claw.sessions.writing import reason

__all__ = ["Pruned", "delete", "prune"]

_SUFFIX = ".jsonl"


class Pruned(msgspec.Struct, frozen=True):
    """``deleted`` are paths of journals, ``bytes`` what they and their blobs took.

    ``kept`` are sessions that were old enough but could not be deleted, with the reason.
    """

    deleted: tuple[str, ...]
    bytes: int
    kept: tuple[tuple[str, str], ...]


def delete(path: str, *, disk: Disk) -> int:
    """Remove a session: blobs, torn and damaged parts, and last the journal itself.

    Returns the bytes that it took. Raises ``SessionNotFound``, ``SessionLocked`` where
    it is in use, ``SessionError``; what was broken off can be done again.
    """
    return locked(path, disk, partial(_delete_files, disk=disk))


def prune(
    home: str, older_than_seconds: float, *, now: float, disk: Disk, dry_run: bool = False
) -> Pruned:
    """Delete the sessions of all projects that nobody changed for so long.

    Leftovers of sessions that are gone go too, and empty directories. ``now`` is in
    seconds since the epoch. With ``dry_run`` nothing is deleted, only told. Raises
    ``SessionError`` where the sessions cannot be listed.
    """
    limit = now - older_than_seconds
    free = _size_of if dry_run else partial(_delete_files, disk=disk)
    deleted: list[str] = []
    kept: list[tuple[str, str]] = []
    freed = 0
    top = os.path.join(home, "sessions")
    for directory in _directories(top):
        for name in _listed(directory):
            path = os.path.join(directory, name)
            if not name.endswith(_SUFFIX) or _changed(path) > limit:
                continue
            try:
                freed += locked(path, disk, free)
                deleted.append(path)
            except SessionError as error:
                kept.append((path, error.message))
        if dry_run:
            continue
        freed += _delete_leftovers(directory, limit, disk)
        with contextlib.suppress(OSError):  # not empty
            disk.rmdir(directory)
    return Pruned(tuple(deleted), freed, tuple(kept))


def _size_of(path: str) -> int:
    """The bytes that deleting would free."""
    directory = blobs_dir(path)
    blobs = [os.path.join(directory, name) for name in _listed(directory)]
    return sum(_freed(os.lstat(file)) for file in (*blobs, *_beside(path), path))


def _beside(path: str) -> list[str]:
    directory, name = os.path.split(path)
    return [
        os.path.join(directory, other)
        for other in _listed(directory)
        if other.startswith(f"{name}.") and not other.endswith(_SUFFIX)  # that is a session
    ]


def _delete_files(path: str, disk: Disk) -> int:
    try:
        freed = _remove_tree(blobs_dir(path), disk)
        for file in (*_beside(path), path):
            freed += _remove(file, disk)
    except OSError as error:
        raise SessionError(f"cannot delete {path}: {reason(error)}") from error
    return freed


def _delete_leftovers(directory: str, limit: float, disk: Disk) -> int:
    """What belongs to a journal that is not there any more."""
    freed = 0
    for name in _listed(directory):
        path = os.path.join(directory, name)
        if _changed(path) > limit or os.path.exists(os.path.join(directory, _owner(name))):
            continue
        with contextlib.suppress(OSError):
            is_blobs = name.endswith(".blobs")
            freed += _remove_tree(path, disk) if is_blobs else _remove(path, disk)
    return freed


def _owner(name: str) -> str:
    """The journal that a file belongs to; the name itself where it is none of ours."""
    if name.endswith(_SUFFIX):
        return name
    if name.endswith((".blobs", ".lock")):
        return name.rpartition(".")[0] + _SUFFIX
    head, suffix, rest = name.partition(f"{_SUFFIX}.")
    ours = rest.startswith(("torn-", "damaged-")) or rest.endswith("tmp")
    return head + _SUFFIX if suffix and ours else name


def _remove_tree(directory: str, disk: Disk) -> int:
    """A directory of files. One that is not there takes nothing."""
    if os.path.islink(directory) or not os.path.isdir(directory):
        return 0
    freed = sum(_remove(os.path.join(directory, name), disk) for name in os.listdir(directory))
    disk.rmdir(directory)
    return freed


def _remove(path: str, disk: Disk) -> int:
    status = os.lstat(path)
    disk.unlink(path)
    return _freed(status)


def _freed(status: os.stat_result) -> int:
    """What a fork still has by a hard link is not freed."""
    return status.st_size if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 else 0


def _directories(top: str) -> Iterator[str]:
    for name in _listed(top):
        path = os.path.join(top, name)
        if os.path.isdir(path) and not os.path.islink(path):
            yield path


def _listed(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SessionError(f"cannot list {directory}: {reason(error)}") from error


def _changed(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:  # somebody else was quicker
        return float("inf")
