"""The one-shot forms, as a program that calls claw gets to see them."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from claw.models.scripted import says
from claw.testing.strict_server import StrictServer, sent
from tests.cli.running import Workplace

LOOK = {"text": "Let me look.", "calls": [{"name": "read_file", "input": {"path": "a.txt"}}]}
SHELL = {"calls": [{"name": "bash", "input": {"command": "touch made"}}]}


@pytest.fixture
def place(place: Workplace) -> Workplace:
    (place.work / "a.txt").write_text("the content\n")
    return place


def through(server: StrictServer) -> dict[str, str]:
    return {"ANTHROPIC_BASE_URL": server.base_url, "ANTHROPIC_API_KEY": "key-for-a-test"}


async def test_text_is_every_reply(place: Workplace):
    ended = await place.run("-p", "look", "--model", place.script(LOOK, "It says: ü."))
    assert (ended.code, ended.out) == (0, "Let me look.\n\nIt says: ü.\n")
    assert ended.err == ""


async def test_several_words_are_a_prompt(place: Workplace):
    ended = await place.run("look at a.txt", "--model", place.script("Done."))
    assert (ended.code, ended.out) == (0, "Done.\n")


async def test_compact_is_the_last_answer(place: Workplace):
    ended = await place.run("-p", "look", "--compact", "--model", place.script(LOOK, "An end."))
    assert (ended.code, ended.out) == (0, "An end.\n")


async def test_json_is_one_object(place: Workplace):
    model = place.script(LOOK, "An end.")
    ended = await place.run("-p", "look", "--output-format", "json", "--model", model)
    assert ended.code == 0
    result = ended.json
    assert result["subtype"] == "success"
    assert result["result"] == "An end."
    assert result["iterations"] == 2
    assert result["tool_uses"][0]["name"] == "read_file"
    assert result["tool_uses"][0]["input"] == {"path": "a.txt"}
    assert "the content" in result["tool_results"][0]["output"]
    assert result["session_id"]


async def test_compact_json(place: Workplace):
    ended = await place.run(
        *("-p", "x", "--compact", "--output-format", "json", "--model", place.script("An end."))
    )
    assert ended.json["result"] == "An end."
    assert ended.json["compact"] is True


async def test_stream_json_is_a_line_for_each_message(place: Workplace):
    model = place.script(LOOK, "An end.")
    ended = await place.run("-p", "look", "--output-format", "stream-json", "--model", model)
    assert ended.code == 0
    assert [line["type"] for line in ended.lines] == [
        *("system", "assistant", "user", "assistant", "result")
    ]
    init = ended.lines[0]
    assert init["subtype"] == "init"
    assert {"session_id", "cwd", "model", "tools", "permission_mode", "claw_version"} <= set(init)
    assert "Read" in init["tools"]
    assert len({line["session_id"] for line in ended.lines}) == 1


async def test_stream_json_with_partial_messages(place: Workplace):
    ended = await place.run(
        *("-p", "x", "--output-format", "stream-json", "--include-partial-messages"),
        *("--model", place.script("An answer of some length, in pieces.")),
    )
    deltas = [line["event"]["delta"] for line in ended.lines if line["type"] == "stream_event"]
    text = "".join(delta["text"] for delta in deltas)
    assert text == "An answer of some length, in pieces."
    assert len(deltas) > 1


async def test_verbose_tells_of_calls_on_stderr(place: Workplace):
    ended = await place.run("-p", "look", "--verbose", "--model", place.script(LOOK, "End."))
    assert "read_file a.txt" in ended.err
    assert "read_file" not in ended.out


async def test_a_denied_call_is_a_warning_and_not_made(place: Workplace):
    ended = await place.run("-p", "x", "--model", place.script(SHELL, "Then not."))
    assert (ended.code, ended.out) == (0, "Then not.\n")
    assert ended.err.startswith("warning: bash touch made: ")
    assert not (place.work / "made").exists()


async def test_on_denied_fail_ends_with_4(place: Workplace):
    ended = await place.run(
        "-p", "x", "--on-denied", "fail", "--model", place.script(SHELL, "Never asked for.")
    )
    assert (ended.code, ended.out) == (4, "")
    assert "error:" in ended.err


async def test_an_allow_rule_lets_a_call_run(place: Workplace):
    model = place.script(SHELL, "Made.")
    ended = await place.run("-p", "x", "--allowedTools", "Bash(touch:*)", "--model", model)
    assert (ended.code, ended.out) == (0, "Made.\n")
    assert (place.work / "made").exists()


@pytest.mark.parametrize(
    ("replies", "args", "code", "subtype"),
    [
        ([LOOK, "Never."], ["--max-turns", "1"], 3, "error_max_turns"),
        ([LOOK, "Never."], ["--max-budget-tokens", "1"], 3, "error_max_budget"),
        ([{"text": "Half", "stop_reason": "max_tokens"}], [], 3, "error_output_limit"),
        ([{"text": "No.", "stop_reason": "refusal"}], [], 1, "error_refused"),
        ([{"error": "authentication", "message": "bad key"}], [], 1, "error_during_execution"),
    ],
)
async def test_exit_codes(
    place: Workplace, replies: list[object], args: list[str], code: int, subtype: str
):
    model = place.script(*replies)
    ended = await place.run("-p", "x", "--output-format", "json", "--model", model, *args)
    assert (ended.code, ended.json["subtype"]) == (code, subtype)
    assert ended.json["is_error"] is True
    assert ended.json["errors"][0]["message"]
    assert ended.err.startswith("error: ")


async def test_a_pipe_gets_no_text_that_was_sampled_again(place: Workplace):
    model = place.script({"text": "Half an ans", "cut": True}, "A whole answer.")
    ended = await place.run("-p", "x", "--model", model)
    assert (ended.code, ended.out) == (0, "A whole answer.\n")
    assert "warning:" in ended.err


async def test_stdin_is_the_prompt_or_is_added_to_it(place: Workplace):
    async with StrictServer([says("one"), says("two"), says("three")]) as server:
        model, env = ("--model", "claude-sonnet-5-5"), through(server)
        assert (await place.run("-p", *model, stdin="all of it\n", env=env)).code == 0
        assert (await place.run("-p", "sum up:", *model, stdin="a\nb\n", env=env)).code == 0
        assert (await place.run("only words", *model, env=env)).code == 0
    said = [str(received.body["messages"][0]["content"]) for received in server.requests]
    assert "all of it" in said[0]
    assert "sum up:\\n\\na\\nb" in said[1]
    assert "only words" in said[2]


async def test_continue_goes_on_with_the_session(place: Workplace):
    async with StrictServer([says("I am one."), says("I am two.")]) as server:
        model, env = ("--model", "claude-sonnet-5-5"), through(server)
        first = await place.run("-p", "first", "--output-format", "json", *model, env=env)
        second = await place.run(
            *("--continue", "-p", "second", "--output-format", "json"), *model, env=env
        )
    assert first.json["session_id"] == second.json["session_id"]
    said = str(server.requests[1].body["messages"])
    assert "first" in said
    assert "I am one." in said
    assert second.json["session_usage"]["output_tokens"] > second.json["usage"]["output_tokens"]


async def test_nothing_to_continue_is_an_error_before_the_turn(place: Workplace):
    ended = await place.run("--continue", "-p", "x", "--model", place.script("hi"))
    assert ended.code == 1
    assert ended.err.startswith("error: ")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
async def test_a_signal_interrupts_the_turn(place: Workplace, number: signal.Signals, code: int):
    slow = sent(says("A long answer. " * 50), every=20, pause=0.2)
    async with StrictServer([slow]) as server:
        process = await place.start(
            *("-p", "x", "--output-format", "stream-json", "--include-partial-messages"),
            *("--model", "claude-sonnet-5-5"),
            env=through(server),
        )
        assert process.stdout is not None
        while b"stream_event" not in (line := await process.stdout.readline()):
            assert line
        process.send_signal(number)
        out, err = await asyncio.wait_for(process.communicate(), 5)
    assert process.returncode == code
    assert b'"subtype":"error_interrupted"' in out.splitlines()[-1]
    assert b"Traceback" not in err


async def test_a_reader_that_goes_away_ends_it_quietly(place: Workplace):
    many = [{"text": "x" * 3000, "calls": LOOK["calls"]}] * 40
    process = await place.start("-p", "x", "--model", place.script(*many, "end"))
    assert process.stdout is not None
    assert process.stderr is not None
    await process.stdout.read(1)
    process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
    err = await asyncio.wait_for(process.stderr.read(), 10)
    assert await process.wait() in (0, 141)
    assert err == b""


async def test_a_locale_without_utf8_loses_nothing(place: Workplace):
    model = place.script("Grüße, 世界 🦀")
    ended = await place.run("-p", "帮我", "--model", model, env={"LANG": "C", "LC_ALL": "C"})
    assert (ended.code, ended.out) == (0, "Grüße, 世界 🦀\n")


async def test_the_offline_model_answers_when_none_is_configured(place: Workplace):
    ended = await place.run("-p", "show the first lines of a.txt", "--output-format", "json")
    assert ended.code == 0
    assert "the content" in ended.json["result"]
    assert ended.json["tool_uses"]


async def test_the_offline_model_says_what_it_is_once(place: Workplace):
    ended = await place.run("-p", "show the first lines of a.txt")
    assert ended.code == 0
    assert ended.err.count("offline model") == 1


async def test_a_debug_log_tells_of_decisions_and_nothing_that_was_said(place: Workplace):
    model = place.script(SHELL, "A secret answer.")
    ended = await place.run("-p", "a secret question", "--debug", "--model", model)
    assert ended.code == 0
    (log,) = (place.home / ".claw" / "logs").iterdir()
    assert str(log) in ended.err
    assert log.stat().st_mode & 0o077 == 0
    text = log.read_text()
    assert '"event":"decision"' in text
    assert '"event":"turn_completed"' in text
    assert "secret" not in text


async def test_a_full_disk_behind_stdout_is_an_error(place: Workplace):
    full = os.open("/dev/full", os.O_WRONLY)
    ended = await place.start("-p", "x", "--model", place.script("An answer."), stdout=full)
    os.close(full)
    _, err = await ended.communicate()
    assert ended.returncode == 1
    assert b"cannot write to stdout" in err
