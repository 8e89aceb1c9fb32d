"""Requests to the Responses API; pure.

The server keeps nothing: the whole conversation goes along every time, reasoning in
encrypted form. The dialect has no flag for a failed call: its result begins with
"Error: ". Each message is encoded for itself, so that a longer conversation only adds.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from claw.models.catalog import lookup, same_model
from claw.models.openai_responses.decode import CALL_FIELDS, MESSAGE, PROVIDER
from claw.models.schema import RULES, fit_schema
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
    texts,
    tool_name,
)
from claw.types.messages import (
    AssistantMessage,
    Document,
    Image,
    Message,
    Opaque,
    Text,
    ToolResult,
    ToolUse,
    UserMessage,
)
from claw.types.request import Request
from claw.types.tools import ToolSpec

__all__ = ["encode"]

_SMALLEST_OUTPUT = 16
"""Tokens; the API refuses a lower limit."""

_fit_id = call_ids(64, r"[\x21-\x7e]+")


def encode(
    request: Request,
    *,
    blobs_get: BlobsGet = no_blobs,
    stream: bool = True,
    memo: Memo | None = None,
) -> dict[str, Any]:
    """The body of a request. An attachment that is gone becomes a text that says so.

    ``memo`` is kept from one request of a session to the next.
    """
    memo = memo or Memo()
    sampling = request.sampling
    info = lookup(sampling.model)
    items: list[dict[str, Any]] = []
    memo.begin()
    for message in request.messages:
        items += memo.of(
            message, sampling.model, partial(_items, message, sampling.model, blobs_get)
        )
    body: dict[str, Any] = {"model": sampling.model, "input": items, "store": False}
    if request.system.strip():
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = memo.tools(request.tools, _tool)
        body["parallel_tool_calls"] = True
    if sampling.max_tokens is not None:
        body["max_output_tokens"] = max(sampling.max_tokens, _SMALLEST_OUTPUT)
    if info.thinking or info.window is None:  # models known not to reason refuse the question
        body["include"] = ["reasoning.encrypted_content"]
    if effort := info.effort(sampling.effort):
        body["reasoning"] = {"effort": effort}
    if stream:
        body["stream"] = True
    return body


def _tool(spec: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool_name(spec.name),
        "description": spec.description,
        "parameters": fit_schema(spec.input_schema, RULES["openai"]),
        "strict": False,
    }


def _items(message: Message, model: str, blobs_get: BlobsGet) -> list[dict[str, Any]]:
    if isinstance(message, AssistantMessage):
        return _assistant(message, same_model(message.model, model))
    return _user(message, blobs_get)


def _assistant(message: AssistantMessage, is_own: bool) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    fields = message.provider_metadata.get("calls", {}) if is_own else {}
    own = [
        block.raw
        for block in message.content
        if isinstance(block, Opaque) and block.provider == PROVIDER and is_own
    ]
    call = 0
    last_text = ""  # of the text directly before, the last of ``items``
    for block in message.content:
        before, last_text = last_text, ""
        match block:
            case Text():
                if block.text.strip():
                    items.append(_said([_output_text(block.text)]))
                    last_text = block.text
            case ToolUse():
                items.append(_call(block, fields.get(str(call), {})))
                call += 1
            case Opaque() if block.raw in own:
                if block.raw.get("type") == MESSAGE:
                    if before:
                        items[-1:] = _marked(before, block.raw)
                elif _is_answered(block.raw, own):
                    items.append(dict(block.raw))
    while items and items[-1]["type"] == "reasoning":
        items.pop()  # the API wants the item that it led to after it
    return items


def _said(content: list[dict[str, Any]], phase: str = "") -> dict[str, Any]:
    item: dict[str, Any] = {"type": "message", "role": "assistant", "content": content}
    return {**item, "phase": phase} if phase else item


def _output_text(text: str, annotations: Any = None) -> dict[str, Any]:
    part = {"type": "output_text", "text": text}
    return {**part, "annotations": annotations} if annotations else part


def _marked(text: str, marker: dict[str, Any]) -> list[dict[str, Any]]:
    """Give a message back what it had besides its text, which is the end of ``text``."""
    at = len(text) - sum(part["length"] for part in marker["parts"])
    if at < 0:
        return [_said([_output_text(text)])]
    items = [_said([_output_text(text[:at])])] if text[:at].strip() else []
    content: list[dict[str, Any]] = []
    for part in marker["parts"]:
        piece, at = text[at : at + part["length"]], at + part["length"]
        if piece.strip():
            content.append(_output_text(piece, part["annotations"]))
    return [*items, _said(content, marker["phase"])] if content else items


def _is_answered(raw: dict[str, Any], own: list[dict[str, Any]]) -> bool:
    """Calls for a client's built-in tools, which claw has not got, may not go back alone."""
    kind, id = str(raw.get("type") or ""), raw.get("call_id")
    if not id or not kind.endswith("_call") or raw.get("execution") == "server":
        return True
    return any(r.get("call_id") == id and r.get("type") == f"{kind}_output" for r in own)


def _call(call: ToolUse, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": _fit_id(call.id),
        "name": tool_name(call.name),
        "arguments": arguments_text(call.input),
        **{name: fields[name] for name in CALL_FIELDS if name in fields},
    }


def _user(message: UserMessage, blobs_get: BlobsGet) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    for block in message.content:
        if isinstance(block, ToolResult):
            items.append(
                {
                    "type": "function_call_output",
                    "call_id": _fit_id(block.tool_use_id),
                    "output": _output(block, blobs_get),
                }
            )
        elif not isinstance(block, Text) or block.text.strip():
            parts.append(_part(block, blobs_get))
    if parts:
        items.append({"type": "message", "role": "user", "content": parts})
    return items


def _output(result: ToolResult, blobs_get: BlobsGet) -> str | list[dict[str, Any]]:
    """Plain text where it is only that: small servers know nothing else."""
    media = [_part(b, blobs_get) for b in result.content if not isinstance(b, Text)]
    if not media:
        return result_text(result)
    says = result.is_error or any(texts(result.content))
    return [*([{"type": "input_text", "text": result_text(result)}] if says else []), *media]


def _part(block: Text | Image | Document, blobs_get: BlobsGet) -> dict[str, Any]:
    if isinstance(block, Text):
        return {"type": "input_text", "text": block.text}
    data = bytes_of(block, blobs_get)
    if data is None:
        return {"type": "input_text", "text": LOST}
    url = f"data:{block.media_type};base64,{base64_text(data)}"
    if isinstance(block, Image):
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    return {"type": "input_file", "filename": block.title or "document", "file_data": url}
