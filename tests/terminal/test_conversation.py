"""The interactive form as it looks and feels."""

from __future__ import annotations

import json
import time

import pytest

from claw.models.scripted import calls, says
from claw.testing.strict_server import ServerReply, answers, sent
from tests.cli.running import CLAW, Workplace
from tests.terminal.conftest import Sit
from tests.terminal.desk import Desk, ServerBeside

MODEL = ("--model", "claude-sonnet-5-5")
ASKS = {"calls": [{"name": "Bash", "input": {"command": "touch made"}}]}


def test_an_answer_is_shown_once_and_the_next_prompt_works(sit: Sit, place: Workplace):
    desk = sit("--model", place.script("The first answer.", "The second answer."))
    desk.prompt()
    desk.type("one\r")
    desk.see("✨ Done")
    desk.prompt()
    desk.type("two\r")
    desk.see("The second answer.")
    desk.prompt()
    assert desk.text.count("The first answer.") == 1
    desk.type("\x04")
    assert desk.ended() == 0


def test_the_offline_model_says_what_it_is_and_works(sit: Sit, place: Workplace):
    (place.work / "hello.txt").write_text("hello from the file\n")
    desk = sit()
    desk.see("ANTHROPIC_API_KEY")
    desk.prompt()
    desk.type("show the first lines of hello.txt\r")
    desk.see("● Read hello.txt")
    desk.see("✨ Done")


