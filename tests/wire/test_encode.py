"""Histories to request bodies."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.errors import ConfigError, SessionError
from claw.models.anthropic.decode import CITATIONS
from claw.models.dialect import DIALECTS
from claw.models.encode import encode_request
from claw.models.openai_chat.encode import QUIRKS
from claw.models.openai_chat.encode import encode as encode_chat
from claw.models.wire_text import to_bytes
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

MODEL = "claude-sonnet-4-5"
TOOLS = (
    ToolSpec("Read", "reads", {"type": "object"}),
    ToolSpec("Bash", "runs", {"type": "object"}),
)
EPHEMERAL = {"cache_control": {"type": "ephemeral"}}


def user(*content: Any) -> UserMessage:
    return UserMessage(tuple(Text(c) if isinstance(c, str) else c for c in content))


def assistant(*content: Any, model: str = MODEL, **metadata: Any) -> AssistantMessage:
    blocks = tuple(Text(c) if isinstance(c, str) else c for c in content)
    return AssistantMessage(blocks, model=model, provider_metadata=metadata)


def result(id: str, *content: Any, is_error: bool = False) -> ToolResult:
    blocks = tuple(Text(c) if isinstance(c, str) else c for c in content)
    return ToolResult(id, blocks, is_error)


def anthropic(*messages: Message, **options: Any) -> dict[str, Any]:
    return encode_request("anthropic", messages, **{"model": MODEL, **options})


def chat(*messages: Message, **options: Any) -> dict[str, Any]:
    return encode_request("openai-chat", messages, **{"model": MODEL, **options})


def without_breakpoints(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_breakpoints(v) for k, v in value.items() if k != "cache_control"}
    return [without_breakpoints(v) for v in value] if isinstance(value, list) else value


ROUND = (
    user("do it"),
    assistant("I will.", ToolUse("a", "Read", {"p": 1}), ToolUse("b", "Bash", {})),
    user(result("a", "one"), result("b", "two", is_error=True)),
)


def test_a_whole_anthropic_body():
    assert anthropic(*ROUND, tools=TOOLS, system="be good") == {
        "model": MODEL,
        "max_tokens": 32_000,
        "stream": True,
        "system": [{"type": "text", "text": "be good", **EPHEMERAL}],
        "tools": [
            {"name": "Read", "description": "reads", "input_schema": {"type": "object"}},
            {
                "name": "Bash",
                "description": "runs",
                "input_schema": {"type": "object"},
                **EPHEMERAL,
            },
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "do it", **EPHEMERAL}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I will."},
                    {"type": "tool_use", "id": "a", "name": "Read", "input": {"p": 1}},
                    {"type": "tool_use", "id": "b", "name": "Bash", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "a",
                        "content": [{"type": "text", "text": "one"}],
                    },
                    {
                        "type": "tool_result",
                        "tool_use_id": "b",
                        "content": [{"type": "text", "text": "two"}],
                        "is_error": True,
                        **EPHEMERAL,
                    },
                ],
            },
        ],
    }


def test_a_whole_chat_body():
    assert chat(*ROUND, tools=TOOLS[:1], system="be good", max_tokens=99) == {
        "model": MODEL,
        "max_tokens": 99,
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "Read",
                    "description": "reads",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
        "messages": [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": "do it"},
            {
                "role": "assistant",
                "content": "I will.",
                "tool_calls": [
                    {
                        "id": "a",
                        "type": "function",
                        "function": {"name": "Read", "arguments": '{"p":1}'},
                    },
                    {
                        "id": "b",
                        "type": "function",
                        "function": {"name": "Bash", "arguments": "{}"},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": "one"},
            {"role": "tool", "tool_call_id": "b", "content": "Error: two"},
        ],
    }


def test_nothing_that_is_not_there():
    for body in (anthropic(user("x")), chat(user("x"))):
        assert "tools" not in body
    assert "system" not in anthropic(user("x"), system=" \n")
    assert chat(user("x"), system=" \n")["messages"][0]["role"] == "user"
    assert "max_tokens" not in chat(user("x"))


def test_blank_texts_and_empty_messages_vanish():
    messages = (user("a"), assistant(" \n", ""), user("b", "  "))
    assert without_breakpoints(anthropic(*messages)["messages"]) == [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    ]
    assert chat(*messages)["messages"] == [{"role": "user", "content": "a\n\nb"}]


def test_results_without_content_say_so():
    calls = assistant(ToolUse("a", "Read"))
    body = anthropic(user("x"), calls, user(result("a", " ")))
    assert body["messages"][2]["content"][0]["content"] == [{"type": "text", "text": "(no output)"}]
    body = chat(user("x"), calls, user(result("a")))
    assert body["messages"][2]["content"] == "(no output)"
    assert body["messages"][1]["content"] is None


def test_an_error_is_not_announced_twice():
    body = chat(
        user("x"), assistant(ToolUse("a", "R")), user(result("a", "Error: no", is_error=True))
    )
    assert body["messages"][2]["content"] == "Error: no"


def test_thinking_goes_back_to_its_own_model_only():
    said = (Thinking("hm", "sig+/=="), RedactedThinking("xyz"), "so", Thinking("unsigned"), "and")
    same = anthropic(user("x"), assistant(*said, model=MODEL + "-20250929"), user("y"))
    assert same["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig+/=="},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "text", "text": "so"},
        {"type": "text", "text": "and"},
    ]
    other = anthropic(user("x"), assistant(*said, model="claude-sonnet-4"), user("y"))
    assert [b["type"] for b in other["messages"][1]["content"]] == ["text", "text"]
    assert "hm" not in json.dumps(chat(user("x"), assistant(*said), user("y")))
    unnamed = anthropic(user("x"), assistant(*said, model=""), user("y"))
    assert unnamed["messages"] == same["messages"]
    renamed = anthropic(user("x"), assistant(*said, model="vertex/claude-sonnet-4-5"), user("y"))
    assert renamed["messages"] == same["messages"]


def test_thinking_alone_or_at_the_end_is_left_out():
    alone = anthropic(user("x"), assistant(Thinking("hm", "s")), user("y"))
    assert [m["role"] for m in alone["messages"]] == ["user"]
    last = anthropic(user("x"), assistant("so", Thinking("hm", "s")), user("y"))
    assert [b["type"] for b in last["messages"][1]["content"]] == ["text"]


def test_opaque_blocks_go_back_to_their_provider():
    block = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    message = assistant(Opaque("anthropic", block), Opaque("elsewhere", {"type": "x"}), "so")
    assert anthropic(user("x"), message)["messages"][1]["content"] == [
        block,
        {"type": "text", "text": "so"},
    ]
    assert chat(user("x"), message)["messages"][1] == {"role": "assistant", "content": "so"}


def test_citations_return_to_their_words():
    marker = {"type": CITATIONS, "length": 5, "citations": [{"url": "u"}]}
    body = anthropic(user("x"), assistant("It is known", Opaque("anthropic", marker)), user("y"))
    assert body["messages"][1]["content"] == [
        {"type": "text", "text": "It is "},
        {"type": "text", "text": "known", "citations": [{"url": "u"}]},
    ]


def test_what_chat_providers_want_back():
    message = assistant(
        ToolUse("a", "N"),
        extra_content={"0": {"google": {"thought_signature": "t"}}},
        reasoning_details=[{"type": "reasoning.encrypted", "data": "d"}],
    )
    encoded = chat(user("x"), message, user(result("a", "y")))["messages"][1]
    assert encoded["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "t"}}
    assert encoded["reasoning_details"] == [{"type": "reasoning.encrypted", "data": "d"}]
    elsewhere = chat(user("x"), message, user(result("a", "y")), model="other")["messages"][1]
    assert set(elsewhere) == {"role", "content", "tool_calls"}


def test_quirks():
    called = assistant(Thinking("hm"), ToolUse("call_12345678", "N"))
    messages = (user("x"), called, user(result("call_12345678", "y")))
    request = Request("", messages, (), Sampling(MODEL, max_tokens=5))
    body = encode_chat(request, quirks=QUIRKS - {"assistant_before_user"})
    assert body["max_completion_tokens"] == 5
    assert not {"stream_options", "max_tokens"} & set(body)
    assert body["messages"][1]["reasoning_content"] == "hm"
    (id,) = [call["id"] for call in body["messages"][1]["tool_calls"]]
    assert (len(id), id.isalnum(), body["messages"][2]["tool_call_id"]) == (9, True, id)


def test_images_and_documents():
    blobs = {"p": b"\x89PNG", "d": b"%PDF", "t": "ä".encode()}
    content = (
        "see",
        Image("image/png", "p"),
        Document("application/pdf", "d", "A"),
        Document("text/plain", "t"),
    )
    png = b64encode(blobs["p"]).decode()
    said = anthropic(user(*content), blobs_get=blobs.__getitem__)["messages"][0]["content"]
    assert said[1]["source"] == {"type": "base64", "media_type": "image/png", "data": png}
    assert (said[2]["type"], said[2]["title"]) == ("document", "A")
    assert said[3]["source"] == {"type": "text", "media_type": "text/plain", "data": "ä"}
    parts = chat(user(*content), blobs_get=blobs.__getitem__)["messages"][0]["content"]
    assert parts[1] == {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}}
    assert parts[2]["file"]["filename"] == "A"


def test_images_in_results_follow_the_batch_in_chat():
    calls = assistant(ToolUse("a", "R"), ToolUse("b", "R"))
    results = user(result("a", Image("image/png", "p")), result("b", "two"))
    body = chat(user("x"), calls, results, blobs_get=lambda digest: b"png")
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "tool", "tool", "user"]
    assert body["messages"][4]["content"][1]["type"] == "image_url"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "lost", [Image("image/png", "p"), Document("text/plain", "p"), Document("application/pdf", "p")]
)
def test_a_lost_attachment_does_not_end_the_session(dialect, lost):
    def get(digest: str) -> bytes:
        raise SessionError("no such blob")

    message = user(Text("look"), lost)
    body = json.dumps(encode_request(dialect, [message], model="m", blobs_get=get))
    assert "its file is lost" in body
    assert "base64" not in body


def test_ids_and_names_that_a_provider_would_refuse():
    odd = "functions.Read:0 " + "x" * 80
    calls = assistant(ToolUse(odd, "no such.tool" + "y" * 80), ToolUse("fine_1", "Read"))
    messages = (user("x"), calls, user(result(odd, "1"), result("fine_1", "2")))
    _, said, results = anthropic(*messages)["messages"]
    ids = [block["id"] for block in said["content"]]
    assert [block["tool_use_id"] for block in results["content"]] == ids
    assert ids[1] == "fine_1"
    assert len(ids[0]) <= 64
    assert ids[0].isalnum()
    assert len(said["content"][0]["name"]) == 64
    encoded = chat(*messages)["messages"]
    assert encoded[1]["tool_calls"][0]["id"] == encoded[2]["tool_call_id"]
    assert len(encoded[2]["tool_call_id"]) <= 40


def test_lone_surrogates_are_replaced():
    messages = (
        user("a\ud800"),
        assistant("b\udfff", ToolUse("c", "N", {"k\ud800": "v\ud800"})),
        user(result("c", "d\ud83d")),
    )
    for encode in (anthropic, chat):
        raw = to_bytes(encode(*messages))
        assert "\ufffd" in raw.decode()
        assert "\\ud8" not in raw.decode()


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("claude-opus-5-5", "high", {"thinking", "output_config"}),
        ("claude-sonnet-4-5", "high", {"thinking"}),
        ("claude-3-5-haiku", "high", set()),
        ("unknown", "high", set()),
        ("claude-opus-5-5", "", set()),
    ],
)
def test_effort(model, effort, expected):
    body = anthropic(user("x"), model=model, effort=effort)
    assert set(body) & {"thinking", "output_config"} == expected
    budget = body.get("thinking", {}).get("budget_tokens", 0)
    assert budget < body["max_tokens"]


@pytest.mark.parametrize(
    ("model", "wanted", "sent"),
    [
        ("gpt-5", "minimal", "minimal"),
        ("gpt-5", "xhigh", "high"),
        ("gpt-5", "none", "minimal"),
        ("gpt-5-pro", "low", "high"),
        ("gpt-5.4", "minimal", "low"),
        ("gpt-5.4", "max", "xhigh"),
        ("gpt-5.6-sol", "max", "max"),
        ("gpt-6.2-sol", "none", "low"),
        ("o3", "max", "high"),
        ("openai/gpt-oss-120b", "minimal", "low"),
        ("deepseek-v4-pro", "medium", "high"),
        ("gpt-4o", "high", None),
        ("a-model-of-my-own", "high", "high"),
        ("gpt-5", "", None),
    ],
)
def test_effort_as_a_model_takes_it(model, wanted, sent):
    assert chat(user("x"), model=model, effort=wanted).get("reasoning_effort") == sent
    body = encode_request("openai-responses", (user("x"),), model=model, effort=wanted)
    assert body.get("reasoning") == (None if sent is None else {"effort": sent})


@pytest.mark.parametrize(
    ("model", "wanted", "sent"),
    [
        ("claude-opus-5-5", "xhigh", "xhigh"),
        ("claude-opus-4-6", "xhigh", "high"),
        ("claude-opus-4-6", "max", "max"),
        ("claude-opus-5-5", "minimal", "low"),
        ("claude-haiku-5-5", "max", "high"),
    ],
)
def test_effort_as_claude_takes_it(model, wanted, sent):
    body = anthropic(user("x"), model=model, effort=wanted)
    assert body["output_config"] == {"effort": sent}


def test_at_openai_later_models_do_not_think_in_chat_where_tools_are_offered():
    def effort(model: str, tools: Any, quirk: str = "max_completion_tokens") -> Any:
        request = Request("", (user("x"),), tools, Sampling(model, effort="high"))
        return encode_chat(request, quirks=frozenset({quirk})).get("reasoning_effort")

    assert effort("gpt-5.4", TOOLS) is None
    assert effort("gpt-6-sol", TOOLS) == "none"
    assert effort("gpt-6-sol", ()) == "high"
    assert effort("gpt-5", TOOLS) == "high"
    assert effort("gpt-6-sol", TOOLS, "short_ids") == "high"


def test_no_budget_in_the_middle_of_a_loop_without_thinking():
    loop = (user("x"), assistant(ToolUse("a", "N")), user(result("a", "y")))
    assert "thinking" not in anthropic(*loop, effort="high")
    thought = assistant(Thinking("t", "s"), ToolUse("a", "N"))
    assert "thinking" in anthropic(loop[0], thought, loop[2], effort="high")


def test_output_limits_of_small_models():
    assert anthropic(user("x"), model="claude-3-haiku-20240307")["max_tokens"] == 4_096
    assert anthropic(user("x"), max_tokens=7)["max_tokens"] == 7


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_public_body_can_be_sent_as_it_is(dialect):
    half = "x\ud83d"
    call = assistant(ToolUse("c", "N", {half: half}))
    messages: list[Message] = [user(half), call, user(result("c", half))]
    tools = [ToolSpec("N", half, {"type": "object", "properties": {}})]
    body = encode_request(dialect, messages, tools, half, model=MODEL)
    text = json.dumps(body, ensure_ascii=False)
    assert text.encode().decode().count("x\ufffd") == 6
    assert "ud83d" not in text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_messages_from_anywhere_are_repaired_as_those_of_a_session(dialect):
    calls = assistant(ToolUse("a", "N", {}), ToolUse("b", "N", {}))
    shuffled: list[Message] = [
        user("go"),
        calls,
        user("on", result("b", "two"), result("gone", "three")),
    ]
    options: Any = {"model": MODEL}
    assert encode_request(dialect, shuffled, **options) == encode_request(
        dialect, repair(shuffled), **options
    )
    assert "three" not in json.dumps(encode_request(dialect, shuffled, **options))


def test_unknown_dialect():
    with pytest.raises(ConfigError):
        encode_request("smoke-signals", (), model="m")


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["say", "call", "fail", "think", "image"]), st.text(min_size=1, max_size=4)
    ),
    max_size=12,
)


def transcripts(steps: list[tuple[str, str]]) -> list[Transcript]:
    """The transcript after every step of a conversation."""
    transcript = Transcript().user(user("go"))
    grown = [transcript]
    for n, (kind, text) in enumerate(steps):
        match kind:
            case "say":
                transcript = transcript.assistant(assistant("so")).user(user(text))
            case "image":
                transcript = transcript.user(user(Image("image/png", "p")))
            case "think":
                transcript = transcript.assistant(assistant(Thinking(text, "s"), "x"))
                transcript = transcript.user(user("y"))
            case _:
                transcript = transcript.assistant(assistant(ToolUse(f"c{n}", "N", {"a": text})))
                transcript = transcript.settle(result(f"c{n}", text, is_error=kind == "fail"))
        grown.append(transcript)
    return grown


@given(STEPS)
def test_a_longer_conversation_only_adds(steps):
    """What was sent for a message stays the same, so that the provider's cache holds."""
    for dialect in DIALECTS:
        before: list[Any] = []
        for transcript in transcripts(steps):
            body = encode_request(
                dialect, transcript, TOOLS, "s", model=MODEL, blobs_get=lambda digest: b"png"
            )
            now = without_breakpoints(body.get("messages") or body["input"])
            # The last user message may still grow: two in a row are one on the wire.
            assert now[: max(0, len(before) - 1)] == before[: max(0, len(before) - 1)]
            before = now


@given(STEPS)
def test_breakpoints_are_few_and_at_the_tail(steps):
    body = encode_request(
        "anthropic",
        transcripts(steps)[-1],
        TOOLS,
        "s",
        model=MODEL,
        blobs_get=lambda digest: b"png",
    )
    assert to_bytes(body).count(b'"cache_control"') <= 4
    users = [m for m in body["messages"] if m["role"] == "user"]
    assert all("cache_control" in m["content"][-1] for m in users[-2:])
    assert b"cache_control" not in to_bytes({"m": users[:-2]})


@given(STEPS)
def test_every_call_is_answered_directly_after_it(steps):
    body = encode_request(
        "openai-chat",
        transcripts(steps)[-1],
        model=MODEL,
        blobs_get=lambda digest: b"png",
    )
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            assert waiting.pop(0) == message["tool_call_id"]
        else:
            assert not waiting
            waiting = [c["id"] for c in message.get("tool_calls", ())]
            for encoded in message.get("tool_calls", ()):
                assert isinstance(json.loads(encoded["function"]["arguments"]), dict)
    assert not waiting
