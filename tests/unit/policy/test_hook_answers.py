"""The written table of what a hook's run means: exit code by output."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.policy.hooks.answer import HookAnswer, read_answer
from claw.types.hooks import HookEvent


def output(**fields: object) -> str:
    return json.dumps(fields)


def specific(**fields: object) -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}})


DENY = specific(permissionDecision="deny", permissionDecisionReason="no")
ALLOW = specific(permissionDecision="allow")
ASK = specific(permissionDecision="ask")
UPDATED = specific(updatedInput={"command": "ls"})

# What each output says at exit 0: (denied, permission, input was updated, failed)
AT_ZERO: dict[str, tuple[str, tuple[bool, str | None, bool, bool]]] = {
    "nothing": ("", (False, None, False, False)),
    "text": ("all is well", (False, None, False, False)),
    "allow": (ALLOW, (False, "allow", False, False)),
    "approve": (output(decision="approve"), (False, "allow", False, False)),
    "deny": (DENY, (True, None, False, False)),
    "block": (output(decision="block", reason="no"), (True, None, False, False)),
    "ask": (ASK, (False, "ask", False, False)),
    "updated": (UPDATED, (False, None, True, False)),
    "byte order mark": (f"\ufeff{DENY}", (True, None, False, False)),
    "unknown fields": (output(future={"x": 1}), (False, None, False, False)),
    "deny and unknown": (output(decision="block", future=1), (True, None, False, False)),
    "unknown decision": (specific(permissionDecision="maybe"), (False, None, False, True)),
    "deny, bad types": (
        '{"continue": "x", "hookSpecificOutput": {"permissionDecision": "deny"}}',
        (True, None, False, True),
    ),
    "allow, bad types": (
        '{"continue": "x", "hookSpecificOutput": {"permissionDecision": "allow"}}',
        (False, None, False, True),
    ),
    "input is no object": (specific(updatedInput="ls"), (False, None, False, True)),
    "truncated deny": (DENY[: DENY.index('"permissionDecisionReason')], (True, None, False, True)),
    "truncated allow": (ALLOW[:-2], (False, None, False, True)),
    "trailing text, deny": (f"{DENY}\nbye", (True, None, False, True)),
    "trailing text, allow": (f"{ALLOW}\nbye", (False, None, False, True)),
    "banner, deny": (f"welcome\n{DENY}", (True, None, False, True)),
    "banner, allow": (f"welcome\n{ALLOW}", (False, None, False, True)),
    "key twice": (
        '{"decision": "block", "decision": "approve"}',
        (True, None, False, True),
    ),
    "not a number": ('{"x": NaN, "decision": "approve"}', (False, None, False, True)),
    "string": (json.dumps(DENY), (False, None, False, True)),
    "array": ("[1]", (False, None, False, True)),
    "bracketed text": ("[info] fine", (False, None, False, False)),
    "single quotes": ("{'decision': 'approve'}", (False, None, False, True)),
}


def seen(answer: HookAnswer) -> tuple[bool, str | None, bool, bool]:
    updated = answer.updated_input is not None
    return answer.denied, answer.permission, updated, bool(answer.failure)


@pytest.mark.parametrize("case", AT_ZERO)
def test_exit_0(case: str) -> None:
    text, expected = AT_ZERO[case]
    assert seen(read_answer("PreToolUse", 0, text, "")) == expected


@pytest.mark.parametrize("case", AT_ZERO)
def test_exit_2_blocks_whatever_is_said(case: str) -> None:
    text, (_, permission, _, _) = AT_ZERO[case]
    answer = read_answer("PreToolUse", 2, text, "because")
    asks = "ask" if permission == "ask" else None
    assert seen(answer) == (True, asks, False, False)
    assert answer.reason == "because"


@pytest.mark.parametrize("case", AT_ZERO)
@pytest.mark.parametrize("code", [1, 3, 126, 127, 130, -9])
def test_any_other_exit_is_a_failure_that_only_narrows(case: str, code: int) -> None:
    text, (denied, permission, _, _) = AT_ZERO[case]
    answer = read_answer("PreToolUse", code, text, "oops")
    assert seen(answer) == (denied, "ask" if permission == "ask" else None, False, True)
    assert "oops" in answer.failure


def test_reasons() -> None:
    assert read_answer("PreToolUse", 0, DENY, "").reason == "no"
    assert read_answer("PreToolUse", 2, DENY, "").reason == "no"
    assert "no reason" in read_answer("PreToolUse", 2, "", " \n").reason
    assert read_answer("PreToolUse", 0, f"{DENY} x", "").reason == "no"
    assert len(read_answer("PreToolUse", 2, "", "x" * 10**6).reason) < 11_000


@pytest.mark.parametrize("event", ["UserPromptSubmit", "SessionStart"])
def test_plain_text_is_context_where_a_prompt_begins(event: HookEvent) -> None:
    assert read_answer(event, 0, "remember the milk\n", "").context == "remember the milk"
    assert read_answer(event, 1, "remember the milk\n", "").context == ""
    assert read_answer("PostToolUse", 0, "remember the milk\n", "").context == ""


def test_fields_of_the_object() -> None:
    text = json.dumps(
        {
            "systemMessage": "for you",
            "suppressOutput": True,
            "reason": "for the model",
            "hookSpecificOutput": {"additionalContext": "more"},
        }
    )
    answer = read_answer("PostToolUse", 0, text, "")
    assert answer == HookAnswer(
        reason="for the model", context="more", feedback="for the model", notice="for you"
    )


@pytest.mark.parametrize(
    ("event", "denied"), [("PreToolUse", True), ("UserPromptSubmit", True), ("Stop", False)]
)
def test_a_stop_keeps_from_happening_what_has_not_happened(event: HookEvent, denied: bool) -> None:
    for text in (
        '{"continue": false, "stopReason": "enough"}',
        '{"continue": false, "stopReason": "enough"} x',
    ):
        for code in (0, 1):
            answer = read_answer(event, code, text, "")
            assert (answer.denied, answer.stop) == (denied, "enough")


@given(
    st.sampled_from([DENY, output(decision="block", reason="x")]),
    st.text(max_size=30),
    st.integers(-20, 255),
)
def test_a_deny_is_never_lost_to_what_follows_it(deny: str, rest: str, code: int) -> None:
    assert read_answer("PreToolUse", code, deny + rest, "").denied


@given(st.text(max_size=60), st.integers(-20, 255))
def test_no_output_breaks_the_reader_and_none_but_exit_0_widens(text: str, code: int) -> None:
    answer = read_answer("PreToolUse", code, text, "")
    if code != 0:
        assert answer.permission != "allow"
        assert answer.updated_input is None
