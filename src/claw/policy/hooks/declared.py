"""Hooks as settings declare them, and which of them an event concerns."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from claw.types.hooks import HookEvent, HookPayload
from claw.types.tools import ToolSpec

__all__ = ["HookDeclaration", "OnFailure", "declare", "matcher_problem", "matching", "other_names"]

OnFailure = Literal["warn", "block"]
DEFAULT_TIMEOUT = 60.0
TOOL_EVENTS: frozenset[HookEvent] = frozenset(
    {"PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest"}
)
# These have no subject: their matchers mean nothing, and never did in this ecosystem.
WITHOUT_SUBJECT: frozenset[HookEvent] = frozenset({"UserPromptSubmit", "Stop", "SubagentStop"})
NAMES = r"[\w\-| ,]*"
SHORT = 60


class HookDeclaration(msgspec.Struct, frozen=True):
    """``timeout`` in seconds; ``source`` says where it stands; ``digest`` is of what would run."""

    event: HookEvent
    matcher: str
    command: str
    timeout: float
    on_failure: OnFailure
    source: str
    digest: str

    @property
    def name(self) -> str:
        """The command on one line, shortened."""
        line = " ".join(self.command.split())
        return line if len(line) <= SHORT else f"{line[: SHORT - 3]}..."

    @property
    def label(self) -> str:
        return f"hook `{self.name}` ({self.source})" if self.source else f"hook `{self.name}`"


def declare(
    event: HookEvent,
    command: str,
    *,
    matcher: str = "",
    timeout: float | None = None,
    on_failure: OnFailure = "warn",
    source: str = "",
) -> HookDeclaration:
    seconds = DEFAULT_TIMEOUT if timeout is None else timeout
    identity = msgspec.json.encode([event, matcher, command, seconds, on_failure])
    digest = hashlib.sha256(identity).hexdigest()
    return HookDeclaration(event, matcher, command, seconds, on_failure, source, digest)


def matcher_problem(matcher: str) -> str:
    """What is wrong with a matcher; blank if nothing."""
    if re.fullmatch(NAMES, matcher) or matcher == "*":
        return ""
    try:
        re.compile(matcher)
    except re.error as error:
        return f"`{matcher}` is not a regular expression: {error}"
    return ""


def other_names(specs: Sequence[ToolSpec]) -> dict[str, tuple[str, ...]]:
    """Every name of each tool, by its own name in lower case: matchers may use any."""
    return {spec.name.lower(): (spec.name, *spec.aliases) for spec in specs}


def matching(
    declarations: Iterable[HookDeclaration],
    payload: HookPayload,
    names: Mapping[str, tuple[str, ...]],
) -> list[HookDeclaration]:
    """The hooks of an event in declared order.

    A matcher is empty or ``*`` (all), names with ``|`` between them (whole names), or a
    regular expression found anywhere in the name. Case does not count. One that is no
    regular expression matches nothing, or everything where the hook has to succeed.
    """
    subject = payload.subject
    called = names.get(subject.lower(), (subject,)) if payload.event in TOOL_EVENTS else (subject,)
    return [
        hook
        for hook in declarations
        if hook.event == payload.event
        and (payload.event in WITHOUT_SUBJECT or any(_matches(hook, name) for name in called))
    ]


def _matches(hook: HookDeclaration, name: str) -> bool:
    matcher = hook.matcher.strip()
    if matcher in ("", "*"):
        return True
    if re.fullmatch(NAMES, matcher):
        return name.lower() in {part.strip().lower() for part in re.split(r"[|,]", matcher)}
    try:
        return re.search(matcher, name, re.IGNORECASE) is not None
    except re.error:
        return hook.on_failure == "block"
