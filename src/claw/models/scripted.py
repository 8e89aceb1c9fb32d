"""A model that plays a script: what tests, demonstrations and goldens talk to.

A script is a list of replies, one for each request. ``says``, ``calls``, ``refuses``,
``cut``, ``fails``, ``raw`` and ``waits`` make them; a plain ``Reply`` is one too, and
so is a function from the request to a reply. ``claw.models.script_files`` reads them
from files.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec.structs import replace

from claw.errors import ModelError, RequestRejected
from claw.models.estimate import estimate_request, estimate_tokens
from claw.types.events import (
    AssistantEvent,
    MessageStart,
    MessageStop,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from claw.types.messages import AssistantBlock, Text, Thinking, ToolUse, UserMessage, text_of
from claw.types.reply import Reply
from claw.types.request import Request
from claw.types.usage import Usage

__all__ = [
    "Cut",
    "Fails",
    "Gate",
    "Playback",
    "Raw",
    "ScriptReply",
    "ScriptedModel",
    "Waits",
    "calls",
    "cut",
    "fails",
    "play",
    "playback",
    "raw",
    "refuses",
    "says",
    "waits",
]

MODEL = "scripted"
_ESTIMATED = Usage()
"""What a reply says that leaves its figures to the estimator."""
SMALLEST_DELTA = 12  # characters of a text delta
MOST_DELTAS = 32  # of one text


class Gate:
    """A logical point in a stream: the test learns that it is reached, then opens it.

    ::

        gate = Gate()
        model = ScriptedModel([waits(gate, says("a long answer"), after=2)])
        ...                     # start the turn
        await gate.reached()    # two events are out, the third will not come
        conversation.interrupt()
    """

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._opened = asyncio.Event()

    async def reached(self) -> None:
        """Wait until the stream stands at the gate."""
        await self._reached.wait()

    def open(self) -> None:
        """Let the stream go on, now or as soon as it comes."""
        self._opened.set()

    async def pass_through(self) -> None:
        """The stream's side: say that it is here, and wait."""
        self._reached.set()
        await self._opened.wait()


class Raw(msgspec.Struct, frozen=True):
    """Exactly these events."""

    events: tuple[AssistantEvent, ...]


class Cut(msgspec.Struct, frozen=True):
    """The stream ends without ``MessageStop``, ``after`` events of its content."""

    reply: PlainReply
    after: int | None = None


class Fails(msgspec.Struct, frozen=True):
    """The error, before the first byte or after the content of ``reply``."""

    error: ModelError
    reply: PlainReply | None = None


class Waits(msgspec.Struct, frozen=True):
    """The reply, which stands at ``gate`` after ``after`` events of its content."""

    gate: Gate
    reply: PlainReply
    after: int = 0


PlainReply = Reply | Raw | Cut | Fails | Waits
ScriptReply = PlainReply | Callable[[Request], PlainReply]


def says(
    text: str,
    *,
    thinking: str = "",
    signature: str = "",
    stop_reason: str = "end_turn",
    usage: Usage = _ESTIMATED,
    model: str = "",
) -> Reply:
    """An answer in text. ``usage`` left alone is estimated."""
    return Reply(_opening(text, thinking, signature), stop_reason, usage, model)


def calls(
    *wanted: tuple[str, dict[str, Any]] | ToolUse,
    text: str = "",
    thinking: str = "",
    signature: str = "",
    stop_reason: str = "tool_use",
    usage: Usage = _ESTIMATED,
    model: str = "",
) -> Reply:
    """Tool calls, ``("Read", {"file_path": "a.py"})``, after an optional text.

    A call given as a pair, or as a ``ToolUse`` without id, gets an id from its
    position: ``call_2_1`` is the first call of the second reply.
    """
    blocks = [_use(call) for call in wanted]
    return Reply((*_opening(text, thinking, signature), *blocks), stop_reason, usage, model)


def _use(call: tuple[str, dict[str, Any]] | ToolUse) -> ToolUse:
    match call:
        case ToolUse():
            return call
        case (str(name), dict(input)):
            return ToolUse("", name, input)
    raise TypeError(f'{call!r} is no call: a pair of a name and an input is, `("Read", {{...}})`')


