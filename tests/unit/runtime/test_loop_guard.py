"""A model that goes round in circles is told, then a person is asked, then the turn ends."""

from __future__ import annotations

import pytest

from claw.policy.headless import HeadlessApprover
from claw.testing import (
    AllowAll,
    FakeTool,
    MemoryJournal,
    ScriptedApprover,
    ScriptedModel,
    ScriptReply,
    calls,
    conversation,
    says,
)
from claw.types.entries import Steered
from claw.types.messages import text_of
from claw.types.permissions import Answer
from claw.types.tools import ToolOutput


def same(number: int) -> list[ScriptReply]:
    return [calls(("Look", {"at": 1}), text=f"try {n}") for n in range(number)]


def nudges(journal: MemoryJournal) -> int:
    return sum(isinstance(e, Steered) and e.source == "runtime" for e in journal.entries)


async def test_it_is_told_once_and_may_come_to_its_senses() -> None:
    journal = MemoryJournal()
    model = ScriptedModel([*same(4), says("I give up.")])
    runtime = conversation(model, [FakeTool("Look")], journal=journal)
    assert (await runtime.run_turn("go")).stop_reason == "completed"
    assert nudges(journal) == 1
    assert "3 times in a row" in text_of(model.requests[3].messages[-1].content)


@pytest.mark.parametrize("fails", [True, False])
async def test_with_nobody_to_ask_it_ends(fails: bool) -> None:
    model = ScriptedModel(same(5))
    runtime = conversation(model, [FakeTool("Look", fails=fails)], approver=HeadlessApprover())
    summary = await runtime.run_turn("go")
    assert summary.stop_reason == "no_progress"
    assert summary.error is not None
    assert "`Look` gave the same result" in summary.error.message


async def test_a_person_can_say_no() -> None:
    approver = ScriptedApprover([Answer(False, "stop it")])
    runtime = conversation(ScriptedModel(same(5)), [FakeTool("Look")], approver=approver)
    assert (await runtime.run_turn("go")).stop_reason == "no_progress"
    assert '"at":1' in approver.questions[0].detail


async def test_a_person_can_let_it_go_on_for_a_while() -> None:
    approver = AllowAll()
    runtime = conversation(ScriptedModel(same(8)), [FakeTool("Look")], approver=approver)
    assert (await runtime.run_turn("go")).stop_reason == "no_progress"
    assert len(approver.questions) == 1


async def test_two_steps_in_turn_are_a_circle_too() -> None:
    journal = MemoryJournal()
    pair = [calls(("Look", {"at": 1})), calls(("Look", {"at": 2}))]
    model = ScriptedModel([calls(("Look", {"at": 0})), *pair * 5])
    runtime = conversation(model, [FakeTool("Look")], journal=journal, approver=HeadlessApprover())
    assert (await runtime.run_turn("go")).stop_reason == "no_progress"
    assert nudges(journal) == 1


class Counting(FakeTool):
    """Says something new each time, as a build that goes on does."""

    async def run(self, args, call) -> ToolOutput:
        self.runs += 1
        return ToolOutput.of(f"{self.runs} % done")


async def test_waiting_for_something_is_no_circle() -> None:
    journal = MemoryJournal()
    runtime = conversation(
        ScriptedModel([*same(20), says("done")]),
        [Counting("Look")],
        journal=journal,
        approver=HeadlessApprover(),
    )
    assert (await runtime.run_turn("go")).stop_reason == "completed"
    assert nudges(journal) == 0


async def test_other_inputs_are_no_circle() -> None:
    different = [calls(("Look", {"at": n})) for n in range(12)]
    runtime = conversation(
        ScriptedModel([*different, says("done")]),
        [FakeTool("Look")],
        approver=HeadlessApprover(),
    )
    assert (await runtime.run_turn("go")).stop_reason == "completed"


async def test_each_turn_begins_anew() -> None:
    replies = [*same(2), says("a"), *same(2), says("b"), *same(2), says("c")]
    journal = MemoryJournal()
    runtime = conversation(ScriptedModel(replies), [FakeTool("Look")], journal=journal)
    for _ in range(3):
        assert (await runtime.run_turn("again")).stop_reason == "completed"
    assert nudges(journal) == 0
