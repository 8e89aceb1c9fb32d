"""What the engine lends a conversation, so that every run gives the same bytes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec.structs import replace

from claw.models.estimate import estimate_request, estimate_tokens
from claw.ports import ModelClient
from claw.types.events import AssistantEvent, TextDelta
from claw.types.messages import ToolUse
from claw.types.request import Request
from claw.types.usage import Usage
from claw.workspace.clock import SystemClock

__all__ = ["FixedIds", "PortableModel", "StillClock", "portable"]

BEGAN = 1_700_000_000.0  # 2023-11-14T22:13:20Z


class StillClock(SystemClock):
    """Time stands still for what is told and written down; waits and time limits are real."""

    def now(self) -> float:
        return BEGAN

    def monotonic(self) -> float:
        return 0.0

    def jitter(self) -> float:
        return 0.5


class FixedIds:
    """``ports.Ids`` for a session that is kept nowhere: its id may be any."""

    def session(self) -> str:
        return "session"


class PortableModel:
    """A model whose estimated usage is the same on every machine.

    ``names`` maps the machine's own paths to what is counted in their place; the system
    prompt, which tells of the machine, is not counted.
    """

    def __init__(self, model: ModelClient, names: Mapping[str, str]) -> None:
        self._model = model
        self._names = names

    @property
    def window(self) -> int | None:
        return self._model.window

    def cost(self, usage: Usage, model: str) -> float | None:
        return self._model.cost(usage, model)

    async def stream(self, request: Request) -> AsyncGenerator[AssistantEvent, None]:
        said = ""
        async with aclosing(self._model.stream(request)) as events:
            async for event in events:
                match event:
                    case Usage(estimated=True):
                        yield self._counted(event, request, said)
                        continue
                    case TextDelta():
                        said += event.text
                    case ToolUse():
                        said += event.name + repr(event.input)
                yield event

    def _counted(self, usage: Usage, request: Request, said: str) -> Usage:
        longer = estimate_tokens(said) - estimate_tokens(portable(said, self._names))
        return replace(
            usage,
            input_tokens=estimate_request(self._portable(request)),
            output_tokens=usage.output_tokens - longer,
        )

    def _portable(self, request: Request) -> Request:
        plain = msgspec.to_builtins(replace(request, system=""))
        return msgspec.convert(_renamed(plain, self._names), Request)


def portable(text: str, names: Mapping[str, str]) -> str:
    """The text with names in place of the machine's own paths."""
    for old in sorted(names, key=len, reverse=True):
        if old not in ("", "/"):  # the root stands in every path
            text = text.replace(old, names[old])
    return text


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    match value:
        case str():
            return portable(value, names)
        case dict():
            return {_renamed(key, names): _renamed(item, names) for key, item in value.items()}
        case list() | tuple():
            return [_renamed(item, names) for item in value]
        case _:
            return value
