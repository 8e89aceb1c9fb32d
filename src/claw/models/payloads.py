"""From the bytes of a reply to its JSON values: an event stream or one plain body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from claw.errors import ModelUnavailable, ProtocolViolation
from claw.models.sse import SseDecoder, SseEvent

__all__ = ["DONE", "Payload", "Payloads", "parse_json"]

DONE: Final = object()
"""The value of the ``[DONE]`` that ends streams of some dialects."""

_BLANK = b"\xef\xbb\xbf \t\r\n"
_EVENT_STREAM = (b"data", b"event", b"id", b"retry", b":")


class Payload(msgspec.Struct, frozen=True):
    """One JSON value. ``name`` is the event's name, empty where there was none."""

    name: str
    value: Any


def parse_json(data: bytes) -> Any:
    """JSON, leniently: bad UTF-8, control characters and lone surrogates pass.

    Raises ``ValueError``.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        pass
    import json  # only for what is no proper JSON; nobody else pays for it

    try:
        return json.loads(data.decode("utf-8", "replace"), strict=False)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


class Payloads:
    """Tells streams and plain bodies apart by their first character.

    ``whole`` says that it was a plain body: then the one value comes from ``end``.
    """

    def __init__(self) -> None:
        self.whole = False
        self._decided = False
        self._head = b""
        self._sse = SseDecoder()
        self._body: list[bytes] = []
        self._seen = False

    def feed(self, chunk: bytes) -> Iterator[Payload]:
        """Raises ``ModelUnavailable`` for an event that cannot be read."""
        if not self._decided:
            chunk = self._head + chunk
            self._head = chunk[:200]
            start = chunk.lstrip(_BLANK)
            if not start:
                self._head = chunk
                return
            self._decided = True
            self.whole = start[:1] in (b"{", b"[", b'"')
        elif len(self._head) < 200:
            self._head += chunk[: 200 - len(self._head)]
        if self.whole:
            self._body.append(chunk)
            return
        for event in self._sse.feed(chunk):
            payload = self._read(event)
            if payload is not None:
                yield payload

    def end(self) -> list[Payload]:
        """What was left. Raises ``ProtocolViolation`` for what is no reply at all."""
        if self.whole:
            try:
                return [Payload("", parse_json(b"".join(self._body)))]
            except ValueError as error:
                raise ProtocolViolation(f"the reply is broken JSON: {self._excerpt()}") from error
        left: list[Payload] = []
        for event in self._sse.end():
            try:
                payload = self._read(event)
            except ModelUnavailable:
                continue  # half an event: the stream was cut inside it
            if payload is not None:
                left.append(payload)
        start = self._head.lstrip(_BLANK)
        if start and not self._seen and not start.startswith(_EVENT_STREAM):
            raise ProtocolViolation(
                f"the answer is neither JSON nor an event stream: {self._excerpt()}",
                hint="Check the base URL, and whether a proxy or login page answered instead.",
            )
        return left

    def _read(self, event: SseEvent) -> Payload | None:
        data = event.data.strip()
        if data == b"[DONE]":
            self._seen = True
            return Payload(event.name, DONE)
        try:
            value = parse_json(data)
        except ValueError as error:
            if event.name == "error":
                value = data.decode("utf-8", "replace")
            elif data[:1] in (b"{", b"["):
                raise ModelUnavailable("an event of the stream is broken JSON") from error
            else:
                return None  # "keep-alive" and the like: life signs, not deltas
        self._seen = True
        return Payload(event.name, value)

    def _excerpt(self) -> str:
        return " ".join(self._head.decode("utf-8", "replace").split())[:120]
