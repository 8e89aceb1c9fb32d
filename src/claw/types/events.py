"""What a model streams, and what a turn shows while it runs.

``AssistantEvent`` is a client's vocabulary. ``Delta`` is ephemeral progress: it
reaches whoever listens and is then forgotten. The durable half of a turn's
events are the entries of ``claw.types.entries``; ``Event`` there is either.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from claw.types.messages import Opaque, RedactedThinking, Thinking, ToolUse
from claw.types.usage import PromptCacheEvent, Usage

__all__ = [
    "AssistantEvent",
    "Delta",
    "MessageStart",
    "MessageStop",
    "Notice",
    "OpaqueBlock",
    "PromptCache",
    "RetryWait",
    "Status",
    "TextDelta",
    "ThinkingDelta",
    "ToolInputDelta",
    "ToolProgress",
    "WireChunk",
]


class TextDelta(msgspec.Struct, frozen=True, tag_field="kind", tag="text_delta"):
    text: str


class ThinkingDelta(msgspec.Struct, frozen=True, tag_field="kind", tag="thinking_delta"):
    """Reasoning for the eye only; the block itself follows as ``Thinking``."""

    text: str


class ToolInputDelta(msgspec.Struct, frozen=True, tag_field="kind", tag="tool_input_delta"):
    """``index`` counts the calls of this reply from 0."""

    index: int
    partial_json: str


class MessageStart(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who answers, as far as the stream says; may come more than once, the last word counts.

    ``asked`` is the name that the request carried, where it was not the caller's own.
    """

    model: str = ""
    request_id: str = ""
    asked: str = ""


class Notice(msgspec.Struct, frozen=True, tag_field="kind", tag="notice"):
    code: str
    level: Literal["info", "warning", "error"]
    text: str


class PromptCache(msgspec.Struct, frozen=True):
    event: PromptCacheEvent


class MessageStop(msgspec.Struct, frozen=True, omit_defaults=True):
    """The stream is complete. ``stop_reason`` as in the table of ``Reply``."""

    stop_reason: str
    provider_metadata: dict[str, Any] = {}


class WireChunk(msgspec.Struct, frozen=True, omit_defaults=True):
    """Bytes of the reply's body, before the events that were read from them.

    Only a client that was made to record them yields any. One with a ``dialect`` has no
    ``data``: a body begins, whose decoder has this name, and what came before was another
    one's. They are no part of the reply: a stream of nothing else is an empty one.
    """

    data: bytes
    dialect: str = ""


OpaqueBlock = Opaque
"""In a stream, a block that only its provider understands."""

AssistantEvent = (
    MessageStart
    | TextDelta
    | ThinkingDelta
    | Thinking
    | RedactedThinking
    | ToolInputDelta
    | ToolUse
    | Opaque
    | Usage
    | PromptCache
    | Notice
    | MessageStop
    | WireChunk
)


class ToolProgress(msgspec.Struct, frozen=True, tag_field="kind", tag="tool_progress"):
    """Output of a running tool, for the eye only."""

    call_id: str
    text: str


class RetryWait(msgspec.Struct, frozen=True, tag_field="kind", tag="retry_wait"):
    """``delay`` is in seconds; ``attempt`` is the one that failed, from 1."""

    attempt: int
    delay: float
    error: str


class Status(msgspec.Struct, frozen=True, tag_field="kind", tag="status"):
    phase: Literal["thinking", "tools", "compacting", "waiting"]


Delta = TextDelta | ThinkingDelta | ToolInputDelta | ToolProgress | RetryWait | Notice | Status
