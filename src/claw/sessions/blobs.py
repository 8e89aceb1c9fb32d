"""Bytes by content: files beside a session's journal, or memory."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable

from claw.errors import SessionError
from claw.ports import Disk
from claw.sessions.directories import NO_PERSISTENCE_HINT, make_private, sync_directory
from claw.sessions.writing import reason, write_all

__all__ = ["FileBlobs", "MemoryBlobs", "blobs_dir", "digest_of", "read_blob"]

_DIGEST = re.compile(r"[0-9a-f]{64}")

_EXAMINE = "`claw sessions verify` tells what of the session is lost."


def blobs_dir(journal_path: str) -> str:
    """The directory of the blobs that belong to a journal: ``<id>.blobs`` beside it."""
    return journal_path.removesuffix(".jsonl") + ".blobs"


def digest_of(data: bytes) -> str:
    """What a blob is called."""
    return hashlib.sha256(data).hexdigest()


def read_blob(directory: str, digest: str) -> bytes:
    """The bytes of one blob. Raises ``SessionError`` where it is missing or damaged."""
    path = os.path.join(directory, _checked(digest))
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError as error:
        raise _unknown(digest) from error
    except OSError as error:
        raise SessionError(f"cannot read {path}: {error.strerror}") from error
    if digest_of(data) != digest:
        raise SessionError(f"{path} is damaged: its content does not fit its name", hint=_EXAMINE)
    return data


class FileBlobs:
    """Implements ``Blobs``: one read-only file each, named by its SHA-256.

    The directory is made by the first ``put``. What was put survives kill -9; after
    ``sync`` it survives power loss, which the journal asks for before a record does.
    """

    def __init__(self, directory: str, disk: Disk) -> None:
        self._directory = os.path.abspath(directory)
        self._disk = disk
        self._known: set[str] = set()  # whole on disk
        self._unsynced: set[str] = set()
        self._name_is_durable = False

    def put(self, data: bytes) -> str:
        digest = digest_of(data)
        path = os.path.join(self._directory, digest)
        if digest in self._known and _size(path) == len(data):
            return digest
        if not _holds(path, data):
            self._write(path, data)
        self._known.add(digest)
        self._unsynced.add(digest)
        return digest

    def get(self, digest: str) -> bytes:
        return read_blob(self._directory, digest)

    def path(self, digest: str) -> str | None:
        return os.path.join(self._directory, _checked(digest))

    def sync(self, digests: Iterable[str]) -> None:
        """Make what was put under these names survive power loss. Raises ``OSError``."""
        waiting = self._unsynced.intersection(digests)
        for digest in sorted(waiting):
            fd = self._disk.open(os.path.join(self._directory, digest), os.O_RDONLY | os.O_CLOEXEC)
            try:
                self._disk.fsync(fd)
            finally:
                self._disk.close(fd)
        if waiting:
            sync_directory(self._directory, self._disk)
            if not self._name_is_durable:
                sync_directory(os.path.dirname(self._directory), self._disk)
                self._name_is_durable = True
        self._unsynced -= waiting

    def _write(self, path: str, data: bytes) -> None:
        make_private(self._directory, self._disk)
        temporary = f"{path}.{os.getpid()}.tmp"
        try:
            self._write_file(temporary, data)
            self._disk.rename(temporary, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._disk.unlink(temporary)
            raise SessionError(
                f"cannot store a file of the session in {self._directory}: {reason(error)}",
                hint=NO_PERSISTENCE_HINT,
            ) from error

    def _write_file(self, path: str, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = self._disk.open(path, flags, 0o600)
        try:
            write_all(self._disk, fd, data)
            self._disk.chmod(fd, 0o400)
        finally:
            self._disk.close(fd)


class MemoryBlobs:
    """Implements ``Blobs`` for a session that leaves nothing on disk."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        digest = digest_of(data)
        self._held[digest] = data
        return digest

    def get(self, digest: str) -> bytes:
        try:
            return self._held[digest]
        except KeyError as error:
            raise _unknown(digest) from error

    def path(self, digest: str) -> str | None:
        return None


def _holds(path: str, data: bytes) -> bool:
    """Whether a file is there with just this content: a power loss may have left another."""
    try:
        if _size(path) != len(data):
            return False
        with open(path, "rb") as file:
            return file.read() == data
    except OSError:
        return False


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _checked(digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        raise _unknown(digest)
    return digest


def _unknown(digest: str) -> SessionError:
    return SessionError(f"the session holds no file with the digest `{digest}`", hint=_EXAMINE)
