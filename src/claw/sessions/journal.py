"""The append-only writer of entries: in a file for sessions that last, in memory otherwise.

A file journal holds ``flock`` for as long as it is open. Every record is one
``write`` of one whole line; what a failed append may have left is cut off before
anything else is written. An append that raises is not in the journal.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable

from msgspec.structs import replace

from claw.errors import SessionError, SessionLocked, SessionNotFound
from claw.sessions.directories import NO_PERSISTENCE_HINT, make_private
from claw.sessions.load import Loaded, load, refuse_foreign
from claw.sessions.record import Record, encode_record, utc
from claw.types.entries import Entry

__all__ = ["FileJournal", "MemoryJournal"]

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC


class FileJournal:
    """Implements ``Journal`` for a new session; the first append makes the file.

    ``now`` gives seconds since the epoch. To go on with a file that exists, use
    ``continue_from``.
    """

    def __init__(self, path: str, *, now: Callable[[], float]) -> None:
        self.path = os.path.abspath(path)
        self._now = now
        self._fd = -1
        self._is_holder = False
        self._closed = False
        self._seq = 0
        self._last_id = ""
        self._end = 0
        self._dirty = False  # bytes of a failed append may stand after _end
        self._name_is_durable = False

    @classmethod
    def continue_from(cls, path: str, *, now: Callable[[], float]) -> tuple[FileJournal, Loaded]:
        """Lock and load a journal, and go on after its last record.

        A torn tail is moved to ``<file>.torn-<time>``; ``Loaded.notes`` says so.
        Raises ``SessionNotFound``, ``SessionLocked``, ``SessionCorrupt``,
        ``SessionTooNew``, ``SessionError``.
        """
        journal = cls(path, now=now)
        try:
            journal._fd = _open_existing(journal.path)
            refuse_foreign(journal.path)  # before anything is written beside it
            journal._lock()
            loaded = load(journal.path)
            if loaded.torn:
                moved = journal._move_torn(loaded)
                loaded = replace(loaded, notes=(*loaded.notes, f"its bytes are in {moved}"))
            journal._seq = loaded.last_seq
            journal._last_id = loaded.last_id
            journal._end = loaded.end
        except BaseException:
            journal.close()
            raise
        return journal, loaded

    def append(self, entry: Entry, *, sync: bool = False) -> None:
        if self._closed:
            raise SessionError(f"the journal {self.path} is closed")
        seq = self._seq + 1
        id = f"e{seq}"
        line = _encode(Record(seq, id, self._last_id, utc(self._now()), entry))
        if self._fd < 0:
            self._create()
        try:
            self._cut_back()
            self._dirty = True
            _write_all(self._fd, line)
            if sync:
                self._sync()
        except OSError as error:
            self._try_cut_back()
            raise SessionError(
                f"cannot write to the journal {self.path}: {_reason(error)}",
                hint=NO_PERSISTENCE_HINT,
            ) from error
        self._dirty = False
        self._end += len(line)
        self._seq = seq
        self._last_id = id

    def close(self) -> None:
        """Release the lock. May be called twice."""
        self._closed = True
        if self._fd < 0:
            return
        self._try_cut_back()
        if self._is_holder:
            _remove_pid(self.path)  # while the lock is held, so it is surely our own
        os.close(self._fd)
        self._fd = -1

    def _create(self) -> None:
        make_private(os.path.dirname(self.path))
        try:
            self._fd = os.open(self.path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError as error:
            raise SessionError(
                f"there is already a session in {self.path}",
                hint="Go on with it by `--resume`, or choose another id.",
            ) from error
        except OSError as error:
            raise SessionError(
                f"cannot create {self.path}: {error.strerror}", hint=NO_PERSISTENCE_HINT
            ) from error
        try:
            self._lock()
        except SessionError:
            os.close(self._fd)
            self._fd = -1
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            pid = _read_pid(self.path)
            raise SessionLocked(
                f"{self.path} is in use by another claw" + (f" (process {pid})" if pid else ""),
                pid=pid,
                hint="Close the other one, or start a new session without "
                "`--continue` and `--resume`.",
            ) from error
        except OSError as error:
            raise SessionError(
                f"cannot lock {self.path}: {error.strerror}", hint=NO_PERSISTENCE_HINT
            ) from error
        if not _is_at(self._fd, self.path):
            raise SessionError(
                f"{self.path} was moved or deleted while it was opened", hint="Try again."
            )
        self._is_holder = True
        _write_pid(self.path)

    def _move_torn(self, loaded: Loaded) -> str:
        """Keep the torn bytes in a file of their own, cut them off, and return its path."""
        stamp = utc(self._now()).replace(":", "").replace(".", "")
        target = f"{self.path}.torn-{stamp}"
        try:
            torn = os.pread(self._fd, loaded.torn, loaded.end)
            copy = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                _write_all(copy, torn)
                os.fsync(copy)
            finally:
                os.close(copy)
            os.ftruncate(self._fd, loaded.end)
        except OSError as error:
            raise SessionError(
                f"cannot move the torn end of {self.path} to {target}: {error.strerror}",
                hint=NO_PERSISTENCE_HINT,
            ) from error
        return target

    def _cut_back(self) -> None:
        if self._dirty:
            os.ftruncate(self._fd, self._end)
            self._dirty = False

    def _try_cut_back(self) -> None:
        # Where this fails, the next append tries again, and a reader sees a torn tail.
        with contextlib.suppress(OSError):
            self._cut_back()

    def _sync(self) -> None:
        os.fsync(self._fd)
        if not self._name_is_durable:
            _sync_directory(os.path.dirname(self.path))
            self._name_is_durable = True


class MemoryJournal:
    """Implements ``Journal`` for a session that leaves nothing on disk."""

    def __init__(self, *, now: Callable[[], float]) -> None:
        self._now = now
        self._records: list[Record] = []

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(self._records)

    def append(self, entry: Entry, *, sync: bool = False) -> None:
        seq = len(self._records) + 1
        parent = self._records[-1].id if self._records else ""
        self._records.append(Record(seq, f"e{seq}", parent, utc(self._now()), entry))

    def close(self) -> None:
        """Nothing to release."""


def _encode(record: Record) -> bytes:
    try:
        return encode_record(
            record.entry, seq=record.seq, id=record.id, parent=record.parent, at=record.at
        )
    except ValueError as error:
        raise SessionError(f"cannot write to the journal: {error}") from error


def _write_all(fd: int, data: bytes) -> None:
    """In one write, as a rule; after one that was cut short, the next says what is wrong."""
    while data:
        data = data[os.write(fd, data) :]


def _reason(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full ({error.strerror})"
    return error.strerror or str(error)


def _open_existing(path: str) -> int:
    try:
        return os.open(path, _FLAGS)
    except FileNotFoundError as error:
        raise SessionNotFound(
            f"there is no session file {path}", hint="`--resume latest` takes the newest one."
        ) from error
    except OSError as error:
        raise SessionError(f"cannot open {path} for writing: {error.strerror}") from error


def _is_at(fd: int, path: str) -> bool:
    try:
        at_path = os.stat(path)
    except OSError:
        return False
    return os.path.samestat(os.fstat(fd), at_path)


def _pid_path(path: str) -> str:
    return path.removesuffix(".jsonl") + ".lock"


def _write_pid(path: str) -> None:
    """The lock itself is the flock; this only tells people who holds it."""
    with contextlib.suppress(OSError):
        fd = os.open(_pid_path(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, b"%d\n" % os.getpid())
        finally:
            os.close(fd)


def _remove_pid(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(_pid_path(path))


def _read_pid(path: str) -> int:
    try:
        with open(_pid_path(path), "rb") as file:
            return int(file.read(20))
    except (OSError, ValueError):
        return 0


def _sync_directory(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
