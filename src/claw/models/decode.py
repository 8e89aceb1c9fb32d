"""Recorded replies to ``Reply``: the decoders without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from claw.errors import ConfigError
from claw.models.anthropic.decode import AnthropicDecoder
from claw.models.classify import classify_error
from claw.models.dialect import DIALECTS, Decoder
from claw.models.openai_chat.decode import ChatDecoder
from claw.models.openai_responses.decode import ResponsesDecoder
from claw.models.usage_tally import nothing_sent
from claw.types.events import AssistantEvent
from claw.types.reply import Reply, assemble

__all__ = ["decode", "decoder"]


def decoder(dialect: str, *, input_estimate: Callable[[], int] = nothing_sent) -> Decoder:
    """Raises ``ConfigError`` for a dialect that claw does not speak."""
    match dialect:
        case "anthropic":
            return AnthropicDecoder(input_estimate=input_estimate)
        case "openai-chat":
            return ChatDecoder(input_estimate=input_estimate)
        case "openai-responses":
            return ResponsesDecoder(input_estimate=input_estimate)
        case _:
            raise ConfigError(f"unknown dialect `{dialect}`", hint=f"Known: {', '.join(DIALECTS)}.")


def decode(
    dialect: str,
    chunks: Iterable[bytes],
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """The reply in the bytes of a stream or of a plain body, however they are cut.

    A stream that was cut gives ``complete=False`` with what was read. Raises
    ``ModelError`` for a status of 400 or more, for an error inside the stream,
    and for what is no reply at all.
    """
    if status >= 400:
        raise classify_error(status, b"".join(chunks), headers)
    taking = decoder(dialect)
    events: list[AssistantEvent] = []
    for chunk in chunks:
        events.extend(taking.feed(chunk))
    events.extend(taking.end())
    return assemble(events)
