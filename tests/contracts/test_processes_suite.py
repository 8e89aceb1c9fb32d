"""The suite for `Processes` can be passed, and it notices what it is there to notice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress

import pytest

from claw.ports import Command, ProcessResult
from claw.testing import conformance


class PlainProcesses:
    """As short as passes: what the suite asks for, on asyncio alone."""

    async def run(
        self, command: Command, on_output: Callable[[bytes], None] | None = None
    ) -> ProcessResult:
        pipe = asyncio.subprocess.PIPE
        try:
            program = await asyncio.create_subprocess_exec(
                *command.argv,
                cwd=command.cwd,
                env={**os.environ, **command.env},
                stdin=pipe,
                stdout=pipe,
                stderr=asyncio.subprocess.STDOUT if command.merge else pipe,
                start_new_session=True,
            )
        except OSError as error:
            return ProcessResult(None, b"", ended="not_started", error=str(error))
        out = bytearray()

        async def read() -> None:
            assert program.stdout is not None
            while data := await program.stdout.read(65536):
                out.extend(data)
                if on_output:
                    on_output(data)

        async def write() -> None:
            assert program.stdin is not None
            program.stdin.write(command.stdin)
            program.stdin.close()

        ended = "exited"
        err = b""
        try:
            async with asyncio.timeout(command.timeout):
                await asyncio.gather(read(), write())
                await program.wait()
        except TimeoutError:
            ended = "timeout"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            _, err = await program.communicate()
        code = program.returncode
        kept, omitted = bytes(out), max(0, len(out) - 2 * command.keep)
        if omitted:
            kept = kept[: command.keep] + kept[-command.keep :]
        if ended == "timeout":
            return ProcessResult(code, kept, err or b"", omitted, "timeout")
        return ProcessResult(code, kept, err or b"", omitted)


class Leaves:
    """Shows a process and does not end it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    async def run(
        self, command: Command, on_output: Callable[[bytes], None] | None = None
    ) -> ProcessResult:
        assert on_output is not None
        on_output(b"%d\n" % self._pid)
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


class TestPlainProcesses(conformance.ProcessesSuite):
    def make(self) -> PlainProcesses:
        return PlainProcesses()


@pytest.fixture
def sleeper():
    with subprocess.Popen(["sleep", "60"]) as program:
        yield program
        program.kill()


async def test_a_process_left_behind_is_noticed(sleeper):
    class LeavesSuite(conformance.ProcessesSuite):
        def make(self) -> Leaves:
            return Leaves(sleeper.pid)

    with pytest.raises(AssertionError, match=f"process {sleeper.pid} still runs"):
        await LeavesSuite().test_a_cancel_leaves_nothing_running()
