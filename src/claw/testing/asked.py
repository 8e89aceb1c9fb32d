"""What is new in a request, and how two such things differ, in words."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from claw.models.script_files import Asked
from claw.recordings.verify import window
from claw.types.messages import (
    AssistantBlock,
    AssistantMessage,
    Document,
    Image,
    Message,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    UserBlock,
    text_of,
)
from claw.types.request import Request

__all__ = ["difference", "new_in", "summary"]

Piece = tuple[str, str]
"""What a part of a request is called, and its text."""


def new_in(request: Request, before: Request | None, said: tuple[AssistantBlock, ...]) -> Asked:
    """What it adds to the request ``before``, without what the model ``said`` to that.

    The tools are named in any case.
    """
    known = len(before.messages) if before else 0
    anew = before is not None and request.messages[:known] != before.messages
    fresh = request.messages if anew else request.messages[known:]
    return Asked(
        anew=anew,
        tools=tuple(spec.name for spec in request.tools),
        messages=tuple(_bare(m) for m in fresh if anew or not _is_reply(m, said)),
    )


def _is_reply(message: Message, said: tuple[AssistantBlock, ...]) -> bool:
    return isinstance(message, AssistantMessage) and message.content == said


def _bare(message: Message) -> Message:
    return AssistantMessage(message.content) if isinstance(message, AssistantMessage) else message


def difference(recorded: Asked, now: Asked, calls: Mapping[str, str]) -> str:
    """The first thing that differs, in words; blank where nothing does.

    ``calls`` are names of tools by the ids of their calls. Tools that the recording does
    not name are not compared.
    """
    if recorded.tools is not None and (changed := _tools(recorded.tools, now.tools or ())):
        return changed
    if recorded.anew != now.anew:
        return (
            "it does not continue the request before it any more"
            if now.anew
            else "it continues the request before it, where the recorded one began anew"
        )
    old, new = _pieces(recorded, calls), _pieces(now, calls)
    for at in range(max(len(old), len(new))):
        if at >= len(old):
            return f"{_named(new[at])} came in addition"
        if at >= len(new):
            return f"{_named(old[at])} does not come any more"
        if old[at][0] != new[at][0]:
            return f"{_named(new[at])} comes in the place of {_named(old[at])}"
        if old[at] != new[at]:
            return f"{old[at][0]} differs\n{_lines(old[at][1], new[at][1])}"
    return ""


def summary(asked: Asked) -> str:
    """What a request asks, in a line."""
    pieces = _pieces(asked, {})
    return _named(pieces[-1]) if pieces else "nothing new"


def _tools(old: tuple[str, ...], new: tuple[str, ...]) -> str:
    if old == new:
        return ""
    gone = [name for name in old if name not in new]
    come = [name for name in new if name not in old]
    parts = [f"{_list(gone)} not offered any more"] if gone else []
    parts += [f"{_list(come)} offered in addition"] if come else []
    return " and ".join(parts) or f"the tools are offered in another order: {', '.join(new)}"


def _list(names: list[str]) -> str:
    return f"{', '.join(f'`{name}`' for name in names)} {'is' if len(names) == 1 else 'are'}"


def _pieces(asked: Asked, calls: Mapping[str, str]) -> list[Piece]:
    return [
        piece
        for message in asked.messages
        for block in message.content
        for piece in _of_block(block, isinstance(message, AssistantMessage), calls)
    ]


def _of_block(
    block: UserBlock | AssistantBlock, by_model: bool, calls: Mapping[str, str]
) -> Iterator[Piece]:
    match block:
        case Text():
            yield "the model's text" if by_model else "the user's text", block.text
        case Thinking():
            yield "the model's thinking", block.text
        case ToolUse():
            yield f"the call `{block.id}` of `{block.name}`", _json(block.input)
        case Image() | Document():
            yield f"a {block.media_type}", block.blob
        case ToolResult():
            tool = f"`{calls[block.tool_use_id]}`, " if block.tool_use_id in calls else ""
            what = "error" if block.is_error else "result"
            yield f"the {what} of {tool}call `{block.tool_use_id}`", text_of(block.content)
            for part in block.content:
                if not isinstance(part, Text):
                    yield from _of_block(part, by_model, calls)
        case _:
            yield "a block that only its provider reads", _json(msgspec.to_builtins(block))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _named(piece: Piece) -> str:
    label, text = piece
    return f"{label} ({text[:200]!r}{'…' if len(text) > 200 else ''})"


def _lines(old: str, new: str) -> str:
    """A diff of what lies around the first difference."""
    shown = window(old, new)
    if shown[0].splitlines() == shown[1].splitlines():  # line ends alone
        return f"- {old[-200:]!r}\n+ {new[-200:]!r}"
    lines = difflib.unified_diff(shown[0].splitlines(), shown[1].splitlines(), lineterm="", n=2)
    kept = [f"{line[:1]} {line[1:]}" for line in lines if not line.startswith(("---", "+++", "@@"))]
    return "\n".join(kept)
