"""Where git keeps the data of a working tree."""

from __future__ import annotations

import os

__all__ = ["linked_git_directory"]


def linked_git_directory(directory: str) -> str:
    """Where git keeps its data of ``directory`` if ``.git`` only points there.

    Worktrees and submodules have a file there (gitrepository-layout(5)); a worktree
    shares hooks and configuration with its repository.
    """
    dot = os.path.join(directory, ".git")
    if not os.path.isfile(dot):
        return os.path.realpath(dot) if os.path.islink(dot) else ""
    place = _pointer(dot, b"gitdir:")
    return place and (_pointer(os.path.join(place, "commondir"), b"") or place)


def _pointer(file: str, prefix: bytes) -> str:
    """The real path that a small file names, relative to its own directory."""
    if not os.path.isfile(file):  # a FIFO would be waited for
        return ""
    try:
        with open(file, "rb") as opened:
            text = opened.read(4096)
    except OSError:
        return ""
    if not text.startswith(prefix):
        return ""
    named = os.fsdecode(text.removeprefix(prefix).strip())
    return os.path.realpath(os.path.join(os.path.dirname(file), named))
