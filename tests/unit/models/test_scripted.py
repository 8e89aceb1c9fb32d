from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.errors import ConfigError, ContextOverflow, ModelError, ModelUnavailable, RequestRejected
from claw.models.script_files import load_script
from claw.models.scripted import (
    Cut,
    Fails,
    Gate,
    PlainReply,
    ScriptedModel,
    ScriptReply,
    calls,
    cut,
    fails,
    raw,
    refuses,
    says,
    waits,
)
from claw.testing.conformance import a_request
from claw.types.events import AssistantEvent, MessageStop, TextDelta
from claw.types.messages import RedactedThinking, Text, Thinking, ToolUse, text_of
from claw.types.reply import Reply, assemble
from claw.types.request import Request
from claw.types.usage import Usage


async def events_of(model: ScriptedModel, request: Request | None = None) -> list[AssistantEvent]:
    return [event async for event in model.stream(request or a_request())]


async def read_into(seen: list[AssistantEvent], model: ScriptedModel) -> None:
    async for event in model.stream(a_request()):
        seen.append(event)


async def reply_of(*replies: ScriptReply) -> Reply:
    return assemble(await events_of(ScriptedModel(replies)))


async def test_text_comes_in_several_deltas_the_same_every_time():
    text = "The quick brown fox jumps over the lazy dog. 世界"
    first = await events_of(ScriptedModel([says(text)]))
    assert first == await events_of(ScriptedModel([says(text)]))
    deltas = [event.text for event in first if isinstance(event, TextDelta)]
    assert "".join(deltas) == text
    assert len(deltas) > 2


async def test_calls_get_ids_from_their_position():
    model = ScriptedModel([says("hi"), calls(("Read", {"file_path": "a"}), ("Bash", {}))])
    await events_of(model)
    reply = assemble(await events_of(model))
    assert reply.tool_calls == (
        ToolUse("call_2_1", "Read", {"file_path": "a"}),
        ToolUse("call_2_2", "Bash", {}),
    )
    assert reply.stop_reason == "tool_use"


async def test_usage_is_estimated_unless_the_reply_gives_it():
    estimated = (await reply_of(says("12345678"))).usage
    assert estimated.estimated
    assert estimated.output_tokens == 2
    assert estimated.input_tokens > 0
    assert (await reply_of(says("x", usage=Usage(5, 1)))).usage == Usage(5, 1)


async def test_every_part_of_a_reply_is_streamed():
    blocks = (
        Thinking("hm", "sig"),
        RedactedThinking("x"),
        Text("a"),
        ToolUse("id", "Read", {}, "{bad"),
    )
    given = Reply(
        blocks, "pause_turn", Usage(1, 2), "m", request_id="r", provider_metadata={"a": 1}
    )
    assert await reply_of(given) == given


async def test_a_cut_reply_is_incomplete():
    assert await reply_of(cut("short")) == Reply(
        (Text("short"),), complete=False, model="scripted", request_id="req_1"
    )
    nothing = await reply_of(cut(says("short"), after=0))
    assert (nothing.blocks, nothing.complete) == ((), False)
    one = await reply_of(cut("twelve chars and more", after=1))
    assert one.text == "twelve chars"


async def test_a_reply_marked_incomplete_is_cut():
    assert not (await reply_of(Reply((Text("a"),), complete=False))).complete


async def test_an_error_comes_first_or_after_content():
    error = ModelUnavailable("no")
    with pytest.raises(ModelUnavailable):
        await reply_of(fails(error))
    seen: list[AssistantEvent] = []
    with pytest.raises(ModelUnavailable):
        await read_into(seen, ScriptedModel([fails(error, after="half")]))
    assert assemble(seen).text == "half"


async def test_raw_events_and_refusals():
    events = (TextDelta("a"), MessageStop("odd"))
    assert await events_of(ScriptedModel([raw(*events)])) == list(events)
    assert (await reply_of(refuses())).stop_reason == "refusal"


async def test_a_function_makes_the_reply_from_the_request():
    def echo(request: Request) -> PlainReply:
        return says(text_of(request.messages[-1].content).upper())

    assert assemble(await events_of(ScriptedModel([echo]), a_request("abc"))).text == "ABC"


async def test_a_stream_stands_at_a_gate():
    gate = Gate()
    model = ScriptedModel([waits(gate, "a text that has three deltas", after=1)])
    seen: list[AssistantEvent] = []

    task = asyncio.create_task(read_into(seen, model))
    await gate.reached()
    assert [e.text for e in seen if isinstance(e, TextDelta)] == ["a text that "]
    gate.open()
    await task
    assert assemble(seen).text == "a text that has three deltas"


async def test_a_stream_that_waits_can_be_cancelled():
    gate = Gate()
    task = asyncio.create_task(events_of(ScriptedModel([waits(gate)])))
    await gate.reached()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_unexpected_request_says_which_and_what():
    model = ScriptedModel([says("only")])
    await events_of(model)
    model.assert_finished()
    with pytest.raises(RequestRejected, match=r"unexpected request 2.*1 replies.*'and now\?'"):
        await events_of(model, a_request("and now?"))
    with pytest.raises(AssertionError, match="unexpected request 2"):
        model.assert_finished()


