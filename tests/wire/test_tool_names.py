"""Tools whose names no provider takes are offered under others and called by their own."""

from __future__ import annotations

from typing import Any

import pytest

from claw.models.anthropic.client import AnthropicClient
from claw.models.openai_chat.client import OpenAIChatClient
from claw.models.openai_responses.client import OpenAIResponsesClient
from claw.models.registry import resolve
from claw.models.scripted import calls
from claw.models.transport import HttpTransport
from claw.models.wire_text import tool_name
from claw.testing.strict_server import StrictServer
from claw.types.messages import Text, ToolUse, UserMessage
from claw.types.request import Request, Sampling
from claw.types.tools import ToolSpec

LONG = "mcp__server__" + "x" * 70
TOOLS = tuple(ToolSpec(name, "", {"type": "object"}) for name in (LONG + "1", LONG + "2", "Read"))


@pytest.mark.parametrize(
    ("client_of", "path"),
    [(AnthropicClient, ""), (OpenAIChatClient, "/v1"), (OpenAIResponsesClient, "/v1")],
)
async def test_calls_come_back_under_the_tools_own_names(client_of: Any, path: str):
    used = [t.name for t in TOOLS]
    reply = calls(*((tool_name(name), {}) for name in [*used, "Unknown"]))
    transport = HttpTransport()
    async with StrictServer([reply]) as server:
        client = client_of(transport, base_url=server.base_url + path)
        request = Request("", (UserMessage((Text("x"),)),), TOOLS, Sampling("m"))
        events = [event async for event in client.stream(request)]
    await transport.aclose()
    assert [e.name for e in events if isinstance(e, ToolUse)] == [*used, "Unknown"]


def test_names_that_providers_take_stay_as_they_are():
    for name in ("Read", "mcp__a__b-c", "x" * 64):
        assert tool_name(name) == name
    assert tool_name("") != tool_name(" ")


@pytest.mark.parametrize(
    ("model", "quirk"),
    [
        ("gemini/gemini-3.8-flash", "gemini_schema"),
        ("moonshot/kimi-k3", "moonshot_schema"),
        ("mistral/devstral-2512", "assistant_before_user"),
        ("llamacpp/any", "llama_schema"),
    ],
)
def test_what_providers_need(model: str, quirk: str):
    keys = ("GEMINI_API_KEY", "MOONSHOT_API_KEY", "MISTRAL_API_KEY")
    assert quirk in resolve(model, env=dict.fromkeys(keys, "k")).quirks
