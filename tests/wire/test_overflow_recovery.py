"""A conversation that outgrows a window of 8,000 tokens, over every wire dialect."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from claw.models.anthropic.client import AnthropicClient
from claw.models.openai_chat.client import OpenAIChatClient
from claw.models.openai_responses.client import OpenAIResponsesClient
from claw.models.transport import HttpTransport
from claw.ports import ModelClient
from claw.sessions.load import load
from claw.testing import FakeTool, Harness, Received, ServerReply, StrictServer, calls, says
from claw.types.entries import Compacted, RecoveryFailed
from claw.types.results import final_assistant_text

DIALECTS = ("anthropic", "openai-chat", "openai-responses")
WINDOW = 8_000
REQUEST = "Count the frobnicated widgets, REQUEST-4711."


def client(dialect: str, transport: HttpTransport, url: str) -> ModelClient:
    if dialect == "anthropic":
        return AnthropicClient(transport, base_url=url)
    kind = OpenAIChatClient if dialect == "openai-chat" else OpenAIResponsesClient
    return kind(transport, base_url=f"{url}/v1")


@asynccontextmanager
async def served(
    folder: Path,
    dialect: str,
    replies: Sequence[ServerReply],
    *,
    window: int | None = WINDOW,
    **options: Any,
) -> AsyncIterator[tuple[Harness, StrictServer]]:
    transport = HttpTransport()
    async with StrictServer(replies, window=window, extends=False) as server:
        model = client(dialect, transport, server.base_url)
        async with Harness(folder, model, **options) as run:
            yield run, server
        await transport.aclose()


def text_of_body(request: Received) -> str:
    return json.dumps(request.body, ensure_ascii=False)


async def journalled(run: Harness) -> Any:
    """The session as another process would load it."""
    path = run.house.journal_path
    assert path is not None
    return load(path).state


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_inside_one_long_turn(tmp_path: Path, dialect: str):
    look = FakeTool("Look", "a finding " * 200)  # 500 tokens
    steps = [calls(("Look", {"at": n}), text=f"Looking at {n}.") for n in range(24)]
    replies = [*steps, says("There are 24.")]
    async with served(tmp_path, dialect, replies, tools=[look]) as (run, server):
        summary = await run.turn(REQUEST)
        assert summary.stop_reason == "completed"
        assert final_assistant_text(summary) == "There are 24."
        assert look.runs == 24
        assert text_of_body(server.requests[-1]).count(REQUEST) == 1
        assert all(text_of_body(request).count(REQUEST) == 1 for request in server.requests)
        state = await journalled(run)
        assert state.transcript == run.house.runtime.state.transcript
    assert summary.compactions


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_with_a_long_history(tmp_path: Path, dialect: str):
    history = [says(f"Answer {n}. " + "It is so. " * 300) for n in range(16)]
    async with served(tmp_path, dialect, history, window=None) as (run, _):
        for n in range(16):
            await run.turn(f"Question number {n}?")
    replies = [says("There are none.")]
    async with served(tmp_path, dialect, replies, session="latest") as (run, server):
        summary = await run.turn(REQUEST)
        assert summary.stop_reason == "completed"
        final = text_of_body(server.requests[-1])
        assert final.count(REQUEST) == 1
        assert "Question number 15?" in final
        assert len(server.requests) <= 5
        assert (await journalled(run)).transcript == run.house.runtime.state.transcript


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_window_that_holds_not_even_the_request(tmp_path: Path, dialect: str):
    history = [says(f"Answer {n}. " + "It is so. " * 100) for n in range(8)]
    async with served(tmp_path, dialect, history, window=None) as (run, _):
        for n in range(8):
            await run.turn(f"Question number {n}?")
        before = run.house.runtime.state.transcript
    async with served(tmp_path, dialect, [], window=100, session="latest") as (run, server):
        summary = await run.turn(REQUEST)
        assert summary.stop_reason == "context_overflow"
        assert summary.error is not None
        assert summary.error.kind == "context_overflow"
        assert 2 <= len(server.requests) <= 5  # the request itself, and at most 4 attempts
        assert summary.compactions == ()
        entries = run.entries
        assert sum(isinstance(e, Compacted) for e in entries) == len(server.requests) - 1
        assert any(isinstance(e, RecoveryFailed) for e in entries)
        state = await journalled(run)
        assert state.transcript.messages[:-1] == before.messages
    async with served(tmp_path, dialect, [says("Back.")], window=None, session="latest") as (
        run,
        _,
    ):
        assert final_assistant_text(await run.turn("And now?")) == "Back."
