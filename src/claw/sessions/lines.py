"""The one parser of journals: what stands in each line, damage included.

Whoever reads a journal reads it through ``scan``: loading, listing damage, salvage,
copies. It repairs nothing on disk. What it passes over or heals, since nothing is lost
by it, are zeros and blank lines (a power loss leaves them) and whole records with
fitting checksums that lost the newline between them.

A *last* record without its newline counts if it is whole and its checksum fits. It may
never have been acknowledged, but that does no harm: it was about to be, and the one
thing that acknowledging adds is the promise that it stays. What is not whole there was
never acknowledged: a torn tail. With a newline after it, it is damage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

import msgspec

from claw.errors import SessionTooNew
from claw.sessions.record import ChecksumError, Record, decode_record, whole_records

__all__ = ["Line", "scan"]

_PADDING = b"\0 \t\r\n"


class Line(msgspec.Struct, frozen=True):
    """A record, a blank line, or damage; ``number`` counts lines from 1.

    ``raw`` are the record's own bytes, or the damaged ones; ``end`` is the offset after
    them and their newline. ``record`` is None where ``error`` says why, and for blank
    lines. ``ended`` claims that the newline is there.
    """

    number: int
    raw: bytes
    end: int
    record: Record | None = None
    error: SessionTooNew | ValueError | None = None
    ended: bool = True


def scan(file: BinaryIO, get: Callable[[str], bytes] | None = None) -> Iterator[Line]:
    """What stands in a journal, in order, up to its torn tail. Raises ``OSError``.

    ``get`` reads the blobs of texts that were too long for their records.
    """
    end, last = 0, 0
    for number, line in enumerate(file, 1):  # binary files split at \n alone
        if not line.endswith(b"\n"):
            found = _tail(number, line, end, get)
        else:
            end += len(line)
            found = _whole_line(number, line, end, get)
        for parsed in found:
            item = _in_order(parsed, last)
            last = item.record.seq if item.record else last
            yield item


def _whole_line(
    number: int, line: bytes, end: int, get: Callable[[str], bytes] | None
) -> list[Line]:
    content = line[:-1] if line.startswith(b"{") else line.strip(_PADDING)
    if not content:
        return [Line(number, b"", end)]
    item = _parsed(number, content, end, get)
    if not isinstance(item.error, ChecksumError):
        return [item]
    places = list(whole_records(content))
    if not places or _apart(content, places):
        return [item]
    return [_parsed(number, content[a:b], end, get) for a, b in places]


def _tail(number: int, line: bytes, begin: int, get: Callable[[str], bytes] | None) -> list[Line]:
    """The whole records of a line without newline, as far as nothing else is between."""
    found, at = [], 0
    for a, b in whole_records(line):
        if line[at:a].strip(_PADDING):
            break
        found.append(_parsed(number, line[a:b], begin + b, get, ended=False))
        at = b
    return found


def _apart(content: bytes, places: list[tuple[int, int]]) -> bool:
    """Whether anything but padding stands before, between or after the records of a line."""
    at = 0
    for a, b in places:
        if content[at:a].strip(_PADDING):
            return True
        at = b
    return bool(content[at:].strip(_PADDING))


def _parsed(
    number: int,
    raw: bytes,
    end: int,
    get: Callable[[str], bytes] | None,
    *,
    ended: bool = True,
) -> Line:
    try:
        return Line(number, raw, end, decode_record(raw, get), ended=ended)
    except (SessionTooNew, ValueError) as error:
        return Line(number, raw, end, error=error, ended=ended)


def _in_order(item: Line, last: int) -> Line:
    if item.record is None or item.record.seq > last:
        return item
    error = ValueError(f"record {item.record.seq} stands after record {last}")
    return msgspec.structs.replace(item, record=None, error=error)
