"""Processes: bounded, prompt, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from claw.ports import Command, Processes
from claw.testing.conformance import ProcessesSuite
from claw.workspace.guard import Guard
from claw.workspace.processes import LocalProcesses

T = TypeVar("T")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")


class TestConformance(ProcessesSuite):
    @pytest.fixture(autouse=True)
    def _processes(self, tmp_path: Path) -> Iterator[None]:
        self._made = LocalProcesses(str(tmp_path), os.environ, Guard())
        yield
        self._made.close()

    def make(self) -> Processes:
        return self._made


@pytest.fixture
async def processes(tmp_path: Path) -> AsyncIterator[LocalProcesses]:
    local = LocalProcesses(str(tmp_path), os.environ, Guard())
    yield local
    local.close()


def bash(script: str, **options: Any) -> Command:
    return Command(("bash", "--noprofile", "--norc", "-c", script), merge=True, **options)


def running(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def written(path: Path) -> list[int] | None:
    """The process ids that a script has written to a file, None until it says ``done``."""
    text = path.read_text() if path.exists() else ""
    return [int(line) for line in text.split()[:-1]] if text.endswith("done\n") else None


async def until_written(path: Path) -> list[int]:
    for _ in range(500):
        if (pids := written(path)) is not None:
            return pids
        await asyncio.sleep(0.01)
    raise AssertionError(f"{path} was not written")


async def test_a_background_child_that_holds_the_pipe(processes: LocalProcesses) -> None:
    began = time.monotonic()
    result = await processes.run(bash("sleep 100 & echo $!"))
    assert time.monotonic() - began < 5
    assert result.exit_code == 0
    assert "left running" in result.error
    assert not running(int(result.stdout))


@linux
@pytest.mark.parametrize(
    "script",
    [
        "setsid sleep 100 >/dev/null & echo $!; sleep 0.2",
        "(setsid bash -c 'echo $$; exec sleep 100' &); sleep 0.2",
        "(setsid env -i /bin/sh -c 'echo $$; exec sleep 100' &); sleep 0.2",
        "(setsid bash -c 'trap \"\" TERM HUP; echo $$; while :; do sleep 0.1; done' &); sleep 0.2",
    ],
    ids=["setsid", "double fork", "without environment", "deaf"],
)
async def test_nobody_leaves_the_family(processes: LocalProcesses, script: str) -> None:
    result = await processes.run(bash(script))
    assert not running(int(result.stdout))
    assert "was ended" in result.error or "were ended" in result.error


async def test_a_quiet_exit_has_no_remark(processes: LocalProcesses) -> None:
    result = await processes.run(bash("(sleep 0.01; true) & wait; echo x | cat"))
    assert (result.stdout, result.error) == (b"x\n", "")


@linux
async def test_cancelling_a_child_that_ignores_term(
    processes: LocalProcesses, tmp_path: Path
) -> None:
    script = (
        "trap '' TERM; setsid bash -c 'trap \"\" TERM; echo $$ >> pids; sleep 100; :' & "
        "sleep 0.2; echo $$ >> pids; echo done >> pids; sleep 100; :"
    )
    task = asyncio.create_task(processes.run(bash(script)))
    pids = await until_written(tmp_path / "pids")
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 10
    assert [pid for pid in pids if running(pid)] == []


@linux
async def test_a_second_cancel_kills_at_once(processes: LocalProcesses, tmp_path: Path) -> None:
    script = "trap '' TERM; echo $$ > pids; echo done >> pids; sleep 100; :"
    task = asyncio.create_task(processes.run(bash(script)))
    pids = await until_written(tmp_path / "pids")
    task.cancel()
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [pid for pid in pids if running(pid)] == []


async def test_a_timeout_ends_the_whole_group(processes: LocalProcesses) -> None:
    script = "for i in 1 2 3; do (while :; do sleep 0.1; done) & echo $!; done; wait"
    result = await processes.run(bash(script, timeout=0.5))
    assert result.ended == "timeout"
    assert [pid for pid in map(int, result.stdout.split()) if running(pid)] == []


async def test_endless_output_is_bounded(processes: LocalProcesses) -> None:
    result = await processes.run(bash("yes", timeout=0.5, keep=1000))
    assert len(result.stdout) <= 2000
    assert result.omitted > 0
    assert result.stdout[:1000] == b"y\n" * 500


async def test_what_was_kept_and_omitted_add_up(processes: LocalProcesses) -> None:
    result = await processes.run(bash("head -c 50000000 /dev/zero; printf end", keep=4096))
    assert len(result.stdout) == 8192
    assert len(result.stdout) + result.omitted == 50_000_003
    assert result.stdout.endswith(b"\0end")


async def test_there_is_no_terminal(processes: LocalProcesses) -> None:
    result = await processes.run(bash("cat /dev/tty; cat; git --version >/dev/null; echo $PAGER"))
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == b"cat"


async def test_input_that_nobody_reads(processes: LocalProcesses) -> None:
    result = await processes.run(bash("echo x", stdin=b"y" * 1_000_000))
    assert (result.exit_code, result.stdout) == (0, b"x\n")


async def test_a_directory_that_is_not_there(processes: LocalProcesses, tmp_path: Path) -> None:
    result = await processes.run(bash("true", cwd=str(tmp_path / "gone")))
    assert result.ended == "not_started"
    assert "working directory" in result.error


async def test_keys_do_not_reach_children(tmp_path: Path) -> None:
    environ = {
        **os.environ,
        "ANTHROPIC_API_KEY": "hidden-1",
        "SOME_TOKEN": "hidden-2",
        "PIP_PASSWORD": "hidden-3",
        "UV_INDEX_URL": "https://me:hidden-4@example.org",
        "https_proxy": "http://proxy.example:1",
        "LC_TIME": "C",
    }
    processes = LocalProcesses(str(tmp_path), environ, Guard())
    result = await processes.run(bash("env"))
    processes.close()
    assert b"hidden" not in result.stdout
    assert b"https_proxy=http://proxy.example:1" in result.stdout
    assert b"LC_TIME=C" in result.stdout
    assert b"GIT_TERMINAL_PROMPT=0" in result.stdout


async def test_many_at_once(processes: LocalProcesses) -> None:
    results = await asyncio.gather(*(processes.run(bash(f"echo {n}")) for n in range(20)))
    assert [result.stdout for result in results] == [f"{n}\n".encode() for n in range(20)]


async def test_no_descriptor_stays_open(processes: LocalProcesses) -> None:
    await processes.run(bash("true"))
    before = len(os.listdir("/dev/fd"))
    for _ in range(5):
        await processes.run(bash("cat; echo x", stdin=b"z"))
    assert len(os.listdir("/dev/fd")) == before


def wait_for(ask: Callable[[], T], *, seconds: float) -> T:
    """The first answer that is not empty, or the last one."""
    limit = time.monotonic() + seconds
    while not (answer := ask()) and time.monotonic() < limit:
        time.sleep(0.02)
    return answer


DOOMED = """
import asyncio, os, sys
from claw.ports import Command
from claw.workspace.guard import Guard
from claw.workspace.processes import LocalProcesses

