"""Chat Completions with tools for models that cannot call any; see ``schema_tools``."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

from claw.models.dialect import SCHEMA_CHAT
from claw.models.openai_chat.client import OpenAIChatClient
from claw.models.schema_tools import plain_message, plain_system, reply_schema, schema_decoder
from claw.models.wire_text import Memo
from claw.types.events import AssistantEvent, MessageStop
from claw.types.request import Request

__all__ = ["SchemaChatClient"]


class SchemaChatClient(OpenAIChatClient):
    """Takes and gives ordinary calls; the server sees none. Arguments as of its parent."""

    dialect = SCHEMA_CHAT
    _plain: Memo | None = None

    def _body(self, request: Request) -> dict[str, Any]:
        body = super()._body(self._without_calls(request))
        if request.tools:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {
                    "name": "reply",
                    "strict": True,
                    "schema": reply_schema(request.tools),
                },
            }
        return body

    def _without_calls(self, request: Request) -> Request:
        """The same messages become the same objects, so that they are encoded once."""
        self._plain = self._plain or Memo()
        self._plain.begin()
        messages = (self._plain.of(m, "", partial(plain_message, m)) for m in request.messages)
        tools = request.tools
        system = plain_system(request.system, tools) if tools else request.system
        return Request(system, tuple(messages), (), request.sampling)

    async def stream(self, request: Request) -> AsyncGenerator[AssistantEvent, None]:
        decoder = schema_decoder(request)
        stopped = not request.tools
        async with aclosing(super().stream(request)) as events:
            async for event in events:
                stopped |= isinstance(event, MessageStop)
                for made in decoder.feed(event) if request.tools else (event,):
                    yield made
        if not stopped:
            for made in decoder.cut():
                yield made
