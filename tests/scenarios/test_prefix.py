"""Each request extends the one before it, so that a session pays for its prefix once."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from claw.errors import ModelUnavailable, OutputLimitTooHigh
from claw.models.anthropic.client import AnthropicClient
from claw.models.openai_chat.client import OpenAIChatClient
from claw.models.openai_responses.client import OpenAIResponsesClient
from claw.models.transport import HttpTransport
from claw.ports import ModelClient
from claw.testing import (
    CheckedModel,
    FakeTool,
    Harness,
    ScriptedModel,
    ServerReply,
    StrictServer,
    calls,
    cut,
    fails,
    says,
)
from claw.testing.prefix import first_difference
from claw.testing.prompt_cache import CacheSimulator
from claw.types.entries import Compacted, Event, ToolFinished
from claw.types.messages import AssistantMessage, Text, UserMessage
from claw.types.reply import Reply
from claw.types.request import Request, Sampling
from claw.types.usage import Usage

DIALECTS = ("anthropic", "openai-chat", "openai-responses")
LIST = {"openai-responses": "input"}


def client(dialect: str, transport: HttpTransport, url: str) -> ModelClient:
    if dialect == "anthropic":
        return AnthropicClient(transport, base_url=url)
    kind = OpenAIChatClient if dialect == "openai-chat" else OpenAIResponsesClient
    return kind(transport, base_url=f"{url}/v1")


@asynccontextmanager
async def served(
    folder: Path, dialect: str, replies: Iterable[ServerReply], **options: Any
) -> AsyncIterator[tuple[Harness, StrictServer]]:
    """A conversation with a real client and a server that gives these replies."""
    transport = HttpTransport()
    async with StrictServer([*replies]) as server:
        try:
            model = client(dialect, transport, server.base_url)
            async with Harness(folder, model, mode="bypassPermissions", **options) as run:
                yield run, server
        finally:
            await transport.aclose()


def read(*names: str, text: str = "") -> Reply:
    return calls(*(("Read", {"file_path": name}) for name in names), text=text)


# --- every way on


TOOLS = (FakeTool("Look", text="seen", required=("at",)), FakeTool("Break", "broken", fails=True))


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_whatever_happens_a_request_extends_the_one_before(dialect: str, tmp_path: Path):
    """The server checks what it gets, the harness what is asked for; both raise."""
    replies: list[ServerReply] = [
        calls(("Look", {"at": "a"}), ("Break", {}), ("Unknown", {}), ("Look", {}), text="First."),
        fails(ModelUnavailable("busy", status=503)),
        cut("half a rep"),
        calls(("Look", {"at": "b"})),  # steered while it runs
        says("", thinking=""),  # after a result an empty end is normal
        calls(("Look", {"at": "c"})),
        fails(OutputLimitTooHigh("too much", max_tokens=999, status=400)),
        says("Done.", stop_reason="max_tokens"),
        says("Again \ud83d alone."),
        cut("no"),
        cut("no end"),
        says("The end."),
    ]

    def steer(event: Event) -> None:
        if isinstance(event, ToolFinished) and event.call_id == "call_4_1":
            run.house.runtime.steer("Look at the other one, too.")

    async with served(tmp_path, dialect, replies, tools=TOOLS) as (run, server):
        run.house.runtime.listen(steer)
        for prompt in ("go", "on", "and on", "x", "once more"):
            await run.turn(prompt)
    bodies = [request.body for request in server.requests]
    assert len(bodies) >= len(replies)
    sizes = [len(body[LIST.get(dialect, "messages")]) for body in bodies]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 10
    assert "other one" in json.dumps(bodies[-1])


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_interrupted_turn_is_extended(dialect: str, tmp_path: Path):
    def stop(event: Event) -> None:
        if isinstance(event, ToolFinished):
            run.house.runtime.interrupt()

    replies = [calls(("Look", {"at": "a"}), ("Look", {"at": "b"})), says("ok")]
    async with served(tmp_path, dialect, replies, tools=TOOLS) as (run, server):
        forget = run.house.runtime.listen(stop)
        assert (await run.turn("go")).stop_reason == "interrupted"
        forget()
        assert (await run.turn("go on")).stop_reason == "completed"
    assert len(server.requests) == 2


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_resumed_session_extends_what_was_sent_before(dialect: str, tmp_path: Path):
    """In a new process everything is built anew, and must come out the same."""
    transport = HttpTransport()
    replies = [calls(("Look", {"at": "a"})), says("one"), says("two")]
    async with StrictServer(replies) as server:
        options: dict[str, Any] = {}
        for prompt in ("go", "on"):
            model = client(dialect, transport, server.base_url)
            async with Harness(tmp_path, model, tools=TOOLS, **options) as run:
                options["session"] = "latest"
                await run.turn(prompt)
    await transport.aclose()
    bodies = [request.body for request in server.requests]
    assert [first_difference(dialect, *pair) for pair in pairwise(bodies)] == ["", ""]
    assert len(bodies[2][LIST.get(dialect, "messages")]) >= 5


# --- what is no extension


FIRST = Request("s", (UserMessage((Text("a"),)),), (), Sampling("scripted"))
GROWN = replace(
    FIRST,
    messages=(*FIRST.messages, AssistantMessage((Text("b"),)), UserMessage((Text("c"),))),
)


async def ask(model: ModelClient, *requests: Request) -> None:
    for request in requests:
        async for _ in model.stream(request):
            pass


@pytest.mark.parametrize(
    ("after", "named"),
    [
        (replace(GROWN, messages=(UserMessage((Text("A"),)), *GROWN.messages[1:])), "messages[0]"),
        (
            replace(
                GROWN,
                messages=(FIRST.messages[0], AssistantMessage((Text("B"),)), GROWN.messages[2]),
            ),
            "messages[1]",
        ),
        (FIRST, "messages[1]"),
        (replace(GROWN, system="t"), "system"),
        (replace(GROWN, tools=(TOOLS[0].spec,)), "tools"),
    ],
)
async def test_the_first_difference_is_named(after: Request, named: str):
    model = CheckedModel(ScriptedModel([says("b"), says("d")]))
    await ask(model, GROWN)
    with pytest.raises(AssertionError) as raised:
        await ask(model, after)
    assert named in str(raised.value)


async def test_an_entry_that_explains_it_lets_a_prefix_change():
    model = CheckedModel(ScriptedModel([says("b"), says("d")]))
    await ask(model, GROWN)
    model.heard(Compacted("auto", 1, 0, (Text("summary"),), 10, 5))
    await ask(model, replace(FIRST, messages=(UserMessage((Text("summary"),)),)))


def body(*messages: tuple[str, str], **more: Any) -> dict[str, Any]:
    listed = [{"role": role, "content": text} for role, text in messages]
    return {"model": "m", "max_tokens": 10, "messages": listed, **more}


BEFORE = body(("user", "a"), ("assistant", "b"), ("user", "c"))
AFTER = body(
    *((m["role"], m["content"]) for m in BEFORE["messages"]), ("assistant", "d"), ("user", "e")
)


async def violations(*bodies: dict[str, Any], **options: Any) -> list[str]:
    def post(port: int, given: dict[str, Any]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
        connection.request("POST", "/v1/messages", json.dumps(given), headers)
        connection.getresponse().read()
        connection.close()

    async with StrictServer([says("x")] * len(bodies), check=False, **options) as server:
        for given in bodies:
            await asyncio.to_thread(post, int(server.base_url.rpartition(":")[2]), given)
    return server.violations


async def test_the_server_compares_within_a_conversation():
    other = body(("user", "another"), ("assistant", "b"), ("user", "c"))
    assert await violations(BEFORE, AFTER, AFTER) == []
    assert await violations(body(("user", "a")), body(("user", "another")), BEFORE, other) == []
    assert await violations({**BEFORE, "model": "n"}, other) == []  # its thinking is not sent
    (problem,) = await violations(BEFORE, other)
    assert "request 2" in problem
    assert "messages[0]" in problem
    (problem,) = await violations(AFTER, BEFORE)
    assert "messages[3]" in problem
    (problem,) = await violations(BEFORE, {**AFTER, "system": "new"})
    assert "`system`" in problem
    assert await violations(BEFORE, other, extends=False) == []


def test_marks_are_no_difference_and_a_message_may_grow():
    one = {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {}}]}
    grown = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}]}
    for dialect in ("anthropic", "openai-chat"):
        assert first_difference(dialect, {"messages": [one]}, {"messages": [grown]}) == ""
        assert first_difference(dialect, {"messages": [grown]}, {"messages": [one]})
    assert first_difference("openai-chat", body(("user", "a")), body(("user", "a\n\nb"))) == ""
    assert first_difference("anthropic", body(("user", "a")), body(("user", "b")))
    assert first_difference("openai-responses", {"input": "a"}, {"input": "b"})


# --- what the cache gives back


def simple(steps: int) -> list[ServerReply]:
    return [calls(("Look", {"at": str(step)}), text=f"Step {step}.") for step in range(steps)]


def parallel(steps: int) -> list[ServerReply]:
    """More blocks to a step than the cache looks back: 13 of the reply, 12 results."""
    return [
        calls(*(("Look", {"at": f"{step}.{n}"}) for n in range(12)), text=f"Step {step}.")
        for step in range(steps)
    ]


def thoughtful(steps: int) -> list[ServerReply]:
    return [
        calls(("Look", {"at": str(step)}), thinking=f"Thought {step}. " * 20, signature="s")
        for step in range(steps)
    ]


def troubled(steps: int) -> list[ServerReply]:
    """Every tenth reply breaks off, or is refused, before it comes."""
    troubles = (cut("half"), fails(ModelUnavailable("busy", status=529)))
    replies = simple(steps)
    for at in range(45, 0, -10):
        replies.insert(at, troubles[at // 10 % 2])
    return replies


def share(bodies: Iterable[dict[str, Any]]) -> float:
    """The part of all input that came from the cache."""
    cache = CacheSimulator()
    total = sum((cache.send(given) for given in bodies), Usage())
    return total.cache_read_input_tokens / (total.context_tokens or 1)


@pytest.mark.parametrize(
    ("kind", "length", "steered"),
    [
        (simple, 40, False),
        (simple, 2_000, True),
        (parallel, 40, True),
        (thoughtful, 2_000, False),
        (troubled, 2_000, True),
    ],
)
async def test_a_session_of_fifty_steps_reads_95_percent_from_the_cache(
    kind: Callable[[int], list[ServerReply]], length: int, steered: bool, tmp_path: Path
):
    def steer(event: Event) -> None:
        if steered and isinstance(event, ToolFinished) and event.call_id.endswith("_1"):
            run.house.runtime.steer("Mind the tests. " * 5)

    tool = FakeTool("Look", text="x" * length, required=("at",))
    replies = [*kind(49), says("Done.")]
    async with served(tmp_path, "anthropic", replies, tools=(tool,), max_steps=60) as (run, server):
        run.house.runtime.listen(steer)
        assert (await run.turn("Look at everything.")).iterations == 50
    bodies = [request.body for request in server.requests]
    found = share(bodies)
    print(f"{kind.__name__}, results of {length} bytes, steered {steered}: {found:.1%} from cache")
    assert found >= 0.95
    assert max(json.dumps(given).count('"cache_control"') for given in bodies) == 4


def test_the_simulator_reads_what_was_written_and_no_more():
    def marked(*sizes: int, marks: tuple[int, ...]) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "text", "text": "x" * size} for size in sizes]
        for mark in marks:
            content[mark]["cache_control"] = {"type": "ephemeral"}
        return {"messages": [{"role": "user", "content": content}]}

    cache = CacheSimulator()
    first = cache.send(marked(8_000, 8_000, marks=(0,)))
    assert first.cache_read_input_tokens == 0
    assert 2_000 < first.cache_creation_input_tokens < 2_100
    assert 2_000 < first.input_tokens < 2_100
    again = cache.send(marked(8_000, 8_000, *[4] * 18, marks=(19,)))  # 20 blocks, itself included
    assert again.cache_read_input_tokens == first.cache_creation_input_tokens
    far = CacheSimulator()
    far.send(marked(8_000, marks=(0,)))
    assert far.send(marked(8_000, *[4] * 20, marks=(20,))).cache_read_input_tokens == 0
    short = CacheSimulator()
    assert short.send(marked(400, marks=(0,))).cache_creation_input_tokens == 0
    with pytest.raises(ValueError, match="breakpoints"):
        cache.send(marked(*[4] * 5, marks=(0, 1, 2, 3, 4)))
    changed = {**marked(8_000, 8_000, marks=(0,)), "thinking": {"type": "adaptive"}}
    assert cache.send(changed).cache_read_input_tokens == 0
