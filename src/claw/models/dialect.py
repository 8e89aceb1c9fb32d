"""What every wire dialect offers to the client that speaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, Protocol

from claw.errors import ModelError, ProtocolViolation
from claw.models.payloads import Payload
from claw.types.events import AssistantEvent

__all__ = ["DIALECTS", "Decoder", "Dialect", "events_of"]

Dialect = Literal["anthropic", "openai-chat", "openai-responses"]
DIALECTS: tuple[Dialect, ...] = ("anthropic", "openai-chat", "openai-responses")


class Decoder(Protocol):
    """From the bytes of one reply to events; pure, and the same for any chunking.

    Both iterators are to be consumed whole; they raise ``ModelError`` for an error
    inside the stream, after the events that came before it.
    """

    @property
    def done(self) -> bool:
        """The dialect's own end mark came: nothing that follows belongs to the reply."""

    def feed(self, chunk: bytes) -> Iterator[AssistantEvent]: ...

    def end(self) -> Iterator[AssistantEvent]:
        """The stream ended, by itself or cut: the rest, with ``MessageStop`` if complete."""


def events_of(
    payloads: Iterable[Payload], take: Callable[[Payload, list[AssistantEvent]], None]
) -> Iterator[AssistantEvent]:
    """The events that ``take`` makes of payloads, up to the error that it raises."""
    for payload in payloads:
        out: list[AssistantEvent] = []
        try:
            take(payload, out)
        except ModelError:
            yield from out
            raise
        except RecursionError as error:
            yield from out
            raise ProtocolViolation("an event of the reply is nested too deeply") from error
        yield from out
