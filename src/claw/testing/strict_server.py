"""A model server on this machine that plays a script and forgives nothing.

It speaks ``POST /v1/messages`` (and ``/count_tokens`` beneath it),
``POST /v1/chat/completions`` and ``POST /v1/responses``, streamed and not, over
HTTP/1.1 with kept connections::

    async with StrictServer([calls(("Read", {"file_path": "a"})), says("done")]) as server:
        ...                                # a client with base_url=server.base_url
    assert server.requests[1].body["messages"]

Replies are those of ``claw.models.scripted``, and ``answers`` (any status, headers,
body) and ``sent`` (a reply in chosen pieces, with pauses, cut at a byte). Every
request goes through ``claw.testing.validate`` first: a complaint is answered with the
provider's 400, uses up no reply, and fails the test when the server is left.
"""

from __future__ import annotations

import asyncio
import json
import random
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import TracebackType
from typing import Any, Literal

from claw.errors import (
    AuthenticationFailed,
    ContextOverflow,
    ModelError,
    ModelUnavailable,
    OutputLimitTooHigh,
)
from claw.models.estimate import estimate_tokens
from claw.models.scripted import MODEL, Cut, Fails, Gate, Playback, Raw, Waits, playback
from claw.testing.prefix import first_difference, has_replies, opening
from claw.testing.validate import (
    thinking_key,
    validate_anthropic,
    validate_chat,
    validate_responses,
)
from claw.testing.wire import (
    Stream,
    anthropic_stream,
    anthropic_whole,
    chat_stream,
    chat_whole,
    responses_stream,
    responses_whole,
)
from claw.types.events import AssistantEvent, MessageStart, MessageStop
from claw.types.messages import Opaque, RedactedThinking, Thinking
from claw.types.reply import Reply

__all__ = ["Delivery", "HttpReply", "Received", "ServerReply", "StrictServer", "answers", "sent"]

Dialect = Literal["anthropic", "chat", "responses", "count"]
_DIALECTS: dict[str, Dialect] = {
    "/v1/messages": "anthropic",
    "/v1/messages/count_tokens": "count",
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
}
_CLIENT_DIALECTS: dict[Dialect, str] = {
    "anthropic": "anthropic",
    "chat": "openai-chat",
    "responses": "openai-responses",
}
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}
_LARGEST_HEAD = 256 * 1024


