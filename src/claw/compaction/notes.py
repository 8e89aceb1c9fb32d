"""What stands in place of the messages that a compaction took away. Pure.

Notes are a text with fixed headings, so that the next compaction can read them back and
go on with them: they never pile up inside each other, whoever wrote the summary in them.
"""

from __future__ import annotations

import re

import msgspec

from claw.compaction.telling import Tokens, clipped, one_line

__all__ = ["Notes", "fit_requests", "parse", "render"]

FIRST = "Earlier messages of this conversation were replaced by these notes."
SUMMARY = "# Summary"
REQUESTS = "# Earlier requests of the user, word for word, oldest first"
WHERE = "# Where the full text is"
_HEADINGS = (FIRST, SUMMARY, REQUESTS, WHERE)
_BETWEEN = "--"
SHORTEST = 60
"""Tokens; less of a request than that is no use."""


class Notes(msgspec.Struct, frozen=True):
    """``requests`` are the user's own words, oldest first; ``lost`` counts older ones."""

    summary: str = ""
    requests: tuple[str, ...] = ()
    lost: int = 0


def render(notes: Notes, where: str) -> str:
    """The text of notes; ``where`` says how to get at what was replaced."""
    parts = [FIRST, f"{SUMMARY}\n{_without_headings(notes.summary.strip())}"]
    if notes.requests or notes.lost:
        lost = [f"({notes.lost} older ones are left out.)"] if notes.lost else []
        quoted = f"\n{_BETWEEN}\n".join(map(_quoted, notes.requests))
        parts.append("\n".join([REQUESTS, *lost, *([quoted] if quoted else [])]))
    if where:
        parts.append(f"{WHERE}\n{where}")
    return "\n\n".join(parts)


def parse(text: str) -> Notes | None:
    """Notes from their text; None for any other text."""
    lines = text.split("\n")
    if lines[0] != FIRST:
        return None
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines[1:]:
        if line in _HEADINGS and line not in sections:
            current = sections[line] = []
        else:
            current.append(line)
    body = sections.get(REQUESTS, [])
    lost = re.fullmatch(r"\((\d+) older ones are left out\.\)", body[0]) if body else None
    requests = _unquoted(body[1:] if lost else body)
    summary = "\n".join(sections.get(SUMMARY, [])).strip()
    return Notes(summary, requests, int(lost[1]) if lost else 0)


def fit_requests(notes: Notes, most: int, tokens: Tokens) -> tuple[Notes, tuple[str, ...]]:
    """The newest requests within ``most`` tokens, and what is missing of the others."""
    kept: list[str] = []
    dropped: list[str] = []
    left = most
    for at in range(len(notes.requests) - 1, -1, -1):
        request = notes.requests[at]
        size = tokens(request)
        if size > left:
            if left < SHORTEST:
                gone = at + 1
                dropped.append(f"{gone} earlier request{'' if gone == 1 else 's'}")
                shortened = Notes(notes.summary, tuple(reversed(kept)), notes.lost + gone)
                return shortened, tuple(dropped)
            dropped.append(f"the middle of a request: {one_line(request, 60)}")
            request = clipped(request, left, tokens)
        kept.append(request)
        left -= size
    return Notes(notes.summary, tuple(reversed(kept)), notes.lost), tuple(dropped)


def _quoted(request: str) -> str:
    return "\n".join(f"> {line}" for line in request.split("\n"))


def _unquoted(lines: list[str]) -> tuple[str, ...]:
    requests: list[list[str]] = []
    for line in lines:
        if line == _BETWEEN or not requests:
            requests.append([])
        if line.startswith("> "):
            requests[-1].append(line[2:])
    return tuple("\n".join(request) for request in requests if request)


def _without_headings(text: str) -> str:
    """A summary may quote anything: a heading of ours in it becomes ordinary text."""
    return "\n".join(f"  {line}" if line in _HEADINGS else line for line in text.split("\n"))
