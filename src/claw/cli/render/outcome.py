"""How a turn ended: in words, as JSON's ``subtype``, and as an exit code."""

from __future__ import annotations

from claw.types.results import Failure, StopReason, TurnSummary

__all__ = ["exit_code", "failure", "subtype"]

_GO_ON = "Go on with `claw --continue`"
_TABLE: dict[StopReason, tuple[str, int, str, str]] = {
    # stop reason: subtype, exit code, message, hint
    "completed": ("success", 0, "", ""),
    "output_limit": (
        "error_output_limit",
        3,
        "the answer was cut off by the output limit",
        f"{_GO_ON}.",
    ),
    "refused": ("error_refused", 1, "the model refused to answer", ""),
    "max_turns_reached": (
        "error_max_turns",
        3,
        "the limit of steps was reached",
        f"{_GO_ON}, or raise `--max-turns`.",
    ),
    "max_budget_reached": (
        "error_max_budget",
        3,
        "the budget is spent",
        f"{_GO_ON}, or raise `--max-budget-usd` or `--max-budget-tokens`.",
    ),
    "max_time_reached": (
        "error_max_time",
        3,
        "the time is up",
        f"{_GO_ON}, or raise `--max-time`.",
    ),
    "no_progress": (
        "error_no_progress",
        3,
        "the model repeats the same calls with the same results",
        f"{_GO_ON} and tell it what to do differently.",
    ),
    "context_overflow": (
        "error_during_execution",
        1,
        "the conversation does not fit the model's context window",
        "Start a new session.",
    ),
    "blocked": ("error_blocked", 1, "a hook ended the turn", ""),
    "permission_denied": (
        "error_permission",
        4,
        "a call was not permitted",
        "Allow it with `--allowedTools` or another `--permission-mode`.",
    ),
    "interrupted": ("error_interrupted", 130, "interrupted", ""),
    "error": ("error_during_execution", 1, "the turn failed", ""),
}


def subtype(summary: TurnSummary) -> str:
    return _TABLE[summary.stop_reason][0]


def exit_code(summary: TurnSummary) -> int:
    """130 for an interrupt; whoever knows the signal says it better."""
    return _TABLE[summary.stop_reason][1]


def failure(summary: TurnSummary) -> Failure | None:
    """What went wrong and what to do about it, None for a completed turn."""
    if summary.stop_reason == "completed":
        return None
    _, _, message, hint = _TABLE[summary.stop_reason]
    if summary.error is None:
        return Failure(summary.stop_reason, message, hint)
    return Failure(summary.error.kind, summary.error.message or message, summary.error.hint or hint)
