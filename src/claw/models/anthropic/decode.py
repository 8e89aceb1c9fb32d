"""Messages API replies, streamed or whole, to events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from claw.errors import ProtocolViolation
from claw.models.classify import classify_event
from claw.models.dialect import events_by, events_of
from claw.models.payloads import DONE, Payload, Payloads
from claw.models.tool_input import parse_input
from claw.models.usage_tally import count, estimated, nothing_sent
from claw.types.events import (
    AssistantEvent,
    MessageStart,
    MessageStop,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from claw.types.messages import Opaque, RedactedThinking, Thinking, ToolUse
from claw.types.reply import FINAL
from claw.types.surrogates import Rejoin, mend, mend_all
from claw.types.usage import Usage

__all__ = ["CITATIONS", "PROVIDER", "AnthropicDecoder"]

PROVIDER = "anthropic"
"""``Opaque.provider`` of the blocks that go back verbatim."""

CITATIONS = "claw_citations"
"""Type of the marker after a text: ``citations`` belong to its last ``length`` characters."""

_FIGURES = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class _Block:
    """A content block while it arrives. ``call`` is its number among the reply's calls."""

    def __init__(self, raw: dict[str, Any], call: int) -> None:
        kind = raw.get("type")
        self.type = kind if isinstance(kind, str) and kind else "text"
        self.raw = raw
        self.call = call
        self.text: list[str] = []
        self.json: list[str] = []
        self.signature = str(raw.get("signature") or "")
        citations = raw.get("citations")
        self.citations: list[Any] = list(citations) if isinstance(citations, list) else []
        self.rejoin = Rejoin()


