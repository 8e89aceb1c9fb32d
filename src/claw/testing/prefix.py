"""Whether a request body only adds to the one before it, so that a prompt cache can help.

What a provider's cache compares is the prompt in the order tools, system prompt,
messages; marks for the cache (``cache_control``) and sampling are not part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["first_difference", "has_replies", "opening", "unmarked"]

Body = Mapping[str, Any]
_LISTS = {"anthropic": "messages", "openai-chat": "messages", "openai-responses": "input"}
_FIXED = ("tools", "system", "instructions")


def first_difference(dialect: str, before: Body, after: Body) -> str:
    """The first part of ``before`` that ``after`` does not begin with; blank for none."""
    for name in _FIXED:
        if unmarked(before.get(name)) != unmarked(after.get(name)):
            return f"`{name}` changed"
    earlier, later = [*_parts(dialect, before)], [*_parts(dialect, after)]
    for number, (name, part) in enumerate(earlier):
        other = later[number][1] if number < len(later) else None
        last = number + 1 == len(earlier)
        if part != other and not (last and _has_grown(part, other)):
            return f"{name} changed: {_short(part)} is now {_short(other)}"
    return ""


def has_replies(dialect: str, body: Body) -> bool:
    """Whether anything in it came from a model; without that, a conversation begins."""
    messages = body.get(_LISTS[dialect], ())
    return any(
        m.get("role") == "assistant" or m.get("type") in {"function_call", "reasoning"}
        for m in messages
        if isinstance(m, Mapping)
    )


def opening(dialect: str, body: Body) -> str:
    """What tells a conversation from others: its first message that is not the system's."""
    for name, part in _parts(dialect, body):
        if part.get("role") != "system":
            return f"{name} {part}"
    return ""


def unmarked(value: Any) -> Any:
    """The same without ``cache_control``."""
    if isinstance(value, Mapping):
        return {k: unmarked(v) for k, v in value.items() if k != "cache_control"}
    return [unmarked(item) for item in value] if isinstance(value, list) else value


def _parts(dialect: str, body: Body) -> Iterator[tuple[str, dict[str, Any]]]:
    """Messages in order; of the Messages API their blocks, since messages of a role merge."""
    name = _LISTS[dialect]
    messages = body.get(name, ())
    for number, message in enumerate([messages] if isinstance(messages, str) else messages):
        where = f"{name}[{number}]"
        if isinstance(message, str):
            yield where, {"role": "user", "content": message}
        elif dialect != "anthropic" or isinstance(message["content"], str):
            yield where, unmarked(message)
        else:
            for at, block in enumerate(message["content"]):
                yield f"{where}.content[{at}]", {"role": message["role"], **unmarked(block)}


def _has_grown(part: dict[str, Any], other: dict[str, Any] | None) -> bool:
    """Whether the user said more in the same message, as Chat Completions puts it."""
    if other is None or part.get("role") != other.get("role") or part.get("role") != "user":
        return False
    before, after = part.get("content"), other.get("content")
    if isinstance(before, str) and isinstance(after, str):
        return after.startswith(before)
    if isinstance(before, str):
        before = [{"type": "text", "text": before}]
    return isinstance(before, list) and isinstance(after, list) and after[: len(before)] == before


def _short(part: object) -> str:
    text = repr(part)
    return text if len(text) <= 200 else f"{text[:200]}…"
