"""The invariant of a transcript, under any order of pushes and for any history repaired."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claw.types.messages import (
    AssistantMessage,
    Message,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    UserMessage,
)
from claw.types.transcript import Transcript, repair


def assert_paired(messages: tuple[Message, ...]) -> None:
    """Every call has one result, in order, in the one user message directly after it."""
    seen: set[str] = set()
    for n, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            ids = [call.id for call in message.tool_calls]
            assert not seen & set(ids)
            assert len(set(ids)) == len(ids)
            seen |= set(ids)
            if ids:
                after = messages[n + 1]
                assert isinstance(after, UserMessage)
                assert [b.tool_use_id for b in after.content if isinstance(b, ToolResult)] == ids
        else:
            assert message.content
            results = [b for b in message.content if isinstance(b, ToolResult)]
            if results:
                assert len(results) == len(message.content)
                before = messages[n - 1]
                assert isinstance(before, AssistantMessage)
                assert len(before.tool_calls) == len(results)
                for result in results:
                    assert all(b.text.strip() for b in result.content if isinstance(b, Text))
                    assert result.content


ids = st.sampled_from(["a", "b", "c", "", "a_d2"])
texts = st.sampled_from(["", " \n", "hello", "世界"])
calls = st.builds(ToolUse, ids, st.sampled_from(["Read", "Bash", ""]))
results = st.builds(
    ToolResult, ids, st.lists(st.builds(Text, texts), max_size=2).map(tuple), st.booleans()
)
assistants = st.builds(
    AssistantMessage,
    st.lists(st.one_of(calls, st.builds(Text, texts), st.builds(Thinking, texts)), max_size=4).map(
        tuple
    ),
)
users = st.builds(
    UserMessage, st.lists(st.one_of(results, st.builds(Text, texts)), max_size=4).map(tuple)
)


@given(st.lists(st.one_of(assistants, users), max_size=12))
def test_any_history_is_repaired_to_a_valid_one(history: list[Message]) -> None:
    repaired = repair(history)
    assert_paired(repaired.messages)
    assert repair(repaired.messages).messages == repaired.messages


@given(st.lists(st.one_of(assistants, users), max_size=12))
def test_repair_keeps_what_was_said(history: list[Message]) -> None:
    def said(messages: list[Message]) -> list[str]:
        return [b.text for m in messages for b in m.content if isinstance(b, Text)]

    assert said(list(repair(history).messages)) == said(history)


@given(st.data())
def test_a_transcript_is_valid_at_every_instant(data: st.DataObject) -> None:
    transcript = Transcript()
    fresh = 0
    for _ in range(data.draw(st.integers(0, 12))):
        match data.draw(st.sampled_from(["user", "say", "call", "settle", "close", "back"])):
            case "user":
                transcript = transcript.user(UserMessage((Text("u"),)))
            case "say":
                transcript = transcript.assistant(AssistantMessage((Text("a"),)))
            case "call":
                count = data.draw(st.integers(1, 3))
                uses = tuple(ToolUse(f"t{fresh + n}", "Read") for n in range(count))
                fresh += count
                transcript = transcript.assistant(AssistantMessage(uses))
            case "settle":
                if transcript.open_calls:
                    due = transcript.open_calls[0].id
                    transcript = transcript.settle(ToolResult(due, (Text("r"),)))
            case "close":
                transcript = transcript.close()
            case _:
                transcript = transcript.without_last_reply()
        assert_paired(transcript.messages)


def test_results_out_of_order_are_refused() -> None:
    message = AssistantMessage((ToolUse("a", "Read"), ToolUse("b", "Read")))
    transcript = Transcript().assistant(message)
    with pytest.raises(ValueError, match="expected 'a'"):
        transcript.settle(ToolResult("b", (Text("r"),)))
    with pytest.raises(ValueError, match="expected 'no result'"):
        Transcript().settle(ToolResult("a", ()))


def test_an_empty_result_says_that_there_was_no_output() -> None:
    transcript = Transcript().assistant(AssistantMessage((ToolUse("a", "Bash"),)))
    transcript = transcript.settle(ToolResult("a", (Text(" "),)))
    assert transcript.closed[-1] == UserMessage((ToolResult("a", (Text("(no output)"),)),))


def test_two_calls_with_one_id_are_refused() -> None:
    with pytest.raises(ValueError, match="share an id"):
        Transcript().assistant(AssistantMessage((ToolUse("a", "x"), ToolUse("a", "y"))))


def test_repair_pairs_repeated_ids_by_occurrence() -> None:
    one = AssistantMessage((ToolUse("x", "Read", {"n": 1}), ToolUse("x", "Read", {"n": 2})))
    answers = UserMessage((ToolResult("x", (Text("1"),)), ToolResult("x", (Text("2"),))))
    repaired = repair([one, answers, one, answers]).messages
    texts = [b.content[0] for m in repaired for b in m.content if isinstance(b, ToolResult)]
    assert texts == [Text("1"), Text("2"), Text("1"), Text("2")]
    assert_paired(repaired)
