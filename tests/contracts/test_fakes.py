"""The ports in memory keep the ports' promises."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from claw.errors import ToolFailed
from claw.models.scripted import PlainReply, ScriptedModel
from claw.ports import (
    Approver,
    Blobs,
    Clock,
    HookRunner,
    Journal,
    ModelClient,
    Tool,
    ToolCall,
    ToolSet,
    Workspace,
)
from claw.testing import conformance
from claw.testing.clock import FakeClock
from claw.testing.doubles import (
    AllowAll,
    FakeHooks,
    MemoryBlobs,
    MemoryJournal,
    MemoryWorkspace,
    NoHooks,
    ScriptedApprover,
    ToolList,
)
from claw.types.effects import Effect, ReadPath
from claw.types.entries import Entry
from claw.types.hooks import HookOutcome
from claw.types.permissions import Answer
from claw.types.tools import ToolOutput, ToolSpec


@dataclass(frozen=True)
class LookTool:
    """The smallest real tool: a named path in a workspace."""

    workspace: Workspace
    name: str = "Look"
    aliases: tuple[str, ...] = ("look_at",)

    @property
    def spec(self) -> ToolSpec:
        schema = {"type": "object", "properties": {"path": {"type": "string"}}}
        return ToolSpec(self.name, "Looks at a file.", schema, self.aliases, read_only=True)

    def parse(self, input: dict[str, Any]) -> str:
        path = input.get("path")
        if not isinstance(path, str):
            raise ToolFailed("`path` must be a text")
        return path

    def effects(self, args: str) -> tuple[Effect, ...]:
        return (ReadPath(args),)

    def preview(self, args: str) -> str:
        return args

    async def run(self, args: str, call: ToolCall) -> ToolOutput:
        return ToolOutput.of(self.workspace.read(args, limit=1000).data.decode())


class TestScriptedModel(conformance.ThinkingSuite):
    @asynccontextmanager
    async def open(self, replies: Sequence[PlainReply]) -> AsyncIterator[ModelClient]:
        model = ScriptedModel(replies)
        yield model
        model.assert_finished()


class TestMemoryJournal(conformance.JournalSuite):
    def make(self) -> Journal:
        return MemoryJournal()

    def entries(self, journal: Journal) -> Sequence[Entry]:
        assert isinstance(journal, MemoryJournal)
        return journal.entries


class TestMemoryBlobs(conformance.BlobsSuite):
    def make(self) -> Blobs:
        return MemoryBlobs()


class TestFakeClock(conformance.ClockSuite):
    def make(self) -> Clock:
        return FakeClock()


class TestMemoryWorkspace(conformance.WorkspaceSuite):
    def make(self, files: Mapping[str, bytes]) -> Workspace:
        return MemoryWorkspace(files)


class TestToolList(conformance.ToolSetSuite):
    def make(self) -> ToolSet:
        files = MemoryWorkspace()
        return ToolList([LookTool(files), LookTool(files, "Peek", ("peek_at", "Glance"))])


class TestLookTool(conformance.ToolSuite):
    good = ({"path": "a.txt"},)
    bad = ({}, {"path": 1})

    def make(self) -> Tool:
        return LookTool(MemoryWorkspace({"a.txt": "text"}))


class TestAllowAll(conformance.ApproverSuite):
    def make(self) -> Approver:
        return AllowAll()


class TestScriptedApprover(conformance.ApproverSuite):
    def make(self) -> Approver:
        return ScriptedApprover([Answer(False, "not now"), Answer(True)])


class TestNoHooks(conformance.HookRunnerSuite):
    def make(self) -> HookRunner:
        return NoHooks()


class TestFakeHooks(conformance.HookRunnerSuite):
    def make(self) -> HookRunner:
        return FakeHooks({"Stop": HookOutcome("denied", "go on"), "PreToolUse": _echo})


def _echo(payload: Any) -> HookOutcome:
    return HookOutcome(updated_input=payload.fields["tool_input"])
