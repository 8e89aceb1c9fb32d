"""Facts about the place where the agent works, git's included."""

from __future__ import annotations

import asyncio
import os

import msgspec

from claw.ports import Command, Processes
from claw.prompts.project import project_root

__all__ = ["Environment", "GitContext", "gather_environment"]

_TIMEOUT = 0.7  # seconds that git may delay the start
_MAX_CHANGES = 20
_MAX_WIDTH = 200
_COMMITS = 5

# A repository may name programs that git runs: none of them is wanted for a look at its state.
_GIT = (
    "git",
    "--no-pager",
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "log.showSignature=false"),
    *("-c", "protocol.allow=never"),
)
_GIT_ENV = {
    "LC_ALL": "C",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
}
_FILTERS = (*_GIT, "config", "--show-scope", "--name-only", "--get-regexp", r"^filter\.")
_LOG = (*_GIT, "log", f"-{_COMMITS}", "--no-color", "--no-decorate", "--format=%h %s")
_STATUS = (
    *_GIT,
    *("status", "--porcelain=v2", "--branch", "-z", "--ignore-submodules=all", "--no-renames"),
)


class GitContext(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a repository.

    ``head`` is the short commit id, empty before the first commit. ``changes`` are
    the first of ``changed`` paths, as ``git status --short`` writes them. Where
    ``changed`` is None, nobody looked, and the branch is unknown too; otherwise an
    empty ``branch`` is a detached head. ``commits`` are the latest, newest first.
    """

    branch: str = ""
    head: str = ""
    changed: int | None = None
    changes: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()


class Environment(msgspec.Struct, frozen=True, omit_defaults=True):
    """``date`` is ISO 8601; ``git`` is None outside a repository or where git is silent."""

    cwd: str
    platform: str
    date: str
    git: GitContext | None = None


async def gather_environment(*, cwd: str, date: str, processes: Processes) -> Environment:
    """Look around in ``cwd``. Never fails: what cannot be found out is left out."""
    system = os.uname()
    return Environment(
        cwd=cwd,
        platform=f"{system.sysname} {system.release} ({system.machine})",
        date=date,
        git=await _git_context(cwd, processes) if project_root(cwd) else None,
    )


async def _git_context(cwd: str, processes: Processes) -> GitContext | None:
    log, status = await asyncio.gather(
        _run(_LOG, cwd, processes), _status_without_programs(cwd, processes)
    )
    commits = tuple(line[:_MAX_WIDTH] for line in log.splitlines()) if log else ()
    if status is None:
        return GitContext(commits=commits, head=_first_word(commits)) if commits else None
    branch, changes = _parse_status(status)
    return GitContext(
        branch=branch,
        head=_first_word(commits),
        changed=len(changes),
        changes=tuple(changes[:_MAX_CHANGES]),
        commits=commits,
    )


async def _status_without_programs(cwd: str, processes: Processes) -> str | None:
    """``git status``, which compares contents by way of the filters that are configured.

    The user's own filters are the user's; those that the repository brings along
    are not run, so then there is no status.
    """
    filters = await _run(_FILTERS, cwd, processes, ok=(0, 1))
    if filters is None or any(
        line.startswith(("local\t", "worktree\t")) for line in filters.splitlines()
    ):
        return None
    return await _run(_STATUS, cwd, processes)


async def _run(
    argv: tuple[str, ...], cwd: str, processes: Processes, ok: tuple[int, ...] = (0,)
) -> str | None:
    result = await processes.run(Command(argv, cwd=cwd, env=_GIT_ENV, timeout=_TIMEOUT))
    if result.ended != "exited" or result.exit_code not in ok or result.omitted:
        return None
    return result.stdout.decode("utf-8", "replace")


def _parse_status(output: str) -> tuple[str, list[str]]:
    """Branch and changed paths of ``git status --porcelain=v2 --branch -z``.

    The format is that of git's manual page git-status(1), "Porcelain Format Version 2".
    """
    branch = ""
    changes = []
    for item in output.split("\0"):
        kind, _, rest = item.partition(" ")
        match kind:
            case "#":
                name, _, value = rest.partition(" ")
                if name == "branch.head" and value != "(detached)":
                    branch = value
            case "1":
                changes.append(_change(rest.split(" ", 7)))
            case "u":
                changes.append(_change(rest.split(" ", 9)))
            case "?":
                changes.append(f"?? {rest[:_MAX_WIDTH]}")
    return branch, changes


def _change(fields: list[str]) -> str:
    return f"{fields[0].replace('.', ' ')} {fields[-1][:_MAX_WIDTH]}"


def _first_word(lines: tuple[str, ...]) -> str:
    return lines[0].partition(" ")[0] if lines else ""
