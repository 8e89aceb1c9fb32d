"""The files that a hook's command names: what it does may change with them."""

from __future__ import annotations

import hashlib
import os
import re
import shlex

__all__ = ["script_digests"]

LONGEST = 1024 * 1024
"""Bytes; larger files are programs, not scripts."""


def script_digests(command: str, *, cwd: str, home: str) -> dict[str, str]:
    """SHA-256 by the word of the command, of files in the workspace and in the home."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    found = ((word, _digest(word, cwd, home)) for word in words)
    return {word: digest for word, digest in found if digest}


def _digest(word: str, cwd: str, home: str) -> str:
    """Blank for what is no such file."""
    path = re.sub(r"\$\{?(?:CLAUDE|CLAW)_PROJECT_DIR\}?", lambda _: cwd, word)
    path = re.sub(r"^~(?=/)|^\$\{?HOME\}?(?=/)", lambda _: home, path)
    try:
        real = os.path.realpath(os.path.join(cwd, path))
        homes = [os.path.realpath(place) + os.sep for place in (cwd, home) if place]
        own = any(real.startswith(place) for place in homes)
        if not own or not os.path.isfile(real) or os.path.getsize(real) > LONGEST:
            return ""
        with open(real, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except (OSError, ValueError):  # a name with a NUL in it, for one
        return ""
