"""Does the model go round in circles? Told from the transcript alone.

A circle is one step, or two in turn, with the same calls and the same results each time.
What the model says beside them, and the ids of the calls, do not count; a call that
gives something new (waiting for a build) is progress.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from claw.types.messages import Text, ToolResult, ToolUse, UserMessage, text_of
from claw.types.transcript import Transcript

__all__ = ["ASK", "END", "NUDGE", "NUDGED", "Repetition", "repetitions", "verdict"]

NUDGED, ASK, END = 3, 5, 8
"""Times round, after which the model is told, a person is asked, and the turn ends."""
LONGEST_CIRCLE = 2  # steps
OPENING = "[claw] "
NUDGE = (
    OPENING + "The same calls have now given the same results {} times in a row. Doing it again "
    "will change nothing. Try something else, or say what keeps you from going on."
)

Step = tuple[tuple[str, str, str], ...]
"""Name, input and result of each call."""


class Repetition(msgspec.Struct, frozen=True):
    """``call`` is the last one that was made."""

    times: int
    call: ToolUse


def repetitions(transcript: Transcript) -> Repetition:
    """How often the newest steps were made in a row; 1 where they are new.

    Raises ``ValueError`` where no call was made yet.
    """
    steps, call = _steps(transcript)
    if call is None:
        raise ValueError("no call was made yet")
    times = max(_times(steps, length) for length in range(1, LONGEST_CIRCLE + 1))
    return Repetition(times, call)


def verdict(times: int) -> Literal["fine", "nudge", "ask", "end"]:
    """What is due now; each is due once."""
    if times >= END:
        return "end"
    if times == ASK:
        return "ask"
    return "nudge" if times == NUDGED else "fine"


def _times(steps: list[Step], length: int) -> int:
    """How often a circle of ``length`` steps was gone, where its last step came just now."""
    same = length
    while same < len(steps) and steps[same] == steps[same - length]:
        same += 1
    return 1 if same % length else same // length


def _steps(transcript: Transcript) -> tuple[list[Step], ToolUse | None]:
    """As many steps of the turn as can matter, the newest first, and the last call.

    What a person said is where a circle cannot reach beyond.
    """
    steps: list[Step] = []
    results: dict[str, str] = {}
    last: ToolUse | None = None
    for message in reversed(transcript.messages):
        if isinstance(message, UserMessage):
            if _is_speech(message):
                break
            results.update(
                (block.tool_use_id, repr((block.content, block.is_error)))
                for block in message.content
                if isinstance(block, ToolResult)
            )
            continue
        if calls := message.tool_calls:
            last = last or calls[-1]
            steps.append(tuple((c.name, repr(c.input), results.get(c.id, "")) for c in calls))
            if len(steps) == END * LONGEST_CIRCLE:
                break
    return steps, last


def _is_speech(message: UserMessage) -> bool:
    said = any(isinstance(block, Text) for block in message.content)
    return said and not text_of(message.content).startswith(OPENING)
