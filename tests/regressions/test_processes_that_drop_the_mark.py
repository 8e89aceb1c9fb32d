"""What hides its origin does not outlive the command; nor does what claw's death leaves."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")

PROGRAM = """
import asyncio, os, subprocess, sys
from claw.ports import Command
from claw.workspace.guard import Guard
from claw.workspace.processes import LocalProcesses

inherited = subprocess.Popen(["sleep", "60"], start_new_session=True)

async def main():
    processes = LocalProcesses(os.getcwd(), os.environ, Guard(), owns_process=True)
    own = None
    for script in sys.argv[1:]:
        task = asyncio.create_task(
            processes.run(Command(("bash", "-c", script), merge=True, timeout=20))
        )
        own = own or subprocess.Popen(["sleep", "60"])
        result = await task
        print(result.stdout.decode().strip(), "|", result.error, flush=True)
    for child in (own, inherited):
        assert child.poll() is None, "it was started elsewhere"
        child.kill()
        child.wait()
    processes.close()
    left = open(f"/proc/self/task/{os.getpid()}/children").read().split()
    assert not left, left

print("ready", flush=True)
asyncio.run(main())
"""
HIDDEN = [
    "env -u CLAW_SESSION_MARK setsid -f sleep 61; echo ok",
    "unset CLAW_SESSION_MARK; setsid -f sleep 61; echo ok",
    "setsid env -i PATH=/usr/bin:/bin sleep 61 & sleep 0.1; echo ok",
]
STUBBORN = "env -i PATH=/usr/bin:/bin setsid -f bash -c 'trap \"\" TERM; sleep 61; :'; echo ok"


def start(tmp_path: Path, *scripts: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM, *scripts],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )


def test_they_are_ended_with_the_call(tmp_path: Path) -> None:
    with start(tmp_path, *HIDDEN, STUBBORN, "echo plain") as program:
        out, _ = program.communicate(timeout=30)
    assert program.returncode == 0
    _, *told, stubborn, plain = out.splitlines()
    assert told == ["ok | a process that it left running was ended"] * len(HIDDEN)
    assert "left running" in stubborn
    assert plain == "plain | "


def test_a_kill_at_any_moment_of_the_start_leaves_nobody(tmp_path: Path) -> None:
    pause = f"61.{time.monotonic_ns()}"
    for round in range(12):
        with start(tmp_path, f"(setsid sleep {pause} &); sleep {pause}") as program:
            assert program.stdout is not None
            program.stdout.readline()
            time.sleep(round / 1000)
            program.kill()
    limit = time.monotonic() + 10
    while (left := sleeping(pause)) and time.monotonic() < limit:
        time.sleep(0.1)
    assert not left


def sleeping(pause: str) -> list[str]:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", pause.encode()]:
            found.append(file.parent.name)
    return found
