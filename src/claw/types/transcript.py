"""``Transcript``: a conversation that every provider accepts, by construction.

The invariant, at every instant: every tool call has exactly one result, in call
order, in the one user message directly after it. While the calls of the last
reply still run, ``messages`` fills their places with "interrupted" results, so a
transcript that is looked at (sent, saved, compacted) in the middle of anything,
or after any crash, is valid. There is no way to build another one.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from claw.types.messages import (
    AssistantBlock,
    AssistantMessage,
    Message,
    Text,
    ToolResult,
    ToolUse,
    UserBlock,
    UserMessage,
    fresh_id,
)

__all__ = ["INTERRUPTED", "OUTCOME_UNKNOWN", "Transcript", "repair"]

INTERRUPTED = "Interrupted: the turn was ended while this call ran; it may have run in part."
OUTCOME_UNKNOWN = (
    "The outcome of this call is unknown: the session ended while it ran. "
    "Look before you repeat it."
)
NO_OUTPUT = "(no output)"


class Transcript(msgspec.Struct, frozen=True, omit_defaults=True):
    """Messages of a conversation. Build it with the methods, from ``Transcript()``.

    ``closed`` are the finished messages; ``reply`` is the last reply while some
    of its calls have no result, and ``results`` are those that have, in order.
    """

    closed: tuple[Message, ...] = ()
    reply: AssistantMessage | None = None
    results: tuple[ToolResult, ...] = ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation as it can be sent now."""
        return self.close().closed

    @property
    def open_calls(self) -> tuple[ToolUse, ...]:
        """Calls that wait for their result, in call order."""
        return () if self.reply is None else self.reply.tool_calls[len(self.results) :]

    @property
    def call_ids(self) -> frozenset[str]:
        """The id of every call ever made in what this transcript holds."""
        held = (*self.closed, self.reply) if self.reply else self.closed
        # Asked for once a step: exact types, no tuples in between, to stay cheap when long.
        return frozenset(
            [
                block.id
                for message in held
                if type(message) is AssistantMessage
                for block in message.content
                if type(block) is ToolUse
            ]
        )

    def user(self, message: UserMessage) -> Transcript:
        """Append what a user says. Raises ``ValueError`` for results: ``settle`` takes those."""
        if any(isinstance(block, ToolResult) for block in message.content):
            raise ValueError("tool results enter a transcript through settle()")
        if not message.content:
            return self
        return Transcript((*self.close().closed, message))

    def assistant(self, message: AssistantMessage) -> Transcript:
        """Append a reply; its calls are open until they are settled.

        Raises ``ValueError`` where a call's id is used twice (``assemble`` sees
        to that).
        """
        if not message.content:
            return self
        calls = message.tool_calls
        if not calls:
            return Transcript((*self.close().closed, message))
        if len({call.id for call in calls}) != len(calls):
            raise ValueError("two calls of one reply share an id")
        return Transcript(self.close().closed, message)

    def settle(self, result: ToolResult) -> Transcript:
        """Give the next open call its result. Raises ``ValueError`` out of order."""
        waiting = self.open_calls
        if not waiting or waiting[0].id != result.tool_use_id:
            expected = waiting[0].id if waiting else "no result"
            raise ValueError(f"result for {result.tool_use_id!r}, expected {expected!r}")
        assert self.reply is not None
        results = (*self.results, _visible(result))
        if len(waiting) > 1:
            return Transcript(self.closed, self.reply, results)
        return Transcript((*self.closed, self.reply, UserMessage(results)))

    def close(self, reason: str = INTERRUPTED) -> Transcript:
        """Settle every open call with an error that says ``reason``."""
        if self.reply is None:
            return self
        missing = tuple(_error(call.id, reason) for call in self.open_calls)
        return Transcript((*self.closed, self.reply, UserMessage((*self.results, *missing))))

    def without_last_reply(self) -> Transcript:
        """Take the last reply back, for one that was cut off and is sampled again."""
        if self.reply is not None:
            return Transcript(self.closed)
        if self.closed and isinstance(self.closed[-1], AssistantMessage):
            return Transcript(self.closed[:-1])
        return self


def repair(messages: Iterable[Message], reason: str = OUTCOME_UNKNOWN) -> Transcript:
    """Make a transcript of messages from anywhere: old sessions, imports, other tools.

    A call without a result gets an error result with ``reason``; a result without
    its call, or a second one for it, is dropped; results move to directly after
    their calls, in call order; a repeated id is renamed together with its result,
    paired by occurrence; empty messages vanish. Nothing else changes.
    """
    transcript = Transcript()
    used: set[str] = set()
    renamed: dict[str, list[str]] = {}  # old id -> its open calls' new ids, oldest first
    settled: dict[str, ToolResult] = {}

    def close() -> None:
        nonlocal transcript
        for call in transcript.open_calls:
            transcript = transcript.settle(settled.get(call.id) or _error(call.id, reason))
        renamed.clear()
        settled.clear()

    for message in messages:
        if isinstance(message, AssistantMessage):
            close()
            content: list[AssistantBlock] = []
            for block in message.content:
                if isinstance(block, ToolUse):
                    fresh = fresh_id(block.id, used)
                    renamed.setdefault(block.id, []).append(fresh)
                    content.append(replace(block, id=fresh))
                else:
                    content.append(block)
            transcript = transcript.assistant(replace(message, content=tuple(content)))
            continue
        said: list[UserBlock] = []
        for item in message.content:
            if not isinstance(item, ToolResult):
                said.append(item)
            elif waiting := renamed.get(item.tool_use_id):
                fresh = waiting.pop(0)
                settled[fresh] = replace(item, tool_use_id=fresh)
        if said:
            close()
            transcript = transcript.user(UserMessage(tuple(said)))
    close()
    return transcript


def _error(call_id: str, reason: str) -> ToolResult:
    return ToolResult(call_id, (Text(reason),), is_error=True)


def _visible(result: ToolResult) -> ToolResult:
    """Providers refuse empty results and blank text blocks: say that there was no output."""
    kept = tuple(b for b in result.content if not isinstance(b, Text) or b.text.strip())
    if len(kept) == len(result.content) and kept:
        return result
    return replace(result, content=kept or (Text(NO_OUTPUT),))
