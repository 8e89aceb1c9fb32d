"""Permission modes, rules and decisions."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = [
    "MODES",
    "MODE_ALIASES",
    "Answer",
    "Behavior",
    "Decision",
    "PermissionDenial",
    "PermissionMode",
    "Question",
    "Rule",
]

PermissionMode = Literal["default", "acceptEdits", "plan", "read-only", "bypassPermissions"]
MODES: tuple[PermissionMode, ...] = (
    "default",
    "acceptEdits",
    "plan",
    "read-only",
    "bypassPermissions",
)
MODE_ALIASES: dict[str, PermissionMode] = {
    "prompt": "default",
    "workspace-write": "acceptEdits",
    "danger-full-access": "bypassPermissions",
    "full-access": "bypassPermissions",
}
Behavior = Literal["allow", "ask", "deny"]


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """``Tool`` or ``Tool(content)``. ``source`` says where it stands, for people."""

    behavior: Behavior
    tool: str
    content: str = ""
    source: str = ""

    def __str__(self) -> str:
        return f"{self.tool}({self.content})" if self.content else self.tool


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """What policy says of a call; ``source`` is the rule, hook or mode that decided.

    ``by_default`` marks an ask that no rule made: a hook's allow may lift that one only.
    """

    behavior: Behavior
    reason: str
    source: str
    by_default: bool = False


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person is asked. ``detail`` is what will run, whole: a command, a diff.

    ``offered`` is the rule that "yes, for this session" would add, None where no
    rule fits.
    """

    call_id: str
    tool: str
    detail: str
    reason: str
    offered: Rule | None = None


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """``reason`` is for the model. ``rule`` was accepted for the rest of the session.

    ``input`` replaces the call's input (``edit`` at the prompt); it is judged again.
    ``asked`` is False where there was nobody to ask.
    """

    allow: bool
    reason: str = ""
    rule: Rule | None = None
    input: dict[str, object] | None = None
    asked: bool = True


class PermissionDenial(msgspec.Struct, frozen=True):
    tool_name: str
    tool_use_id: str
    reason: str
    source: str
    status: Literal["denied", "would-deny"] = "denied"
