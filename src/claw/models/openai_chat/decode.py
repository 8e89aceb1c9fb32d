"""Chat Completions replies, streamed or whole, to events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from claw.errors import ModelUnavailable, ProtocolViolation
from claw.models.classify import classify_event
from claw.models.dialect import events_by, events_of
from claw.models.openai_chat.calls import Calls
from claw.models.payloads import DONE, Payload, Payloads
from claw.models.usage_tally import estimated, nothing_sent, openai_usage
from claw.types.events import (
    AssistantEvent,
    MessageStart,
    MessageStop,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from claw.types.messages import Thinking
from claw.types.reply import FINAL
from claw.types.surrogates import Rejoin, mend, mend_all
from claw.types.usage import Usage

__all__ = ["ChatDecoder"]

_STOPS = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop_sequence",
    "tool_calls": "tool_use",
    "tool_call": "tool_use",
    "tool_use": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_length": "model_context_window_exceeded",
    "content_filter": "refusal",
    "refusal": "refusal",
    "sensitive": "refusal",
    "safety": "refusal",
    "recitation": "refusal",
    "prohibited_content": "refusal",
    "blocklist": "refusal",
    "spii": "refusal",
}
"""Finish reasons in the vocabulary of ``Reply``; others keep their name."""

_BROKEN = frozenset(
    {"abort", "aborted", "cancelled", "error", "insufficient_system_resource", "network_error"}
)
"""Finish reasons by which a server says that it failed, not that the model ended."""

_ENDS = frozenset({"stop", "stop_sequence", ""})


class ChatDecoder:
    """``input_estimate`` is asked, in tokens, only where the server reports no usage."""

    def __init__(self, *, input_estimate: Callable[[], int] = nothing_sent) -> None:
        self.done = False
        self._payloads = Payloads()
        self._input_estimate = input_estimate
        self._started = False
        self._model = ""
        self._choice: int | None = None
        self._calls = Calls()
        self._text = Rejoin()
        self._thought = Rejoin()
        self._thinking: list[str] = []
        self._details: list[Any] = []
        self._written: list[str] = []
        self._refused = False
        self._finish = ""
        self._usage: Usage | None = None
        self._ended = False

    def feed(self, chunk: bytes) -> Iterable[AssistantEvent]:
        return events_of(self._payloads.feed(chunk), self._take)

    def end(self) -> Iterator[AssistantEvent]:
        if not self._ended:
            yield from events_of(self._payloads.end(), self._take)
            yield from events_by(self._round_off)

    def _round_off(self, out: list[AssistantEvent]) -> None:
        if self._ended or not self._started:
            return
        self._close(out)
        if self._finish or self._payloads.whole:
            out.append(self._stop())

    def _take(self, payload: Payload, out: list[AssistantEvent]) -> None:
        value = payload.value
        if self.done:
            return
        if value is DONE:
            if self._started:
                self._close(out)
                out.append(self._stop())
            self._ended = self.done = True
            return
        if isinstance(value, list) and value and isinstance(value[0], dict):
            value = value[0]
        if not isinstance(value, dict):
            if payload.name == "error" or self._payloads.whole:
                raise classify_event(value)
            return
        choices = value.get("choices")
        failed = value.get("error") or payload.name == "error" or value.get("object") == "error"
        if self._payloads.whole and not choices and not value.get("usage"):
            if failed or "message" in value or "detail" in value or value.get("type") == "error":
                raise classify_event(value)
            raise ProtocolViolation("the reply has no choices")
        self._start(value, out)
        self._count(value.get("usage"))
        group = value.get("x_groq")
        if isinstance(group, dict):
            self._count(group.get("usage"))
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and self._is_ours(choice):
                self._read(choice, out)
        # "The limit is reached" as an error after `length`: the reply has ended already.
        if failed and not self._finish:
            raise classify_event(value)

    def _start(self, value: dict[str, Any], out: list[AssistantEvent]) -> None:
        model = value.get("model")
        model = mend(model) if isinstance(model, str) else ""
        if not self._started or (model and not self._model):
            id = value.get("id")
            out.append(MessageStart(model, mend(id) if isinstance(id, str) else ""))
            self._started = True
            self._model = model

    def _is_ours(self, choice: dict[str, Any]) -> bool:
        """Of several choices the one that spoke first, which is all that was asked for."""
        index = choice.get("index")
        if not isinstance(index, int):
            return True
        if self._choice is None:
            self._choice = index
        return index == self._choice

    def _read(self, choice: dict[str, Any], out: list[AssistantEvent]) -> None:
        self._count(choice.get("usage"))
        delta, message = choice.get("delta"), choice.get("message")
        if isinstance(message, dict) and (self._payloads.whole or self._is_first(delta)):
            delta = message
        if isinstance(delta, dict):
            self._reason(delta, out)
            self._content(delta.get("content"), out)
            refusal = delta.get("refusal")
            if refusal and isinstance(refusal, str):
                self._refused = True
                self._say(refusal, out)
            for fragment in _list(delta.get("tool_calls")) + _list(delta.get("function_call")):
                grown = self._calls.add(fragment)
                if grown is not None:
                    out.append(ToolInputDelta(grown[0], mend(grown[1])))
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason and reason != "null":
            if reason.lower() in _BROKEN:
                error = choice.get("error") or f"the server ended the reply with {reason!r}"
                raise _as_unavailable(error)
            if _STOPS.get(self._finish.lower()) not in FINAL:
                self._finish = mend(reason)

    def _is_first(self, delta: Any) -> bool:
        """No deltas at all: a server that streams one whole message."""
        return not isinstance(delta, dict) and not self._written and not len(self._calls)

    def _reason(self, delta: dict[str, Any], out: list[AssistantEvent]) -> None:
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            self._details.extend(mend_all(details))
        for name in ("reasoning_content", "reasoning"):
            text = delta.get(name)
            if isinstance(text, dict):
                text = text.get("content") or text.get("text")
            if text and isinstance(text, str):
                self._think(text, out)
                return
        for detail in details if isinstance(details, list) else ():
            if isinstance(detail, dict):
                text = detail.get("text") or detail.get("summary")
                if isinstance(text, str):
                    self._think(text, out)

    def _content(self, content: Any, out: list[AssistantEvent]) -> None:
        if isinstance(content, str):
            self._say(content, out)
            return
        for part in content if isinstance(content, list) else ():
            if isinstance(part, str):
                self._say(part, out)
            elif isinstance(part, dict):
                if part.get("type") == "thinking":
                    for piece in _list(part.get("thinking")):
                        self._think(piece.get("text") if isinstance(piece, dict) else piece, out)
                elif isinstance(part.get("text"), str):
                    self._say(part["text"], out)

    def _say(self, text: str, out: list[AssistantEvent]) -> None:
        if text := self._text.add(text):
            self._settle_thinking(out)
            self._written.append(text)
            out.append(TextDelta(text))

    def _think(self, text: Any, out: list[AssistantEvent]) -> None:
        if isinstance(text, str) and (text := self._thought.add(text)):
            self._thinking.append(text)
            out.append(ThinkingDelta(text))

    def _settle_thinking(self, out: list[AssistantEvent]) -> None:
        text = "".join(self._thinking) + self._thought.end()
        self._thinking.clear()
        if text:
            self._written.append(text)
            out.append(Thinking(text))

    def _close(self, out: list[AssistantEvent]) -> None:
        """Calls only now: some servers send more of them after the finish reason."""
        self._ended = True
        self._settle_thinking(out)
        if rest := self._text.end():
            out.append(TextDelta(rest))
        out.extend(self._calls.uses())
        self._written.extend(self._calls.texts())
        usage = self._usage
        if (usage is None or not usage.context_tokens) and self._written:
            usage = estimated(self._input_estimate(), self._written)
        if usage is not None:
            out.append(usage)

    def _stop(self) -> MessageStop:
        reason = _STOPS.get(self._finish.lower(), self._finish)
        if self._refused:
            reason = "refusal"
        elif len(self._calls):
            reason = "tool_use" if reason in _ENDS else reason
        elif reason == "tool_use":
            reason = self._finish  # calls were announced and none came: shown by its own name
        metadata: dict[str, Any] = {}
        if self._details:
            metadata["reasoning_details"] = _join_details(self._details)
        if extras := self._calls.extras():
            metadata["extra_content"] = mend_all(extras)
        return MessageStop(reason or "stop", metadata)

    def _count(self, usage: Any) -> None:
        """The last figures win."""
        self._usage = openai_usage(usage) or self._usage


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _as_unavailable(error: Any) -> ModelUnavailable:
    named = classify_event(error)
    if isinstance(named, ModelUnavailable):
        return named
    return ModelUnavailable(named.message, status=named.status)


def _join_details(details: list[Any]) -> list[Any]:
    """Pieces of one reasoning block, told by index and type, as one block."""
    joined: list[Any] = []
    for detail in details:
        last = joined[-1] if joined else None
        if (
            isinstance(detail, dict)
            and isinstance(last, dict)
            and detail.get("index") == last.get("index")
            and detail.get("type") == last.get("type")
        ):
            merged = dict(last)
            for name, value in detail.items():
                grows = name in {"text", "summary", "data"} and isinstance(value, str)
                if grows and isinstance(merged.get(name), str):
                    merged[name] += value
                elif value is not None:
                    merged[name] = value
            joined[-1] = merged
        else:
            joined.append(detail)
    return joined
