"""Chat Completions for models that know no calls: what goes over the wire and what comes back."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from claw.errors import ConfigError
from claw.models.openai_chat.schema_client import SchemaChatClient
from claw.models.registry import Profile, build, resolve
from claw.types.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolResult,
    ToolUse,
    UserMessage,
)
from claw.types.reply import Reply, assemble
from claw.types.request import Request, Sampling
from claw.types.tools import ToolSpec
from claw.types.usage import Usage
from tests.wire.test_clients import FakeTransport, chat_text, lines

READ = ToolSpec(
    "Read",
    "Reads a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
HELLO = UserMessage((Text("hello"),))


def said(*pieces: str, finish: str | None = "stop") -> list[bytes]:
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 2}}
    return lines(*map(chat_text, pieces), *([end, usage, "[DONE]"] if finish else []))


def asking(*messages: Message, tools: tuple[ToolSpec, ...] = (READ,)) -> Request:
    return Request("Be good.", messages, tools, Sampling("m"))


async def ask(request: Request, *chunks: bytes) -> tuple[Reply, dict[str, Any]]:
    transport = FakeTransport(*chunks)
    client = SchemaChatClient(transport)
    reply = assemble([event async for event in client.stream(request)])
    assert transport.open == 0
    return reply, json.loads(transport.requests[0].body)


async def test_a_call_looks_like_any_other():
    reply, body = await ask(asking(HELLO), *said('{"tool": "Re', 'ad", "input": {"path": "a"}}'))
    assert reply.blocks == (ToolUse("call_1", "Read", {"path": "a"}),)
    assert (reply.stop_reason, reply.usage) == ("tool_use", Usage(30, 2))
    assert "tools" not in body
    bound = body["response_format"]["json_schema"]
    assert "Read" in json.dumps(bound["schema"])
    assert "Reads a file." in body["messages"][0]["content"]


async def test_without_tools_nothing_is_bound():
    call = AssistantMessage((ToolUse("call_1", "Read", {"path": "a"}),))
    result = UserMessage((ToolResult("call_1", (Text("b"),)),))
    reply, body = await ask(asking(HELLO, call, result, tools=()), *said('{"answer": "x"}'))
    assert reply.text == '{"answer": "x"}'
    assert "response_format" not in body
    assert [message["role"] for message in body["messages"]] == [
        *("system", "user", "assistant", "user")
    ]
    assert body["messages"][0]["content"] == "Be good."
    assert body["messages"][2] == {
        "role": "assistant",
        "content": '{"tool":"Read","input":{"path":"a"}}',
    }


async def test_a_cut_stream_keeps_its_text_and_calls_nothing():
    reply, _ = await ask(asking(HELLO), *said('{"tool": "Read", "input": {"pa', finish=None))
    assert not reply.complete
    assert not reply.tool_calls
    assert reply.text == '{"tool": "Read", "input": {"pa'


async def test_every_request_extends_the_last_one():
    transport = FakeTransport(*said('{"answer": "x"}'))
    client = SchemaChatClient(transport)
    messages: list[Message] = [HELLO]
    for n in range(1, 5):
        async for _ in client.stream(asking(*messages)):
            pass
        messages.append(AssistantMessage((ToolUse(f"call_{n}", "Read", {"path": "a"}),)))
        messages.append(UserMessage((ToolResult(f"call_{n}", (Text("b"),), is_error=n == 2),)))
    bodies = [json.loads(request.body) for request in transport.requests]
    for before, after in pairwise(bodies):
        shared = len(before["messages"])
        assert after["messages"][:shared] == before["messages"]
        assert len(after["messages"]) == shared + 2
        assert {**after, "messages": []} == {**before, "messages": []}


def chosen(dialect: str):
    profile = Profile(dialect, "http://127.0.0.1:8080/v1", tools="json_schema")
    return resolve("local/m", env={}, profiles={"local": profile})


def test_a_profile_asks_for_it():
    assert isinstance(build(chosen("openai-chat")), SchemaChatClient)


@pytest.mark.parametrize("dialect", ["anthropic", "openai-responses"])
def test_other_dialects_have_no_such_thing(dialect: str):
    with pytest.raises(ConfigError) as caught:
        chosen(dialect)
    assert "`openai-chat`" in caught.value.hint
