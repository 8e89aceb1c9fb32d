"""Damaged replies, each from its seed, and what must hold for every one of them.

``asyncio.run(check(SEED, own_seeds()))`` repeats a case that failed.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from claw.errors import ModelError
from claw.models.anthropic.client import AnthropicClient
from claw.models.decode import decode
from claw.models.dialect import DIALECTS
from claw.models.http import HttpRequest, HttpResponse
from claw.models.openai_chat.client import OpenAIChatClient
from claw.models.openai_responses.client import OpenAIResponsesClient
from claw.runtime.tool_calls import calls_not_to_run
from claw.testing import CheckedModel, FakeTool, MemoryJournal, conversation
from claw.types.entries import KnownEntry, ReplyReceived, ToolIntended
from claw.types.messages import ToolUse
from claw.types.reply import CUT_BY_LIMIT, Reply

SLOW = 20.0
"""Seconds for one case; all but a hang stay far below."""

CLIENTS: dict[str, Callable[..., Any]] = {
    "anthropic": AnthropicClient,
    "openai-chat": OpenAIChatClient,
    "openai-responses": OpenAIResponsesClient,
}


class Seed(msgspec.Struct, frozen=True):
    """A good reply: the body of a stream, or a plain JSON body."""

    dialect: str
    body: bytes


class Case(msgspec.Struct, frozen=True):
    dialect: str
    body: bytes
    status: int = 200
    headers: dict[str, str] = {}


# Good replies


def stream(events: Sequence[Any], *, end: str = "\n", last: str = "") -> bytes:
    """Events with their names; ``last`` is data without one."""
    lines = [f": hello{end}{end}"]
    for event in events:
        name = f"event: {event['type']}{end}" if "type" in event else ""
        lines.append(f"{name}data: {json.dumps(event, ensure_ascii=False)}{end}{end}")
    return ("".join(lines) + (f"data: {last}{end}{end}" if last else "")).encode()


MESSAGE: dict[str, Any] = {
    "type": "message",
    "id": "msg_1",
    "model": "m-1",
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm 思", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        {"type": "text", "text": "Good 🌍."},
        {"type": "tool_use", "id": "t1", "name": "Look", "input": {"path": "ä", "n": [1, 2]}},
        {"type": "tool_use", "id": "t2", "name": "Change", "input": {}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 9, "output_tokens": 7, "cache_read_input_tokens": 3},
}


def anthropic_stream() -> list[dict[str, Any]]:
    def part(index: int, kind: str, **fields: Any) -> dict[str, Any]:
        delta = {"type": kind, **fields}
        return {"type": "content_block_delta", "index": index, "delta": delta}

    def open_block(index: int, **block: Any) -> dict[str, Any]:
        return {"type": "content_block_start", "index": index, "content_block": block}

    def close(index: int) -> dict[str, Any]:
        return {"type": "content_block_stop", "index": index}

    head = {**MESSAGE, "content": [], "stop_reason": None}
    return [
        {"type": "message_start", "message": head},
        open_block(0, type="thinking", thinking="", signature=""),
        part(0, "thinking_delta", thinking="hm 思"),
        part(0, "signature_delta", signature="c2ln"),
        close(0),
        {"type": "ping"},
        open_block(1, type="text", text=""),
        part(1, "text_delta", text="Good "),
        part(1, "text_delta", text="🌍."),
        close(1),
        open_block(2, type="tool_use", id="t1", name="Look", input={}),
        part(2, "input_json_delta", partial_json='{"path": "ä"'),
        part(2, "input_json_delta", partial_json=', "n": [1, 2]}'),
        close(2),
        open_block(3, type="tool_use", id="t2", name="Change", input={}),
        part(3, "input_json_delta", partial_json=""),
        close(3),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 7},
        },
        {"type": "message_stop"},
    ]


CALLS = [
    {"id": "t1", "type": "function", "function": {"name": "Look", "arguments": '{"n": [1]}'}},
    {"id": "t2", "type": "function", "function": {"name": "Change", "arguments": "{}"}},
]
COMPLETION: dict[str, Any] = {
    "id": "c1",
    "object": "chat.completion",
    "model": "m-1",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Good 🌍.",
                "reasoning_content": "hm 思",
                "tool_calls": CALLS,
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16},
}


def chat_stream() -> list[dict[str, Any]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "c1", "model": "m-1", "choices": [choice]}

    first = {"index": 0, "id": "t1", "function": {"name": "Look", "arguments": ""}}
    rest = [{"index": 0, "function": {"arguments": piece}} for piece in ('{"n":', " [1]}")]
    second = {"index": 1, **CALLS[1]}
    calls = [chunk({"tool_calls": [call]}) for call in (first, *rest, second)]
    return [
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "hm 思"}),
        chunk({"content": "Good "}),
        chunk({"content": "🌍."}),
        *calls,
        chunk({}, "tool_calls"),
        {"id": "c1", "model": "m-1", "choices": [], "usage": COMPLETION["usage"]},
    ]


OUTPUT: list[dict[str, Any]] = [
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "hm 思"}],
        "encrypted_content": "ZGF0YQ==",
    },
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Good 🌍.", "annotations": []}],
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "t1",
        "name": "Look",
        "arguments": '{"n": [1]}',
    },
    {"type": "function_call", "id": "fc_2", "call_id": "t2", "name": "Change", "arguments": "{}"},
]
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "model": "m-1",
    "status": "completed",
    "output": OUTPUT,
    "usage": {"input_tokens": 9, "output_tokens": 7},
}


def responses_stream() -> list[dict[str, Any]]:
    def about(index: int, kind: str, **fields: Any) -> dict[str, Any]:
        return {"type": f"response.{kind}", "output_index": index, **fields}

    begun = [{k: v for k, v in item.items() if k in {"type", "id", "call_id"}} for item in OUTPUT]
    begun[2]["name"], begun[3]["name"] = "Look", "Change"
    start = {**RESPONSE, "status": "in_progress", "output": [], "usage": None}
    return [
        {"type": "response.created", "response": start},
        about(0, "output_item.added", item=begun[0]),
        about(0, "reasoning_summary_text.delta", summary_index=0, delta="hm 思"),
        about(0, "output_item.done", item=OUTPUT[0]),
        about(1, "output_item.added", item=begun[1]),
        about(1, "output_text.delta", content_index=0, delta="Good "),
        about(1, "output_text.delta", content_index=0, delta="🌍."),
        about(1, "output_item.done", item=OUTPUT[1]),
        about(2, "output_item.added", item=begun[2]),
        about(2, "function_call_arguments.delta", delta='{"n": '),
        about(2, "function_call_arguments.delta", delta="[1]}"),
        about(2, "output_item.done", item=OUTPUT[2]),
        about(3, "output_item.added", item=begun[3]),
        about(3, "output_item.done", item=OUTPUT[3]),
        {"type": "response.completed", "response": RESPONSE},
    ]


STREAMS: dict[str, bytes] = {
    "anthropic": stream(anthropic_stream()),
    "openai-chat": stream(chat_stream(), last="[DONE]"),
    "openai-responses": stream(responses_stream()),
}
WHOLE = {"anthropic": MESSAGE, "openai-chat": COMPLETION, "openai-responses": RESPONSE}
DONE: dict[str, bytes] = {
    "anthropic": json.dumps(
        {**MESSAGE, "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn"}
    ).encode(),
    "openai-chat": json.dumps(
        {"choices": [{"message": {"content": "done"}, "finish_reason": "stop"}]}
    ).encode(),
    "openai-responses": json.dumps(
        {**RESPONSE, "output": [{"type": "message", "content": "done"}]}
    ).encode(),
}
"""A reply that ends any turn."""


def own_seeds() -> list[Seed]:
    seeds = [Seed(dialect, body) for dialect, body in STREAMS.items()]
    seeds += [Seed(d, body.replace(b"\n", b"\r\n")) for d, body in STREAMS.items()]
    seeds += [Seed(d, json.dumps(v, ensure_ascii=False).encode()) for d, v in WHOLE.items()]
    return seeds


# Damage

DEEP, DIGITS, HUGE = "@deep@", "@digits@", "@huge@"
ODD: list[Any] = [
    *(None, True, False, 0, -1, 0.5, 10**30, -(10**400), float("nan"), float("inf"), 1e308),
    *("", " ", "\n", "x", "null", "{", "[1]", '{"a": 1}', "error", "\x00\x1b[2J", "é" * 300),
    *("\ud800", "\udc00 tail", "a\ud83d", DEEP, "t1", "Look", "length", "tool_use", "message_stop"),
    *(
        DIGITS,
        HUGE,
        [],
        {},
        [None],
        [[]],
        [{}],
        ["x"],
        {"type": "text"},
        {"type": "error"},
        {"text": None},
    ),
    *({"": ""}, {"message": "overloaded"}, {"\ud800": 1}, [1, "a", None, {"b": []}]),
]
STATUSES = [201, 204, 206, 302, 400, 401, 403, 404, 413, 429, 500, 503, 529, 599, 999]
HEADERS = [
    {"retry-after": "1"},
    {"retry-after": "-5"},
    {"retry-after": "1e400"},
    {"retry-after": "Wed, 99 Foo 2099 99:99:99 GMT"},
    {"retry-after-ms": "nan"},
    {"x-should-retry": "false"},
    {"request-id": "r\u00e9 \t"},
    {"content-type": "text/html"},
]


def flip(rng: random.Random, body: bytes, _: Sequence[Seed]) -> bytes:
    data = bytearray(body)
    for _n in range(rng.choice((1, 1, 3, 20))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def delete(rng: random.Random, body: bytes, _: Sequence[Seed]) -> bytes:
    at = rng.randrange(len(body))
    return body[:at] + body[at + rng.choice((1, 2, 5, 40)) :]


def double(rng: random.Random, body: bytes, _: Sequence[Seed]) -> bytes:
    at = rng.randrange(len(body))
    end = at + rng.choice((1, 2, 40, 400))
    return body[:end] + body[at:]


def truncate(rng: random.Random, body: bytes, _: Sequence[Seed]) -> bytes:
    return body[: rng.randrange(len(body))]


def noise(rng: random.Random, body: bytes, _: Sequence[Seed]) -> bytes:
    at = rng.randrange(len(body))
    junk = rng.choice(
        [b"\n", b"\n\n", b"\r", b"\xef\xbb\xbf", b"\xff\xfe", b"\x00", b'"', b"data: "]
    )
    return body[:at] + rng.choice([junk, rng.randbytes(8)]) + body[at:]


def splice(rng: random.Random, body: bytes, seeds: Sequence[Seed]) -> bytes:
    other = rng.choice(seeds).body
    return body[: rng.randrange(len(body))] + other[rng.randrange(len(other)) :]


def events_in(body: bytes) -> list[bytes]:
    return re.split(rb"(?<=\n\n)|(?<=\r\n\r\n)", body)


def reorder(rng: random.Random, body: bytes, seeds: Sequence[Seed]) -> bytes:
    events = events_in(body)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at, to = rng.randrange(len(events)), rng.randrange(len(events))
        match rng.randrange(5):
            case 0:
                events[at], events[to] = events[to], events[at]
            case 1:
                events.insert(to, events[at])
            case 2 if len(events) > 1:
                del events[at]
            case 3:
                events.insert(to, rng.choice(events_in(rng.choice(seeds).body)))
            case _:
                events.insert(to, rng.choice([b": ping\n\n", b"event: ping\ndata: {}\n\n"]))
    return b"".join(events)


def odd_value(rng: random.Random, body: bytes, seeds: Sequence[Seed]) -> bytes:
    """One JSON value in one event replaced, taken out, or put beside itself."""
    events = events_in(body)
    at = rng.randrange(len(events))
    head, mark, text = events[at].partition(b"data: ")
    if not mark:
        head, text = b"", events[at]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return flip(rng, body, seeds)
    for _ in range(rng.choice((1, 1, 2, 4))):
        value = _changed(rng, value)
    changed = json.dumps(value, ensure_ascii=rng.random() < 0.8)
    depth = rng.choice((3, 150, 250, 900, 20_000))
    changed = changed.replace(f'"{DEEP}"', "[" * depth + "]" * depth)
    changed = changed.replace(f'"{DIGITS}"', "9" * 5000).replace(f'"{HUGE}"', "-1e999")
    ending = b"" if not mark else b"\n\n"
    events[at] = head + mark + changed.encode("utf-8", "surrogatepass") + ending
    return b"".join(events)


def _changed(rng: random.Random, value: Any) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: _changed(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        if rng.random() < 0.1:
            return [*value, value[at]]
        return [*value[:at], _changed(rng, value[at]), *value[at + 1 :]]
    return rng.choice(ODD)


DAMAGES = [flip, delete, double, truncate, noise, splice, reorder, reorder, *[odd_value] * 4]


def case_of(seed: int, seeds: Sequence[Seed]) -> Case:
    rng = random.Random(seed)
    source = rng.choice(seeds)
    dialect = source.dialect if rng.random() < 0.95 else rng.choice(DIALECTS)
    body = source.body
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        body = rng.choice(DAMAGES)(rng, body, seeds) or b" "
    status = 200 if rng.random() < 0.95 else rng.choice(STATUSES)
    headers = {} if rng.random() < 0.9 else rng.choice(HEADERS)
    return Case(dialect, body, status, headers)


def chunking(rng: random.Random, body: bytes) -> list[bytes]:
    if len(body) < 4000 and rng.random() < 0.05:
        return [body[i : i + 1] for i in range(len(body))]
    cuts = sorted(rng.randrange(len(body) + 1) for _ in range(rng.choice((0, 1, 3, 30))))
    return [body[a:b] for a, b in pairwise([0, *cuts, len(body)])]


# What must hold


class Answers:
    """A transport: the case twice, in one chunking, and then a reply that ends the turn."""

    def __init__(self, case: Case, chunks: list[bytes]) -> None:
        self._case = case
        self._chunks = chunks
        self._asked = 0

    async def send(self, request: HttpRequest) -> HttpResponse:
        self._asked += 1
        if self._asked > 2:
            return HttpResponse(200, {}, _each([DONE[self._case.dialect]]), _nothing)
        return HttpResponse(self._case.status, self._case.headers, _each(self._chunks), _nothing)

    async def aclose(self) -> None:
        pass


async def _each(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def _nothing() -> None:
    pass


def outcome(case: Case, chunks: list[bytes]) -> Reply | tuple[str, str]:
    try:
        return decode(case.dialect, chunks, status=case.status, headers=case.headers)
    except ModelError as error:
        return type(error).__name__, error.message


async def check(seed: int, seeds: Sequence[Seed]) -> None:
    """Raises for a case that escapes, hangs, depends on the chunking, or acts on a cut reply."""
    case = case_of(seed, seeds)
    try:
        await check_case(case, seed)
    except BaseException as error:
        error.add_note(f"seed {seed}: {case.dialect}, status {case.status}, {case.body[:3000]!r}")
        raise


async def check_case(case: Case, seed: int, *, turns: bool = False) -> int:
    """The number of calls that ran; of the cases without ``turns``, most run none."""
    rng = random.Random(-seed - 1)
    began = time.monotonic()
    chunks = chunking(rng, case.body)
    reply = outcome(case, chunks)
    assert reply == outcome(case, chunking(rng, case.body)), "chunking matters"
    if isinstance(reply, Reply) and not reply.complete:
        assert calls_not_to_run(reply).keys() == {call.id for call in reply.tool_calls}
    # Whole turns cost most of the time: half of the cases that could do harm must do.
    acts = isinstance(reply, Reply) and bool(reply.tool_calls)
    turns = turns or rng.random() < (0.5 if acts else 0.1)
    ran = await _check_turns(case, chunks) if turns else 0
    assert time.monotonic() - began < SLOW, "a hang"
    return ran


async def _check_turns(case: Case, chunks: list[bytes]) -> int:
    """Two turns: the second asks again, with whatever the replies were."""
    client = CLIENTS[case.dialect](Answers(case, chunks), api_key="key")
    journal = MemoryJournal()
    tools = [FakeTool("Look"), FakeTool("Change", read_only=False)]
    talk = conversation(CheckedModel(client), tools, journal=journal)
    await talk.run_turn("begin")
    await talk.run_turn("go on")
    reply: ReplyReceived | None = None
    for entry in journal.entries:
        read_back = msgspec.json.decode(msgspec.json.encode(entry), type=KnownEntry)
        assert read_back == entry, "the journal would not give back what was said"
        if isinstance(entry, ReplyReceived):
            reply = entry
        elif isinstance(entry, ToolIntended):
            assert reply is not None
            assert_may_run(reply, entry.call_id)
    return sum(tool.runs for tool in tools)


def assert_may_run(reply: ReplyReceived, call_id: str) -> None:
    call = next(b for b in reply.blocks if isinstance(b, ToolUse) and b.id == call_id)
    assert reply.complete, "a call of a cut reply ran"
    assert call.raw_input is None, "a call without whole input ran"
    is_cut = reply.stop_reason in CUT_BY_LIMIT and reply.blocks[-1] is call
    assert not is_cut, "a call that the output limit cut ran"


async def sweep(seeds: Sequence[Seed], first: int, count: int) -> None:
    """Check the cases of ``count`` seeds from ``first`` on."""
    for seed in range(first, first + count):
        await check(seed, seeds)
