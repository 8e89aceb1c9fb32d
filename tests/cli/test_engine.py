"""The deterministic engine's commands, as they are installed."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Ended, Workplace

PROMPT = "find the session lock"
SCHEMA = '{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}'


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path)
    furnish(place)
    return place


def furnish(place: Workplace) -> None:
    (place.work / "lock.py").write_text("# the session lock\nclass SessionLock:\n    pass\n")
    (place.work / "docs").mkdir()
    (place.work / "docs/notes.md").write_text("The session lock is held while a turn runs.\n")


async def good(place: Workplace, *args: str, **options: Any) -> Ended:
    ended = await place.run(*args, **options)
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err
    return ended


def reasons(ended: Ended) -> list[str]:
    return re.findall(r"^stop_reason=(\w+)$", ended.out, re.MULTILINE)


# -- turn-loop -------------------------------------------------------------------------


async def test_turn_loop_cli_runs(place: Workplace):
    ended = await good(place, "turn-loop", PROMPT, "--max-turns", "3")
    assert re.findall(r"^## Turn (\d)$", ended.out, re.MULTILINE) == ["1", "2", "3"]
    assert reasons(ended) == ["completed"] * 3
    assert ended.out.count("lock.py:1") == 3
    assert not (place.home / ".claw").exists()


async def test_the_engine_may_accept_fewer_turns_than_the_loop_has(place: Workplace):
    args = ("--max-turns", "3", "--engine-max-turns", "2", "--persist")
    ended = await good(place, "turn-loop", PROMPT, *args)
    assert reasons(ended) == ["completed", "completed", "max_turns_reached"]
    loaded = await good(place, "load-session", "latest", "--output-format", "json")
    assert loaded.json["messages"] == [PROMPT, f"{PROMPT} [turn 2]"]
    assert loaded.json["stop_reasons"] == ["completed", "completed"]


async def test_a_small_budget_ends_the_loop(place: Workplace):
    ended = await good(place, "turn-loop", PROMPT, "--max-budget-tokens", "4000")
    assert reasons(ended) == ["completed", "max_budget_reached"]


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("--engine-max-turns", "1"),
        ("--max-budget-tokens", "1"),
        ("--script", "prompts.txt"),
    ],
)
async def test_structured_output_is_one_document_in_every_branch(
    place: Workplace, args: tuple[str, ...]
):
    (place.work / "prompts.txt").write_text("/help\nno rule fits this\n")
    ended = await good(place, "turn-loop", PROMPT, "--structured-output", *args)
    documents = re.findall(r"^## Turn \d\n\n(.*?)\n\nstop_reason=", ended.out, re.M | re.DOTALL)
    assert len(documents) == len(reasons(ended))
    for document in documents:
        assert set(json.loads(document)) == {"summary", "session_id"}
    same = await good(
        place, "turn-loop", PROMPT, "--structured-output", *args, "--output-format", "json"
    )
    assert [turn["output"] for turn in same.json["turns"]] == documents


async def test_load_session_cli_runs(place: Workplace):
    ended = await good(place, "turn-loop", PROMPT, "--max-turns", "2", "--persist")
    (id,) = re.findall(r"claw load-session (\S+)", ended.err)
    loaded = await good(place, "load-session", id)
    assert re.fullmatch(rf"{id}\n2 messages\nin=\d+ out=\d+\n", loaded.out)
    goes_on = await good(
        place, "turn-loop", PROMPT, "--resume", id, "--max-turns", "1", "--output-format", "json"
    )
    (turn,) = goes_on.json["turns"]
    assert (turn["session_id"], turn["stop_reason"]) == (id, "completed")
    assert turn["usage"]["input_tokens"] > turn["turn_usage"]["input_tokens"]
    assert "3 messages" in (await good(place, "load-session", id)).out
    talked = await good(place, "-p", "show lock.py", "--model", "offline", "--resume", id)
    assert "SessionLock" in talked.out
    assert "4 messages" in (await good(place, "load-session", id[:-2])).out


@pytest.mark.parametrize("command", [("turn-loop", "--persist"), ("flush-transcript",)])
async def test_what_cannot_be_kept_is_not_begun(place: Workplace, command: tuple[str, ...]):
    (place.home / "file").write_text("no directory")
    env = {"CLAW_CONFIG_HOME": str(place.home / "file/config")}
    ended = await place.run(*command, "find the lock", env=env)
    assert (ended.code, ended.out) == (1, "")
    assert "CLAW_CONFIG_HOME" in ended.err


async def test_a_compaction_is_seen_on_stderr(place: Workplace):
    ended = await good(place, "turn-loop", PROMPT, "--max-turns", "15")
    assert reasons(ended) == ["completed"] * 15
    assert ended.err.count("[auto-compacted: removed") == 1
    told = await good(place, "turn-loop", PROMPT, "--max-turns", "15", "--output-format", "json")
    (compaction,) = told.json["compactions"]
    assert 12 < compaction["turn"] <= 15
    assert compaction["removed_messages"] > 0


async def test_a_hook_and_a_mode_are_heeded(place: Workplace):
    (place.home / ".claw").mkdir()
    hook = {"hooks": [{"type": "command", "command": "echo no greps >&2; exit 2"}]}
    settings = {"hooks": {"PreToolUse": [{"matcher": "Grep", **hook}]}}
    (place.home / ".claw/settings.json").write_text(json.dumps(settings))
    ended = await good(place, "turn-loop", PROMPT, "--max-turns", "1", "--output-format", "json")
    (turn,) = ended.json["turns"]
    (denial,) = turn["permission_denials"]
    assert (denial["tool_name"], denial["status"]) == ("Grep", "denied")
    planned = await good(
        place,
        *("turn-loop", "create the file x.md with hello", "--permission-mode", "plan"),
        *("--max-turns", "1", "--output-format", "json"),
    )
    (turn,) = planned.json["turns"]
    assert {"denied", "would-deny"} == {one["status"] for one in turn["permission_denials"]}
    assert not (place.work / "x.md").exists()


# -- bootstrap, flush, route -----------------------------------------------------------


async def test_bootstrap_cli_runs(place: Workplace):
    ended = await good(place, "bootstrap", PROMPT)
    for section in (
        *("# Runtime Session", "## Context", "## Setup", "## Startup Steps", "## System Init"),
        *("## Routed Matches", "## Command Execution", "## Tool Execution", "## Stream Events"),
        *("## Turn Result", "# Session History"),
    ):
        assert re.search(rf"^{section}$", ended.out, re.MULTILINE), section
    for title in ("context", "registry", "routing", "execution", "turn", "session_store"):
        assert re.search(rf"^- {title}: ", ended.out, re.MULTILINE), title
    (path,) = re.findall(r"^Persisted session path: (.*)$", ended.out, re.MULTILINE)
    assert Path(path).is_file()
    assert ended.err == ""


async def test_bootstrap_session_tracks_turn_state(place: Workplace):
    ended = await good(place, "bootstrap", PROMPT, "--output-format", "json")
    session = ended.json
    result = session["turn_result"]
    assert (session["prompt"], result["stop_reason"]) == (PROMPT, "completed")
    assert result["usage"] == result["turn_usage"]
    assert result["usage"]["input_tokens"] > 0
    assert result["matched_tools"]
    assert [event["type"] for event in session["stream_events"]][-1] == "message_stop"
    assert [message.split()[0] for message in session["tool_execution_messages"]] == ["Grep"]
    stored = await good(place, "load-session", result["session_id"], "--output-format", "json")
    assert stored.json["messages"] == [PROMPT]
    assert stored.json["outputs"] == [result["output"]]
    journal = Path(session["persisted_session_path"]).read_text()
    assert journal.count('"kind":"turn_started"') == 1


async def test_a_transcript_is_flushed(place: Workplace):
    ended = await good(place, "flush-transcript", PROMPT)
    path, flushed = ended.out.splitlines()
    assert Path(path).is_file()
    assert flushed == "flushed=True"
    found = (await good(place, "flush-transcript", PROMPT, "--output-format", "json")).json
    assert (Path(found["path"]).stem, found["flushed"]) == (found["session_id"], True)


async def test_a_prompt_is_routed(place: Workplace):
    ended = await good(place, "route", "/compact the session", "--limit", "2")
    lines = [line.split("\t") for line in ended.out.splitlines()]
    assert lines[0] == ["command", "compact", "100", "builtin"]
    assert len(lines) == 2
    found = (await good(place, "route", "查找 lock.py", "--output-format", "json")).json
    assert "Grep" in [match["name"] for match in found["matches"]]
    assert found["registry"]["name"] == "builtin"
    live = await good(place, "--tools", "Bash", "route", "查找 lock.py", "--registry", "live")
    assert "Grep" not in live.out
    nothing = await good(place, "route", "a")
    assert (nothing.out, nothing.err) == ("", "Nothing matches.\n")


# -- what goes wrong -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "code", "kind"),
    [
        (("load-session", "nope"), 1, "session_not_found"),
        (("load-session", "../../../etc/passwd"), 1, "session"),
        (("load-session", "/etc/passwd"), 1, "session"),
        (("load-session", ""), 1, "session"),
        (("turn-loop", "x", "--resume", "nope"), 1, "session_not_found"),
        (("turn-loop", "x", "--script", "/no/file"), 1, "config"),
        (("turn-loop", "x", "--max-turns", "0"), 2, "usage"),
        (("turn-loop", "x", "--permission-mode", "nonsense"), 2, "usage"),
        (("turn-loop", "x", "--cwd", "/no/dir"), 1, "config"),
        (("turn-loop", "x", "--model", "script:/no/file"), 1, "config"),
        (("turn-loop", " "), 2, "usage"),
        (("bootstrap", ""), 2, "usage"),
        (("bootstrap",), 2, "usage"),
        (("route",), 2, "usage"),
        (("flush-transcript", " "), 2, "usage"),
        (("--no-session-persistence", "turn-loop", "x", "--resume", "y"), 2, "usage"),
    ],
)
async def test_errors_are_typed(place: Workplace, args: tuple[str, ...], code: int, kind: str):
    ended = await place.run(*args, "--output-format", "json")
    assert ended.code == code
    assert ended.json["errors"][0]["kind"] == kind
    assert "Traceback" not in ended.err
    assert "fault in claw" not in ended.err


async def test_a_damaged_session_is_a_typed_error(place: Workplace):
    await good(place, "flush-transcript", PROMPT)
    (path,) = (place.home / ".claw/sessions").glob("*/*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b'{"crc":"00000000","v":1}\n', *lines[3:]]))
    for args in (("load-session", path.stem), ("turn-loop", "x", "--resume", path.stem)):
        ended = await place.run(*args)
        assert ended.code == 1
        assert "line 3" in ended.err
        assert ended.out == ""


async def test_the_home_directory_is_refused(place: Workplace):
    ended = await place.run("turn-loop", PROMPT, cwd=place.home)
    assert ended.code == 1
    assert "--allow-broad-cwd" in ended.err


@pytest.mark.parametrize("command", ["turn-loop", "bootstrap"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_signal_ends_the_turn_on_record(
    place: Workplace, command: str, number: signal.Signals, code: int
):
    call = {"calls": [{"name": "Bash", "input": {"command": "touch begun; sleep 60"}}]}
    args = [command, "go", "--model", place.script(call)]
    args += ["--persist"] if command == "turn-loop" else []
    process = await place.start("--permission-mode", "bypassPermissions", *args)
    async with asyncio.timeout(20):
        while not (place.work / "begun").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    process.send_signal(number)
    out, err = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == code
    assert b"Traceback" not in out + err
    loaded = await good(place, "load-session", "latest", "--output-format", "json")
    assert loaded.json["stop_reasons"] == ["interrupted"]
    (path,) = (place.home / ".claw/sessions").glob("*/*.jsonl")
    assert '"kind":"turn_ended"' in path.read_text()


# -- answers with a schema --------------------------------------------------------------


async def test_an_answer_that_fits_the_schema(place: Workplace):
    model = place.script("not yet", '```json\n{"n": 3}\n```')
    ended = await good(place, "-p", "count", "--json-schema", SCHEMA, "--model", model)
    assert ended.out == '{"n": 3}\n'
    (place.work / "schema.json").write_text(SCHEMA)
    args = ("-p", "count", "--json-schema", "schema.json", "--output-format", "json")
    found = (await good(place, *args, "--model", model)).json
    assert (found["result"], found["subtype"], found["num_turns"]) == ('{"n": 3}', "success", 2)


async def test_an_answer_that_never_fits_is_an_error(place: Workplace):
    model = place.script("no", "{}", '{"n": "x"}')
    args = ("-p", "count", "--json-schema", SCHEMA, "--model", model)
    ended = await place.run(*args)
    assert (ended.code, ended.out) == (1, "")
    assert "JSON document" in ended.err
    found = await place.run(*args, "--output-format", "json")
    assert found.code == 1
    assert found.json["errors"][0]["kind"] == "structured_output"
    assert found.json["is_error"] is True


async def test_the_offline_model_makes_no_documents(place: Workplace):
    ended = await place.run("-p", "where is Lock defined?", "--json-schema", SCHEMA)
    assert (ended.code, ended.out) == (1, "")
    assert "no JSON document of a schema" in ended.err
    assert not [*place.home.glob(".claw/sessions/*/*.jsonl")]


@pytest.mark.parametrize("schema", ["", "[]", "{", "/no/file", '{"type": 3}', '{"$ref": "x"}'])
async def test_what_is_no_schema_is_wrong_use(place: Workplace, schema: str):
    ended = await place.run("-p", "x", "--json-schema", schema, "--model", place.script("never"))
    assert (ended.code, ended.out) == (2, "")
    assert "error:" in ended.err
