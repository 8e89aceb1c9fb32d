from claw.runtime.tracing import trace_event
from claw.testing import FakeTool, ScriptedModel, calls, conversation, refuses, says


async def traced(*replies) -> list[str]:
    runtime = conversation(ScriptedModel(replies), [FakeTool("Look")])
    names: list[str] = []
    runtime.listen(lambda e: names.extend(found[:1]) if (found := trace_event(e)) else None)
    await runtime.run_turn("go")
    return names


async def test_a_turn_as_a_tracer_sees_it() -> None:
    assert await traced(calls(("Look", {})), says("ok")) == [
        "turn_started",
        "assistant_iteration_completed",
        "tool_started",
        "tool_finished",
        "assistant_iteration_completed",
        "turn_completed",
    ]


async def test_a_failed_turn_is_named_so() -> None:
    assert (await traced(refuses()))[-1] == "turn_failed"
