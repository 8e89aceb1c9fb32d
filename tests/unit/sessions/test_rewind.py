"""Going back: the conversation is as it was, what was spent and allowed stays."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from claw.sessions.journal import FileJournal, MemoryJournal
from claw.sessions.load import load, state_at
from claw.sessions.salvage import salvage
from claw.types.entries import (
    Entry,
    ModeChanged,
    Rewound,
    Titled,
    ToolFinished,
    ToolIntended,
    TurnEnded,
    TurnStarted,
)
from claw.types.messages import Text, ToolUse, text_of
from claw.types.session import SessionState
from claw.workspace.disk import SystemDisk
from tests.unit.sessions.making import SPENT, complaints, every_kind, now, reply, said, start, write


def turn(number: int, text: str) -> list[Entry]:
    return [
        TurnStarted(number),
        said(text),
        reply(1, Text(f"answer to {text}")),
        TurnEnded(number, "completed", 1, SPENT),
    ]


def texts(state: SessionState) -> list[str]:
    return [text_of(message.content) for message in state.transcript.messages]


def test_the_conversation_goes_on_from_the_place(tmp_path: Path) -> None:
    entries = [start(), *turn(1, "one"), *turn(2, "two"), ModeChanged("plan"), Rewound(5)]
    state = load(str(write(tmp_path / "s1.jsonl", [*entries, *turn(3, "three")]))).state
    assert texts(state) == ["one", "answer to one", "three", "answer to three"]
    assert (state.turns, state.mode, state.session_id) == (3, "plan", "s1")
    assert state.usage == SPENT + SPENT + SPENT


def test_one_can_go_back_to_before_going_back(tmp_path: Path) -> None:
    entries = [start(), *turn(1, "one"), *turn(2, "two"), Rewound(5), *turn(3, "three")]
    path = write(tmp_path / "s1.jsonl", [*entries, Rewound(9), *turn(4, "four"), Rewound(14)])
    assert texts(state_at(str(path), 14)) == ["one", "answer to one", "three", "answer to three"]
    assert texts(state_at(str(path), 19)) == [
        "one",
        "answer to one",
        "two",
        "answer to two",
        "four",
        "answer to four",
    ]
    assert texts(load(str(path)).state) == ["one", "answer to one", "three", "answer to three"]


def test_many_rewinds_are_no_more_work_than_few(tmp_path: Path) -> None:
    entries: list[Entry] = [start(), *turn(1, "one")]
    for number in range(60):  # each to right after the one before: without care, 2**60 folds
        entries += [said(f"try {number}"), Rewound(len(entries))]
    assert texts(load(str(write(tmp_path / "s1.jsonl", entries))).state) == ["one", "answer to one"]


def test_going_back_into_the_middle_of_calls_closes_them(tmp_path: Path) -> None:
    use = ToolUse("a", "Bash", {})
    entries: list[Entry] = [start(), TurnStarted(1), said("one"), reply(1, use)]
    entries += [
        ToolIntended("a", "Bash"),
        ToolFinished("a", (Text("x"),), "ok"),
        TurnEnded(1, "completed", 1, SPENT),
    ]
    state = load(str(write(tmp_path / "s1.jsonl", [*entries, Rewound(5)]))).state
    assert (state.transcript.open_calls, state.intended, state.in_turn) == ((), {}, False)
    assert complaints(state) == []


def test_a_place_that_was_lost_is_the_last_one_before_it(tmp_path: Path) -> None:
    entries = [start(), *turn(1, "one"), *turn(2, "two"), Rewound(5)]
    path = write(tmp_path / "s1.jsonl", entries)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(b"x\n" if n == 4 else line for n, line in enumerate(lines)))
    salvage(str(path), now=now, disk=SystemDisk())
    assert texts(load(str(path)).state) == ["one", "answer to one"]


def test_a_place_that_is_not_before_it_changes_nothing(tmp_path: Path) -> None:
    entries = [start(), *turn(1, "one"), Rewound(6), Rewound(99)]
    assert texts(load(str(write(tmp_path / "s1.jsonl", entries))).state) == ["one", "answer to one"]


def test_both_journals_know_the_past(tmp_path: Path) -> None:
    memory = MemoryJournal(now=now)
    file = FileJournal(str(tmp_path / "s1.jsonl"), now=now, disk=SystemDisk())
    for seq, entry in enumerate(every_kind(), 1):
        assert memory.append(entry) == file.append(entry) == seq
    for seq in range(len(every_kind()) + 1):
        assert memory.state_at(seq) == file.state_at(seq)
        assert complaints(file.state_at(seq)) == []
    file.close()


@settings(deadline=None)
@given(st.lists(st.integers(0, 40) | st.text("abc", min_size=1, max_size=2), max_size=25))
def test_rewinds_are_as_if_all_had_been_kept(steps: list[int | str]) -> None:
    memory = MemoryJournal(now=now)
    titles = [""]  # after each entry
    for step in steps:
        if isinstance(step, str):
            memory.append(Titled(step))
            titles.append(step)
        else:
            place = memory.append(Rewound(step))
            titles.append(titles[step] if step < place else titles[-1])
    assert [memory.state_at(n).title for n in range(len(titles))] == titles