async def main():
    processes = LocalProcesses(sys.argv[1], os.environ, Guard())
    scripts = (
        'trap "" TERM; echo $$ >> pids; sleep 100; :',
        "setsid bash -c 'trap \\"\\" TERM HUP; echo $$ >> pids; sleep 100; :' & sleep 100; :",
        "(setsid bash -c 'echo $$ >> pids; sleep 100; :' &); "
        "sleep 0.5; echo done >> pids; sleep 100",
    )
    await asyncio.gather(
        *(processes.run(Command(("bash", "-c", script))) for script in scripts)
    )

asyncio.run(main())
"""


@linux
def test_a_killed_claw_leaves_nobody_behind(tmp_path: Path) -> None:
    claw = subprocess.Popen([sys.executable, "-c", DOOMED, str(tmp_path)], start_new_session=True)
    try:
        pids = wait_for(lambda: written(tmp_path / "pids"), seconds=10) or []
        guards = [
            int(pid)
            for pid in Path(f"/proc/{claw.pid}/task/{claw.pid}/children").read_text().split()
            if b"claw-guard" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        assert len(guards) == 1
        os.kill(guards[0], signal.SIGINT)  # a Ctrl-C must not take the guard away
    finally:
        claw.kill()
        claw.wait()
    assert len(pids) == 3
    wait_for(lambda: not any(map(running, (*pids, *guards))), seconds=2)
    assert [pid for pid in (*pids, *guards) if running(pid)] == []


@linux
async def test_the_guard_leaves_when_it_is_dismissed(tmp_path: Path) -> None:
    guard = Guard()
    processes = LocalProcesses(str(tmp_path), os.environ, guard)
    await processes.run(bash("true"))
    pid = guard.pid or 0
    assert running(pid)
    processes.close()
    assert not running(pid)
