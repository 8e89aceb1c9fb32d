"""Recorded exchanges of model servers, and what a reply says in one shape for every reader."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from claw.errors import ModelError
from claw.models.decode import decode
from claw.models.tool_input import parse_input
from claw.types.messages import Opaque, RedactedThinking, Thinking
from claw.types.reply import Reply

SHARED = Path(os.environ.get("CLAW_SHARED") or Path(__file__).parents[3] / "shared")
CASES = SHARED / "cases"
DIALECTS = {
    "anthropic-messages": "anthropic",
    "openai-chat": "openai-chat",
    "openai-responses": "openai-responses",
}

NEEDS_CORPUS = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CASES.is_dir(), reason=f"no outside corpora at {SHARED}"),
]


class Case(msgspec.Struct, frozen=True):
    """One exchange. ``expected`` is what the recorder's reader made of ``body``."""

    name: str
    dialect: str
    status: int
    headers: dict[str, str]
    body: bytes
    features: tuple[str, ...]
    expected: dict[str, Any]
    lenient: dict[str, Any] | None
    derived_from: str = ""

    @property
    def fails(self) -> bool:
        """The exchange ends in an error, whoever reads it."""
        if self.lenient is not None:  # an error after the reply's own end changes nothing
            return bool(self.lenient["stream_error"]) and not self.lenient["stop_reason"]
        return not self.expected["ok"]


@cache
def cases(folder: str) -> tuple[Case, ...]:
    """All exchanges of the three dialects beneath a folder of the corpora."""
    found = []
    for path in sorted((CASES / folder).rglob("*.json")):
        case = json.loads(path.read_bytes())
        if case["api"] in DIALECTS:
            response = case["response"]
            found.append(
                Case(
                    f"{path.parent.name}/{path.stem}",
                    DIALECTS[case["api"]],
                    response["status"],
                    response["headers"],
                    response["body_text"].encode(),
                    tuple(case["features"]),
                    case["expected"],
                    case.get("expected_lenient"),
                    case.get("derived_from", ""),
                )
            )
    return tuple(found)


class Failure(msgspec.Struct, frozen=True):
    kind: str
    advice: str
    message: str

    @classmethod
    def of(cls, error: ModelError) -> Failure:
        return cls(error.kind, error.advice, error.message)


def outcome(case: Case, chunks: list[bytes]) -> Reply | Failure:
    try:
        return decode(case.dialect, chunks, status=case.status, headers=case.headers)
    except ModelError as error:
        return Failure.of(error)


CHUNKINGS = ("one byte", "seven bytes", "inside characters", "inside line ends")


def chunked(body: bytes, how: str) -> list[bytes]:
    match how:
        case "one byte":
            return [body[i : i + 1] for i in range(len(body))]
        case "seven bytes":
            return [body[i : i + 7] for i in range(0, len(body), 7)]
        case "inside characters":
            cuts = [i for i in range(1, len(body)) if body[i] & 0xC0 == 0x80]
        case _:  # before every LF: inside CRLF, and between the line ends of a blank line
            cuts = [i for i in range(1, len(body)) if body[i] == 0x0A]
    return [body[a:b] for a, b in pairwise([0, *cuts, len(body)])]


def chunkings(body: bytes) -> Iterator[list[bytes]]:
    return (chunked(body, how) for how in CHUNKINGS)


class Said(msgspec.Struct, frozen=True):
    """What a reply says, whoever read it.

    ``signatures`` are of thinking, redacted and encrypted reasoning, in order. ``usage``
    is input, output, read from and written to the cache, each token once; None where
    the server reported nothing. ``others`` are the server's own blocks and what it
    notes to a text: citations, annotations.
    """

    text: str = ""
    thinking: str = ""
    signatures: tuple[str, ...] = ()
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    stop: str = ""
    usage: tuple[int, int, int, int] | None = None
    others: tuple[Any, ...] = ()

    def differences(self, other: Said) -> dict[str, tuple[Any, Any]]:
        """By the name of the field."""
        mine, its = msgspec.structs.asdict(self), msgspec.structs.asdict(other)
        return {name: (mine[name], its[name]) for name in mine if mine[name] != its[name]}


