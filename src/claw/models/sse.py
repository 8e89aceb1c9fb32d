"""Server-sent events from bytes, in any chunking.

Follows the parsing rules of the HTML standard, section "Server-sent events":
lines end in LF, CR or CRLF; a blank line dispatches; ``data`` lines join with LF;
a line that starts with a colon is a comment. Departures: ``id`` and ``retry`` are
ignored, since nothing here reconnects, and a last event that the stream's end
leaves without its blank line is handed out by ``end``.
"""

from __future__ import annotations

import msgspec

__all__ = ["SseDecoder", "SseEvent"]


class SseEvent(msgspec.Struct, frozen=True):
    """``name`` is empty where the stream gave none."""

    name: str
    data: bytes


class SseDecoder:
    """Feed it chunks; it gives the events that are complete. Any chunking gives the same."""

    def __init__(self) -> None:
        self._line: list[bytes] = []  # pieces of the line that has not ended yet
        self._after_cr = False
        self._first = True
        self._name = ""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[SseEvent]:
        if not chunk:
            return []
        if self._after_cr and chunk[:1] == b"\n":  # the second half of a CRLF
            chunk = chunk[1:]
            self._after_cr = False
            if not chunk:
                return []
        self._after_cr = chunk[-1:] == b"\r"
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in chunk:
            self._line.append(chunk)
            return []
        *lines, rest = (b"".join(self._line) + chunk).split(b"\n")
        self._line = [rest] if rest else []
        return [event for line in lines if (event := self._take(line)) is not None]

    def end(self) -> list[SseEvent]:
        """The event that was still open when the stream ended, if it had data."""
        line, self._line = b"".join(self._line), []
        if line:
            self._take(line)
        event = self._dispatch()
        return [event] if event else []

    def _take(self, line: bytes) -> SseEvent | None:
        if self._first:
            self._first = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        return None

    def _dispatch(self) -> SseEvent | None:
        name, self._name = self._name, ""
        data, self._data = self._data, []
        return SseEvent(name, b"\n".join(data)) if data else None
