"""`claw sessions`, `claw export`, and going on in a copy."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from claw.sessions.load import load
from tests.cli.running import Ended, Workplace

CALL = {"calls": [{"name": "Bash", "input": {"command": "echo from the shell"}}]}


async def talk(
    place: Workplace, prompt: str, *replies: object, args: tuple[str, ...] = ()
) -> Ended:
    replies = replies or ("Fine.",)
    ended = await place.run(
        "-p", prompt, "--allowedTools", "Bash", "--model", place.script(*replies), *args
    )
    assert ended.code == 0, ended.err
    return ended


def journals(place: Workplace) -> list[Path]:
    """The oldest first."""
    found = (place.home / ".claw" / "sessions").glob("*/*.jsonl")
    return sorted(found, key=lambda path: path.stat().st_mtime_ns)


def damage(path: Path, line: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b'"kind"', b'"kinb"')
    path.write_bytes(b"".join(lines))


@asynccontextmanager
async def in_use(place: Workplace, *args: str) -> AsyncIterator[int]:
    """A claw that is busy with the newest session, or a new one; its process id."""
    call = {"calls": [{"name": "Bash", "input": {"command": "touch begun; sleep 60"}}]}
    model = place.script(call)
    process = await place.start("-p", "go", "--allowedTools", "Bash", "--model", model, *args)
    try:
        async with asyncio.timeout(20):
            while not (place.work / "begun").exists():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        yield process.pid
    finally:
        process.terminate()
        await process.communicate()


async def test_before_there_is_anything(place: Workplace):
    ended = await place.run("sessions")
    assert (ended.code, ended.out) == (0, "")
    assert "no sessions of" in ended.err
    assert (await place.run("sessions", "list", "--output-format", "json")).json == []
    assert "no sessions yet" in (await place.run("sessions", "list", "--all")).err
    assert "no sessions of" in (await place.run("sessions", "show", "latest")).err
    assert (await place.run("sessions", "prune", "--older-than", "1d")).code == 0
    assert not (place.home / ".claw").exists()


async def test_the_list_of_a_project_and_of_all(place: Workplace):
    other = place.work / "other"
    other.mkdir()
    await talk(place, "the first\tprompt\nand more")
    await talk(place, "elsewhere", args=("--cwd", str(other)))
    ended = await place.run("sessions", "list")
    (line,) = ended.out.splitlines()
    id, when, turns, directory, title = line.split("\t")
    assert re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{6}", id)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", when)
    assert (turns, directory, title) == ("1", str(place.work), "the first prompt and more")
    everything = (await place.run("sessions", "list", "--all", "--output-format", "json")).json
    assert [one["title"] for one in everything] == ["elsewhere", "the first prompt and more"]
    assert [one["cwd"] for one in everything] == [str(other), str(place.work)]
    shown = await place.run("sessions", "show", everything[0]["id"])
    assert "elsewhere" in shown.out


async def test_times_are_local(place: Workplace):
    await talk(place, "hello")
    (path,) = journals(place)
    (found,) = (await place.run("sessions", "list", "--output-format", "json")).json
    local = (await place.run("sessions", "list", env={"TZ": "UTC-12"})).out.split("\t")[1]
    utc = (await place.run("sessions", "list", env={"TZ": "UTC"})).out.split("\t")[1]
    assert found["updated"].startswith(utc.replace(" ", "T"))
    assert local != utc
    assert path.stem == found["id"]


async def test_what_was_said_can_be_searched(place: Workplace):
    await talk(place, "about apples", "I know nothing of Zebras.")
    await talk(place, "about pears")
    for words, number in (("APPLES", 1), ("zebras", 1), ("about", 2), ("kind", 0)):
        found = await place.run("sessions", "list", "--search", words, "--output-format", "json")
        assert len(found.json) == number, words


async def test_a_session_is_shown_with_its_calls_and_what_it_took(place: Workplace):
    await talk(place, "do it", {"text": "\x1b[31mFirst.", **CALL}, "All done.")
    await talk(place, "and more", args=("--continue",))
    ended = await place.run("sessions", "show", "latest")
    assert ended.code == 0
    order = ["> do it", "First.", "* Bash echo from the shell [ok]", "All done.", "> and more"]
    places = [ended.out.index(text) for text in order]
    assert places == sorted(places)
    assert "Turn 2" in ended.out
    assert "2 turns, " in ended.out
    assert "cost unknown" in ended.out
    assert "\x1b" not in ended.out
    records = (await place.run("sessions", "show", "latest", "--output-format", "json")).lines
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
    assert {"session_started", "tool_finished", "turn_ended"} <= {one["kind"] for one in records}


async def test_the_title_that_was_given_is_listed(place: Workplace):
    await talk(place, "first prompt")
    renamed = await place.run("sessions", "rename", "latest", "  my  own\ttitle ")
    assert renamed.code == 0
    assert "my own title" in (await place.run("sessions")).out
    blank = await place.run("sessions", "rename", "latest", " ")
    assert blank.code == 2
    await talk(place, "second", args=("--continue",))
    assert "my own title" in (await place.run("sessions")).out


async def test_deleting_takes_a_yes(place: Workplace):
    await talk(place, "hello")
    (path,) = journals(place)
    asked = await place.run("sessions", "delete", "latest")
    assert asked.code == 2
    assert "--yes" in asked.err
    assert path.exists()
    assert (await place.run("sessions", "delete", path.stem[:12], "--yes")).code == 0
    assert os.listdir(path.parent) == []


async def test_what_is_in_use_is_left_alone_and_can_be_copied(place: Workplace):
    await talk(place, "the first prompt")
    async with in_use(place, "--continue") as pid:
        (path,) = journals(place)
        before = path.read_bytes()
        for command in (
            ("sessions", "delete", "latest", "--yes"),
            ("sessions", "rename", "latest", "x"),
            ("--continue", "-p", "more", "--model", place.script("More.")),
        ):
            refused = await place.run(*command)
            assert refused.code == 1, command
            assert f"process {pid}" in refused.err
            assert "--fork-session" in refused.err
        kept = await place.run("sessions", "prune", "--older-than", "0m")
        assert "kept" in kept.err
        assert kept.out == ""
        forked = await place.run(
            *("--continue", "--fork-session", "-p", "more", "--model", place.script("More.")),
            *("--output-format", "json"),
        )
        assert forked.code == 0, forked.err
        assert path.read_bytes() == before
    assert forked.json["session_id"] != path.stem
    copy = path.with_name(f"{forked.json['session_id']}.jsonl")
    assert load(str(copy)).state.turns == 3


async def test_a_copy_goes_its_own_way(place: Workplace):
    long = {"calls": [{"name": "Bash", "input": {"command": "seq 30000"}}]}
    await talk(place, "one", long, "Done.")
    (path,) = journals(place)
    before = path.read_bytes()
    args = ("--resume", path.stem[:18], "--fork-session", "--session-id", "my-copy")
    ended = await talk(place, "two", args=args)
    assert f"my-copy, a copy of {path.stem}" in ended.err
    assert path.read_bytes() == before
    copy = path.with_name("my-copy.jsonl")
    assert copy.read_bytes().startswith(before)
    blobs = [os.stat(file) for file in path.with_suffix(".blobs").iterdir()]
    assert max(status.st_nlink for status in blobs) == 2
    listed = (await place.run("sessions", "list", "--output-format", "json")).json
    assert [(one["id"], one["turns"]) for one in listed] == [("my-copy", 2), (path.stem, 1)]
    taken = await place.run("-p", "x", *args, "--model", place.script("x"))
    assert taken.code == 1
    assert "already" in taken.err


@pytest.mark.parametrize(
    "args",
    [
        ("--fork-session",),
        ("--continue", "--session-id", "x"),
        ("--continue", "--no-session-persistence"),
        ("--continue", "--resume", "x"),
    ],
)
async def test_flags_that_make_no_sense(place: Workplace, args: tuple[str, ...]):
    assert (await place.run("-p", "x", *args)).code == 2


async def test_damage_is_listed_told_and_salvaged(place: Workplace):
    await talk(place, "one")
    await talk(place, "two", args=("--continue",))
    (path,) = journals(place)
    damage(path, 6)
    listed = await place.run("sessions")
    assert listed.code == 0
    stopped = await place.run("--continue", "-p", "three", "--model", place.script("x"))
    assert stopped.code == 1
    command = re.search(r"claw (sessions verify \S+ --salvage)", stopped.err)
    assert command is not None
    found = await place.run("sessions", "verify")
    assert found.code == 1
    assert "line 6" in found.out
    seen = await place.run("sessions", "show", "latest")
    assert seen.code == 1
    assert "> one" in seen.out
    mended = await place.run(*command[1].split())
    assert mended.code == 0
    assert "Lost:" in mended.out
    assert "line 6" in mended.out
    assert len(list(path.parent.glob("*.damaged-*"))) == 1
    assert (await place.run("sessions", "verify", "latest")).code == 0
    await talk(place, "three", args=("--continue",))


async def test_damage_of_the_first_line_is_seen_in_the_list(place: Workplace):
    await talk(place, "fine")
    await talk(place, "to be damaged")
    damage(journals(place)[-1], 1)
    ended = await place.run("sessions")
    assert [("damaged" in line) for line in ended.out.splitlines()] == [True, False]
    assert "claw sessions verify" in ended.err
    reports = (await place.run("sessions", "verify", "--all", "--output-format", "json")).json
    assert sorted(len(report["verified"]["damage"]) for report in reports) == [0, 1]


async def test_pruning_tells_first_and_deletes_then(place: Workplace):
    await talk(place, "old")
    await talk(place, "new")
    old, new = journals(place)
    torn = old.with_name(f"{old.name}.torn-x")
    torn.write_text("torn")
    long_ago = time.time() - 40 * 86400
    for file in (old, torn):
        os.utime(file, (long_ago, long_ago))
    dry = await place.run("sessions", "prune", "--older-than", "30d", "--dry-run")
    assert dry.out == f"{old.stem}\n"
    assert "Would delete 1 session" in dry.err
    assert old.exists()
    assert (await place.run("sessions", "prune", "--older-than", "8w")).out == ""
    pruned = await place.run("sessions", "prune", "--older-than", "30d")
    assert pruned.out == f"{old.stem}\n"
    assert sorted(os.listdir(new.parent)) == sorted([new.name, f"{new.stem}.blobs"])
    size = re.compile(r"\((.*)\)")
    assert size.findall(dry.err) == size.findall(pruned.err)
    assert (await place.run("sessions", "prune", "--older-than", "soon")).code == 2


async def test_a_document_of_a_session(place: Workplace):
    fence = {"calls": [{"name": "Bash", "input": {"command": "printf '```\\nx\\n'"}}]}
    await talk(place, "# not a heading\nmore", fence, "The **answer**.")
    ended = await place.run("export", "latest")
    assert ended.code == 0
    assert ended.out.startswith("# # not a heading more\n")
    assert "> # not a heading\n> more\n" in ended.out
    assert "### Bash: ok" in ended.out
    assert "````\n```\nx" in ended.out
    assert ended.out.rstrip().endswith("The **answer**.")
    file = place.work / "talk.md"
    for _ in range(2):
        written = await place.run("export", "latest", "--output", "talk.md")
        assert (written.code, written.out) == (0, "")
    assert file.read_text() == ended.out
    assert file.stat().st_mode & 0o777 == 0o600


async def test_an_export_never_replaces_the_session(place: Workplace):
    await talk(place, "hello")
    (path,) = journals(place)
    before = path.read_bytes()
    link = place.work / "link"
    link.symlink_to(path)
    for target in (str(path), str(link), str(place.work), "/dev/null", "/no/such/dir/x"):
        assert (await place.run("export", "latest", "--output", target)).code == 1, target
    assert path.read_bytes() == before


async def test_records_are_exported_as_they_are_but_for_secrets(place: Workplace):
    await talk(place, 'my word is swordfish-42, said "swordfish-42"')
    (path,) = journals(place)
    ended = await place.run("export", str(path), "--output-format", "jsonl")
    assert ended.out == path.read_text()
    hidden = {"MY_PASSWORD": "swordfish-42"}
    clean = await place.run("export", "latest", "--output-format", "jsonl", env=hidden)
    assert "swordfish" not in clean.out
    assert "[redacted:MY_PASSWORD]" in clean.out
    copy = place.work / "copy.jsonl"
    copy.write_text(clean.out)
    assert load(str(copy)).records == load(str(path)).records
    document = await place.run("export", "latest", env=hidden)
    assert "swordfish" not in document.out


async def test_a_session_of_a_directory_that_moved(place: Workplace):
    await talk(place, "hello")
    (path,) = journals(place)
    moved = place.home / "moved"
    place.work.rename(moved)
    ended = await place.run(
        *("--resume", str(path), "-p", "and now?", "--model", place.script("Here.")), cwd=moved
    )
    assert ended.code == 0
    assert f"began in {place.work}" in ended.err
    again = await place.run(
        *("--resume", str(path), "-p", "more", "--model", place.script("Here.")), cwd=moved
    )
    assert "began in" not in again.err


async def test_the_help_teaches(place: Workplace):
    text = (await place.run("sessions", "--help")).out
    for word in ("list", "show", "rename", "delete", "verify", "prune", "--fork-session"):
        assert word in text
    assert "claw export latest" in (await place.run("export", "--help")).out
    near = await place.run("sesions")
    assert near.code == 2
    assert "claw sessions" in near.err
    unknown = await place.run("sessions", "shwo")
    assert unknown.code == 2
    assert "show" in unknown.err


async def test_json_errors_are_json(place: Workplace):
    ended = await place.run("sessions", "show", "nope", "--output-format", "json")
    assert ended.code == 1
    assert json.loads(ended.out)["errors"][0]["kind"] == "session_not_found"