def refuses(text: str = "") -> Reply:
    """The model declines."""
    return says(text, stop_reason="refusal")


def cut(reply: PlainReply | str, *, after: int | None = None) -> Cut:
    """The connection dies in the reply: after all its content, or ``after`` events of it.

    A piece of text, a piece of a call's input and a finished block are an event each.
    """
    return Cut(says(reply) if isinstance(reply, str) else reply, after)


def fails(error: ModelError, *, after: PlainReply | str | None = None) -> Fails:
    """The request fails: at once, or inside the stream after the content of ``after``."""
    return Fails(error, says(after) if isinstance(after, str) else after)


def raw(*events: AssistantEvent) -> Raw:
    """Exactly these events, possible or not."""
    return Raw(events)


def waits(gate: Gate, reply: PlainReply | str = "", *, after: int = 0) -> Waits:
    """The reply, held at ``gate`` after ``after`` events of its content."""
    return Waits(gate, says(reply) if isinstance(reply, str) else reply, after)


def _opening(text: str, thinking: str, signature: str) -> tuple[AssistantBlock, ...]:
    thought = (Thinking(thinking, signature),) if thinking or signature else ()
    return (*thought, Text(text)) if text else thought


class Playback(msgspec.Struct, frozen=True):
    """A reply as it is played: events, gates before some of them, an error at the end."""

    events: tuple[AssistantEvent, ...]
    gates: tuple[tuple[int, Gate], ...] = ()
    error: ModelError | None = None

    def gates_before(self, index: int) -> list[Gate]:
        """Those to pass before event ``index``; ``len(events)`` is the end."""
        return [gate for place, gate in self.gates if min(place, len(self.events)) == index]


def playback(reply: PlainReply, number: int, input_tokens: int) -> Playback:
    """Turn reply ``number`` (from 1) of a script into what is streamed.

    The same reply gives the same events. ``input_tokens`` go into an estimated usage.
    """
    match reply:
        case Reply():
            return Playback(_events(reply, number, input_tokens))
        case Raw():
            return Playback(reply.events)
        case Cut():
            whole = playback(reply.reply, number, input_tokens)
            return Playback(_content(whole.events, reply.after), whole.gates)
        case Fails():
            if reply.reply is None:
                return Playback((), error=reply.error)
            whole = playback(reply.reply, number, input_tokens)
            return Playback(_content(whole.events, None), whole.gates, reply.error)
        case Waits():
            whole = playback(reply.reply, number, input_tokens)
            place = reply.after + _starts(whole.events)
            return Playback(whole.events, (*whole.gates, (place, reply.gate)), whole.error)


async def play(played: Playback) -> AsyncGenerator[AssistantEvent, None]:
    """Stream it. Raises its error."""
    for index, event in enumerate(played.events):
        await _arrive(played, index)
        yield event
    await _arrive(played, len(played.events))
    if played.error is not None:
        raise played.error


async def _arrive(played: Playback, index: int) -> None:
    for gate in played.gates_before(index):
        await gate.pass_through()
    await asyncio.sleep(0)  # as bytes from a wire would: others may run, a cancel may land


def _starts(events: tuple[AssistantEvent, ...]) -> int:
    return 1 if events and isinstance(events[0], MessageStart) else 0


def _content(events: tuple[AssistantEvent, ...], after: int | None) -> tuple[AssistantEvent, ...]:
    kept = events
    if events and isinstance(events[-1], MessageStop):
        kept = tuple(e for e in events if not isinstance(e, Usage | MessageStop))
    return kept if after is None else kept[: after + _starts(kept)]


