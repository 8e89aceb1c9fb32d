"""A home that cannot be written, a full disk, a relative home, files that are no sessions."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from claw.errors import ModelError, SessionNotFound
from claw.models.exchange import Peer
from claw.sessions.directories import may_create
from claw.sessions.journal import FileJournal
from claw.workspace.disk import SystemDisk
from tests.cli.running import Workplace


@pytest.fixture(params=["/dev/null", "/proc", "file", "dangling"])
def bad_home(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        (tmp_path / "file").touch()
    elif request.param == "dangling":
        (tmp_path / "dangling").symlink_to("nowhere")
    return str(tmp_path / request.param)


@pytest.mark.parametrize("variable", ["HOME", "CLAW_CONFIG_HOME"])
async def test_a_home_that_cannot_be_written(place: Workplace, bad_home: str, variable: str):
    model = place.script("an answer")
    env = {variable: bad_home}
    ended = await place.run("-p", "hi", "--model", model, "--debug", env=env)
    assert (ended.code, ended.out) == (0, "an answer\n")
    home = bad_home if variable == "CLAW_CONFIG_HOME" else os.path.join(bad_home, ".claw")
    told = f"{home} cannot be written: sessions are kept in memory only"
    assert f"warning: {told}\n" in ended.err
    doctor = await place.run("doctor", "--output-format", "json", env=env)
    found = {finding["name"]: finding for finding in doctor.json["findings"]}
    assert (doctor.code, found["config home"]["verdict"]) == (1, "broken")
    assert found["config home"]["text"] == told


def test_the_question_leaves_nothing_behind(tmp_path: Path):
    assert may_create(str(tmp_path / "a" / "b"))
    assert list(tmp_path.iterdir()) == []


async def test_a_relative_home_leaves_the_workspace_alone(place: Workplace):
    model = place.script("an answer")
    refused = await place.run("-p", "hi", "--model", model, env={"CLAW_CONFIG_HOME": "state"})
    assert refused.code == 1
    assert "CLAW_CONFIG_HOME is a relative path" in refused.err
    env = {"HOME": "home", "CLAW_CONFIG_HOME": str(place.home / "x")}
    assert (await place.run("-p", "hi", "--model", model, env=env)).code == 0
    assert list(place.work.iterdir()) == []


@pytest.mark.parametrize("content", ["root:x:0:0::/root:/bin/sh\n", "abc", '{"some": "json"}\n'])
async def test_what_is_no_session_stays_untouched(place: Workplace, content: str):
    file = place.work / "passwd"
    lock = place.work / "passwd.lock"
    file.write_text(content)
    lock.write_text("somebody's")
    ended = await place.run("-p", "hi", "--model", place.script("never"), "--resume", "./passwd")
    assert ended.code == 1
    assert "is no session of claw" in ended.err
    assert "head" not in ended.err
    assert (file.read_text(), lock.read_text()) == (content, "somebody's")
    assert len(list(place.work.iterdir())) == 2


def test_the_journal_refuses_what_is_no_session(tmp_path: Path):
    (tmp_path / "x.jsonl").write_text("{}\n")
    with pytest.raises(SessionNotFound):
        FileJournal.continue_from(str(tmp_path / "x.jsonl"), now=lambda: 0.0, disk=SystemDisk())


@pytest.mark.parametrize("form", ["text", "compact", "json", "stream-json"])
async def test_an_answer_that_finds_no_room_is_still_given(place: Workplace, form: str):
    answer = "A" * 400_000 + " END"
    options = ["--compact"] if form == "compact" else ["--output-format", form]

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    process = await place.start(
        *("-p", "hi", "--model", place.script(answer), *options), preexec_fn=little_room
    )
    out, err = await process.communicate()
    assert process.returncode == 1
    assert b"cannot write to the journal" in err
    assert b"File too large" in err
    assert b"--no-session-persistence" in err
    assert answer.encode() in out


def test_a_short_key_does_not_mangle_words():
    error = Peer("p", "m", "k").sign(ModelError("unknown"), "")
    assert error.message == "unknown"
    error = Peer("p", "m", "long-secret").sign(ModelError("bad key long-secret"), "")
    assert error.message == "bad key ***"
