"""With a memo from request to request, the bodies are what they are without one."""

import copy

import pytest

from claw.models.anthropic.encode import encode as anthropic
from claw.models.openai_chat.encode import encode as chat
from claw.models.openai_responses.encode import encode as responses
from claw.models.wire_text import Memo
from claw.testing import validate_anthropic, validate_chat, validate_responses
from claw.types.messages import AssistantMessage, Message, Text, ToolResult, ToolUse, UserMessage
from claw.types.request import Request, Sampling
from claw.types.tools import ToolSpec

ONE = (ToolSpec("Read", "reads", {"type": "object"}),)
TWO = (*ONE, ToolSpec("Bash", "runs", {"type": "object"}))


def session(steps: int) -> list[Message]:
    messages: list[Message] = [UserMessage((Text("go"),)), UserMessage((Text("and this"),))]
    for n in range(steps):
        messages.append(AssistantMessage((Text("so"), ToolUse(f"c{n}", "Read", {"n": n})), "m"))
        messages.append(UserMessage((ToolResult(f"c{n}", (Text("out"),), is_error=n % 2 == 0),)))
    return messages


@pytest.mark.parametrize(
    ("encode", "validate"),
    [(anthropic, validate_anthropic), (chat, validate_chat), (responses, validate_responses)],
)
def test_bodies_are_the_same_with_a_memo(encode, validate) -> None:
    memo = Memo()
    whole = session(6)
    sent = []
    for end in [2, 4, 6, 6, 8, 4, 14]:
        model = "m" if end != 6 else "other"
        tools = ONE if end < 8 else TWO
        request = Request("system", tuple(whole[:end]), tools, Sampling(model))
        body = encode(request, memo=memo)
        assert body == encode(request)
        assert validate(body) == []
        sent.append((copy.deepcopy(body), body))
    assert all(before == after for before, after in sent)  # nothing was changed afterwards
