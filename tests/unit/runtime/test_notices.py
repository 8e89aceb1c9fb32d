"""What a client has to say beside the reply reaches whoever listens, and stays out of the reply."""

from __future__ import annotations

import pytest

from claw.models.scripted import ScriptedModel, calls, raw, says
from claw.testing.doubles import RecordingSink
from claw.testing.pieces import FakeTool, conversation
from claw.types.events import MessageStop, Notice, TextDelta
from claw.types.results import final_assistant_text


async def test_a_notice_in_a_stream_is_told():
    before = Notice("context_truncated", "warning", "The server cut the request.")
    after = Notice("reply_format", "warning", "Odd.")
    script = [raw(before, TextDelta("hi"), MessageStop("end_turn"), after)]
    sink = RecordingSink()
    summary = await conversation(ScriptedModel(script), sink=sink).run_turn("hello")
    assert [event for event in sink.events if isinstance(event, Notice)] == [before, after]
    assert (summary.stop_reason, final_assistant_text(summary)) == ("completed", "hi")


@pytest.mark.parametrize(
    ("reason", "told"),
    [("tool_use", []), ("end_turn", []), ("weird", ["The model stopped with `weird`."])],
)
async def test_a_stop_reason_that_nobody_knows_is_told_beside_calls_too(
    reason: str, told: list[str]
):
    sink = RecordingSink()
    script = [calls(("look", {}), stop_reason=reason), says("done")]
    talk = conversation(ScriptedModel(script), [FakeTool("look")], sink=sink)
    assert (await talk.run_turn("go")).stop_reason == "completed"
    assert [event.text for event in sink.events if isinstance(event, Notice)] == told
