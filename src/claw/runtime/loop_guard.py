"""Does the model go round in circles?

A circle is one step, or two in turn, with the same calls and the same results each time.
What the model says beside them, and the ids of the calls, do not count; a call that
gives something new (waiting for a build) is progress. Steps are remembered here, for a
compaction may take them out of the conversation: then a circle goes on all the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Literal

import msgspec

from claw.types.messages import Message, ToolResult, ToolUse

__all__ = ["ASK", "END", "NUDGE", "NUDGED", "LoopGuard", "Repetition", "verdict"]

NUDGED, ASK, END = 3, 5, 8
"""Times round, after which the model is told, a person is asked, and the turn ends."""
LONGEST_CIRCLE = 2  # steps
NUDGE = (
    "[claw] The same calls have now given the same results {} times in a row. Doing it again "
    "will change nothing. Try something else, or say what keeps you from going on."
)

Step = tuple[tuple[str, str, str], ...]
"""Name, input and result of each call."""


class Repetition(msgspec.Struct, frozen=True):
    """``times`` is 1 for what is new; ``call`` is the last one that was made."""

    times: int
    call: ToolUse


class LoopGuard:
    """Watches the steps of one turn."""

    def __init__(self) -> None:
        self._steps: deque[Step] = deque(maxlen=END * LONGEST_CIRCLE)  # the newest first

    def saw(self, calls: Sequence[ToolUse], results: Message) -> Repetition:
        """Takes the calls of a step, one or more; says how often it was made in a row."""
        self._steps.appendleft(_step(calls, results))
        steps = [*self._steps]
        times = max(_times(steps, length) for length in range(1, LONGEST_CIRCLE + 1))
        return Repetition(times, calls[-1])

    def spoken(self) -> None:
        """Somebody said something new: a circle does not reach beyond it."""
        self._steps.clear()


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


def _step(calls: Sequence[ToolUse], results: Message) -> Step:
    said = {
        block.tool_use_id: repr((block.content, block.is_error))
        for block in results.content
        if isinstance(block, ToolResult)
    }
    return tuple((c.name, repr(c.input), said.get(c.id, "")) for c in calls)
