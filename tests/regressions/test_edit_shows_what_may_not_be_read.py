"""What Edit says shows the file: it needs the right to read it, as to write it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claw.policy.permissions import ModePolicy
from claw.tools.catalog import ToolList, builtin_tools
from claw.tools.plain_search import PlainSearch
from claw.tools.query import Query, Searcher
from claw.tools.ripgrep import Ripgrep, find_ripgrep
from claw.types.permissions import Behavior, Decision, PermissionMode, Rule
from claw.workspace.files import LocalWorkspace
from claw.workspace.guard import Guard
from claw.workspace.processes import LocalProcesses

EDIT = {"old_string": "=", "new_string": "= "}


class Desk:
    def __init__(self, root: Path) -> None:
        self.workspace = LocalWorkspace(str(root))
        self.processes = LocalProcesses(str(root), os.environ, Guard())
        self.tools = ToolList(builtin_tools(self.workspace, self.processes))

    def judge(
        self, name: str, input: dict[str, Any], mode: PermissionMode, *rules: Rule
    ) -> Decision:
        tool = self.tools.get(name)
        assert tool is not None
        facts = self.workspace.observe(tool.effects(tool.parse(input)))
        return ModePolicy(rules).judge(tool.spec, facts, mode, ())


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    (tmp_path / ".env").write_text("TOKEN=hidden\n")
    (tmp_path / "secrets.txt").write_text("key=hidden\n")
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text("key=hidden\n")
    desk = Desk(tmp_path)
    yield desk
    desk.processes.close()


@pytest.mark.parametrize("mode", ["acceptEdits", "bypassPermissions"])
@pytest.mark.parametrize("behavior", ["deny", "ask"])
def test_a_rule_on_reading_holds_for_edit(
    desk: Desk, behavior: Behavior, mode: PermissionMode
) -> None:
    rule = Rule(behavior, "Read", "secrets.txt")
    for path in ("secrets.txt", "./x/../secrets.txt"):
        (Path(desk.workspace.root) / "x").mkdir(exist_ok=True)
        assert desk.judge("Edit", {"file_path": path, **EDIT}, mode, rule).behavior == behavior


def test_private_files_ask_where_edits_are_accepted(desk: Desk) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("Edit", {"file_path": ".env", **EDIT}),
        ("Write", {"file_path": ".env.local", "content": "A=1"}),
        ("Grep", {"pattern": "key", "path": ".aws"}),
        ("Grep", {"pattern": "key", "path": ".aws/credentials"}),
    ]
    for name, input in calls:
        decision = desk.judge(name, input, "acceptEdits")
        assert decision.behavior == "ask", (name, input)
        assert "may hold secrets" in decision.reason
    assert desk.judge("Edit", {"file_path": "secrets.txt", **EDIT}, "acceptEdits").behavior == (
        "allow"
    )


def test_an_allow_rule_for_edit_covers_its_reading(desk: Desk) -> None:
    rule = Rule("allow", "Edit", "./.env")
    call = {"file_path": ".env", **EDIT}
    assert desk.judge("Edit", call, "acceptEdits", rule).behavior == "allow"
    tool = desk.tools.get("Edit")
    assert tool is not None
    facts = desk.workspace.observe(tool.effects(tool.parse(call)))
    assert ModePolicy().offer(tool.spec, facts) == Rule("allow", "Edit", "./.env", "this session")


def test_the_preview_of_a_write_does_not_show_what_was_not_read(desk: Desk) -> None:
    tool = desk.tools.get("Write")
    assert tool is not None
    assert "hidden" not in tool.preview(tool.parse({"file_path": ".env", "content": "A=1\n"}))


@pytest.mark.parametrize("program", ["rg", ""])
async def test_a_search_from_above_leaves_secrets_out(desk: Desk, program: str) -> None:
    root = desk.workspace.root
    (Path(root) / ".ENV").write_text("TOKEN=hidden\n")
    search: Searcher = PlainSearch(desk.workspace, nothing_hidden)
    if program:
        found_at = find_ripgrep(root)
        if found_at is None:
            pytest.skip("ripgrep is not installed")
        search = Ripgrep(found_at, root, desk.processes, nothing_hidden)
    found = await search.lines(Query("hidden", ".", "files_with_matches"))
    assert [hit.path for hit in found.hits] == ["secrets.txt"]
    for path in (".aws", ".aws/credentials"):
        found = await search.lines(Query("hidden", path, "files_with_matches", private=True))
        assert [hit.path for hit in found.hits] == [".aws/credentials"]


def nothing_hidden(path: str) -> bool:
    return False
