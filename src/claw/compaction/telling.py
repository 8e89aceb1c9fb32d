"""Calls and results in a few words: for stubs, digests and the model that summarises. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from claw.types.messages import (
    AssistantMessage,
    Document,
    Image,
    Message,
    ResultBlock,
    Text,
    ToolResult,
    ToolUse,
    UserBlock,
    UserMessage,
    text_of,
)

__all__ = ["Tokens", "call_line", "calls_of", "clipped", "one_line", "said", "told"]

Tokens = Callable[[str], int]
"""Estimates the tokens of a text."""

_MAIN = ("file_path", "path", "command", "pattern", "query", "url", "description", "prompt")
LONGEST_ARGUMENT = 120  # characters
LONGEST_RESULT = 2_000  # characters of one that the summarising model reads


def calls_of(messages: tuple[Message, ...]) -> dict[str, ToolUse]:
    """The calls in messages by their ids."""
    return {
        call.id: call
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
    }


def call_line(call: ToolUse) -> str:
    """``Bash: pytest -q``, as a person would say it."""
    main = next((call.input[key] for key in _MAIN if isinstance(call.input.get(key), str)), "")
    if not main:
        plain = ((k, v) for k, v in call.input.items() if isinstance(v, str | int | float))
        main = ", ".join(f"{key}={value}" for key, value in plain)
    return f"{call.name}: {one_line(main, LONGEST_ARGUMENT)}" if main else call.name


def one_line(text: str, most: int) -> str:
    """The text on one line of at most ``most`` characters."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 3]}..."


def clipped(text: str, most: int, tokens: Tokens) -> str:
    """Its beginning and its end, within about ``most`` tokens; says what is missing."""
    size = tokens(text)
    if size <= most:
        return text
    kept = max(0, len(text) * most // size)
    head, tail = kept * 2 // 3, kept // 3
    left_out = len(text) - head - tail
    return f"{text[:head]}[... {left_out} characters left out ...]{text[len(text) - tail :]}"


def said(content: tuple[UserBlock | ResultBlock, ...]) -> str:
    """Blocks as text; what is no text is named."""
    parts = []
    for block in content:
        match block:
            case Text():
                parts.append(block.text)
            case Image():
                parts.append(f"[an image, {block.media_type}]")
            case Document():
                parts.append(f"[a document, {block.title or block.media_type}]")
            case ToolResult():
                parts.append(said(block.content))
    return "\n".join(parts)


def told(messages: tuple[Message, ...]) -> Iterator[str]:
    """Messages as a record that a model can read: a piece for each thing that happened."""
    for message in messages:
        if isinstance(message, UserMessage):
            for block in message.content:
                if isinstance(block, ToolResult):
                    kind = "Result, an error" if block.is_error else "Result"
                    yield f"{kind}:\n{_middle_out(said(block.content))}"
                else:
                    yield f"User:\n{said((block,))}"
            continue
        if text := text_of(message.content).strip():
            yield f"Assistant:\n{text}"
        for call in message.tool_calls:
            yield f"Call of {call.name}:\n{_middle_out(repr(call.input))}"


def _middle_out(text: str) -> str:
    if len(text) <= LONGEST_RESULT:
        return text
    half = LONGEST_RESULT // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[... {left_out} characters left out ...]\n{text[-half:]}"
