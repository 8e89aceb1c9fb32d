"""Bash: one command in one known shell.

The working directory carries over: when the shell exits it reports where it is,
and the next command starts there if that lies inside the workspace (or an added
directory); otherwise, or when the directory is gone, at the root, and the result
says so. A shell that is replaced (``exec``) or whose ``EXIT`` trap is overwritten
reports nothing, and the directory stays what it was.
"""

from __future__ import annotations

import asyncio
import os
import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from claw.errors import ToolFailed
from claw.ports import Command, Processes, ProcessResult, ToolCall, Workspace
from claw.tools.arguments import parse_arguments
from claw.tools.descriptions import description, schema
from claw.tools.terminal import plain_text
from claw.types.effects import Effect, Execute, ReadPath
from claw.types.messages import Text
from claw.types.tools import ToolOutput, ToolSpec

__all__ = ["Bash", "BashArguments"]

_TIMEOUT = 120_000  # milliseconds
_LONGEST = 600_000
_LONGEST_LINE = 64 * 1024  # that is not cut where output is left out
_KEEP = 3 * 1024 * 1024  # bytes of output at each end; several copies exist for a moment
_PROGRESS_EVERY = 0.1  # seconds
_PROGRESS_SIZE = 4000  # bytes shown at a time

# The report goes to a copy of stdout, since the command may redirect its own.
_SCRIPT = (
    "exec {CLAW_OUT}>&1; "
    r"""trap 'builtin printf "\036%s:%s\036" MARK "$PWD" >&"$CLAW_OUT"' EXIT; """
    'CLAW_COMMAND=$1; shift; eval "$CLAW_COMMAND"'
)


class BashArguments(msgspec.Struct, frozen=True):
    command: Annotated[str, Meta(description="The command line or script")]
    timeout: Annotated[
        int, Meta(ge=1, description="Milliseconds, default 120000, at most 600000")
    ] = _TIMEOUT
    description: Annotated[str, Meta(description="What it does, in a few words")] = ""


class Bash:
    def __init__(self, workspace: Workspace, processes: Processes) -> None:
        self._workspace = workspace
        self._processes = processes
        self._cwd = workspace.root
        self.spec = ToolSpec(
            name="Bash",
            description=description("bash"),
            input_schema=schema("bash"),
        )

    def parse(self, input: dict[str, Any]) -> BashArguments:
        if input.get("run_in_background"):
            raise ToolFailed(
                "Commands cannot run in the background yet. Run it without "
                "`run_in_background`, with a `timeout` that is long enough."
            )
        given = {key: value for key, value in input.items() if key != "run_in_background"}
        args = parse_arguments("Bash", BashArguments, given, {"cmd": "command"})
        if not args.command.strip():
            raise ToolFailed("Bash: `command` is blank.")
        if "\0" in args.command:
            raise ToolFailed("Bash: `command` contains a NUL character.")
        return args

    def effects(self, args: BashArguments) -> tuple[Effect, ...]:
        return (Execute(args.command),)

    def preview(self, args: BashArguments) -> str:
        return args.command

    async def run(self, args: BashArguments, call: ToolCall) -> ToolOutput:
        notes: list[str] = []
        report = _Report()
        result = await self._start(args, report, call)
        if result.ended == "not_started" and self._cwd != self._workspace.root:
            notes.append(f"{self._cwd} is gone: run in {self._workspace.root}")
            self._cwd = self._workspace.root
            result = await self._start(args, report, call)
        if result.ended == "not_started":
            raise ToolFailed(f"The command did not start: {result.error}.")
        joined = _joined(result)
        result = replace(result, stdout=b"")  # it may be large: one copy is enough
        output, reported = report.taken_from(joined)
        del joined
        notes += self._follow(reported)
        if result.error:
            notes.append(result.error)
        return _output(plain_text(output), result, args, notes)

    async def _start(self, args: BashArguments, report: _Report, call: ToolCall) -> ProcessResult:
        script = _SCRIPT.replace("MARK", report.mark)
        try:
            args.command.encode()
        except UnicodeEncodeError as error:
            raise ToolFailed("Bash: `command` has characters that cannot be passed on.") from error
        command = Command(
            ("bash", "--noprofile", "--norc", "-c", script, "bash", args.command),
            cwd=self._cwd,
            timeout=min(args.timeout, _LONGEST) / 1000,
            keep=_KEEP,
            merge=True,
        )
        return await self._processes.run(command, _Progress(call, report))

    def _follow(self, reported: str) -> list[str]:
        """Take the directory that the shell ended in over; return what the model must know."""
        if not reported or reported == self._cwd:
            return []
        root = self._workspace.root
        try:
            [seen] = self._workspace.observe((ReadPath(reported),)).observed
        except ToolFailed:
            self._cwd = root
            return [f"the working directory {reported} is unusable: back in {root}"]
        if not seen.inside:
            self._cwd = root
            return [f"{reported} is outside the workspace: the next command starts in {root}"]
        if seen.real == self._cwd:
            return []
        self._cwd = seen.real
        return [f"working directory: {seen.real}"]


class _Report:
    """Where the shell ended, written between marks into its output."""

    def __init__(self) -> None:
        self.mark = os.urandom(8).hex()
        self._pattern = re.compile(rf"\x1e{self.mark}:([^\x1e]*)\x1e".encode())

    def taken_from(self, output: bytes) -> tuple[bytes, str]:
        """The output without the report, and the directory; empty where there was none."""
        found = self._pattern.findall(output)
        return self._pattern.sub(b"", output), found[-1].decode("utf-8", "replace") if found else ""


class _Progress:
    """Shows a running command's output, not more often than an eye can follow."""

    def __init__(self, call: ToolCall, report: _Report) -> None:
        self._call = call
        self._report = report
        self._next = 0.0
        self._waiting = bytearray()

    def __call__(self, data: bytes) -> None:
        self._waiting += data[-_PROGRESS_SIZE:]
        now = asyncio.get_running_loop().time()
        if now < self._next:
            del self._waiting[:-_PROGRESS_SIZE]
            return
        self._next = now + _PROGRESS_EVERY
        shown, _ = self._report.taken_from(bytes(self._waiting))
        self._waiting.clear()
        if shown:
            self._call.progress(plain_text(shown))


def _joined(result: ProcessResult) -> bytes:
    if not result.omitted:
        return result.stdout
    # Only whole lines beside the gap: half a secret could not be known for one.
    kept = result.stdout
    end = kept.rfind(b"\n", max(_KEEP - _LONGEST_LINE, 0), _KEEP) + 1 or _KEEP
    begin = kept.find(b"\n", _KEEP, _KEEP + _LONGEST_LINE) + 1 or _KEEP
    omitted = result.omitted + begin - end
    gap = f"\n[... {omitted:,} bytes omitted ...]\n".encode()
    view = memoryview(kept)
    return b"".join((view[:end], gap, view[begin:]))


def _output(text: str, result: ProcessResult, args: BashArguments, notes: list[str]) -> ToolOutput:
    if result.ended == "timeout":
        seconds = min(args.timeout, _LONGEST) / 1000
        status = f"ended after {seconds:g} s, its timeout"
    elif result.exit_code is not None and result.exit_code < 0:
        status = f"ended by signal {-result.exit_code}"
    else:
        status = f"exit code {result.exit_code}"
    lines = [f"[{line}]" for line in (status, *notes)]
    body = text if text.endswith("\n") or not text else text + "\n"
    failed = result.ended == "timeout" or result.exit_code != 0
    content = (Text(body + "\n".join(lines)),)
    return ToolOutput(content, is_error=failed, omitted=result.omitted)
