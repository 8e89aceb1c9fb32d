"""The pytest plugin, as the tests of another package use it: in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from claw.testing import ServerReply, StrictServer, calls, says

TEST = """
FILES = {"notes.md": "hello"}

def test_notes(claw_session, recorded_model):
    run = claw_session(recorded_model("recordings/notes.json"), files=FILES)
    summary = run.turn("what do the notes say?")
    assert "hello" in run.results(summary)[0]
"""


def a_package(folder: Path, test: str, **files: str) -> Path:
    """A folder with one test file, and goldens beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "test_it.py").write_text(test)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    for name, text in files.items():
        (folder / f"{name}.json").write_text(text)
    return folder


def examples() -> list[str]:
    project = Path(__file__).parents[3]
    text = (project / "README.md").read_text() + (project / "docs/testing.md").read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


async def run_tests(folder: Path, *args: str, **env: str) -> tuple[int, str]:
    """Exit code and output of pytest there; nothing of this process's environment."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-p", "claw.testing.plugin", "-q", "-rA", *args),
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "COLUMNS": "200", **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


async def record(
    folder: Path, script: Sequence[ServerReply], *args: str, check: bool = True
) -> tuple[int, str]:
    """Run the tests with a model that plays this script."""
    async with StrictServer(script, check=check, extends=False) as server:
        return await run_tests(
            folder,
            "--claw-record",
            *args,
            ANTHROPIC_API_KEY="value-of-the-key",
            ANTHROPIC_BASE_URL=server.base_url,
            CLAW_MODEL="some-model",
        )


def looks() -> list[ServerReply]:
    return [calls(("Read", {"file_path": "notes.md"})), says("They say hello.")]


async def test_record_once_then_play_elsewhere_without_a_model(tmp_path):
    here = a_package(tmp_path / "here", TEST)
    code, output = await run_tests(here)
    assert code == 1
    assert "there is no recording" in output
    assert "Run this test once with `--claw-record`" in output

    code, output = await run_tests(here, "--claw-record")
    assert code == 1
    assert "no model is configured" in output
    assert "CLAW_MODEL=offline" in output
    assert not (here / "recordings").exists()

    code, output = await record(here, looks())
    assert code == 0, output
    there = a_package(tmp_path / "there/deeper", TEST)
    (here / "recordings").rename(there / "recordings")
    code, output = await run_tests(there, LC_ALL="C", TZ="Asia/Tokyo", PYTHONHASHSEED="7")
    assert code == 0, output

    (there / "test_it.py").write_text(TEST.replace("hello", "hallo"))
    code, output = await run_tests(there)
    assert code == 1
    assert "notes.json: request 2 is not the recorded one: the result of `Read`, call" in output
    assert "-      1\thello\n" in output.replace("E       ", "")
    assert "src/claw" not in output  # the test's line and the words, none of our frames


async def test_a_test_that_fails_records_nothing(tmp_path):
    failing = TEST.replace('"hello" in', '"never" in')
    folder = a_package(tmp_path, failing)
    code, output = await record(folder, looks())
    assert code == 1
    assert "never" in output
    assert "ERROR" not in output
    assert not (folder / "recordings").exists()


async def test_an_unused_reply_fails_a_test_that_passes(tmp_path):
    folder = a_package(tmp_path, TEST.replace("recordings/", ""))
    lines = [{"calls": [{"name": "Read", "input": {"file_path": "notes.md"}}]}, "Hello.", "More."]
    (folder / "notes.json").write_text(json.dumps({"schema": 1, "replies": lines}))
    code, output = await run_tests(folder)
    assert code == 1
    assert "notes.json: 1 of 3 recorded replies were never asked for" in output
    assert "During handling" not in output


async def test_two_tests_do_not_write_into_one_recording(tmp_path):
    folder = a_package(tmp_path, TEST + TEST.replace("test_notes", "test_others"))
    code, output = await record(folder, looks())
    assert code == 1
    assert "test_it.py::test_notes is recorded in notes.json already" in output
    assert (folder / "recordings/notes.json").exists()


async def test_two_processes_do_not_write_into_one_recording(tmp_path):
    pytest.importorskip("xdist")
    folder = a_package(tmp_path, TEST + TEST.replace("test_notes", "test_others"))
    # Each test on a worker of its own, whichever is the first.
    code, output = await record(folder, [*looks(), *looks()], "-n", "2", "--dist=load", check=False)
    assert code == 1
    assert "is recorded in notes.json already: give each test its own" in output
    assert "1 passed" in output
    assert (folder / "recordings/notes.json").exists()
    code, output = await record(folder, looks(), "-n", "2", "-k", "others")  # in another run
    assert code == 0, output


WRONG = """
from claw.testing import says

