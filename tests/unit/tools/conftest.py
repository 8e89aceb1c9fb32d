"""The built-in tools over a real directory and real processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claw.ports import ToolCall
from claw.tools.catalog import ToolList, builtin_tools
from claw.types.messages import text_of
from claw.types.tools import ToolOutput
from claw.workspace.files import LocalWorkspace
from claw.workspace.guard import Guard
from claw.workspace.processes import LocalProcesses


class Bench:
    """``run`` does what a turn does with a call that is allowed."""

    def __init__(self, root: Path, processes: LocalProcesses) -> None:
        self.root = root
        self.workspace = LocalWorkspace(str(root))
        self.processes = processes
        self.tools = ToolList(builtin_tools(self.workspace, processes))
        self.shown: list[str] = []

    async def output(self, name: str, **input: Any) -> ToolOutput:
        tool = self.tools.get(name)
        assert tool is not None
        args = tool.parse(input)
        self.workspace.observe(tool.effects(args))
        tool.preview(args)
        return await tool.run(args, ToolCall("call", self.shown.append))

    async def run(self, name: str, **input: Any) -> str:
        return text_of((await self.output(name, **input)).content)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    root = tmp_path / "work"
    root.mkdir()
    processes = LocalProcesses(str(root), os.environ, Guard())
    yield Bench(root, processes)
    processes.close()
