"""`claw replay`, as people call it."""

from __future__ import annotations

import asyncio
import json
import signal
import stat
from pathlib import Path

import pytest

from claw.types.entries import ToolFinished
from tests.cli.running import Workplace
from tests.replay.recordings import changed, shortened, with_text

READ = {"calls": [{"name": "Read", "input": {"file_path": "a.txt"}}]}


async def recorded(place: Workplace) -> Path:
    (place.work / "a.txt").write_text("one\n")
    ended = await place.run("-p", "go", "--model", place.script(READ, "done"))
    assert ended.code == 0
    (path,) = place.home.glob(".claw/sessions/*/*.jsonl")
    return path


async def test_the_last_session_is_the_same(place: Workplace):
    await recorded(place)
    ended = await place.run("replay", "latest")
    assert (ended.code, ended.out, ended.err) == (0, "same: 1 turn, 2 steps\n", "")


async def test_a_session_is_the_same_somewhere_else(place: Workplace, tmp_path: Path):
    path = await recorded(place)
    (tmp_path / "empty").mkdir()
    env = {"HOME": str(tmp_path / "empty"), "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "LANG": "C"}
    ended = await place.run("replay", str(path), cwd=tmp_path / "empty", env=env)
    assert (ended.code, ended.out) == (0, "same: 1 turn, 2 steps\n")
    assert [*(tmp_path / "empty").iterdir()] == []


@pytest.mark.no_replay("the recording was changed")
async def test_a_changed_byte_is_named_and_exits_with_5(place: Workplace):
    changed(await recorded(place), lambda entry: with_text(entry, ToolFinished, "two"))
    ended = await place.run("replay", "latest")
    assert ended.code == 5
    assert "turn 1, step 2: step_requested.messages[2]" in ended.out
    assert "recorded:" in ended.out
    found = (await place.run("replay", "latest", "--output-format", "json")).json
    assert found["same"] is False
    first = found["differences"][0]
    assert (first["turn"], first["step"], first["field"]) == (1, 2, "messages[2]")
    assert "two" in first["actual"]


@pytest.mark.no_replay("the recording was changed")
@pytest.mark.parametrize(
    ("old", "new", "step", "field"),
    [
        (b"\\tone", b"\\ttwo", 2, "messages[2]"),
        (b'"text":"go"', b'"text":"do"', 1, "messages[0]"),
    ],
)
async def test_a_byte_changed_with_an_editor_is_named_with_its_line(
    place: Workplace, old: bytes, new: bytes, step: int, field: str
):
    path = await recorded(place)
    assert path.read_bytes().count(old) == 1
    path.write_bytes(path.read_bytes().replace(old, new))
    ended = await place.run("replay", "latest", "--html", str(place.home / "page.html"))
    assert (ended.code, ended.err) == (5, "")
    assert f"turn 1, step {step}: step_requested.{field}" in ended.out
    found = (await place.run("replay", "latest", "--output-format", "json")).json
    assert f"Line {found['edited']} was changed: its checksum does not fit" in ended.out
    assert f"Line {found['edited']} of the recording" in (place.home / "page.html").read_text()
    assert new in path.read_bytes().splitlines()[found["edited"] - 1]
    ended = await place.run("-p", "on", "--resume", "latest", "--model", place.script("done"))
    assert ended.code == 1  # to go on from it is another matter
    assert f"is damaged in line {found['edited']}" in ended.err


@pytest.mark.no_replay("the recording was damaged")
@pytest.mark.parametrize(("old", "new"), [(b'"at":"2', b'"at":"3'), (b'"kind":', b'"kind";')])
async def test_damage_of_which_nothing_comes_is_damage(place: Workplace, old: bytes, new: bytes):
    path = await recorded(place)
    path.write_bytes(path.read_bytes().replace(old, new))
    ended = await place.run("replay", "latest")
    assert (ended.code, ended.out) == (1, "")
    assert "is damaged in line 1: the checksum does not fit the content" in ended.err
    assert "--salvage" in ended.err


async def test_json_tells_all(place: Workplace):
    await recorded(place)
    found = (await place.run("replay", "latest", "--output-format", "json")).json
    assert found["same"] is True
    assert (found["turns"], found["steps"], found["ended_early"]) == (1, 2, False)
    assert (found["differences"], found["stale"], found["live"]) == ([], [], [])


async def test_a_recording_that_ends_early_says_so(place: Workplace):
    shortened(await recorded(place), 6)
    ended = await place.run("replay", "latest")
    assert ended.code == 0
    assert "ends in the middle of a turn" in ended.out


async def test_a_new_rule_is_judged_and_stale_until_then(place: Workplace):
    await recorded(place)
    (place.home / ".claw/settings.json").write_text(json.dumps({"permissions": {"deny": ["Read"]}}))
    ended = await place.run("replay", "latest")
    assert ended.code == 0
    assert "stale: policy" in ended.out
    ended = await place.run("replay", "latest", "--live", "policy,hooks")
    assert ended.code == 5
    assert "turn 1, step 1: decision_made.decision" in ended.out


async def test_rules_of_flags_are_still_those_of_then(place: Workplace):
    call = {"calls": [{"name": "Bash", "input": {"command": "touch b.txt"}}]}
    model = place.script(call, "done")
    await place.run("-p", "go", "--allowedTools", "Bash(touch:*)", "--model", model)
    assert (place.work / "b.txt").exists()
    for parts in ((), ("--live", "policy")):
        ended = await place.run("replay", "latest", *parts)
        assert (ended.code, ended.err) == (0, "")
        assert "stale" not in ended.out


@pytest.mark.no_replay("the recording was changed")
async def test_records_that_are_missing_are_told_of(place: Workplace):
    path = await recorded(place)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:6], *lines[7:]]))
    ended = await place.run("replay", "latest")
    assert "Records are missing from number 7 on" in ended.out
    path.write_bytes(b"".join([*lines[:1], *lines[2:]]))
    ended = await place.run("replay", "latest")
    assert ended.code == 0
    assert "no turn to replay" in ended.out
    assert "Records are missing from number 2 on" in ended.out
    path.write_bytes(b"")
    ended = await place.run("replay", str(path))
    assert (ended.code, ended.out) == (1, "")
    assert "it is empty" in ended.err
    path.write_bytes(bytes(range(256)))
    ended = await place.run("replay", str(path))
    assert (ended.code, ended.out) == (1, "")
    assert "is no session of claw" in ended.err


