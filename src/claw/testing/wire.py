"""Scripted events in the words of a dialect: what ``StrictServer`` puts on the wire.

Written from the public API references of Anthropic (Messages) and OpenAI (Chat
Completions); the vendors' own SDKs read it in the tests. The pieces of a call's input
go out together with the finished call, which knows id and name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from claw.types.events import AssistantEvent, MessageStop, TextDelta, ThinkingDelta
from claw.types.messages import Opaque, RedactedThinking, Text, Thinking, ToolUse
from claw.types.reply import assemble
from claw.types.usage import Usage

__all__ = ["Stream", "anthropic_stream", "anthropic_whole", "chat_stream", "chat_whole"]


@dataclass(frozen=True)
class Stream:
    """Server-sent events: the bytes for each event of the script, and those at the end."""

    per_event: tuple[bytes, ...]
    end: bytes


def anthropic_stream(
    events: Sequence[AssistantEvent], number: int, model: str, input_tokens: int
) -> Stream:
    """A Messages stream. Without ``MessageStop`` among the events it has no end."""
    writer = _AnthropicWriter(number, model, _last_usage(events) or Usage(input_tokens))
    per_event = tuple(writer.write(event) for event in events)
    return Stream(per_event, b"")


def anthropic_whole(events: Sequence[AssistantEvent], number: int, model: str) -> dict[str, Any]:
    """The body of a Messages reply that is not streamed."""
    content: list[dict[str, Any]] = []
    for block in assemble(events).blocks:
        match block:
            case Text():
                content.append({"type": "text", "text": block.text})
            case ToolUse():
                content.append(_tool_use(block) | {"input": block.input})
            case Thinking():
                content.append(
                    {"type": "thinking", "thinking": block.text, "signature": block.signature}
                )
            case RedactedThinking():
                content.append({"type": "redacted_thinking", "data": block.data})
            case Opaque():
                content.append(block.raw)
    usage = _last_usage(events) or Usage()
    return {
        **_anthropic_head(number, model),
        "content": content,
        "stop_reason": _stop_reason(events),
        "usage": {**_anthropic_input(usage), "output_tokens": usage.output_tokens},
    }


def chat_stream(
    events: Sequence[AssistantEvent], number: int, model: str, with_usage: bool
) -> Stream:
    """A Chat Completions stream; ``with_usage`` adds the last chunk with the figures."""
    head = _chat_head(number, model, "chat.completion.chunk")
    per_event: list[bytes] = []
    finished = False
    index = -1
    for at, event in enumerate(events):
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}] if at == 0 else []
        finish = None
        match event:
            case TextDelta():
                deltas.append({"content": event.text})
            case ThinkingDelta():
                deltas.append({"reasoning_content": event.text})
            case ToolUse():
                index += 1
                deltas += _chat_call(index, event)
            case MessageStop():
                deltas.append({})
                finish, finished = _finish_reason(event.stop_reason), True
            case _:
                pass
        choices = (
            {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            for delta in deltas
        )
        per_event.append(b"".join(_data({**head, "choices": [choice]}) for choice in choices))
    if not finished:
        return Stream(tuple(per_event), b"")
    usage = _last_usage(events)
    last = b""
    if with_usage and usage is not None:
        last = _data({**head, "choices": [], "usage": _chat_usage(usage)})
    return Stream(tuple(per_event), last + b"data: [DONE]\n\n")


def chat_whole(events: Sequence[AssistantEvent], number: int, model: str) -> dict[str, Any]:
    """The body of a Chat Completions reply that is not streamed."""
    reply = assemble(events)
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _arguments(call)},
            }
            for call in reply.tool_calls
        ]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _finish_reason(reply.stop_reason),
    }
    usage = _chat_usage(_last_usage(events) or Usage())
    return {**_chat_head(number, model, "chat.completion"), "choices": [choice], "usage": usage}


class _AnthropicWriter:
    """Keeps track of which content block is open."""

    def __init__(self, number: int, model: str, usage: Usage) -> None:
        self._head = _anthropic_head(number, model)
        self._usage = usage
        self._index = -1
        self._open = ""
        self._started = False

    def write(self, event: AssistantEvent) -> bytes:
        out = b""
        if not self._started:
            self._started = True
            usage = {**_anthropic_input(self._usage), "output_tokens": 1}
            message = {**self._head, "content": [], "stop_reason": None, "usage": usage}
            out = _event("message_start", message=message) + _event("ping")
        return out + self._body(event)

    def _body(self, event: AssistantEvent) -> bytes:
        match event:
            case TextDelta():
                start = self._begin("text", {"type": "text", "text": ""})
                return start + self._delta("text_delta", text=event.text)
            case ThinkingDelta():
                return self._think(event.text)
            case Thinking():
                start = b"" if self._open == "thinking" else self._think(event.text)
                return (
                    start + self._delta("signature_delta", signature=event.signature) + self._end()
                )
            case ToolUse():
                start = self._begin("", _tool_use(event) | {"input": {}})
                deltas = (
                    self._delta("input_json_delta", partial_json=part)
                    for part in ("", *_halves(event))
                )
                return start + b"".join(deltas) + self._end()
            case RedactedThinking():
                block = {"type": "redacted_thinking", "data": event.data}
                return self._begin("", block) + self._end()
            case Opaque():
                return self._begin("", event.raw) + self._end()
            case MessageStop():
                return self._end() + self._stop(event)
            case _:
                return b""

    def _think(self, text: str) -> bytes:
        start = self._begin("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        return start + self._delta("thinking_delta", thinking=text)

    def _begin(self, kind: str, block: dict[str, Any]) -> bytes:
        """Open a block, unless one of this kind, which takes more deltas, is open."""
        if kind and self._open == kind:
            return b""
        closed = self._end()
        self._index += 1
        self._open = kind or "whole"
        return closed + _event("content_block_start", index=self._index, content_block=block)

    def _delta(self, kind: str, **fields: str) -> bytes:
        return _event("content_block_delta", index=self._index, delta={"type": kind, **fields})

    def _end(self) -> bytes:
        if not self._open:
            return b""
        self._open = ""
        return _event("content_block_stop", index=self._index)

    def _stop(self, event: MessageStop) -> bytes:
        delta = {"stop_reason": event.stop_reason, "stop_sequence": None}
        usage = {"output_tokens": self._usage.output_tokens}
        return _event("message_delta", delta=delta, usage=usage) + _event("message_stop")


def _last_usage(events: Sequence[AssistantEvent]) -> Usage | None:
    return next((event for event in reversed(events) if isinstance(event, Usage)), None)


def _stop_reason(events: Sequence[AssistantEvent]) -> str:
    return next((e.stop_reason for e in events if isinstance(e, MessageStop)), "")


def _arguments(call: ToolUse) -> str:
    return json.dumps(call.input) if call.raw_input is None else call.raw_input


def _halves(call: ToolUse) -> tuple[str, str]:
    given = _arguments(call)
    return given[: len(given) // 2], given[len(given) // 2 :]


def _tool_use(call: ToolUse) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name}


def _anthropic_head(number: int, model: str) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "stop_sequence": None,
    }


def _anthropic_input(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
    }


def _chat_head(number: int, model: str, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 1700000000, "model": model}


def _chat_usage(usage: Usage) -> dict[str, Any]:
    """OpenAI's ``prompt_tokens`` include what the cache gave."""
    prompt = usage.context_tokens - usage.output_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.context_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_input_tokens},
    }


def _chat_call(index: int, call: ToolUse) -> list[dict[str, Any]]:
    """Name and id first, then the arguments in two pieces."""
    function = {"name": call.name, "arguments": ""}
    head = {"index": index, "id": call.id, "type": "function", "function": function}
    pieces = ({"index": index, "function": {"arguments": part}} for part in _halves(call))
    return [{"tool_calls": [piece]} for piece in (head, *pieces)]


_FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}


def _finish_reason(stop_reason: str) -> str:
    return _FINISH_REASONS.get(stop_reason, stop_reason)


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _data(body: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(body)}\n\n".encode()
