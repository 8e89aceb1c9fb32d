"""What is found out about git, and that a repository cannot run programs by it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from claw.ports import Command, ProcessResult
from claw.prompts.environment import Environment, gather_environment

ISOLATED = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


class RealProcesses:
    """Runs commands as they are, and remembers them."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    async def run(
        self, command: Command, on_output: Callable[[bytes], None] | None = None
    ) -> ProcessResult:
        self.commands.append(command)
        return finished(command)


def finished(command: Command) -> ProcessResult:
    done = subprocess.run(
        command.argv,
        cwd=command.cwd,
        env=os.environ | ISOLATED | command.env,
        capture_output=True,
        check=False,
    )
    return ProcessResult(done.returncode, done.stdout, done.stderr)


class DeadProcesses:
    """Every command ends the same, bad way."""

    def __init__(self, result: ProcessResult) -> None:
        self.result = result

    async def run(
        self, command: Command, on_output: Callable[[bytes], None] | None = None
    ) -> ProcessResult:
        return self.result


def git(cwd: Path, *args: str) -> None:
    subprocess.run(
        ["git", *args], cwd=cwd, env=os.environ | ISOLATED, check=True, capture_output=True
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "trunk")
    (tmp_path / "a.txt").write_text("a\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "First words")
    return tmp_path


async def look(cwd: Path) -> Environment:
    return await gather_environment(cwd=str(cwd), date="2026-11-30", processes=RealProcesses())


@needs_git
async def test_a_clean_repository(repository: Path) -> None:
    found = await look(repository)
    assert (found.cwd, found.date) == (str(repository), "2026-11-30")
    assert found.git is not None
    assert (found.git.branch, found.git.changed, found.git.changes) == ("trunk", 0, ())
    assert found.git.commits == (f"{found.git.head} First words",)


@needs_git
async def test_changes_from_a_directory_below(repository: Path) -> None:
    (repository / "sub").mkdir()
    (repository / "a.txt").write_text("changed\n")
    (repository / "sub" / "new file.txt").write_text("x")
    (repository / "staged ü.txt").write_text("x")
    git(repository, "add", "staged ü.txt")
    found = (await look(repository / "sub")).git
    assert found is not None
    assert found.changed == 3
    assert set(found.changes) == {" M a.txt", "A  staged ü.txt", "?? sub/"}


@needs_git
async def test_many_changes_are_counted_and_some_named(repository: Path) -> None:
    for n in range(50):
        (repository / f"n{n}").touch()
    found = (await look(repository)).git
    assert found is not None
    assert found.changed == 50
    assert len(found.changes) == 20


@needs_git
async def test_no_commit_yet_and_no_branch(tmp_path: Path, repository: Path) -> None:
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    git(fresh, "init", "-q", "-b", "trunk")
    found = (await look(fresh)).git
    assert found is not None
    assert (found.branch, found.head, found.commits, found.changed) == ("trunk", "", (), 0)

    git(repository, "checkout", "-q", "--detach")
    found = (await look(repository)).git
    assert found is not None
    assert (found.branch, found.changed) == ("", 1)


@needs_git
@pytest.mark.parametrize(
    "settings",
    [
        {"core.fsmonitor": "{program}"},
        {"core.hooksPath": "hooks"},
        {"filter.evil.clean": "{program}", "filter.evil.smudge": "{program}"},
        {"filter.evil.process": "{program}"},
        {"log.showSignature": "true", "gpg.program": "{program}"},
        {"diff.external": "{program}", "core.pager": "{program}", "pager.log": "true"},
    ],
)
async def test_the_repository_cannot_run_programs(
    repository: Path, settings: dict[str, str]
) -> None:
    trace = repository.parent / f"{repository.name}-ran"
    program = repository / "program"
    program.write_text(f"#!/bin/sh\necho ran >> {trace}\ncat\n")
    program.chmod(0o755)
    (repository / "hooks").mkdir()
    for hook in ("post-index-change", "fsmonitor-watchman"):
        shutil.copy(program, repository / "hooks" / hook)
    for name, value in settings.items():
        git(repository, "config", name, value.format(program=program))
    (repository / ".gitattributes").write_text("*.txt filter=evil diff=evil\n")
    (repository / "a.txt").write_text("b\n")  # the same size: git must look inside
    found = (await look(repository)).git
    assert found is not None
    assert found.commits
    assert not trace.exists()


async def test_outside_of_a_repository_git_is_not_asked(tmp_path: Path) -> None:
    processes = RealProcesses()
    found = await gather_environment(cwd=str(tmp_path), date="d", processes=processes)
    assert found.git is None
    assert processes.commands == []


@pytest.mark.parametrize(
    "result",
    [
        ProcessResult(None, b"", ended="not_started", error="no git"),
        ProcessResult(-9, b"# branch.head x\0", ended="timeout"),
        ProcessResult(128, b"", b"fatal: dubious ownership"),
        ProcessResult(0, b"half", omitted=10),
    ],
)
async def test_a_git_that_does_not_answer_is_left_out(
    tmp_path: Path, result: ProcessResult
) -> None:
    (tmp_path / ".git").mkdir()
    found = await gather_environment(cwd=str(tmp_path), date="d", processes=DeadProcesses(result))
    assert found.git is None


async def test_nonsense_from_git_does_not_fail(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    processes = DeadProcesses(ProcessResult(0, b"1\0u \0? \0# x\0# branch.head\0\xff\0\n"))
    found = await gather_environment(cwd=str(tmp_path), date="d", processes=processes)
    assert found.git is not None
