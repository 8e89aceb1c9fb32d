"""Processes: each its own session, killed as a family, never left behind.

A command is over when its process exits, not when its pipes close. Whatever it
started is ended with it, whether it stayed in the process group or not.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Literal

from msgspec.structs import replace

from claw.ports import Command, ProcessResult
from claw.workspace.descent import Process, adopt_orphans, carries, family, own_children, process
from claw.workspace.environment import child_environment
from claw.workspace.guard import MARK_VARIABLE, Guard
from claw.workspace.pipes import Feed, Output
from claw.workspace.programs import find_program

__all__ = ["LocalProcesses"]

# Seconds.
_DRAIN = 0.2  # for output that is still on its way after the exit
_GRACE_TIMEOUT = 2.0  # between TERM and KILL
_GRACE_CANCELLED = 0.15
_GRACE_LEFTOVER = 0.15
_GIVE_UP = 0.5  # after KILL; only a process that hangs in the kernel takes longer


class LocalProcesses:
    """``ports.Processes`` on this machine.

    ``root`` is where commands run unless they say otherwise. Of ``environ`` they
    see what ``child_environment`` lets through. Call ``close`` at the end. The program
    itself is looked for outside of ``root`` (``find_program``); what a command then
    starts is found by its PATH, a virtual environment in the workspace included.

    A command that exits by itself while processes of its own still run has them
    ended too; ``ProcessResult.error`` then says so.
    """

    def __init__(
        self,
        root: str,
        environ: Mapping[str, str],
        guard: Guard,
        *,
        added: Mapping[str, str] | None = None,
        owns_process: bool = False,
    ) -> None:
        """``added`` is what the user wants children to see besides, whatever its names.

        ``owns_process``: whatever becomes a child of this process came from a command,
        so also what hid its origin is ended. True for a program of its own, not where
        the host may have children in sessions of their own.
        """
        self._root = root
        self._environ = child_environment(environ) | dict(added or {})
        self._outer_mark = environ.get(MARK_VARIABLE, "")
        self._guard = guard
        self._owns_process = owns_process and os.getpid() != 1  # init adopts strangers
        self._inherited: frozenset[int] = frozenset()
        self._count = 0
        self._leaders: set[int] = set()

    async def run(
        self, command: Command, on_output: Callable[[bytes], None] | None = None
    ) -> ProcessResult:
        if self._count == 0:
            self._inherited = frozenset(own_children())  # whoever became claw left them
            adopt_orphans()
        self._count += 1
        # A claw inside a claw's command keeps the outer mark beside its own.
        mark = f"{self._guard.mark}-{self._count};"
        environ = {**self._environ, **command.env, MARK_VARIABLE: self._outer_mark + mark}
        cwd = command.cwd or self._root
        program = find_program(command.argv[0], environ["PATH"], self._root)
        if program is None:
            error = f"{command.argv[0]} was not found on the PATH outside of the workspace"
            return ProcessResult(None, b"", ended="not_started", error=error)
        try:
            self._guard.start(self._environ)
            command = replace(command, argv=(program, *command.argv[1:]))
            is_ours = partial(self._came_from, mark)
            child = _Child(command, cwd, environ, is_ours, on_output)
        except (OSError, ValueError) as problem:
            error = _why(problem, command.argv[0], cwd)
            return ProcessResult(None, b"", ended="not_started", error=error)
        self._leaders.add(child.pid)
        self._guard.watch(child.pid)
        try:
            return await self._attend(child, command.timeout)
        finally:
            self._guard.forget(child.pid)
            self._leaders.discard(child.pid)
            child.close()

    def close(self) -> None:
        """End what commands left behind, and dismiss the guard; no command may be running.

        Blocks where somebody is left: for ``_GRACE_LEFTOVER`` and a few milliseconds.
        """
        for number, seconds in ((signal.SIGTERM, _GRACE_LEFTOVER), (signal.SIGKILL, _GIVE_UP)):
            limit = time.monotonic() + seconds
            while self._signal_strays(number) and time.monotonic() < limit:
                time.sleep(0.005)
        self._guard.close()

    async def _attend(self, child: _Child, timeout: float | None) -> ProcessResult:
        try:
            try:
                async with asyncio.timeout(timeout):
                    await child.exited()
            except TimeoutError:
                await child.end(_GRACE_TIMEOUT)
                await child.drain(_DRAIN)
                return child.result("timeout")
            await child.drain(_DRAIN)
            if not self._has_leftovers(child):
                return child.result("exited")
            left = sum(p.alive for p in child.family() if p.pid != child.pid)
            await child.end(_GRACE_LEFTOVER)
            await child.drain(0)
            return child.result("exited", _left_running(left) if left else "")
        except asyncio.CancelledError:
            await _end_cancelled(child)
            raise

    def _has_leftovers(self, child: _Child) -> bool:
        """Whether to look closer: a few microseconds for the usual case, nobody there."""
        if not child.drained:
            return True
        strangers = set(own_children()) - self._leaders - {self._guard.pid}
        return any(
            found is not None
            and (child.pid in (found.session, found.group) or child.is_ours(found))
            for found in map(process, strangers)
        )

    def _came_from(self, mark: str, found: Process) -> bool:
        """Whether a child of this process came from the command with this mark."""
        if found.alive and carries(found.pid, mark):
            return True
        # Whose it is cannot be told while other commands run: the last one ends it.
        return len(self._leaders) <= 1 and self._is_stray(found)

    def _is_stray(self, found: Process) -> bool:
        """A command cannot enter this process's session: who is in it was started elsewhere."""
        known = self._leaders | self._inherited | {self._guard.pid}
        return self._owns_process and found.pid not in known and found.session != os.getsid(0)

    def _signal_strays(self, number: signal.Signals) -> bool:
        """Signal strays and their descendants, bury the dead; whether any are left."""
        if not self._owns_process or self._guard.pid is None:
            return False
        strays = family(-1, self._is_stray)
        for stray in strays:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(stray.pid, number)
            with suppress(ChildProcessError):
                os.waitpid(stray.pid, os.WNOHANG)
        return bool(strays)