def _events(reply: Reply, number: int, input_tokens: int) -> tuple[AssistantEvent, ...]:
    events: list[AssistantEvent] = [
        MessageStart(reply.model or MODEL, reply.request_id or f"req_{number}")
    ]
    call = 0
    for block in reply.blocks:
        match block:
            case Text():
                events += [TextDelta(piece) for piece in _pieces(block.text)]
            case Thinking():
                events += [ThinkingDelta(piece) for piece in _pieces(block.text)]
                events.append(block)
            case ToolUse():
                events += [ToolInputDelta(call, piece) for piece in _pieces(_arguments(block))]
                call += 1
                events.append(block if block.id else replace(block, id=f"call_{number}_{call}"))
            case _:
                events.append(block)
    usage = reply.usage
    if not reply.complete:
        return tuple(events) if usage == _ESTIMATED else (*events, usage)
    if usage == _ESTIMATED:
        usage = Usage(input_tokens, _output_tokens(reply.blocks), estimated=True)
    return (*events, usage, MessageStop(reply.stop_reason, reply.provider_metadata))


def _output_tokens(blocks: Sequence[AssistantBlock]) -> int:
    total = 0
    for block in blocks:
        match block:
            case Text() | Thinking():
                total += estimate_tokens(block.text)
            case ToolUse():
                total += estimate_tokens(block.name) + estimate_tokens(_arguments(block))
            case _:
                pass
    return total


def _arguments(call: ToolUse) -> str:
    import json  # the format that recorded runs have

    return json.dumps(call.input, ensure_ascii=False) if call.raw_input is None else call.raw_input


def _pieces(text: str) -> list[str]:
    size = max(SMALLEST_DELTA, -(-len(text) // MOST_DELTAS))
    return [text[at : at + size] for at in range(0, len(text), size)]


class ScriptedModel:
    """A ``ModelClient`` that answers from a script and remembers every request.

    Strict (the default): a request after the last reply fails, naming itself, and
    ``assert_finished`` reports it together with replies that nobody asked for. Not
    strict: the last reply is repeated, and unused ones are fine. ``cost_usd`` is what
    each request costs, None for unknown.
    """

    def __init__(
        self,
        replies: Sequence[ScriptReply],
        *,
        strict: bool = True,
        window: int | None = None,
        cost_usd: float | None = None,
    ) -> None:
        for reply in replies:
            if not (callable(reply) or isinstance(reply, Reply | Raw | Cut | Fails | Waits)):
                raise TypeError(f"{reply!r} is no reply: `says(...)` and `calls(...)` make one")
        self.requests: list[Request] = []
        self.unexpected: list[str] = []
        self._replies = tuple(replies)
        self._strict = strict
        self._window = window
        self._cost_usd = cost_usd

    @property
    def window(self) -> int | None:
        return self._window

    @property
    def unused(self) -> int:
        """How many replies have not been asked for yet."""
        return max(0, len(self._replies) - len(self.requests))

    async def stream(self, request: Request) -> AsyncGenerator[AssistantEvent, None]:
        """Play the next reply. Raises what the script says, and for an unexpected request."""
        self.requests.append(request)
        number = len(self.requests)
        reply = self._reply(request, number)
        async with aclosing(play(playback(reply, number, estimate_request(request)))) as events:
            async for event in events:
                yield event

    def cost(self, usage: Usage, model: str) -> float | None:
        return self._cost_usd

    def assert_finished(self) -> None:
        """Raise ``AssertionError`` where the requests and the script do not match."""
        if not self._strict:
            return
        problems = list(self.unexpected)
        if self.unused:
            problems.append(
                f"{self.unused} of {len(self._replies)} scripted replies were never asked for; "
                f"the next one is {self._replies[len(self.requests)]!r}"
            )
        if problems:
            raise AssertionError("\n".join(problems))

    def _reply(self, request: Request, number: int) -> PlainReply:
        if number <= len(self._replies):
            reply = self._replies[number - 1]
        elif self._replies and not self._strict:
            reply = self._replies[-1]
        else:
            problem = (
                f"unexpected request {number}: the script has {len(self._replies)} replies; "
                f"its last user text is {_last_user_text(request)!r}"
            )
            self.unexpected.append(problem)
            raise RequestRejected(
                problem, hint="Add a reply to the script.", provider=MODEL, model=MODEL
            )
        return reply(request) if callable(reply) else reply


def _last_user_text(request: Request) -> str:
    """Cut to 200 characters; empty where the user only sent results."""
    for message in reversed(request.messages):
        if isinstance(message, UserMessage) and (text := text_of(message.content)):
            return text if len(text) <= 200 else text[:200] + "..."
    return ""
