"""``Request``: all that a model client needs for one sample."""

from __future__ import annotations

import msgspec

from claw.types.messages import Message
from claw.types.tools import ToolSpec

__all__ = ["Request", "Sampling"]


class Sampling(msgspec.Struct, frozen=True, omit_defaults=True):
    """``max_tokens`` limits the output; None leaves it to the client's catalogue."""

    model: str
    max_tokens: int | None = None
    effort: str = ""


class Request(msgspec.Struct, frozen=True):
    """``system`` is the whole system prompt, one text; ``messages`` are valid to send."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    sampling: Sampling
