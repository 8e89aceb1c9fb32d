"""A summary that needs no model: what was done, in order, within bounds. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from claw.compaction.telling import Tokens, call_line, calls_of, clipped, one_line, said
from claw.types.messages import AssistantMessage, Message, ToolResult, UserMessage, text_of

__all__ = ["digest"]

LONGEST_LINE = 300  # characters of what was said or went wrong


def digest(
    messages: tuple[Message, ...], previous: str, most: int, tokens: Tokens
) -> tuple[str, tuple[str, ...]]:
    """``messages`` after what is known from ``previous``, in about ``most`` tokens.

    Returns the text, and what it leaves out.
    """
    dropped = []
    before = clipped(previous, most // 2, tokens)
    if before != previous:
        dropped.append("a part of the earlier summary")
    left = most - tokens(before)
    lines: list[str] = []
    all_lines = [*_lines(messages)]
    for line in reversed(all_lines):
        left -= tokens(line) + 1
        if left < 0:
            break
        lines.append(line)
    if missing := len(all_lines) - len(lines):
        dropped.append(f"{missing} step{'' if missing == 1 else 's'}")
        lines.append(f"[{missing} earlier lines of this list are left out]")
    return "\n".join(part for part in (before, *reversed(lines)) if part), tuple(dropped)


def _lines(messages: tuple[Message, ...]) -> Iterator[str]:
    results = {
        block.tool_use_id: block
        for message in messages
        if isinstance(message, UserMessage)
        for block in message.content
        if isinstance(block, ToolResult)
    }
    for message in messages:
        if not isinstance(message, AssistantMessage):
            continue
        if text := text_of(message.content).strip():
            yield f"Said: {one_line(text, LONGEST_LINE)}"
        for call in calls_of((message,)).values():
            yield f"- {call_line(call)}{_outcome(results.get(call.id))}"


def _outcome(result: ToolResult | None) -> str:
    """Nothing for what went well: the calls themselves say what was done."""
    if result is None or not result.is_error:
        return ""
    lines = [line for line in said(result.content).split("\n") if line.strip()]
    first = one_line(lines[0], LONGEST_LINE) if lines else ""
    last = one_line(lines[-1], LONGEST_LINE) if len(lines) > 1 else ""
    return f" -> failed: {first}{f' ... {last}' if last else ''}"
