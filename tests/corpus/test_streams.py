"""Recorded replies of real servers read as the recorder's reader read them, however they arrive."""

from __future__ import annotations

import re

import pytest

from claw.errors import ModelError
from claw.models.dialect import DIALECTS
from claw.models.transport import HttpTransport, HttpxTransport
from claw.ports import ModelClient
from claw.types.messages import AssistantBlock, Opaque, Text, Thinking, ToolUse, UserMessage
from claw.types.reply import Reply, assemble
from claw.types.request import Request, Sampling
from tests.corpus.player import client_for, playing
from tests.corpus.recorded import (
    CHUNKINGS,
    NEEDS_CORPUS,
    Case,
    Failure,
    cases,
    chunked,
    expected,
    ours,
    outcome,
    reasoning_text,
)

pytestmark = NEEDS_CORPUS

READER_LOST = {
    # The call was cut by the output limit; the recorder's reader guessed the rest of it.
    "anthropic-messages/015": ("calls", rb'"stop_reason":"max_tokens"'),
    "groq-chat/007": ("usage", rb'"x_groq":\{[^{}]*"usage":\{'),
    "groq-chat/008": ("usage", rb'"x_groq":\{[^{}]*"usage":\{'),
    "groq-chat/009": ("usage", rb'"x_groq":\{[^{}]*"usage":\{'),
    "mistral-chat/011": ("thinking", rb'"type":"thinking"'),
    "mistral-chat/026": ("thinking", rb'"type": ?"thinking"'),
    "mistral-chat/028": ("thinking", rb'"type": ?"thinking"'),
    "openrouter-chat/048": ("thinking", rb'"type":"reasoning\.summary"'),
    "snowflake-chat/006": ("thinking", rb'"type": ?"reasoning\.text"'),
}
"""Where the recorder's reader is wrong: the field, and what in the bytes shows it."""

NO_REPLY = {"misbehaving-server-chat/001"}
"""An object of another kind, which the recorder's reader took for a reply without content."""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_reply_says_what_was_recorded(dialect: str):
    seen = 0
    for case in of(dialect):
        got = outcome(case, [case.body])
        seen += 1
        if case.name in NO_REPLY:
            assert isinstance(got, Failure), case.name
            assert b'"choices"' not in case.body
        elif case.fails:
            assert isinstance(got, Failure), case.name
        else:
            assert isinstance(got, Reply), f"{case.name}: {got}"
            differs = expected(case).differences(ours(got))
            field, shown_by = READER_LOST.get(case.name, ("", b""))
            assert differs.keys() == ({field} if field else set()), f"{case.name}: {differs}"
            assert re.search(shown_by, case.body), case.name
    assert seen > 100


def test_a_call_that_was_cut_keeps_its_text_and_has_no_input():
    case = next(case for case in cases("streams") if case.name == "anthropic-messages/015")
    got = outcome(case, [case.body])
    assert isinstance(got, Reply)
    (call,) = got.tool_calls
    assert call.input == {}
    assert call.raw_input
    assert not call.raw_input.rstrip().endswith("}")


@pytest.mark.parametrize("how", CHUNKINGS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_however_a_reply_is_cut_it_says_the_same(dialect: str, how: str):
    for case in of(dialect):
        whole = outcome(case, [case.body])
        assert outcome(case, chunked(case.body, how)) == whole, case.name


def test_the_items_of_a_response_stay_in_order():
    for case in of("openai-responses"):
        if not case.fails:
            got = outcome(case, [case.body])
            assert isinstance(got, Reply)
            kinds = [kind for block in got.blocks if (kind := kind_of(block))]
            assert kinds == kinds_expected(case), case.name


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("transport", [HttpTransport, HttpxTransport])
async def test_over_a_socket_a_reply_says_the_same(
    dialect: str, transport: type[HttpTransport | HttpxTransport]
):
    recorded = of(dialect)
    async with playing(recorded) as server:
        lent = transport()
        try:
            for number, case in enumerate(recorded):
                here = outcome(case, [case.body])
                for manner in ("whole", "split"):
                    client = client_for(case, f"{server}/{manner}/{number}", lent)
                    there = await exchanged(client)
                    if isinstance(here, Reply):
                        assert isinstance(there, Reply), f"{case.name}, {manner}: {there}"
                        assert ours(there) == ours(here), f"{case.name}, {manner}"
                        assert there.blocks == here.blocks, f"{case.name}, {manner}"
                        assert there.complete == here.complete, f"{case.name}, {manner}"
                    else:
                        assert there == here, f"{case.name}, {manner}"
        finally:
            await lent.aclose()


def of(dialect: str) -> list[Case]:
    return [case for case in cases("streams") if case.dialect == dialect]


async def exchanged(client: ModelClient) -> Reply | Failure:
    request = Request("", (UserMessage((Text("hi"),)),), (), Sampling("m"))
    try:
        return assemble([event async for event in client.stream(request)])
    except ModelError as error:
        return Failure.of(error)


def kinds_expected(case: Case) -> list[str]:
    """What the items of a response become, one after the other."""
    found: list[str] = []
    for item in case.expected["final"]["output"]:
        match item["type"]:
            case "message":
                if any(part.get("text") for part in item["content"]):
                    found += [] if found[-1:] == ["text"] else ["text"]
                    if item.get("phase") or any(p.get("annotations") for p in item["content"]):
                        found.append("claw_message")
            case "function_call" | "custom_tool_call":
                found.append("call")
            case "reasoning":
                found += ["thinking"] if reasoning_text(item) else []
                if item.get("encrypted_content") or item.get("content"):
                    found.append("reasoning")
            case other:
                found.append(other)
    return found


def kind_of(block: AssistantBlock) -> str:
    match block:
        case Text():
            return "text"
        case Thinking():
            return "thinking"
        case ToolUse():
            return "call"
        case Opaque():
            return str(block.raw["type"])
        case _:
            return ""
