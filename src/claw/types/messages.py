"""Blocks and messages: the conversation as the model sees it."""

from __future__ import annotations

from typing import Any

import msgspec

from claw.types.usage import Usage

__all__ = [
    "AssistantBlock",
    "AssistantMessage",
    "Document",
    "Image",
    "Message",
    "Opaque",
    "RedactedThinking",
    "ResultBlock",
    "Text",
    "Thinking",
    "ToolResult",
    "ToolUse",
    "UserBlock",
    "UserMessage",
    "fresh_id",
    "text_of",
]


class Text(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    text: str


class Thinking(msgspec.Struct, frozen=True, tag_field="type", tag="thinking", omit_defaults=True):
    """Reasoning; goes back to the model that made it byte for byte, or not at all."""

    text: str
    signature: str = ""


class RedactedThinking(msgspec.Struct, frozen=True, tag_field="type", tag="redacted_thinking"):
    data: str


class ToolUse(msgspec.Struct, frozen=True, tag_field="type", tag="tool_use", omit_defaults=True):
    """One call. ``raw_input`` only where the input did not parse to an object.

    Then ``input`` is ``{}``: that is what is sent back, and it is never run.
    """

    id: str
    name: str
    input: dict[str, Any] = {}
    raw_input: str | None = None


class Image(msgspec.Struct, frozen=True, tag_field="type", tag="image"):
    """``blob`` is the digest of the bytes in the session's blob store."""

    media_type: str
    blob: str


class Document(msgspec.Struct, frozen=True, tag_field="type", tag="document", omit_defaults=True):
    media_type: str
    blob: str
    title: str = ""


class Opaque(msgspec.Struct, frozen=True, tag_field="type", tag="opaque"):
    """What only its provider understands; kept verbatim for the round trip."""

    provider: str
    raw: dict[str, Any]


ResultBlock = Text | Image | Document


class ToolResult(
    msgspec.Struct, frozen=True, tag_field="type", tag="tool_result", omit_defaults=True
):
    tool_use_id: str
    content: tuple[ResultBlock, ...]
    is_error: bool = False


UserBlock = Text | Image | Document | ToolResult
AssistantBlock = Text | Thinking | RedactedThinking | ToolUse | Opaque


class UserMessage(msgspec.Struct, frozen=True, tag_field="role", tag="user"):
    content: tuple[UserBlock, ...]


class AssistantMessage(
    msgspec.Struct, frozen=True, tag_field="role", tag="assistant", omit_defaults=True
):
    content: tuple[AssistantBlock, ...]
    model: str = ""
    stop_reason: str = ""
    usage: Usage = Usage()
    provider_metadata: dict[str, Any] = {}

    @property
    def tool_calls(self) -> tuple[ToolUse, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolUse))


Message = UserMessage | AssistantMessage


def text_of(content: tuple[UserBlock | AssistantBlock, ...]) -> str:
    """The text blocks of a message or result, joined without a separator."""
    return "".join(block.text for block in content if isinstance(block, Text))


def fresh_id(wanted: str, used: set[str]) -> str:
    """An id for a call that is in ``used`` afterwards and was not before.

    A blank one becomes ``call``; a repeated ``x`` becomes ``x_d2``, ``x_d3``, ...
    """
    wanted = wanted if wanted.strip() else "call"
    name, n = wanted, 1
    while name in used:
        n += 1
        name = f"{wanted}_d{n}"
    used.add(name)
    return name
