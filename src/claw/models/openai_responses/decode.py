"""Responses API replies, streamed or whole, to events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from claw.errors import ProtocolViolation
from claw.models.classify import classify_event
from claw.models.dialect import events_by, events_of
from claw.models.openai_responses.items import Item, Items, kind_of
from claw.models.payloads import DONE, Payload, Payloads
from claw.models.tool_input import parse_input
from claw.models.usage_tally import estimated, nothing_sent, openai_usage
from claw.types.events import (
    AssistantEvent,
    MessageStart,
    MessageStop,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from claw.types.messages import Opaque, Thinking, ToolUse
from claw.types.surrogates import mend, mend_all
from claw.types.usage import Usage

__all__ = ["CALL_FIELDS", "MESSAGE", "PROVIDER", "ResponsesDecoder"]

PROVIDER = "openai"
"""``Opaque.provider`` of the items that go back verbatim."""

MESSAGE = "claw_message"
"""Type of the marker after the text of a message that has more than text: its ``phase``,
and for each of its ``parts`` the ``length`` in characters and the ``annotations``."""

CALL_FIELDS = ("namespace", "caller")
"""What goes back with a call besides id, name and arguments."""

_ARGUMENTS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Kinds of items that are calls to the client, and where their arguments stand."""

_TEXTS = {"message": ("content",), "reasoning": ("summary", "content")}
"""Kinds of items with lists of texts, and where these stand."""

_PIECES = {
    "response.output_text": ("message", "content", "content_index"),
    "response.refusal": ("message", "content", "content_index"),
    "response.reasoning_summary_text": ("reasoning", "summary", "summary_index"),
    "response.reasoning_text": ("reasoning", "content", "content_index"),
    "response.function_call_arguments": ("function_call", "arguments", ""),
    "response.custom_tool_call_input": ("custom_tool_call", "input", ""),
}
"""Events with ``.delta`` and ``.done``: the kind of item, the field, and its counter."""

_FAILURES = frozenset({"error", "response.error", "response.failed"})
_ENDS = frozenset(
    {"response.completed", "response.incomplete", "response.cancelled", "response.done"}
)
_INCOMPLETE = {
    "max_output_tokens": "max_tokens",
    "max_tokens": "max_tokens",
    "content_filter": "refusal",
}


