"""Directories that only the user may enter."""

from __future__ import annotations

import os

from claw.errors import SessionError

__all__ = ["make_private", "may_create"]

NO_PERSISTENCE_HINT = "Check the permissions and the free space, or use --no-session-persistence."


def make_private(path: str) -> None:
    """Make a directory and those above it, 0700 each; what exists stays as it is.

    Raises ``SessionError``.
    """
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        parent = os.path.dirname(path)
        if parent == path:
            break
        path = parent
    try:
        for directory in reversed(missing):
            try:
                os.mkdir(directory, 0o700)
            except FileExistsError:  # another process was first
                if not os.path.isdir(directory):
                    raise
    except OSError as error:
        raise SessionError(
            f"cannot make the directory {error.filename}: {error.strerror}",
            hint=NO_PERSISTENCE_HINT,
        ) from error


def may_create(path: str) -> bool:
    """Whether files can be made in a directory that may not exist yet; touches nothing."""
    while not os.path.exists(path):
        parent = os.path.dirname(path)
        if parent == path:
            return False
        path = parent
    return os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK)
