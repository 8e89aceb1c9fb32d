"""The files that a hook's command names: what it does may change with them."""

from __future__ import annotations

import hashlib
import os
import re
import shlex

__all__ = ["script_digests"]

_OPERATORS = "();<>|&\n"
LONGEST = 1024 * 1024
"""Bytes; larger files are programs, not scripts."""


def script_digests(command: str, *, cwd: str, home: str) -> dict[str, str]:
    """SHA-256 by the word of the command: the first file of each of its parts.

    In the workspace and in the home; what the output goes to is no script.
    """
    found: dict[str, str] = {}
    looking, into = True, False
    for word in _words(command):
        if word and set(word) <= set(_OPERATORS):
            looking, into = looking or not set(word) <= set("<>"), ">" in word
        elif looking and not into and (digest := _digest(word, cwd, home)):
            found[word] = digest
            looking = False
        else:
            into = False
    return found


def _words(command: str) -> list[str]:
    """With the shell's operators as words of their own."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:  # a quote without its end
        return command.split()


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