class ResponsesDecoder:
    """``input_estimate`` is asked, in tokens, only where the server reports no usage."""

    def __init__(self, *, input_estimate: Callable[[], int] = nothing_sent) -> None:
        self.done = False
        self._payloads = Payloads()
        self._input_estimate = input_estimate
        self._items = Items()
        self._started: MessageStart | None = None
        self._usage: Usage | None = None
        self._refused = False
        self._cut_call = False
        self._written: list[str] = []
        self._call_fields: dict[str, Any] = {}
        self._ended = False

    def feed(self, chunk: bytes) -> Iterable[AssistantEvent]:
        return events_of(self._payloads.feed(chunk), self._take)

    def end(self) -> Iterator[AssistantEvent]:
        if not self._ended:
            yield from events_of(self._payloads.end(), self._take)
            yield from events_by(self._cut_short)

    def _take(self, payload: Payload, out: list[AssistantEvent]) -> None:
        value = payload.value
        if self.done:
            return
        if value is DONE:
            return  # only the response's own end says that it is complete
        if not isinstance(value, dict):
            if payload.name == "error" or self._payloads.whole:
                raise classify_event(value)
            return
        kind = value.get("type")
        kind = kind if isinstance(kind, str) and kind else payload.name
        if kind in _FAILURES or (value.get("error") and not kind.startswith("response.")):
            raise classify_event(value)
        if self._payloads.whole:
            if not isinstance(value.get("output"), list):
                if "message" in value or "detail" in value:
                    raise classify_event(value)
                raise ProtocolViolation("the reply is no response of the Responses API")
            self._finish(value, "", out)
            return
        response = value.get("response")
        if isinstance(response, dict):
            self._start(response, out)
        if kind in _ENDS:
            self._finish(response if isinstance(response, dict) else {}, kind, out)
        elif kind == "response.output_item.added":
            self._begin(value, out)
        elif kind == "response.output_item.done":
            self._item_done(value, out)
        else:
            stem, _, step = kind.rpartition(".")
            if stem in _PIECES and step in {"delta", "done"}:
                self._piece(value, stem, step, out)

    # The response

    def _start(self, response: dict[str, Any], out: list[AssistantEvent]) -> None:
        model, id = response.get("model"), response.get("id")
        start = MessageStart(
            mend(model) if isinstance(model, str) else "",
            mend(id) if isinstance(id, str) else "",
        )
        before = self._started
        if before is None or (start.model and start.model != before.model):
            self._started = start
            out.append(start)

    def _finish(self, response: dict[str, Any], kind: str, out: list[AssistantEvent]) -> None:
        self._start(response, out)
        status = response.get("status")
        if response.get("error") or status == "failed":
            raise classify_event(response)
        output = _dicts(response.get("output"))
        for raw, known in zip(output, self._items.of_response(output), strict=True):
            item = known or self._open(raw, kind_of(raw), None)
            self._complete(item, raw, out)
        self._usage = openai_usage(response.get("usage")) or self._usage
        self._round_off(out)
        metadata = {"calls": self._call_fields} if self._call_fields else {}
        out.append(MessageStop(self._reason(response, kind, status), metadata))
        self.done = True

    def _reason(self, response: dict[str, Any], kind: str, status: Any) -> str:
        if kind == "response.incomplete" or status == "incomplete":
            details = response.get("incomplete_details")
            reason = details.get("reason") if isinstance(details, dict) else None
            reason = mend(reason) if isinstance(reason, str) and reason else "incomplete"
            return _INCOMPLETE.get(reason, reason)
        ended = kind in {"response.completed", "response.done"} or not isinstance(status, str)
        if not ended and status not in {"completed", "complete", ""}:
            return mend(status)  # queued, cancelled: shown by name
        if self._refused:
            return "refusal"
        if self._cut_call:
            return "max_tokens"
        return "tool_use" if self._items.calls else "stop"

    def _cut_short(self, out: list[AssistantEvent]) -> None:
        if not self._ended and (self._started or len(self._items)):
            self._round_off(out)

    def _round_off(self, out: list[AssistantEvent]) -> None:
        """Close what is open, in order, and count."""
        self._ended = True
        for item in self._items.open_items():
            self._close(item, out)
        usage = self._usage
        if (usage is None or not usage.context_tokens) and any(self._written):
            usage = estimated(self._input_estimate(), self._written)
        if usage is not None:
            out.append(usage)

    # Items

    def _begin(self, value: dict[str, Any], out: list[AssistantEvent]) -> None:
        raw = value.get("item")
        if isinstance(raw, dict):
            self._open(raw, kind_of(raw), value.get("output_index"))

    def _open(self, raw: dict[str, Any], kind: str, index: object) -> Item:
        return self._items.begin(raw, kind, index, is_call=kind in _ARGUMENTS)

    def _item_done(self, value: dict[str, Any], out: list[AssistantEvent]) -> None:
        raw = value.get("item")
        if not isinstance(raw, dict):
            return
        kind, index = kind_of(raw), value.get("output_index")
        item = self._items.find(kind, index, raw.get("id"))
        if item is None or (item.closed and raw.get("id") != item.id):
            item = self._open(raw, kind, index)
        self._complete(item, raw, out)

    def _piece(
        self, value: dict[str, Any], stem: str, step: str, out: list[AssistantEvent]
    ) -> None:
        kind, field, counter = _PIECES[stem]
        index, id = value.get("output_index"), value.get("item_id")
        item = self._items.find(kind, index, id)
        if item is None:  # a server that does not say that an item begins
            item = self._open({"type": kind, "id": id} if id else {"type": kind}, kind, index)
        if item.closed:
            return
        if step == "delta":
            self._say(item, field, value.get(counter), value.get("delta"), out)
        else:
            name = {"response.refusal": "refusal"}.get(stem, "text")
            whole = value.get(field if kind in _ARGUMENTS else name)
            self._say(item, field, value.get(counter), whole, out, whole=True)
        if stem == "response.refusal":
            self._refused = True

    def _say(
        self,
        item: Item,
        field: str,
        at: object,
        text: Any,
        out: list[AssistantEvent],
        *,
        whole: bool = False,
    ) -> None:
        """Add to a text of an item, and show what is new of it."""
        if not isinstance(text, str) or not text:
            return
        part, is_another = item.part(field, at)
        text = part.complete(text) if whole else part.add(text)
        if text:
            apart = "\n" if is_another and item.kind == "reasoning" else ""
            self._show(item, apart + text, out)

    def _show(self, item: Item, text: str, out: list[AssistantEvent]) -> None:
        if item.kind == "message":
            self._items.put(item, TextDelta(text), out)
        elif item.kind == "reasoning":
            out.append(ThinkingDelta(text))
        elif item.call is not None:
            out.append(ToolInputDelta(item.call, text))

    def _complete(self, item: Item, raw: dict[str, Any], out: list[AssistantEvent]) -> None:
        """The item as a whole: say what has not been said of it, and close it."""
        if item.closed:
            return
        item.whole = True
        begun, item.raw = item.raw, raw
        if item.kind in _ARGUMENTS:
            item.raw = {**begun, **{name: v for name, v in raw.items() if v is not None}}
            field = _ARGUMENTS[item.kind]
            self._say(item, field, 0, _as_text(raw.get(field)), out, whole=True)
        else:
            for field in _TEXTS.get(item.kind, ()):
                for at, part in enumerate(_parts(raw, field)):
                    if part.get("type") == "refusal":
                        self._refused = True
                    text = part.get("text") or part.get("refusal")
                    self._say(item, field, at, text, out, whole=True)
        self._close(item, out)

    def _close(self, item: Item, out: list[AssistantEvent]) -> None:
        for part in item.parts.values():
            if rest := part.end():
                self._show(item, rest, out)
        self._written.extend(part.text for part in item.parts.values())
        for block in self._blocks(item):
            self._items.put(item, block, out)
        self._items.close(item, out)

    def _blocks(self, item: Item) -> list[AssistantEvent]:
        match item.kind:
            case "message":
                marker = _marker(item) if item.whole else None
                return [Opaque(PROVIDER, marker)] if marker else []
            case "reasoning":
                text = "\n".join(item.texts("content") or item.texts("summary"))
                blocks: list[AssistantEvent] = [Thinking(text)] if text else []
                # What is neither encrypted nor in the clear is known to the server alone,
                # and it has been asked to forget it.
                if item.whole and (item.raw.get("encrypted_content") or item.raw.get("content")):
                    blocks.append(Opaque(PROVIDER, _verbatim(item.raw)))
                return blocks
            case "function_call" | "custom_tool_call":
                return self._call(item)
            case _:
                return [Opaque(PROVIDER, _verbatim(item.raw))] if item.kind else []

    def _call(self, item: Item) -> list[AssistantEvent]:
        raw, field = item.raw, _ARGUMENTS[item.kind]
        self._cut_call = self._cut_call or raw.get("status") == "incomplete"
        name, id = raw.get("name"), raw.get("call_id") or raw.get("id")
        arguments = (_as_text(raw.get(field)) if item.whole else "") or "".join(item.texts(field))
        if extra := {name: mend_all(raw[name]) for name in CALL_FIELDS if raw.get(name)}:
            self._call_fields[str(item.call)] = extra
        use = ToolUse(
            mend(id) if isinstance(id, str) else "",
            mend(name) if isinstance(name, str) else "",
            *parse_input(arguments),
        )
        self._written.append(use.name)
        return [use]