@dataclass(frozen=True)
class HttpReply:
    """An answer as it stands, whatever was asked."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Delivery:
    """How the bytes of ``reply`` travel; see ``sent``."""

    reply: AnyReply
    every: int | None = None
    at: tuple[int, ...] = ()
    seed: int | None = None
    pause: float = 0.0
    cut_at: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


AnyReply = Reply | Raw | Cut | Fails | Waits | HttpReply
ServerReply = AnyReply | Delivery | Callable[["Received"], "AnyReply | Delivery"]


def answers(
    status: int, body: str | bytes | dict[str, Any] = "", headers: Mapping[str, str] | None = None
) -> HttpReply:
    """Any answer: an error page of a proxy, a recorded stream. A dict becomes JSON."""
    given = dict(headers or {})
    if isinstance(body, dict):
        given.setdefault("content-type", "application/json")
        body = json.dumps(body)
    return HttpReply(status, given, body.encode() if isinstance(body, str) else body)


def sent(
    reply: AnyReply,
    *,
    every: int | None = None,
    at: Sequence[int] = (),
    seed: int | None = None,
    pause: float = 0.0,
    cut_at: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Delivery:
    """A reply in chosen pieces: ``every`` n bytes, ``at`` these offsets, or as ``seed`` wills.

    ``pause`` is in seconds, between pieces. With ``cut_at`` the connection closes
    after that many bytes of the body. ``headers`` come on top of the usual ones.
    """
    if every is not None and every < 1:
        raise ValueError("every must be at least 1 byte")
    return Delivery(reply, every, tuple(at), seed, pause, cut_at, dict(headers or {}))


@dataclass
class Received:
    """A request that arrived. ``number`` counts from 1; header names are lower case.

    ``disconnected`` turns true where the client left before its answer had ended.
    """

    number: int
    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    body: Any = None
    disconnected: bool = False


@dataclass(frozen=True)
class _Answer:
    """An answer ready to send. ``pieces`` are body bytes with the gates before them."""

    status: int
    headers: dict[str, str]
    pieces: tuple[tuple[tuple[Gate, ...], bytes], ...]
    streamed: bool = False
    ends: bool = True  # False: the connection dies after the pieces


class StrictServer:
    """Serves ``replies`` in order on a free port of 127.0.0.1 while it is entered.

    ``window`` is in tokens, as ``estimate_tokens`` counts the body: what exceeds it
    gets the dialect's overflow error and uses up no reply. Each request must extend the
    last one of its conversation and model, so that a prompt cache can help, unless
    ``extends`` is False. Leaving the server raises ``AssertionError`` for violations and
    unused replies, unless ``check`` is False.
    """

    def __init__(
        self,
        replies: Sequence[ServerReply] = (),
        *,
        window: int | None = None,
        extends: bool = True,
        check: bool = True,
    ) -> None:
        self.requests: list[Received] = []
        self.violations: list[str] = []
        self._replies = tuple(replies)
        self._next = 0
        self._window = window
        self._extends = extends
        self._check = check
        self._thinking: set[str] = set()
        self._last: dict[tuple[str, str, str], dict[str, Any]] = {}  # body by conversation
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def base_url(self) -> str:
        """Without ``/v1``: the OpenAI SDK wants ``base_url + "/v1"``, Anthropic's this."""
        if self._server is None:
            raise RuntimeError("the server runs only inside `async with`")
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def unused(self) -> int:
        """How many replies have not been asked for yet."""
        return len(self._replies) - self._next

    async def __aenter__(self) -> StrictServer:
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", 0, limit=_LARGEST_HEAD
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        await asyncio.sleep(0)  # a connection that was just accepted registers itself
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None
        if self._check and error is None:
            self.assert_finished()

    def assert_finished(self) -> None:
        """Raise ``AssertionError`` for violations and for replies that nobody asked for."""
        problems = list(self.violations)
        if self.unused:
            problems.append(f"{self.unused} of {len(self._replies)} replies were never asked for")
        if problems:
            raise AssertionError("\n".join(problems))

    # --- a connection

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            goes_on = True
            while goes_on and (received := await _read_request(reader, len(self.requests) + 1)):
                self.requests.append(received)
                goes_on = await self._send(self._answer(received), received, reader, writer)
        except asyncio.CancelledError:  # the server is being left
            pass
        except ConnectionError:
            pass
        except (ValueError, asyncio.LimitOverrunError, asyncio.IncompleteReadError) as error:
            self.violations.append(f"not an HTTP request: {error}")
        finally:
            self._connections.discard(task)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _send(
        self,
        answer: tuple[_Answer, Delivery | None],
        received: Received,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        """True where the connection can take another request."""
        whole, delivery = answer
        keep = received.headers.get("connection", "").lower() != "close"
        total = sum(len(data) for _, data in whole.pieces)
        in_chunks = whole.streamed or delivery is not None
        headers = {
            **whole.headers,
            "connection": "keep-alive" if keep else "close",
            **({"transfer-encoding": "chunked"} if in_chunks else {"content-length": str(total)}),
        }
        head = f"HTTP/1.1 {whole.status} {_REASONS.get(whole.status, 'Scripted')}\r\n"
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"{head}{lines}\r\n".encode("latin-1"))
        try:
            async for piece in _pieces(whole, delivery, reader):
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if in_chunks else piece)
                await writer.drain()
            if not whole.ends or (delivery and delivery.cut_at is not None):
                return False
            if in_chunks:
                writer.write(b"0\r\n\r\n")
            await writer.drain()
        except ConnectionError:
            received.disconnected = True
            return False
        return keep

    # --- what to answer

    def _answer(self, received: Received) -> tuple[_Answer, Delivery | None]:
        dialect = _DIALECTS.get(received.path.partition("?")[0])
        if dialect is None or received.method != "POST":
            self.violations.append(
                f"request {received.number}: {received.method} {received.path} is not served; "
                f"there are POST {', '.join(_DIALECTS)}"
            )
            return _json(404, _error_body("anthropic", "not_found_error", "not found")), None
        problems = self._parse(received) or self._validate(dialect, received)
        if problems:
            self.violations += [f"request {received.number}: {problem}" for problem in problems]
            body = _error_body(dialect, "invalid_request_error", "; ".join(problems))
            return _json(400, body), None
        tokens = estimate_tokens(received.raw.decode(errors="replace"))
        if dialect == "count":
            return _json(200, {"input_tokens": tokens}), None
        if self._extends:
            self._compare(_CLIENT_DIALECTS[dialect], received)
        if overflow := self._overflow(dialect, received.body, tokens):
            return _json(400, overflow), None
        if self._next >= len(self._replies):
            problem = (
                f"unexpected request {received.number}: the script has {len(self._replies)} replies"
            )
            self.violations.append(problem)
            return _json(400, _error_body(dialect, "invalid_request_error", problem)), None
        self._next += 1
        reply = self._replies[self._next - 1]
        return self._play(dialect, received, reply(received) if callable(reply) else reply, tokens)

    @staticmethod
    def _parse(received: Received) -> list[str]:
        try:
            received.body = json.loads(received.raw.decode())
        except ValueError as error:
            return [f"the body is not JSON in UTF-8: {error}"]
        return []

    def _validate(self, dialect: Dialect, received: Received) -> list[str]:
        body = received.body
        if dialect == "chat":
            return validate_chat(body)
        if dialect == "responses":
            return validate_responses(body, self._thinking)
        if dialect == "count" and isinstance(body, dict):
            body = {**body, "max_tokens": 1}
        problems = validate_anthropic(body, self._thinking)
        if "anthropic-version" not in received.headers:
            problems.append("anthropic-version: header is required")
        return problems

    def _compare(self, dialect: str, received: Received) -> None:
        """A changed prefix is no provider's complaint: it is answered, and fails the test."""
        body = received.body
        known = (dialect, str(body["model"]), opening(dialect, body))
        alike = [last for (*about, _), last in self._last.items() if about == [*known[:2]]]
        before = self._last.get(known, alike[-1] if alike else None)
        change = ""
        if before is not None and has_replies(dialect, body):
            change = first_difference(dialect, before, body)
        if change:
            self.violations.append(
                f"request {received.number} does not extend the one before it: {change}"
            )
        self._last.pop(known, None)  # the last one stands last
        self._last[known] = body

    def _overflow(
        self, dialect: Dialect, body: dict[str, Any], tokens: int
    ) -> dict[str, Any] | None:
        window = self._window
        if dialect == "responses":
            return _RESPONSES_OVERFLOW if window is not None and tokens > window else None
        output = body.get("max_tokens") or body.get("max_completion_tokens") or 0
        if window is None or tokens + output <= window:
            return None
        if dialect == "anthropic":
            message = (
                f"prompt is too long: {tokens} tokens > {window} maximum"
                if tokens > window
                else f"input length and `max_tokens` exceed context limit: {tokens} + {output} > "
                f"{window}, decrease input length or `max_tokens` and try again"
            )
            return _error_body(dialect, "invalid_request_error", message)
        message = f"This model's maximum context length is {window} tokens. However, " + (
            f"your messages resulted in {tokens} tokens. Please reduce the length of the messages."
            if tokens > window
            else f"you requested {tokens + output} tokens ({tokens} in the messages, {output} in "
            "the completion). Please reduce the length of the messages or completion."
        )
        error = {
            "message": message,
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        }
        return {"error": error}

    def _play(
        self, dialect: Dialect, received: Received, reply: AnyReply | Delivery, tokens: int
    ) -> tuple[_Answer, Delivery | None]:
        delivery = None
        if isinstance(reply, Delivery):
            delivery, reply = reply, reply.reply
        if isinstance(reply, HttpReply):
            answer = _Answer(reply.status, dict(reply.headers), (((), reply.body),))
        else:
            played = playback(reply, self._next, tokens)
            self._remember(played)
            answer = _spoken(dialect, received, played, tokens)
        if delivery is None:
            return answer, None
        return replace(answer, headers={**answer.headers, **delivery.headers}), delivery

    def _remember(self, played: Playback) -> None:
        for event in played.events:
            if isinstance(event, Thinking):
                block = {"type": "thinking", "thinking": event.text, "signature": event.signature}
                self._thinking.add(thinking_key(block))
                self._thinking.add(thinking_key(_reasoning(event.signature)))
            elif isinstance(event, RedactedThinking):
                block = {"type": "redacted_thinking", "data": event.data}
                self._thinking.add(thinking_key(block))
                self._thinking.add(thinking_key(_reasoning(event.data)))
            elif isinstance(event, Opaque) and event.raw.get("type") == "reasoning":
                self._thinking.add(thinking_key(event.raw))


