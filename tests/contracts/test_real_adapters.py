"""The port suites on the real adapters: what a double promises, the machine keeps."""

import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from claw.models.anthropic.client import AnthropicClient
from claw.models.openai_chat.client import OpenAIChatClient
from claw.models.openai_responses.client import OpenAIResponsesClient
from claw.models.transport import HttpTransport
from claw.ports import Disk, Journal, ModelClient
from claw.sessions.blobs import FileBlobs
from claw.sessions.journal import FileJournal
from claw.sessions.load import read_entries
from claw.testing import (
    BlobsSuite,
    ClockSuite,
    DiskSuite,
    FaultyDisk,
    JournalSuite,
    ModelClientSuite,
    ProcessesSuite,
    ScriptReply,
    StrictServer,
    ThinkingSuite,
    WorkspaceSuite,
)
from claw.types.entries import Entry
from claw.workspace.clock import SystemClock
from claw.workspace.disk import SystemDisk
from claw.workspace.files import LocalWorkspace
from claw.workspace.guard import Guard
from claw.workspace.processes import LocalProcesses


class TestAnthropicClient(ThinkingSuite):
    def open(self, replies: Sequence[ScriptReply]) -> AbstractAsyncContextManager[ModelClient]:
        @asynccontextmanager
        async def served() -> AsyncIterator[ModelClient]:
            transport = HttpTransport()
            async with StrictServer([r for r in replies if not callable(r)]) as server:
                yield AnthropicClient(transport, base_url=server.base_url, api_key="k")
                await transport.aclose()

        return served()


class TestChatClient(ModelClientSuite):
    def open(self, replies: Sequence[ScriptReply]) -> AbstractAsyncContextManager[ModelClient]:
        @asynccontextmanager
        async def served() -> AsyncIterator[ModelClient]:
            transport = HttpTransport()
            async with StrictServer([r for r in replies if not callable(r)]) as server:
                yield OpenAIChatClient(transport, base_url=f"{server.base_url}/v1", api_key="k")
                await transport.aclose()

        return served()


class TestResponsesClient(ModelClientSuite):
    def open(self, replies: Sequence[ScriptReply]) -> AbstractAsyncContextManager[ModelClient]:
        @asynccontextmanager
        async def served() -> AsyncIterator[ModelClient]:
            transport = HttpTransport()
            async with StrictServer([r for r in replies if not callable(r)]) as server:
                base_url = f"{server.base_url}/v1"
                yield OpenAIResponsesClient(transport, base_url=base_url, api_key="k")
                await transport.aclose()

        return served()


class TestSystemClock(ClockSuite):
    def make(self) -> SystemClock:
        return SystemClock()


class TestSystemDisk(DiskSuite):
    @pytest.fixture(autouse=True)
    def a_folder(self, tmp_path: Path) -> None:
        self.folder = str(tmp_path)

    def make(self) -> Disk:
        return SystemDisk()


class TestFaultyDisk(TestSystemDisk):
    """Without a fault it is a disk like any other."""

    def make(self) -> Disk:
        return FaultyDisk(SystemDisk())


class TestFileBlobs(BlobsSuite):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "blobs"

    def make(self) -> FileBlobs:
        return FileBlobs(str(self.path), SystemDisk())


class TestFileJournal(JournalSuite):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> Iterator[None]:
        self.path = tmp_path / "session.jsonl"
        self.made: list[FileJournal] = []
        yield
        for journal in self.made:
            journal.close()

    def make(self) -> FileJournal:
        self.made.append(FileJournal(str(self.path), now=lambda: 1.0, disk=SystemDisk()))
        return self.made[-1]

    def entries(self, journal: Journal) -> list[Entry]:
        assert isinstance(journal, FileJournal)
        return [record.entry for record in read_entries(journal.path)]


class TestLocalWorkspace(WorkspaceSuite):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.root = tmp_path / "workspace"

    def make(self, files: Mapping[str, bytes]) -> LocalWorkspace:
        self.root.mkdir(exist_ok=True)
        for name, data in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return LocalWorkspace(str(self.root))


class TestLocalProcesses(ProcessesSuite):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> Iterator[None]:
        self.root = tmp_path
        self.guards: list[Guard] = []
        yield
        for guard in self.guards:
            guard.close()

    def make(self) -> LocalProcesses:
        self.guards.append(Guard())
        return LocalProcesses(str(self.root), os.environ, self.guards[-1])