def test_lent_twice(claw_session, recorded_model):
    model = recorded_model("kept.json")
    claw_session(model)
    claw_session(model)

def test_pattern(recorded_model):
    recorded_model("kept.json", varies=["("])

def test_text(claw_session):
    claw_session("hello")

def test_settings(claw_session):
    claw_session([], settings={"permissions": {"denny": ["Read"]}})
"""


async def test_wrong_use_is_said_in_words(tmp_path):
    folder = a_package(tmp_path, WRONG, kept='{"schema": 1, "replies": ["Hi."]}')
    code, output = await run_tests(folder)
    assert code == 1
    assert "4 failed" in output
    assert "kept.json is lent to another session already: one recording, one session" in output
    assert "`varies`: '(' is no regular expression" in output
    assert "`model` is the text 'hello': it has to be a list of replies" in output
    assert "denny" in output
    assert "asyncio/runners.py" not in output
    assert "src/claw/app" not in output


async def test_an_unknown_level_of_matching_rewrites_nothing(tmp_path):
    contract = '{"must_call": ["Read"]}'
    folder = a_package(tmp_path, CONTRACT.replace('"contract"', '"Contract"'), kept=contract)
    code, output = await run_tests(folder, "--claw-update")
    assert code == 1
    levels = '"exact", "structure", "contract"'
    assert f"`match` is 'Contract': it has to be one of {levels}" in output
    assert (folder / "kept.json").read_text() == contract


async def test_the_model_is_the_one_of_the_developer_whatever_a_test_isolates(tmp_path):
    isolates = """
import pytest

@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
"""
    folder = a_package(tmp_path, isolates + TEST)
    code, output = await record(folder, looks())
    assert code == 0, output
    assert "value-of-the-key" not in (folder / "recordings/notes.json").read_text()


async def test_tests_with_an_event_loop_use_the_harness(tmp_path):
    test = """
from claw.testing import Harness, says

async def test_async(tmp_path, recorded_model):
    async with Harness(tmp_path, recorded_model("notes.json"), files={"notes.md": "hello"}) as run:
        assert (await run.turn("what do the notes say?")).iterations == 2

async def test_session_in_a_loop(claw_session):
    claw_session([says("hi")])

def test_a_loop_of_its_own(claw_session):
    assert claw_session([says("hi")]).turn("hi").iterations == 1

async def test_the_loop_is_still_there():
    pass
"""
    folder = a_package(tmp_path, test)
    code, output = await record(folder, looks())
    assert code == 1
    assert (folder / "notes.json").exists()
    assert "3 passed" in output
    assert "in an async test use `claw.testing.Harness`" in output
    assert "never awaited" not in output


async def test_several_processes(tmp_path):
    pytest.importorskip("xdist")
    tests = TEST.replace(
        "def test_notes(", "@pytest.mark.parametrize('n', '123')\ndef test_notes(n, "
    )
    folder = a_package(tmp_path, f"import pytest\n{tests}")
    (folder / "recordings").mkdir()
    look = {"calls": [{"name": "Read", "input": {"file_path": "notes.md"}}]}
    recording = {"schema": 1, "replies": [look, "Hello."]}
    (folder / "recordings/notes.json").write_text(json.dumps(recording))
    code, output = await run_tests(folder, "-n", "2")
    assert code == 0, output
    assert "3 passed" in output


CONTRACT = """
from claw.testing import calls, says

