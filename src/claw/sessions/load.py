"""Reading a journal: the fold of what ``lines.scan`` finds.

Reading takes no lock and repairs nothing. A torn tail is left out and reported; damage
stops the load at its line, and its hint is the command that keeps all the rest.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import BinaryIO

import msgspec

from claw.errors import SessionCorrupt, SessionError, SessionNotFound
from claw.sessions.blobs import blobs_dir, read_blob
from claw.sessions.folding import Folding, NeedsPast, fold_records, targets
from claw.sessions.lines import Line, scan
from claw.sessions.record import OPENING, ChecksumError, Record, decode_record
from claw.types.session import SessionState

__all__ = [
    "Loaded",
    "good_lines",
    "load",
    "load_from",
    "open_journal",
    "read_edited",
    "read_entries",
    "refuse_foreign",
    "state_at",
]

_HEAD = 64 * 1024
_BUFFER = 1024 * 1024
_PADDING = b"\0 \t\r\n"


class Loaded(msgspec.Struct, frozen=True):
    """A session as its journal tells it.

    ``records`` counts the records read, ``last_seq`` and ``last_id`` are those of
    the last one (0 and empty where there is none). The first ``end`` bytes are
    whole records, the ``torn`` bytes after them are not; ``ended`` claims that the last
    record has its newline. ``notes`` are for the user.
    """

    state: SessionState
    records: int
    last_seq: int
    last_id: str
    end: int
    torn: int
    ended: bool
    notes: tuple[str, ...]


def read_entries(path: str) -> Iterator[Record]:
    """The records of a journal in order, read as they are asked for.

    Raises ``SessionNotFound``, ``SessionCorrupt``, ``SessionTooNew``, ``SessionError``.
    """
    with open_journal(path) as file:
        for line in good_lines(path, file):
            if line.record is not None:
                yield line.record


def read_edited(path: str) -> tuple[list[Record], SessionCorrupt | None]:
    """All records, with those that were changed under their checksums.

    The error is what ``read_entries`` raises for the first of these, None where there is none.
    Raises as that for all other damage.
    """
    records: list[Record] = []
    first: SessionCorrupt | None = None
    with open_journal(path) as file:
        for line in good_lines(path, file, edited=True):
            if line.error is not None:
                first = first or _corrupt(path, line.number, str(line.error))
            if line.record is not None:
                records.append(line.record)
    return records, first


def refuse_foreign(path: str) -> None:
    """Raises ``SessionNotFound`` for a file that does not begin as a journal does.

    A first record may be damaged, and a file may still be empty; but what was never a
    session is not to be locked, repaired or written to.
    """
    with open_journal(path) as file:
        try:
            head = file.read(_HEAD).lstrip(_PADDING)
        except OSError as error:
            raise SessionError(f"cannot read {path}: {error.strerror}") from error
    begins = OPENING.startswith(head[: len(OPENING)])
    if not begins and b'"seq":' not in head.split(b"\n", 1)[0]:
        raise SessionNotFound(
            f"{path} is no session of claw: its first line is no record of one",
            hint="Nothing was changed. `--resume latest` takes the newest session.",
        )


def load(path: str) -> Loaded:
    """Fold a journal into the state that it stands for. Raises as ``read_entries``."""
    refuse_foreign(path)
    with open_journal(path) as file:
        try:
            return load_from(path, file)
        except NeedsPast:
            file.seek(0)
            past = targets(line.record.entry for line in good_lines(path, file) if line.record)
            file.seek(0)
            return load_from(path, file, past)


def load_from(path: str, file: BinaryIO, past: Iterable[int] = ()) -> Loaded:
    """As ``load``, from an open file; ``past`` are the places that it rewinds to."""
    folding = Folding(past)
    records = 0
    last: Record | None = None
    end, ended = 0, True
    notes: list[str] = []
    for line in good_lines(path, file):
        end, ended, record = line.end, line.ended, line.record
        if record is None:
            continue
        if record.seq > (last.seq if last else 0) + 1:
            notes.append(f"records are missing before line {line.number}")
        try:
            folding.add(record)
        except (ValueError, LookupError, TypeError) as error:
            what = f"the record does not follow from those before it: {error}"
            raise _corrupt(path, line.number, what) from error
        last = record
        records += 1
    torn = file.seek(0, os.SEEK_END) - end
    if torn:
        notes.append(f"the last record was not written in full and is left out ({torn} bytes)")
    state = folding.state
    if last is not None and not state.session_id:  # its first record was lost
        name = os.path.basename(path).removesuffix(".jsonl")
        state = msgspec.structs.replace(state, session_id=name)
    return Loaded(
        state=state,
        records=records,
        last_seq=last.seq if last else 0,
        last_id=last.id if last else "",
        end=end,
        torn=torn,
        ended=ended,
        notes=tuple(notes),
    )


def state_at(path: str, seq: int) -> SessionState:
    """The state right after record ``seq``, or the last one before it where that is lost.

    Raises as ``read_entries``.
    """

    def records() -> Iterator[Record]:
        for record in read_entries(path):
            if record.seq > seq:
                return
            yield record

    return fold_records(records)


def open_journal(path: str) -> BinaryIO:
    """To read. Raises ``SessionNotFound``, ``SessionError``."""
    try:
        return open(path, "rb", buffering=_BUFFER)
    except FileNotFoundError as error:
        raise SessionNotFound(
            f"there is no session file {path}", hint="`--resume latest` takes the newest one."
        ) from error
    except OSError as error:
        raise SessionError(f"cannot read {path}: {error.strerror}") from error


def good_lines(path: str, file: BinaryIO, *, edited: bool = False) -> Iterator[Line]:
    """The lines of an open journal, up to its torn tail; raises as ``read_entries``.

    With ``edited`` a line of which only the checksum does not fit has its record, too,
    beside its error.
    """
    get = partial(read_blob, blobs_dir(path))
    try:
        for scanned in scan(file, get):
            line = _unchecked(scanned, get) if edited else scanned
            if isinstance(line.error, SessionError):
                raise line.error
            if line.error is not None and line.record is None:
                raise _corrupt(path, line.number, str(line.error)) from line.error
            yield line
    except OSError as error:
        raise SessionError(f"cannot read {path}: {error.strerror}") from error


def _unchecked(line: Line, get: Callable[[str], bytes]) -> Line:
    if isinstance(line.error, ChecksumError):
        with suppress(ValueError, SessionError):
            record = decode_record(line.raw, get, checked=False)
            return msgspec.structs.replace(line, record=record)
    return line


def _corrupt(path: str, line: int, what: str) -> SessionCorrupt:
    return SessionCorrupt(
        f"{path} is damaged in line {line}: {what}",
        line=line,
        hint="Nothing was changed. To keep all other records (the damaged file stays beside "
        f"them): claw sessions verify {shlex.quote(path)} --salvage",
    )
