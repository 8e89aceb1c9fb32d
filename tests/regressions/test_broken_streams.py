"""Stdout that takes nothing, stdin that never ends, a directory that is gone."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.cli.running import CLAW, Ended, Workplace

FORMS = ["text", "json", "stream-json"]
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")


async def shell(place: Workplace, redirection: str, *args: str) -> Ended:
    command = f"exec {shlex.join((*CLAW, *args))} {redirection}"
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", command),
        cwd=place.work,
        env=place.env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


@needs_full
@pytest.mark.parametrize(
    "args", ["doctor", "config", "config --output-format json", "--version", "--help", "doctor -h"]
)
async def test_a_full_disk_fails_every_command(place: Workplace, args: str):
    ended = await shell(place, ">/dev/full", *args.split())
    assert ended.code == 1
    assert ended.err == "error: cannot write to stdout: No space left on device\n"


@needs_full
@pytest.mark.parametrize("form", FORMS)
async def test_a_full_disk_fails_a_turn(place: Workplace, form: str):
    model = place.script("an answer")
    ended = await shell(place, ">/dev/full", "-p", "hi", "--output-format", form, "--model", model)
    assert ended.code == 1
    assert "error: cannot write to stdout: No space left on device" in ended.err


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("redirection", [">&-", "1</dev/null"])
async def test_nobody_is_asked_for_what_nobody_can_read(
    place: Workplace, form: str, redirection: str
):
    model = place.script("an answer")
    ended = await shell(place, redirection, "-p", "hi", "--output-format", form, "--model", model)
    assert ended.code == 1
    assert ended.err.startswith("error: cannot write to stdout: it is ")
    assert not (place.home / ".claw").exists()


@pytest.mark.parametrize("command", ["doctor", "config", "--version"])
async def test_commands_without_stdout(place: Workplace, command: str):
    ended = await shell(place, ">&-", command)
    assert ended.code == 1
    assert ended.err == "error: cannot write to stdout: it is closed\n"


async def test_all_streams_closed(place: Workplace):
    model = place.script("an answer")
    ended = await shell(place, "<&- >&- 2>&-", "-p", "hi", "--model", model)
    assert (ended.code, ended.out, ended.err) == (1, "", "")


@pytest.mark.parametrize("args", ["doctor", "config", "-p hi --model offline"])
async def test_a_directory_that_is_gone(place: Workplace, args: str):
    program = (
        "import os, sys; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, *CLAW, *args.split()),
        cwd=place.work,
        env=place.env,
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 1
    assert b"error: the current directory does not exist any more\n" in err


@pytest.fixture
def zeros() -> Iterator[BinaryIO]:
    with open("/dev/zero", "rb") as file:
        yield file


@pytest.mark.parametrize("form", FORMS)
async def test_stdin_is_read_up_to_a_limit(place: Workplace, form: str, zeros: BinaryIO):
    process = await place.start(
        *("-p", "hi", "--output-format", form, "--model", place.script("never")), stdin=zeros
    )
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode is not None
    ended = Ended(process.returncode, out.decode(), err.decode())
    assert ended.code == 1
    assert "error: more than 10 MiB came from stdin" in ended.err
    if form == "text":
        assert ended.out == ""
    else:
        assert ended.json["subtype"] == "error_before_turn"


@pytest.mark.parametrize("kind", ["fifo", "/dev/zero", "directory"])
async def test_a_script_is_a_regular_file(place: Workplace, kind: str):
    path = place.work / "script"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to(kind)
    ended = await place.run("-p", "hi", "--output-format", "json", "--model", "script:script")
    assert ended.code == 1
    assert "no regular file" in ended.json["errors"][0]["message"]
