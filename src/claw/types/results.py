"""What a turn comes to: ``TurnSummary`` and the words for how it ended."""

from __future__ import annotations

from typing import Literal

import msgspec

from claw.types.messages import AssistantMessage, ToolResult, text_of
from claw.types.permissions import PermissionDenial
from claw.types.usage import PromptCacheEvent, Usage

__all__ = [
    "AutoCompactionEvent",
    "Cost",
    "Failure",
    "Restored",
    "StopReason",
    "StoredSession",
    "TurnResult",
    "TurnSummary",
    "final_assistant_text",
    "format_auto_compaction_notice",
]

StopReason = Literal[
    "completed",
    "output_limit",
    "refused",
    "max_turns_reached",
    "max_budget_reached",
    "max_time_reached",
    "no_progress",
    "context_overflow",
    "blocked",
    "permission_denied",
    "interrupted",
    "error",
]


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error as data: what JSON output lists under ``errors``."""

    kind: str
    message: str
    hint: str = ""


class Restored(msgspec.Struct, frozen=True):
    """What a rewind did: ``files`` are the paths put back, ``left`` says why others were not.

    ``undo`` is the entry to go back to for having it undone, None where nothing was changed.
    """

    files: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    undo: int | None = None


class Cost(msgspec.Struct, frozen=True):
    """US dollars; ``known`` is False where a price is missing, and ``usd`` None."""

    usd: float | None = None
    known: bool = False


class AutoCompactionEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    removed_messages: int
    tokens_before: int
    tokens_after: int
    trigger: str
    dropped: tuple[str, ...] = ()


class TurnSummary(msgspec.Struct, frozen=True):
    """One turn, whole: also of a turn that failed, with what there was until then.

    ``usage`` is this turn's sum, ``session_usage`` the session's. ``iterations``
    counts model responses (steps). Durations are in milliseconds;
    ``duration_api_ms`` is the part spent waiting for the model.
    """

    stop_reason: StopReason
    assistant_messages: tuple[AssistantMessage, ...]
    tool_results: tuple[ToolResult, ...]
    iterations: int
    usage: Usage
    session_usage: Usage
    cost: Cost
    permission_denials: tuple[PermissionDenial, ...]
    prompt_cache_events: tuple[PromptCacheEvent, ...]
    compactions: tuple[AutoCompactionEvent, ...]
    duration_ms: int
    duration_api_ms: int
    error: Failure | None

    @property
    def auto_compaction(self) -> AutoCompactionEvent | None:
        """The last compaction of the turn."""
        return self.compactions[-1] if self.compactions else None


class TurnResult(msgspec.Struct, frozen=True, kw_only=True):
    """What ``QueryEngine.submit_message`` comes to.

    ``output`` is the final text, one JSON document with structured output; where the turn
    did not complete, it ends with what was wrong. ``usage`` is the session's sum,
    ``turn_usage`` this turn's. ``matched_commands`` and ``matched_tools`` are names.
    """

    schema: int = 1
    prompt: str
    output: str
    matched_commands: tuple[str, ...] = ()
    matched_tools: tuple[str, ...] = ()
    permission_denials: tuple[PermissionDenial, ...] = ()
    usage: Usage = Usage()
    turn_usage: Usage = Usage()
    stop_reason: StopReason = "completed"
    session_id: str = ""


class StoredSession(msgspec.Struct, frozen=True):
    """A session as ``load_session`` gives it: a view folded from its entries.

    ``messages`` are the prompts, oldest first; ``outputs`` and ``stop_reasons`` have one item
    for each turn, also for one whose prompt a hook blocked. ``input_tokens`` includes what was
    read from or written to a prompt cache.
    """

    session_id: str
    messages: tuple[str, ...]
    outputs: tuple[str, ...]
    stop_reasons: tuple[StopReason, ...]
    permission_denials: tuple[PermissionDenial, ...]
    input_tokens: int
    output_tokens: int


def final_assistant_text(summary: TurnSummary) -> str:
    """The text blocks of the last assistant message, joined; empty where there is none."""
    return text_of(summary.assistant_messages[-1].content) if summary.assistant_messages else ""


def format_auto_compaction_notice(removed_messages: int) -> str:
    return f"[auto-compacted: removed {removed_messages} messages]"
