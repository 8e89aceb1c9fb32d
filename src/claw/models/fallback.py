"""A chain of models: where one is not available, the next one answers.

Whoever asks may repeat a request that failed, and does so after a while. So the first
failure of a model is passed on, and only the second one in a row moves on to the next
model, within the same request. It moves on at once where waiting is no use: the server
is overloaded, names a long wait, the account's quota is spent, or the model is not there.
Everything else (a wrong key, a request that is refused or too long) would hide a
mistake, and is passed on.

When the user speaks next, the first model is asked again. Where no model is left, the
last one's error says what became of the others.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

import msgspec
from msgspec.structs import replace

from claw.errors import ModelError, ModelUnavailable, RequestRejected
from claw.ports import ModelClient
from claw.types.events import AssistantEvent, MessageStart, Notice, WireChunk
from claw.types.messages import Message, ToolResult, UserMessage
from claw.types.request import Request
from claw.types.usage import Usage

__all__ = ["FallbackModel", "Link"]

PATIENCE = 30.0
"""Seconds; a server that asks for more is not waited for where another model can answer."""

OVERLOADED = 529
GONE = frozenset({402, 404, 429})
"""Of refusals that no repetition cures: no credit, no such model, the quota is spent."""


class Link(msgspec.Struct, frozen=True):
    """A model of the chain: ``model`` is the name that its requests carry."""

    client: ModelClient
    model: str


class FallbackModel:
    """A ``ModelClient`` around several; requests carry the first one's name.

    ``tell`` gets a notice for every change. A reply of another model than the first
    says so in its ``MessageStart``. Needs at least one link.
    """

    def __init__(self, links: Sequence[Link], tell: Callable[[Notice], None]) -> None:
        self._links = tuple(links)
        self._tell = tell
        self._at = 0
        self._failures = 0  # in a row, of the model that is asked now
        self._given_up: list[str] = []  # why, by model, since the user spoke
        self._last: tuple[Message, ...] = ()

    @property
    def window(self) -> int | None:
        return self._links[self._at].client.window

    def cost(self, usage: Usage, model: str) -> float | None:
        return self._links[self._at].client.cost(usage, model)

    async def stream(self, request: Request) -> AsyncGenerator[AssistantEvent, None]:
        """Raises what the models raise: the last one's error, where none answers, with the
        others' in its message."""
        if self._speaks_anew(request.messages):
            self._move(0, "")
        self._last = request.messages
        while True:
            heard = False
            try:
                async with aclosing(self._ask(request)) as events:
                    async for event in events:
                        heard = heard or not isinstance(event, WireChunk)
                        yield event
            except ModelError as error:
                if self._at + 1 == len(self._links):
                    raise self._with_the_others(error) from error.__cause__
                self._failures += isinstance(error, ModelUnavailable)
                if not self._gives_up(error):
                    raise
                self._move(self._at + 1, error.message)
                if heard:  # half a reply is out: only a new request can replace it
                    raise
            else:
                self._failures = 0
                return

    async def _ask(self, request: Request) -> AsyncGenerator[AssistantEvent, None]:
        """The current model's stream; of another one than the first, it begins with its name."""
        link, unnamed = self._links[self._at], self._at > 0
        if unnamed:
            request = replace(request, sampling=replace(request.sampling, model=link.model))
        async with aclosing(link.client.stream(request)) as events:
            async for event in events:
                if unnamed and not isinstance(event, WireChunk):
                    unnamed = False
                    yield MessageStart(asked=link.model)
                yield event

    def _speaks_anew(self, messages: tuple[Message, ...]) -> bool:
        """Whether the user said something that the request before did not have."""
        last = messages[-1] if messages else None
        if not isinstance(last, UserMessage) or messages == self._last:
            return False
        return not any(isinstance(block, ToolResult) for block in last.content)

    def _gives_up(self, error: ModelError) -> bool:
        match error:
            case ModelUnavailable():
                asks_too_much = (error.retry_after or 0.0) > PATIENCE
                return self._failures > 1 or asks_too_much or error.status == OVERLOADED
            case RequestRejected():
                return type(error) is RequestRejected and error.status in GONE
            case _:
                return False

    def _with_the_others(self, error: ModelError) -> ModelError:
        others = f" (before that, {'; '.join(self._given_up)})"
        if self._given_up and not error.message.endswith(others):
            error.message += others
            error.args = (error.message,)
        return error

    def _move(self, to: int, why: str) -> None:
        before = self._links[self._at].model
        self._given_up = [*self._given_up, f"`{before}`: {why}"] if why else []
        if to != self._at:
            after = self._links[to].model
            text = f"`{before}` does not answer ({why}); `{after}` is asked instead."
            self._tell(
                Notice("fallback", "warning", text)
                if why
                else Notice("fallback", "info", f"`{after}` is asked again.")
            )
        self._at, self._failures = to, 0
