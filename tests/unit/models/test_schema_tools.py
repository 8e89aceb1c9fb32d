"""Tools without native calls: what the model is told, and what its JSON comes to."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from claw.models.schema_tools import SchemaDecoder, plain_message, plain_system, reply_schema
from claw.types.events import AssistantEvent, MessageStop, Notice, TextDelta, ThinkingDelta
from claw.types.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    UserMessage,
    text_of,
)
from claw.types.reply import Reply, assemble
from claw.types.tools import ToolSpec
from claw.types.usage import Usage

READ = ToolSpec(
    "Read",
    "Reads a file.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "pattern": "\\w+"},
            "range": {"$ref": "#/$defs/Range"},
        },
        "required": ["path"],
        "additionalProperties": False,
        "$defs": {"Range": {"type": "object", "properties": {"from": {"type": "integer"}}}},
    },
)
LIST = ToolSpec("List", "Lists files.", {"type": "object", "properties": {}})
TOOLS = (READ, LIST)


def decoded(*pieces: str, stop: str | None = "stop", before: int = 0) -> list[AssistantEvent]:
    decoder = SchemaDecoder(before)
    events: list[AssistantEvent] = []
    for piece in pieces:
        events += decoder.feed(TextDelta(piece))
    events += decoder.cut() if stop is None else decoder.feed(MessageStop(stop))
    return events


def reply(*pieces: str, stop: str | None = "stop", before: int = 0) -> Reply:
    return assemble(decoded(*pieces, stop=stop, before=before))


def codes(events: list[AssistantEvent]) -> list[str]:
    return [event.code for event in events if isinstance(event, Notice)]


def test_an_answer_streams_as_text():
    events = decoded('{"ans', 'wer": "Hel', "lo \\", 'n "', "}")
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["Hel", "lo ", "\n "]
    assert assemble(events).stop_reason == "stop"


def test_a_call_becomes_one():
    made = reply('{"tool": "Read", "input": {"path": "a.py"}}', before=3)
    assert made.blocks == (ToolUse("call_4", "Read", {"path": "a.py"}),)
    assert made.stop_reason == "tool_use"


WRITTEN = st.one_of(
    st.text().map(lambda text: json.dumps({"answer": text})),
    st.text().map(lambda text: json.dumps({"answer": text}, ensure_ascii=False, indent=1)),
    st.dictionaries(st.text(), st.text() | st.integers()).map(
        lambda given: json.dumps({"tool": "Read", "input": given})
    ),
    st.text(),
    st.text(alphabet='{}":\\`answertoolinput <>/think'),
)


@given(WRITTEN, st.lists(st.integers(0, 60)), st.sampled_from(["stop", "max_tokens", None]))
def test_any_chunking_gives_the_same(written: str, cuts: list[int], stop: str | None):
    edges = [0, *sorted(min(cut, len(written)) for cut in cuts), len(written)]
    pieces = [written[a:b] for a, b in pairwise(edges)]
    assert _shown(decoded(*pieces, stop=stop)) == _shown(decoded(written, stop=stop))
    assert _shown(decoded(*written, stop=stop)) == _shown(decoded(written, stop=stop))


def _shown(events: list[AssistantEvent]) -> tuple[object, ...]:
    whole = assemble([Usage(), *events])
    thought = "".join(e.text for e in events if isinstance(e, ThinkingDelta))
    return whole.blocks, whole.stop_reason, thought, codes(events)


@given(st.text(), st.dictionaries(st.text(), st.text() | st.booleans() | st.none()))
def test_what_is_in_the_history_reads_back(answer: str, given_input: dict[str, object]):
    call = ToolUse("call_1", "Read", given_input)
    said = plain_message(AssistantMessage((call,)))
    assert reply(text_of(said.content)).blocks == (call,)
    said = plain_message(AssistantMessage((Text(answer),)))
    assert reply(text_of(said.content)).text == (answer if answer.strip() else "")


def test_results_and_failures_are_told_apart():
    image = Image("image/png", "abc")
    told = plain_message(
        UserMessage(
            (
                ToolResult("call_1", (Text("a\nb"), image)),
                ToolResult("call_2", (Text("no such file"),), is_error=True),
                Text("go on"),
            )
        )
    )
    assert told.content == (
        Text('{"result":"a\\nb"}'),
        image,
        Text('{"error":"no such file"}'),
        Text("go on"),
    )


def test_messages_of_other_models_keep_all_that_was_said():
    message = AssistantMessage(
        (Thinking("hm"), Text("Both."), ToolUse("x", "Read", {"path": "a"}), ToolUse("y", "List"))
    )
    lines = text_of(plain_message(message).content).split("\n")
    assert [json.loads(line) for line in lines] == [
        {"answer": "Both."},
        {"tool": "Read", "input": {"path": "a"}},
        {"tool": "List", "input": {}},
    ]
    nothing: Message = AssistantMessage((Thinking("hm"),))
    assert plain_message(nothing).content == ()


@pytest.mark.parametrize("stop", ["stop", "max_tokens"])
def test_a_half_call_never_runs(stop: str):
    made = reply('{"tool": "Read", "input": {"path": "a', stop=stop)
    (call,) = made.tool_calls
    assert (call.name, call.input) == ("Read", {})
    assert call.raw_input is not None
    assert made.stop_reason == ("tool_use" if stop == "stop" else stop)


def test_a_call_of_a_cut_stream_is_text():
    made = reply('{"tool": "Read", "input": {"path": "a"}}', stop=None)
    assert not made.complete
    assert not made.tool_calls
    assert made.text == '{"tool": "Read", "input": {"path": "a"}}'


def test_a_half_answer_is_kept():
    made = reply('{"answer": "It is 4\\u00', stop="max_tokens")
    assert (made.text, made.stop_reason) == ("It is 4", "max_tokens")


@pytest.mark.parametrize(
    "written",
    [
        "The answer is 4.",
        '{"name": "Read", "arguments": {}}',
        '{"answer": 4}',
        "{}",
        '{"answer": "x"} and more',
        "[1, 2",
    ],
)
def test_what_ignores_the_form_is_shown_with_a_notice(written: str):
    events = decoded(written)
    assert codes(events) == ["reply_format"]
    shown = assemble(events)
    assert shown.text.strip() in (written, "xand more")
    assert not shown.tool_calls


def test_an_answer_in_a_fence_is_one():
    made = decoded('```json\n{"answer": "4"}\n```')
    assert (assemble(made).text, codes(made)) == ("4", [])


def test_a_call_with_an_odd_input_is_sent_back_to_the_model():
    (call,) = reply('{"tool": "Read", "input": ["a"]}').tool_calls
    assert (call.input, call.raw_input) == ({}, '{"input":["a"]}')
    (call,) = reply('{"tool": "Read"}').tool_calls
    assert call.raw_input is not None


def test_thinking_before_the_object_is_thinking():
    events = decoded("<thi", "nk>Which f", "ile?</th", 'ink>\n{"answer": "<think>"}')
    made = assemble(events)
    assert made.blocks == (Thinking("Which file?"), Text("<think>"))
    thought = [e.text for e in events if isinstance(e, ThinkingDelta)]
    assert "".join(thought) == "Which file?"


def test_thinking_that_never_ends_is_thinking():
    assert reply("<think>Hm </th").blocks == (Thinking("Hm </th"),)
    assert reply("<think>Hm", stop=None).blocks == (Thinking("Hm"),)


def test_half_characters_are_joined():
    assert reply('{"answer": "\\ud83d', '\\ude00\\ud800"}').text == "\U0001f600\ufffd"


def test_hostile_lengths_take_no_time():
    half = 100_000
    assert len(reply('{"answer": "' + "\\q" * half + '"}').text) == 2 * half
    assert reply("<think></think>" * half).thinking == ""
    assert len(reply(*("[" * half)).text) == half
    assert len(reply("```", " " * half, "x").text) == half + 4


def test_the_schema_takes_calls_and_answers_only():
    check = Draft202012Validator(reply_schema(TOOLS)).is_valid
    assert check({"tool": "Read", "input": {"path": "a", "range": {"from": 1}}})
    assert check({"tool": "List", "input": {}})
    assert check({"answer": "done"})
    assert not check({"tool": "Read", "input": {}})
    assert not check({"tool": "Remove", "input": {}})
    assert not check({"tool": "List", "input": {}, "answer": "both"})


def test_the_system_prompt_names_the_tools():
    told = plain_system("Be brief.", TOOLS)
    assert told.startswith("Be brief.\n")
    assert "Reads a file." in told
    assert json.dumps("List") not in told.split("# Tools")[0]
    assert "## List" in told
