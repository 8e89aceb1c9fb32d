"""Bytes by content: files beside a session's journal, or memory."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re

from claw.errors import SessionError
from claw.sessions.directories import NO_PERSISTENCE_HINT, make_private

__all__ = ["FileBlobs", "MemoryBlobs", "blobs_dir"]

_DIGEST = re.compile(r"[0-9a-f]{64}")


def blobs_dir(journal_path: str) -> str:
    """The directory of the blobs that belong to a journal: ``<id>.blobs`` beside it."""
    return journal_path.removesuffix(".jsonl") + ".blobs"


class FileBlobs:
    """Implements ``Blobs``: one read-only file each, named by its SHA-256.

    The directory is made by the first ``put``.
    """

    def __init__(self, directory: str) -> None:
        self._directory = os.path.abspath(directory)

    def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        path = os.path.join(self._directory, digest)
        try:
            if os.stat(path).st_size == len(data):
                return digest
        except OSError:
            pass  # not there yet
        make_private(self._directory)
        temporary = f"{path}.{os.getpid()}.tmp"
        try:
            _write(temporary, data)
            os.rename(temporary, path)
        except OSError as error:
            _remove(temporary)
            raise SessionError(
                f"cannot store a file of the session in {self._directory}: {error.strerror}",
                hint=NO_PERSISTENCE_HINT,
            ) from error
        return digest

    def get(self, digest: str) -> bytes:
        path = os.path.join(self._directory, _checked(digest))
        try:
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError as error:
            raise _unknown(digest) from error
        except OSError as error:
            raise SessionError(f"cannot read {path}: {error.strerror}") from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise SessionError(f"{path} is damaged: its content does not fit its name")
        return data

    def path(self, digest: str) -> str | None:
        return os.path.join(self._directory, _checked(digest))


class MemoryBlobs:
    """Implements ``Blobs`` for a session that leaves nothing on disk."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self._held[digest] = data
        return digest

    def get(self, digest: str) -> bytes:
        try:
            return self._held[digest]
        except KeyError as error:
            raise _unknown(digest) from error

    def path(self, digest: str) -> str | None:
        return None


def _checked(digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        raise _unknown(digest)
    return digest


def _unknown(digest: str) -> SessionError:
    return SessionError(f"the session holds no file with the digest `{digest}`")


def _write(path: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(path, flags, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fchmod(fd, 0o400)
    finally:
        os.close(fd)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