async def _end_cancelled(child: _Child) -> None:
    """TERM, a moment, KILL; a second cancellation meanwhile means KILL at once."""
    try:
        await child.end(_GRACE_CANCELLED)
    except asyncio.CancelledError:
        child.end_now()
        raise


class _Child:
    """A started command. It stays unreaped until ``result``, so that its id stays its own."""

    def __init__(
        self,
        command: Command,
        cwd: str,
        environ: Mapping[str, str],
        is_ours: Callable[[Process], bool],
        on_output: Callable[[bytes], None] | None,
    ) -> None:
        self.is_ours = is_ours
        self._loop = asyncio.get_running_loop()
        self._popen = subprocess.Popen(
            command.argv,
            stdin=subprocess.PIPE if command.stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if command.merge else subprocess.PIPE,
            cwd=cwd,
            env=environ,
            start_new_session=True,
            bufsize=0,
        )
        self.pid = self._popen.pid
        self._exit: asyncio.Future[None] = self._loop.create_future()
        self._seen: set[int] = set()
        assert self._popen.stdout is not None
        self._stdout = Output(self._popen.stdout, command.keep, on_output)
        self._outputs = [self._stdout]
        if self._popen.stderr is not None:
            self._outputs.append(Output(self._popen.stderr, command.keep, None))
        self._feed = Feed(self._popen.stdin, command.stdin) if self._popen.stdin else None
        self._pidfd = _open_pidfd(self.pid)
        if self._pidfd is not None:
            self._loop.add_reader(self._pidfd, self._note_exit)
        else:
            self._ask_again(0.001)

    @property
    def drained(self) -> bool:
        """Whether nobody holds the output pipes any more."""
        return all(output.closed.done() for output in self._outputs)

    async def exited(self) -> None:
        """Wait for the process itself."""
        await asyncio.shield(self._exit)

    async def drain(self, seconds: float) -> None:
        """Take what is still in the pipes; wait for more at most ``seconds``."""
        for output in self._outputs:
            output.take_rest()
        waiting = [output.closed for output in self._outputs if not output.closed.done()]
        if waiting and seconds > 0:
            await asyncio.wait(waiting, timeout=seconds)

    async def end(self, grace: float) -> None:
        """TERM, up to ``grace`` seconds, KILL, and wait until nobody is left (bounded)."""
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)
        if not await self._gone(grace):
            self._signal(signal.SIGKILL)
            await self._gone(_GIVE_UP)
        self._finish_off()

    def end_now(self) -> None:
        """KILL without a grace; blocks until nobody is left, a few milliseconds."""
        limit = time.monotonic() + _GIVE_UP
        self._signal(signal.SIGKILL)
        while self._anybody_alive() and time.monotonic() < limit:
            time.sleep(0.002)
            self._signal(signal.SIGKILL)
        self._finish_off()

    def family(self) -> list[Process]:
        found = family(self.pid, self.is_ours)
        self._seen.update(p.pid for p in found)
        return found

    def result(self, ended: Literal["exited", "timeout"], error: str = "") -> ProcessResult:
        stdout, omitted = self._stdout.joined()
        stderr = self._outputs[1].joined()[0] if len(self._outputs) > 1 else b""
        return ProcessResult(self._popen.poll(), stdout, stderr, omitted, ended, error)

    def close(self) -> None:
        for output in self._outputs:
            output.close()
        if self._feed is not None:
            self._feed.close()
        self._drop_pidfd()
        self._exit.cancel()
        self._popen.poll()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        for member in self.family():
            if member.alive and member.group != self.pid:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(member.pid, number)

    async def _gone(self, seconds: float) -> bool:
        limit = self._loop.time() + seconds
        pause = 0.002
        while self._anybody_alive():
            if self._loop.time() >= limit:
                return False
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        return True

    def _anybody_alive(self) -> bool:
        return not _has_exited(self._popen) or any(p.alive for p in self.family())

    def _finish_off(self) -> None:
        """Where /proc does not tell who is left, the group still is; then bury the orphans."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        for pid in self._seen - {self.pid}:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)

    def _note_exit(self) -> None:
        self._drop_pidfd()
        if not self._exit.done():
            self._exit.set_result(None)

    def _ask_again(self, pause: float) -> None:
        """Where there is no pidfd (not Linux): ask, less and less often."""
        if self._exit.done():
            return
        if _has_exited(self._popen):
            self._exit.set_result(None)
        else:
            self._loop.call_later(pause, self._ask_again, min(pause * 1.5, 0.02))

    def _drop_pidfd(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None


def _open_pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _has_exited(popen: subprocess.Popen[bytes]) -> bool:
    if popen.returncode is not None:
        return True
    if not hasattr(os, "waitid"):
        return popen.poll() is not None
    return os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _left_running(count: int) -> str:
    if count == 1:
        return "a process that it left running was ended"
    return f"{count} processes that it left running were ended"


def _why(error: Exception, program: str, cwd: str) -> str:
    if not os.path.isdir(cwd):
        return f"the working directory {cwd} does not exist"
    if isinstance(error, FileNotFoundError):
        return f"{program} was not found"
    return f"{program} could not be started: {error}"
