"""Looking for all damage of a session at once, and keeping everything but it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

import msgspec

from claw.errors import SessionError, SessionTooNew
from claw.ports import Disk
from claw.sessions.blobs import blobs_dir, digest_of, read_blob
from claw.sessions.lines import Line, scan
from claw.sessions.load import open_journal, refuse_foreign
from claw.sessions.lock import locked
from claw.sessions.naming import blobs_named
from claw.sessions.record import (
    TextLost,
    decode_record,
    encode_record,
    head_of,
    utc,
    whole_records,
)
from claw.sessions.writing import free_name, put_file, reason

__all__ = ["Damage", "Salvaged", "Verified", "salvage", "verify"]


class Damage(msgspec.Struct, frozen=True):
    """``line`` counts from 1; 0 is damage of the blobs, which no load notices."""

    line: int
    what: str


class Verified(msgspec.Struct, frozen=True):
    """``bytes`` are the journal's, ``blobs`` were checked; ``torn`` bytes at the end are no record.

    A session loads where ``damage`` names no line; what is in ``notes`` harms nothing.
    """

    path: str
    records: int
    bytes: int
    blobs: int
    torn: int
    damage: tuple[Damage, ...]
    notes: tuple[str, ...]


class Salvaged(msgspec.Struct, frozen=True):
    """``path`` has the ``kept`` records now; ``damaged`` is the file as it was.

    ``lost`` says what is not in it any more. With nothing to mend, ``damaged`` is empty
    and nothing was changed.
    """

    path: str
    kept: int
    lost: tuple[Damage, ...]
    damaged: str


def verify(path: str) -> Verified:
    """Read all of a session and its blobs. Raises ``SessionNotFound``, ``SessionError``."""
    refuse_foreign(path)
    directory = blobs_dir(path)
    damage: list[Damage] = []
    notes: list[str] = []
    named: dict[str, int] = {}
    records = end = last = 0
    for line in _lines(path, None):
        end = line.end
        if line.error is not None:
            damage.append(Damage(line.number, _said(line.error)))
        if line.record is None:
            continue
        records += 1
        if line.record.seq > last + 1:
            notes.append(f"records are missing before line {line.number}")
        last = line.record.seq
        for digest in head_of(line.raw).blobs.values():
            named[digest] = line.number
        for digest in blobs_named(line.record.entry):
            named.setdefault(digest, 0)
    for digest, number in named.items():
        try:
            read_blob(directory, digest)
        except SessionError as error:
            damage.append(Damage(number, error.message))
    size = os.path.getsize(path)
    return Verified(
        path=path,
        records=records,
        bytes=size,
        blobs=len(named),
        torn=size - end,
        damage=tuple(sorted(damage, key=lambda found: found.line)),
        notes=tuple(notes),
    )


def salvage(path: str, *, now: Callable[[], float], disk: Disk) -> Salvaged:
    """Put a journal of all that can be read in the place of a damaged one.

    Records are kept as they are, those of a newer claw too; a text whose blob is lost
    becomes a mark that names it. Where nothing can be read, nothing is changed.
    The damaged file stays as ``<file>.damaged-<time>``. ``now`` gives seconds since the
    epoch. Raises ``SessionNotFound``, ``SessionLocked``, ``SessionError``.
    """
    return locked(path, disk, lambda path: _salvage(path, now, disk))


def _salvage(path: str, now: Callable[[], float], disk: Disk) -> Salvaged:
    lost: list[Damage] = []
    kept = 0

    def rest() -> Iterator[bytes]:
        nonlocal kept
        for raw in _readable(path, lost):
            kept += 1
            yield raw + b"\n"

    stamp = utc(now()).replace(":", "").replace(".", "")
    damaged = free_name(f"{path}.damaged-{stamp}")
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        put_file(disk, temporary, rest())
        if not lost:
            disk.unlink(temporary)
            return Salvaged(path, kept, (), "")
        if not kept:
            disk.unlink(temporary)
            raise SessionError(f"nothing in {path} can be read", hint="Nothing was changed.")
        try:
            disk.link(path, damaged)
        except OSError:  # a file system without hard links
            disk.rename(path, damaged)
        disk.rename(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            disk.unlink(temporary)
        raise SessionError(f"cannot salvage {path}: {reason(error)}") from error
    return Salvaged(path, kept, tuple(lost), damaged)


def _readable(path: str, lost: list[Damage]) -> Iterator[bytes]:
    """The records to keep, in order; what is not among them is added to ``lost``."""
    directory = blobs_dir(path)
    end = last = 0

    def get(digest: str) -> bytes:
        return read_blob(directory, digest)

    for line in _lines(path, get):
        end = line.end
        if line.error is None and line.record is None:
            continue
        if line.error is not None and not isinstance(line.error, SessionTooNew):
            lost.append(Damage(line.number, str(line.error)))
        for raw, seq in _records_of(line, directory):
            if seq > last:
                last = seq
                yield raw
    if torn := os.path.getsize(path) - end:
        lost.append(Damage(0, f"{torn} bytes at the end that were not written in full"))


def _records_of(line: Line, directory: str) -> Iterator[tuple[bytes, int]]:
    """What can be kept of a line, with its place."""
    if line.record is not None:
        yield line.raw, line.record.seq
        return
    if isinstance(line.error, SessionTooNew):
        yield line.raw, head_of(line.raw).seq
        return
    for begin, end in whole_records(line.raw):
        raw = line.raw[begin:end]
        try:
            record = decode_record(raw, lambda digest: read_blob(directory, digest))
        except TextLost:
            yield from _marked(raw, directory)
        except SessionTooNew:
            yield raw, head_of(raw).seq
        except ValueError:
            continue
        else:
            yield raw, record.seq


def _marked(raw: bytes, directory: str) -> Iterator[tuple[bytes, int]]:
    """The record with marks for the texts that are lost; none where all of it is."""

    def get(digest: str) -> bytes:
        try:
            return read_blob(directory, digest)
        except SessionError:
            return f"[lost: the text with the digest {digest}]".encode()

    try:
        record = decode_record(raw, get)
    except ValueError:  # the lost text was the whole entry
        return
    # Texts that are not lost lie in their blobs already: putting them again changes nothing.
    line = encode_record(
        record.entry,
        seq=record.seq,
        id=record.id,
        parent=record.parent,
        at=record.at,
        put=digest_of,
    )
    yield line.removesuffix(b"\n"), record.seq


def _lines(path: str, get: Callable[[str], bytes] | None) -> Iterator[Line]:
    with open_journal(path) as file:
        try:
            yield from scan(file, get)
        except OSError as error:
            raise SessionError(f"cannot read {path}: {reason(error)}") from error


def _said(error: Exception) -> str:
    return error.message if isinstance(error, SessionTooNew) else str(error)
