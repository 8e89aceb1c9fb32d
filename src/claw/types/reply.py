"""``Reply``, and ``assemble``: the one fold from a stream to a reply."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from claw.errors import ProtocolViolation
from claw.types.events import (
    AssistantEvent,
    MessageStart,
    MessageStop,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    WireChunk,
)
from claw.types.messages import (
    AssistantBlock,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolUse,
    fresh_id,
    text_of,
)
from claw.types.usage import Usage

__all__ = ["CUT_BY_LIMIT", "ENDED_WELL", "FINAL", "REFUSED", "UNFINISHED", "Reply", "assemble"]

CUT_BY_LIMIT = frozenset({"max_tokens", "model_context_window_exceeded"})
"""Stop reasons that cut the last block."""

ENDED_WELL = frozenset({"end_turn", "stop_sequence", "stop"})
"""Stop reasons of a reply that is what the model had to say."""

REFUSED = frozenset({"refusal", "content_filter"})

FINAL = CUT_BY_LIMIT | REFUSED
"""Stop reasons that a later one in the same stream does not take back."""

UNFINISHED = frozenset(
    {
        "cancelled",
        "in_progress",
        "incomplete",
        "malformed_function_call",
        "queued",
        "unexpected_tool_call",
    }
)
"""Stop reasons, in lower case, by which a server says that the calls are not whole."""


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """One response of a model.

    ``stop_reason`` is in one vocabulary for all dialects: ``end_turn``,
    ``stop_sequence``, ``stop`` (it ended), ``tool_use``, ``pause_turn`` (it goes
    on), ``max_tokens``, ``model_context_window_exceeded`` (cut), ``refusal``,
    or the provider's own word where none of these fits. ``complete`` is False
    where the stream was cut; then ``stop_reason`` is empty. ``model`` is the
    server's name for what answered, ``asked`` as in ``MessageStart``.
    """

    blocks: tuple[AssistantBlock, ...] = ()
    stop_reason: str = ""
    usage: Usage = Usage()
    model: str = ""
    complete: bool = True
    request_id: str = ""
    asked: str = ""
    provider_metadata: dict[str, Any] = {}

    @property
    def text(self) -> str:
        return text_of(self.blocks)

    @property
    def thinking(self) -> str:
        return "".join(block.text for block in self.blocks if isinstance(block, Thinking))

    @property
    def tool_calls(self) -> tuple[ToolUse, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolUse))


def assemble(events: Iterable[AssistantEvent], taken: Collection[str] = ()) -> Reply:
    """Fold a stream into a reply.

    Text deltas append; every other block flushes the pending text; the last
    usage wins; ``MessageStop`` carries the reason, and a stream without one is
    incomplete. A call whose id is blank, repeated here, or among ``taken`` (the
    ids that the conversation has used) gets a new one: ``x``, ``x_d2``, ``x_d3``.

    Raises ``ProtocolViolation`` where events follow the stop, or none came.
    """
    blocks: list[AssistantBlock] = []
    pending: list[str] = []
    used = set(taken)
    usage = Usage()
    model = request_id = asked = ""
    stop: MessageStop | None = None
    saw_any = False

    def flush() -> None:
        if pending:
            blocks.append(Text("".join(pending)))
            pending.clear()

    for event in events:
        saw_any = saw_any or not isinstance(event, WireChunk)
        match event:
            case TextDelta() if stop is None:  # first what comes most often
                if event.text:
                    pending.append(event.text)
            case ThinkingDelta() | ToolInputDelta():  # progress for the eye
                pass
            case Usage():  # may trail the stop in the dialects that count at the very end
                usage = event
            case MessageStart():
                model = event.model or model
                request_id = event.request_id or request_id
                asked = event.asked or asked
            case MessageStop():
                if stop is not None:
                    raise ProtocolViolation("the stream ended twice")
                stop = event
            case ToolUse() if stop is None:
                flush()
                name = fresh_id(event.id, used)
                blocks.append(event if name == event.id else replace(event, id=name))
            case Thinking() | RedactedThinking() | Opaque() if stop is None:
                flush()
                blocks.append(event)
            case TextDelta() | ToolUse() | Thinking() | RedactedThinking() | Opaque():
                raise ProtocolViolation("the stream went on after its end")
            case _:  # progress for the eye, and raw bytes
                pass
    flush()
    if not saw_any:
        raise ProtocolViolation("the stream was empty")
    return Reply(
        blocks=tuple(blocks),
        stop_reason=stop.stop_reason if stop else "",
        usage=usage,
        model=model,
        complete=stop is not None,
        request_id=request_id,
        asked=asked,
        provider_metadata=stop.provider_metadata if stop else {},
    )
