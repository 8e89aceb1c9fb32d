"""Which line of a JSON text each key and element stands on."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

__all__ = [
    "Lines",
    "Path",
    "begins_list",
    "dotted",
    "ends_open",
    "find_lines",
    "line_at",
    "line_too_deep",
]

Path = tuple[str | int, ...]

# Enough to walk a text that is known to be JSON; https://www.rfc-editor.org/rfc/rfc8259
TOKEN = r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+'

# The same for any text, in linear time: a string that does not end takes the rest.
NESTING = r'(?s)"(?:[^"\\]++|\\.)*+(?:(?P<end>")|\Z)|[{}\[\]]'


class Lines(msgspec.Struct, frozen=True):
    """Lines count from 1. ``repeated`` are keys that stand twice in one object."""

    by_path: Mapping[Path, int] = {}
    repeated: tuple[Path, ...] = ()

    def of(self, path: Path) -> int:
        """The line of a value, or of the nearest thing that holds it; 0 where unknown."""
        while path and path not in self.by_path:
            path = path[:-1]
        return self.by_path.get(path, 0)


def find_lines(text: str) -> Lines:
    """For a text that decodes as JSON."""
    found: dict[Path, int] = {}
    repeated: list[Path] = []
    at: list[str | int] = []  # the key or index in each open object or array
    key_next = False
    line, counted = 1, 0
    for token in re.finditer(TOKEN, text):
        line += text.count("\n", counted, token.start())
        counted = token.start()
        what = token[0]
        if key_next and what[0] == '"':
            at[-1] = msgspec.json.decode(what, type=str)
            if tuple(at) in found:
                repeated.append(tuple(at))
            found[tuple(at)] = line
            continue
        if what in "{[" or what not in "}],:":  # a value begins
            if at and isinstance(at[-1], int):
                found.setdefault(tuple(at), line)
            if what in "{[":
                at.append("" if what == "{" else 0)
                key_next = what == "{"
        elif what in "}]":
            at.pop()
            key_next = False
        elif what == ",":
            key_next = isinstance(at[-1], str)
            if isinstance(at[-1], int):
                at[-1] += 1
        else:
            key_next = False
    return Lines(found, tuple(repeated))


def line_too_deep(text: str, limit: int) -> int:
    """The line of the first object or array in more than ``limit`` others; 0 for none."""
    depth = 0
    for token in re.finditer(NESTING, text):
        if token[0] in "{[":
            depth += 1
            if depth > limit:
                return text.count("\n", 0, token.start()) + 1
        elif token[0] in "}]":
            depth -= 1
    return 0


def ends_open(text: str) -> bool:
    """Whether the text ends inside a string, object or array."""
    depth, closed = 0, True
    for token in re.finditer(NESTING, text):
        depth += (token[0] in "{[") - (token[0] in "}]")
        closed = token[0][0] != '"' or token["end"] is not None
    return depth > 0 or not closed


def begins_list(text: str, section: str, key: str) -> bool:
    """Whether ``{section: {key: [`` is in the text at its place, whatever else it is."""
    wanted = ["{", f'{{"{section}"', f'["{key}"']
    at: list[str] = []  # of each open object or array: its bracket, and the key before it
    before = ""
    for token in re.finditer(NESTING, text):
        if token[0] in "{[":
            at.append(token[0] + before)
            if at == wanted:
                return True
        elif token[0] in "}]":
            del at[-1:]
        before = token[0] if token[0][0] == '"' else ""
    return False


def line_at(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


def dotted(path: Path) -> str:
    """``permissions.deny[0]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
