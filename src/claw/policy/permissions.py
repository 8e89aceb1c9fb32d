"""``ModePolicy``: what a call may do, by rules first and the permission mode second.

1. A deny rule that holds decides, in every mode, wherever it stands.
2. What the mode forbids outright, and a protected file, is denied: no rule lifts that.
3. An ask rule that holds makes the call ask.
4. The mode allows, or asks; an allow rule turns its asking into a yes, in ``default``
   and ``acceptEdits``.

A call has several effects: the strictest answer counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from claw.policy.rules import could_hide, covers, is_plain_command, keeps_unread, strikes
from claw.types.effects import Execute, Facts, Observed, ReadPath, Remember, WritePath
from claw.types.permissions import Behavior, Decision, PermissionMode, Rule
from claw.types.tools import ToolSpec

__all__ = ["ModePolicy"]

STRICTNESS: dict[Behavior, int] = {"allow": 0, "ask": 1, "deny": 2}
NARROW: frozenset[PermissionMode] = frozenset({"plan", "read-only"})


class ModePolicy:
    """Implements ``PermissionPolicy`` for the rules of all layers of settings."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self.rules = tuple(rules)

    def judge(
        self, spec: ToolSpec, facts: Facts, mode: PermissionMode, added: Sequence[Rule]
    ) -> Decision:
        rules = (*self.rules, *added)
        denied = _strike("deny", rules, spec, facts)
        if denied is not None:
            return denied
        by_mode = [
            _lifted(_by_mode(spec, seen, mode), spec, seen, mode, rules)
            for seen in facts.observed or _assumed(spec)
        ]
        strictest = max(by_mode, key=lambda decision: STRICTNESS[decision.behavior])
        if strictest.behavior == "deny":
            return strictest
        return _strike("ask", rules, spec, facts) or _hidden(rules, spec, facts) or strictest

    def hides(self, path: str) -> bool:
        """Claims that searches must leave this file out; relative to the workspace or absolute."""
        return keeps_unread(self.rules, path)

    def offer(self, spec: ToolSpec, facts: Facts) -> Rule | None:
        """Exactly this command, or exactly this file: a yes to one thing is no yes to others."""
        contents = {_offered_content(seen) for seen in facts.observed}
        if len(contents) > 1 or "" in contents:
            return None
        return Rule("allow", spec.name, next(iter(contents), ""), "this session")


# -- rules ---------------------------------------------------------------------


def _origin(rule: Rule) -> str:
    return f"{rule} ({rule.source})" if rule.source else str(rule)


def _strike(
    behavior: Behavior, rules: Iterable[Rule], spec: ToolSpec, facts: Facts
) -> Decision | None:
    for rule in rules:
        if rule.behavior == behavior and strikes(rule, spec, facts.observed):
            verb = "forbids this" if behavior == "deny" else "wants to be asked"
            return Decision(behavior, f"the {behavior} rule `{rule}` {verb}", _origin(rule))
    return None


def _hidden(rules: Iterable[Rule], spec: ToolSpec, facts: Facts) -> Decision | None:
    fences = [rule for rule in rules if rule.behavior != "allow"]
    rule = could_hide(fences, spec, facts.observed)
    if rule is None:
        return None
    return Decision(
        "ask",
        f"the command names what it runs only when it runs, so the {rule.behavior} rule "
        f"`{rule}` cannot be checked",
        _origin(rule),
    )


def _lifted(
    decision: Decision, spec: ToolSpec, seen: Observed, mode: PermissionMode, rules: Iterable[Rule]
) -> Decision:
    """An allow rule in place of the mode's asking; never in a mode that only reads."""
    if decision.behavior != "ask" or mode in NARROW:
        return decision
    for rule in rules:
        if rule.behavior == "allow" and covers(rule, spec, seen):
            return Decision("allow", f"the allow rule `{rule}`", _origin(rule))
    return decision


# -- modes ---------------------------------------------------------------------


