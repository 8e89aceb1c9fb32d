"""A repository that makes git wait delayed the start by seconds."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from claw.prompts.environment import gather_environment
from claw.workspace.files import LocalWorkspace
from claw.workspace.git_directory import linked_git_directory
from claw.workspace.guard import Guard
from claw.workspace.processes import LocalProcesses


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
async def test_a_head_that_is_a_pipe(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    for folder in ("objects", "refs"):
        (git / folder).mkdir(parents=True)
    os.mkfifo(git / "HEAD")
    processes = LocalProcesses(str(tmp_path), os.environ, Guard())
    began = time.monotonic()
    found = await gather_environment(cwd=str(tmp_path), date="2026-01-01", processes=processes)
    took = time.monotonic() - began
    processes.close()
    assert found.git is None
    assert took < 20


def test_claw_itself_never_waits_for_a_pipe(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    os.mkfifo(data / "commondir")
    root = tmp_path / "work"
    root.mkdir()
    (root / ".git").write_text(f"gitdir: {data}\n")
    assert linked_git_directory(str(root)) == str(data)
    LocalWorkspace(str(root)).read(".git", limit=1000)