async def test_a_session_behind_a_link_has_all_that_belongs_to_it(place: Workplace):
    (place.home / "link.jsonl").symlink_to(await recorded(place))
    ended = await place.run("replay", str(place.home / "link.jsonl"))
    assert (ended.code, ended.out) == (0, "same: 1 turn, 2 steps\n")


@pytest.mark.no_replay("the recording was damaged")
@pytest.mark.parametrize("damage", ["lost", "damaged"])
async def test_a_long_text_that_is_lost_is_an_error_and_no_difference(
    place: Workplace, damage: str
):
    call = {"calls": [{"name": "Bash", "input": {"command": "seq 1 60000"}}]}
    allowed = ("--permission-mode", "bypassPermissions")
    await place.run("-p", "go", *allowed, "--model", place.script(call, "done"))
    blobs = place.home.glob(".claw/sessions/*/*.blobs/*")
    longest = max(blobs, key=lambda path: path.stat().st_size)
    longest.unlink()
    if damage == "damaged":
        longest.write_text("1")
    ended = await place.run("replay", "latest")
    assert (ended.code, ended.out) == (1, "")
    assert longest.name in ended.err
    assert "hint: `claw sessions verify`" in ended.err
    ended = await place.run("sessions", "verify", "latest")
    assert ended.code == 1
    assert "cannot be replayed" in ended.out


async def test_a_difference_names_its_call_and_stays_short(place: Workplace):
    call = {"calls": [{"name": "Bash", "input": {"command": "cat a.txt"}}]}
    (place.work / "a.txt").write_text("".join(f"{n}\n" for n in range(1_000)))
    await place.run("-p", "go", "--allowedTools", "Bash", "--model", place.script(call, "done"))
    (place.work / "a.txt").write_text("".join(f"{n}\n" for n in range(5_000, 6_000)))
    ended = await place.run("replay", "latest", "--live", "tools")
    assert ended.code == 5
    lines = ended.out.splitlines()
    assert lines[1] == "turn 1, step 1: tool_finished.content[0].text (Bash call_1_1)"
    assert len(lines) < 70
    assert "more lines" in lines[-1]


