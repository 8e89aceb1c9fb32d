"""Rules that every dialect shares for what may stand in a request."""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Callable, Iterable
from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import replace

from claw.errors import ClawError, RequestRejected
from claw.types.events import AssistantEvent
from claw.types.messages import Document, Image, Text, ToolResult, ToolUse
from claw.types.surrogates import mend_all
from claw.types.tools import ToolSpec

__all__ = [
    "LOST",
    "BlobsGet",
    "Memo",
    "arguments_text",
    "base64_text",
    "bytes_of",
    "call_ids",
    "no_blobs",
    "own_names",
    "result_text",
    "texts",
    "to_bytes",
    "tool_name",
    "with_own_name",
]

_NO_OUTPUT = "(no output)"
_ERROR = "Error: "

BlobsGet = Callable[[str], bytes]


def no_blobs(digest: str) -> bytes:
    raise RequestRejected(f"the attachment {digest[:12]} is not stored in this session")


LOST = "[an attachment was here; its file is lost]"
"""What is sent in its place: a session must not end because a file of it is gone."""


def bytes_of(block: Image | Document, blobs_get: BlobsGet) -> bytes | None:
    """None where the bytes are not stored any more."""
    try:
        return blobs_get(block.blob)
    except ClawError:
        return None


def base64_text(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode("ascii")


def texts(content: Iterable[object]) -> list[str]:
    """The texts that are not blank."""
    return [b.text for b in content if isinstance(b, Text) and b.text.strip()]


def result_text(result: ToolResult) -> str:
    """A result's text for dialects without a flag for failed calls: "Error: " leads it."""
    text = "\n".join(texts(result.content)) or _NO_OUTPUT
    if result.is_error and not text.lower().startswith("error"):
        return _ERROR + text
    return text


def arguments_text(input: dict[str, Any]) -> str:
    """A call's input as JSON; lone surrogates are replaced."""
    return to_bytes(input).decode()


@lru_cache(maxsize=1024)
def tool_name(name: str) -> str:
    """A name that providers accept: letters, digits, ``_``, ``-``, at most 64 characters.

    Different names stay different: one that had to be changed ends in a digest of it.
    """
    if re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
        return name
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{re.sub(r'[^a-zA-Z0-9_-]', '_', name)[:55] or 'unknown'}_{digest}"


def own_names(tools: Iterable[ToolSpec]) -> dict[str, str]:
    """Names on the wire -> the tools' own, for those that differ."""
    return {wire: t.name for t in tools if (wire := tool_name(t.name)) != t.name}


def with_own_name(event: AssistantEvent, names: dict[str, str]) -> AssistantEvent:
    """The event with the tool's own name, if it is a call; ``names`` are ``own_names``."""
    if isinstance(event, ToolUse) and event.name in names:
        return replace(event, name=names[event.name])
    return event


def call_ids(limit: int, allowed: str) -> Callable[[str], str]:
    """A mapping of call ids to ids that a provider accepts; the same id, the same result.

    Ids that fit the pattern ``allowed`` and ``limit`` stay as they are.
    """

    @lru_cache(maxsize=4096)
    def fit(id: str) -> str:
        if len(id) <= limit and re.fullmatch(allowed, id):
            return id
        return ("call" + sha256(id.encode("utf-8", "replace")).hexdigest())[:limit]

    return fit


def to_bytes(body: dict[str, Any]) -> bytes:
    """A JSON object, such as a request body; lone surrogates are replaced."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return msgspec.json.encode(mend_all(body))


class Memo:
    """What the last request's tools and messages became: the next one mostly extends it.

    Both are recognised by identity. Nobody may change what comes out.
    """

    def __init__(self) -> None:
        self._last: dict[int, tuple[object, str, Any]] = {}
        self._now: dict[int, tuple[object, str, Any]] = {}
        self._tools: tuple[tuple[ToolSpec, ...], list[dict[str, Any]]] = ((), [])

    def begin(self) -> None:
        """A new request: what the last one did not hold is forgotten."""
        self._last, self._now = self._now, {}

    def of(self, message: object, model: str, make: Callable[[], Any]) -> Any:
        """What ``make`` gives, made once for a message as ``model`` gets to see it."""
        held = self._last.get(id(message))
        if held is None or held[0] is not message or held[1] != model:
            held = (message, model, make())
        self._now[id(message)] = held
        return held[2]

    def tools(
        self, tools: tuple[ToolSpec, ...], make: Callable[[ToolSpec], dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """What ``make`` gives for each, made once as long as they stay the same."""
        if self._tools[0] is not tools:
            self._tools = (tools, [make(tool) for tool in tools])
        return list(self._tools[1])
