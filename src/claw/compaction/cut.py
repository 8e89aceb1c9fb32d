"""Where a conversation may be cut, and what a cut takes away. Pure.

A round is a step (a reply with its results), or an earlier message of the user with its
answer. The request that is worked on belongs to no round: a cut never takes it away.
"""

from __future__ import annotations

from claw.types.messages import AssistantMessage, Message, ToolResult, UserMessage
from claw.types.transcript import Transcript

__all__ = ["cut_keeping", "is_said", "removed_by", "round_starts"]


def is_said(message: Message) -> bool:
    """Whether it is a message of the user, and not the results of calls."""
    return isinstance(message, UserMessage) and not isinstance(message.content[0], ToolResult)


def round_starts(transcript: Transcript) -> list[int]:
    """The places where rounds begin, in order."""
    closed = transcript.closed
    starts = []
    for at, message in enumerate(closed):
        if isinstance(message, AssistantMessage):
            opens = at > 0 and at - 1 != transcript.asked and is_said(closed[at - 1])
            starts.append(at - 1 if opens else at)
    return starts


def cut_keeping(transcript: Transcript, rounds: int) -> int:
    """The place of the cut that keeps that many rounds; 0 where there are no more of them."""
    starts = round_starts(transcript)
    if rounds >= len(starts):
        return 0
    if rounds > 0:
        return starts[-rounds]
    end = len(transcript.closed)
    while end > 0 and is_said(transcript.closed[end - 1]):
        end -= 1
    return end


def removed_by(transcript: Transcript, cut: int) -> tuple[Message, ...]:
    """What goes with a cut: messages without the request and without earlier notes."""
    removed: list[Message] = []
    for at, message in enumerate(transcript.closed[:cut]):
        if isinstance(message, UserMessage) and is_said(message):
            if at >= transcript.asked:
                continue
            own = message.content[transcript.notes if at == 0 else 0 :]
            if own:
                removed.append(UserMessage(own))
        else:
            removed.append(message)
    return tuple(removed)
