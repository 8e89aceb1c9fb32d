"""The turn loop and bootstrap, as a program calls them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import claw
from claw.engine.history import HistoryLog
from claw.models.scripted import ScriptedModel, says
from claw.types.messages import text_of
from claw.types.reply import Reply
from claw.types.request import Request
from claw.types.usage import Usage


@pytest.fixture
def place(tmp_path: Path) -> dict[str, Any]:
    work = tmp_path / "work"
    work.mkdir()
    (work / "lock.py").write_text("class SessionLock:\n    pass\n")
    return {"cwd": str(work), "env": {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}}


def answers(*texts: str) -> ScriptedModel:
    return ScriptedModel([says(text) for text in texts])


def test_three_turns_of_the_offline_model(place: dict[str, Any]):
    results = claw.run_turn_loop("where is SessionLock defined?", **place)
    assert [result.stop_reason for result in results] == ["completed"] * 3
    assert [result.prompt[-8:] for result in results[1:]] == ["[turn 2]", "[turn 3]"]
    assert all("lock.py:1" in result.output for result in results)
    assert results == claw.run_turn_loop("where is SessionLock defined?", **place)
    assert not Path(place["env"]["HOME"]).exists()


def test_the_loop_and_the_session_have_limits_of_their_own(place: dict[str, Any]):
    results = claw.run_turn_loop("show lock.py", max_turns=3, engine_max_turns=2, **place)
    assert [r.stop_reason for r in results] == ["completed", "completed", "max_turns_reached"]
    refused = claw.run_turn_loop("show lock.py", engine_max_turns=0, **place)
    assert [r.stop_reason for r in refused] == ["max_turns_reached"]


def test_the_first_turn_that_does_not_complete_is_the_last(place: dict[str, Any]):
    results = claw.run_turn_loop("compose a symphony of nonsense", **place)
    assert [r.stop_reason for r in results] == ["error"]
    assert "rules" in results[0].output
    spent = claw.run_turn_loop("show lock.py", max_budget_tokens=1, **place)
    assert [r.stop_reason for r in spent] == ["max_budget_reached"]


def test_later_prompts_may_be_given(place: dict[str, Any]):
    results = claw.run_turn_loop("one", prompts=["two"], model=answers("a", "b", "c"), **place)
    assert [r.prompt for r in results] == ["one", "two", "one [turn 3]"]


def test_a_command_is_repeated_as_it_is(place: dict[str, Any]):
    results = claw.run_turn_loop("/mode plan", max_turns=2, **place)
    assert [r.output for r in results] == ["The mode is plan.", "The mode is plan."]


def test_routing_each_turn_hears_what_the_last_one_said(place: dict[str, Any]):
    texts = ("It took a regular expression.", "Now a todo list.", "Fine.")
    once = claw.run_turn_loop("go", model=answers(*texts), **place)
    assert [r.matched_tools for r in once] == [(), (), ()]
    each = claw.run_turn_loop("go", route="each", model=answers(*texts), **place)
    assert each[0].matched_tools == ()
    assert each[1].matched_tools[0] == "Grep"
    assert each[2].matched_tools[0] == "TodoWrite"


def test_denials_are_inferred_in_every_turn(place: dict[str, Any]):
    results = claw.run_turn_loop(
        "write a file", model=answers("a", "b"), max_turns=2, permission_mode="plan", **place
    )
    for result in results:
        assert "Write" in [denial.tool_name for denial in result.permission_denials]
        assert {denial.status for denial in result.permission_denials} == {"would-deny"}


def test_a_kept_loop_goes_on_in_another_engine(place: dict[str, Any]):
    first = claw.run_turn_loop("show lock.py", max_turns=2, persist=True, **place)
    id = first[0].session_id
    again = claw.run_turn_loop("show lock.py", max_turns=2, session=id, **place)
    assert [r.stop_reason for r in again] == ["completed", "completed"]
    assert again[0].usage == first[-1].usage + again[0].turn_usage
    stored = claw.load_session(id, **place)
    assert len(stored.messages) == len(stored.outputs) == 4


@pytest.mark.parametrize("prompt", ["show lock.py", "show {}/lock.py", "show {}/missing.py"])
def test_usage_does_not_tell_of_the_directory(tmp_path: Path, prompt: str):
    found = []
    for name in ("a", "a-much-longer-name/and/deeper"):
        work = tmp_path / name / "work"
        work.mkdir(parents=True)
        (work / "lock.py").write_text("class SessionLock:\n    pass\n")
        env = {"HOME": str(tmp_path / name / "home"), "PATH": "/usr/bin:/bin"}
        results = claw.run_turn_loop(prompt.format(work), cwd=str(work), env=env)
        found.append([(result.usage, result.stop_reason) for result in results])
    assert found[0] == found[1]


def test_nothing_else_is_asked_whatever_the_settings_name(place: dict[str, Any]):
    settings = {"compaction": {"model": "script:/no/such/file"}, "fallbackModel": "nonsense"}
    results = claw.run_turn_loop("show lock.py", settings=json.dumps(settings), **place)
    assert [r.stop_reason for r in results] == ["completed"] * 3


def test_bootstrap_runs_one_turn_and_tells_all(place: dict[str, Any]):
    asked: list[str] = []

    def once(request: Request) -> Reply:
        asked.append(text_of(request.messages[-1].content))
        return says("An answer with ``` in it.", usage=Usage(input_tokens=5, output_tokens=2))

    session = claw.bootstrap_session("find the lock", model=ScriptedModel([once]), **place)
    assert asked == ["find the lock"]
    assert session.turn_result.stop_reason == "completed"
    assert session.persisted_session_path is not None
    assert Path(session.persisted_session_path).is_file()
    kinds = [event["type"] for event in session.stream_events]
    assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
    titles = [event.title for event in session.history.events]
    assert titles == ["context", "registry", "routing", "execution", "turn", "session_store"]
    report = session.as_markdown()
    sections = ["Context", "Setup", "Startup Steps", "System Init", "Routed Matches"]
    sections += ["Command Execution", "Tool Execution", "Stream Events", "Turn Result"]
    places = [report.index(f"\n## {section}\n") for section in sections]
    assert places == sorted(places)
    assert report.startswith("# Runtime Session\n\nPrompt: find the lock\n")
    assert report.index("\n# Session History\n") > places[-1]
    assert "````\nAn answer with ``` in it.\n````" in report
    stored = claw.load_session(session.turn_result.session_id, **place)
    assert stored.messages == ("find the lock",)


def test_bootstrap_tells_of_calls_and_of_commands(place: dict[str, Any]):
    session = claw.bootstrap_session("show lock.py", **place)
    assert [message.split()[0] for message in session.tool_execution_messages] == ["Read"]
    command = claw.bootstrap_session("/help", **place)
    assert command.command_execution_messages == ("/help: completed",)
    assert command.persisted_session_path is None
    assert "nothing to keep" in command.as_markdown()


def test_a_history_is_one_line_a_note():
    log = HistoryLog()
    log.add("turn", "two\nlines")
    log.add("end", "x")
    assert log.as_markdown() == "# Session History\n\n- turn: two lines\n- end: x"
    assert HistoryLog().events == []
