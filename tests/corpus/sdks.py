"""The vendors' own clients as oracles: the same bytes in, what they say of them out."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2
import openai
from msgspec.structs import replace
from openai.lib.streaming.chat import ChatCompletionStreamState

from tests.corpus.recorded import Said, anthropic_said, chat_said, responses_said, sealed

__all__ = ["Oracle"]


class Oracle:
    """Both clients, over a transport that answers with what ``read`` was given."""

    def __init__(self) -> None:
        self._answer = (200, {"content-type": "text/event-stream"}, b"")
        transport = httpx2.MockTransport(self._respond)
        self._anthropic = anthropic.Anthropic(
            api_key="k",
            base_url="http://127.0.0.1",
            max_retries=0,
            http_client=anthropic.DefaultHttpxClient(transport=transport),
        )
        self._openai = openai.OpenAI(
            api_key="k",
            base_url="http://127.0.0.1/v1",
            max_retries=0,
            http_client=openai.DefaultHttpxClient(transport=transport),
        )

    def read(self, dialect: str, status: int, headers: dict[str, str], body: bytes) -> Said | None:
        """None where the client raised, or gave no message."""
        self._answer = (status, headers, body)
        whole = body.lstrip()[:1] in (b"{", b"[", b'"', b"<")
        try:
            value = self._call(dialect, whole)
        except Exception:  # of any type: their readers fail in many ways
            return None
        match dialect:
            case "anthropic":
                return anthropic_said(value)
            case "openai-chat":
                return chat_said(value)
            case _:
                said = responses_said(value)
                # The last event has the reasoning encrypted anew; clients send the item's.
                return replace(said, signatures=sealed(body) or said.signatures)

    def close(self) -> None:
        self._anthropic.close()
        self._openai.close()

    def _respond(self, request: httpx2.Request) -> httpx2.Response:
        status, headers, body = self._answer
        return httpx2.Response(status, headers=headers, content=body)

    def _call(self, dialect: str, whole: bool) -> dict[str, Any]:
        value: Any
        match dialect:
            case "anthropic":
                value = self._message(whole)
            case "openai-chat":
                value = self._completion(whole)
            case _:
                value = self._response(whole)
        dumped: dict[str, Any] = value.model_dump(warnings=False)
        return dumped

    def _message(self, whole: bool) -> object:
        messages = self._anthropic.beta.messages
        if whole:
            return messages.create(model="m", max_tokens=1, messages=[])
        with messages.stream(model="m", max_tokens=1, messages=[]) as stream:
            return stream.get_final_message()

    def _completion(self, whole: bool) -> object:
        completions = self._openai.chat.completions
        if whole:
            return completions.create(model="m", messages=[])
        state = ChatCompletionStreamState()
        for chunk in completions.create(model="m", messages=[], stream=True):
            state.handle_chunk(chunk)
        return state.current_completion_snapshot

    def _response(self, whole: bool) -> object:
        if whole:
            return self._openai.responses.create(model="m", input="x")
        *_, last = self._openai.responses.create(model="m", input="x", stream=True)
        return getattr(last, "response", None)
