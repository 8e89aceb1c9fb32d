"""Requests to Chat Completions; pure.

The dialect has no flag for a failed call: its result begins with "Error: ". Nor
has it images in results: they follow in a user message directly after the batch.
Consecutive user messages are one, since many chat templates insist on it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from claw.models.catalog import canonical, lookup, same_model
from claw.models.schema import RULES, Rules, fit_schema
from claw.models.wire_text import (
    LOST,
    BlobsGet,
    Memo,
    arguments_text,
    base64_text,
    bytes_of,
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
from claw.types.tools import ToolSpec

__all__ = ["QUIRKS", "encode"]

_SCHEMA_QUIRKS = {"gemini_schema": "gemini", "moonshot_schema": "moonshot", "llama_schema": "llama"}
QUIRKS = frozenset(
    {"echo_reasoning", "max_completion_tokens", "no_stream_options", "short_ids", *_SCHEMA_QUIRKS}
    | {"assistant_before_user"}
)
"""What a server may need: its reasoning back with the calls that it led to, as
``reasoning_content``; the newer name of the output limit; no question for usage; call
ids of nine letters and digits; schemas in its own words; a word of the assistant between
results and what the user says."""

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
    """The body of a request. An attachment that is gone becomes a text that says so.

    ``memo`` is kept from one request of a session to the next.
    """
    sampling = request.sampling
    memo = memo or Memo()
    body: dict[str, Any] = {
        "model": sampling.model,
        "messages": _messages(request, blobs_get, quirks, memo),
    }
    if request.tools:
        words = next((_SCHEMA_QUIRKS[q] for q in sorted(quirks) if q in _SCHEMA_QUIRKS), "openai")
        body["tools"] = memo.tools(request.tools, partial(_tool, rules=RULES[words]))
    if sampling.max_tokens is not None:
        newer = "max_completion_tokens" in quirks
        body["max_completion_tokens" if newer else "max_tokens"] = sampling.max_tokens
    if effort := _effort(request, quirks):
        body["reasoning_effort"] = effort
    if stream:
        body["stream"] = True
        if "no_stream_options" not in quirks:
            body["stream_options"] = {"include_usage": True}
    return body


def _effort(request: Request, quirks: frozenset[str]) -> str:
    """OpenAI's later models do not think here where tools are offered.

    "Function tools with reasoning_effort are not supported": the first of them want it
    left out, those that think unasked want "none".
    """
    info, name = lookup(request.sampling.model), canonical(request.sampling.model)
    if request.tools and "max_completion_tokens" in quirks:
        if name.startswith(("gpt-5.2", "gpt-5.3", "gpt-5.4", "gpt-5.5")):
            return ""
        if name.startswith(("gpt-5.6", "gpt-6")):
            return "none"
    return info.effort(request.sampling.effort)


def _tool(spec: ToolSpec, rules: Rules) -> dict[str, Any]:
    function = {
        "name": tool_name(spec.name),
        "description": spec.description,
        "parameters": fit_schema(spec.input_schema, rules),
    }
    return {"type": "function", "function": function}


def _messages(
    request: Request, blobs_get: BlobsGet, quirks: frozenset[str], memo: Memo
) -> list[dict[str, Any]]:
    fit_id = _short_id if "short_ids" in quirks else _any_id
    model = request.sampling.model
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
    return _with_words_between(messages) if "assistant_before_user" in quirks else messages


def _with_words_between(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mistral: "Unexpected role 'user' after role 'tool'"."""
    spaced: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "user" and spaced and spaced[-1]["role"] == "tool":
            spaced.append({"role": "assistant", "content": "OK."})
        spaced.append(message)
    return spaced


def _said(
    message: AssistantMessage, model: str, fit_id: Callable[[str], str], *, echo: bool
) -> dict[str, Any] | None:
    is_own = same_model(message.model, model)
    said = _assistant(message, is_own, fit_id)
    if said is not None and is_own and echo:
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
    message: AssistantMessage, is_own: bool, fit_id: Callable[[str], str]
) -> dict[str, Any] | None:
    text = "".join(b.text for b in message.content if isinstance(b, Text))
    calls = [b for b in message.content if isinstance(b, ToolUse)]
    if not text.strip() and not calls:
        return None
    encoded: dict[str, Any] = {"role": "assistant", "content": text if text.strip() else None}
    if calls:
        extras = message.provider_metadata.get("extra_content", {}) if is_own else {}
        encoded["tool_calls"] = [
            _call(call, fit_id, extras.get(str(n))) for n, call in enumerate(calls)
        ]
    if is_own and (details := message.provider_metadata.get("reasoning_details")):
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
    data = bytes_of(block, blobs_get)
    if data is None:
        return {"type": "text", "text": LOST}
    url = f"data:{block.media_type};base64,{base64_text(data)}"
    if isinstance(block, Image):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": block.title or "document", "file_data": url}}
