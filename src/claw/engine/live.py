"""Parts of a replay that are today's: real tools, hooks, rules, in a copy of the workspace."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Literal

import msgspec

from claw.app.today import Today, today
from claw.app.wishes import Wishes
from claw.errors import ConfigError
from claw.policy.hooks.runner import CommandHooks
from claw.ports import Blobs, HookRunner, Tool, ToolCall, ToolSet, Workspace
from claw.recordings.play import Tape
from claw.tools.catalog import ToolList, builtin_tools
from claw.types.effects import Effect
from claw.types.entries import Checkpointed, Entry
from claw.types.hooks import HookOutcome, HookPayload
from claw.types.tools import ToolOutput, ToolSpec
from claw.workspace.clock import SystemClock
from claw.workspace.files import LocalWorkspace
from claw.workspace.guard import Guard
from claw.workspace.processes import LocalProcesses

__all__ = ["Live", "LiveHooks", "LiveTools", "Part", "Place"]

Part = Literal["tools", "hooks", "policy", "prompt"]
COPIED = "claw-replay-"


class Live(msgspec.Struct, frozen=True):
    """Which parts are today's. ``env`` and ``settings_file`` say where settings are.

    Tools and hooks run in a copy of the workspace, or in the workspace itself with
    ``in_place``. With ``goes_on`` a difference does not end the replay. ``cwd`` is the
    workspace where the recorded one does not exist on this machine.
    """

    parts: frozenset[Part] = frozenset()
    in_place: bool = False
    goes_on: bool = False
    settings_file: str | None = None
    env: Mapping[str, str] = {}
    cwd: str = "."


class Place:
    """Where live parts work: ``root``; and what today's settings come to there."""

    def __init__(self, live: Live, recorded_cwd: str, stack: ExitStack) -> None:
        self.live = live
        self.recorded_cwd = recorded_cwd
        self.source = os.path.realpath(recorded_cwd if os.path.isdir(recorded_cwd) else live.cwd)
        self.root = self.source
        copies = live.parts & {"tools", "hooks"} and not live.in_place
        if copies:
            scratch = os.path.realpath(tempfile.mkdtemp(prefix=COPIED))
            stack.callback(shutil.rmtree, scratch, ignore_errors=True)
            self.root = os.path.join(scratch, os.path.basename(self.source) or "workspace")
            _copy(self.source, self.root)
        self._stack = stack
        self._processes: LocalProcesses | None = None

    def today(self, specs: Sequence[ToolSpec]) -> Today:
        """Raises ``ConfigError``."""
        wishes = Wishes(cwd=self.source, settings_file=self.live.settings_file, env=self.live.env)
        return today(wishes, specs)

    def processes(self, added: Mapping[str, str]) -> LocalProcesses:
        if self._processes is None:
            self._processes = LocalProcesses(self.root, self.live.env, Guard(), added=added)
            self._stack.callback(self._processes.close)
        return self._processes

    def workspace(self) -> LocalWorkspace:
        return LocalWorkspace(self.root, home=self.live.env.get("HOME", ""))

    def tools(self, found: Today, workspace: Workspace) -> ToolList:
        processes = self.processes(found.env)
        return ToolList(builtin_tools(workspace, processes, hidden=found.policy.hides))

    def hooks(self, found: Today, session_id: str, path: str, specs: Sequence[ToolSpec]) -> Any:
        return CommandHooks(
            found.hooks,
            self.processes(found.env),
            session_id=session_id,
            transcript_path=path,
            cwd=self.root,
            clock=SystemClock(),
            project_dir=self.root,
            specs=specs,
        )

    def restore(self, entries: Iterable[Entry], blobs: Blobs) -> None:
        """Give the copy the files that the session changed, as they were before it did."""
        if self.root == self.source:
            return
        seen: set[str] = set()
        for entry in entries:
            if not isinstance(entry, Checkpointed) or entry.path in seen:
                continue
            seen.add(entry.path)
            relative = os.path.relpath(entry.path, self.recorded_cwd)
            if relative.startswith(".."):
                continue
            path = os.path.join(self.root, relative)
            if entry.before is None:
                if os.path.lexists(path):
                    os.unlink(path)
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(blobs.get(entry.before))
            os.chmod(path, entry.mode)


def _copy(source: str, target: str) -> None:
    def special(folder: str, names: list[str]) -> list[str]:
        """Sockets, pipes and devices are not copied."""
        paths = ((name, os.path.join(folder, name)) for name in names)
        return [
            n for n, p in paths if not (os.path.islink(p) or os.path.isfile(p) or os.path.isdir(p))
        ]

    try:
        shutil.copytree(source, target, symlinks=True, ignore=special)
    except (OSError, shutil.Error) as error:
        raise ConfigError(
            f"cannot copy the workspace {source}: {error}",
            hint="`--in-place` works without a copy.",
        ) from error


class LiveTools:
    """Implements ``ToolSet``: today's tools under the recorded ``specs``.

    A tool that there is no more gives what was recorded (``played``).
    """

    def __init__(self, tape: Tape, played: ToolSet, real: ToolSet, paths: tuple[str, str]) -> None:
        self._tape, self._played, self._real, self._paths = tape, played, real, paths

    def specs(self) -> tuple[ToolSpec, ...]:
        return self._played.specs()

    def get(self, name: str) -> Tool | None:
        played = self._played.get(name)
        real = None if played is None else self._real.get(played.spec.name)
        return played if real is None else _LiveTool(self._tape, real, self._paths)


class _LiveTool:
    def __init__(self, tape: Tape, real: Tool, paths: tuple[str, str]) -> None:
        self.spec = real.spec
        self._tape, self._real, self._paths = tape, real, paths

    def parse(self, input: dict[str, Any]) -> Any:
        self._tape.call_of(input)
        return self._real.parse(_moved(input, *self._paths))

    def effects(self, args: Any) -> tuple[Effect, ...]:
        return self._real.effects(args)

    def preview(self, args: Any) -> str:
        return ""

    async def run(self, args: Any, call: ToolCall) -> ToolOutput:
        if self._tape.halts("tools"):  # it was interrupted then
            await self._tape.end_here()
        return await self._real.run(args, call)


def _moved(value: Any, old: str, new: str) -> Any:
    """With the paths of the recorded workspace in the one that is worked in."""
    match value:
        case str():
            return value.replace(old, new)
        case list():
            return [_moved(item, old, new) for item in value]
        case dict():
            return {key: _moved(item, old, new) for key, item in value.items()}
        case _:
            return value


class LiveHooks:
    """Implements ``HookRunner``: today's hooks, in a turn that is interrupted where it was."""

    def __init__(self, tape: Tape, real: HookRunner) -> None:
        self._tape, self._real = tape, real

    async def fire(self, payload: HookPayload) -> HookOutcome:
        await self._tape.before_hooks(payload)
        return await self._real.fire(payload)
