"""The line format of a journal.

A line is ``{"crc":"0badcafe",`` and the rest of one JSON object: the common fields
``v seq id parent at``, then the fields of the entry, then ``\\n``. ``crc`` is the
CRC-32 (``zlib.crc32``, 8 hex digits) of the bytes between the crc field and the
newline.

A line has at most 1 MiB. Texts over 64 KiB (UTF-8) lie in blobs: an empty text stands
in their place, and the common field ``blobs`` names them, ``{JSON pointer: digest}``
(https://www.rfc-editor.org/rfc/rfc6901). If the line is still too long, shorter texts
follow them, the longest first; at last the whole entry does, under the pointer ``""``.
"""

from __future__ import annotations

import functools
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any, get_args

import msgspec

from claw.errors import SessionError, SessionTooNew
from claw.sessions.spill import fill, spill
from claw.types.entries import SCHEMA, Entry, KnownEntry, SessionStarted, UnknownEntry
from claw.types.surrogates import mend_all

__all__ = [
    "LONGEST",
    "OPENING",
    "VERSION",
    "ChecksumError",
    "Head",
    "Record",
    "TextLost",
    "decode_record",
    "encode_record",
    "head_of",
    "utc",
    "whole_records",
]

VERSION = 1
LONGEST = 1024 * 1024
"""Bytes of a line, its newline included."""
LONGEST_TEXT = 64 * 1024
_MOST_FALSE_STARTS = 64
OPENING = b'{"crc":"'
_HEAD_LENGTH = len(b'{"crc":"00000000",')
_HEAD_ROOM = 1024  # for the common fields
_COMMON = frozenset({"crc", "v", "seq", "id", "parent", "at"})


class ChecksumError(ValueError):
    """The bytes are not those that were written."""


class TextLost(ValueError):
    """A whole record of which a text in a blob cannot be read."""


class Record(msgspec.Struct, frozen=True):
    """An entry with its place. ``seq`` counts from 1; ``parent`` is empty for the first.

    ``at`` is UTC, ISO 8601 with milliseconds.
    """

    seq: int
    id: str
    parent: str
    at: str
    entry: Entry


class Head(msgspec.Struct, frozen=True):
    """The common fields; ``blobs`` are digests by JSON pointer."""

    v: int
    kind: str
    seq: int = 0
    id: str = ""
    parent: str = ""
    at: str = ""
    blobs: dict[str, str] = {}


def utc(seconds: float) -> str:
    """Seconds since the epoch as ``2026-11-30T14:20:00.000Z``."""
    whole, millis = divmod(int(seconds * 1000), 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{millis:03d}Z"


def encode_record(
    entry: Entry,
    *,
    seq: int,
    id: str,
    parent: str,
    at: str,
    put: Callable[[bytes], str] | None = None,
) -> bytes:
    """One whole line. Lone surrogates, which are no UTF-8, become U+FFFD.

    ``put`` stores a text that is too long and returns its digest; without it, all stays
    in the line. Raises ``ValueError`` for an entry that JSON cannot hold (nested too
    deeply), and what ``put`` raises.
    """
    try:
        common: dict[str, Any] = {"v": VERSION, "seq": seq, "id": id, "parent": parent, "at": at}
        body = _entry_json(entry)
        if put is not None and len(body) > LONGEST_TEXT and not isinstance(entry, UnknownEntry):
            room = LONGEST - _HEAD_ROOM
            body, texts = spill(body, longest=LONGEST_TEXT, room=room)
            common["blobs"] = {pointer: put(text) for pointer, text in texts.items()}
        # Both halves are JSON objects: without their inner braces they make one.
        rest = b"%b,%b" % (msgspec.json.encode(common)[1:-1], body[1:])
    except RecursionError as error:
        raise ValueError("the entry is nested too deeply") from error
    return b'%b%08x",%b\n' % (OPENING, zlib.crc32(rest), rest)


def decode_record(
    line: bytes, get: Callable[[str], bytes] | None = None, *, checked: bool = True
) -> Record:
    """The record of one line, with or without its newline.

    ``get`` reads the blobs of texts that were too long; without it, those stay empty. Where it
    is not ``checked``, the checksum may be any. Unknown fields are ignored, an unknown kind
    becomes an ``UnknownEntry``. Raises ``ValueError`` saying what is damaged
    (``ChecksumError``, ``TextLost`` where it is that), ``SessionTooNew`` for a record that is
    whole but beyond this version.
    """
    if checked:
        _check(line)
    head = head_of(line)
    if head.v > VERSION:
        raise _too_new(f"format {head.v}, and this one reads up to {VERSION}")
    if head.blobs and get is not None and head.kind in _known_kinds():
        line = _with_texts(line, head.blobs, get)
    return Record(head.seq, head.id, head.parent, head.at, _decode_entry(line, head.kind))


def _check(line: bytes) -> None:
    if not line.startswith(OPENING):
        raise ChecksumError("not a journal record")
    rest = memoryview(line)[_HEAD_LENGTH : len(line) - line.endswith(b"\n")]  # no copy
    if line[:_HEAD_LENGTH] != b'%b%08x",' % (OPENING, zlib.crc32(rest)):
        raise ChecksumError("the checksum does not fit the content")


def head_of(line: bytes) -> Head:
    """The common fields of a whole record. Raises ``ValueError``."""
    try:
        return _head_decoder().decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"the common fields cannot be read: {error}") from error


