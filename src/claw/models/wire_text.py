"""Rules that every dialect shares for what may stand in a request."""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Callable, Iterable
from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec

from claw.errors import ClawError, RequestRejected
from claw.models.surrogates import mend_all
from claw.types.messages import Document, Image, Text

__all__ = ["BlobsGet", "base64_of", "call_ids", "no_blobs", "texts", "to_bytes", "tool_name"]

BlobsGet = Callable[[str], bytes]

_NAME = re.compile(r"[^a-zA-Z0-9_-]")


def no_blobs(digest: str) -> bytes:
    raise RequestRejected(f"the attachment {digest[:12]} is not stored in this session")


def base64_of(block: Image | Document, blobs_get: BlobsGet) -> str:
    """Raises ``RequestRejected`` where the bytes are not stored any more."""
    try:
        data = blobs_get(block.blob)
    except ClawError as error:
        raise RequestRejected(
            f"an attachment of the conversation cannot be read: {error.message}",
            hint="Start a new session, or go back to before the attachment.",
        ) from error
    return b2a_base64(data, newline=False).decode("ascii")


def texts(content: Iterable[object]) -> list[str]:
    """The texts that are not blank."""
    return [b.text for b in content if isinstance(b, Text) and b.text.strip()]


@lru_cache(maxsize=1024)
def tool_name(name: str) -> str:
    """A name that providers accept in history: letters, digits, ``_``, ``-``, at most 64."""
    return _NAME.sub("_", name)[:64] or "unknown"


def call_ids(limit: int, allowed: re.Pattern[str]) -> Callable[[str], str]:
    """A mapping of call ids to ids that a provider accepts; the same id, the same result.

    Ids that fit ``allowed`` and ``limit`` stay as they are.
    """

    @lru_cache(maxsize=4096)
    def fit(id: str) -> str:
        if len(id) <= limit and allowed.fullmatch(id):
            return id
        return ("call" + sha256(id.encode("utf-8", "replace")).hexdigest())[:limit]

    return fit


def to_bytes(body: dict[str, Any]) -> bytes:
    """A request body as JSON; lone surrogates are replaced."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return msgspec.json.encode(mend_all(body))
