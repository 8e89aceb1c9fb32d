"""A session that was compacted goes on only where its tools and workspace answer."""

from __future__ import annotations

import time

import pytest

from claw.errors import SessionUnhealthy
from claw.testing import (
    FakeTool,
    MemoryWorkspace,
    ScriptedModel,
    conversation,
    says,
)
from claw.types.entries import Compacted, UserMessaged
from claw.types.messages import Text
from claw.types.session import SessionState
from claw.types.tools import ToolSpec

COMPACTED = Compacted("manual", 1, 1, (Text("notes"),), 100, 10)


def compacted(times: int = 1) -> SessionState:
    state = SessionState().fold(UserMessaged((Text("one"),)))
    for _ in range(times):
        state = state.fold(COMPACTED)
    return state


class Forgetful(FakeTool):
    """Goes by another name each time it is asked."""

    @property
    def spec(self) -> ToolSpec:
        self.runs += 1
        return ToolSpec(f"Look{self.runs}", "Looks.", {"type": "object"})


async def test_a_tool_that_does_not_answer_ends_it() -> None:
    runtime = conversation(ScriptedModel([]), [Forgetful("Look")], state=compacted())
    with pytest.raises(SessionUnhealthy, match="does not answer"):
        await runtime.run_turn("go on")


async def test_a_session_that_was_never_compacted_is_not_probed() -> None:
    workspace = MemoryWorkspace()
    workspace.gone = True
    state = SessionState().fold(UserMessaged((Text("one"),)))
    runtime = conversation(ScriptedModel([says("hi")]), workspace=workspace, state=state)
    assert (await runtime.run_turn("go")).stop_reason == "completed"


async def test_one_that_passed_is_not_probed_again() -> None:
    workspace = MemoryWorkspace()
    model = ScriptedModel([says("a"), says("b")])
    runtime = conversation(model, workspace=workspace, state=compacted())
    await runtime.run_turn("one")
    workspace.gone = True
    assert (await runtime.run_turn("two")).stop_reason == "completed"


async def test_it_costs_next_to_nothing() -> None:
    tools = [FakeTool(f"T{n}") for n in range(50)]
    runtime = conversation(ScriptedModel([says("a")]), tools, state=compacted())
    began = time.perf_counter()
    runtime._probe()
    assert time.perf_counter() - began < 0.05