def _name_of_the_model(played: Playback) -> str:
    """What the script calls it, for servers with names of their own."""
    names = [e.model for e in played.events if isinstance(e, MessageStart) and e.model != MODEL]
    return names[-1] if names else ""


def _spoken(dialect: Dialect, received: Received, played: Playback, tokens: int) -> _Answer:
    """A scripted reply in the words of the dialect."""
    body = received.body
    number = received.number
    model = _name_of_the_model(played) or body["model"]
    if played.error is not None and not played.events:
        answer = _json(_status(played.error), _error_of(dialect, played.error))
        if played.error.retry_after is not None:
            answer.headers["retry-after"] = f"{played.error.retry_after:g}"
        return answer
    if body.get("stream") is not True:
        to_whole = _TO_WHOLE[dialect]
        whole = b""
        if played.events:
            whole = json.dumps(to_whole(played.events, number, model)).encode()
        gates = tuple(gate for _, gate in played.gates)
        cut_off = played.error is not None or not _is_finished(played)
        return _Answer(
            200,
            {"content-type": "application/json", "request-id": f"req_{number}"},
            ((gates, whole[: len(whole) // 2] if cut_off else whole),),
            streamed=cut_off,
            ends=not cut_off,
        )
    stream: Stream
    if dialect == "anthropic":
        stream = anthropic_stream(played.events, number, model, tokens)
    elif dialect == "responses":
        stream = responses_stream(played.events, number, model)
    else:
        with_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        stream = chat_stream(played.events, number, model, with_usage)
    pieces = [(tuple(played.gates_before(at)), data) for at, data in enumerate(stream.per_event)]
    pieces.append((tuple(played.gates_before(len(played.events))), stream.end))
    if played.error is not None:
        error = _error_of(dialect, played.error)
        failure = json.dumps({"type": "error", **error} if dialect == "responses" else error)
        name = "" if dialect == "chat" else "event: error\n"
        pieces.append(((), f"{name}data: {failure}\n\n".encode()))
    return _Answer(
        200,
        {"content-type": "text/event-stream; charset=utf-8", "request-id": f"req_{number}"},
        tuple(pieces),
        streamed=True,
        ends=_is_finished(played) or played.error is not None,
    )


_TO_WHOLE: dict[Dialect, Callable[[Sequence[AssistantEvent], int, str], dict[str, Any]]] = {
    "anthropic": anthropic_whole,
    "chat": chat_whole,
    "responses": responses_whole,
}


def _reasoning(encrypted: str) -> dict[str, Any]:
    return {"type": "reasoning", "encrypted_content": encrypted}


def _is_finished(played: Playback) -> bool:
    return any(isinstance(event, MessageStop) for event in played.events)


def _json(status: int, body: dict[str, Any]) -> _Answer:
    headers = {"content-type": "application/json"}
    return _Answer(status, headers, (((), json.dumps(body).encode()),))


def _error_body(dialect: Dialect, kind: str, message: str) -> dict[str, Any]:
    if dialect in ("chat", "responses"):
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_0"}


_RESPONSES_OVERFLOW = {
    "error": {
        "message": "Your input exceeds the context window of this model. Please adjust your "
        "input and try again.",
        "type": "invalid_request_error",
        "param": "input",
        "code": "context_length_exceeded",
    }
}


def _status(error: ModelError) -> int:
    if error.status is not None:
        return error.status
    match error:
        case ModelUnavailable():
            return 529
        case AuthenticationFailed():
            return 401
        case _:
            return 400


_ANTHROPIC_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def _error_of(dialect: Dialect, error: ModelError) -> dict[str, Any]:
    status = _status(error)
    if dialect in ("chat", "responses"):
        kind = "server_error" if status >= 500 else "invalid_request_error"
        body = _error_body(dialect, kind, error.message)
        if isinstance(error, ContextOverflow | OutputLimitTooHigh):
            body["error"]["code"] = "context_length_exceeded"
        return body
    kind = _ANTHROPIC_KINDS.get(status, "invalid_request_error" if status < 500 else "api_error")
    return _error_body(dialect, kind, error.message)


# --- bytes


async def _read_request(reader: asyncio.StreamReader, number: int) -> Received | None:
    """None where the client closed between requests. Raises ``ValueError`` for no HTTP."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _version = first.split(" ")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("transfer-encoding", "").lower() == "chunked":
        raw = b"".join([chunk async for chunk in _read_chunks(reader)])
    else:
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(number, method, path, headers, raw)


async def _read_chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")


async def _pieces(
    answer: _Answer, delivery: Delivery | None, reader: asyncio.StreamReader
) -> AsyncIterator[bytes]:
    """The body in the pieces to send, each when its time has come.

    Raises ``ConnectionResetError`` where the client leaves while the stream waits.
    """
    total = sum(len(data) for _, data in answer.pieces)
    last = total if delivery is None or delivery.cut_at is None else delivery.cut_at
    cuts = None if delivery is None else _cuts(total, delivery)
    done = 0
    for gates, data in answer.pieces if cuts is None else _joined(answer.pieces):
        for gate in gates:
            await _or_gone(gate.pass_through(), reader)
        for piece in _split(data, done, cuts):
            allowed = piece[: max(0, last - done)]
            done += len(allowed)
            if allowed:
                yield allowed
            if delivery is not None and delivery.pause and done < last:
                await _or_gone(asyncio.sleep(delivery.pause), reader)
            else:
                await asyncio.sleep(0)
        if done >= last:
            return


def _joined(
    pieces: Sequence[tuple[tuple[Gate, ...], bytes]],
) -> list[tuple[tuple[Gate, ...], bytes]]:
    """Pieces with no gate between them become one, so that only the chosen cuts count."""
    joined: list[tuple[tuple[Gate, ...], bytes]] = []
    for gates, data in pieces:
        if joined and not gates:
            joined[-1] = (joined[-1][0], joined[-1][1] + data)
        else:
            joined.append((gates, data))
    return joined


def _cuts(total: int, delivery: Delivery) -> Sequence[int] | None:
    """Sorted offsets in the body; None leaves one piece to an event."""
    if delivery.every is not None:
        return range(delivery.every, total, delivery.every)
    if delivery.at:
        return sorted({at for at in delivery.at if 0 < at < total})
    if delivery.seed is not None and total > 1:
        chance = random.Random(delivery.seed)
        return sorted(chance.sample(range(1, total), chance.randint(0, min(total - 1, 64))))
    return None


def _split(data: bytes, start: int, cuts: Sequence[int] | None) -> Iterator[bytes]:
    """``data``, which begins at offset ``start`` of the body, cut at these offsets."""
    inside: Sequence[int] = ()
    if cuts is not None:
        inside = cuts[bisect_right(cuts, start) : bisect_left(cuts, start + len(data))]
    edges = [0, *(at - start for at in inside), len(data)]
    for begin, end in pairwise(edges):
        yield data[begin:end]


async def _or_gone(waiting: Awaitable[None], reader: asyncio.StreamReader) -> None:
    """Wait, but not for a client that has left. A client that waits sends nothing."""
    wait = asyncio.ensure_future(waiting)
    gone = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait({wait, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not wait.done():
            raise ConnectionResetError("the client left")
    finally:
        wait.cancel()
        gone.cancel()
        await asyncio.gather(wait, gone, return_exceptions=True)
