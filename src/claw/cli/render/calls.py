"""The calls that are on their way, each with the input that it really runs with."""

from __future__ import annotations

from msgspec.structs import replace

from claw.types.entries import Event, ReplyReceived, ToolIntended
from claw.types.messages import ToolUse

__all__ = ["Calls"]


class Calls:
    """Hears every event. A hook or a person may have changed what the model asked for."""

    def __init__(self) -> None:
        self._by_id: dict[str, ToolUse] = {}

    def emit(self, event: Event) -> None:
        match event:
            case ReplyReceived():
                self._by_id = {call.id: call for call in event.message.tool_calls}
            case ToolIntended(input=dict() as input) if event.call_id in self._by_id:
                self._by_id[event.call_id] = replace(self._by_id[event.call_id], input=input)

    def get(self, call_id: str) -> ToolUse | None:
        return self._by_id.get(call_id)
