"""Which prompts are plainly a command line, as one types it into a shell."""

from __future__ import annotations

import re

from claw.models.offline.words import FOLDERS, is_file

__all__ = ["is_command"]

_ALONE = frozenset(["date", "df", "git", "id", "make", "ps", "pwd", "pytest", "uname", "whoami"])
_SUBCOMMANDS = {
    "git": "add blame branch checkout cherry-pick clean clone commit config describe diff fetch"
    " grep init log ls-files merge pull push rebase reflog remote reset restore rev-parse revert"
    " shortlog show stash status switch tag worktree",
    "npm": "audit ci exec install list ls outdated run start test update",
    "pnpm": "add exec install list run start test",
    "yarn": "add install run start test",
    "cargo": "add bench build check clean clippy doc fmt metadata run test tree update",
    "go": "build env fmt generate get list mod run test version vet",
    "docker": "build compose exec images logs ps run",
    "uv": "add lock pip run sync tool tree venv",
    "pip": "check freeze install list show",
    "make": "all bench build check ci clean coverage dev dist docs fmt format help install lint"
    " release run test tests typecheck",
}
_PROGRAMS = (
    "bash cat chmod cp curl diff du env head ls mkdir mv mypy node printenv pytest python python3"
    " rm ruby ruff sed sh sort stat tail tree uniq wc"
)
# "git log is empty": a sentence.
_PROSE = r"(?:and|are|but|does|do|fails?|failed|for|has|is|says|shows|the|was|were|with|works?)\b"


def is_command(text: str) -> bool:
    """Whether a program that everybody knows stands first, with what it takes behind it."""
    program, *arguments = text.split()
    if "?" in text or program != program.lower():
        return False
    if not arguments:
        return program in _ALONE
    first = arguments[0]
    if program == "echo":
        return True
    if program == "find":  # else an English word
        return first.startswith((".", "/")) and " -" in text
    if program in _SUBCOMMANDS:
        known = first in _SUBCOMMANDS[program].split() or first.startswith("-")
        return known and not (len(arguments) > 1 and re.match(_PROSE, arguments[1], re.I))
    if program not in _PROGRAMS.split():
        return False
    return first.startswith(("-", ".", "/", "~", "$", "'", '"', "*")) or any(
        is_file(argument) or argument in FOLDERS for argument in arguments[:2]
    )
