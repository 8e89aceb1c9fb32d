"""What each mode does with each kind of effect, without any rule."""

from __future__ import annotations

import pytest

from claw.policy.permissions import ModePolicy
from claw.types.effects import Execute, Facts, Observed, ReadPath, Remember, WritePath
from claw.types.permissions import MODES, PermissionMode, Rule
from claw.types.tools import ToolSpec

READ = ToolSpec("Read", "", {}, read_only=True)
WRITE = ToolSpec("Write", "", {})
BASH = ToolSpec("Bash", "", {})
TODO = ToolSpec("TodoWrite", "", {})

KINDS = {
    "read": (READ, Observed(ReadPath("a"), "/w/a", "a")),
    "read private": (READ, Observed(ReadPath(".env"), "/w/.env", ".env", private=True)),
    "read outside": (READ, Observed(ReadPath("/e"), "/e", "", inside=False)),
    "write": (WRITE, Observed(WritePath("a"), "/w/a", "a")),
    "write outside": (WRITE, Observed(WritePath("/e"), "/e", "", inside=False)),
    "write protected": (
        WRITE,
        Observed(WritePath(".git/config"), "/w/.git/config", ".git/config", protected="git's own"),
    ),
    "execute": (BASH, Observed(Execute("ls"), "/w")),
    "remember": (TODO, Observed(Remember())),
}

#                 default  acceptEdits  plan     read-only  bypassPermissions
TABLE = {
    "read":            ("allow", "allow", "allow", "allow", "allow"),
    "read private":    ("ask",   "ask",   "ask",   "ask",   "allow"),
    "read outside":    ("ask",   "ask",   "ask",   "ask",   "allow"),
    "write":           ("ask",   "allow", "deny",  "deny",  "allow"),
    "write outside":   ("ask",   "ask",   "deny",  "deny",  "allow"),
    "write protected": ("deny",  "deny",  "deny",  "deny",  "deny"),
    "execute":         ("ask",   "ask",   "deny",  "deny",  "allow"),
    "remember":        ("allow", "allow", "allow", "allow", "allow"),
}  # fmt: skip
CASES = [
    (kind, mode, expected)
    for kind, row in TABLE.items()
    for mode, expected in zip(MODES, row, strict=True)
]


@pytest.mark.parametrize(("kind", "mode", "expected"), CASES)
def test_modes(kind: str, mode: PermissionMode, expected: str) -> None:
    spec, seen = KINDS[kind]
    decision = ModePolicy().judge(spec, Facts((seen,)), mode, ())
    assert decision.behavior == expected
    assert decision.reason
    assert decision.source == ("protected" if decision.source == "protected" else f"mode:{mode}")


@pytest.mark.parametrize(("kind", "mode", "expected"), CASES)
def test_an_allow_rule_lifts_only_what_a_mode_asks(
    kind: str, mode: PermissionMode, expected: str
) -> None:
    spec, seen = KINDS[kind]
    rule = Rule("allow", spec.name, source="test")
    decision = ModePolicy((rule,)).judge(spec, Facts((seen,)), mode, ())
    lifts = expected == "ask" and mode in ("default", "acceptEdits")
    assert decision.behavior == ("allow" if lifts else expected)
    if lifts:
        assert decision.source == f"{spec.name} (test)"


@pytest.mark.parametrize(("kind", "mode", "expected"), CASES)
def test_deny_and_ask_rules_hold_in_every_mode(
    kind: str, mode: PermissionMode, expected: str
) -> None:
    spec, seen = KINDS[kind]
    facts = Facts((seen,))
    deny, ask, allow = (Rule(b, spec.name) for b in ("deny", "ask", "allow"))
    assert ModePolicy((allow, ask, deny)).judge(spec, facts, mode, ()).behavior == "deny"
    asked = ModePolicy((allow, ask)).judge(spec, facts, mode, ())
    assert asked.behavior == ("deny" if expected == "deny" else "ask")
    assert not asked.by_default


@pytest.mark.parametrize("mode", ["plan", "read-only"])
def test_a_refusal_says_what_would_be_needed(mode: PermissionMode) -> None:
    written = ModePolicy().judge(WRITE, Facts((KINDS["write"][1],)), mode, ())
    assert "requires workspace-write permission" in written.reason
    assert f"{mode} mode" in written.reason
    run = ModePolicy().judge(BASH, Facts((KINDS["execute"][1],)), mode, ())
    assert "requires danger-full-access permission" in run.reason


@pytest.mark.parametrize("mode", MODES)
def test_a_hook_may_lift_only_what_a_writing_mode_asks(mode: PermissionMode) -> None:
    decision = ModePolicy().judge(READ, Facts((KINDS["read outside"][1],)), mode, ())
    assert decision.by_default is (mode in ("default", "acceptEdits"))


def test_a_tool_that_says_nothing_of_its_effects_is_taken_for_one_that_runs_anything() -> None:
    strange = ToolSpec("Strange", "", {})
    assert ModePolicy().judge(strange, Facts(), "default", ()).behavior == "ask"
    assert ModePolicy().judge(strange, Facts(), "plan", ()).behavior == "deny"
    harmless = ToolSpec("Harmless", "", {}, read_only=True)
    assert ModePolicy().judge(harmless, Facts(), "plan", ()).behavior == "allow"


def test_the_strictest_effect_of_a_call_decides() -> None:
    facts = Facts((KINDS["read"][1], KINDS["write outside"][1], KINDS["remember"][1]))
    assert ModePolicy().judge(WRITE, facts, "acceptEdits", ()).behavior == "ask"
    facts = Facts((*facts.observed, KINDS["write protected"][1]))
    assert ModePolicy().judge(WRITE, facts, "bypassPermissions", ()).behavior == "deny"


def test_rules_added_in_the_session_count() -> None:
    added = (Rule("allow", "Bash", "ls"),)
    facts = Facts((KINDS["execute"][1],))
    assert ModePolicy().judge(BASH, facts, "default", added).behavior == "allow"
