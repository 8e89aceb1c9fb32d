"""Where the project begins."""

from __future__ import annotations

import os

__all__ = ["project_root"]


def project_root(cwd: str) -> str | None:
    """The nearest directory at or above ``cwd`` that holds a ``.git``, None without one."""
    directory = os.path.abspath(cwd)
    while True:
        if os.path.lexists(os.path.join(directory, ".git")):
            return directory
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent
