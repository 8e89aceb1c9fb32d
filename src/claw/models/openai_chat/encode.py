"""Requests to Chat Completions; pure.

The dialect has no flag for a failed call: its result begins with "Error: ". Nor
has it images in results: they follow in a user message directly after the batch.
Consecutive user messages are one, since many chat templates insist on it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from claw.models.catalog import canonical, lookup
from claw.models.wire_text import (
    BlobsGet,
    Memo,
    arguments_text,
    base64_of,
    call_ids,
    no_blobs,
    result_text,
    tool_name,
)
from claw.types.messages import (
    AssistantMessage,
    Document,
    Image,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    UserMessage,
)
from claw.types.request import Request

__all__ = ["QUIRKS", "encode"]

QUIRKS = frozenset({"echo_reasoning", "max_completion_tokens", "no_stream_options", "short_ids"})
"""What a server may need: its reasoning back with the calls that it led to, as
``reasoning_content``; the newer name of the output limit; no question for usage; call
ids of nine letters and digits."""

_any_id = call_ids(40, r"[\x21-\x7e]+")
_short_id = call_ids(9, r"[a-zA-Z0-9]{9}")


def encode(
    request: Request,
    *,
    blobs_get: BlobsGet = no_blobs,
    quirks: frozenset[str] = frozenset(),
    stream: bool = True,
    memo: Memo | None = None,
) -> dict[str, Any]:
    """The body of a request. Raises ``RequestRejected`` for attachments that are gone.

    ``memo`` is kept from one request of a session to the next.
    """
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": sampling.model,
        "messages": _messages(request, blobs_get, quirks, memo or Memo()),
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": t.name,
                    "description": t.description,
                    "parameters": t.input_schema,
                },
            }
            for t in request.tools
        ]
    if sampling.max_tokens is not None:
        newer = "max_completion_tokens" in quirks
        body["max_completion_tokens" if newer else "max_tokens"] = sampling.max_tokens
    if sampling.effort and lookup(sampling.model).thinking == "effort":
        body["reasoning_effort"] = sampling.effort
    if stream:
        body["stream"] = True
        if "no_stream_options" not in quirks:
            body["stream_options"] = {"include_usage": True}
    return body


def _messages(
    request: Request, blobs_get: BlobsGet, quirks: frozenset[str], memo: Memo
) -> list[dict[str, Any]]:
    fit_id = _short_id if "short_ids" in quirks else _any_id
    model = canonical(request.sampling.model)
    messages: list[dict[str, Any]] = []
    if request.system.strip():
        messages.append({"role": "system", "content": request.system})
    memo.begin()
    for message in request.messages:
        if isinstance(message, AssistantMessage):
            echo = "echo_reasoning" in quirks
            said = memo.of(message, model, partial(_said, message, model, fit_id, echo=echo))
            if said is not None:
                messages.append(said)
        elif _is_plain_results(message):
            messages += memo.of(message, model, partial(_results, message, fit_id))
        else:
            _user(message, messages, blobs_get, fit_id)
    return messages


def _said(
    message: AssistantMessage, model: str, fit_id: Callable[[str], str], *, echo: bool
) -> dict[str, Any] | None:
    same_model = canonical(message.model) == model
    said = _assistant(message, same_model, fit_id)
    if said is not None and same_model and echo:
        _echo(message, said)
    return said


def _is_plain_results(message: UserMessage) -> bool:
    return all(
        isinstance(block, ToolResult) and all(isinstance(b, Text) for b in block.content)
        for block in message.content
    )


def _results(message: UserMessage, fit_id: Callable[[str], str]) -> list[dict[str, Any]]:
    return [_result(b, fit_id) for b in message.content if isinstance(b, ToolResult)]


def _result(block: ToolResult, fit_id: Callable[[str], str]) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": fit_id(block.tool_use_id),
        "content": result_text(block),
    }


def _assistant(
    message: AssistantMessage, same_model: bool, fit_id: Callable[[str], str]
) -> dict[str, Any] | None:
    text = "".join(b.text for b in message.content if isinstance(b, Text))
    calls = [b for b in message.content if isinstance(b, ToolUse)]
    if not text.strip() and not calls:
        return None
    encoded: dict[str, Any] = {"role": "assistant", "content": text if text.strip() else None}
    if calls:
        extras = message.provider_metadata.get("extra_content", {}) if same_model else {}
        encoded["tool_calls"] = [
            _call(call, fit_id, extras.get(str(n))) for n, call in enumerate(calls)
        ]
    if same_model and (details := message.provider_metadata.get("reasoning_details")):
        encoded["reasoning_details"] = details
    return encoded


def _echo(message: AssistantMessage, encoded: dict[str, Any]) -> None:
    thought = "".join(b.text for b in message.content if isinstance(b, Thinking))
    if thought and "tool_calls" in encoded:
        encoded["reasoning_content"] = thought


def _call(call: ToolUse, fit_id: Callable[[str], str], extra: Any) -> dict[str, Any]:
    encoded: dict[str, Any] = {
        "id": fit_id(call.id),
        "type": "function",
        "function": {"name": tool_name(call.name), "arguments": arguments_text(call.input)},
    }
    if extra:
        encoded["extra_content"] = extra
    return encoded


def _user(
    message: UserMessage,
    messages: list[dict[str, Any]],
    blobs_get: BlobsGet,
    fit_id: Callable[[str], str],
) -> None:
    parts: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, ToolResult):
            messages.append(_result(block, fit_id))
            media = [_part(b, blobs_get) for b in block.content if not isinstance(b, Text)]
            if media:
                parts.append({"type": "text", "text": f"Output of {fit_id(block.tool_use_id)}:"})
                parts.extend(media)
        elif not isinstance(block, Text):
            parts.append(_part(block, blobs_get))
        elif block.text.strip():
            parts.append({"type": "text", "text": block.text})
    if not parts:
        return
    if messages and messages[-1]["role"] == "user":
        before = messages[-1]["content"]
        if isinstance(before, str):
            before = [{"type": "text", "text": before}]
        messages[-1]["content"] = _content([*before, *parts])
    else:
        messages.append({"role": "user", "content": _content(parts)})


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Plain text where it is only that: small servers know nothing else."""
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _part(block: Text | Image | Document, blobs_get: BlobsGet) -> dict[str, Any]:
    assert not isinstance(block, Text)
    url = f"data:{block.media_type};base64,{base64_of(block, blobs_get)}"
    if isinstance(block, Image):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": block.title or "document", "file_data": url}}
