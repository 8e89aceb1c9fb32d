"""From the bytes of a reply to its JSON values: an event stream or one plain body."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Any, Final

import msgspec

from claw.errors import ModelUnavailable, ProtocolViolation
from claw.models.sse import MAX_EVENT, SseDecoder, SseEvent

__all__ = ["DONE", "Payload", "Payloads", "parse_json"]

DONE: Final = object()
"""The value of the ``[DONE]`` that ends streams of some dialects."""

_BLANK = b"\xef\xbb\xbf \t\r\n"
_OF_JSON = (b"{", b"}", b'"')
"""What no life sign has in it, and every piece of an event that was torn."""

_EVENT_STREAM = (b"data", b"event", b"id", b"retry", b":")


class Payload(msgspec.Struct, frozen=True, gc=False):
    """One JSON value. ``name`` is the event's name, empty where there was none."""

    name: str
    value: Any


def parse_json(data: bytes) -> Any:
    """JSON, leniently: bad UTF-8, control characters and lone surrogates pass.

    Numbers that JSON does not know (NaN, infinities) become None. Raises ``ValueError``.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        pass
    import json  # only for what is no proper JSON; nobody else pays for it

    try:
        return json.loads(
            data.strip().decode("utf-8", "replace"),
            strict=False,
            parse_constant=lambda name: None,
            parse_float=_finite,
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _finite(digits: str) -> float | None:
    value = float(digits)
    return value if isfinite(value) else None


class Payloads:
    """Tells streams and plain bodies apart by their first character.

    ``whole`` says that it was a plain body: then the one value comes from ``end``.
    """

    def __init__(self) -> None:
        self.whole = False
        self._decided = False
        self._head = b""
        self._sse = SseDecoder()
        self._body = bytearray()
        self._seen = False

    def feed(self, chunk: bytes) -> Iterable[Payload]:
        """Raises ``ModelUnavailable`` for an event that cannot be read, and
        ``ProtocolViolation`` for one that is too large to be a model's.

        Empty where the chunk completes no event.
        """
        if not self._decided:
            chunk = chunk.lstrip(_BLANK)
            if not chunk:
                return ()
            self._decided = True
            self.whole = chunk[:1] in (b"{", b"[", b'"')
        if len(self._head) < 200:
            self._head += chunk[: 200 - len(self._head)]
        if self.whole:
            self._body += chunk
            if len(self._body) > MAX_EVENT:
                raise _too_large()
            return ()
        events = self._sse.feed(chunk)
        if len(events) == 1 and not self._sse.overgrown:  # the rule: no generator for it
            payload = self._read(events[0])
            return () if payload is None else (payload,)
        return self._read_all(events) if events or self._sse.overgrown else ()

    def _read_all(self, events: list[SseEvent]) -> Iterator[Payload]:
        for event in events:
            payload = self._read(event)
            if payload is not None:
                yield payload
        if self._sse.overgrown:
            raise _too_large()

    def end(self) -> list[Payload]:
        """What was left. Raises ``ProtocolViolation`` for what is no reply at all."""
        if self.whole:
            try:
                value = parse_json(bytes(self._body))
            except ValueError as error:
                raise ProtocolViolation(f"the reply is broken JSON: {self._excerpt()}") from error
            if not value:
                raise ProtocolViolation(
                    f"the reply holds nothing: {self._excerpt()}", hint="Check the base URL."
                )
            return [Payload("", value)]
        left: list[Payload] = []
        for event in self._sse.end():
            try:
                payload = self._read(event)
            except ModelUnavailable:
                continue  # half an event: the stream was cut inside it
            if payload is not None:
                left.append(payload)
        if self._head and not self._seen and not self._head.startswith(_EVENT_STREAM):
            raise ProtocolViolation(
                f"the answer is neither JSON nor an event stream: {self._excerpt()}",
                hint="Check the base URL, and whether a proxy or login page answered instead.",
            )
        return left

    def _read(self, event: SseEvent) -> Payload | None:
        try:
            value = parse_json(event.data)
        except ValueError as error:
            data = event.data.strip()
            if data == b"[DONE]":
                value = DONE
            elif event.name == "error":
                value = data.decode("utf-8", "replace")
            elif data[:1] == b"[" or any(mark in data for mark in _OF_JSON):
                raise ModelUnavailable(
                    "an event of the stream is broken JSON",
                    hint="If it stays so, something between claw and the model damages streams: "
                    "a proxy, a gateway.",
                ) from error
            else:
                return None  # "keep-alive" and the like: life signs, not deltas
        self._seen = True
        return Payload(event.name, value)

    def _excerpt(self) -> str:
        return " ".join(self._head.decode("utf-8", "replace").split())[:120]


def _too_large() -> ProtocolViolation:
    return ProtocolViolation(
        f"the server sent more than {MAX_EVENT >> 20} MiB as one event or body",
        hint="Check the base URL: no model's reply is as large.",
    )
