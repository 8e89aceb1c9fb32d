"""A model that plays a script: what tests, demonstrations and goldens talk to.

A script is a list of replies, one for each request. ``says``, ``calls``, ``refuses``,
``cut``, ``fails``, ``raw`` and ``waits`` make them; a plain ``Reply`` is one too, and
so is a function from the request to a reply. ``load_script`` reads them from a file.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncGenerator, Callable, Sequence
from importlib import import_module
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from claw.errors import (
    AuthenticationFailed,
    ConfigError,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    OutputLimitTooHigh,
    ProtocolViolation,
    RequestRejected,
)
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
    "load_script",
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
LARGEST_SCRIPT = 32 * 1024 * 1024  # bytes


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
    blocks = (c if isinstance(c, ToolUse) else ToolUse("", c[0], c[1]) for c in wanted)
    return Reply((*_opening(text, thinking, signature), *blocks), stop_reason, usage, model)


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


def _starts(events: tuple[AssistantEvent, ...]) -> int:
    return 1 if events and isinstance(events[0], MessageStart) else 0


def _content(events: tuple[AssistantEvent, ...], after: int | None) -> tuple[AssistantEvent, ...]:
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
    if not reply.complete:
        return tuple(events)
    usage = reply.usage
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
        played = playback(reply, number, estimate_request(request))
        for index, event in enumerate(played.events):
            await self._arrive(played, index)
            yield event
        await self._arrive(played, len(played.events))
        if played.error is not None:
            raise played.error

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

    @staticmethod
    async def _arrive(played: Playback, index: int) -> None:
        for gate in played.gates_before(index):
            await gate.pass_through()
        await asyncio.sleep(0)  # as bytes from a wire would: others may run, a cancel may land


def _last_user_text(request: Request) -> str:
    """Cut to 200 characters; empty where the user only sent results."""
    for message in reversed(request.messages):
        if isinstance(message, UserMessage) and (text := text_of(message.content)):
            return text if len(text) <= 200 else text[:200] + "..."
    return ""


_ERRORS: dict[str, type[ModelError]] = {
    cls.kind: cls
    for cls in (
        ModelUnavailable,
        AuthenticationFailed,
        RequestRejected,
        ContextOverflow,
        OutputLimitTooHigh,
        ProtocolViolation,
    )
}


class _Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    input: dict[str, Any] = {}
    id: str = ""
    raw_input: str | None = None


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reply of a script file."""

    text: str = ""
    calls: tuple[_Call, ...] = ()
    thinking: str = ""
    signature: str = ""
    stop_reason: str = ""
    usage: Usage = Usage()
    cut: bool | int = False
    error: (
        Literal[
            "model_unavailable",
            "authentication",
            "request_rejected",
            "context_overflow",
            "output_limit_too_high",
            "protocol_violation",
        ]
        | None
    ) = None
    message: str = ""
    status: int | None = None
    retry_after: float | None = None
    max_tokens: int | None = None
    limit_tokens: int | None = None


def load_script(path: str) -> list[ScriptReply]:
    """Read replies from a JSON file, or from a YAML file where PyYAML is installed.

    The file is a list; each item is one reply: a text, or an object of ::

        text, thinking, signature, stop_reason    texts
        calls       [{name, input, id, raw_input}]; all but name optional
        usage       {input_tokens, output_tokens, cache_read_input_tokens,
                    cache_creation_input_tokens}; estimated where it is left out
        cut         true: the stream dies after this content; a number: after so many events
        error       a kind of ModelError (model_unavailable, authentication, request_rejected,
                    context_overflow, output_limit_too_high, protocol_violation), raised after
                    the content, with message, status, retry_after (seconds), max_tokens,
                    limit_tokens

    Raises ``ConfigError`` naming the file, the place in it and what is allowed there.
    """
    text = _script_text(path)
    try:
        lines = msgspec.convert(_parse(path, text), list[str | _Line])
    except msgspec.ValidationError as error:
        raise ConfigError(
            f"{path}: {error}",
            hint="A script is a list of texts and objects with the fields "
            f"{', '.join(_Line.__struct_fields__)}; error is one of {', '.join(_ERRORS)}.",
        ) from error
    return [_scripted(path, at, line) for at, line in enumerate(lines)]


def _script_text(path: str) -> str:
    """Of a regular file only: a pipe would hold up the start, a device never ends."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise ConfigError(f"the script {path} is no regular file")
            with open(fd, "rb", closefd=False) as file:
                data = file.read(LARGEST_SCRIPT + 1)
        finally:
            os.close(fd)
        if len(data) > LARGEST_SCRIPT:
            most = f"{LARGEST_SCRIPT // 1024 // 1024} MiB"
            raise ConfigError(f"the script {path} is larger than {most}")
        return data.decode()
    except OSError as error:
        raise ConfigError(f"cannot read the script {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the script {path} is not UTF-8 text: {error}") from error


def _parse(path: str, text: str) -> object:
    import json

    try:
        return json.loads(text)
    except RecursionError as error:
        raise ConfigError(f"{path}: nested too deeply for a script") from error
    except json.JSONDecodeError as error:
        if not path.endswith((".yaml", ".yml")):
            raise ConfigError(
                f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}",
                hint="A script is a JSON list of replies; name the file .yaml for YAML.",
            ) from error
    try:
        yaml = import_module("yaml")  # an optional package
    except ImportError as error:
        raise ConfigError(
            f"{path}: YAML scripts need PyYAML, which is not installed",
            hint="Install `pyyaml`, or write the script as JSON.",
        ) from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {error}") from error


def _scripted(path: str, at: int, line: str | _Line) -> PlainReply:
    if isinstance(line, str):
        return says(line)
    wanted = (ToolUse(c.id, c.name, c.input, c.raw_input) for c in line.calls)
    reply = calls(
        *wanted,
        text=line.text,
        thinking=line.thinking,
        signature=line.signature,
        stop_reason=line.stop_reason or ("tool_use" if line.calls else "end_turn"),
        usage=line.usage,
    )
    if line.error is not None:
        return Fails(_error(path, at, line), reply if reply.blocks else None)
    if line.cut is False:
        return reply
    return Cut(reply, None if line.cut is True else line.cut)


def _error(path: str, at: int, line: _Line) -> ModelError:
    message = line.message or f"scripted {line.error}"
    if line.error == "context_overflow":
        return ContextOverflow(message, limit_tokens=line.limit_tokens, status=line.status)
    if line.error == "output_limit_too_high":
        if line.max_tokens is None:
            raise ConfigError(
                f"{path}: `max_tokens` is missing - at `$[{at}]`",
                hint="The error output_limit_too_high carries the `max_tokens` that would fit.",
            )
        return OutputLimitTooHigh(message, max_tokens=line.max_tokens, status=line.status)
    assert line.error is not None
    return _ERRORS[line.error](message, status=line.status, retry_after=line.retry_after)
