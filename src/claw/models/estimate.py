"""Token counts without a tokenizer, for servers that report none.

Four ASCII characters count as one token, a character of two UTF-8 bytes (most
European letters, Cyrillic, Arabic) as half, of three (Chinese, Japanese, Korean)
as one, of four (emoji) as one and a half. Within about 30 % for prose and code,
which is enough to decide when a context fills up; never for money.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

from claw.types.messages import (
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from claw.types.request import Request

__all__ = ["estimate_request", "estimate_tokens"]

MEDIA_TOKENS = 1600
"""An image of about one megapixel; the providers' formulas end near this."""

MESSAGE_TOKENS = 4
"""Roles and separators around each message."""


def estimate_tokens(text: str) -> int:
    """Tokens of a text; the same text always gives the same number."""
    if text.isascii():
        return ceil(len(text) / 4)
    ascii_characters = len(text.encode("ascii", "ignore"))
    extra_bytes = len(text.encode("utf-8", "replace")) - len(text)
    return ceil(ascii_characters / 4 + extra_bytes / 2)


def estimate_request(request: Request) -> int:
    """Input tokens of a whole request: system prompt, tools and messages."""
    tools = sum(
        estimate_tokens(tool.description) + estimate_tokens(repr(tool.input_schema))
        for tool in request.tools
    )
    messages = sum(MESSAGE_TOKENS + _content(m) for m in request.messages)
    return estimate_tokens(request.system) + tools + messages


def _content(message: Message) -> int:
    total = 0
    for block in message.content:
        if isinstance(block, ToolResult):
            total += _blocks(block.content) + MESSAGE_TOKENS
        else:
            total += _blocks((block,))
    return total


def _blocks(blocks: Iterable[object]) -> int:
    total = 0
    for block in blocks:
        match block:
            case Text(text=text) | Thinking(text=text):
                total += estimate_tokens(text)
            case ToolUse():
                total += estimate_tokens(block.name) + estimate_tokens(repr(block.input))
            case Opaque():
                total += estimate_tokens(repr(block.raw))
            case RedactedThinking():
                total += estimate_tokens(block.data)
            case _:
                total += MEDIA_TOKENS
    return total
