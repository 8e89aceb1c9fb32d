"""``--output-format stream-json``: a turn as JSON lines, in the terms of the Messages API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from claw.cli.render.json_result import usage_object
from claw.types.entries import Event, ReplyReceived, Retried, Steered, ToolFinished
from claw.types.events import Delta, TextDelta, ThinkingDelta, ToolInputDelta
from claw.types.messages import (
    AssistantBlock,
    Opaque,
    RedactedThinking,
    ResultBlock,
    Text,
    Thinking,
    ToolUse,
    UserBlock,
)

__all__ = ["StreamJson"]


class StreamJson:
    """Gives ``write`` one object for each reply and each message of results.

    A reply that is sampled again is left out, as it is in the transcript.
    ``partial``: text, thinking and tool input as they come, as ``stream_event``.
    """

    def __init__(
        self, write: Callable[[dict[str, Any]], None], *, session_id: str, partial: bool
    ) -> None:
        self._write = write
        self._session_id = session_id
        self._partial = partial
        self._waiting: ReplyReceived | None = None
        self._open: list[str] = []  # calls of the last reply that have no result yet
        self._results: list[dict[str, Any]] = []

    def emit(self, event: Event) -> None:
        if isinstance(event, Delta):
            if self._partial:
                self._delta(event)
            return
        if isinstance(event, Retried):
            self._waiting = None
        if self._waiting is not None:
            self._reply(self._waiting)
        match event:
            case ReplyReceived(complete=True):
                self._reply(event)
            case ReplyReceived():
                self._waiting = event
            case ToolFinished():
                self._result(event)
            case Steered():
                self._user([_user_block(block) for block in event.content])

    def _line(self, type: str, **fields: Any) -> None:
        self._write({"type": type, **fields, "session_id": self._session_id})

    def _reply(self, reply: ReplyReceived) -> None:
        self._waiting = None
        if not reply.blocks:
            return
        self._open = [call.id for call in reply.message.tool_calls]
        self._line(
            "assistant",
            message={
                "type": "message",
                "role": "assistant",
                "model": reply.model,
                "content": [_assistant_block(block) for block in reply.blocks],
                "stop_reason": reply.message.stop_reason or None,
                "usage": usage_object(reply.usage),
            },
        )

    def _result(self, finished: ToolFinished) -> None:
        """The results of a reply go out together, as they stand in the transcript."""
        if finished.call_id in self._open:
            self._open.remove(finished.call_id)
        result = {
            "type": "tool_result",
            "tool_use_id": finished.call_id,
            "content": _result_content(finished.content),
            "is_error": finished.status != "ok",
        }
        self._results.append(result)
        if not self._open:
            results, self._results = self._results, []
            self._user(results)

    def _user(self, content: list[dict[str, Any]]) -> None:
        self._line("user", message={"role": "user", "content": content})

    def _delta(self, delta: Delta) -> None:
        match delta:
            case TextDelta():
                wire = {"type": "text_delta", "text": delta.text}
            case ThinkingDelta():
                wire = {"type": "thinking_delta", "thinking": delta.text}
            case ToolInputDelta():
                wire = {"type": "input_json_delta", "partial_json": delta.partial_json}
            case _:
                return
        self._line("stream_event", event={"type": "content_block_delta", "delta": wire})


def _assistant_block(block: AssistantBlock) -> dict[str, Any]:
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Thinking():
            return {"type": "thinking", "thinking": block.text, "signature": block.signature}
        case RedactedThinking():
            return {"type": "redacted_thinking", "data": block.data}
        case ToolUse():
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
        case Opaque():
            return block.raw


def _user_block(block: UserBlock) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(block)
    return plain


def _result_content(content: Sequence[ResultBlock]) -> str | list[dict[str, Any]]:
    if len(content) == 1 and isinstance(content[0], Text):
        return content[0].text
    return [_user_block(block) for block in content]
