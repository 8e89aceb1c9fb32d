"""Make old results small without a model: what they said can be had again. Pure.

In this order, until there is room: reads of a file that was read again later, results
that a later call repeats, images, then the bulk of old outputs, oldest first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from claw.compaction.telling import Tokens, call_line, calls_of
from claw.types.messages import Message, Text, ToolResult, ToolUse, UserMessage, text_of

__all__ = ["Stub", "stubs"]

BULKY = 200
"""Tokens; what is smaller is hardly larger than its stub."""
MEDIA = 1_000
"""Tokens that an image takes at least."""
MARK = "[Left out to make room: "
_READS = frozenset({"read", "read_file", "view"})


class Stub(msgspec.Struct, frozen=True):
    """``text`` takes the place of the result of ``call_id``; ``saves`` tokens, about."""

    call_id: str
    text: str
    saves: int
    kind: str


def stubs(messages: tuple[Message, ...], before: int, tokens: Tokens) -> Iterator[Stub]:
    """Results in ``messages[:before]`` that can be left out, the least missed first.

    A result comes once. Whether a file is read again is looked for in all messages.
    """
    calls = calls_of(messages)
    old = [*_results(messages[:before])]
    last_read, last_said = _last_of_each(messages, calls)
    seen: set[str] = set()

    def fresh(result: ToolResult, why: str, kind: str) -> Iterator[Stub]:
        call = calls.get(result.tool_use_id)
        text = text_of(result.content)
        if call is None or result.tool_use_id in seen or text.startswith(MARK):
            return
        stub = _stub(call, text, why)
        media = MEDIA * sum(not isinstance(block, Text) for block in result.content)
        saves = tokens(text) + media - tokens(stub)
        if saves > 0:
            seen.add(result.tool_use_id)
            yield Stub(result.tool_use_id, stub, saves, kind)

    for result in old:
        path = _whole_read(calls.get(result.tool_use_id))
        if path and last_read.get(path, result.tool_use_id) != result.tool_use_id:
            yield from fresh(result, "the file was read again later", "read")
    for result in old:
        key = _said_by(calls.get(result.tool_use_id), result)
        if last_said.get(key, result.tool_use_id) != result.tool_use_id:
            yield from fresh(result, "a later call gave the same result", "repeated")
    for result in old:
        if any(not isinstance(block, Text) for block in result.content):
            yield from fresh(result, "make the call again to see it", "image")
    for result in old:
        if tokens(text_of(result.content)) > BULKY:
            yield from fresh(result, "make the call again if it is needed", "output")


def _stub(call: ToolUse, text: str, why: str) -> str:
    spilled = re.search(r"full text is in (\S+?)[\s\]]", text)
    where = f"the full text is in {spilled[1]} " if spilled else why
    size = f"{len(text):,} characters, {text.count(chr(10)) + 1:,} lines"
    return f"{MARK}the result of {call_line(call)} ({size}); {where.strip()}]"


def _results(messages: tuple[Message, ...]) -> Iterator[ToolResult]:
    for message in messages:
        if isinstance(message, UserMessage):
            yield from (block for block in message.content if isinstance(block, ToolResult))


def _last_of_each(
    messages: tuple[Message, ...], calls: dict[str, ToolUse]
) -> tuple[dict[str, str], dict[tuple[str, str, str], str]]:
    """The last good read of each file, and the last call of each kind with each result."""
    reads: dict[str, str] = {}
    said: dict[tuple[str, str, str], str] = {}
    for result in _results(messages):
        call = calls.get(result.tool_use_id)
        if not result.is_error and (path := _whole_read(call)):
            reads[path] = result.tool_use_id
        said[_said_by(call, result)] = result.tool_use_id
    return reads, said


def _whole_read(call: ToolUse | None) -> str:
    """The file that a call reads from its beginning; blank for any other call."""
    if call is None or call.name.lower() not in _READS:
        return ""
    if call.input.get("offset") or call.input.get("limit"):
        return ""
    path = call.input.get("file_path") or call.input.get("path")
    return path if isinstance(path, str) else ""


def _said_by(call: ToolUse | None, result: ToolResult) -> tuple[str, str, str]:
    if call is None:
        return "", "", result.tool_use_id
    return call.name, repr(call.input), repr(result.content)
