"""Each rule, with one body that keeps them all and one small change that breaks it."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.testing.validate import (
    thinking_key,
    validate_anthropic,
    validate_chat,
    validate_request,
    validate_responses,
)
from claw.types.messages import AssistantMessage, Text, Thinking, ToolResult, ToolUse, UserMessage
from claw.types.request import Request, Sampling
from claw.types.tools import ToolSpec
from claw.types.transcript import Transcript

THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
ANTHROPIC: dict[str, Any] = {
    "model": "m",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "tools": [{"name": "Read", "description": "reads", "input_schema": {"type": "object"}}],
    "messages": [
        {"role": "user", "content": "look at both"},
        {
            "role": "assistant",
            "content": [
                THINKING,
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "a", "name": "Read", "input": {"p": 1}},
                {"type": "tool_use", "id": "b", "name": "Read", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                {
                    "type": "tool_result",
                    "tool_use_id": "b",
                    "content": [{"type": "text", "text": "two"}],
                    "is_error": True,
                },
                {"type": "text", "text": "and be quick"},
            ],
        },
    ],
}
CHAT: dict[str, Any] = {
    "model": "m",
    "max_tokens": 100,
    "tools": [{"type": "function", "function": {"name": "Read", "parameters": {"type": "object"}}}],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "look at both"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": id,
                    "type": "function",
                    "function": {"name": "Read", "arguments": '{"p": 1}'},
                }
                for id in ("a", "b")
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "user", "content": "and be quick"},
    ],
}
REASONING = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "ZW5j"}
RESPONSES: dict[str, Any] = {
    "model": "m",
    "max_output_tokens": 100,
    "instructions": "Be brief.",
    "tools": [
        {"type": "function", "name": "Read", "parameters": {"type": "object"}},
        {"type": "web_search"},
    ],
    "input": [
        {"role": "user", "content": "look at both"},
        REASONING,
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I look."}],
        },
        {"type": "function_call", "call_id": "a", "name": "Read", "arguments": '{"p": 1}'},
        {"type": "function_call", "call_id": "b", "name": "Read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "one"},
        {
            "type": "function_call_output",
            "call_id": "b",
            "output": [{"type": "input_text", "text": "two"}],
        },
        {"role": "user", "content": [{"type": "input_text", "text": "and be quick"}]},
    ],
}


def put(*path: Any) -> Callable[[Any], None]:
    """A change: the last item is set at the place that the others name."""
    *place, key, value = path

    def change(body: Any) -> None:
        for step in place:
            body = body[step]
        body[key] = value

    return change


def drop(*path: Any) -> Callable[[Any], None]:
    *place, key = path

    def change(body: Any) -> None:
        for step in place:
            body = body[step]
        del body[key]

    return change


def swap(*path: Any) -> Callable[[Any], None]:
    *place, one, two = path

    def change(body: Any) -> None:
        for step in place:
            body = body[step]
        body[one], body[two] = body[two], body[one]

    return change


M = "messages"
ANTHROPIC_CHANGES = {
    "no max_tokens": (drop("max_tokens"), "max_tokens"),
    "max_tokens 0": (put("max_tokens", 0), "max_tokens"),
    "max_tokens true": (put("max_tokens", True), "max_tokens"),
    "no model": (drop("model"), "model"),
    "no messages": (put(M, []), "at least one"),
    "blank system": (put("system", " "), "system: blank"),
    "empty system": (put("system", []), "system: must be"),
    "system of images": (put("system", 0, "type", "image"), "system.0"),
    "blank system block": (put("system", 0, "text", "\n"), "system.0: a blank"),
    "assistant first": (drop(M, 0), "first message"),
    "unknown role": (put(M, 0, "role", "system"), "'system' is neither"),
    "blank content": (put(M, 0, "content", " \n"), "messages.0.content: empty or blank"),
    "empty content": (put(M, 0, "content", []), "messages.0.content: empty"),
    "blank text block": (put(M, 1, "content", 1, "text", ""), "blank text block"),
    "blank result text": (put(M, 2, "content", 0, "content", ""), "content: empty or blank"),
    "empty result": (put(M, 2, "content", 0, "content", []), "content.0.content: empty"),
    "result missing": (drop(M, 2, "content", 0), "the calls just before are ['a', 'b']"),
    "results missing": (drop(M, 2), "calls without results at the end: a, b"),
    "results swapped": (swap(M, 2, "content", 0, 1), "results for ['b', 'a']"),
    "result after text": (swap(M, 2, "content", 0, 2), "before everything else"),
    "result of nothing": (put(M, 2, "content", 0, "tool_use_id", "x"), "results for ['x', 'b']"),
    "repeated id": (put(M, 1, "content", 3, "id", "a"), "'a' is used twice"),
    "odd id": (put(M, 1, "content", 2, "id", "a.1"), "'a.1' does not match"),
    "input is a text": (put(M, 1, "content", 2, "input", "{}"), "input: must be an object"),
    "call of the user": (put(M, 2, "content", 2, "type", "tool_use"), "tool_use in a message"),
    "long name": (put(M, 1, "content", 2, "name", "x" * 65), "does not match"),
    "long tool name": (put("tools", 0, "name", "x" * 65), "tools.0.name"),
    "odd tool name": (put("tools", 0, "name", "a b"), "tools.0.name"),
    "no schema": (drop("tools", 0, "input_schema"), "tools.0.input_schema"),
    "surrogate": (put(M, 2, "content", 0, "content", "a\ud83d"), "a lone surrogate"),
    "surrogate in a key": (put(M, 1, "content", 2, "input", "\udc00", 1), "a lone surrogate"),
    "changed thinking": (put(M, 1, "content", 0, "thinking", "hm."), "not as it was sent"),
    "unsigned thinking": (put(M, 1, "content", 0, "signature", ""), "without its text"),
    "no block": (put(M, 1, "content", 1, "text"), "not a block"),
}
CHAT_CHANGES = {
    "max_tokens 0": (put("max_tokens", 0), "max_tokens"),
    "max_completion_tokens 0": (put("max_completion_tokens", 0), "max_completion_tokens"),
    "no model": (put("model", ""), "model"),
    "no messages": (drop(M), "at least one"),
    "only system": (put(M, [{"role": "system", "content": "x"}]), "no user message"),
    "blank system": (put(M, 0, "content", " "), "messages.0.content: empty or blank"),
    "system later": (put(M, 5, "role", "system"), "stand at the start"),
    "assistant first": (drop(M, 1), "first message"),
    "unknown role": (put(M, 5, "role", "model"), "'model' is not known"),
    "blank user": (put(M, 5, "content", ""), "messages.5.content: empty or blank"),
    "blank part": (put(M, 1, "content", 0, "text", " "), "blank text part"),
    "no content": (drop(M, 5, "content"), "messages.5.content: empty"),
    "assistant without content": (drop(M, 2, "tool_calls"), "messages.2.content: empty"),
    "empty calls": (put(M, 2, "tool_calls", []), "tool_calls: empty"),
    "blank result": (put(M, 3, "content", ""), "messages.3.content: empty or blank"),
    "result missing": (drop(M, 4), "calls without results before it: b"),
    "results at the end missing": (lambda b: b[M].__delitem__(slice(3, 6)), "at the end: a, b"),
    "results swapped": (swap(M, 3, 4), "the next call is 'a'"),
    "result of nothing": (put(M, 5, {"role": "tool", "tool_call_id": "x", "content": "y"}), "'x'"),
    "user before results": (swap(M, 4, 5), "calls without results before it: b"),
    "repeated id": (put(M, 2, "tool_calls", 1, "id", "a"), "'a' is used twice"),
    "blank id": (put(M, 2, "tool_calls", 1, "id", ""), "tool_calls.1.id: empty"),
    "arguments do not parse": (
        put(M, 2, "tool_calls", 0, "function", "arguments", '{"p": '),
        "not the JSON text",
    ),
    "arguments are a list": (
        put(M, 2, "tool_calls", 0, "function", "arguments", "[]"),
        "not the JSON text",
    ),
    "arguments are an object": (
        put(M, 2, "tool_calls", 0, "function", "arguments", {}),
        "not the JSON text",
    ),
    "long name": (put(M, 2, "tool_calls", 0, "function", "name", "x" * 65), "does not match"),
    "long tool name": (put("tools", 0, "function", "name", "x" * 65), "tools.0.name"),
    "tool without function": (put("tools", 0, {"name": "Read"}), "tools.0: not a tool"),
    "stream_options alone": (put("stream_options", {}), "only with stream"),
    "surrogate": (put(M, 3, "content", "\udfff"), "a lone surrogate"),
}
I = "input"  # noqa: E741
USER = RESPONSES[I][7]
RESPONSES_CHANGES = {
    "limit 15": (put("max_output_tokens", 15), "at least 16"),
    "limit true": (put("max_output_tokens", True), "max_output_tokens"),
    "no model": (drop("model"), "model"),
    "blank instructions": (put("instructions", " "), "instructions: blank"),
    "kept by the server": (put("previous_response_id", "r"), "previous_response_id"),
    "no input": (put(I, []), "at least one item"),
    "blank input": (put(I, " "), "input: empty or blank"),
    "no user": (lambda b: b.update(input=b[I][1:7]), "no user message"),
    "unknown role": (put(I, 0, "role", "model"), "input.0: not an item"),
    "no item": (put(I, 0, "x"), "input.0: not an item"),
    "blank user": (put(I, 0, "content", " "), "input.0.content: empty or blank"),
    "no content": (drop(I, 0, "content"), "input.0.content: empty"),
    "blank part": (put(I, 7, "content", 0, "text", " "), "blank text part"),
    "input of the assistant": (put(I, 2, "content", 0, "type", "input_text"), "no part of a"),
    "output of the user": (put(I, 7, "content", 0, "type", "output_text"), "no part of a user"),
    "blank result": (put(I, 5, "output", ""), "input.5.output: empty or blank"),
    "result missing": (drop(I, 6), "calls without results before it: b"),
    "results at the end missing": (lambda b: b[I].__delitem__(slice(5, 8)), "at the end: a, b"),
    "results swapped": (swap(I, 5, 6), "the next call is 'a'"),
    "result twice": (put(I, 7, RESPONSES[I][5]), "no call waits"),
    "user before results": (swap(I, 6, 7), "calls without results before it: b"),
    "words between results": (lambda b: b[I].insert(6, b[I][2]), "before it: b"),
    "repeated id": (put(I, 4, "call_id", "a"), "'a' is used twice"),
    "blank id": (put(I, 4, "call_id", ""), "input.4.call_id"),
    "long id": (put(I, 4, "call_id", "x" * 65), "input.4.call_id"),
    "long name": (put(I, 3, "name", "x" * 65), "does not match"),
    "arguments do not parse": (put(I, 3, "arguments", '{"p": '), "not the JSON text"),
    "arguments are an object": (put(I, 3, "arguments", {}), "not the JSON text"),
    "long tool name": (put("tools", 0, "name", "x" * 65), "tools.0.name"),
    "no schema": (drop("tools", 0, "parameters"), "tools.0.parameters"),
    "surrogate": (put(I, 5, "output", "\udfff"), "a lone surrogate"),
    "reasoning that led to nothing": (put(I, 2, USER), "without the item that it led to"),
    "reasoning at the end": (put(I, 7, REASONING), "without the item that it led to"),
    "reasoning in no form": (put(I, 1, "encrypted_content", ""), "neither encrypted nor"),
    "changed reasoning": (put(I, 1, "encrypted_content", "x"), "not as it was sent"),
    "reasoning without summary": (drop(I, 1, "summary"), "summary: must be a list"),
}


def test_good_bodies_pass():
    assert validate_responses(RESPONSES) == []
    assert validate_responses(RESPONSES, {thinking_key(REASONING)}) == []
    assert validate_responses({"model": "m", "input": "hi"}) == []
    assert validate_anthropic(ANTHROPIC) == []
    assert validate_anthropic(ANTHROPIC, {thinking_key(THINKING)}) == []
    assert validate_chat(CHAT) == []


@pytest.mark.parametrize("name", ANTHROPIC_CHANGES)
def test_one_bad_thing_in_a_messages_body(name):
    change, complaint = ANTHROPIC_CHANGES[name]
    body = copy.deepcopy(ANTHROPIC)
    change(body)
    assert complaint in "\n".join(validate_anthropic(body, {thinking_key(THINKING)}))


@pytest.mark.parametrize("name", CHAT_CHANGES)
def test_one_bad_thing_in_a_chat_body(name):
    change, complaint = CHAT_CHANGES[name]
    body = copy.deepcopy(CHAT)
    change(body)
    assert complaint in "\n".join(validate_chat(body))


@pytest.mark.parametrize("name", RESPONSES_CHANGES)
def test_one_bad_thing_in_a_responses_body(name):
    change, complaint = RESPONSES_CHANGES[name]
    body = copy.deepcopy(RESPONSES)
    change(body)
    assert complaint in "\n".join(validate_responses(body, {thinking_key(REASONING)}))


def test_a_tool_name_twice_and_too_many_breakpoints():
    body = copy.deepcopy(ANTHROPIC)
    body["tools"] *= 2
    body["system"] *= 5
    assert len(validate_anthropic(body)) == 2


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
fragments = st.sampled_from(
    [
        *("user", "assistant", "tool", "text", "tool_use", "tool_result", "a", {}, []),
        *("function_call", "function_call_output", "reasoning", "output_text"),
    ]
)


@given(
    st.dictionaries(
        st.sampled_from(["messages", "input", "tools", "system", "model", "stream_options"]),
        json_values
        | st.lists(
            st.dictionaries(
                st.sampled_from(
                    ["role", "content", "tool_calls", "type", "id", "tool_call_id", "call_id"]
                ),
                fragments | json_values | st.lists(fragments),
            )
        ),
    )
    | json_values
)
def test_no_body_breaks_a_validator(body):
    assert isinstance(validate_anthropic(body), list)
    assert isinstance(validate_chat(body), list)
    assert isinstance(validate_responses(body), list)


def request(*messages: Any, system: str = "s", max_tokens: int | None = None) -> Request:
    tool = ToolSpec("Read", "reads", {"type": "object"})
    return Request(system, messages, (tool,), Sampling("m", max_tokens))


ASK = UserMessage((Text("hi"),))


def test_a_transcript_is_a_valid_request():
    call = ToolUse("an id. of any kind", "no such tool!", {}, "{bad")
    reply = AssistantMessage((Thinking("hm"), Text(" "), call, ToolUse("b", "Read", {"p": 1})))
    half = Transcript().user(ASK).assistant(reply).settle(ToolResult(call.id, (Text("x"),)))
    assert validate_request(request(*half.messages)) == []
    assert validate_request(request(*half.close().user(ASK).messages, max_tokens=5)) == []
    alone = Transcript().user(ASK).assistant(AssistantMessage((Thinking("hm"),))).user(ASK)
    assert validate_request(request(*alone.messages)) == []


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (request(), "at least one message"),
        (request(AssistantMessage((Text("x"),))), "first message"),
        (request(UserMessage((Text(" "),))), "blank text"),
        (request(UserMessage(())), "empty"),
        (request(ASK, max_tokens=0), "max_tokens"),
        (request(ASK, system=" "), "system"),
        (request(ASK, system="\ud800"), "surrogate"),
        (request(ASK, AssistantMessage((ToolUse("a", "Read"),))), "without results"),
        (request(ASK, UserMessage((ToolResult("a", (Text("x"),)),))), "results for"),
        (
            request(
                ASK,
                AssistantMessage((ToolUse("a", "Read"),)),
                UserMessage((ToolResult("a", ()),)),
            ),
            "content: empty",
        ),
        (
            request(
                ASK,
                AssistantMessage((ToolUse("a", "Read"), ToolUse("a", "Read"))),
                UserMessage((ToolResult("a", (Text("x"),)), ToolResult("a", (Text("x"),)))),
            ),
            "used twice",
        ),
    ],
)
def test_a_request_that_no_provider_takes(bad, complaint):
    assert complaint in "\n".join(validate_request(bad))


SHARED = Path(os.environ.get("CLAW_SHARED") or Path(__file__).parents[4] / "shared")
RECORDED = SHARED / "cases" / "conversations"


@pytest.mark.corpus
@pytest.mark.skipif(not RECORDED.is_dir(), reason=f"{RECORDED} is not there")
@pytest.mark.parametrize(
    ("api", "validate"),
    [
        ("anthropic-messages", validate_anthropic),
        ("openai-chat", validate_chat),
        ("openai-responses", validate_responses),
    ],
)
def test_real_histories_pass_but_for_what_is_empty(api, validate):
    complaints = []
    for path in sorted((RECORDED / api).glob("*.json")):
        for turn in json.loads(path.read_text())["turns"]:
            if turn["response"]["status"] == 200 and not turn["request"].get(
                "previous_response_id"
            ):
                complaints += [f"{path.name}: {c}" for c in validate(turn["request"])]
    # Clients of lenient servers send these; ours does not.
    lenient = ("empty", "instructions: blank", "arguments: not the JSON text")
    assert [c for c in complaints if not any(words in c for words in lenient)] == []
