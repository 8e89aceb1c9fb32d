"""Requests to the Messages API; pure.

What stands in the body for one message never depends on later ones, except for
the cache breakpoints: on the last tool, on the system prompt, and on the ends of
the last two user messages, so that a session that grows reads its prefix from
the cache each time.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from claw.models.anthropic.decode import CITATIONS, PROVIDER
from claw.models.catalog import ModelInfo, lookup, same_model
from claw.models.schema import RULES, fit_schema
from claw.models.wire_text import (
    LOST,
    BlobsGet,
    Memo,
    base64_text,
    bytes_of,
    call_ids,
    no_blobs,
    tool_name,
)
from claw.types.messages import (
    AssistantMessage,
    Document,
    Image,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    UserMessage,
)
from claw.types.request import Request
from claw.types.tools import ToolSpec

__all__ = ["encode"]

_CACHE = {"type": "ephemeral"}
_NO_OUTPUT = "(no output)"
_fit_id = call_ids(64, r"[a-zA-Z0-9_-]+")

_BUDGETS = {"minimal": 1_024, "low": 4_096, "medium": 12_288, "high": 24_576}
"""Thinking tokens by effort, for models that take a budget; more than high is high."""


def encode(
    request: Request,
    *,
    blobs_get: BlobsGet = no_blobs,
    max_output: int | None = None,
    stream: bool = True,
    memo: Memo | None = None,
) -> dict[str, Any]:
    """The body of a request. An attachment that is gone becomes a text that says so.

    ``max_output`` is the model's own limit in tokens, where it is known better
    than by the catalogue. ``memo`` is kept from one request of a session to the next.
    """
    sampling = request.sampling
    info = lookup(sampling.model)
    memo = memo or Memo()
    messages = _messages(request, blobs_get, memo)
    max_tokens = sampling.max_tokens or min(info.max_tokens, max_output or info.max_tokens)
    body: dict[str, Any] = {"model": sampling.model, "max_tokens": max_tokens}
    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHE}]
    if request.tools:
        *tools, last = memo.tools(request.tools, _tool)
        body["tools"] = [*tools, {**last, "cache_control": _CACHE}]
    body.update(_thinking(sampling.effort, info, max_tokens, messages))
    _mark_tail(messages)
    body["messages"] = messages
    if stream:
        body["stream"] = True
    return body


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {
        "name": tool_name(spec.name),
        "description": spec.description,
        "input_schema": fit_schema(spec.input_schema, RULES["anthropic"]),
    }


def _thinking(
    effort: str, info: ModelInfo, max_tokens: int, messages: list[dict[str, Any]]
) -> dict[str, Any]:
    if effort in {"", "none"}:
        return {}
    if info.thinking == "adaptive":
        level = info.effort(effort)
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": level}}
    budget = min(_BUDGETS.get(effort, _BUDGETS["high"]), max_tokens - 1_024)
    if info.thinking != "budget" or budget < 1_024 or _lost_its_thinking(messages):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _lost_its_thinking(messages: list[dict[str, Any]]) -> bool:
    """In the middle of a tool loop whose reply had no thinking the API refuses to begin any."""
    last = next((m for m in reversed(messages) if m["role"] == "assistant"), None)
    if last is None or messages[-1]["content"][0]["type"] != "tool_result":
        return False
    return not any(b["type"] in {"thinking", "redacted_thinking"} for b in last["content"])


def _messages(request: Request, blobs_get: BlobsGet, memo: Memo) -> list[dict[str, Any]]:
    model = request.sampling.model
    messages: list[dict[str, Any]] = []
    memo.begin()
    for message in request.messages:
        content = memo.of(message, model, partial(_content, message, model, blobs_get))
        role = "user" if isinstance(message, UserMessage) else "assistant"
        if not content:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] = [*messages[-1]["content"], *content]
        else:
            messages.append({"role": role, "content": content})
    return messages


def _content(
    message: UserMessage | AssistantMessage, model: str, blobs_get: BlobsGet
) -> list[dict[str, Any]]:
    if isinstance(message, UserMessage):
        return _user(message, blobs_get)
    return _assistant(message, same_model(message.model, model))


def _user(message: UserMessage, blobs_get: BlobsGet) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, ToolResult):
            result: dict[str, Any] = {
                "type": "tool_result",
                "tool_use_id": _fit_id(block.tool_use_id),
                "content": [e for b in block.content if (e := _said(b, blobs_get))]
                or [{"type": "text", "text": _NO_OUTPUT}],
            }
            if block.is_error:
                result["is_error"] = True
            content.append(result)
        elif encoded := _said(block, blobs_get):
            content.append(encoded)
    return content


def _said(block: Text | Image | Document, blobs_get: BlobsGet) -> dict[str, Any] | None:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text} if block.text.strip() else None
    data = bytes_of(block, blobs_get)
    if data is None:
        return {"type": "text", "text": LOST}
    source = {"type": "base64", "media_type": block.media_type, "data": base64_text(data)}
    if isinstance(block, Image):
        return {"type": "image", "source": source}
    if block.media_type == "text/plain":
        text = data.decode("utf-8", "replace")
        source = {"type": "text", "media_type": "text/plain", "data": text}
    document: dict[str, Any] = {"type": "document", "source": source}
    if block.title:
        document["title"] = block.title
    return document


def _assistant(message: AssistantMessage, same_model: bool) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for block in message.content:
        match block:
            case Text():
                if block.text.strip():
                    content.append({"type": "text", "text": block.text})
            case Thinking():
                if same_model and block.signature.strip():
                    content.append(
                        {
                            "type": "thinking",
                            "thinking": block.text,
                            "signature": block.signature,
                        }
                    )
            case RedactedThinking():
                if same_model and block.data:
                    content.append({"type": "redacted_thinking", "data": block.data})
            case ToolUse():
                content.append(
                    {
                        "type": "tool_use",
                        "id": _fit_id(block.id),
                        "name": tool_name(block.name),
                        "input": block.input,
                    }
                )
            case Opaque(provider=provider) if provider == PROVIDER:
                if block.raw.get("type") == CITATIONS:
                    _cite(content, block.raw)
                elif isinstance(block.raw.get("type"), str):
                    content.append(dict(block.raw))
    while content and content[-1]["type"] in {"thinking", "redacted_thinking"}:
        content.pop()  # the API wants something said after it
    return content


def _cite(content: list[dict[str, Any]], marker: dict[str, Any]) -> None:
    """Give citations back to the text that they stood on."""
    if not content or content[-1]["type"] != "text" or "citations" in content[-1]:
        return
    text, length = content[-1]["text"], marker.get("length", 0)
    before, cited = text[: len(text) - length], text[len(text) - length :]
    content.pop()
    if before.strip():
        content.append({"type": "text", "text": before})
    if cited.strip():
        content.append({"type": "text", "text": cited, "citations": marker["citations"]})


def _mark_tail(messages: list[dict[str, Any]]) -> None:
    marked = 0
    for message in reversed(messages):
        if message["role"] == "user":
            *before, last = message["content"]  # not changed in place: a memo holds them
            message["content"] = [*before, {**last, "cache_control": _CACHE}]
            marked += 1
            if marked == 2:
                return
