"""Tools for models that cannot call any: a reply bound to a JSON schema; pure.

The tools are described in the system prompt, and the server makes the model write one
of two objects, ``{"tool": NAME, "input": {...}}`` or ``{"answer": TEXT}``. Earlier calls
and results stand in the history in the same form. What comes out of the decoder are
ordinary events, so nobody else can tell the difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from claw.models.payloads import parse_json
from claw.models.schema import RULES, fit_schema
from claw.models.tool_input import parse_input
from claw.models.wire_text import result_text, to_bytes
from claw.types.events import (
    AssistantEvent,
    MessageStop,
    Notice,
    TextDelta,
    ThinkingDelta,
)
from claw.types.messages import (
    AssistantMessage,
    Message,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    UserBlock,
    UserMessage,
)
from claw.types.reply import ENDED_WELL
from claw.types.request import Request
from claw.types.surrogates import Rejoin
from claw.types.tools import ToolSpec

__all__ = ["SchemaDecoder", "plain_message", "plain_system", "reply_schema", "schema_decoder"]

_RULES = """\
# How to reply

Every reply is one JSON object and nothing else. To use a tool, write a call:

{"tool": "NAME", "input": {...}}

You then get its result as {"result": "..."} or {"error": "..."}, and may call again. One call in a
reply. When you are done, or need no tool, write your answer to the user:

{"answer": "..."}

