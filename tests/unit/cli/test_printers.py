"""What the printers make of a turn's events."""

from __future__ import annotations

import io
import json

import pytest

from claw.cli.render.activity import Activity, Warnings
from claw.cli.render.answer import StreamedAnswer, WholeAnswer
from claw.cli.render.stream_json import StreamJson
from claw.cli.screen import Screen
from claw.cli.terminal import Terminal
from claw.ports import EventSink
from claw.types.entries import (
    Event,
    ReplyReceived,
    Retried,
    ToolFinished,
    ToolIntended,
    TurnEnded,
)
from claw.types.events import Notice, RetryWait, TextDelta, ToolInputDelta
from claw.types.messages import AssistantBlock, Text, Thinking, ToolUse
from claw.types.usage import Usage

PIPE = Terminal(
    stdin=False,
    stdout=False,
    stderr=False,
    color_stdout=False,
    color_stderr=False,
    animated=False,
    pictures=True,
)
TTY = Terminal(
    stdin=True,
    stdout=True,
    stderr=True,
    color_stdout=False,
    color_stderr=False,
    animated=False,
    pictures=True,
)


class Streams:
    """A screen whose two streams end up in one text, as on a terminal, and apart."""

    def __init__(self, terminal: Terminal) -> None:
        self.out = io.StringIO()
        self.err = io.StringIO()
        same = terminal.stdout and terminal.stderr
        self.screen = Screen(terminal, self.out, self.out if same else self.err)


def reply(*blocks: AssistantBlock, complete: bool = True, step: int = 1) -> ReplyReceived:
    return ReplyReceived(step, blocks, "end_turn" if complete else "", Usage(3, 4), complete, "m")


def ended() -> TurnEnded:
    return TurnEnded(1, "completed", 1, Usage())


def emit(sink: EventSink, *events: Event) -> None:
    for event in events:
        sink.emit(event)


def test_a_pipe_gets_whole_replies_with_a_blank_line_between():
    streams = Streams(PIPE)
    emit(
        WholeAnswer(streams.screen),
        TextDelta("one"),
        reply(Text("one"), ToolUse("c", "Read")),
        ToolFinished("c", (Text("x"),), "ok"),
        reply(Text("two\n")),
        ended(),
    )
    assert streams.out.getvalue() == "one\n\ntwo\n"


def test_a_pipe_never_gets_a_reply_that_is_sampled_again():
    streams = Streams(PIPE)
    emit(
        WholeAnswer(streams.screen),
        reply(Text("half of"), complete=False),
        Notice("stream_cut", "warning", "cut"),
        Retried(1, 1, "stream_cut", 0.0),
        reply(Text("half of it")),
        ended(),
    )
    assert streams.out.getvalue() == "half of it\n"


def test_a_pipe_gets_a_cut_reply_that_stands():
    streams = Streams(PIPE)
    emit(WholeAnswer(streams.screen), reply(Text("half of"), complete=False), ended())
    assert streams.out.getvalue() == "half of\n"


def test_a_pipe_gets_nothing_for_blank_replies():
    streams = Streams(PIPE)
    emit(WholeAnswer(streams.screen), reply(Text("\n ")), reply(), ended())
    assert streams.out.getvalue() == ""


def test_a_terminal_gets_text_as_it_comes_once():
    streams = Streams(TTY)
    printer = StreamedAnswer(streams.screen)
    emit(printer, TextDelta("\n"), TextDelta("Hel"), TextDelta("lo"))
    assert streams.out.getvalue() == "Hello"
    emit(printer, reply(Text("Hello")))
    emit(printer, TextDelta("more"), reply(Text("more")), ended())
    assert streams.out.getvalue() == "Hello\n\nmore\n"


def test_a_terminal_never_gets_what_it_would_obey():
    streams = Streams(TTY)
    emit(StreamedAnswer(streams.screen), TextDelta("a\x1b[2Jb\u202ec\r\x07\x9b1m\r\n👍🏽\tü"))
    shown = streams.out.getvalue()
    assert not set("\x1b\u202e\r\x07\x9b") & set(shown)
    assert shown.endswith("\n👍🏽\tü")


def test_lines_about_calls_begin_at_the_left():
    streams = Streams(TTY)
    answer, activity = StreamedAnswer(streams.screen), Activity(streams.screen)
    call = ToolUse("c", "Read", {"file_path": "a.py"})
    for event in (
        TextDelta("Let me look"),
        reply(Text("Let me look"), call),
        ToolFinished("c", (Text("l1\nl2\nl3\nl4\nl5"),), "ok"),
    ):
        answer.emit(event)
        activity.emit(event)
    lines = streams.out.getvalue().split("\n")
    assert lines[0] == "Let me look"
    assert lines[1] == "● Read a.py"
    assert lines[2:6] == ["  | l1", "    l2", "    l3", "    ... 2 more lines"]


