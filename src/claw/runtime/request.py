"""What is sent next: pure, and each request extends the one before it."""

from __future__ import annotations

import hashlib

import msgspec

from claw.types.entries import Digests
from claw.types.messages import Message
from claw.types.request import Request, Sampling
from claw.types.tools import ToolSpec
from claw.types.transcript import Transcript

__all__ = ["Digester", "Prompt", "build_request"]

BEFORE = 4
"""Messages: a step adds two, or three where somebody steers."""
SHORT = 12
"""Hexadecimal digits."""


class Prompt(msgspec.Struct, frozen=True):
    """What stands before the conversation; the same for every request of a session."""

    system: str
    tools: tuple[ToolSpec, ...]


def build_request(prompt: Prompt, transcript: Transcript, sampling: Sampling) -> Request:
    return Request(prompt.system, transcript.messages, prompt.tools, sampling)


class Digester:
    """Digests of consecutive requests at a flat cost.

    The digest of the messages is chained, ``d[n] = H(d[n-1], message n)``: equal
    prefixes have equal digests, and the first message that differs can be named.
    Messages that were already hashed are recognised by identity.
    """

    def __init__(self) -> None:
        self._seen: list[tuple[Message, bytes]] = []
        self._fixed: tuple[Prompt, str, str] | None = None

    def digests(self, request: Request) -> Digests:
        system, tools = self._of_prompt(Prompt(request.system, request.tools))
        *before, last = self._chain(request.messages)
        return Digests(
            system=system,
            tools=tools,
            messages=last.hex(),
            sampling=_digest(msgspec.json.encode(request.sampling)),
            before=tuple(value.hex()[:SHORT] for value in before),
        )

    def _of_prompt(self, prompt: Prompt) -> tuple[str, str]:
        if self._fixed is None or self._fixed[0] != prompt:
            self._fixed = (prompt, _digest(_encode(prompt.system)), _digest(_encode(prompt.tools)))
        return self._fixed[1:]

    def _chain(self, messages: tuple[Message, ...]) -> list[bytes]:
        """The values at the last messages."""
        same = 0
        for (seen, _), message in zip(self._seen, messages, strict=False):
            if seen is not message:
                break
            same += 1
        del self._seen[same:]
        last = self._seen[-1][1] if self._seen else b""
        for message in messages[same:]:
            last = hashlib.sha256(last + _encode(message)).digest()[:16]
            self._seen.append((message, last))
        return [value for _, value in self._seen[-1 - BEFORE :]] or [b""]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _encode(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a lone surrogate: distinct enough for a digest
        return repr(value).encode("utf-8", "backslashreplace")
