"""Server-sent events from bytes, in any chunking.

Follows the parsing rules of the HTML standard, section "Server-sent events":
lines end in LF, CR or CRLF; a blank line dispatches; ``data`` lines join with LF;
a line that starts with a colon is a comment. Departures: ``id`` and ``retry`` are
ignored, since nothing here reconnects, and a last event that the stream's end
leaves without its blank line is handed out by ``end``.
"""

from __future__ import annotations

import re

import msgspec

__all__ = ["MAX_EVENT", "SseDecoder", "SseEvent"]

MAX_EVENT = 32 * 1024 * 1024
"""Bytes; a reply with pictures in it stays far below."""


_ONE_EVENT = rb"(?:event: ([^\r\n]*)\n)?data: ([^\r\n]*)\n\n"


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """``name`` is empty where the stream gave none."""

    name: str
    data: bytes


class SseDecoder:
    """Feed it chunks; it gives the events that are complete. Any chunking gives the same.

    ``overgrown`` says that an event of more than ``MAX_EVENT`` bytes came; nothing
    follows it.
    """

    def __init__(self) -> None:
        self.overgrown = False
        self._one_event = re.compile(_ONE_EVENT).fullmatch
        self._line = bytearray()  # of the line that has not ended yet
        self._after_cr = False
        self._first = True
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[SseEvent]:
        if not (self._line or self._data or self._name or self._after_cr or self._first):
            whole = self._one_event(chunk)  # as most chunks are
            if whole is not None and len(chunk) <= MAX_EVENT:
                name, data = whole.groups()
                return [SseEvent("" if name is None else name.decode("utf-8", "replace"), data)]
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")  # the second half of a CRLF
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._line:
            lines[0] = bytes(self._line) + lines[0]
            self._line.clear()
        events = self._take(lines) if lines else []
        self._line += rest
        if self._size + len(self._line) > MAX_EVENT:
            self.overgrown = True
        return events

    def end(self) -> list[SseEvent]:
        """The event that was still open when the stream ended, if it had data."""
        return self._take([bytes(self._line), b""])

    def _take(self, lines: list[bytes]) -> list[SseEvent]:
        if self._first:
            self._first = False
            lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
        events: list[SseEvent] = []
        for line in lines:
            if line[:5] == b"data:" or line == b"data":
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
                self._size += len(line)
            elif not line:
                if self._data:
                    if self._size > MAX_EVENT:
                        self.overgrown = True
                        break
                    data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                    events.append(SseEvent(self._name, data))
                    self._data.clear()
                    self._size = 0
                self._name = ""
            elif line[:6] == b"event:" or line == b"event":
                self._name = line[6:].removeprefix(b" ").decode("utf-8", "replace")
        return events
