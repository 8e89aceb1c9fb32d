"""Reading a journal: the one parser, and the fold of what it yields.

Reading takes no lock and repairs nothing. What has no final newline was never
acknowledged: a torn tail, left out and reported. Anything else that cannot be
read is damage and stops the load at its line.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from claw.errors import SessionCorrupt, SessionError, SessionNotFound
from claw.sessions.record import OPENING, Record, decode_record
from claw.types.session import SessionState

__all__ = ["Loaded", "load", "read_entries", "refuse_foreign"]

_HEAD = 64 * 1024
_PADDING = b"\0 \t\r\n"  # zeros are what a file system may leave after a power loss


class Loaded(msgspec.Struct, frozen=True):
    """A session as its journal tells it.

    ``records`` counts the records read, ``last_seq`` and ``last_id`` are those of
    the last one (0 and empty where there is none). The first ``end`` bytes are
    whole lines, the ``torn`` bytes after them are not. ``notes`` are for the user.
    """

    state: SessionState
    records: int
    last_seq: int
    last_id: str
    end: int
    torn: int
    notes: tuple[str, ...]


class _Line(msgspec.Struct, frozen=True):
    """One whole line: ``record`` is None for a blank one, ``end`` is the offset after it."""

    number: int
    record: Record | None
    end: int


def read_entries(path: str) -> Iterator[Record]:
    """The records of a journal in order, read as they are asked for.

    Raises ``SessionNotFound``, ``SessionCorrupt``, ``SessionTooNew``, ``SessionError``.
    """
    with _open(path) as file:
        for line in _lines(path, file):
            if line.record is not None:
                yield line.record


def refuse_foreign(path: str) -> None:
    """Raises ``SessionNotFound`` for a file that does not begin as a journal does.

    A first record may be damaged, and a file may still be empty; but what was never a
    session is not to be locked, repaired or written to.
    """
    with _open(path) as file:
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
    state = SessionState()
    records = end = 0
    last: Record | None = None
    notes: list[str] = []
    refuse_foreign(path)
    with _open(path) as file:
        for line in _lines(path, file):
            end = line.end
            record = line.record
            if record is None:
                continue
            if record.seq > (last.seq if last else 0) + 1:
                notes.append(f"records are missing before line {line.number}")
            try:
                state = state.fold(record.entry)
            except (ValueError, LookupError, TypeError) as error:
                what = f"the record does not follow from those before it: {error}"
                raise _corrupt(path, line.number, what) from error
            last = record
            records += 1
        torn = os.fstat(file.fileno()).st_size - end
    if torn:
        notes.append(f"the last record was not written in full and is left out ({torn} bytes)")
    return Loaded(
        state=state,
        records=records,
        last_seq=last.seq if last else 0,
        last_id=last.id if last else "",
        end=end,
        torn=torn,
        notes=tuple(notes),
    )


def _open(path: str) -> BinaryIO:
    try:
        return open(path, "rb")
    except FileNotFoundError as error:
        raise SessionNotFound(
            f"there is no session file {path}", hint="`--resume latest` takes the newest one."
        ) from error
    except OSError as error:
        raise SessionError(f"cannot read {path}: {error.strerror}") from error


def _lines(path: str, file: BinaryIO) -> Iterator[_Line]:
    end = seq = 0
    try:
        for number, line in enumerate(file, 1):  # binary files split at \n alone
            if not line.endswith(b"\n"):
                return
            end += len(line)
            content = line if line.startswith(b"{") else line.strip(_PADDING)
            if not content:
                yield _Line(number, None, end)
                continue
            try:
                record = decode_record(content)
            except ValueError as error:
                raise _corrupt(path, number, str(error)) from error
            if record.seq <= seq:
                raise _corrupt(path, number, f"record {record.seq} stands after record {seq}")
            seq = record.seq
            yield _Line(number, record, end)
    except OSError as error:
        raise SessionError(f"cannot read {path}: {error.strerror}") from error


def _corrupt(path: str, line: int, what: str) -> SessionCorrupt:
    damaged = shlex.quote(f"{path}.damaged")
    whole = shlex.quote(path)
    hint = "Nothing was changed. Nothing stands before that line: start a new session."
    if line > 1:
        hint = (
            "Nothing was changed. To go on from what stands before that line: "
            f"mv {whole} {damaged} && head -n {line - 1} {damaged} > {whole}"
        )
    return SessionCorrupt(f"{path} is damaged in line {line}: {what}", line=line, hint=hint)