def test_a_call_shows_its_display_and_nothing_a_terminal_obeys():
    streams = Streams(TTY)
    activity = Activity(streams.screen)
    activity.emit(reply(ToolUse("c", "Edit", {"file_path": "a\x1b]0;x\x07"})))
    activity.emit(ToolFinished("c", (Text("ok"),), "ok", display="-old\n+new\x1b[0m"))
    shown = streams.out.getvalue()
    assert "-old" in shown
    assert "+new" in shown
    assert "ok" not in shown
    assert "\x1b" not in shown


def test_a_log_gets_only_what_went_wrong():
    streams = Streams(PIPE)
    sink = Warnings(streams.screen)
    emit(
        sink,
        reply(ToolUse("r", "Read", {"file_path": "a"}), ToolUse("b", "Bash", {"command": "rm x"})),
        ToolFinished("r", (Text("fine"),), "ok"),
        ToolFinished("b", (Text("Permission denied: nobody to ask"),), "denied"),
        Notice("n", "info", "nothing special"),
        Notice("n", "error", "the disk is full"),
        RetryWait(1, 2.0, "overloaded"),
    )
    assert streams.err.getvalue().splitlines() == [
        "warning: Bash rm x: Permission denied: nobody to ask",
        "error: the disk is full",
        "warning: overloaded; trying again in 2.0s (attempt 2)",
    ]
    assert streams.out.getvalue() == ""


def test_why_it_is_tried_again_is_said_once():
    streams = Streams(PIPE)
    emit(
        Warnings(streams.screen),
        RetryWait(1, 0.44, "connection refused"),
        RetryWait(2, 1.3, "connection refused"),
        RetryWait(3, 75.0, "overloaded"),
        reply(Text("x")),
        RetryWait(1, 0.5, "overloaded"),
    )
    assert streams.err.getvalue().splitlines() == [
        "warning: connection refused; trying again in 0.4s (attempt 2)",
        "warning: trying again in 1.3s (attempt 3)",
        "warning: overloaded; trying again in 1m 15s (attempt 4)",
        "warning: overloaded; trying again in 0.5s (attempt 2)",
    ]


def test_a_call_is_shown_as_it_runs():
    streams = Streams(TTY)
    emit(
        Activity(streams.screen),
        reply(ToolUse("c", "Bash", {"command": "rm x"}), ToolUse("d", "Bash", {"command": "ls"})),
        ToolIntended("c", "Bash", input={"command": "echo two"}),
        ToolIntended("d", "Bash"),
        ToolFinished("c", (Text("two"),), "ok"),
        ToolFinished("d", (Text("a"),), "ok"),
    )
    shown = streams.out.getvalue()
    assert "● Bash echo two\n" in shown
    assert "● Bash ls\n" in shown
    assert "rm x" not in shown


def test_stream_json_has_a_line_for_each_message():
    lines: list[dict[str, object]] = []
    printer = StreamJson(lines.append, session_id="s", partial=False)
    emit(
        printer,
        TextDelta("cut"),
        reply(Text("cut"), complete=False),
        Retried(1, 1, "stream_cut", 0.0),
        reply(
            Thinking("hm", "sig"),
            Text("look"),
            ToolUse("a", "read_file", {"path": "x"}),
            ToolUse("b", "Glob", {}),
        ),
        ToolFinished("a", (Text("A"),), "ok"),
        ToolFinished("b", (Text("B"),), "error"),
        reply(Text("done")),
        ended(),
    )
    assert [line["type"] for line in lines] == ["assistant", "user", "assistant"]
    assert all(line["session_id"] == "s" for line in lines)
    assert lines[0]["message"] == {
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "text", "text": "look"},
            {"type": "tool_use", "id": "a", "name": "read_file", "input": {"path": "x"}},
            {"type": "tool_use", "id": "b", "name": "Glob", "input": {}},
        ],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 3,
            "output_tokens": 4,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
            "estimated": False,
        },
    }
    assert lines[1]["message"] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "A", "is_error": False},
            {"type": "tool_result", "tool_use_id": "b", "content": "B", "is_error": True},
        ],
    }
    json.dumps(lines)


def test_stream_json_tells_of_progress_when_asked_to():
    lines: list[dict[str, object]] = []
    printer = StreamJson(lines.append, session_id="s", partial=True)
    emit(printer, TextDelta("a"), ToolInputDelta(0, '{"x'), Notice("n", "info", "t"))
    assert lines == [
        {
            "type": "stream_event",
            "event": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}},
            "session_id": "s",
        },
        {
            "type": "stream_event",
            "event": {
                "type": "content_block_delta",
                "delta": {"type": "input_json_delta", "partial_json": '{"x'},
            },
            "session_id": "s",
        },
    ]


class ClosedPipe(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_closed_pipe_is_told_once_and_raises_nothing():
    told = []
    screen = Screen(PIPE, ClosedPipe(), io.StringIO())
    screen.on_broken = lambda: told.append(1)
    screen.product("x")
    screen.product("y")
    assert isinstance(screen.broken, BrokenPipeError)
    assert told == [1]


@pytest.mark.parametrize("terminal", [PIPE, TTY])
def test_a_status_line_never_reaches_what_is_no_animated_terminal(terminal: Terminal):
    streams = Streams(terminal)
    streams.screen.status("Thinking...")
    assert streams.out.getvalue() + streams.err.getvalue() == ""
