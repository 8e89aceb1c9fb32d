"""One table of histories through every dialect: the bodies are golden files.

Every body is accepted by the strict validators; ``--claw-update`` rewrites the files.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from claw.models.encode import encode_request
from claw.models.openai_chat.encode import QUIRKS
from claw.models.openai_chat.encode import encode as encode_chat
from claw.models.wire_text import to_bytes
from claw.testing import validate_anthropic, validate_chat, validate_responses
from claw.types.messages import (
    AssistantMessage,
    Document,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    UserMessage,
)
from claw.types.request import Request, Sampling
from claw.types.tools import ToolSpec
from claw.types.transcript import Transcript, repair

VALIDATE: dict[str, Callable[[Any], list[str]]] = {
    "anthropic": validate_anthropic,
    "openai-chat": validate_chat,
    "openai-responses": validate_responses,
}
MODEL = {
    "anthropic": "claude-sonnet-4-5",
    "openai-chat": "gpt-5",
    "openai-responses": "gpt-5",
}
HALF = "\ud83d"
PICTURE = Image("image/png", "p")
LONG = "mcp__a_server_with_a_long_name__and_a_tool_whose_name_is_longer_still_"
READ = ToolSpec("Read", "reads", {"type": "object", "properties": {"p": {"type": "string"}}})


def user(*content: Any) -> UserMessage:
    return UserMessage(tuple(Text(c) if isinstance(c, str) else c for c in content))


def said(*content: Any, model: str = "", **metadata: Any) -> AssistantMessage:
    blocks = tuple(Text(c) if isinstance(c, str) else c for c in content)
    return AssistantMessage(blocks, model=model, provider_metadata=metadata)


def result(id: str, *content: Any, is_error: bool = False) -> ToolResult:
    return ToolResult(id, tuple(Text(c) if isinstance(c, str) else c for c in content), is_error)


GO = user("go")
CALLS = said("I will.", ToolUse("a", "Read", {"p": "x"}), ToolUse("b", "Bash", {"n": [1, None]}))
RESULTS = user(result("a", "one"), result("b", "two", is_error=True))

HISTORIES: dict[str, tuple[Message, ...]] = {
    "a question": (GO,),
    "a conversation": (GO, said("So."), user("And?")),
    "calls and results": (GO, CALLS, RESULTS),
    "a word while it worked": (GO, CALLS, RESULTS, user("Be quick.")),
    "a word with the results": (GO, CALLS, user(*RESULTS.content, "Be quick.")),
    "blank texts": (user(" ", "go", ""), said("\n", "So.", ""), user("And?")),
    "a reply that says nothing": (GO, said(" "), user("And?")),
    "a reply of thoughts only": (GO, said(Thinking("hm", "sig")), user("And?")),
    "results without content": (GO, CALLS, user(result("a"), result("b", " ", is_error=True))),
    "a call without its result": Transcript().user(GO).assistant(CALLS).messages,
    "results in another order": repair(
        (GO, CALLS, user(result("b", "2"), result("a", "1")))
    ).messages,
    "a result that nobody asked for": repair(
        (GO, CALLS, RESULTS, user(result("z", "?"), "So?"))
    ).messages,
    "input that did not parse": (
        GO,
        said(ToolUse("a", "Read", {}, '{"p": "x')),
        user(result("a", "not JSON", is_error=True)),
    ),
    "thinking": (
        GO,
        said(Thinking("hm", "sig"), RedactedThinking("xyz"), "So.", *CALLS.content[1:]),
        RESULTS,
    ),
    "thinking without a signature": (GO, said(Thinking("hm"), "So."), user("And?")),
    "thinking of another model": (
        GO,
        said(Thinking("hm", "sig"), RedactedThinking("xyz"), "So.", model="another"),
        user("And?"),
    ),
    "what only one provider understands": (
        GO,
        said(
            Opaque("anthropic", {"type": "server_tool_use", "id": "s", "name": "w", "input": {}}),
            Opaque("openai", {"type": "reasoning", "summary": [], "encrypted_content": "e"}),
            Opaque("elsewhere", {"type": "x"}),
            "So.",
        ),
        user("And?"),
    ),
    "what goes back with the calls": (
        GO,
        said(
            *CALLS.content,
            extra_content={"0": {"google": {"thought_signature": "t"}}},
            reasoning_details=[{"type": "reasoning.encrypted", "data": "d"}],
            calls={"1": {"namespace": "n"}},
        ),
        RESULTS,
    ),
    "half characters": (
        user(f"go{HALF}"),
        said(f"so{HALF}", ToolUse("a", f"R{HALF}", {f"k{HALF}": [f"v{HALF}"]})),
        user(result("a", f"out{HALF}")),
    ),
    "odd and long names": (
        GO,
        said(
            ToolUse("a", "a tool.x", {}), ToolUse("b", LONG + "1", {}), ToolUse("c", LONG + "2", {})
        ),
        user(result("a", "1"), result("b", "2"), result("c", "3")),
    ),
    "odd and long ids": (
        GO,
        said(ToolUse("functions.Read:0", "Read", {}), ToolUse("x" * 200, "Read", {})),
        user(result("functions.Read:0", "1"), result("x" * 200, "2")),
    ),
    "ids that come again": repair(
        (
            GO,
            said(ToolUse("a", "Read", {"p": "1"}), ToolUse("a", "Read", {"p": "2"})),
            user(result("a", "1"), result("a", "2")),
            said(ToolUse("a", "Read", {"p": "3"})),
            user(result("a", "3")),
        )
    ).messages,
    "a picture": (user(PICTURE),),
    "a picture and a document": (
        user(
            "Look.", PICTURE, Document("application/pdf", "d", "A.pdf"), Document("text/plain", "t")
        ),
    ),
    "pictures in results": (
        GO,
        CALLS,
        user(result("a", PICTURE), result("b", "see", PICTURE, is_error=True), "So?"),
    ),
    "two prompts in a row": (GO, user("Once more.")),
    "two replies in a row": (GO, said("So."), said("Or so."), user("And?")),
    "a reply at the end": (GO, said("So.")),
}
BLOBS = {"p": b"\x89PNG", "d": b"%PDF", "t": "ä".encode()}
TOOLS = (
    READ,
    ToolSpec("a tool.x", "odd", {"anyOf": [{"required": ["a"]}], "properties": {"a": {}}}),
    ToolSpec(LONG + "1", f"half{HALF}", {"type": "object", "description": f"half{HALF}"}),
    ToolSpec(LONG + "2", "long", {"type": "object"}),
)


def bodies(dialect: str, **options: Any) -> dict[str, Any]:
    """Name of the history -> the body as it goes out."""
    sent: dict[str, Any] = {}
    for name, history in HISTORIES.items():
        body = encode_request(
            dialect, history, model=MODEL[dialect], blobs_get=BLOBS.__getitem__, **options
        )
        raw = to_bytes(body)
        assert b"\\ud8" not in raw.lower()
        sent[name] = json.loads(raw)
        assert VALIDATE[dialect](sent[name]) == [], name
    return sent


@pytest.mark.parametrize("dialect", VALIDATE)
def test_histories(dialect, golden):
    golden({name: body.get("messages") or body["input"] for name, body in bodies(dialect).items()})


@pytest.mark.parametrize("dialect", VALIDATE)
def test_whole_bodies(dialect, golden):
    settings: dict[str, dict[str, Any]] = {
        "nothing": {},
        "a blank system prompt": {"system": " \n"},
        "everything": {"system": f"be good{HALF}", "tools": TOOLS, "max_tokens": 9_000},
        "little thinking": {"effort": "low", "max_tokens": 9_000},
        "all thinking": {"effort": "max"},
        "no thinking": {"effort": "none"},
    }
    made = {}
    for name, options in settings.items():
        body = encode_request(dialect, (GO,), **{"model": MODEL[dialect], **options})
        made[name] = json.loads(to_bytes(body))
        assert VALIDATE[dialect](made[name]) == [], name
    golden(made)


@pytest.mark.parametrize("dialect", VALIDATE)
def test_tools_change_no_history(dialect):
    with_tools = bodies(dialect, tools=TOOLS, system="be good")
    for name, body in bodies(dialect).items():
        for field in ("messages", "input"):
            assert body.get(field, [])[-1:] == with_tools[name].get(field, [])[-1:]


@pytest.mark.parametrize("quirk", sorted(QUIRKS))
def test_quirks_make_no_history_invalid(quirk):
    for name, history in HISTORIES.items():
        request = Request("", history, TOOLS, Sampling("gpt-5"))
        body = encode_chat(request, blobs_get=BLOBS.__getitem__, quirks=frozenset({quirk}))
        assert validate_chat(json.loads(to_bytes(body))) == [], name


@pytest.mark.parametrize("dialect", VALIDATE)
def test_long_names_stay_different_and_the_same_everywhere(dialect):
    history = HISTORIES["odd and long names"]
    body = encode_request(dialect, history, TOOLS, model="m")
    offered = [(t.get("function") or t)["name"] for t in body["tools"]][1:]
    text = json.dumps(body.get("messages") or body["input"])
    assert len(set(offered)) == 3
    assert all(f'"name": "{name}"' in text for name in offered)
    assert all(len(name) <= 64 for name in offered)


def test_breakpoints_are_at_most_four_and_not_on_thoughts():
    options = {"tools": TOOLS, "system": "be good"}
    for body in bodies("anthropic", **options).values():
        marked = [b for m in body["messages"] for b in m["content"] if "cache_control" in b]
        assert json.dumps(body).count("cache_control") <= 4
        assert len(marked) <= 2
        assert not any(b["type"] in {"thinking", "redacted_thinking"} for b in marked)
        assert all(b["text"].strip() for b in marked if b["type"] == "text")


def test_a_word_of_the_assistant_stands_between_results_and_a_prompt_where_one_must():
    request = Request("", HISTORIES["a word while it worked"], (), Sampling("m"))
    plain = encode_chat(request)["messages"]
    spaced = encode_chat(request, quirks=frozenset({"assistant_before_user"}))["messages"]
    assert [m["role"] for m in plain[-2:]] == ["tool", "user"]
    assert [m["role"] for m in spaced[-3:]] == ["tool", "assistant", "user"]
    assert spaced[:-2] == plain[:-1]
