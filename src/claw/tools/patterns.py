"""Glob patterns over relative paths: ``* ? [] {a,b} **``.

A pattern without a slash matches a name at any depth, one with a slash matches
from the top (``./`` says so of a mere name), as in gitignore(5). Translated to
one regular expression, so nothing is ever expanded.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from claw.errors import ToolFailed

__all__ = ["beneath", "literal_prefix", "path_matcher"]

_LONGEST = 1000  # characters of a pattern
_MOST_STARS = 20  # each may backtrack over a path
_SPECIAL = frozenset("*?[{")


def literal_prefix(pattern: str) -> tuple[str, str]:
    """Leading directories without wildcards, and the rest: ``a/b/*.py`` is ``a/b`` and ``*.py``.

    The rest is empty where there is no wildcard in a directory's place or the name.
    """
    parts = pattern.split("/")
    count = next((i for i, part in enumerate(parts) if _SPECIAL & set(part)), len(parts))
    prefix = "/".join(parts[:count])
    return (prefix or "/" if pattern.startswith("/") else prefix), "/".join(parts[count:])


def beneath(path: str, directory: str) -> str:
    """``path`` relative to ``directory``, both spelled from the same place."""
    return path if directory == "." else path.removeprefix(directory.rstrip("/") + "/")


def path_matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a relative path matches. Raises ``ToolFailed`` for a pattern that cannot be used."""
    if len(pattern) > _LONGEST or pattern.count("*") > _MOST_STARS:
        raise ToolFailed(f"The glob pattern is too complex: {pattern[:100]}")
    anchored = "/" in pattern.rstrip("/")
    pattern = pattern.removeprefix("./")
    try:
        compiled = re.compile(("" if anchored else "(?:.*/)?") + _translated(pattern), re.DOTALL)
    except re.error as error:
        raise ToolFailed(f"The glob pattern {pattern} is not valid: {error}.") from error
    return lambda path: compiled.fullmatch(path) is not None


def _translated(pattern: str) -> str:
    result: list[str] = []
    braces = 0
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at):
            result.append("(?:.*/)?")
            at += 3
            continue
        if pattern.startswith("**", at):
            result.append(".*")
            at += 2
            continue
        if char == "[" and (closing := pattern.find("]", at + 2)) > 0:
            result.append(_character_class(pattern[at + 1 : closing]))
            at = closing + 1
            continue
        if char == "\\" and at + 1 < len(pattern):
            at += 1
            result.append(re.escape(pattern[at]))
        elif char == "{" and "}" in pattern[at:]:
            braces += 1
            result.append("(?:")
        elif char == "}" and braces:
            braces -= 1
            result.append(")")
        elif char == "," and braces:
            result.append("|")
        else:
            result.append({"*": "[^/]*", "?": "[^/]"}.get(char) or re.escape(char))
        at += 1
    return "".join(result) + ")" * braces


def _character_class(inside: str) -> str:
    negated = inside[0] in "!^"
    listed = inside[1:] if negated else inside
    escaped = listed.replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
    return f"(?!/)[{'^' if negated else ''}{escaped}]"
