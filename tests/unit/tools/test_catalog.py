from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from claw.errors import ConfigError
from claw.ports import Tool, ToolSet
from claw.testing.conformance import ToolSetSuite, ToolSuite
from claw.testing.doubles import MemoryWorkspace
from claw.tools.catalog import ToolList, builtin_tools
from tests.unit.tools.conftest import Bench


class TestConformance(ToolSetSuite):
    @pytest.fixture(autouse=True)
    def _bench(self, bench: Bench) -> None:
        self._tools = bench.tools

    def make(self) -> ToolSet:
        return self._tools


def of(name: str, good: list[dict[str, Any]], bad: list[dict[str, Any]]) -> type[ToolSuite]:
    class Suite(ToolSuite):
        @pytest.fixture(autouse=True)
        def _bench(self, bench: Bench) -> None:
            (bench.root / "a.txt").write_text("alpha\n")
            self._tools = bench.tools

        def make(self) -> Tool:
            tool = self._tools.get(name)
            assert tool is not None
            return tool

    Suite.good, Suite.bad = good, bad
    return Suite


TestRead = of("Read", [{"path": "a.txt"}], [{}, {"path": 1}])
TestWrite = of("Write", [{"path": "b.txt", "content": "x"}], [{"path": "b.txt"}])
TestEdit = of(
    "Edit",
    [{"path": "a.txt", "old_str": "alpha", "new_str": "beta"}],
    [
        {"path": "a.txt", "old_str": "", "new_str": "x"},
        {"path": "a.txt", "old_str": "x", "new_str": "x"},
    ],
)
TestGlob = of("Glob", [{"pattern": "*"}], [{}, {"pattern": ""}])
TestGrep = of("Grep", [{"pattern": "al"}], [{}, {"pattern": "x", "output_mode": "all"}])
TestBash = of(
    "Bash",
    [{"command": "true"}],
    [{}, {"command": " "}, {"command": "x", "run_in_background": True}],
)
TestTodoWrite = of(
    "TodoWrite",
    [{"todos": [{"content": "x", "status": "pending"}]}, {"todos": []}],
    [{}, {"todos": [{"content": "x", "status": "done"}]}, {"todos": [{"content": " "}]}],
)

ALIASES = {
    "bash": "Bash",
    "read_file": "Read",
    "write_file": "Write",
    "edit_file": "Edit",
    "glob_search": "Glob",
    "grep_search": "Grep",
    "todowrite": "TodoWrite",
}


def test_both_dialects_name_the_tools(bench: Bench) -> None:
    found = {alias: bench.tools.get(alias) for alias in ALIASES}
    assert {alias: tool and tool.spec.name for alias, tool in found.items()} == ALIASES


def test_only_the_named_tools_are_offered(bench: Bench) -> None:
    tools = ToolList(builtin_tools(bench.workspace, bench.processes), only=["GREP_search", "Read"])
    assert [spec.name for spec in tools.specs()] == ["Read", "Grep"]
    assert tools.get("Bash") is None
    assert tools.get("read_file") is not None
    assert ToolList(builtin_tools(bench.workspace, bench.processes), only=[]).specs() == ()
    with pytest.raises(ConfigError, match="Nonsense"):
        ToolList((), only=["Nonsense"])


def test_what_is_offered_is_small_and_valid(bench: Bench) -> None:
    specs = bench.tools.specs()
    for spec in specs:
        Draft202012Validator.check_schema(spec.input_schema)
    text = json.dumps([(s.name, s.description, s.input_schema) for s in specs])
    assert len(text) / 3 < 3000  # tokens, estimated high: half of the fixed prompt's budget


def test_which_tools_may_run_beside_each_other(bench: Bench) -> None:
    assert {s.name for s in bench.tools.specs() if s.read_only} == {"Read", "Glob", "Grep"}


async def test_tools_work_on_any_workspace(bench: Bench) -> None:
    memory = Bench(bench.root, bench.processes)
    memory.tools = ToolList(builtin_tools(MemoryWorkspace({"a.txt": "one\n"}), bench.processes))
    await memory.run("Write", path="b.txt", content="two\n")
    assert "two" in await memory.run("Read", path="b.txt")
    await memory.run("Edit", path="a.txt", old_str="one", new_str="three")
    assert "three" in await memory.run("Read", path="a.txt")