async def test_unused_replies_are_reported():
    model = ScriptedModel([says("a"), says("b"), refuses("c")])
    await events_of(model)
    assert model.unused == 2
    with pytest.raises(AssertionError, match=r"2 of 3 .* never asked for; the next one is .*'b'"):
        model.assert_finished()


async def test_not_strict_repeats_the_last_reply():
    model = ScriptedModel([says("a"), says("b")], strict=False, window=100, cost_usd=0.5)
    model.assert_finished()
    texts = [assemble(await events_of(model)).text for _ in range(3)]
    assert texts == ["a", "b", "b"]
    assert (model.window, model.cost(Usage(), "m"), len(model.requests)) == (100, 0.5, 3)
    with pytest.raises(ModelError):
        await events_of(ScriptedModel([], strict=False))


blocks = st.one_of(
    st.builds(Text, st.text(st.characters(exclude_categories=["Cs"]), min_size=1)),
    st.builds(
        ToolUse, st.uuids().map(str), st.just("Read"), st.dictionaries(st.text(), st.integers())
    ),
    st.builds(Thinking, st.text(), st.text(min_size=1)),
)


@given(st.lists(blocks), st.booleans())
async def test_what_is_streamed_assembles_to_what_was_given(given_blocks, complete):
    merged = [
        b
        for at, b in enumerate(given_blocks)
        # Neighbouring texts become one block on any wire.
        if not (at and isinstance(b, Text) and isinstance(given_blocks[at - 1], Text))
    ]
    reply = Reply(tuple(merged), "end_turn" if complete else "", complete=complete)
    seen = await reply_of(reply)
    assert (seen.blocks, seen.stop_reason) == (reply.blocks, reply.stop_reason)


def test_a_script_file_is_read(tmp_path):
    path = tmp_path / "script.json"
    lines = [
        "plain",
        {"calls": [{"name": "Read", "input": {"a": 1}}], "text": "t", "usage": {"input_tokens": 3}},
        {"text": "half", "cut": True},
        {"text": "half", "cut": 2},
        {"error": "model_unavailable", "status": 529, "retry_after": 1.5},
        {"error": "context_overflow", "limit_tokens": 100, "message": "full"},
    ]
    path.write_text(json.dumps(lines))
    plain, called, cut_at_end, cut_early, failed, full = load_script(str(path))
    assert plain == says("plain")
    assert called == calls(ToolUse("", "Read", {"a": 1}), text="t", usage=Usage(3))
    assert cut_at_end == Reply((Text("half"),), complete=False)
    assert cut_early == Cut(says("half"), 2)
    assert isinstance(failed, Fails)
    assert isinstance(failed.error, ModelUnavailable)
    assert (failed.error.status, failed.error.retry_after) == (529, 1.5)
    assert isinstance(full, Fails)
    assert isinstance(full.error, ContextOverflow)
    assert (full.error.limit_tokens, full.error.message) == (100, "full")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('["a",\n "b"', r"script\.json:2:5: not JSON"),
        ('"a"', r"Expected `array`"),
        ('{"text": "a"}', r"unknown field `text`"),
        ('{"replies": []}', r"missing required field `schema`"),
        ('{"schema": 1, "replies": [], "x": 1}', r"unknown field `x`"),
        ('{"schema": 2, "replies": 7}', r"recorded by a newer claw: its schema is 2"),
        ('[{"text": "a", "blocks": [{"type": "text", "text": "b"}]}]', r"instead of .*\$\[0\]"),
        ('[{"txt": "a"}]', r"unknown field `txt` - at `\$\[0\]`"),
        ('["a", {"calls": [{"input": {}}]}]', r"`name` - at `\$\[1\]\.calls\[0\]`"),
        ('[{"calls": [{"name": "Read", "input": 3}]}]', r"at `\$\[0\]\.calls\[0\]\.input`"),
        ('[{"error": "boom"}]', r"'boom' - at `\$\[0\]\.error`"),
        ('[{"error": "output_limit_too_high"}]', r"`max_tokens` is missing - at `\$\[0\]`"),
    ],
)
def test_a_broken_script_file_is_named_with_the_place(tmp_path, text, complaint):
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint) as caught:
        load_script(str(path))
    assert str(path) in caught.value.message
    assert caught.value.hint


def test_a_script_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="cannot read the script"):
        load_script(str(tmp_path / "none.json"))


def test_a_yaml_script_needs_its_package(tmp_path):
    path = tmp_path / "script.yaml"
    path.write_text("- plain\n- text: more\n  calls: [{name: Read, input: {a: 1}}]\n")
    try:
        import yaml  # type: ignore[import-untyped,unused-ignore]  # noqa: F401
    except ImportError:
        with pytest.raises(ConfigError, match="need PyYAML"):
            load_script(str(path))
    else:
        more = calls(ToolUse("", "Read", {"a": 1}), text="more")
        assert load_script(str(path)) == [says("plain"), more]
