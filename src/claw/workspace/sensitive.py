"""Which files a file tool must not write, which deserve a question, which hold secrets.

Pure: on real paths. Names are compared without regard to case and without trailing
dots and spaces, because some file systems do the same.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise

__all__ = ["is_private", "why_obeyed", "why_protected"]

# Git runs hooks and configured programs; these tools obey their folders at the next start.
_FOLDERS = {
    ".git": "git's own directory",
    ".claw": "settings and hooks of claw",
    ".claude": "settings and hooks of a compatible tool",
    ".codex": "settings of a compatible tool",
    ".cursor": "settings of a compatible tool",
    ".gemini": "settings of a compatible tool",
}
_FILES = {
    ".gitmodules": "configuration of git",
    ".gitconfig": "configuration of git",
    ".mcp.json": "programs that compatible tools start",
}
# Beneath the home directory: what a shell, git, ssh or the desktop runs later.
_START_UP = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".inputrc",
    ".pam_environment",
    ".ssh",
    ".gnupg",
    ".config/fish",
    ".config/git",
    ".config/systemd",
    ".config/autostart",
    ".config/environment.d",
    "Library/LaunchAgents",
]
# What is written there runs, or is believed, at somebody's next step.
_OBEYED_FOLDERS = {
    ".husky": "git runs what is in it",
    ".vscode": "the editor runs and obeys what is in it",
    ".idea": "the editor runs and obeys what is in it",
}
_OBEYED_FILES = {
    ".envrc": "the shell runs it on entering the directory",
    ".pre-commit-config.yaml": "git runs what it names",
    ".npmrc": "the package manager obeys it",
    ".ripgreprc": "ripgrep obeys it and can run programs that it names",
    "claude.md": "agents obey it",
    "claude.local.md": "agents obey it",
    "agents.md": "agents obey it",
}
_PRIVATE_FILES = frozenset(
    [
        ".envrc",
        ".netrc",
        ".pgpass",
        ".git-credentials",
        ".pypirc",
        ".htpasswd",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
    ]
)
_PRIVATE_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".password-store"})
_EXAMPLES = (".example", ".sample", ".template", ".dist")


def why_protected(real: str, *, inside_of: str, home: str, guarded: Sequence[str] = ()) -> str:
    """Why file tools must not write to ``real``; empty where they may.

    ``inside_of`` is the workspace directory above ``real``, empty where it lies
    outside: a workspace may itself stand in a settings folder. ``guarded`` are more
    directories that nothing may write to. All are real paths.
    """
    parts = [_folded(part) for part in real.split("/")]
    own = parts[len(inside_of.rstrip("/").split("/")) if inside_of else 0 :]
    for part in (*own, *(part for part in parts if part == ".git")):
        if part in _FOLDERS:
            return _FOLDERS[part]
    if parts[-1] in _FILES:
        return _FILES[parts[-1]]
    for directory in guarded:
        if _beneath(real, directory):
            return f"{directory} belongs to git or to claw itself"
    if home and any(_beneath(real, os.path.join(home, name)) for name in _START_UP):
        return "it is run or obeyed when a shell, git or ssh starts"
    return ""


def why_obeyed(real: str, *, inside_of: str) -> str:
    """Why a person should see what is written to ``real``: a tool obeys it later. Else empty.

    ``inside_of`` as for ``why_protected``.
    """
    *folders, name = map(_folded, real[len(inside_of.rstrip("/")) :].split("/"))
    for folder in folders:
        if folder in _OBEYED_FOLDERS:
            return _OBEYED_FOLDERS[folder]
    if (".github", "workflows") in pairwise(folders):
        return "the build service runs it"
    if name.startswith(".yarnrc"):
        return _OBEYED_FILES[".npmrc"]
    return _OBEYED_FILES.get(name, "")


def is_private(real: str) -> bool:
    """Whether ``real`` holds secrets by convention: ``.env`` files, keys, credentials."""
    parts = [_folded(part) for part in real.split("/")]
    name = parts[-1]
    if name in _PRIVATE_FILES or not _PRIVATE_FOLDERS.isdisjoint(parts):
        return True
    return name == ".env" or (name.startswith(".env.") and not name.endswith(_EXAMPLES))


def _folded(part: str) -> str:
    return part.rstrip(" .").casefold() or part


def _beneath(real: str, directory: str) -> bool:
    return real == directory or real.startswith(directory.rstrip("/") + "/")