def test_contract(claw_session, assert_trajectory):
    run = claw_session([calls(("Read", {"file_path": "a"})), says("done")], files={"a": ""})
    run.turn("look")
    assert_trajectory(run, "kept.json", match="contract")
"""


async def test_a_contract_is_read_from_beside_the_test(tmp_path):
    """Each test its own contract, one process for all."""
    contracts = {
        "good": ('{"must_call": ["Read"], "never_call": ["Bash"], "max_steps": 2}', ""),
        "broken": ('{"must_call": ["Grep"]}', "not as broken.json demands:"),
        "misspelt": ('{"must_cal": []}', "misspelt.json: Object contains unknown field `must_cal`"),
        "empty": ("", "empty.json: Input data was truncated"),
    }
    tests = [CONTRACT.replace("kept", k).replace("test_contract", f"test_{k}") for k in contracts]
    files = {name: text for name, (text, _) in contracts.items()}
    missing = CONTRACT.replace("kept", "missing")
    code, output = await run_tests(a_package(tmp_path, missing + "".join(tests), **files))
    assert code == 1
    assert "1 passed" in output
    assert "PASSED test_it.py::test_good" in output
    for _, words in contracts.values():
        assert words in output
    assert "missing.json: No such file" in output
    assert "msgspec" not in output


async def test_goldens_are_rewritten_by_one_flag(tmp_path):
    exact = CONTRACT.replace(', match="contract"', "")
    folder = a_package(tmp_path, exact)
    code, output = await run_tests(folder)
    assert code == 1
    assert "no golden file kept.json: run with --claw-update" in output
    assert (await run_tests(folder, "--claw-update"))[0] == 0
    whole = (folder / "kept.json").read_text()
    assert (await run_tests(folder))[0] == 0

    (folder / "test_it.py").write_text(exact.replace("done", "finished"))
    code, output = await run_tests(folder)
    assert code == 1
    assert re.search(r'^E +- +"text": "done"\n', output, re.MULTILINE)
    assert re.search(r'^E +\+ +"text": "finished"\n', output, re.MULTILINE)

    (folder / "test_it.py").write_text(exact)
    (folder / "kept.json").write_bytes(b"\xff{ not json")
    code, output = await run_tests(folder)
    assert code == 1
    assert "not as in kept.json (--claw-update rewrites it)" in output
    assert (await run_tests(folder, "--claw-update"))[0] == 0
    assert (folder / "kept.json").read_text() == whole


async def test_the_examples_of_the_documents_are_true(tmp_path):
    shown = [block for block in examples() if "(claw_session, " in block]
    folder = a_package(tmp_path, "")
    for number, example in enumerate(shown):
        (folder / f"test_example_{number}.py").write_text(example)
    code, output = await record(folder, looks())
    assert code == 0, output
    assert f"{len(shown)} passed" in output
    code, output = await run_tests(folder)
    assert code == 0, output


async def test_one_golden_is_not_rewritten_by_two_tests_that_differ(tmp_path):
    exact = CONTRACT.replace(', match="contract"', "")
    other = exact.replace("test_contract", "test_other")
    folder = a_package(tmp_path, exact + other)
    assert (await run_tests(folder, "--claw-update"))[0] == 0
    (folder / "test_it.py").write_text(exact + other.replace("done", "finished"))
    code, output = await run_tests(folder, "--claw-update")
    assert code == 1
    assert "kept.json was rewritten with another content in this run" in output


LIVE = """
import json
import pytest
from claw.testing import calls, says