SEALED = frozenset({"encrypted_content", "fingerprint"})
"""Fields that servers encrypt anew for every event in which they stand."""


def filled(value: Any) -> Any:
    """JSON as any reader has it: without nulls, seals, and names that Python reserves."""
    match value:
        case dict():
            kept = {name: v for name, v in value.items() if v is not None and name not in SEALED}
            return {name.removesuffix("_"): filled(v) for name, v in kept.items()}
        case list():
            return [filled(item) for item in value]
        case _:
            return value


def ours(reply: Reply) -> Said:
    signatures: list[str] = []
    others: list[Any] = []
    for block in reply.blocks:
        match block:
            case Thinking(signature=signature) if signature:
                signatures.append(signature)
            case RedactedThinking(data=data):
                signatures.append(data)
            case Opaque(raw={"type": "reasoning", "encrypted_content": str(encrypted)}):
                signatures.append(encrypted)
            case Opaque(raw={"type": "reasoning"}):
                pass
            case Opaque(raw={"citations": list(citations), "length": _}):
                others.extend(filled(citations))
            case Opaque(raw={"type": "claw_message", "parts": list(parts)}):
                others.extend(filled([note for part in parts for note in part["annotations"]]))
            case Opaque(raw=raw):
                others.append(filled(raw))
    usage = reply.usage
    figures = (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_input_tokens,
        usage.cache_creation_input_tokens,
    )
    return Said(
        reply.text,
        reply.thinking,
        tuple(signatures),
        tuple((call.id, call.name, call.input) for call in reply.tool_calls),
        reply.stop_reason,
        None if usage.estimated or not any(figures) else figures,
        tuple(others),
    )


def anthropic_said(message: dict[str, Any]) -> Said:
    """A message of the Messages API as its SDK dumps it."""
    blocks = message["content"]
    signatures = [
        block.get("signature") or block.get("data")
        for block in blocks
        if block["type"] in {"thinking", "redacted_thinking"}
    ]
    others: list[Any] = []
    for block in blocks:
        if block["type"] == "text":
            others.extend(filled(block.get("citations") or []))
        elif block["type"] not in {"thinking", "redacted_thinking", "tool_use"}:
            others.append(filled(block))
    usage = message["usage"]
    figures = (
        usage["input_tokens"] or 0,
        usage["output_tokens"] or 0,
        usage.get("cache_read_input_tokens") or 0,
        usage.get("cache_creation_input_tokens") or 0,
    )
    return Said(
        "".join(block["text"] for block in blocks if block["type"] == "text"),
        "".join(block["thinking"] for block in blocks if block["type"] == "thinking"),
        tuple(filter(None, signatures)),
        tuple((b["id"], b["name"], b["input"]) for b in blocks if b["type"] == "tool_use"),
        message["stop_reason"] or "",
        figures if any(figures) else None,
        tuple(others),
    )


NO_ID = "call"
"""What a call without an id is called by."""

CHAT_STOPS = {
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}


def chat_stop(reason: str | None, calls: object, refusal: object) -> str:
    """Calls make a reply go on whatever the server names it, and a refusal is one."""
    if refusal:
        return "refusal"
    if calls and reason in {None, "", "stop"}:
        return "tool_use"
    return CHAT_STOPS.get(reason or "stop", reason or "stop")


def openai_figures(usage: dict[str, Any] | None) -> tuple[int, int, int, int] | None:
    """OpenAI's input includes what the cache gave and took."""
    if not usage:
        return None
    sent = usage.get("prompt_tokens", usage.get("input_tokens")) or 0
    written = usage.get("completion_tokens", usage.get("output_tokens")) or 0
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    read = details.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or 0
    made = details.get("cache_write_tokens") or 0
    return (max(0, sent - read - made), written, read, made) if sent or written else None


def reasoning_text(item: dict[str, Any]) -> str:
    """What an item of reasoning says in the clear."""
    return "\n".join(part["text"] for part in item.get("content") or item.get("summary") or ())