class AnthropicDecoder:
    """``input_estimate`` is asked, in tokens, only where the server reports no usage."""

    def __init__(self, *, input_estimate: Callable[[], int] = nothing_sent) -> None:
        self.done = False
        self._payloads = Payloads()
        self._blocks: dict[int, _Block] = {}
        self._next_call = 0
        self._figures: dict[str, int] = {}
        self._input_estimate = input_estimate
        self._written: list[str] = []
        self._stop = ""
        self._metadata: dict[str, Any] = {}
        self._ended = False

    def feed(self, chunk: bytes) -> Iterable[AssistantEvent]:
        return events_of(self._payloads.feed(chunk), self._take)

    def end(self) -> Iterator[AssistantEvent]:
        if not self._ended:
            yield from events_of(self._payloads.end(), self._take)
            yield from events_by(self._round_off)

    def _round_off(self, out: list[AssistantEvent]) -> None:
        if self._ended:
            return
        if self._stop:  # the reason came, so all content had come before it
            self._finish(out)
        elif self._blocks or self._figures:
            self._close_all(out)
            self._count(out)

    def _take(self, payload: Payload, out: list[AssistantEvent]) -> None:
        value = payload.value
        if self.done or value is DONE:
            return
        if not isinstance(value, dict):
            if payload.name == "error" or self._payloads.whole:
                raise classify_event(value)
            return
        kind = value.get("type") or payload.name
        if kind == "error" or ("error" in value and value["error"] and kind != "message_delta"):
            raise classify_event(value)
        match kind:
            case "content_block_delta":  # most events are
                self._extend(value, out)
            case "message_start":
                self._start(value.get("message"), out)
            case "content_block_start":
                self._open(value, out)
            case "content_block_stop":
                self._close(self._index(value), out)
            case "message_delta":
                self._message_delta(value, out)
            case "message_stop":
                self._finish(out)
            case "message":
                self._whole(value, out)
            case _:
                if self._payloads.whole:
                    raise ProtocolViolation("the reply is no message of the Messages API")

    # The message

    def _start(self, message: Any, out: list[AssistantEvent]) -> None:
        if not isinstance(message, dict):
            return
        out.append(
            MessageStart(mend(str(message.get("model") or "")), mend(str(message.get("id") or "")))
        )
        self._tally(message.get("usage"))
        if self._figures:
            out.append(self._usage())
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for block in content if isinstance(content, list) else ():
            self._whole_block(block, out)

    def _message_delta(self, value: dict[str, Any], out: list[AssistantEvent]) -> None:
        delta = value.get("delta")
        if isinstance(delta, dict):
            self._ending(delta)
        self._tally(value.get("usage"))

    def _ending(self, source: dict[str, Any]) -> None:
        if self._stop not in FINAL:
            self._stop = str(source.get("stop_reason") or "") or self._stop
        for name in ("stop_sequence", "stop_details", "container"):
            if source.get(name) is not None:
                self._metadata[name] = mend_all(source[name])

    def _whole(self, message: dict[str, Any], out: list[AssistantEvent]) -> None:
        self._start(message, out)
        self._ending(message)
        self._finish(out)

    def _finish(self, out: list[AssistantEvent]) -> None:
        self._close_all(out)
        self._count(out)
        reason = self._stop or ("tool_use" if self._next_call else "end_turn")
        out.append(MessageStop(mend(reason), self._metadata))
        self.done = True

    def _count(self, out: list[AssistantEvent]) -> None:
        self._ended = True
        usage = self._usage()
        if not usage.context_tokens and self._written:
            usage = estimated(self._input_estimate(), self._written)
        out.append(usage)

    def _tally(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        for name in _FIGURES:
            if (tokens := count(usage, name)) is not None:
                self._figures[name] = tokens
        split = usage.get("cache_creation")
        if isinstance(split, dict) and count(usage, "cache_creation_input_tokens") is None:
            self._figures["cache_creation_input_tokens"] = sum(
                count(split, name) or 0 for name in split
            )

    def _usage(self) -> Usage:
        sent, written, read, made = (self._figures.get(name, 0) for name in _FIGURES)
        return Usage(sent, written, read, made)

    # Blocks

    def _index(self, value: dict[str, Any]) -> int:
        """The block that an event is about: without an index, the newest that is open."""
        index = value.get("index")
        if isinstance(index, int):
            return index
        return max(self._blocks, default=-1)

    def _open(self, value: dict[str, Any], out: list[AssistantEvent]) -> _Block | None:
        raw = value.get("content_block")
        if not isinstance(raw, dict):
            return None
        index = value.get("index")
        if not isinstance(index, int):
            index = max(self._blocks, default=-1) + 1
        self._close(index, out)
        block = _Block(raw, self._next_call)
        if block.type == "tool_use":
            self._next_call += 1
        self._blocks[index] = block
        self._say(block, str(raw.get("text") or ""), out)
        if block.type == "thinking":
            self._think(block, str(raw.get("thinking") or ""), out)
        return block

    def _extend(self, value: dict[str, Any], out: list[AssistantEvent]) -> None:
        delta = value.get("delta")
        if not isinstance(delta, dict):
            return
        kind = delta.get("type")
        block = self._blocks.get(self._index(value))
        if block is None:  # a server that skips content_block_start
            missing = {"text_delta": "text", "thinking_delta": "thinking"}.get(str(kind))
            if missing is None:
                return
            block = self._open({**value, "content_block": {"type": missing}}, out)
            assert block is not None
        match kind:
            case "text_delta":
                self._say(block, str(delta.get("text") or ""), out)
            case "thinking_delta":
                self._think(block, str(delta.get("thinking") or ""), out)
            case "signature_delta":
                block.signature += str(delta.get("signature") or "")
            case "input_json_delta":
                self._argue(block, str(delta.get("partial_json") or ""), out)
            case "citations_delta":
                block.citations.append(delta.get("citation"))
            case _:  # deltas of blocks that go back verbatim, such as compaction
                for name, part in delta.items():
                    if name != "type" and isinstance(part, str):
                        block.raw = {**block.raw, name: (block.raw.get(name) or "") + part}

    def _say(self, block: _Block, text: str, out: list[AssistantEvent]) -> None:
        if block.type == "text" and (text := block.rejoin.add(text)):
            block.text.append(text)
            out.append(TextDelta(text))

    def _think(self, block: _Block, text: str, out: list[AssistantEvent]) -> None:
        if text := block.rejoin.add(text):
            block.text.append(text)
            out.append(ThinkingDelta(text))

    def _argue(self, block: _Block, part: str, out: list[AssistantEvent]) -> None:
        if not part:
            return
        block.json.append(part)
        if block.type == "tool_use":
            out.append(ToolInputDelta(block.call, mend(part)))

    def _close_all(self, out: list[AssistantEvent]) -> None:
        for index in sorted(self._blocks):
            self._close(index, out)

    def _whole_block(self, raw: Any, out: list[AssistantEvent]) -> None:
        self._open({"content_block": raw, "index": -1}, out)
        self._close(-1, out)

    def _close(self, index: int, out: list[AssistantEvent]) -> None:
        block = self._blocks.pop(index, None)
        if block is None:
            return
        rest = block.rejoin.end()
        text = "".join(block.text) + rest
        self._written.extend((text, *block.json))
        match block.type:
            case "text":
                if rest:
                    out.append(TextDelta(rest))
                if block.citations and text:
                    marker = {"type": CITATIONS, "length": len(text)}
                    out.append(Opaque(PROVIDER, {**marker, "citations": mend_all(block.citations)}))
            case "thinking":
                if text or block.signature:
                    out.append(Thinking(text, mend(block.signature)))
            case "redacted_thinking":
                if data := block.raw.get("data"):
                    out.append(RedactedThinking(mend(str(data))))
            case "tool_use":
                out.append(self._call(block))
            case _:
                out.append(Opaque(PROVIDER, self._verbatim(block)))

    def _call(self, block: _Block) -> ToolUse:
        text = "".join(block.json)
        given = block.raw.get("input")
        if not text and given and isinstance(given, dict):
            parsed: dict[str, Any] = mend_all(given)
            raw_input = None
        else:
            parsed, raw_input = parse_input(text or (given if isinstance(given, str) else ""))
        name = mend(str(block.raw.get("name") or ""))
        return ToolUse(mend(str(block.raw.get("id") or "")), name, parsed, raw_input)

    def _verbatim(self, block: _Block) -> dict[str, Any]:
        raw: dict[str, Any] = mend_all(block.raw)
        if block.json:
            raw["input"] = parse_input("".join(block.json))[0]
        return raw