def test_live(claw_session, replay, tmp_path):
    run = claw_session(
        [calls(("Bash", {"command": "ls"})), says("done")], mode="bypassPermissions"
    )
    with pytest.raises(ValueError, match="run a turn first"):
        replay(run)
    run.turn("look")
    replay(run)
    assert replay(run, live="policy, hooks").live == ("hooks", "policy")
    with pytest.raises(ValueError, match="`rules`: the parts are"):
        replay(run, live=["rules"])
    settings = run.harness.home / ".claw/settings.json"
    settings.write_text(json.dumps({"permissions": {"deny": ["Bash(ls)"]}}))
    replay(run)
    replay(run, live="hooks")
    replay(run.journal, live="policy")  # whose settings are elsewhere
    replay(run, live="policy", env={})
    replay(run, live="policy")
"""

BESIDE = """
import shutil
from pathlib import Path
from claw.testing import calls, says

HERE = Path(__file__).parent / "recordings"

def test_kept(claw_session, replay):
    run = claw_session(
        [calls(("Bash", {"command": "ls"})), says("done")], mode="bypassPermissions"
    )
    run.turn("look")
    shutil.copy(run.journal, HERE / "release.jsonl")
    shutil.copytree(run.journal.with_suffix(".blobs"), HERE / "release.blobs")
"""


async def test_old_recordings_judge_the_rules_of_today(tmp_path):
    code, output = await run_tests(a_package(tmp_path, LIVE))
    assert code == 1
    assert "ReplayMismatch: the replay differs from the recording: turn 1, step 1" in output
    assert '>       replay(run, live="policy")' in output


async def test_the_files_of_a_replay_stand_beside_the_test(tmp_path):
    """As the documentation has it, from another folder than theirs."""
    example = next(block for block in examples() if "recordings/release.jsonl" in block)
    folder = a_package(tmp_path / "deep", BESIDE + example, settings="{}")
    (folder / "recordings").mkdir()
    code, output = await run_tests(tmp_path, "deep")
    assert code == 0, output
    assert "2 passed" in output
    (folder / "settings.json").write_text('{"permissions": {"deny": ["Bash(ls)"]}}')
    code, output = await run_tests(tmp_path, "deep", "-k", "release")
    assert code == 1
    assert "ReplayMismatch" in output
    assert "turn 1, step 1" in output


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("scripted_model([says('a')])", "is no reply: `says(...)` and `calls(...)` make one"),
        ("scripted_model('a')", "'a' is no reply"),
        ("scripted_model(None)", "None is no reply"),
        ("calls('Bash', {})", "'Bash' is no call: a pair of a name and an input is"),
        ("calls(('Bash',))", "('Bash',) is no call"),
        ("claw_session([], files=['a'])", "`files` maps paths in the workspace"),
        ("claw_session([], files={'/tmp/a': ''})", "'/tmp/a' is no file of the workspace"),
        ("claw_session([], files={'../a': ''})", "'../a' is no file of the workspace"),
        ("claw_session([], files={'': ''})", "'' is no file of the workspace"),
        ("claw_session([], files={'.': ''})", "'.' is no file of the workspace"),
        ("claw_session([], only='Read')", "`only` is a list of tools: `only=['Read']`"),
        ("replay(None)", "None is no `claw_session` and no session's file"),
        ("replay('a.jsonl', live='')", "`live` has ``: the parts are tools, hooks"),
        ("replay('a.jsonl', live='policy,')", "`live` has ``: the parts are tools, hooks"),
        ("replay('a.jsonl', live=[])", "`live` names no part"),
        ("replay('a.jsonl', settings_file='a')", "`settings_file` is for live parts: name them"),
        ("claw_session([], allow='Bash')", "`allow` and `deny` are lists of rules"),
        ("assert_trajectory(None, 'a.json')", "None is no run"),
        ("assert_trajectory(claw_session([]), 'a.json')", "run a turn first"),
    ],
)
def test_wrong_use_is_told_in_words(
    *,
    claw_session: Any,
    scripted_model: Any,
    assert_trajectory: Any,
    replay: Any,
    wrong: str,
    words: str,
) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        eval(wrong, {**globals(), **locals()})