def responses_said(response: dict[str, Any]) -> Said:
    """A response of the Responses API as its SDK dumps it."""
    items = response["output"]
    calls = [
        (item["call_id"], item["name"], parse_input(item.get("arguments") or item.get("input"))[0])
        for item in items
        if item["type"] in {"function_call", "custom_tool_call"}
    ]
    parts = [part for item in items if item["type"] == "message" for part in item["content"]]
    reasoning = [item for item in items if item["type"] == "reasoning"]
    others: list[Any] = []
    for item in items:
        if item["type"] == "message":
            notes = [note for p in item["content"] for note in p.get("annotations") or ()]
            others.extend(filled(notes))
        elif item["type"] not in {"reasoning", "function_call", "custom_tool_call"}:
            others.append(filled(item))
    details = response.get("incomplete_details")
    stop = {"completed": "stop", "complete": "stop"}.get(response["status"], response["status"])
    if details:
        stop = {"max_output_tokens": "max_tokens"}.get(details["reason"], details["reason"])
    elif calls:
        stop = "tool_use"
    elif any(part["type"] == "refusal" for part in parts):
        stop = "refusal"
    return Said(
        "".join(part.get("text") or part.get("refusal") or "" for part in parts),
        "".join(map(reasoning_text, reasoning)),
        tuple(i["encrypted_content"] for i in reasoning if i.get("encrypted_content")),
        tuple(calls),
        stop,
        openai_figures(response.get("usage")),
        tuple(others),
    )


def sealed(stream: bytes) -> tuple[str, ...]:
    """Encrypted reasoning as each item's own end has it, which is what clients send back.

    Servers encrypt an item anew for every event in which it stands.
    """
    found = []
    for line in stream.splitlines():
        if line.startswith(b"data:") and b'"response.output_item.done"' in line:
            item = json.loads(line[5:])["item"]
            if item.get("type") == "reasoning" and item.get("encrypted_content"):
                found.append(item["encrypted_content"])
    return tuple(found)


def called(id: str | None, call: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    function = call.get("function") or call["custom"]
    text = function["arguments"] if "arguments" in function else function["input"]
    return id or NO_ID, function["name"], parse_input(text)[0]


def chat_said(completion: dict[str, Any]) -> Said:
    """A completion of Chat Completions as its SDK dumps it: what its first choice says."""
    choices = completion["choices"] or [{"message": {}, "finish_reason": None}]
    message = choices[0].get("message") or {}
    content = message.get("content") or ()
    parts: Any = [{"text": content}] if isinstance(content, str) else content
    thoughts = [piece["text"] for part in parts for piece in part.get("thinking") or ()]
    for detail in message.get("reasoning_details") or ():
        thoughts.append(detail.get("text") or detail.get("summary") or "")
    reasoning = message.get("reasoning_content") or message.get("reasoning") or "".join(thoughts)
    old = message.get("function_call")
    calls = [called(call["id"], call) for call in message.get("tool_calls") or ()]
    calls += [called("", {"function": old})] if old and old["name"] else []
    refusal = message.get("refusal") or ""
    return Said(
        "".join(part.get("text") or "" for part in parts) or refusal,
        reasoning,
        (),
        tuple(calls),
        chat_stop(choices[0]["finish_reason"], calls, refusal),
        openai_figures(completion.get("usage")),
    )


def expected_chat(expected: dict[str, Any]) -> Said:
    calls = [(c["id"] or NO_ID, c["name"], c["input"]) for c in expected["tool_calls"]]
    old = expected.get("function_call")
    if old and old["name"]:
        calls.append((NO_ID, old["name"], json.loads(old["arguments"])))
    refusal = expected.get("refusal") or ""
    reasoning = (expected.get(name) for name in ("reasoning", "reasoning_content"))
    usage = expected["usage"]
    return Said(
        expected["text"] or refusal,
        next(filter(None, reasoning), ""),
        (),
        tuple(calls),
        chat_stop(expected["stop_reason"], calls, refusal),
        openai_figures(usage and usage["raw"]),
    )


def expected(case: Case) -> Said:
    """What a reader of the case has to find, by the recorder's own reading."""
    match case.dialect:
        case "anthropic":
            return anthropic_said(case.expected["final"])
        case "openai-responses":
            said = responses_said(case.expected["final"])
            return msgspec.structs.replace(said, signatures=sealed(case.body) or said.signatures)
        case _:
            return expected_chat(case.lenient or case.expected)
