"""Hooks as values: what they are told and what came of them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

__all__ = ["HookEvent", "HookOutcome", "HookPayload", "HookRun", "HookVerdict"]

HookEvent = Literal[
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "PreCompact",
    "Notification",
    "Stop",
    "SubagentStop",
]

HookVerdict = Literal["passed", "denied", "failed", "cancelled"]
"""``failed`` only for strict hooks (``onFailure: block``); others fail as ``passed``."""


class HookPayload(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a hook reads on stdin, without the fields that the runner adds for all.

    ``subject`` is what matchers look at: the tool's name for tool events. ``fields``
    are the event's own, by their wire names (``tool_input``, ``prompt``, ...).
    """

    event: HookEvent
    permission_mode: str
    subject: str = ""
    call_id: str = ""
    fields: dict[str, Any] = {}


class HookRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """One hook that ran. ``digest`` identifies its declaration; ``ms`` is its duration."""

    digest: str
    name: str
    outcome: HookVerdict | Literal["error"]
    messages: tuple[str, ...] = ()
    exit_code: int | None = None
    ms: int = 0


class HookOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """All hooks of one event, merged in declared order.

    Precedence: cancelled > failed > denied > passed. ``permission`` is what a
    PreToolUse hook asks for (``allow`` cannot lift a rule's deny or ask).
    ``updated_input`` is the call's input as the last hook left it.
    ``messages`` are feedback for the model, ``context`` is added to what it
    sees, ``notices`` are for the person. ``stop`` ends the turn, with its reason.
    """

    verdict: HookVerdict = "passed"
    reason: str = ""
    by: str = ""
    permission: Literal["allow", "ask"] | None = None
    updated_input: dict[str, Any] | None = None
    messages: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    stop: str | None = None
    runs: tuple[HookRun, ...] = ()
