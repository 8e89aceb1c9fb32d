"""The append-only writer of entries: in a file for sessions that last, in memory otherwise.

A file journal holds ``flock`` for as long as it is open. Every record is one
``write`` of one whole line; what a failed append may have left is cut off before
anything else is written. An append that raises is not in the journal.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from msgspec.structs import replace

from claw.errors import SessionError
from claw.ports import Disk
from claw.sessions.blobs import FileBlobs, blobs_dir
from claw.sessions.directories import NO_PERSISTENCE_HINT, make_private, sync_directory
from claw.sessions.folding import fold_records, turn_points
from claw.sessions.load import Loaded, load, read_entries, refuse_foreign, state_at
from claw.sessions.lock import APPENDING, is_at, lock, open_existing, unlock
from claw.sessions.naming import blobs_named
from claw.sessions.record import LONGEST, Record, encode_record, utc
from claw.sessions.writing import free_name, put_file, reason, write_all
from claw.types.entries import Entry, PromptInstalled
from claw.types.session import SessionState, TurnPoint

__all__ = ["FileJournal", "MemoryJournal"]


class FileJournal:
    """Implements ``Journal`` for a new session; the first append makes the file.

    ``now`` gives seconds since the epoch. ``blobs`` are those of the session: what is
    too long for a record goes there. To go on with a file that exists, use
    ``continue_from``.
    """

    def __init__(self, path: str, *, now: Callable[[], float], disk: Disk) -> None:
        self.path = os.path.abspath(path)
        self.blobs = FileBlobs(blobs_dir(self.path), disk)
        self._now = now
        self._disk = disk
        self._fd = -1
        self._is_holder = False
        self._closed = False
        self._seq = 0
        self._last_id = ""
        self._end = 0
        self._ended = True  # false where the last record still lacks its newline
        self._dirty = False  # bytes of a failed append may stand after _end
        self._name_is_durable = False
        self._named: set[str] = set()  # blobs that records name and no sync has covered

    @classmethod
    def continue_from(
        cls, path: str, *, now: Callable[[], float], disk: Disk
    ) -> tuple[FileJournal, Loaded]:
        """Lock and load a journal, and go on after its last record.

        A torn tail is moved to ``<file>.torn-<time>``; ``Loaded.notes`` says so.
        Raises ``SessionNotFound``, ``SessionLocked``, ``SessionCorrupt``,
        ``SessionTooNew``, ``SessionError``.
        """
        journal = cls(path, now=now, disk=disk)
        try:
            journal._fd = open_existing(journal.path, disk)
            refuse_foreign(journal.path)  # before anything is written beside it
            journal._lock()
            loaded = load(journal.path)
            if loaded.torn:
                moved = journal._move_torn(loaded)
                loaded = replace(loaded, notes=(*loaded.notes, f"its bytes are in {moved}"))
            journal._seq = loaded.last_seq
            journal._last_id = loaded.last_id
            journal._end = loaded.end
            journal._ended = loaded.ended
        except BaseException:
            journal.close()
            raise
        return journal, loaded

    def append(self, entry: Entry, *, sync: bool = False) -> int:
        if self._closed:
            raise SessionError(f"the journal {self.path} is closed")
        seq = self._seq + 1
        id = f"e{seq}"
        line, named = self._encode(Record(seq, id, self._last_id, utc(self._now()), entry))
        if self._fd < 0:
            self._create()
        if not self._is_holder:
            self._lock()
        written = line if self._ended else b"\n" + line
        try:
            self._cut_back()
            if sync:
                self.blobs.sync(self._named | named)  # before the record that names them
            self._dirty = True
            write_all(self._disk, self._fd, written)
            if not os.fstat(self._fd).st_nlink and not is_at(self._fd, self.path):
                # What was written is gone with the file.
                raise SessionError(
                    f"{self.path} was deleted or replaced while it was in use",
                    hint="Start a new session.",
                )
            if sync:
                self._sync()
        except OSError as error:
            self._try_cut_back()
            raise SessionError(
                f"cannot write to the journal {self.path}: {reason(error)}",
                hint=NO_PERSISTENCE_HINT,
            ) from error
        self._named = set() if sync else self._named | named
        self._dirty = False
        self._ended = True
        self._end += len(written)
        self._seq = seq
        self._last_id = id
        return seq

    def state_at(self, seq: int) -> SessionState:
        return state_at(self.path, seq)

    def turns(self) -> tuple[TurnPoint, ...]:
        return turn_points(read_entries(self.path)) if self._fd >= 0 else ()

    def close(self) -> None:
        """Release the lock. May be called twice."""
        self._closed = True
        if self._fd < 0:
            return
        self._try_cut_back()
        if self._is_holder:
            unlock(self._fd, self.path, self._disk)
        else:
            with contextlib.suppress(OSError):
                self._disk.close(self._fd)
        self._fd = -1

    def _encode(self, record: Record) -> tuple[bytes, set[str]]:
        """The line, and the blobs that have to last as long as it does."""
        named: set[str] = set()
        if not isinstance(record.entry, PromptInstalled):  # can be made again
            named.update(blobs_named(record.entry))

        def put(text: bytes) -> str:
            named.add(digest := self.blobs.put(text))
            return digest

        problem = "cannot write to the journal"
        try:
            line = encode_record(
                record.entry,
                seq=record.seq,
                id=record.id,
                parent=record.parent,
                at=record.at,
                put=put,
            )
        except ValueError as error:
            raise SessionError(f"{problem}: {error}") from error
        except SessionError as error:
            raise SessionError(f"{problem}: {error.message}", hint=error.hint) from error
        if len(line) > LONGEST:
            raise SessionError(f"{problem}: a record of {len(line)} bytes")
        return line, named

    def _create(self) -> None:
        make_private(os.path.dirname(self.path), self._disk)
        try:
            self._fd = self._disk.open(self.path, APPENDING | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError as error:
            raise SessionError(
                f"there is already a session in {self.path}",
                hint="Go on with it by `--resume`, or choose another id.",
            ) from error
        except OSError as error:
            raise SessionError(
                f"cannot create {self.path}: {reason(error)}", hint=NO_PERSISTENCE_HINT
            ) from error

    def _lock(self) -> None:
        lock(self._fd, self.path, self._disk)
        self._is_holder = True

    def _move_torn(self, loaded: Loaded) -> str:
        """Keep the torn bytes in a file of their own, cut them off, and return its path."""
        stamp = utc(self._now()).replace(":", "").replace(".", "")
        target = free_name(f"{self.path}.torn-{stamp}")
        try:
            torn = os.pread(self._fd, loaded.torn, loaded.end)
            put_file(self._disk, target, [torn])
            self._disk.truncate(self._fd, loaded.end)
        except OSError as error:
            raise SessionError(
                f"cannot move the torn end of {self.path} to {target}: {reason(error)}",
                hint=NO_PERSISTENCE_HINT,
            ) from error
        return target

    def _cut_back(self) -> None:
        if self._dirty:
            self._disk.truncate(self._fd, self._end)
            self._dirty = False

    def _try_cut_back(self) -> None:
        # Where this fails, the next append tries again, and a reader sees a torn tail.
        with contextlib.suppress(OSError):
            self._cut_back()

    def _sync(self) -> None:
        self._disk.fsync(self._fd)
        if not self._name_is_durable:
            sync_directory(os.path.dirname(self.path), self._disk)
            self._name_is_durable = True


class MemoryJournal:
    """Implements ``Journal`` for a session that leaves nothing on disk."""

    def __init__(self, *, now: Callable[[], float]) -> None:
        self._now = now
        self._records: list[Record] = []

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(self._records)

    def append(self, entry: Entry, *, sync: bool = False) -> int:
        seq = len(self._records) + 1
        parent = self._records[-1].id if self._records else ""
        self._records.append(Record(seq, f"e{seq}", parent, utc(self._now()), entry))
        return seq

    def state_at(self, seq: int) -> SessionState:
        return fold_records(lambda: self._records[:seq])

    def turns(self) -> tuple[TurnPoint, ...]:
        return turn_points(self._records)

    def close(self) -> None:
        """Nothing to release."""
