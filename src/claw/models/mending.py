"""Requests that a server refuses for one optional field: sent again without it.

Compatible servers know only part of a dialect. What a client lists as optional costs
comfort where it is missing (usage figures, a cheaper prefix, thinking), never an answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from claw.errors import RequestRejected

__all__ = ["mended", "refused_parameter"]

_OTHER_NAME = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}
"""Chat Completions: one limit under two names, of which a server may know only one."""

_WORDS = {"include": r"encrypted[ _]content"}
"""By which an error means a field without naming it."""

_REFUSAL = (
    r"(?i)unknown|unrecogni[sz]ed|unsupported|unexpected|no such|does ?n[o']t support"
    r"|(?:extra|additional) (?:inputs|fields|properties)|not (?:supported|permitted|allowed)"
)
_STATUS = frozenset({400, 404, 422, 501})


def refused_parameter(error: RequestRejected, body: dict[str, Any], optional: Sequence[str]) -> str:
    """The field of ``optional`` that the error is about; empty where it is about another."""
    if type(error) is not RequestRejected or error.status not in _STATUS:
        return ""
    if not re.search(_REFUSAL, error.message):
        return ""
    for name in optional:
        named = rf"(?<!\w)(?:{name}|{_WORDS.get(name, name)})(?!\w)"
        if re.search(named, error.message) and (name in body or name == "cache_control"):
            return name
    return ""


def mended(body: dict[str, Any], refused: Sequence[str]) -> dict[str, Any]:
    """The body without the fields that the server refused; nothing in it is changed in place."""
    for name in refused:
        other = _OTHER_NAME.get(name, name)
        if name == "cache_control":  # stands in blocks and tools
            body = _without(body, name)
        elif name in body:
            limit = {other: body[name]} if other not in refused else {}
            body = {key: value for key, value in body.items() if key != name} | limit
    return body


def _without(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: _without(item, name) for key, item in value.items() if key != name}
    if isinstance(value, list):
        return [_without(item, name) for item in value]
    return value
