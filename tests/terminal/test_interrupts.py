"""Ctrl-C at every place: back at the prompt, nothing left running, the next prompt works.

The target is 300 ms; the bound here leaves room for a busy machine.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from claw.models.scripted import calls, says
from claw.testing.strict_server import ServerReply, sent
from tests.cli.running import Workplace
from tests.terminal.conftest import Sit
from tests.terminal.desk import Desk, ServerBeside, alive

BOUND = 1.0  # seconds
MODEL = ("--model", "claude-sonnet-5-5")
STUBBORN = "trap '' TERM INT HUP; echo $$ > pid; echo it runs; while :; do sleep 1; done"


def slow(text: str) -> ServerReply:
    return sent(says(text), every=40, pause=0.15)


def back_at_the_prompt(desk: Desk, began: float, record: Callable[[str, object], None]) -> None:
    took = desk.prompt(5) - began
    record("back_after_ms", round(took * 1000))
    print(f"back after {took * 1000:.0f} ms")
    assert took < BOUND


def wait_for(condition: Callable[[], bool], timeout: float = 5) -> bool:
    end = time.monotonic() + timeout
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def pid_of(place: Workplace) -> int:
    file = place.work / "pid"
    assert wait_for(lambda: file.exists() and bool(file.read_text().strip()))
    return int(file.read_text())


def test_while_it_streams(sit: Sit, record_property):
    with ServerBeside([slow("A slow answer. " * 60), says("The next one.")]) as server:
        desk = sit(*MODEL, env=server.env)
        desk.prompt()
        desk.type("hello\r")
        desk.see("A slow answer.")
        back_at_the_prompt(desk, desk.type("\x03"), record_property)
        assert "Interrupted" in desk.text
        desk.type("and now?\r")
        desk.see("The next one.")
        desk.prompt()


def test_while_it_waits_for_the_first_word(sit: Sit, record_property):
    with ServerBeside([sent(says("x"), every=1, pause=5.0), says("The next one.")]) as server:
        desk = sit(*MODEL, env=server.env)
        desk.prompt()
        desk.type("hello\r")
        desk.see("Thinking...")
        assert wait_for(lambda: bool(server.server.requests))
        back_at_the_prompt(desk, desk.type("\x03"), record_property)
        desk.type("and now?\r")
        desk.see("The next one.")


def test_while_a_tool_runs_that_ignores_it(sit: Sit, place: Workplace, record_property):
    replies = [calls(("Bash", {"command": STUBBORN})), says("The next one.")]
    with ServerBeside(replies) as server:
        desk = sit(*MODEL, "--allowedTools", "Bash", env=server.env)
        desk.prompt()
        desk.type("run\r")
        pid = pid_of(place)
        desk.see("it runs")
        back_at_the_prompt(desk, desk.type("\x03"), record_property)
        assert wait_for(lambda: not alive(pid), 1)
        desk.type("and now?\r")
        desk.see("The next one.")


def test_at_a_permission_prompt(sit: Sit, place: Workplace, record_property):
    replies = [calls(("Bash", {"command": "touch made"})), says("The next one.")]
    with ServerBeside(replies) as server:
        desk = sit(*MODEL, env=server.env)
        desk.prompt()
        desk.type("run\r")
        desk.see("[y/N]:")
        back_at_the_prompt(desk, desk.type("\x03"), record_property)
        assert not (place.work / "made").exists()
        desk.type("and now?\r")
        desk.see("The next one.")


def test_at_the_prompt_it_clears_the_line_and_then_tells_how_to_leave(sit: Sit, place: Workplace):
    desk = sit("--model", place.script("Never."))
    desk.prompt()
    desk.type("some words")
    desk.see("some words")
    desk.type("\x03")
    desk.prompt()
    assert "Press Ctrl-D" not in desk.text
    desk.type("\x03")
    desk.see("Press Ctrl-D to leave.")
    desk.prompt()
    desk.type("\x04")
    assert desk.ended() == 0


def test_a_signal_from_outside_is_the_same(sit: Sit):
    with ServerBeside([slow("A slow answer. " * 60)]) as server:
        desk = sit(*MODEL, env=server.env)
        desk.prompt()
        os.kill(desk.child.pid, signal.SIGINT)
        desk.see("Press Ctrl-D to leave.")
        desk.prompt()
        desk.type("hello\r")
        desk.see("A slow answer.")
        os.kill(desk.child.pid, signal.SIGINT)
        desk.prompt()
        assert "Interrupted" in desk.text


def test_many_of_them_at_any_time_do_no_harm(sit: Sit):
    with ServerBeside([slow("A slow answer. " * 60), says("The next one.")]) as server:
        desk = sit(*MODEL, env=server.env)
        desk.prompt()
        desk.type("hello\r")
        desk.see("A slow answer.")
        for _ in range(20):
            desk.type("\x03")
            time.sleep(0.02)
        desk.prompt()
        desk.type("and now?\r")
        desk.see("The next one.")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("busy", [False, True])
def test_a_signal_to_end_ends_it(sit: Sit, number: signal.Signals, code: int, busy: bool):
    with ServerBeside([slow("A slow answer. " * 60)] if busy else []) as server:
        desk = sit(*MODEL, env=server.env)
        desk.prompt()
        if busy:
            desk.type("hello\r")
            desk.see("A slow answer.")
        os.kill(desk.child.pid, number)
        assert desk.ended() == code


def test_one_shot_ends_with_130(sit: Sit):
    with ServerBeside([slow("A slow answer. " * 60)]) as server:
        desk = sit("-p", "hello", *MODEL, env=server.env)
        desk.see("A slow answer.")
        desk.type("\x03")
        assert desk.ended() == 130
        assert "Interrupted" in desk.text


def test_kill_9_in_a_turn_leaves_no_orphan_and_a_session_to_go_on_with(sit: Sit, place: Workplace):
    first, second = calls(("Bash", {"command": STUBBORN})), says("We go on.")
    with ServerBeside([first, second]) as server:
        desk = sit(*MODEL, "--allowedTools", "Bash", env=server.env)
        desk.prompt()
        desk.type("run\r")
        pid = pid_of(place)
        os.kill(desk.child.pid, signal.SIGKILL)
        assert desk.ended() == -signal.SIGKILL
        assert wait_for(lambda: not alive(pid), 2)
        again = sit("--continue", *MODEL, env=server.env)
        again.see("Going on with session")
        again.see("did not end")
        again.see("unknown are marked")
        again.prompt()
        again.type("and now?\r")
        again.see("We go on.")
        again.prompt()
    told = str(server.server.requests[1].body["messages"])
    assert "outcome of this call is unknown" in told


def sessions(place: Workplace) -> list[Path]:
    return list((place.home / ".claw" / "sessions").glob("*/*.jsonl"))


def test_a_session_that_was_never_used_leaves_nothing(sit: Sit, place: Workplace):
    desk = sit("--model", place.script("Never."))
    desk.prompt()
    desk.type("/mode plan\r")
    desk.see("The mode is plan")
    desk.type("\x04")
    assert desk.ended() == 0
    assert sessions(place) == []
