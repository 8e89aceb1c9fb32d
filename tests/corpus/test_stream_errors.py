"""What goes wrong on the way: the class of the error, whether to ask again, and cut replies."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from claw.models.dialect import DIALECTS
from claw.models.transport import HttpTransport
from claw.runtime.tool_calls import calls_not_to_run
from claw.testing import FakeTool, Harness
from claw.types.entries import ReplyReceived
from claw.types.messages import text_of
from claw.types.reply import Reply
from tests.corpus.player import client_for, playing
from tests.corpus.recorded import (
    NEEDS_CORPUS,
    Case,
    Failure,
    cases,
    chunkings,
    expected,
    outcome,
)

pytestmark = NEEDS_CORPUS

KINDS = {
    "lower_max_tokens": "output_limit_too_high",
    "context_overflow": "context_overflow",
    "compact_or_drop_images": "context_overflow",
    "http_529": "model_unavailable",
    "stream_error:overloaded_error": "model_unavailable",
    "status:failed": "model_unavailable",
    "html_body": "model_unavailable",
    "not_worth_retrying": "request_rejected",
    "history_repair": "request_rejected",
    "http_413": "context_overflow",
    "http_429": "model_unavailable",
    "empty_body": "protocol_violation",
    "html_200_captive_portal": "protocol_violation",
    "nested_json_string": "request_rejected",
}
"""What a feature of a case makes it; the first that it has decides."""

ADVICE = {
    "model_unavailable": "retry",
    "output_limit_too_high": "lower_output",
    "context_overflow": "never",
    "request_rejected": "never",
    "protocol_violation": "never",
}


def test_every_error_has_its_class_and_says_whether_to_ask_again():
    failed = [case for case in cases("stream_errors") if "truncated" not in case.features]
    for case in failed:
        kind = next(KINDS[feature] for feature in KINDS if feature in case.features)
        for chunks in ([case.body], *chunkings(case.body)):
            got = outcome(case, chunks)
            assert isinstance(got, Failure), case.name
            assert (got.kind, got.advice) == (kind, ADVICE[kind]), f"{case.name}: {got}"
        assert ("retryable" in case.features) <= (ADVICE[kind] == "retry"), case.name
    assert len(failed) == 20


def truncated() -> list[Case]:
    return [case for case in cases("stream_errors") if "truncated" in case.features]


def test_a_cut_stream_is_incomplete_and_keeps_its_text():
    whole = {case.name: expected(case) for case in cases("streams") if not case.fails}
    for case in truncated():
        full = whole.get(case.derived_from)  # some of them are kept elsewhere
        for chunks in ([case.body], *chunkings(case.body)):
            got = outcome(case, chunks)
            assert isinstance(got, Reply), case.name
            assert not got.complete, case.name
            assert got.stop_reason == ""
            assert calls_not_to_run(got).keys() == {call.id for call in got.tool_calls}
            assert got.text == text_until_then(case), case.name
            if full is not None:
                assert full.text.startswith(got.text), case.name
                assert full.thinking.startswith(got.thinking), case.name
    assert len(truncated()) == 11


def text_until_then(case: Case) -> str:
    """What the recorder's reader had when the stream broke off."""
    said = case.expected
    text: str = said["text_from_deltas"] if "text_from_deltas" in said else said["text"]
    return text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_wherever_a_stream_is_cut_nothing_of_it_would_run(dialect: str):
    """Unless it had said already how it ends, which comes after all that it says."""
    cut_calls = 0
    for case in cases("streams"):
        if case.dialect != dialect or case.fails or case.body.lstrip()[:1] == b"{":
            continue
        full = outcome(case, [case.body])
        assert isinstance(full, Reply)
        chance = random.Random(case.name)
        for end in sorted(chance.sample(range(len(case.body)), min(8, len(case.body)))):
            got = outcome(case, [case.body[:end]])
            if isinstance(got, Failure):  # before the first word
                assert got.kind == "protocol_violation", f"{case.name} at {end}: {got}"
                continue
            assert full.text.startswith(got.text), f"{case.name} at {end}"
            if got.complete:
                assert got.tool_calls == full.tool_calls, f"{case.name} at {end}"
            else:
                assert len(calls_not_to_run(got)) == len(got.tool_calls), f"{case.name} at {end}"
                cut_calls += len(got.tool_calls)
    assert cut_calls > 10


@pytest.mark.parametrize("number", range(11))
async def test_a_conversation_runs_no_call_of_a_cut_reply(number: int, tmp_path: Path):
    case = truncated()[number]
    got = outcome(case, [case.body])
    assert isinstance(got, Reply)
    tools = [FakeTool(name) for name in {call.name for call in got.tool_calls}]
    async with playing([case]) as server:
        transport = HttpTransport()
        try:
            client = client_for(case, f"{server}/split/0", transport)
            async with Harness(tmp_path, client, tools=tools, mode="bypassPermissions") as run:
                summary = await run.turn("hi")
                replies = [entry for entry in run.entries if isinstance(entry, ReplyReceived)]
        finally:
            await transport.aclose()
    assert [tool.runs for tool in tools] == [0] * len(tools)
    assert summary.stop_reason == "error"
    assert replies
    assert not any(reply.complete for reply in replies)
    assert {text_of(reply.blocks) for reply in replies} == {got.text}


async def test_a_conversation_runs_the_calls_of_a_whole_reply(tmp_path: Path):
    """The same way as above, so that what is shown there means something."""
    case = next(
        case
        for case in cases("streams")
        if case.dialect == "anthropic" and expected_calls(case) and case.body[:5] == b"event"
    )
    (name, *_) = expected_calls(case)
    tool = FakeTool(name)
    async with playing([case]) as server:
        transport = HttpTransport()
        try:
            client = client_for(case, f"{server}/split/0", transport)
            async with Harness(
                tmp_path, client, tools=[tool], mode="bypassPermissions", max_steps=1
            ) as run:
                await run.turn("hi")
        finally:
            await transport.aclose()
    assert tool.runs > 0


def expected_calls(case: Case) -> list[str]:
    if case.fails:
        return []
    said = expected(case)
    return [name for _, name, _ in said.calls] if said.stop == "tool_use" else []
