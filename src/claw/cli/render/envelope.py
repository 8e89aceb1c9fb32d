"""JSON results as plain objects. Light: an error before any turn needs only this."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

__all__ = ["SCHEMA", "dumps", "envelope", "error_before_turn"]

SCHEMA = 1
NO_USAGE: dict[str, Any] = {
    "input_tokens": 0,
    "output_tokens": 0,
    "cache_read_input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "estimated": False,
}


def envelope(
    *,
    subtype: str,
    is_error: bool,
    stop_reason: str,
    errors: Sequence[dict[str, str]],
    result: str = "",
    model: str = "",
    session_id: str = "",
    iterations: int = 0,
    usage: dict[str, Any] = NO_USAGE,
    session_usage: dict[str, Any] = NO_USAGE,
    cost_usd: float | None = None,
    cost_known: bool = False,
    duration_ms: int = 0,
    duration_api_ms: int = 0,
    tool_uses: Sequence[dict[str, Any]] = (),
    tool_results: Sequence[dict[str, Any]] = (),
    prompt_cache_events: Sequence[dict[str, Any]] = (),
    permission_denials: Sequence[dict[str, Any]] = (),
    auto_compaction: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The object of ``--output-format json``; always all of its keys."""
    return {
        "type": "result",
        "subtype": subtype,
        "is_error": is_error,
        "result": result,
        "model": model,
        "session_id": session_id,
        "iterations": iterations,
        "num_turns": iterations,
        "stop_reason": stop_reason,
        "usage": dict(usage),
        "session_usage": dict(session_usage),
        "cost": {"usd": cost_usd, "known": cost_known},
        "total_cost_usd": cost_usd,
        "duration_ms": duration_ms,
        "duration_api_ms": duration_api_ms,
        "tool_uses": list(tool_uses),
        "tool_results": list(tool_results),
        "prompt_cache_events": list(prompt_cache_events),
        "permission_denials": list(permission_denials),
        "auto_compaction": auto_compaction,
        "errors": list(errors),
        "schema": SCHEMA,
    }


def error_before_turn(
    kind: str, message: str, hint: str = "", *, session_id: str = ""
) -> dict[str, Any]:
    """The envelope of a command that failed before it had a turn."""
    return envelope(
        subtype="error_before_turn",
        is_error=True,
        stop_reason="error",
        errors=[{"kind": kind, "message": message, "hint": hint}],
        session_id=session_id,
    )


def dumps(value: object) -> str:
    """One line of JSON. The stream it goes to writes lone surrogates as escapes."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
