"""``TurnSummary`` is folded from the turn's own entries: nothing is counted twice."""

from __future__ import annotations

from collections.abc import Sequence

from claw.types.entries import (
    Compacted,
    DecisionMade,
    KnownEntry,
    RecoveryFailed,
    ReplyReceived,
    Retried,
    ToolFinished,
    TurnEnded,
)
from claw.types.messages import ToolResult
from claw.types.permissions import PermissionDenial
from claw.types.results import AutoCompactionEvent, Cost, TurnSummary
from claw.types.usage import Usage

__all__ = ["summarize"]


def summarize(
    entries: Sequence[KnownEntry], session_usage: Usage, api_seconds: float
) -> TurnSummary:
    """The summary of the turn whose entries these are. What somebody changed right after its
    end may be among them."""
    ended = next(entry for entry in entries if isinstance(entry, TurnEnded))
    replies: list[ReplyReceived] = []
    compactions: list[Compacted] = []
    provisional: list[Compacted] = []
    for entry in entries:
        if isinstance(entry, ReplyReceived) and entry.complete:
            compactions += provisional
            provisional = []
        if isinstance(entry, ReplyReceived) and entry.blocks:
            replies.append(entry)
        elif isinstance(entry, Retried) and replies and replies[-1].step == entry.step:
            replies.pop()  # sampled again: it is not part of the conversation
        elif isinstance(entry, Compacted):
            (provisional if entry.provisional else compactions).append(entry)
        elif isinstance(entry, RecoveryFailed):
            provisional = []
    names = {call.id: call.name for reply in replies for call in reply.message.tool_calls}
    return TurnSummary(
        stop_reason=ended.stop_reason,
        assistant_messages=tuple(reply.message for reply in replies),
        tool_results=tuple(
            ToolResult(e.call_id, e.content, is_error=e.status != "ok")
            for e in entries
            if isinstance(e, ToolFinished)
        ),
        iterations=ended.iterations,
        usage=ended.usage,
        session_usage=session_usage,
        cost=Cost(ended.cost, ended.cost is not None),
        permission_denials=tuple(
            PermissionDenial(names.get(e.call_id, ""), e.call_id, e.reason, e.source)
            for e in entries
            if isinstance(e, DecisionMade) and e.decision == "deny"
        ),
        prompt_cache_events=tuple(
            e.prompt_cache for e in entries if isinstance(e, ReplyReceived) and e.prompt_cache
        ),
        compactions=tuple(
            AutoCompactionEvent(
                c.removed_messages, c.tokens_before, c.tokens_after, c.trigger, c.dropped
            )
            for c in compactions
        ),
        duration_ms=ended.ms,
        duration_api_ms=round(api_seconds * 1000),
        error=ended.error,
    )