def test_a_failed_turn_does_not_end_it(sit: Sit):
    bad = answers(
        400, {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
    )
    with ServerBeside([bad, says("Fine again.")]) as server:
        desk = sit(*MODEL, env=server.env)
        desk.prompt()
        desk.type("one\r")
        desk.see("❌ Request failed")
        desk.see("error:")
        desk.prompt()
        desk.type("two\r")
        desk.see("Fine again.")


def test_the_spinner_moves_and_leaves_no_trace(sit: Sit):
    with ServerBeside([sent(says("Here it is."), every=30, pause=0.2)]) as server:
        desk = sit(*MODEL, env=server.env)
        desk.prompt()
        desk.type("hello\r")
        desk.see("Thinking...")
        desk.see("✨ Done")
        desk.prompt()
        assert "Thinking..." not in desk.text
    frames = [frame for frame in "⠋⠙⠹⠸" if frame.encode() in desk.raw]
    assert len(frames) > 1


def test_a_yes_runs_what_was_shown(sit: Sit, place: Workplace):
    desk = sit("--model", place.script(ASKS, "It is made."))
    desk.prompt()
    desk.type("make it\r")
    desk.see("Permission approval required")
    desk.see("Approve this tool call? [y/N]:")
    assert "touch made" in desk.text
    assert not (place.work / "made").exists()
    desk.type("y\r")
    desk.see("It is made.")
    assert (place.work / "made").exists()


def test_a_no_with_a_reason_reaches_the_model(sit: Sit, place: Workplace):
    with ServerBeside([calls(("Bash", {"command": "touch made"})), says("Then not.")]) as server:
        desk = sit(*MODEL, env=server.env)
        desk.prompt()
        desk.type("make it\r")
        desk.see("[y/N]:")
        desk.type("n use the other file\r")
        desk.see("Then not.")
    result = str(server.server.requests[1].body["messages"][-1])
    assert "denied by user approval prompt: use the other file" in result
    assert not (place.work / "made").exists()


def test_enter_and_the_end_of_input_are_a_no(sit: Sit, place: Workplace):
    desk = sit("--model", place.script(ASKS, "Not made.", ASKS, "Not made either."))
    desk.prompt()
    for answer, reply in (("\r", "Not made."), ("\x04", "Not made either.")):
        desk.type("make it\r")
        desk.until(lambda: desk.last_line.endswith("[y/N]:"), "the question")
        desk.type(answer)
        desk.see(reply)
        desk.prompt()
    assert not (place.work / "made").exists()


def test_an_unclear_answer_is_asked_again(sit: Sit, place: Workplace):
    desk = sit("--model", place.script(ASKS, "It is made."))
    desk.prompt()
    desk.type("make it\r")
    desk.see("[y/N]:")
    desk.type("yy\r")
    desk.see("no clear answer")
    assert not (place.work / "made").exists()
    desk.type("yes\r")
    desk.see("It is made.")


def test_for_this_session_asks_once(sit: Sit, place: Workplace):
    desk = sit("--model", place.script(ASKS, "Made.", ASKS, "Made again."))
    desk.prompt()
    desk.type("make it\r")
    desk.see("allow `Bash(touch made")
    desk.type("a\r")
    desk.see("Made.")
    desk.prompt()
    desk.type("again\r")
    desk.see("Made again.")
    desk.prompt()
    desk.type("/permissions\r")
    desk.see("Added in this session:")
    assert desk.text.count("[y/N]:") == 1


def test_a_command_can_be_edited_before_it_runs(sit: Sit, place: Workplace):
    desk = sit("--model", place.script(ASKS, "It is made."))
    desk.prompt()
    desk.type("make it\r")
    desk.see("e = edit")
    desk.see("[y/N]:")
    desk.type("e\r")
    desk.see("Command: touch made")
    desk.type("-too\r")
    desk.see("It is made.")
    assert [file.name for file in place.work.iterdir()] == ["made-too"]
    desk.prompt()


def test_ctrl_c_while_a_command_is_edited(sit: Sit, place: Workplace):
    desk = sit("--model", place.script(ASKS, "The next one."))
    desk.prompt()
    desk.type("make it\r")
    desk.see("[y/N]:")
    desk.type("e\r")
    desk.see("Command: touch made")
    desk.type("\x03")
    desk.see("Interrupted")
    desk.prompt()
    assert not list(place.work.iterdir())
    desk.type("and now?\r")
    desk.see("The next one.")


def test_what_was_typed_ahead_answers_no_question(sit: Sit, place: Workplace):
    replies: list[ServerReply] = [
        sent(calls(("Bash", {"command": "touch made"}), text="Wait. " * 10), every=60, pause=0.15),
        says("Not made."),
    ]
    with ServerBeside(replies) as server:
        desk = sit(*MODEL, env=server.env)
        desk.prompt()
        desk.type("make it\r")
        desk.see("Wait.")
        desk.type("y\ry\ry\r")
        desk.see("[y/N]:")
        time.sleep(0.3)
        assert not (place.work / "made").exists()
        desk.type("\r")
        desk.see("Not made.")
    assert not (place.work / "made").exists()


def test_an_approval_shows_what_would_hide(sit: Sit, place: Workplace):
    command = "echo ok\r\x1b[2K; rm -rf x\u202e"
    hidden = {"calls": [{"name": "Bash", "input": {"command": command}}]}
    desk = sit("--model", place.script(hidden, "Not run."))
    desk.prompt()
    desk.type("do\r")
    desk.see("[y/N]:")
    assert r"echo ok\r\x1b[2K; rm -rf x<U+202E>" in desk.text
    desk.type("n\r")
    desk.see("Not run.")


def test_a_paste_at_a_question_allows_nothing(sit: Sit, place: Workplace):
    desk = sit("--model", place.script(ASKS, "Not made."))
    desk.prompt()
    desk.type("make it\r")
    desk.see("[y/N]:")
    assert desk.raw.endswith(b"[y/N]: ")
    assert desk.raw.count(b"\x1b[?2004h") > desk.raw.count(b"\x1b[?2004l")
    desk.type("some text I pasted\ry\r")
    desk.see("press Enter")
    desk.type("\x1b[200~y\r\x1b[201~")
    desk.until(lambda: desk.text.count("[y/N]:") == 3, "the question again")
    assert not (place.work / "made").exists()
    desk.type("no, too dangerous\r")
    desk.see("Not made.")
    assert not (place.work / "made").exists()


def test_a_narrow_window_breaks_no_words_and_keeps_no_trace(sit: Sit, place: Workplace):
    with ServerBeside([sent(says("Here it is."), every=30, pause=0.4)]) as server:
        desk = sit(*MODEL, env=server.env)
        desk.resize(40)
        desk.prompt()
        desk.type("/help\r")
        desk.see("end (or Ctrl-D)")
        for words in ("was allowed for this\n", "or a `\\` at the\n"):
            assert words in desk.text
        desk.prompt()
        desk.type("hello\r")
        desk.see("Thinking...")
        desk.resize(30)
        desk.see("Done")
        desk.prompt()
        assert "Thinking" not in desk.text


def test_shift_tab_and_mode_change_what_is_allowed(sit: Sit, place: Workplace):
    desk = sit("--model", place.script(ASKS, "Could not."))
    desk.prompt()
    desk.type("\x1b[Z")
    desk.see("acceptEdits ❯")
    desk.type("\x1b[Z")
    desk.see("plan ❯")
    desk.type("make it\r")
    desk.see("Permission denied")
    desk.see("Could not.")
    assert not (place.work / "made").exists()
    desk.type("/mode prompt\r")
    desk.see("default ❯")
    desk.type("/mode nonsense\r")
    desk.see("There is no mode nonsense")


def test_commands(sit: Sit, place: Workplace):
    todos = {"content": "write a test", "status": "in_progress"}
    replies = ({"calls": [{"name": "TodoWrite", "input": {"todos": [todos]}}]}, "Listed.")
    desk = sit("--model", place.script(*replies))
    desk.prompt()
    desk.type("/HELP\r")
    desk.see("/permissions")
    desk.type("/sesion\r")
    desk.see("Did you mean /session")
    desk.type("/todos\r")
    desk.see("Nothing is on the list.")
    desk.type("plan it\r")
    desk.see("Listed.")
    desk.prompt()
    desk.type("/todos\r")
    desk.see("[>] write a test")
    desk.type("/session\r")
    desk.see("claw --resume")
    desk.type("/exit\r")
    assert desk.ended() == 0


def test_a_line_that_is_typed_ahead_is_the_next_prompt(sit: Sit):
    slow = sent(says("A slow answer. " * 10), every=60, pause=0.1)
    with ServerBeside([slow, says("The next one.")]) as server:
        desk = sit(*MODEL, env=server.env)
        desk.prompt()
        desk.type("hello\r")
        desk.see("A slow answer.")
        desk.type("and now?\r")
        desk.see("The next one.")
    assert "and now?" in str(server.server.requests[1].body["messages"][-1])


def test_several_lines_pasted_or_typed_are_one_prompt(sit: Sit):
    with ServerBeside([says("One."), says("Two.")]) as server:
        desk = sit(*MODEL, env=server.env)
        desk.prompt()
        desk.type("\x1b[200~first line\rsecond line\x1b[201~")
        desk.see("second line")
        desk.type("\r")
        desk.see("One.")
        desk.prompt()
        desk.type("third\\\rfourth\r")
        desk.see("Two.")
    said = [str(received.body["messages"][-1]) for received in server.server.requests]
    assert "first line\\nsecond line" in said[0]
    assert "third\\nfourth" in said[1]


def test_history_outlives_the_program_and_belongs_to_the_user(sit: Sit, place: Workplace):
    desk = sit("--model", place.script("One."))
    desk.prompt()
    desk.type("a question to remember\r")
    desk.see("One.")
    desk.prompt()
    desk.type("\x04")
    desk.ended()
    again = sit("--model", place.script("Two."))
    again.prompt()
    again.type("\x1b[A")
    again.see("a question to remember")
    file = place.home / ".claw" / "history" / "prompts"
    assert file.stat().st_mode & 0o077 == 0
    assert file.parent.stat().st_mode & 0o077 == 0


def test_the_terminal_is_as_it_was(place: Workplace):
    model = place.script("An answer.")
    program = f'stty -g; "$@" --model {model}; stty -g; echo finished'
    desk = Desk(["/bin/sh", "-c", program, "sh", *CLAW], place, {})
    try:
        desk.prompt()
        desk.type("hello\r")
        desk.see("An answer.")
        desk.prompt()
        desk.type("\x04")
        desk.see("finished")
        before, *_, after = [line for line in desk.text.split("\n") if line.count(":") > 20]
        assert before == after
    finally:
        desk.leave()


def test_without_pictures_and_colours(sit: Sit, place: Workplace):
    plain = {"LANG": "C", "NO_COLOR": "1"}
    desk = sit("-p", "hi", "--model", place.script("An answer."), env=plain)
    desk.see("Done (")
    assert desk.ended() == 0
    assert "✨" not in desk.text
    assert b"\x1b[3" not in desk.raw


def test_a_dumb_terminal_gets_no_sequences_at_all(sit: Sit, place: Workplace):
    desk = sit("-p", "hi", "--model", place.script(ASKS, "No."), env={"TERM": "dumb"})
    desk.see("[y/N]:")
    desk.type("n\r")
    desk.see("Done (")
    assert desk.ended() == 0
    assert b"\x1b" not in desk.raw


def test_one_shot_with_the_prompt_piped_in_asks_on_the_terminal(place: Workplace):
    model = place.script(ASKS, "It is made.")
    program = f'echo make it | "$@" -p --model {model} > out'
    desk = Desk(["/bin/sh", "-c", program, "sh", *CLAW], place, {})
    try:
        desk.see("[y/N]:")
        desk.type("y\r")
        assert desk.ended() == 0
    finally:
        desk.leave()
    assert (place.work / "out").read_text() == "It is made.\n"
    assert (place.work / "made").exists()


@pytest.mark.parametrize(("typed", "made"), [("y\n", True), ("n\n", False)])
def test_the_json_form_asks_on_a_terminal_and_ends_with_its_object(
    sit: Sit, place: Workplace, typed: str, made: bool
):
    home = place.home / ".claw"
    home.mkdir()
    (home / "settings.json").write_text('{"permissions": {"ask": ["Bash"]}}')
    desk = sit(
        *("-p", "make it", "--output-format", "json", "--permission-mode", "workspace-write"),
        *("--tools", "bash", "--model", place.script(ASKS, "An end.")),
    )
    desk.see("Permission approval required")
    desk.see("Approve this tool call? [y/N]:")
    desk.type(typed)
    assert desk.ended() == 0
    result = json.loads(desk.raw.decode().rstrip().rsplit("\n", 1)[-1])
    assert result["result"] == "An end."
    assert result["iterations"] == 2
    assert result["tool_results"][0]["is_error"] is not made
    assert ("denied by user approval prompt" in result["tool_results"][0]["output"]) is not made
    assert (place.work / "made").exists() is made


def test_the_home_directory_asks_first(sit: Sit, place: Workplace):
    desk = sit("--cwd", str(place.home), "--model", place.script("Never."))
    desk.see("Go on? [y/N]:")
    desk.type("\r")
    assert desk.ended() == 1
    pasted = sit("--cwd", str(place.home), "--model", place.script("Never."))
    pasted.see("Go on? [y/N]:")
    pasted.type("y\rand more\r")
    assert pasted.ended() == 1
    again = sit("--cwd", str(place.home), "--model", place.script("Never."))
    again.see("Go on? [y/N]:")
    again.type("y\r")
    again.prompt()


def test_a_conversation_can_be_compacted(sit: Sit, place: Workplace):
    desk = sit("--model", place.script("word " * 2_000, "The second answer."))
    desk.prompt()
    desk.type("/compact\r")
    desk.see("Nothing was compacted.")
    desk.prompt()
    desk.type("one\r")
    desk.see("Done")
    desk.prompt()
    desk.type("two\r")
    desk.see("The second answer.")
    desk.prompt()
    desk.type("/compact the words\r")
    desk.see("Compacted 2 messages:")
    desk.prompt()
    desk.type("\x04")
    assert desk.ended() == 0


def test_a_wait_counts_down(sit: Sit):
    busy = answers(429, {"error": {"message": "slow down"}}, {"retry-after": "2"})
    with ServerBeside([busy, says("At last.")]) as server:
        desk = sit(*MODEL, env=server.env)
        desk.prompt()
        desk.type("one\r")
        desk.see("Trying again in 2 s")
        desk.see("Trying again in 1 s")
        desk.see("At last.")
