"""Where a command works."""

from __future__ import annotations

import os

from claw.errors import ConfigError

__all__ = ["working_directory"]


def working_directory(path: str | None) -> str:
    """``--cwd``, else the current directory; absolute. Raises ``ConfigError``."""
    try:
        full = os.path.abspath(os.path.expanduser(path or ""))
    except OSError as error:
        raise ConfigError(
            "the current directory does not exist any more", hint="Change to another one."
        ) from error
    if not os.path.isdir(full):
        raise ConfigError(f"--cwd: there is no directory {full}")
    return full
