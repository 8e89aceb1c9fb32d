"""Parts of a replay that are today's: real tools, hooks, rules, in a copy of the workspace."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Literal

import msgspec

from claw.app.today import Today, today
from claw.app.wishes import Wishes
from claw.errors import ConfigError, ToolFailed
from claw.policy.hooks.runner import CommandHooks
from claw.ports import Blobs, HookRunner, Tool, ToolCall, ToolSet, Workspace
from claw.recordings.play import Tape
from claw.tools.catalog import ToolList, builtin_tools
from claw.types.effects import Effect, WritePath
from claw.types.entries import Checkpointed, Entry
from claw.types.hooks import HookOutcome, HookPayload
from claw.types.tools import ToolOutput, ToolSpec
from claw.workspace.clock import SystemClock
from claw.workspace.files import LocalWorkspace
from claw.workspace.guard import Guard
from claw.workspace.processes import LocalProcesses

__all__ = ["RUN", "Live", "LiveHooks", "LiveTools", "Part", "Place"]

Part = Literal["tools", "hooks", "policy", "prompt"]
RUN: frozenset[Part] = frozenset({"tools", "hooks"})
"""Parts that may change files."""
COPIED = "claw-replay-"


class Live(msgspec.Struct, frozen=True):
    """Which parts are today's. ``env`` and ``settings_file`` say where settings are.

    Tools and hooks run in a copy of the workspace, or in the workspace itself with
    ``in_place``. With ``goes_on`` a difference does not end the replay. ``cwd`` stands for
    the recorded workspace where that does not exist on this machine; None is then the current
    directory, but not for tools and hooks: what they change has to be named.
    """

    parts: frozenset[Part] = frozenset()
    in_place: bool = False
    goes_on: bool = False
    settings_file: str | None = None
    env: Mapping[str, str] = {}
    cwd: str | None = None


class Place:
    """Where live parts work: ``root``; and what today's settings come to there."""

    def __init__(self, live: Live, recorded_cwd: str, stack: ExitStack) -> None:
        self.live = live
        self.recorded_cwd = recorded_cwd
        self.source = _source(live, recorded_cwd)
        self.root = self.source
        self.copied = bool(live.parts & RUN) and not live.in_place
        if self.copied:
            _refuse_all_there_is(self.source, live.env)
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
        if not self.copied:
            return
        seen: set[str] = set()
        for entry in entries:
            if not isinstance(entry, Checkpointed) or entry.path in seen:
                continue
            seen.add(entry.path)
            if entry.secret:
                continue  # as it was it is nowhere
            relative = os.path.relpath(entry.path, self.recorded_cwd)
            if relative.startswith(".."):
                continue
            path = os.path.join(self.root, relative)
            if not _is_beneath(os.path.realpath(path), self.root):  # by a link: not ours
                continue
            self._put(path, entry, blobs)

    def _put(self, path: str, entry: Checkpointed, blobs: Blobs) -> None:
        if entry.before is not None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(blobs.get(entry.before))
            os.chmod(path, entry.mode)
        elif os.path.lexists(path):
            os.unlink(path)
            # A directory with nothing else in it was made for it, as far as anyone can tell.
            with suppress(OSError):
                while (path := os.path.dirname(path)) != self.root:
                    os.rmdir(path)


def _source(live: Live, recorded: str) -> str:
    """The workspace of this machine. Raises ``ConfigError`` where nobody named it."""
    if os.path.isdir(recorded):
        return os.path.realpath(recorded)
    if live.cwd is None and live.parts & RUN:
        raise ConfigError(
            f"the recorded workspace {recorded} does not exist here",
            hint="Name the directory that stands for it: `--cwd DIR`.",
        )
    return os.path.realpath(live.cwd or ".")


def _refuse_all_there_is(source: str, env: Mapping[str, str]) -> None:
    if source in ("/", os.path.realpath(env.get("HOME") or "/")):
        raise ConfigError(
            f"the workspace of this session is {source}: too much for a copy",
            hint="`--in-place` works without a copy.",
        )


def _is_beneath(path: str, root: str) -> bool:
    return path.startswith(root + os.sep)


def _copy(source: str, target: str) -> None:
    def left_out(folder: str, names: list[str]) -> list[str]:
        """What is no file (sockets, pipes, devices), and links by which the copy could be left."""
        return [name for name in names if not _can_be_copied(os.path.join(folder, name), source)]

    try:
        shutil.copytree(source, target, symlinks=True, ignore=left_out)
    except (OSError, shutil.Error) as error:
        raise ConfigError(
            f"cannot copy the workspace {source}: {error}",
            hint="`--in-place` works without a copy.",
        ) from error


def _can_be_copied(path: str, source: str) -> bool:
    if os.path.islink(path):
        real = os.path.realpath(path)
        return not os.path.isabs(os.readlink(path)) and _is_beneath(real, source)
    return os.path.isfile(path) or os.path.isdir(path)


class LiveTools:
    """Implements ``ToolSet``: today's tools under the recorded ``specs``.

    A tool that there is no more gives what was recorded (``played``). Files are written
    beneath the root of ``only`` and nowhere else, where that is given.
    """

    def __init__(
        self,
        tape: Tape,
        played: ToolSet,
        real: ToolSet,
        paths: tuple[str, str],
        only: Workspace | None,
    ) -> None:
        self._tape, self._played, self._real, self._paths = tape, played, real, paths
        self._only = only

    def specs(self) -> tuple[ToolSpec, ...]:
        return self._played.specs()

    def get(self, name: str) -> Tool | None:
        played = self._played.get(name)
        real = None if played is None else self._real.get(played.spec.name)
        return played if real is None else _LiveTool(self._tape, real, self._paths, self._only)


class _LiveTool:
    def __init__(
        self, tape: Tape, real: Tool, paths: tuple[str, str], only: Workspace | None
    ) -> None:
        self.spec = real.spec
        self._tape, self._real, self._paths, self._only = tape, real, paths, only

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
        self._stay_inside(self._real.effects(args))
        return await self._real.run(args, call)

    def _stay_inside(self, effects: Sequence[Effect]) -> None:
        if self._only is None:
            return
        for seen in self._only.observe(effects).observed:
            if isinstance(seen.effect, WritePath) and not seen.inside:
                raise ToolFailed(f"the replay works in a copy, and {seen.real} is not in it")


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