async def test_tools_of_today_find_the_file_of_today(place: Workplace):
    await recorded(place)
    assert (await place.run("replay", "latest", "--live", "tools")).code == 0
    (place.work / "a.txt").write_text("two\n")
    ended = await place.run("replay", "latest", "--live", "tools")
    assert ended.code == 5
    assert "tool_finished.content[0].text" in ended.out
    assert "two" in ended.out


async def test_both_sides_are_written_as_a_page(place: Workplace):
    await recorded(place)
    ended = await place.run("replay", "latest", "--html", "page.html")
    page = place.work / "page.html"
    assert (ended.code, ended.out) == (0, f"same: 1 turn, 2 steps\npage: {page}\n")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert "The same as the recording" in page.read_text()
    (place.work / "a.txt").write_text("two\n")
    ended = await place.run("replay", "latest", "--live", "tools", "--html", "page.html")
    assert ended.code == 5
    assert ended.out.endswith(f"\npage: {page}\n")
    assert "Differs from the recording" in page.read_text()
    told = await place.run("replay", "latest", "--html", "page.html", "--output-format", "json")
    assert told.json["page"] == str(page)
    assert "played" not in told.json


async def test_the_page_is_opened_as_a_session_is(place: Workplace):
    await recorded(place)
    tools = place.home / "tools"
    tools.mkdir()
    for name in ("xdg-open", "open"):
        (tools / name).write_text(f'#!/bin/sh\necho "$1" >> "{place.home}/opened"\n')
        (tools / name).chmod(0o755)
    (place.home / "tmp").mkdir()
    env = {"PATH": f"{tools}:{place.env['PATH']}", "TMPDIR": str(place.home / "tmp")}
    ended = await place.run("replay", "latest", "--view", env=env)
    assert (ended.code, ended.err) == (0, "")
    page = ended.out.splitlines()[-1].removeprefix("page: ")
    assert (place.home / "opened").read_text() == f"{page}\n"
    assert page.startswith(str(place.home / "tmp"))
    assert Path(page).read_text().startswith("<!doctype html>")


async def test_secrets_of_today_are_not_on_the_page(place: Workplace):
    await recorded(place)
    (place.work / "a.txt").write_text("swordfish-42\n")
    args = ("replay", "latest", "--live", "tools", "--html", "page.html")
    assert (await place.run(*args, env={"MY_PASSWORD": "swordfish-42"})).code == 5
    page = (place.work / "page.html").read_text()
    assert "swordfish-42" not in page
    assert "[redacted:MY_PASSWORD]" in page


async def test_a_page_never_replaces_the_recording(place: Workplace):
    path = await recorded(place)
    before = path.read_bytes()
    assert (await place.run("replay", "latest", "--html", str(path))).code == 1
    assert path.read_bytes() == before


@pytest.mark.parametrize("args", [("absent",), ("latest", "--live", "model"), ()])
async def test_wrong_use_says_what_is_wrong(place: Workplace, args: tuple[str, ...]):
    await recorded(place)
    ended = await place.run("replay", *args)
    assert ended.code in (1, 2)
    assert "error:" in ended.err


async def until_there(path: Path) -> None:
    for _ in range(600):
        if path.exists():
            return
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
async def test_a_signal_ends_live_parts_and_leaves_no_copy(
    place: Workplace, tmp_path: Path, number: signal.Signals, code: int
):
    await recorded(place)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    hook = {"hooks": [{"type": "command", "command": f"touch {scratch}/ran; sleep 60"}]}
    (place.home / ".claw/settings.json").write_text(json.dumps({"hooks": {"Stop": [hook]}}))
    process = await place.start("replay", "latest", "--live", "hooks", env={"TMPDIR": str(scratch)})
    async with asyncio.timeout(30):
        await until_there(scratch / "ran")
        assert [*scratch.glob("claw-replay-*")]
        process.send_signal(number)
        _, err = await process.communicate()
    assert process.returncode == code
    assert b"Traceback" not in err
    assert not [*scratch.glob("claw-replay-*")]


@pytest.mark.parametrize(
    "options", [("--live", ""), ("--live", " , "), ("--html", ""), ("--in-place",)]
)
async def test_an_option_that_says_nothing_is_wrong_usage(
    place: Workplace, options: tuple[str, ...]
):
    await recorded(place)
    ended = await place.run("replay", "latest", *options)
    assert (ended.code, ended.out) == (2, "")
    assert "error:" in ended.err
