"""Scripted events in the words of a dialect: what ``StrictServer`` puts on the wire.

Written from the public API references of Anthropic (Messages) and OpenAI (Chat
Completions, Responses); the vendors' own SDKs read it in the tests. The pieces of a call's input
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

__all__ = [
    "Stream",
    "anthropic_stream",
    "anthropic_whole",
    "chat_stream",
    "chat_whole",
    "responses_stream",
    "responses_whole",
]


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


def responses_stream(events: Sequence[AssistantEvent], number: int, model: str) -> Stream:
    """A Responses stream. Without ``MessageStop`` among the events it has no end."""
    writer = _ResponsesWriter(number, model, _last_usage(events))
    return Stream(tuple(writer.write(event) for event in events), b"")


def responses_whole(events: Sequence[AssistantEvent], number: int, model: str) -> dict[str, Any]:
    """The body of a Responses reply that is not streamed."""
    output: list[dict[str, Any]] = []
    for block in assemble(events).blocks:
        id = f"item_{number}_{len(output)}"
        match block:
            case Text():
                output.append(_responses_message(id, block.text))
            case ToolUse():
                output.append(_responses_call(id, block, _arguments(block), "completed"))
            case Thinking():
                output.append(_responses_reasoning(id, block.text, block.signature))
            case RedactedThinking():
                output.append(_responses_reasoning(id, "", block.data))
            case Opaque():
                output.append(block.raw)
    usage = _last_usage(events) or Usage()
    return _response(number, model, output, _stop_reason(events), usage)


class _ResponsesWriter:
    """Keeps the items that are finished, and the one that is open."""

    def __init__(self, number: int, model: str, usage: Usage | None) -> None:
        self._number = number
        self._model = model
        self._usage = usage
        self._output: list[dict[str, Any]] = []
        self._open = ""
        self._said: list[str] = []
        self._sequence = -1

    def write(self, event: AssistantEvent) -> bytes:
        out = b""
        if self._sequence < 0:
            begun = _response(self._number, self._model, [], None, None)
            for kind in ("response.created", "response.in_progress"):
                out += self._event(kind, response=begun)
        return out + self._body(event)

    def _body(self, event: AssistantEvent) -> bytes:
        match event:
            case TextDelta():
                return self._say(event.text)
            case ThinkingDelta():
                return self._think(event.text)
            case Thinking():
                start = b"" if self._open == "reasoning" else self._think(event.text)
                return start + self._end(event.signature)
            case RedactedThinking():
                return self._end() + self._whole(_responses_reasoning(self._id, "", event.data))
            case ToolUse():
                return self._end() + self._call(event)
            case Opaque():
                return self._end() + self._whole(event.raw)
            case MessageStop():
                return self._end() + self._stop(event)
            case _:
                return b""

    @property
    def _id(self) -> str:
        return f"item_{self._number}_{len(self._output)}"

    def _event(self, kind: str, **fields: Any) -> bytes:
        self._sequence += 1
        return _event(kind, sequence_number=self._sequence, **fields)

    def _of_item(self, kind: str, **fields: Any) -> bytes:
        return self._event(kind, item_id=self._id, output_index=len(self._output), **fields)

    def _added(self, item: dict[str, Any]) -> bytes:
        return self._event("response.output_item.added", output_index=len(self._output), item=item)

    def _whole(self, item: dict[str, Any]) -> bytes:
        return self._added(item) + self._done(item)

    def _done(self, item: dict[str, Any]) -> bytes:
        index = len(self._output)
        self._output.append(item)
        return self._event("response.output_item.done", output_index=index, item=item)

    def _say(self, text: str) -> bytes:
        start = b""
        if self._open != "message":
            item = {**_responses_message(self._id, ""), "status": "in_progress", "content": []}
            start = self._end() + self._added(item)
            self._open = "message"
            start += self._part("content_part.added", "")
        self._said.append(text)
        delta = self._of_item(
            "response.output_text.delta", content_index=0, delta=text, logprobs=[]
        )
        return start + delta

    def _part(self, kind: str, text: str) -> bytes:
        part = _responses_message("", text)["content"][0]
        return self._of_item(f"response.{kind}", content_index=0, part=part)

    def _think(self, text: str) -> bytes:
        start = b""
        if self._open != "reasoning":
            start = self._end() + self._added(_responses_reasoning(self._id, "", ""))
            self._open = "reasoning"
            start += self._summary("part.added", part={"type": "summary_text", "text": ""})
        self._said.append(text)
        return start + self._summary("text.delta", delta=text)

    def _summary(self, kind: str, **fields: Any) -> bytes:
        return self._of_item(f"response.reasoning_summary_{kind}", summary_index=0, **fields)

    def _call(self, call: ToolUse) -> bytes:
        given = _arguments(call)
        out = self._added(_responses_call(self._id, call, "", "in_progress"))
        for piece in _halves(call):
            out += self._of_item("response.function_call_arguments.delta", delta=piece)
        out += self._of_item(
            "response.function_call_arguments.done", name=call.name, arguments=given
        )
        return out + self._done(_responses_call(self._id, call, given, "completed"))

    def _end(self, signature: str = "") -> bytes:
        """Close the item that takes deltas."""
        was, self._open = self._open, ""
        text = "".join(self._said)
        self._said.clear()
        if was == "message":
            return (
                self._of_item("response.output_text.done", content_index=0, text=text, logprobs=[])
                + self._part("content_part.done", text)
                + self._done(_responses_message(self._id, text))
            )
        if was == "reasoning":
            return (
                self._summary("text.done", text=text)
                + self._summary("part.done", part={"type": "summary_text", "text": text})
                + self._done(_responses_reasoning(self._id, text, signature))
            )
        return b""

    def _stop(self, event: MessageStop) -> bytes:
        response = _response(
            self._number, self._model, self._output, event.stop_reason, self._usage
        )
        return self._event(f"response.{response['status']}", response=response)


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


_COMPLETED = frozenset({"end_turn", "stop", "stop_sequence", "tool_use"})
_INCOMPLETE = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}


def _response(
    number: int,
    model: str,
    output: list[dict[str, Any]],
    stop_reason: str | None,
    usage: Usage | None,
) -> dict[str, Any]:
    """A response object; in progress where there is no stop reason yet."""
    details = None
    if stop_reason is None:
        status = "in_progress"
    elif stop_reason in _COMPLETED:
        status = "completed"
    else:
        status, details = "incomplete", {"reason": _INCOMPLETE.get(stop_reason, stop_reason)}
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1700000000,
        "status": status,
        "error": None,
        "incomplete_details": details,
        "instructions": None,
        "model": model,
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None if usage is None else _responses_usage(usage),
    }


def _responses_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.context_tokens - usage.output_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read_input_tokens,
            "cache_write_tokens": usage.cache_creation_input_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.context_tokens,
    }


def _responses_message(id: str, text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        "id": id,
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }


def _responses_reasoning(id: str, text: str, encrypted: str) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": text}] if text else []
    item: dict[str, Any] = {"id": id, "type": "reasoning", "summary": summary}
    return {**item, "encrypted_content": encrypted} if encrypted else item


def _responses_call(id: str, call: ToolUse, arguments: str, status: str) -> dict[str, Any]:
    return {
        "id": id,
        "type": "function_call",
        "status": status,
        "call_id": call.id,
        "name": call.name,
        "arguments": arguments,
    }


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _data(body: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(body)}\n\n".encode()
