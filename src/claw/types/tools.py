"""Tools as values: what is offered to the model, and what a run gives back."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from claw.types.messages import ResultBlock, Text

__all__ = ["CallStatus", "Todo", "ToolOutput", "ToolSpec"]

CallStatus = Literal["ok", "error", "denied", "interrupted", "not_run", "outcome_unknown"]


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a model is told of a tool. ``input_schema`` is JSON Schema of an object.

    ``aliases`` are other names a model may call it by; ``read_only`` tools may run
    beside each other.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    aliases: tuple[str, ...] = ()
    read_only: bool = False


class Todo(msgspec.Struct, frozen=True):
    content: str
    status: Literal["pending", "in_progress", "completed"]


class ToolOutput(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a run produced: ``content`` for the model, ``display`` for the person.

    ``display`` is short text (a diff, a count); empty means: show the content.
    ``is_error`` marks output that reports a failure without being one of the
    tool itself (a command that exits non-zero). ``omitted`` bytes are missing from
    the content: the tool kept no more.
    """

    content: tuple[ResultBlock, ...]
    display: str = ""
    is_error: bool = False
    omitted: int = 0

    @staticmethod
    def of(text: str, *, display: str = "", is_error: bool = False) -> ToolOutput:
        return ToolOutput((Text(text),), display, is_error)
