"""Short diffs of known changes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

__all__ = ["Span", "hunks", "whole_diff"]

_CONTEXT = 3
_MOST_HUNKS = 5
_MOST_LINES = 60  # of one hunk
_WIDEST = 300  # characters of a line that are shown
_MOST_DIFFED = 4000  # lines; difflib's cost grows with the square


class Span(msgspec.Struct, frozen=True):
    """``old`` at character ``start`` of the old text became ``new``."""

    start: int
    old: str
    new: str


def hunks(text: str, spans: Sequence[Span]) -> str:
    """A diff in unified form of replacements in ``text``, with a bound on its length."""
    shown: list[str] = []
    shift = 0
    for span in spans[:_MOST_HUNKS]:
        lines, grown = _hunk(text, span, shift)
        shown += lines
        shift += grown
    if len(spans) > _MOST_HUNKS:
        shown.append(f"... and {len(spans) - _MOST_HUNKS} more like these")
    return "\n".join(shown)


def whole_diff(before: str, after: str) -> str:
    """A unified diff of two texts; a summary where they are too long to compare."""
    import difflib

    old, new = before.split("\n"), after.split("\n")
    if old[-1] == new[-1] == "":  # the end of the last line, not a line of its own
        old.pop()
        new.pop()
    if len(old) + len(new) > _MOST_DIFFED:
        return f"{len(old):,} lines replaced by {len(new):,}"
    lines = list(difflib.unified_diff(old, new, n=_CONTEXT, lineterm=""))[2:]
    return "\n".join(_cut(line) for line in lines)


def _hunk(text: str, span: Span, shift: int) -> tuple[list[str], int]:
    """Whole lines around a span; ``shift`` is by how many lines the text before it has grown."""
    first = text.rfind("\n", 0, span.start) + 1
    end = span.start + len(span.old)
    last = text.find("\n", end)
    last = len(text) if last < 0 else last
    old = text[first:last].split("\n")
    new = (text[first : span.start] + span.new + text[end:last]).split("\n")
    grown = len(new) - len(old)
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    tail = 0
    while tail < min(len(old), len(new)) - same and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    before = text[:first].split("\n")[:-1][-_CONTEXT:] + old[:same]
    rest = text[last + 1 :]
    below = rest.removesuffix("\n").split("\n", _CONTEXT)[:_CONTEXT] if rest else []
    after = old[len(old) - tail :] + below
    before, after = before[-_CONTEXT:], after[:_CONTEXT]
    removed, added = old[same : len(old) - tail], new[same : len(new) - tail]
    line = text.count("\n", 0, first) + 1 + same
    context = [*before, *after]
    start = line - len(before)
    head = (
        f"@@ -{start},{len(context) + len(removed)} +{start + shift},{len(context) + len(added)} @@"
    )
    body = [
        *(" " + line for line in before),
        *("-" + line for line in removed),
        *("+" + line for line in added),
        *(" " + line for line in after),
    ]
    if len(body) > _MOST_LINES:
        half = _MOST_LINES // 2
        body = [*body[:half], f"... {len(body) - 2 * half} lines ...", *body[-half:]]
    return [head, *map(_cut, body)], grown


def _cut(line: str) -> str:
    line = line.rstrip("\r")
    return line if len(line) <= _WIDEST else line[:_WIDEST] + "..."
