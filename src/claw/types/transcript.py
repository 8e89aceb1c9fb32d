"""``Transcript``: a conversation that every provider accepts, by construction.

The invariant, at every instant: every tool call has exactly one result, in call
order, in the one user message directly after it. While the calls of the last
reply still run, ``messages`` fills their places with "interrupted" results, so a
transcript that is looked at (sent, saved, compacted) in the middle of anything,
or after any crash, is valid. There is no way to build another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
LEFT_OUT = "Earlier messages of this conversation were left out."


class Transcript(msgspec.Struct, frozen=True, omit_defaults=True):
    """Messages of a conversation. Build it with the methods, from ``Transcript()``.

    ``closed`` are the finished messages; ``reply`` is the last reply while some
    of its calls have no result, and ``results`` are those that have, in order.
    ``asked`` is the place in ``closed`` of the request that is worked on; ``notes``
    counts the blocks at the head of the first message that a compaction put there.
    """

    closed: tuple[Message, ...] = ()
    reply: AssistantMessage | None = None
    results: tuple[ToolResult, ...] = ()
    asked: int = 0
    notes: int = 0

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

    def user(self, message: UserMessage, *, asks: bool = True) -> Transcript:
        """Append what a user says; what ``asks`` is the request from now on.

        Raises ``ValueError`` for results: ``settle`` takes those.
        """
        if any(isinstance(block, ToolResult) for block in message.content):
            raise ValueError("tool results enter a transcript through settle()")
        if not message.content:
            return self
        closed = self.close().closed
        asked = len(closed) if asks else self.asked
        return replace(self._over((*closed, message)), asked=asked)

    def assistant(self, message: AssistantMessage) -> Transcript:
        """Append a reply; its calls are open until they are settled.

        Raises ``ValueError`` where a call's id is used twice (``assemble`` sees
        to that).
        """
        if not message.content:
            return self
        closed = self.close().closed
        calls = message.tool_calls
        if not calls:
            return self._over((*closed, message))
        if len({call.id for call in calls}) != len(calls):
            raise ValueError("two calls of one reply share an id")
        return replace(self, closed=closed, reply=message, results=())

    def settle(self, result: ToolResult) -> Transcript:
        """Give the next open call its result. Raises ``ValueError`` out of order."""
        waiting = self.open_calls
        if not waiting or waiting[0].id != result.tool_use_id:
            expected = waiting[0].id if waiting else "no result"
            raise ValueError(f"result for {result.tool_use_id!r}, expected {expected!r}")
        assert self.reply is not None
        results = (*self.results, _visible(result))
        if len(waiting) > 1:
            return replace(self, results=results)
        return self._over((*self.closed, self.reply, UserMessage(results)))

    def finish(self, result: ToolResult) -> Transcript:
        """Settle a call; those before it whose results were lost have an unknown outcome.

        A result that no open call waits for changes nothing.
        """
        if result.tool_use_id not in {call.id for call in self.open_calls}:
            return self
        settled = self
        while (due := settled.open_calls[0].id) != result.tool_use_id:
            settled = settled.settle(_error(due, OUTCOME_UNKNOWN))
        return settled.settle(result)

    def close(self, reason: str = INTERRUPTED) -> Transcript:
        """Settle every open call with an error that says ``reason``."""
        if self.reply is None:
            return self
        missing = tuple(_error(call.id, reason) for call in self.open_calls)
        return self._over((*self.closed, self.reply, UserMessage((*self.results, *missing))))

    def without_last_reply(self) -> Transcript:
        """Take the last reply back, for one that was cut off and is sampled again."""
        if self.reply is not None:
            return self._over(self.closed)
        if self.closed and isinstance(self.closed[-1], AssistantMessage):
            return self._over(self.closed[:-1])
        return self

    def compact(
        self,
        kept_from: int,
        summary: tuple[UserBlock, ...],
        pruned: Mapping[str, str] | None = None,
    ) -> Transcript:
        """Put ``summary`` in place of the closed messages before ``kept_from``; total.

        A cut between calls and their results moves before the calls. What the user said
        since the turn began stays, behind the summary. ``pruned`` results (text by call
        id) lose their content, nothing else.
        """
        cut = min(max(kept_from, 0), len(self.closed))
        if 0 < cut < len(self.closed) and _has_results(self.closed[cut]):
            cut -= 1
        stubs = pruned or {}
        kept = tuple(_pruned(message, stubs) for message in self.closed[cut:])
        results = tuple(_stub(result, stubs) for result in self.results)
        head = tuple(b for b in summary if not isinstance(b, ToolResult) and not _is_blank(b))
        if not cut and not head:
            return replace(self, closed=kept, results=results)
        if not cut:
            first = UserMessage(head)
            return Transcript((first, *kept), self.reply, results, self.asked + 1, len(head))
        head = head or (Text(LEFT_OUT),)
        first = UserMessage((*head, *self._request(cut)))
        asked = self.asked - cut + 1 if self.asked >= cut else 0
        return Transcript((first, *kept), self.reply, results, asked, len(head))

    def _request(self, before: int) -> tuple[UserBlock, ...]:
        """All that the user said from the request on, up to a place."""
        said: list[UserBlock] = []
        for at in range(self.asked, before):
            message = self.closed[at]
            if isinstance(message, UserMessage) and not _has_results(message):
                said += message.content[self.notes if at == 0 else 0 :]
        return tuple(said)

    def _over(self, closed: tuple[Message, ...]) -> Transcript:
        """The same conversation with no call open."""
        return replace(self, closed=closed, reply=None, results=())


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


def _has_results(message: Message) -> bool:
    return isinstance(message, UserMessage) and isinstance(message.content[0], ToolResult)


def _is_blank(block: UserBlock) -> bool:
    return isinstance(block, Text) and not block.text.strip()


def _pruned(message: Message, stubs: Mapping[str, str]) -> Message:
    if not isinstance(message, UserMessage) or not any(
        isinstance(block, ToolResult) and block.tool_use_id in stubs for block in message.content
    ):
        return message
    return UserMessage(
        tuple(
            _stub(block, stubs) if isinstance(block, ToolResult) else block
            for block in message.content
        )
    )


def _stub(result: ToolResult, stubs: Mapping[str, str]) -> ToolResult:
    stub = stubs.get(result.tool_use_id)
    return result if stub is None else _visible(replace(result, content=(Text(stub),)))


def _error(call_id: str, reason: str) -> ToolResult:
    return ToolResult(call_id, (Text(reason),), is_error=True)


def _visible(result: ToolResult) -> ToolResult:
    """Providers refuse empty results and blank text blocks: say that there was no output."""
    kept = tuple(b for b in result.content if not isinstance(b, Text) or b.text.strip())
    if len(kept) == len(result.content) and kept:
        return result
    return replace(result, content=kept or (Text(NO_OUTPUT),))