def _parts(raw: dict[str, Any], field: str) -> list[dict[str, Any]]:
    value = raw.get(field)
    if isinstance(value, str):
        return [{"text": value}]
    return _dicts(value)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def _as_text(arguments: Any) -> str:
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _marker(item: Item) -> dict[str, Any] | None:
    """What a message has besides its text, None where there is nothing."""
    given = dict(enumerate(_parts(item.raw, "content")))
    parts: list[dict[str, Any]] = []
    for _, at in sorted(item.parts):
        annotations = given.get(at, {}).get("annotations")
        length = len(item.parts["content", at].text)
        parts.append({"length": length, "annotations": mend_all(annotations or [])})
    phase = item.raw.get("phase")
    if not any(part["length"] for part in parts):
        return None
    if not phase and not any(part["annotations"] for part in parts):
        return None
    return {"type": MESSAGE, "phase": mend(str(phase or "")), "parts": parts}


def _verbatim(raw: dict[str, Any]) -> dict[str, Any]:
    """An item as it goes back. Reasoning goes without what is only for reading."""
    kept: dict[str, Any] = mend_all(raw)
    if raw.get("type") == "reasoning":
        kept.pop("status", None)
        if not isinstance(kept.get("summary"), list):
            kept["summary"] = []  # required, also where there is none
        if not kept.get("content"):
            kept.pop("content", None)
    return kept
