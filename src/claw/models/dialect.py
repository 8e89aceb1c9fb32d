"""What every wire dialect offers to the client that speaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, Protocol

from claw.errors import ModelError, ProtocolViolation
from claw.models.payloads import Payload
from claw.types.events import AssistantEvent

__all__ = ["DIALECTS", "SCHEMA_CHAT", "SPOKEN", "Decoder", "Dialect", "events_by", "events_of"]

Dialect = Literal["anthropic", "openai-chat", "openai-responses"]
DIALECTS: tuple[Dialect, ...] = ("anthropic", "openai-chat", "openai-responses")

SCHEMA_CHAT = "openai-chat/json_schema"
"""Chat Completions whose replies are bound to a schema; see ``schema_tools``."""

SPOKEN: tuple[str, ...] = (*DIALECTS, SCHEMA_CHAT)
"""What clients call what they speak, where the bytes of a reply are recorded."""


class Decoder(Protocol):
    """From the bytes of one reply to events; pure, and the same for any chunking.

    What both methods give is to be consumed whole; it raises ``ModelError`` for an error
    inside the stream, after the events that came before it.
    """

    @property
    def done(self) -> bool:
        """The dialect's own end mark came: nothing that follows belongs to the reply."""

    def feed(self, chunk: bytes) -> Iterable[AssistantEvent]: ...

    def end(self) -> Iterable[AssistantEvent]:
        """The stream ended, by itself or cut: the rest, with ``MessageStop`` if complete."""


def events_of(
    payloads: Iterable[Payload], take: Callable[[Payload, list[AssistantEvent]], None]
) -> Iterable[AssistantEvent]:
    """The events that ``take`` makes of payloads, up to the error that it raises."""
    out: list[AssistantEvent] = []
    try:
        for payload in payloads:
            take(payload, out)
    except (ModelError, RecursionError) as error:
        return _up_to(error, out)
    return out


def events_by(fill: Callable[[list[AssistantEvent]], None]) -> Iterable[AssistantEvent]:
    """The events that ``fill`` puts into its list, up to the error that it raises."""
    out: list[AssistantEvent] = []
    try:
        fill(out)
    except (ModelError, RecursionError) as error:
        return _up_to(error, out)
    return out


def _up_to(
    error: ModelError | RecursionError, out: list[AssistantEvent]
) -> Iterator[AssistantEvent]:
    yield from out
    if isinstance(error, RecursionError):
        raise ProtocolViolation("an event of the reply is nested too deeply") from error
    raise error
