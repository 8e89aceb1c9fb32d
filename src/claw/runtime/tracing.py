"""Tracer events: the turn as monitoring tools name it.

Attach a tracer with ``ConversationRuntime.listen``.
"""

from __future__ import annotations

from typing import Any

from claw.types.entries import (
    Event,
    ReplyReceived,
    ToolFinished,
    ToolIntended,
    TurnEnded,
    TurnStarted,
)

__all__ = ["trace_event"]


def trace_event(event: Event) -> tuple[str, dict[str, Any]] | None:
    """The tracer's name for an event and its fields; None for what is not traced."""
    match event:
        case TurnStarted():
            return "turn_started", {"turn": event.turn, "origin": event.origin}
        case ReplyReceived():
            return "assistant_iteration_completed", {
                "step": event.step,
                "model": event.model,
                "stop_reason": event.stop_reason,
                "input_tokens": event.usage.input_tokens,
                "output_tokens": event.usage.output_tokens,
                "request_id": event.request_id,
            }
        case ToolIntended():
            return "tool_started", {"call_id": event.call_id, "name": event.name}
        case ToolFinished():
            return "tool_finished", {
                "call_id": event.call_id,
                "status": event.status,
                "ms": event.ms,
            }
        case TurnEnded():
            name = "turn_failed" if event.error is not None else "turn_completed"
            return name, {
                "turn": event.turn,
                "stop_reason": event.stop_reason,
                "iterations": event.iterations,
                "ms": event.ms,
            }
        case _:
            return None
