"""Recorded replies to ``Reply``: the decoders without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from claw.errors import ConfigError
from claw.models.anthropic.decode import AnthropicDecoder
from claw.models.classify import classify_error
from claw.models.dialect import DIALECTS, SCHEMA_CHAT, Decoder
from claw.models.openai_chat.decode import ChatDecoder
from claw.models.openai_responses.decode import ResponsesDecoder
from claw.models.schema_tools import schema_decoder
from claw.models.usage_tally import nothing_sent
from claw.models.wire_text import own_names, with_own_name
from claw.types.events import AssistantEvent, MessageStop
from claw.types.reply import Reply, assemble
from claw.types.request import Request

__all__ = ["decode", "decode_again", "decoder"]


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


def decode_again(
    spoken: str, chunks: Iterable[bytes], request: Request
) -> Iterator[AssistantEvent]:
    """The events that a client gives of a recorded body, the reply to ``request``.

    ``spoken`` is one of ``SPOKEN``. What a client takes from elsewhere is missing: the
    request id of the headers, and usage that it estimates. Raises ``ConfigError``, and
    ``ModelError`` as the client does.
    """
    plain = "openai-chat" if spoken == SCHEMA_CHAT else spoken
    events = _read(decoder(plain), chunks)
    names = own_names(request.tools)
    events = (with_own_name(event, names) for event in events)
    return _called(events, request) if spoken == SCHEMA_CHAT and request.tools else events


def _read(taking: Decoder, chunks: Iterable[bytes]) -> Iterator[AssistantEvent]:
    for chunk in chunks:
        yield from taking.feed(chunk)
        if taking.done:
            return
    yield from taking.end()


def _called(events: Iterable[AssistantEvent], request: Request) -> Iterator[AssistantEvent]:
    """With the calls that are written in the text of a reply that a schema binds."""
    calling = schema_decoder(request)
    stopped = False
    for event in events:
        stopped |= isinstance(event, MessageStop)
        yield from calling.feed(event)
    if not stopped:
        yield from calling.cut()
