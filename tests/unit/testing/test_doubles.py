from __future__ import annotations

import pytest

from claw.errors import SessionError, ToolFailed
from claw.testing.conformance import a_request
from claw.testing.doubles import (
    AllowAll,
    FakeHooks,
    MemoryJournal,
    MemoryWorkspace,
    NoCompactor,
    NoRedactor,
    RecordingSink,
    ScriptedApprover,
)
from claw.types.entries import Titled
from claw.types.events import TextDelta
from claw.types.hooks import HookOutcome, HookPayload
from claw.types.permissions import Answer, Question
from claw.types.session import SessionState
from claw.types.transcript import Transcript
from claw.types.usage import Usage

QUESTION = Question("call_1", "Bash", "ls", "asks")


def test_a_journal_knows_what_is_synced_and_can_fail():
    journal = MemoryJournal(fail_at=2)
    journal.append(Titled("a"), sync=True)
    journal.append(Titled("b"))
    assert journal.synced == 1
    with pytest.raises(SessionError):
        journal.append(Titled("c"))
    assert len(journal.entries) == 2


async def test_approvers_remember_and_follow_the_script():
    yes, no = AllowAll(), ScriptedApprover([Answer(False, "no")])
    assert (await yes.ask(QUESTION)).allow
    assert not (await no.ask(QUESTION)).allow
    assert yes.questions == no.questions == [QUESTION]
    with pytest.raises(AssertionError, match="unexpected question 2"):
        await no.ask(QUESTION)


async def test_hooks_answer_by_event():
    hooks = FakeHooks(
        {"Stop": HookOutcome("denied"), "PreToolUse": lambda p: HookOutcome(reason=p.subject)}
    )
    assert (await hooks.fire(HookPayload("Stop", "default"))).verdict == "denied"
    assert (await hooks.fire(HookPayload("PreToolUse", "default", "Read"))).reason == "Read"
    assert (await hooks.fire(HookPayload("SessionEnd", "default"))) == HookOutcome()
    assert [payload.event for payload in hooks.fired] == ["Stop", "PreToolUse", "SessionEnd"]


async def test_those_that_do_nothing():
    assert NoRedactor().clean("secret") == "secret"
    assert NoCompactor().target(a_request(), SessionState(context=Usage(10**9)), 1) is None
    assert await NoCompactor().make_room(Transcript(), 1, None, "") is None
    sink = RecordingSink()
    sink.emit(TextDelta("a"))
    assert sink.events == [TextDelta("a")]


def test_a_workspace_can_be_gone():
    workspace = MemoryWorkspace({"a": "text"})
    workspace.gone = True
    for act in (workspace.probe, lambda: workspace.read("a", limit=9)):
        with pytest.raises(ToolFailed, match="does not exist"):
            act()
