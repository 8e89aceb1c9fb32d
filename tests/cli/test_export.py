"""`claw export --format atif`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from claw.sessions.journal import FileJournal
from claw.types.entries import TurnEnded, TurnStarted, UserMessaged
from claw.types.messages import Image, Text
from claw.types.usage import Usage
from claw.workspace.disk import SystemDisk
from tests.atif import check
from tests.cli.running import Workplace
from tests.viewing import picture

SECRET = 'sword"fish-42'


async def talk(place: Workplace, *replies: object, prompt: str = "go") -> Path:
    model = place.script(*replies)
    ended = await place.run(
        "-p", prompt, "--model", model, "--permission-mode", "bypassPermissions"
    )
    assert ended.code == 0, ended.err
    (path,) = place.home.glob(".claw/sessions/*/*.jsonl")
    return path


def bash(command: str) -> dict[str, Any]:
    return {"calls": [{"name": "Bash", "input": {"command": command}}]}


async def test_the_offline_model_leaves_a_trajectory(place: Workplace) -> None:
    (place.work / "a.py").write_text("lock = 1\n")
    assert (await place.run("-p", "where is lock defined?", "--model", "offline")).code == 0
    ended = await place.run("export", "latest", "--format", "atif")
    assert (ended.code, ended.err) == (0, "")
    document = json.loads(ended.out)
    check(document)
    assert [step["source"] for step in document["steps"]] == ["system", "user", "agent", "agent"]
    assert [step.get("llm_call_count") for step in document["steps"]] == [None, None, 0, 0]
    written = await place.run("export", "latest", "--format", "atif", "-o", "t.json")
    assert (written.code, written.out) == (0, "")
    assert (place.work / "t.json").read_text() == ended.out
    assert (place.work / "t.json").stat().st_mode & 0o777 == 0o600


async def test_no_secret_is_in_it_and_it_stays_json(place: Workplace) -> None:
    inside = "printf '%s' " + "'" + SECRET + "'"
    await talk(place, bash(inside), f"It is {SECRET}.", prompt=f"say {SECRET}")
    plain = await place.run("export", "latest", "--format", "atif")
    assert plain.out.count("fish-42") >= 4
    ended = await place.run("export", "latest", "--format", "atif", env={"MY_PASSWORD": SECRET})
    check(json.loads(ended.out))
    assert "fish-42" not in ended.out
    assert ended.out.count("[redacted:MY_PASSWORD]") == plain.out.count("fish-42")


async def test_a_long_output_is_whole(place: Workplace) -> None:
    await talk(place, bash("seq 20000"), "done")
    document = json.loads((await place.run("export", "latest", "--format", "atif")).out)
    check(document)
    (result,) = document["steps"][2]["observation"]["results"]
    assert result["content"].split()[:20000] == [str(n) for n in range(1, 20001)]
    assert len(result["extra"]["text_in_context"]) < len(result["content"])


async def test_a_torn_session_and_a_damaged_one(place: Workplace) -> None:
    path = await talk(place, bash("echo 1"), "done")
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    torn = await place.run("export", "latest", "--format", "atif")
    assert torn.code == 0
    check(json.loads(torn.out))
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"?" + lines[3], *lines[4:]]))
    damaged = await place.run("export", "latest", "--format", "atif", "-o", "t.json")
    assert (damaged.code, damaged.out) == (1, "")
    assert "is damaged in line 4" in damaged.err
    assert not (place.work / "t.json").exists()
    assert (await place.run("sessions", "verify", path.stem, "--salvage")).code == 0
    salvaged = await place.run("export", "latest", "--format", "atif")
    check(json.loads(salvaged.out))


async def test_a_session_in_which_nothing_was_said(place: Workplace) -> None:
    path = await talk(place, "done")
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    ended = await place.run("export", "latest", "--format", "atif", "-o", "t.json")
    assert (ended.code, ended.out) == (1, "")
    assert "nothing was said" in ended.err
    assert "jsonl" in ended.err
    assert not (place.work / "t.json").exists()


@pytest.mark.no_replay("written by hand")
async def test_pictures_are_beside_it(place: Workplace) -> None:
    path = await talk(place, "done")
    journal, _ = FileJournal.continue_from(str(path), now=lambda: 0.0, disk=SystemDisk())
    shot = journal.blobs.put(picture())
    journal.append(TurnStarted(2))
    journal.append(UserMessaged((Text("What is this?"), Image("image/png", shot))))
    journal.append(TurnEnded(2, "interrupted", 0, Usage()))
    journal.close()
    ended = await place.run("export", "latest", "--format", "atif", "-o", "t.json")
    assert "1 picture is in files beside the session" in ended.err
    check(place.work / "t.json")
    (part,) = json.loads((place.work / "t.json").read_text())["steps"][-1]["message"][1:]
    assert Path(part["source"]["path"]).read_bytes() == picture()


async def test_a_link_stays_and_what_it_leads_to_is_written(place: Workplace) -> None:
    await talk(place, "done")
    (place.work / "link.md").symlink_to(place.home / "real.md")
    for _ in range(2):
        assert (await place.run("export", "latest", "-o", "link.md")).code == 0
        assert (place.work / "link.md").is_symlink()
        assert "done" in (place.home / "real.md").read_text()


async def test_stdout_is_written_to_and_never_replaced(place: Workplace) -> None:
    await talk(place, "done")
    assert "done" in (await place.run("export", "latest", "-o", "-")).out
    taken = place.work / "out.md"
    with taken.open("wb") as file:
        process = await place.start("export", "latest", "-o", "/dev/fd/1", stdout=file)
        _, err = await process.communicate()
    assert process.returncode == 1
    assert "no regular file" in err.decode()
    assert taken.read_bytes() == b""
    ended = await place.run("replay", "latest", "--html", "-")
    assert (ended.code, ended.out) == (2, "")
    assert not (place.work / "-").exists()


async def test_what_cannot_be_written_says_what_to_do(place: Workplace) -> None:
    await talk(place, "done")
    ended = await place.run("export", "latest", "-o", "gone/session.md")
    assert (ended.code, ended.out) == (1, "")
    assert "hint: Name a file in a directory" in ended.err
