"""Programs that lie in the workspace were run in place of claw's own and the system's."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from claw.ports import Command
from claw.tools.ripgrep import find_ripgrep
from claw.workspace.environment import child_environment
from claw.workspace.guard import Guard
from claw.workspace.processes import LocalProcesses
from claw.workspace.programs import find_program


def plant(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\necho planted\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    for name in ("bash", "git", "rg", "tool"):
        plant(root, name)
        plant(root / "bin", name)
    return root


@pytest.fixture
async def processes(root: Path) -> AsyncIterator[LocalProcesses]:
    path = os.pathsep.join([".", "", "bin", str(root / "bin"), *os.get_exec_path()])
    local = LocalProcesses(str(root), {**os.environ, "PATH": path}, Guard())
    yield local
    local.close()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (".:/usr/bin", "/usr/bin"),
        (":/usr/bin:", "/usr/bin"),
        ("bin:../x:/a:/b", "/a:/b"),
        (".", os.defpath),
        ("", os.defpath),
    ],
)
def test_children_get_absolute_entries_only(given: str, kept: str) -> None:
    assert child_environment({"PATH": given})["PATH"] == kept


async def test_the_shell_is_not_one_of_the_workspace(processes: LocalProcesses) -> None:
    result = await processes.run(Command(("bash", "-c", "echo real")))
    assert result.stdout == b"real\n"


async def test_a_command_still_finds_what_the_users_path_has_in_the_workspace(
    processes: LocalProcesses,
) -> None:
    result = await processes.run(Command(("bash", "-c", "tool")))
    assert result.stdout == b"planted\n"


async def test_a_program_that_only_the_workspace_has_is_not_found(
    processes: LocalProcesses,
) -> None:
    result = await processes.run(Command(("tool",)))
    assert result.ended == "not_started"
    assert "tool was not found" in result.error


def test_links_into_and_out_of_the_workspace_do_not_count(root: Path, tmp_path: Path) -> None:
    outside = plant(tmp_path / "outside", "real")
    (root / "bin" / "out").symlink_to(outside)
    (tmp_path / "outside" / "in").symlink_to(root / "tool")
    (tmp_path / "way").symlink_to(root / "bin")
    path = f"{root}/bin:{tmp_path}/outside:{tmp_path}/way"
    assert find_program("out", path, str(root)) is None
    assert find_program("in", path, str(root)) is None
    assert find_program("tool", path, str(root)) is None
    assert find_program("real", path, str(root)) == str(outside)
    assert find_program("tool", path, "/") == f"{root}/bin/tool"  # there is no outside


def test_the_search_program_is_not_one_of_the_workspace(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f".:bin:{root}:{root}/bin")
    monkeypatch.chdir(root)
    found = find_ripgrep(str(root))
    assert found is None or not found.startswith((str(root), ".", "bin"))