def _by_mode(spec: ToolSpec, seen: Observed, mode: PermissionMode) -> Decision:
    match seen.effect:
        case Remember():
            return _allow(mode, "touches no file and runs nothing")
        case ReadPath(path):
            return _reading(spec, path, seen, mode)
        case WritePath(path):
            return _writing(spec, path, seen, mode)
        case Execute():
            return _executing(spec, mode)


def _assumed(spec: ToolSpec) -> tuple[Observed]:
    """The effect of a call that names none: it may do anything, unless it only reads."""
    return (Observed(Remember() if spec.read_only else Execute("")),)


def _reading(spec: ToolSpec, path: str, seen: Observed, mode: PermissionMode) -> Decision:
    if mode == "bypassPermissions":
        return _allow(mode, "this mode asks nobody")
    if not seen.inside:
        return _ask(mode, f"`{spec.name}` would read outside the workspace: {_brief(path)}")
    if seen.private:
        return _ask(mode, f"`{spec.name}` would read a file that may hold secrets: {_brief(path)}")
    return _allow(mode, "reads inside the workspace")


def _writing(spec: ToolSpec, path: str, seen: Observed, mode: PermissionMode) -> Decision:
    if mode in NARROW:
        return _deny(
            mode,
            f"`{spec.name}` requires workspace-write permission (acceptEdits); "
            f"the session is in {mode} mode",
        )
    if seen.protected:
        reason = f"{_brief(path)} is protected against file tools in every mode: {seen.protected}"
        return Decision("deny", reason, "protected")
    if mode == "bypassPermissions":
        return _allow(mode, "this mode asks nobody")
    if not seen.inside:
        return _ask(mode, f"`{spec.name}` would write outside the workspace: {_brief(path)}")
    if mode == "acceptEdits" and seen.private:
        return _ask(mode, f"`{spec.name}` would write a file that may hold secrets: {_brief(path)}")
    if mode == "acceptEdits" and seen.obeyed:
        return _ask(mode, f"`{spec.name}` would write {_brief(path)}: {seen.obeyed}")
    if mode == "acceptEdits":
        return _allow(mode, "edits inside the workspace")
    return _ask(mode, f"`{spec.name}` changes files")


def _executing(spec: ToolSpec, mode: PermissionMode) -> Decision:
    if mode in NARROW:
        return _deny(
            mode,
            f"`{spec.name}` requires danger-full-access permission (bypassPermissions), or a "
            f"yes in default or acceptEdits mode; the session is in {mode} mode",
        )
    if mode == "bypassPermissions":
        return _allow(mode, "this mode asks nobody")
    return _ask(mode, f"`{spec.name}` may change anything that you can change")


def _brief(path: str) -> str:
    return path if len(path) <= 200 else path[:200] + "..."


def _allow(mode: PermissionMode, reason: str) -> Decision:
    return Decision("allow", reason, f"mode:{mode}")


def _ask(mode: PermissionMode, reason: str) -> Decision:
    # A hook's yes never widens a mode that only reads.
    return Decision("ask", reason, f"mode:{mode}", by_default=mode not in NARROW)


def _deny(mode: PermissionMode, reason: str) -> Decision:
    return Decision("deny", reason, f"mode:{mode}")


# -- what a yes for the session would add ------------------------------------------


def _offered_content(seen: Observed) -> str:
    """The content of a rule for one effect; blank where no rule can be as narrow as the call."""
    match seen.effect:
        case Execute(command):
            plain = is_plain_command(command) and not command.endswith((":", " "))
            return command.strip() if plain else ""
        case ReadPath() | WritePath():
            if seen.protected or any(c in seen.real + seen.relative for c in "*?[()\n\\"):
                return ""
            if seen.inside and seen.relative and not seen.relative.startswith(("/", "..")):
                return "./" if seen.relative == "." else f"./{seen.relative}"
            return f"/{seen.real}" if seen.real else ""
        case _:
            return ""
