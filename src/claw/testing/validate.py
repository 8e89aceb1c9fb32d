"""What a strict provider refuses, as pure functions: a request in, complaints out.

The rules are those that the Messages, Chat Completions and Responses APIs enforce with
a 400, and a few that only some servers behind these APIs do: a client that keeps all of
them works everywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from claw.types.messages import (
    AssistantBlock,
    AssistantMessage,
    Document,
    Image,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    UserBlock,
)
from claw.types.request import Request

__all__ = [
    "thinking_key",
    "validate_anthropic",
    "validate_chat",
    "validate_request",
    "validate_responses",
]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BREAKPOINTS = 4
_SMALLEST_OUTPUT = 16
_LONGEST_CALL_ID = 64


def validate_anthropic(body: Any, sent_thinking: Collection[str] | None = None) -> list[str]:
    """Complaints about the body of a Messages request, each with its place; none is good.

    ``sent_thinking`` holds ``thinking_key`` of every thinking block that the server
    has sent; with None, blocks are not compared.
    """
    if not isinstance(body, dict):
        return ["the body is not an object"]
    found = [*_surrogates(body, ""), *_model(body)]
    if not _is_positive(body.get("max_tokens")):
        found.append("max_tokens: must be an integer of at least 1")
    found += _anthropic_system(body.get("system"))
    found += _tools(body, lambda tool: (tool, "input_schema"))
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return [*found, "messages: at least one message is required"]
    if not isinstance(messages[0], dict) or messages[0].get("role") != "user":
        found.append("messages.0: the first message must be the user's")
    breakpoints = json.dumps(body).count('"cache_control": {')
    if breakpoints > _BREAKPOINTS:
        found.append(f"cache_control: {breakpoints} breakpoints, at most {_BREAKPOINTS}")
    ids: set[str] = set()
    waiting: list[str] = []
    for at, message in enumerate(messages):
        place = f"messages.{at}"
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ("user", "assistant"):
            found.append(f"{place}.role: {role!r} is neither user nor assistant")
            continue
        blocks, complaints = _anthropic_content(message.get("content"), role, place)
        found += complaints
        found += _anthropic_results(blocks, waiting, place)
        waiting = [str(b.get("id")) for b in blocks if b.get("type") == "tool_use"]
        found += _repeated(waiting, ids, place)
        if sent_thinking is not None:
            found += _changed_thinking(blocks, sent_thinking, place)
    if waiting:
        found.append(f"messages: calls without results at the end: {', '.join(waiting)}")
    return found


def validate_chat(body: Any) -> list[str]:
    """Complaints about the body of a Chat Completions request; none is good."""
    if not isinstance(body, dict):
        return ["the body is not an object"]
    found = [*_surrogates(body, ""), *_model(body)]
    for field in ("max_tokens", "max_completion_tokens"):
        if body.get(field) is not None and not _is_positive(body[field]):
            found.append(f"{field}: must be an integer of at least 1")
    if body.get("stream_options") is not None and body.get("stream") is not True:
        found.append("stream_options: only with stream")
    found += _tools(body, lambda tool: (tool.get("function"), "parameters"))
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return [*found, "messages: at least one message is required"]
    started = False
    ids: set[str] = set()
    waiting: list[str] = []
    for at, message in enumerate(messages):
        place = f"messages.{at}"
        role = message.get("role") if isinstance(message, dict) else None
        if role == "tool":
            found += _chat_result(message, waiting, place)
            continue
        if waiting:
            found.append(f"{place}: calls without results before it: {', '.join(waiting)}")
            waiting = []
        if role in ("system", "developer"):
            if started:
                found.append(f"{place}: {role} messages stand at the start")
            found += _chat_content(message.get("content"), place)
        elif role in ("user", "assistant"):
            if not started and role != "user":
                found.append(f"{place}: the first message must be the user's")
            started = True
            if role == "user":
                found += _chat_content(message.get("content"), place)
            else:
                waiting, complaints = _chat_assistant(message, place)
                found += [*complaints, *_repeated(waiting, ids, place)]
        else:
            found.append(f"{place}.role: {role!r} is not known")
    if not started:
        found.append("messages: there is no user message")
    if waiting:
        found.append(f"messages: calls without results at the end: {', '.join(waiting)}")
    return found


def validate_responses(body: Any, sent_thinking: Collection[str] | None = None) -> list[str]:
    """Complaints about the body of a Responses request; none is good.

    The server is one that keeps nothing. ``sent_thinking`` as in ``validate_anthropic``,
    for reasoning in encrypted form.
    """
    if not isinstance(body, dict):
        return ["the body is not an object"]
    found = [*_surrogates(body, ""), *_model(body)]
    limit = body.get("max_output_tokens")
    if limit is not None and not (_is_positive(limit) and limit >= _SMALLEST_OUTPUT):
        found.append(f"max_output_tokens: must be an integer of at least {_SMALLEST_OUTPUT}")
    if body.get("instructions") is not None and _is_blank(body["instructions"]):
        found.append("instructions: blank; leave it out")
    if body.get("previous_response_id") is not None:
        found.append("previous_response_id: nothing is kept; send the whole conversation")
    found += _tools(body, _responses_tool)
    items = body.get("input")
    if isinstance(items, str):
        return found if items.strip() else [*found, "input: empty or blank"]
    if not isinstance(items, list) or not items:
        return [*found, "input: at least one item is required"]
    ids: set[str] = set()
    waiting: list[str] = []
    answering = False
    thought = ""  # the place of reasoning that has led to nothing yet
    for at, item in enumerate(items):
        place = f"input.{at}"
        kind = _responses_kind(item)
        if not kind:
            found.append(f"{place}: not an item")
            continue
        is_models = kind not in ("user", "function_call_output")
        if thought and not is_models:
            found.append(f"{thought}: reasoning without the item that it led to")
        thought = place if kind == "reasoning" else ""
        if kind == "function_call_output":
            found += _responses_result(item, waiting, place)
            answering = bool(waiting)
            continue
        if waiting and (answering or not is_models):
            found.append(f"{place}: calls without results before it: {', '.join(waiting)}")
            waiting, answering = [], False
        if kind == "function_call":
            found += [
                *_responses_call(item, place),
                *_repeated([str(item.get("call_id"))], ids, place),
            ]
            waiting.append(str(item.get("call_id")))
        elif kind == "reasoning":
            found += _responses_reasoning(item, sent_thinking, place)
        elif kind in _PART_KINDS:
            found += _responses_content(item.get("content"), kind, place)
    if thought:
        found.append(f"{thought}: reasoning without the item that it led to")
    if waiting:
        found.append(f"input: calls without results at the end: {', '.join(waiting)}")
    if not any(_responses_kind(item) == "user" for item in items):
        found.append("input: there is no user message")
    return found


def validate_request(request: Request) -> list[str]:
    """Complaints about a request as a value, before any client encodes it.

    The rules of ``validate_anthropic``, except for what every encoder has to mend
    because it comes from a model: blank text in an assistant's message, a call's odd
    name or id, thinking without a signature. ``max_tokens`` may be left to the client.
    """
    body: dict[str, Any] = {
        "model": request.sampling.model or "unnamed",
        "max_tokens": 1 if request.sampling.max_tokens is None else request.sampling.max_tokens,
        "messages": [_message_body(m) for m in request.messages],
        "tools": [
            {"name": t.name, "description": t.description, "input_schema": t.input_schema}
            for t in request.tools
        ],
    }
    if request.system:
        body["system"] = request.system
    renamed = _positions(request.messages)
    for message in body["messages"]:
        for block in message["content"]:
            for field in ("id", "tool_use_id"):
                if field in block:
                    block[field] = renamed.setdefault(block[field], f"unknown_{len(renamed)}")
    return validate_anthropic(body)


def thinking_key(block: dict[str, Any]) -> str:
    """What must come back unchanged of a thinking block or reasoning item on the wire."""
    if block.get("type") == "redacted_thinking":
        return f"redacted:{block.get('data')}"
    if block.get("type") == "reasoning":
        return f"encrypted:{block.get('encrypted_content')}"
    return f"{block.get('signature')}:{block.get('thinking')}"


def _model(body: dict[str, Any]) -> list[str]:
    model = body.get("model")
    return [] if isinstance(model, str) and model.strip() else ["model: a name is required"]


def _is_positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_blank(value: object) -> bool:
    return not isinstance(value, str) or not value.strip()


def _surrogates(value: object, place: str) -> Iterator[str]:
    match value:
        case str():
            if _SURROGATE.search(value):
                yield f"{place}: a lone surrogate"
        case dict():
            for key, item in value.items():
                yield from _surrogates(key, f"{place}.(key)".lstrip("."))
                yield from _surrogates(item, f"{place}.{ascii(key)[1:-1]}".lstrip("."))
        case list():
            for at, item in enumerate(value):
                yield from _surrogates(item, f"{place}.{at}".lstrip("."))
        case _:
            pass


def _tools(
    body: dict[str, Any], unwrap: Callable[[dict[str, Any]], tuple[Any, str]]
) -> Iterator[str]:
    tools = body.get("tools")
    if tools is None:
        return
    if not isinstance(tools, list):
        yield "tools: must be a list"
        return
    names: set[str] = set()
    for at, wrapped in enumerate(tools):
        tool, schema_field = unwrap(wrapped) if isinstance(wrapped, dict) else (None, "")
        if not isinstance(tool, dict):
            yield f"tools.{at}: not a tool"
            continue
        name = tool.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            yield f"tools.{at}.name: {name!r} does not match ^{_NAME.pattern}$"
        elif name in names:
            yield f"tools.{at}.name: {name!r} is there twice"
        else:
            names.add(name)
        if tool.get("type", "custom") != "custom":
            continue  # one of the provider's own, which brings its schema
        schema = tool.get(schema_field)
        if not isinstance(schema, dict) or schema.get("type") != "object":
            yield f"tools.{at}.{schema_field}: must be a JSON Schema of an object"


def _repeated(new: Sequence[str], ids: set[str], place: str) -> Iterator[str]:
    for id in new:
        if id in ids:
            yield f"{place}: the call id {id!r} is used twice"
        ids.add(id)


def _anthropic_system(system: object) -> Iterator[str]:
    match system:
        case None:
            pass
        case str():
            if not system.strip():
                yield "system: blank; leave it out"
        case [_, *_]:
            for at, block in enumerate(system):
                if not isinstance(block, dict) or block.get("type") != "text":
                    yield f"system.{at}: must be a text block"
                elif _is_blank(block.get("text")):
                    yield f"system.{at}: a blank text block"
        case _:
            yield "system: must be a text or a list of text blocks"


_ROLE_OF = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
    "image": "user",
    "document": "user",
}


def _anthropic_content(
    content: object, role: str, place: str
) -> tuple[list[dict[str, Any]], list[str]]:
    if isinstance(content, str):
        return [], [] if content.strip() else [f"{place}.content: empty or blank"]
    if not isinstance(content, list) or not content:
        return [], [f"{place}.content: empty"]
    blocks: list[dict[str, Any]] = []
    found: list[str] = []
    for at, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            found.append(f"{place}.content.{at}: not a block")
            continue
        blocks.append(block)
        belongs = _ROLE_OF.get(block["type"], role)
        if belongs != role:
            found.append(f"{place}.content.{at}: {block['type']} in a message of the {role}")
        found += _anthropic_block(block, f"{place}.content.{at}")
    return blocks, found


def _anthropic_block(block: dict[str, Any], place: str) -> Iterator[str]:
    match block["type"]:
        case "text":
            if _is_blank(block.get("text")):
                yield f"{place}: an empty or blank text block"
        case "tool_use":
            id, name = block.get("id"), block.get("name")
            if not isinstance(id, str) or not _ID.fullmatch(id):
                yield f"{place}.id: {id!r} does not match ^{_ID.pattern}$"
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                yield f"{place}.name: {name!r} does not match ^{_NAME.pattern}$"
            if not isinstance(block.get("input"), dict):
                yield f"{place}.input: must be an object"
        case "thinking":
            if not isinstance(block.get("thinking"), str) or _is_blank(block.get("signature")):
                yield f"{place}: thinking without its text or signature"
        case "redacted_thinking":
            if _is_blank(block.get("data")):
                yield f"{place}: redacted thinking without data"
        case "tool_result":
            yield from _result_content(block.get("content"), place)
        case _:
            pass


def _result_content(content: object, place: str) -> Iterator[str]:
    match content:
        case str():
            if not content.strip():
                yield f"{place}.content: empty or blank"
        case [_, *_]:
            for at, block in enumerate(content):
                if not isinstance(block, dict):
                    yield f"{place}.content.{at}: not a block"
                elif block.get("type") == "text" and _is_blank(block.get("text")):
                    yield f"{place}.content.{at}: an empty or blank text block"
        case _:
            yield f"{place}.content: empty"


def _anthropic_results(
    blocks: Sequence[dict[str, Any]], waiting: Sequence[str], place: str
) -> Iterator[str]:
    """The results of the calls before come first, once each, in the order of the calls."""
    results = [str(b.get("tool_use_id")) for b in blocks if b.get("type") == "tool_result"]
    if results != list(waiting):
        yield f"{place}: results for {results}, but the calls just before are {list(waiting)}"
    if any(block.get("type") != "tool_result" for block in blocks[: len(results)]):
        yield f"{place}: results come before everything else"


def _changed_thinking(
    blocks: Sequence[dict[str, Any]], sent: Collection[str], place: str
) -> Iterator[str]:
    for at, block in enumerate(blocks):
        if block.get("type") not in ("thinking", "redacted_thinking"):
            continue
        if thinking_key(block) not in sent:
            yield f"{place}.content.{at}: a thinking block that is not as it was sent"


def _chat_content(content: object, place: str) -> Iterator[str]:
    match content:
        case str():
            if not content.strip():
                yield f"{place}.content: empty or blank"
        case [_, *_]:
            for at, part in enumerate(content):
                if not isinstance(part, dict) or not isinstance(part.get("type"), str):
                    yield f"{place}.content.{at}: not a content part"
                elif part["type"] == "text" and _is_blank(part.get("text")):
                    yield f"{place}.content.{at}: an empty or blank text part"
        case _:
            yield f"{place}.content: empty"


def _chat_result(message: dict[str, Any], waiting: list[str], place: str) -> Iterator[str]:
    """Takes the answered call from ``waiting``."""
    id = message.get("tool_call_id")
    if not waiting:
        yield f"{place}: a result for {id!r}, but no call waits for one"
    elif id != waiting[0]:
        yield f"{place}: a result for {id!r}, but the next call is {waiting[0]!r}"
    if id in waiting:
        waiting.remove(id)
    yield from _chat_content(message.get("content"), place)


def _chat_assistant(message: dict[str, Any], place: str) -> tuple[list[str], list[str]]:
    """The ids of the calls, and complaints."""
    wanted = message.get("tool_calls")
    found: list[str] = []
    if message.get("content") is not None:
        found += _chat_content(message["content"], place)
    elif wanted is None and not message.get("refusal"):
        found.append(f"{place}.content: empty")
    if wanted is None:
        return [], found
    if not isinstance(wanted, list) or not wanted:
        return [], [*found, f"{place}.tool_calls: empty; leave it out"]
    ids: list[str] = []
    for at, call in enumerate(wanted):
        where = f"{place}.tool_calls.{at}"
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or call.get("type") != "function":
            found.append(f"{where}: not a function call")
            continue
        if _is_blank(call.get("id")):
            found.append(f"{where}.id: empty")
        ids.append(str(call.get("id")))
        name = function.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            found.append(f"{where}.function.name: {name!r} does not match ^{_NAME.pattern}$")
        if not _is_object(function.get("arguments")):
            found.append(f"{where}.function.arguments: not the JSON text of an object")
    return ids, found


def _is_object(arguments: object) -> bool:
    if not isinstance(arguments, str):
        return False
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False


_PART_KINDS = {
    "user": ("input_text", "input_image", "input_file"),
    "assistant": ("output_text", "refusal"),
    "system": ("input_text",),
    "developer": ("input_text",),
}


def _responses_tool(tool: dict[str, Any]) -> tuple[Any, str]:
    if tool.get("type") != "function":
        return {"name": "built_in", **tool}, "parameters"  # one of the provider's own
    return {name: value for name, value in tool.items() if name != "type"}, "parameters"


def _responses_kind(item: object) -> str:
    """The type of an item, and for messages their role; empty where it is none."""
    if not isinstance(item, dict):
        return ""
    kind = item.get("type", "message")
    if kind == "message":
        role = item.get("role")
        return role if isinstance(role, str) and role in _PART_KINDS else ""
    return kind if isinstance(kind, str) else ""


def _responses_result(item: dict[str, Any], waiting: list[str], place: str) -> Iterator[str]:
    """Takes the answered call from ``waiting``."""
    id = item.get("call_id")
    if not waiting:
        yield f"{place}: a result for {id!r}, but no call waits for one"
    elif id != waiting[0]:
        yield f"{place}: a result for {id!r}, but the next call is {waiting[0]!r}"
    if id in waiting:
        waiting.remove(id)
    yield from _responses_content(item.get("output"), "user", place, "output")


def _responses_call(item: dict[str, Any], place: str) -> Iterator[str]:
    id, name = item.get("call_id"), item.get("name")
    if _is_blank(id) or len(str(id)) > _LONGEST_CALL_ID:
        yield f"{place}.call_id: {id!r} is empty or has more than {_LONGEST_CALL_ID} characters"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f"{place}.name: {name!r} does not match ^{_NAME.pattern}$"
    if not _is_object(item.get("arguments")):
        yield f"{place}.arguments: not the JSON text of an object"


def _responses_reasoning(
    item: dict[str, Any], sent: Collection[str] | None, place: str
) -> Iterator[str]:
    if not isinstance(item.get("summary"), list):
        yield f"{place}.summary: must be a list"
    if not item.get("encrypted_content"):
        if not item.get("content"):
            yield f"{place}: reasoning that is neither encrypted nor in the clear"
    elif sent is not None and thinking_key(item) not in sent:
        yield f"{place}: reasoning that is not as it was sent"


def _responses_content(
    content: object, role: str, place: str, field: str = "content"
) -> Iterator[str]:
    match content:
        case str():
            if not content.strip():
                yield f"{place}.{field}: empty or blank"
        case [_, *_]:
            for at, part in enumerate(content):
                if not isinstance(part, dict) or part.get("type") not in _PART_KINDS[role]:
                    yield f"{place}.{field}.{at}: no part of a {role} item"
                elif part["type"].endswith("_text") and _is_blank(part.get("text")):
                    yield f"{place}.{field}.{at}: an empty or blank text part"
        case _:
            yield f"{place}.{field}: empty"


def _positions(messages: Sequence[Any]) -> dict[str, str]:
    """Call ids as a model made them -> ids that no provider refuses, distinct like them."""
    calls = (c for m in messages if isinstance(m, AssistantMessage) for c in m.tool_calls)
    return {call.id: f"id_{at}" for at, call in enumerate(calls)}


def _message_body(message: Any) -> dict[str, Any]:
    assistant = isinstance(message, AssistantMessage)
    content = [body for block in message.content if (body := _block_body(block, assistant))]
    if assistant and not content and message.content:
        # Nothing but what encoders leave out: the message as a whole goes, too.
        content = [{"type": "text", "text": "(left out)"}]
    return {"role": "assistant" if assistant else "user", "content": content}


def _block_body(block: UserBlock | AssistantBlock, assistant: bool) -> dict[str, Any] | None:
    match block:
        case Text():
            if assistant and not block.text.strip():
                return None
            return {"type": "text", "text": block.text}
        case Thinking():
            return None
        case RedactedThinking():
            return {"type": "redacted_thinking", "data": block.data}
        case ToolUse():
            name = block.name if _NAME.fullmatch(block.name) else "renamed"
            return {"type": "tool_use", "id": block.id, "name": name, "input": block.input}
        case ToolResult():
            content = [_block_body(inner, False) for inner in block.content]
            return {"type": "tool_result", "tool_use_id": block.tool_use_id, "content": content}
        case Image() | Document():
            return {"type": type(block).__name__.lower()}
        case Opaque():
            return {"type": "opaque"}
