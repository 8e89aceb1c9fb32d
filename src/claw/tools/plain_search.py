"""Searching without ripgrep: slower, with Python's expressions, blind to ignore files."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from claw.errors import ToolFailed
from claw.ports import Workspace
from claw.tools.encoding import decode_text
from claw.tools.patterns import beneath, path_matcher
from claw.tools.query import SECRETS, WIDEST, Found, Hit, Query

__all__ = ["PlainSearch"]

_MOST_FILES = 20_000
_MOST_BYTES = 2 * 1024 * 1024  # of a file that is searched
_NOTE = "ripgrep is not installed: searched slowly, and ignored files too"


class PlainSearch:
    """A ``Searcher`` that reads every file through the workspace."""

    def __init__(self, workspace: Workspace, hidden: Callable[[str], bool]) -> None:
        self._hidden = hidden
        self._workspace = workspace

    async def files(self, path: str, matches: Callable[[str], bool]) -> Found:
        listed = self._workspace.files(path, limit=_MOST_FILES)
        hits = [
            Hit(file) for file in listed if matches(beneath(file, path)) and not self._hidden(file)
        ]
        return Found(hits, notes=[_NOTE])

    async def lines(self, query: Query) -> Found:
        if query.type:
            raise ToolFailed("`type` needs ripgrep, which is not installed. Use `glob`.")
        flags = re.IGNORECASE if query.ignore_case else 0
        flags |= re.DOTALL | re.MULTILINE if query.multiline else 0
        try:
            pattern = re.compile(query.pattern, flags)
        except re.error as error:
            raise ToolFailed(f"The search failed: the pattern is not valid: {error}.") from error
        wanted, is_secret = query.path_filter(), path_matcher(SECRETS)
        found = Found(notes=[_NOTE])
        for path in self._workspace.files(query.path, limit=_MOST_FILES):
            await asyncio.sleep(0)  # other tasks, and a cancellation, get their turn
            if not wanted(path) or self._hidden(path):
                continue
            if not query.private and any(map(is_secret, _prefixes(path.lower()))):
                continue
            try:
                data = self._workspace.read(path, limit=_MOST_BYTES).data
            except ToolFailed:  # too large, forbidden, or gone meanwhile
                continue
            decoded = decode_text(data)
            if decoded is not None:
                _search_text(path, decoded.text.removesuffix("\n"), pattern, query, found)
        return found


def _prefixes(path: str) -> list[str]:
    """The path and the directories above it."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _search_text(
    path: str, text: str, pattern: re.Pattern[str], query: Query, found: Found
) -> None:
    lines = text.split("\n")
    occurrences, hit = (_over_lines if query.multiline else _line_by_line)(text, pattern)
    if not hit:
        return
    if query.mode != "content":
        found.hits.append(Hit(path, occurrences))
        return
    shown = {n for at in hit for n in range(at - query.before, at + query.after + 1)}
    last = -2
    for number in sorted(shown & set(range(len(lines)))):
        if (query.before or query.after) and number != last + 1 and found.hits:
            found.gaps.add(len(found.hits))
        last = number
        line = lines[number].rstrip("\r")
        line = line if len(line) <= WIDEST else f"{line[:WIDEST]} [...]"
        found.hits.append(Hit(path, number + 1, line, number in hit))


def _line_by_line(text: str, pattern: re.Pattern[str]) -> tuple[int, set[int]]:
    """How often, and in which lines (from 0), the pattern occurs."""
    counts = [sum(1 for _ in pattern.finditer(line)) for line in text.split("\n")]
    return sum(counts), {number for number, count in enumerate(counts) if count}


def _over_lines(text: str, pattern: re.Pattern[str]) -> tuple[int, set[int]]:
    spans = [match.span() for match in pattern.finditer(text)]
    hit: set[int] = set()
    for start, end in spans:
        first = text.count("\n", 0, start)
        hit.update(range(first, first + text.count("\n", start, max(start, end - 1)) + 1))
    return len(spans), hit
