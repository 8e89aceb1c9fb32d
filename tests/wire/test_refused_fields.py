"""A server that knows only part of its dialect is asked again without what it refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from claw.models.anthropic.client import AnthropicClient
from claw.models.openai_chat.client import OpenAIChatClient
from claw.models.openai_responses.client import OpenAIResponsesClient
from claw.models.transport import HttpTransport
from claw.models.wire_client import WireClient
from claw.testing import MemoryJournal, StrictServer, answers, calls, says
from claw.testing.pieces import FakeTool, conversation
from claw.types.entries import ReplyReceived, Retried, StepRequested
from claw.types.messages import text_of
from claw.types.request import Sampling
from claw.types.results import final_assistant_text
from claw.types.usage import Usage

Made = Callable[[HttpTransport, str], WireClient]


def anthropic(transport: HttpTransport, base: str) -> WireClient:
    return AnthropicClient(transport, base_url=base, api_key="k")


def chat(transport: HttpTransport, base: str) -> WireClient:
    return OpenAIChatClient(transport, base_url=f"{base}/v1")


def responses(transport: HttpTransport, base: str) -> WireClient:
    return OpenAIResponsesClient(transport, base_url=f"{base}/v1")


def holds(value: Any, name: str) -> bool:
    if isinstance(value, dict):
        return name in value or any(holds(item, name) for item in value.values())
    return isinstance(value, list) and any(holds(item, name) for item in value)


def refusing(name: str) -> Any:
    return answers(400, {"error": {"message": f"Unknown parameter: '{name}'.", "type": "x"}})


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (anthropic, "cache_control"),
        (chat, "stream_options"),
        (responses, "include"),
        (responses, "store"),
    ],
)
async def test_a_refused_field_is_left_out_for_good(make: Made, name: str):
    journal = MemoryJournal()
    replies = [refusing(name), calls(("look", {})), says("done"), says("again")]
    async with StrictServer(replies) as server:
        transport = HttpTransport()
        talk = conversation(make(transport, server.base_url), [FakeTool("look")], journal=journal)
        assert final_assistant_text(await talk.run_turn("go")) == "done"
        await talk.run_turn("and again")
        await transport.aclose()
    assert [holds(request.body, name) for request in server.requests] == [True, *[False] * 3]
    retried = [entry for entry in journal.entries if isinstance(entry, Retried)]
    assert [(entry.error, entry.delay) for entry in retried] == [("parameter_refused", 0.0)]


async def test_a_server_that_refuses_it_all_the_same_is_not_asked_for_ever():
    async with StrictServer([refusing("cache_control")] * 2) as server:
        transport = HttpTransport()
        summary = await conversation(anthropic(transport, server.base_url)).run_turn("go")
        await transport.aclose()
    assert summary.error is not None
    assert summary.error.kind == "request_rejected"
    assert "cache_control" in summary.error.message


async def test_a_limit_is_asked_for_by_the_name_that_the_server_knows():
    async with StrictServer([refusing("max_tokens"), says("done")]) as server:
        transport = HttpTransport()
        talk = conversation(
            chat(transport, server.base_url), sampling=Sampling("m", max_tokens=2000)
        )
        assert final_assistant_text(await talk.run_turn("go")) == "done"
        await transport.aclose()
    first, second = (request.body for request in server.requests)
    assert first["max_tokens"] == second["max_completion_tokens"] == 2000
    assert "max_tokens" not in second


async def test_thinking_goes_back_to_a_server_that_calls_the_model_something_else():
    journal = MemoryJournal()
    call = calls(("look", {}), thinking="hm", signature="signed", model="vendor/another-name")
    async with StrictServer([call, says("done")]) as server:
        transport = HttpTransport()
        talk = conversation(
            anthropic(transport, server.base_url),
            [FakeTool("look")],
            journal=journal,
            sampling=Sampling("my-deployment"),
        )
        await talk.run_turn("go")
        await transport.aclose()
    (_, assistant, _) = server.requests[1].body["messages"]
    assert assistant["content"][0]["signature"] == "signed"
    reply = next(entry for entry in journal.entries if isinstance(entry, ReplyReceived))
    assert (reply.model, reply.served_by) == ("my-deployment", "vendor/another-name")


async def test_a_call_that_the_output_limit_cut_gets_twice_the_room_once():
    cut = calls(("look", {"a": "b"}), stop_reason="max_tokens", usage=Usage(10, 500))
    journal = MemoryJournal()
    async with StrictServer([cut, cut, says("done")]) as server:
        transport = HttpTransport()
        talk = conversation(chat(transport, server.base_url), [FakeTool("look")], journal=journal)
        summary = await talk.run_turn("go")
        await transport.aclose()
    limits = [request.body.get("max_tokens") for request in server.requests]
    assert limits == [None, 1000, None]
    assert all("(500 tokens)" in text_of(r.content) for r in summary.tool_results)
    assert len([entry for entry in journal.entries if isinstance(entry, StepRequested)]) == 3