def whole_records(content: bytes) -> Iterator[tuple[int, int]]:
    """Where records with fitting checksums stand in a damaged line, from and to.

    Finds what lost its newline, and what stands beside garbage; but not what stands
    inside of another record, where a model may have written it.
    """
    at, false_starts = content.find(OPENING), 0
    while at >= 0 and false_starts < _MOST_FALSE_STARTS:
        end = _end_of_record(content, at)
        if end and not _is_inside(content, at, end):
            yield at, end
        false_starts += not end
        at = content.find(OPENING, end or at + 1)


def _is_inside(content: bytes, at: int, end: int) -> bool:
    """Claims that a value of another object stands there."""
    return content[at - 1 : at] in (b":", b",", b"[") and content[end : end + 1] in (
        b",",
        b"]",
        b"}",
    )


def _end_of_record(content: bytes, at: int) -> int:
    """The end of the record that begins at ``at``, 0 where none has its checksum."""
    expected = content[at + len(OPENING) : at + _HEAD_LENGTH]
    crc, done = 0, at + _HEAD_LENGTH
    following = content.find(OPENING, done)
    while True:
        limit = following if following >= 0 else len(content)
        end = content.rfind(b"}", done, limit) + 1
        if end:
            crc = zlib.crc32(content[done:end], crc)
            if expected == b'%08x",' % crc:
                return end
            done = end
        if following < 0:
            return 0
        following = content.find(OPENING, following + 1)


def _with_texts(line: bytes, blobs: dict[str, str], get: Callable[[str], bytes]) -> bytes:
    """The entry's JSON with its texts back in their places."""
    texts = {}
    for pointer, digest in blobs.items():
        try:
            texts[pointer] = get(digest)
        except SessionError as error:
            raise TextLost(f"a text of the record is lost: {error.message}") from error
    try:
        return fill(line, texts)
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(f"the texts of the record have no place in it: {error}") from error


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
        return msgspec.json.encode(mend_all(msgspec.to_builtins(entry)))


@functools.cache
def _head_decoder() -> msgspec.json.Decoder[Head]:
    return msgspec.json.Decoder(Head)


@functools.cache
def _entry_decoder() -> msgspec.json.Decoder[KnownEntry]:
    return msgspec.json.Decoder(KnownEntry)


@functools.cache
def _known_kinds() -> frozenset[str]:
    return frozenset(t.__struct_config__.tag for t in get_args(KnownEntry))
