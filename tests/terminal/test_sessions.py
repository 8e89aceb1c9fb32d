"""Sessions at the prompt: going to another one, and going back in this one."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.running import Workplace
from tests.terminal.conftest import Sit
from tests.terminal.desk import Desk

WRITE = {"calls": [{"name": "Write", "input": {"file_path": "new.txt", "content": "made\n"}}]}
EDITS = ("--permission-mode", "acceptEdits")


def say(desk: Desk, line: str, answer: str) -> None:
    """Type a line, wait for what is to come, and for the prompt after it."""
    desk.prompt()
    desk.type(f"{line}\r")
    desk.see(answer)
    desk.prompt()


def session_of(desk: Desk) -> str:
    say(desk, "/session", "Go on with it later")
    return str(re.findall(r"claw --resume (\S+)", desk.text)[-1])


def journals(place: Workplace) -> list[Path]:
    return sorted((place.home / ".claw" / "sessions").glob("*/*.jsonl"))


def test_going_back_puts_files_and_conversation_back(sit: Sit, place: Workplace):
    model = place.script("The first answer.", WRITE, "It is written.", "The third answer.")
    desk = sit(*EDITS, "--model", model)
    say(desk, "/rewind", "There is no turn to go back to yet.")
    say(desk, "one", "The first answer.")
    say(desk, "write it", "It is written.")
    assert (place.work / "new.txt").exists()
    say(desk, "/rewind", "Go back to before a turn")
    assert re.search(r"^2  \d{4}-\d\d-\d\d \d\d:\d\d  write it$", desk.text, re.MULTILINE)
    assert "changed 1 file (new.txt)" in desk.text
    say(desk, "/rewind 2", "Back to before turn 2: the conversation and 1 file (new.txt).")
    assert not (place.work / "new.txt").exists()
    say(desk, "/rewind undo", "Undone: the conversation and 1 file (new.txt).")
    assert (place.work / "new.txt").exists()
    say(desk, "/rewind 2 files", "Back to before turn 2: 1 file (new.txt).")
    assert not (place.work / "new.txt").exists()
    say(desk, "/rewind 7", "There is no turn 7")
    say(desk, "/rewind 1 nothing", "There is no nothing to put back")
    say(desk, "three", "The third answer.")
    say(desk, "/rewind undo", "There is no rewind to undo.")


def test_another_session_is_picked_by_its_number(sit: Sit, place: Workplace):
    model = place.script("The first answer.", "The second answer.", "The third answer.")
    desk = sit("--model", model)
    say(desk, "/session switch", "There is no other session of this directory.")
    say(desk, "about apples", "The first answer.")
    first = session_of(desk)
    say(desk, "/session new", "is new.")
    say(desk, "about pears", "The first answer.")  # the script begins anew
    second = session_of(desk)
    assert first != second
    desk.type("/session switch\r")
    desk.see("Number (Enter for none):")
    assert re.search(rf"^  1 {first}  just now +1  about apples$", desk.text, re.MULTILINE)
    desk.type("1\r")
    desk.see(f"Session {first} (turns: 1): about apples")
    say(desk, "/history", "> about apples")
    assert session_of(desk) == first
    say(desk, f"/session switch {first[:-2]}", "You are in that session already.")
    say(desk, "/session switch nope", "error: no session")
    say(desk, f"/session switch {second}", f"Session {second} (turns: 1): about pears")


def test_the_picker_can_be_left(sit: Sit, place: Workplace):
    desk = sit("--model", place.script("Hello."))
    say(desk, "one", "Hello.")
    say(desk, "/session new", "is new.")
    for key, answer in (("\r", "Nothing was chosen."), ("\x03", "^C"), ("9\r", "Nothing was")):
        desk.prompt()
        desk.type("/session switch\r")
        desk.until(lambda: desk.last_line.startswith("Number"), "the question")
        desk.type(key)
        desk.see(answer)
        desk.prompt()
    desk.type("\x04")
    assert desk.ended() == 0


def test_a_copy_is_made_under_way(sit: Sit, place: Workplace):
    desk = sit("--model", place.script("Hello."))
    say(desk, "/session fork", "Nothing was said yet")
    say(desk, "/rename the first one", "This session is called: the first one")
    say(desk, "one", "Hello.")
    say(desk, "/session fork", "(turns: 1): the first one")
    say(desk, "/rename the copy", "This session is called: the copy")
    assert len(journals(place)) == 2
    desk.type("/session switch\r")
    desk.see("Number")
    assert re.search(r"^  1 \S+ .* the first one$", desk.text, re.MULTILINE)
    desk.type("\r")
    desk.prompt()
    desk.type("\x04")
    assert desk.ended() == 0
    assert not list(journals(place)[0].parent.glob("*.lock"))


def test_what_was_said_before_a_summary_is_there(sit: Sit, place: Workplace):
    desk = sit("--model", place.script("The first answer.", "The second answer. " * 400))
    say(desk, "the first prompt", "The first answer.")
    say(desk, "long", "Done")
    say(desk, "/compact", "ompacted")
    desk.type("/history\r")
    desk.until(lambda: b"> the first prompt" in desk.raw, "the history")
    desk.prompt()
    say(desk, "/history nonsense", "It is /history")
    say(desk, "/rename", "A title has 1 to 200 characters")


def test_a_session_in_memory_says_so(sit: Sit, place: Workplace):
    desk = sit("--no-session-persistence", "--model", place.script("Hello."))
    say(desk, "one", "Hello.")
    say(desk, "/session", "It is kept in memory only.")
    say(desk, "/session fork", "there is nothing to copy")
    say(desk, "/rewind 1", "Back to before turn 1")
    say(desk, "/history", "went back to before turn 1")
    say(desk, "/session new", "is new.")
    assert not (place.home / ".claw" / "sessions").exists()
