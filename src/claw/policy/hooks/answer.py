"""What one run of a hook says, read from its exit code, stdout and stderr. Pure.

======================  ====================================================
exit 0                  the JSON object on stdout is honoured, if there is one
exit 2                  blocks; stderr is the reason
anything else           a failure: a warning, or a block where the hook is strict
======================  ====================================================

Beyond that table, one rule: what *narrows* (a deny, an ask, ``continue: false``) counts at
every exit code and in JSON of any quality; what *widens* or changes (an allow, an updated
input, added context) counts only at exit 0 in one faultless object.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from claw.types.hooks import HookEvent

__all__ = ["HookAnswer", "read_answer"]

LONGEST_TEXT = 10_000  # characters of a reason, a context, a message
PREVIEW = 200
CONTEXT_EVENTS: frozenset[HookEvent] = frozenset({"UserPromptSubmit", "SessionStart"})
# These ask before something happens, so ``continue: false`` also keeps it from happening.
BEFORE_EVENTS: frozenset[HookEvent] = frozenset(
    {"UserPromptSubmit", "PreToolUse", "PermissionRequest", "PreCompact"}
)
# Patterns, compiled when a hook has spoken.
SAID_DENY = r'(?i)"permissionDecision"\s*:\s*"deny"|"decision"\s*:\s*"(?:block|deny)"'
OBJECT_BEGINS = r"(?m)^[ \t]*\{"
SAID_ANYTHING = r'"(?:hookSpecificOutput|decision|continue)"\s*:'
SAID_STOP = r'"continue"\s*:\s*false'
SAID_REASON = r'"(?:permissionDecisionReason|reason|stopReason)"\s*:\s*("(?:[^"\\]|\\.)*")'


class HookAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """``failure`` says what went wrong with the hook itself; blank if nothing did.

    ``stop`` ends the turn with its reason. ``feedback`` is for the model, ``notice``
    for the person.
    """

    denied: bool = False
    reason: str = ""
    permission: Literal["allow", "ask"] | None = None
    updated_input: dict[str, Any] | None = None
    context: str = ""
    feedback: str = ""
    notice: str = ""
    stop: str | None = None
    failure: str = ""


class _Malformed(Exception):
    """stdout wants to be JSON and is not one faultless object."""


def read_answer(event: HookEvent, exit_code: int, stdout: str, stderr: str) -> HookAnswer:
    text = stdout.removeprefix("\ufeff").strip()
    said: dict[str, Any] | None = None
    try:
        said = _object(text)
        answer = HookAnswer() if said is None else _said(event, said)
    except _Malformed as error:
        answer = _salvaged(event, text, f"its output is not JSON that can be used: {error}")
    if exit_code == 0:
        if answer.failure:
            return _only_narrowing(answer)
        if said is None and event in CONTEXT_EVENTS:
            return HookAnswer(context=_clip(text))
        return answer
    narrowed = _only_narrowing(answer)
    complaint = _clip(stderr.strip())
    if exit_code == 2:
        reason = complaint or answer.reason or "it exited with code 2 and gave no reason"
        return msgspec.structs.replace(narrowed, denied=True, reason=reason, failure="")
    return msgspec.structs.replace(narrowed, failure=_how_it_failed(exit_code, complaint))


def _how_it_failed(exit_code: int, complaint: str) -> str:
    if exit_code < 0:
        how = f"it was ended by signal {-exit_code}"
    elif exit_code in (126, 127):
        how = f"it could not start (exit code {exit_code})"
    else:
        how = f"it exited with code {exit_code}"
    return f"{how}: {complaint[:PREVIEW]}" if complaint else how


# -- reading JSON --------------------------------------------------------------


def _object(text: str) -> dict[str, Any] | None:
    """The object that stdout is; None for plain text."""
    if not text.startswith(("{", "[", '"')):
        if re.search(OBJECT_BEGINS, text) and re.search(SAID_ANYTHING, text):
            raise _Malformed(f"text before the object: {text[:PREVIEW]}")
        return None
    import json  # knows repeated keys; only for a hook that answered in JSON

    try:
        value = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except _Malformed:
        raise
    except (ValueError, RecursionError) as error:
        if text.startswith("{"):
            raise _Malformed(f"{error}: {text[:PREVIEW]}") from None
        return None
    if not isinstance(value, dict):
        raise _Malformed(f"not an object: {text[:PREVIEW]}")
    return value


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Malformed("a key stands twice in one object")
    return value


def _no_constant(name: str) -> Any:
    raise _Malformed(f"{name} is not JSON")


def _salvaged(event: HookEvent, text: str, failure: str) -> HookAnswer:
    """A deny or a stop that can still be made out in broken JSON."""
    stop = re.search(SAID_STOP, text) is not None
    denied = re.search(SAID_DENY, text) is not None or (stop and event in BEFORE_EVENTS)
    quoted = re.search(SAID_REASON, text)
    reason = _unquoted(quoted[1]) if quoted else ""
    return HookAnswer(
        denied=denied,
        reason=reason or ("its output says so" if denied else ""),
        stop=(reason or "a hook stopped the turn") if stop else None,
        failure=failure,
    )


def _unquoted(literal: str) -> str:
    import json

    try:
        return _clip(str(json.loads(literal, strict=False)))
    except ValueError:
        return _clip(literal[1:-1])


# -- what the object says ------------------------------------------------------


def _said(event: HookEvent, said: dict[str, Any]) -> HookAnswer:
    faults: list[str] = []

    def field(source: dict[str, Any], name: str, kind: type) -> Any:
        value = source.get(name)
        if value is None or isinstance(value, kind):
            return value
        faults.append(f"`{name}` is not of type {JSON_NAMES[kind]}")
        return None

    specific = field(said, "hookSpecificOutput", dict) or {}
    decision = (field(said, "decision", str) or "").lower()
    wish = (field(specific, "permissionDecision", str) or "").lower()
    reason = _clip(
        field(specific, "permissionDecisionReason", str) or field(said, "reason", str) or ""
    )
    going_on = field(said, "continue", bool)
    stop = None
    if going_on is False:
        stop = _clip(field(said, "stopReason", str) or reason) or "a hook stopped the turn"
    if decision not in ("", "approve", "allow", "block", "deny", "ask"):
        faults.append(f"`decision` is {decision!r}, not approve or block")
    if wish not in ("", "allow", "deny", "ask"):
        faults.append(f"`permissionDecision` is {wish!r}, not allow, deny or ask")
    denied = (
        decision in ("block", "deny")
        or wish == "deny"
        or (stop is not None and event in BEFORE_EVENTS)
    )
    permission: Literal["allow", "ask"] | None = None
    if "ask" in (decision, wish):
        permission = "ask"
    elif wish == "allow" or decision in ("approve", "allow"):
        permission = "allow"
    answer = HookAnswer(
        denied=denied,
        reason=reason or stop or ("its output says so" if denied else ""),
        permission=permission,
        updated_input=field(specific, "updatedInput", dict),
        context=_clip(field(specific, "additionalContext", str) or ""),
        feedback=reason if not denied and permission is None else "",
        notice=_clip(field(said, "systemMessage", str) or ""),
        stop=stop,
    )
    field(said, "suppressOutput", bool)  # known, and nothing to do: JSON output is never shown
    if faults:
        failure = f"its output cannot be used: {'; '.join(faults)}"
        return msgspec.structs.replace(answer, failure=failure)
    return answer


JSON_NAMES: dict[type, str] = {str: "string", bool: "boolean", dict: "object"}


def _only_narrowing(answer: HookAnswer) -> HookAnswer:
    return HookAnswer(
        denied=answer.denied,
        reason=answer.reason,
        permission="ask" if answer.permission == "ask" else None,
        notice=answer.notice,
        stop=answer.stop,
        failure=answer.failure,
    )


def _clip(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}... ({len(text) - LONGEST_TEXT} more characters)"
