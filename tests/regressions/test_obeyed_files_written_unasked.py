"""Accepting edits does not accept files that a tool runs or obeys at the next step."""

from __future__ import annotations

from pathlib import Path

import pytest

from claw.policy.permissions import ModePolicy
from claw.types.effects import ReadPath, WritePath
from claw.types.permissions import Rule
from claw.types.tools import ToolSpec
from claw.workspace.files import LocalWorkspace

WRITE = ToolSpec("Write", "", {})
# fmt: off
OBEYED = [
    ".envrc", ".husky/pre-commit", "sub/.husky/_/x", ".pre-commit-config.yaml", ".npmrc", ".yarnrc",
    ".yarnrc.yml", ".ripgreprc", ".vscode/tasks.json", ".idea/x.xml", "CLAUDE.md", "sub/claude.md",
    "AGENTS.md", ".github/workflows/ci.yml", ".VSCode/tasks.json",
]
# fmt: on
USUAL = ["Makefile", "package.json", "README.md", ".github/CODEOWNERS", "src/workflows/a.yml"]


@pytest.mark.parametrize("path", OBEYED)
def test_obeyed_files_ask(tmp_path: Path, path: str) -> None:
    facts = LocalWorkspace(str(tmp_path)).observe((WritePath(path),))
    decision = ModePolicy().judge(WRITE, facts, "acceptEdits", ())
    assert decision.behavior == "ask"
    assert path in decision.reason
    assert ModePolicy().judge(WRITE, facts, "bypassPermissions", ()).behavior == "allow"
    allow = ModePolicy((Rule("allow", "Write"),))
    assert allow.judge(WRITE, facts, "acceptEdits", ()).behavior == "allow"


@pytest.mark.parametrize("path", USUAL)
def test_other_files_do_not(tmp_path: Path, path: str) -> None:
    facts = LocalWorkspace(str(tmp_path)).observe((WritePath(path), ReadPath("CLAUDE.md")))
    assert ModePolicy().judge(WRITE, facts, "acceptEdits", ()).behavior == "allow"


def test_a_workspace_may_stand_in_such_a_folder(tmp_path: Path) -> None:
    root = tmp_path / ".vscode" / "extension"
    root.mkdir(parents=True)
    facts = LocalWorkspace(str(root)).observe((WritePath("main.ts"),))
    assert ModePolicy().judge(WRITE, facts, "acceptEdits", ()).behavior == "allow"
