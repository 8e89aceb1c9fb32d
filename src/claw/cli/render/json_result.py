"""A ``TurnSummary`` as the JSON result."""

from __future__ import annotations

from typing import Any

import msgspec

from claw.cli.render.envelope import envelope
from claw.cli.render.outcome import failure, subtype
from claw.types.messages import ToolResult, text_of
from claw.types.results import (
    AutoCompactionEvent,
    TurnSummary,
    final_assistant_text,
    format_auto_compaction_notice,
)
from claw.types.usage import Usage

__all__ = ["compact_result", "json_result", "usage_object"]


def json_result(summary: TurnSummary, *, model: str, session_id: str) -> dict[str, Any]:
    """The whole result."""
    calls = [call for message in summary.assistant_messages for call in message.tool_calls]
    names = {call.id: call.name for call in calls}
    return envelope(
        subtype=subtype(summary),
        is_error=summary.stop_reason != "completed",
        stop_reason=summary.stop_reason,
        errors=_errors(summary),
        result=final_assistant_text(summary),
        model=model,
        session_id=session_id,
        iterations=summary.iterations,
        usage=usage_object(summary.usage),
        session_usage=usage_object(summary.session_usage),
        cost_usd=summary.cost.usd,
        cost_known=summary.cost.known,
        duration_ms=summary.duration_ms,
        duration_api_ms=summary.duration_api_ms,
        tool_uses=[{"id": call.id, "name": call.name, "input": call.input} for call in calls],
        tool_results=[_tool_result(result, names) for result in summary.tool_results],
        prompt_cache_events=[msgspec.to_builtins(event) for event in summary.prompt_cache_events],
        permission_denials=[msgspec.to_builtins(denial) for denial in summary.permission_denials],
        auto_compaction=_compaction(summary.auto_compaction),
    )


def compact_result(summary: TurnSummary, *, model: str, session_id: str) -> dict[str, Any]:
    """The result of ``--compact``."""
    return {
        "result": final_assistant_text(summary),
        "compact": True,
        "is_error": summary.stop_reason != "completed",
        "errors": _errors(summary),
        "model": model,
        "usage": usage_object(summary.usage),
        "session_id": session_id,
    }


def usage_object(usage: Usage) -> dict[str, Any]:
    """With every field, zeros too."""
    return {name: getattr(usage, name) for name in Usage.__struct_fields__}


def _errors(summary: TurnSummary) -> list[dict[str, str]]:
    problem = failure(summary)
    if problem is None:
        return []
    return [{"kind": problem.kind, "message": problem.message, "hint": problem.hint}]


def _tool_result(result: ToolResult, names: dict[str, str]) -> dict[str, Any]:
    return {
        "tool_use_id": result.tool_use_id,
        "tool_name": names.get(result.tool_use_id, ""),
        "output": text_of(result.content),
        "is_error": result.is_error,
    }


def _compaction(event: AutoCompactionEvent | None) -> dict[str, Any] | None:
    if event is None:
        return None
    return {
        "removed_messages": event.removed_messages,
        "tokens_before": event.tokens_before,
        "tokens_after": event.tokens_after,
        "notice": format_auto_compaction_notice(event.removed_messages),
    }
