from __future__ import annotations

from claw.models.estimate import estimate_request, estimate_tokens
from claw.types.messages import (
    AssistantMessage,
    Image,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    UserMessage,
)
from claw.types.request import Request, Sampling
from claw.types.tools import ToolSpec


def test_by_script():
    assert estimate_tokens("") == 0
    assert estimate_tokens("abcd" * 10) == 10
    assert estimate_tokens("你好世界") == 4
    assert 5 <= estimate_tokens("Привет, мир") <= 8
    assert estimate_tokens("lone \ud800") > 0


def test_every_part_of_a_request_counts():
    call = ToolUse("c", "Bash", {"command": "ls -la"})
    messages = (
        UserMessage((Text("x" * 400),)),
        AssistantMessage((Thinking("y" * 40), call)),
        UserMessage((ToolResult("c", (Text("z" * 400), Image("image/png", "digest"))),)),
    )
    tool = ToolSpec("Bash", "runs a command", {"type": "object"})
    small = estimate_request(Request("", (), (), Sampling("m")))
    whole = estimate_request(Request("s" * 400, messages, (tool,), Sampling("m")))
    assert small == 0
    assert 1900 < whole < 2100
