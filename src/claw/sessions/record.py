"""The line format of a journal.

A line is ``{"crc":"0badcafe",`` and the rest of one JSON object: the common fields
``v seq id parent at``, then the fields of the entry, then ``\\n``. ``crc`` is the
CRC-32 (``zlib.crc32``, 8 hex digits) of the bytes between the crc field and the
newline.
"""

from __future__ import annotations

import functools
import time
import zlib
from typing import Any, get_args

import msgspec

from claw.errors import SessionTooNew
from claw.types.entries import SCHEMA, Entry, KnownEntry, SessionStarted, UnknownEntry

__all__ = ["OPENING", "VERSION", "Record", "decode_record", "encode_record", "utc"]

VERSION = 1
OPENING = b'{"crc":"'
_HEAD_LENGTH = len(b'{"crc":"00000000",')
_COMMON = frozenset({"crc", "v", "seq", "id", "parent", "at"})


class Record(msgspec.Struct, frozen=True):
    """An entry with its place. ``seq`` counts from 1; ``parent`` is empty for the first.

    ``at`` is UTC, ISO 8601 with milliseconds.
    """

    seq: int
    id: str
    parent: str
    at: str
    entry: Entry


class _Head(msgspec.Struct, frozen=True):
    v: int
    kind: str
    seq: int = 0
    id: str = ""
    parent: str = ""
    at: str = ""


def utc(seconds: float) -> str:
    """Seconds since the epoch as ``2026-11-30T14:20:00.000Z``."""
    whole, millis = divmod(int(seconds * 1000), 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{millis:03d}Z"


def encode_record(entry: Entry, *, seq: int, id: str, parent: str, at: str) -> bytes:
    """One whole line. Lone surrogates, which are no UTF-8, become U+FFFD.

    Raises ``ValueError`` for an entry that JSON cannot hold (nested too deeply).
    """
    try:
        common = msgspec.json.encode({"v": VERSION, "seq": seq, "id": id, "parent": parent})
        # Both halves are JSON objects: without their inner braces they make one.
        rest = b'%b,"at":"%b",%b' % (common[1:-1], at.encode(), _entry_json(entry)[1:])
    except RecursionError as error:
        raise ValueError("the entry is nested too deeply") from error
    return b'%b%08x",%b\n' % (OPENING, zlib.crc32(rest), rest)


def decode_record(line: bytes) -> Record:
    """The record of one line, with or without its newline.

    Unknown fields are ignored, an unknown kind becomes an ``UnknownEntry``.
    Raises ``ValueError`` saying what is damaged, ``SessionTooNew`` for a record
    that is whole but beyond this version.
    """
    rest = memoryview(line)[_HEAD_LENGTH : len(line) - line.endswith(b"\n")]  # no copy
    if not line.startswith(OPENING):
        raise ValueError("not a journal record")
    if line[:_HEAD_LENGTH] != b'%b%08x",' % (OPENING, zlib.crc32(rest)):
        raise ValueError("the checksum does not fit the content")
    try:
        head = _head_decoder().decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"the common fields cannot be read: {error}") from error
    if head.v > VERSION:
        raise _too_new(f"format {head.v}, and this one reads up to {VERSION}")
    return Record(head.seq, head.id, head.parent, head.at, _decode_entry(line, head.kind))


def _decode_entry(line: bytes, kind: str) -> Entry:
    try:
        entry = _entry_decoder().decode(line)
    except msgspec.ValidationError as error:
        if kind not in _known_kinds():
            return UnknownEntry(kind, line.removesuffix(b"\n"))
        # The checksum holds, so this was written on purpose, by a claw that knows more.
        raise _too_new(f"a `{kind}` that this one cannot read: {error}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"the entry cannot be read: {error}") from error
    if isinstance(entry, SessionStarted) and entry.schema > SCHEMA:
        raise _too_new(f"schema {entry.schema}, and this one knows up to {SCHEMA}")
    return entry


def _too_new(what: str) -> SessionTooNew:
    return SessionTooNew(
        f"the session was written by a newer claw: {what}",
        hint="Update claw, or start a new session. Nothing was changed.",
    )


def _entry_json(entry: Entry) -> bytes:
    if isinstance(entry, UnknownEntry):
        fields = msgspec.json.decode(entry.raw, type=dict[str, msgspec.Raw])
        return msgspec.json.encode({k: v for k, v in fields.items() if k not in _COMMON})
    try:
        return msgspec.json.encode(entry)
    except UnicodeEncodeError:
        return msgspec.json.encode(_sanitised(msgspec.to_builtins(entry)))


def _sanitised(value: Any) -> Any:
    if isinstance(value, str):
        # By way of UTF-16, two surrogates that belong together become their character.
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_sanitised(k): _sanitised(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_sanitised(item) for item in value]
    return value


@functools.cache
def _head_decoder() -> msgspec.json.Decoder[_Head]:
    return msgspec.json.Decoder(_Head)


@functools.cache
def _entry_decoder() -> msgspec.json.Decoder[KnownEntry]:
    return msgspec.json.Decoder(KnownEntry)


@functools.cache
def _known_kinds() -> frozenset[str]:
    return frozenset(t.__struct_config__.tag for t in get_args(KnownEntry))
