"""A session told for people: what counts, what was taken back, what never ended."""

from __future__ import annotations

import pytest

from claw.cli.render.story import as_markdown, as_text, story
from claw.cli.style import Paint
from claw.cli.times import ago, human_size, local_time, seconds_of
from claw.sessions.record import Record
from claw.types.entries import (
    Compacted,
    Entry,
    ReplyReceived,
    Retried,
    Rewound,
    Steered,
    ToolFinished,
    ToolIntended,
    TurnEnded,
    TurnStarted,
    UserMessaged,
)
from claw.types.messages import Image, Text, ToolUse
from claw.types.results import Failure
from claw.types.usage import Usage

AT = "2026-11-30T14:20:00.000Z"


def told(*entries: Entry) -> list[str]:
    records = [Record(seq, f"e{seq}", "", AT, entry) for seq, entry in enumerate(entries, 1)]
    return [line for line in as_text(story(records), Paint(False)) if line]


def document(*entries: Entry) -> str:
    records = [Record(seq, f"e{seq}", "", AT, entry) for seq, entry in enumerate(entries, 1)]
    return "\n".join(as_markdown(story(records)))


def reply(*blocks: Text | ToolUse, complete: bool = True, step: int = 1) -> ReplyReceived:
    return ReplyReceived(step, blocks, "end_turn", Usage(1, 1), complete, "m")


def said(text: str) -> UserMessaged:
    return UserMessaged((Text(text),))


def test_a_reply_that_was_sampled_again_is_not_told():
    cut = reply(Text("half an ans"), complete=False)
    assert told(cut, Retried(1, 1, "stream_cut", 0.0), reply(Text("an answer"))) == ["an answer"]
    assert told(cut) == ["half an ans"]


def test_a_call_is_told_with_what_it_ran_with_and_how_it_ended():
    use = ToolUse("a", "Bash", {"command": "asked for"})
    run = ToolIntended("a", "Bash", input={"command": "really run"})
    done = ToolFinished("a", (Text("\n".join("abcdefgh")),), "outcome_unknown")
    lines = told(reply(use), run, done)
    assert lines[0].strip() == "* Bash really run [outcome unknown]"
    assert lines[1:3] == ["  | a", "  | b"]
    assert lines[-1] == "  | ... 2 more lines"


def test_calls_without_a_result_say_so():
    uses = (ToolUse("a", "One", {}), ToolUse("b", "Two", {}))
    lines = told(TurnStarted(1), reply(*uses), ToolIntended("a", "One"), TurnStarted(2))
    assert [line.strip() for line in lines[1:3]] == ["* One  [outcome unknown]", "* Two  [not run]"]


def test_a_rewind_names_the_turn():
    entries = (TurnStarted(1), said("one"), TurnStarted(2), said("two"), Rewound(2))
    assert "before turn 2 (conversation)" in told(*entries)[-1]
    assert "before turn 1 (conversation and files)" in told(*entries[:-1], Rewound(0, True))[-1]
    assert told(*entries, Rewound(4))[-1] == "-- a rewind was undone (conversation)"


def test_notes_of_what_nobody_said():
    lines = told(
        Steered((Text("wait"),)),
        Steered((Text("tests fail"),), source="hook"),
        Compacted("auto", 7, 3, (Text("a summary"),), 100, 10),
        TurnEnded(1, "max_turns_reached", 1, Usage()),
        TurnEnded(2, "interrupted", 1, Usage(), error=Failure("killed", "the process ended")),
        TurnEnded(3, "completed", 1, Usage()),
        UserMessaged((Text("look"), Image("image/png", "0" * 64))),
    )
    assert lines == [
        "> wait",
        "-- a hook: tests fail",
        "-- compacted: 7 messages were replaced by a summary",
        "-- the turn ended: max turns reached",
        "-- the turn ended: the process ended",
        "> look",
        "> [image/png]",
    ]


def test_nothing_in_it_steers_a_terminal_or_breaks_a_fence():
    use = ToolUse("a", "Bash\x1b]0;x\x07", {"command": "\u202e```"})
    entries = (
        said("a\x1b[2Jb"),
        reply(Text("c\x9bd"), use),
        ToolFinished("a", (Text("```` e\x1b[0m"),), "ok"),
    )
    for text in ("\n".join(told(*entries)), document(*entries)):
        assert not any(char in text for char in "\x1b\x07\x9b\u202e")
    assert "`````\n```` e" in document(*entries)


NOW = 1_796_048_400.0  # 2026-11-30T14:20:00Z


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("2026-11-30T14:19:30.000Z", "just now"),
        ("2026-11-30T15:00:00.000Z", "just now"),
        ("2026-11-30T14:10:00.000Z", "10 min ago"),
        ("2026-11-30T12:00:00.000Z", "2 h ago"),
        ("2026-11-29T12:00:00.000Z", "1 day ago"),
        ("2026-11-20T12:00:00.000Z", "10 days ago"),
        ("2026-01-20T12:00:00.000Z", "2026-01-20"),
        ("", ""),
        ("9999-99-99", ""),
    ],
)
def test_how_long_ago(at: str, words: str):
    assert ago(at, NOW) == words


@pytest.mark.parametrize("at", ["", "soon", "0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"])
def test_times_that_are_none(at: str):
    assert len(local_time(at)) in (0, 16)


def test_ages_and_sizes():
    assert [seconds_of(age) for age in ("45m", "12h", " 30D ", "2w")] == [
        2700.0,
        43200.0,
        2_592_000.0,
        1_209_600.0,
    ]
    assert [seconds_of(age) for age in ("", "30", "d", "-1d", "1.5h", "1y", "٣d")] == [None] * 7
    sizes = (0, 1, 999, 1000, 999_949, 999_950, 12_345_678, 10**15)
    assert [human_size(size) for size in sizes] == [
        "0 bytes",
        "1 byte",
        "999 bytes",
        "1.0 kB",
        "999.9 kB",
        "1.0 MB",
        "12.3 MB",
        "1000.0 TB",
    ]