# Tools
"""

_ANSWER = r'\s*\{\s*"answer"\s*:\s*"'
_OTHER_KEY = r'\s*\{\s*"(?!answer")[^"]*"'
_TOOL = r'"tool"\s*:\s*"([^"\\]+)"'
_CHARACTERS = r'(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))+'
_HALF_ESCAPE = r"\\(?:u[0-9a-fA-F]{0,3})?"
_THINK, _END_THINK = "<think>", "</think>"
_LONGEST_HEAD = 1_000
"""Characters in which an answer must have begun, to be shown while it comes."""


def plain_system(system: str, tools: Sequence[ToolSpec]) -> str:
    """The system prompt with the tools and the rules of the game behind it."""
    about = (
        f"\n## {t.name}\n\n{t.description.strip()}\ninput: {to_bytes(t.input_schema).decode()}\n"
        for t in tools
    )
    return "".join((system.rstrip(), "\n\n" if system.strip() else "", _RULES, *about))


def plain_message(message: Message) -> Message:
    """A message without native calls and results; what the user says stays as it is."""
    if isinstance(message, AssistantMessage):
        said = [line for block in message.content if (line := _said(block))]
        return replace(message, content=(Text("\n".join(said)),) if said else ())
    content: list[UserBlock] = []
    for block in message.content:
        if isinstance(block, ToolResult):
            content.append(Text(_result(block)))
            content += [b for b in block.content if not isinstance(b, Text)]
        else:
            content.append(block)
    return UserMessage(tuple(content))


def _said(block: object) -> str:
    match block:
        case ToolUse(name=name, input=input):
            return to_bytes({"tool": name, "input": input}).decode()
        case Text(text=text) if text.strip():
            return to_bytes({"answer": text}).decode()
        case _:
            return ""


def _result(block: ToolResult) -> str:
    name = "error" if block.is_error else "result"
    return to_bytes({name: result_text(replace(block, is_error=False))}).decode()


def reply_schema(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """JSON Schema of a call of one of the tools or an answer, for servers that make a grammar."""
    calls = [
        _object({"tool": {"const": t.name}, "input": fit_schema(t.input_schema, RULES["llama"])})
        for t in tools
    ]
    return {"anyOf": [*calls, _object({"answer": {"type": "string"}})]}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


class SchemaDecoder:
    """From the events of a bound reply to those of an ordinary one; the same for any chunking.

    ``calls_before`` counts the calls of the conversation: the id of a call is its number.
    A reply that is no such object is shown as it came, with a notice.
    """

    def __init__(self, calls_before: int) -> None:
        self._id = f"call_{calls_before + 1}"
        # ``answered`` and ``held`` only collect what comes; ``free`` is text without a form.
        self._state: Literal["begun", "thinking", "answer", "answered", "held", "free"] = "begun"
        self._pending = ""
        self._held: list[str] = []
        self._thought: list[str] = []
        self._may_think = True
        self._answer = Rejoin()

    def feed(self, event: AssistantEvent) -> Iterator[AssistantEvent]:
        match event:
            case TextDelta(text=text):
                yield from self._take(text)
            case MessageStop(stop_reason=reason):
                made = list(self._finish())
                yield from made
                if reason in ENDED_WELL and any(isinstance(m, ToolUse) for m in made):
                    event = MessageStop("tool_use", event.provider_metadata)
                yield event
            case _:
                yield event

    def cut(self) -> Iterator[AssistantEvent]:
        """The stream ended without a stop: what was held back is text, no call comes of it."""
        if self._state == "thinking":
            yield from self._end_thought(self._pending)
        elif rest := self._pending + "".join(self._held):
            yield TextDelta(rest)

    def _take(self, text: str) -> Iterator[AssistantEvent]:
        match self._state:
            case "begun":
                yield from self._begin(text)
            case "thinking":
                yield from self._think(text)
            case "answer":
                yield from self._say(text)
            case "answered" | "held":
                self._held.append(text)
            case "free":
                yield TextDelta(text)

    def _begin(self, text: str) -> Iterator[AssistantEvent]:
        """What is it going to be: thinking, an answer, a call, or none of these?"""
        head = self._pending + text
        start = head.lstrip()
        self._pending = head
        rest = ""
        if self._may_think and start.startswith(_THINK):
            self._may_think = False
            self._state, rest = "thinking", start[len(_THINK) :]
        elif found := re.match(_ANSWER, head):
            self._state, rest = "answer", head[found.end() :]
        elif re.match(_OTHER_KEY, head) or len(head) > _LONGEST_HEAD:
            self._state, rest = "held", head
        elif start and start[0] not in "{`" and not self._is_thinking(start):
            self._state, rest = "free", head
        if self._state != "begun":
            self._pending = ""
            yield from self._take(rest)

    def _is_thinking(self, start: str) -> bool:
        return self._may_think and _THINK.startswith(start)

    def _think(self, text: str) -> Iterator[AssistantEvent]:
        thought, mark, rest = (self._pending + text).partition(_END_THINK)
        self._pending = "" if mark else _begun_at_end(thought, _END_THINK)
        thought = thought.removesuffix(self._pending)
        if thought:
            self._thought.append(thought)
            yield ThinkingDelta(thought)
        if mark:
            self._state = "begun"
            yield from self._end_thought()
            yield from self._begin(rest)

    def _end_thought(self, rest: str = "") -> Iterator[AssistantEvent]:
        thought = "".join((*self._thought, rest))
        self._thought.clear()
        if thought.strip():
            yield Thinking(thought)

    def _say(self, text: str) -> Iterator[AssistantEvent]:
        """Of an answer all but an escape that is not whole yet."""
        text = self._pending + text
        said: list[str] = []
        at = 0
        while at < len(text) and text[at] != '"':
            if found := re.compile(_CHARACTERS).match(text, at):
                said.append(_unescaped(found[0]))
                at = found.end()
            elif re.compile(_HALF_ESCAPE).fullmatch(text, at):
                break
            else:  # a backslash that escapes nothing stands for itself
                said.append("\\")
                at += 1
        self._pending = text[at:]
        if shown := self._answer.add("".join(said)):
            yield TextDelta(shown)
        if self._pending.startswith('"'):
            self._state = "answered"
            self._held.append(self._pending[1:])
            self._pending = ""

    def _finish(self) -> Iterator[AssistantEvent]:
        match self._state:
            case "thinking":
                yield from self._end_thought(self._pending)
            case "answer" | "answered":
                if shown := self._answer.end():
                    yield TextDelta(shown)
                after = "".join(self._held).strip().removeprefix("}").strip()
                if after:
                    yield TextDelta(after)
                    yield _ignored()
            case "free":
                yield _ignored()
            case "begun" | "held":
                yield from self._read("".join((self._pending, *self._held)))

    def _read(self, text: str) -> Iterator[AssistantEvent]:
        """A whole reply that was not shown yet."""
        bare = text.strip()
        if not bare:
            return
        if bare.startswith("```") and bare.endswith("```"):
            bare = bare[3:-3].removeprefix("json")
        value, broken = parse_input(bare)
        name, answer, input = (value.get(key) for key in ("tool", "answer", "input"))
        if isinstance(name, str) and name:
            if isinstance(input, dict):
                yield ToolUse(self._id, name, input)
            else:
                yield ToolUse(self._id, name, {}, to_bytes({"input": input}).decode())
        elif broken is not None and (named := re.search(_TOOL, text)):
            yield ToolUse(self._id, named[1], {}, text)
        elif isinstance(answer, str):
            yield TextDelta(answer)
        else:
            yield TextDelta(text)
            yield _ignored()


def schema_decoder(request: Request) -> SchemaDecoder:
    """For the reply to a request."""
    said = (m for m in request.messages if isinstance(m, AssistantMessage))
    return SchemaDecoder(sum(len(m.tool_calls) for m in said))


def _ignored() -> Notice:
    return Notice(
        "reply_format",
        "warning",
        "The reply is not in the form that `tools: json_schema` asks for, and is shown as it "
        "came. Does the server know `response_format`?",
    )


def _begun_at_end(text: str, mark: str) -> str:
    """The longest end of ``text`` that may become ``mark``."""
    lengths = range(min(len(mark) - 1, len(text)), 0, -1)
    return next((mark[:n] for n in lengths if text.endswith(mark[:n])), "")


def _unescaped(characters: str) -> str:
    """The inside of a JSON string; line breaks in it, which JSON forbids, stand for themselves."""
    text = parse_json(b'"' + characters.encode("utf-8", "replace") + b'"')
    assert isinstance(text, str)
    return text
