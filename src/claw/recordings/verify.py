"""What a replay made, against what was recorded: the first place where they differ."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from claw.errors import ReplayMismatch
from claw.recordings.trajectory import Names, plain
from claw.types.entries import KnownEntry, PromptInstalled

__all__ = ["Difference", "Replayed", "compare", "missing", "same_place", "window"]

MOST = 1_200
"""Characters of a value that are shown."""
AROUND = 200
_KEYS = ("call_id", "event", "step", "attempt")
Show = Callable[[str], str | None]
"""The text of a blob, None where it cannot be had."""


class Difference(msgspec.Struct, frozen=True):
    """``turn`` and ``step`` count from 1; step 0 is before the first request of the turn.

    ``entry`` is the kind of the recorded entry, ``field`` where in it, with dots and
    brackets. Values are text, cut to what lies around the first character that differs.
    """

    turn: int
    step: int
    entry: str
    field: str
    expected: str
    actual: str

    def __str__(self) -> str:
        return f"turn {self.turn}, step {self.step}: {self.entry}.{self.field}"

    @property
    def diff(self) -> str:
        """A unified diff of the two values."""
        lines = difflib.unified_diff(
            self.expected.splitlines(), self.actual.splitlines(), "recorded", "replayed",
            lineterm="", n=2,
        )  # fmt: skip
        return "\n".join(lines)


def compare(
    recorded: KnownEntry, made: KnownEntry, *, names: Names, ignored: Collection[str], show: Show
) -> tuple[str, str, str] | None:
    """The first field that differs, and its two values; None where nothing does.

    Durations and the fields ``ignored`` do not count. ``names`` are as for trajectories.
    """
    if recorded == made:
        return None
    expected, actual = plain(recorded, names, ignored), plain(made, names, ignored)
    found = _first(expected, actual, "")
    if found is None:
        return None
    field, old, new = found
    if isinstance(recorded, PromptInstalled) and field in ("system", "tools", "rules", "hooks"):
        old, new = show(str(old)) or old, show(str(new)) or new
    return field, *window(_text(old), _text(new))


def missing(recorded: KnownEntry, made: KnownEntry | None) -> tuple[str, str, str]:
    """As ``compare``, where the kinds are not the same, or nothing was made."""
    kind = msgspec.to_builtins(made)["kind"] if made is not None else "nothing"
    return "kind", msgspec.to_builtins(recorded)["kind"], kind


def same_place(recorded: KnownEntry, made: KnownEntry) -> bool:
    """Claims that both tell of the same thing, whatever they tell."""
    if type(recorded) is not type(made):
        return False
    return all(getattr(recorded, key, None) == getattr(made, key, None) for key in _KEYS)


def _first(expected: Any, actual: Any, at: str) -> tuple[str, Any, Any] | None:
    if isinstance(expected, dict) and isinstance(actual, dict):
        keys = [*expected, *(key for key in actual if key not in expected)]
        parts = [(f"{at}.{key}" if at else str(key), key) for key in keys]
        for name, key in parts:
            if found := _first(expected.get(key), actual.get(key), name):
                return found
        return None
    if isinstance(expected, list) and isinstance(actual, list):
        for number in range(max(len(expected), len(actual))):
            old = expected[number] if number < len(expected) else None
            new = actual[number] if number < len(actual) else None
            if found := _first(old, new, f"{at}[{number}]"):
                return found
        return None
    if isinstance(expected, float) and isinstance(actual, int | float):
        return None if abs(expected - actual) < 1e-9 else (at, expected, actual)
    return None if expected == actual else (at, expected, actual)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "nothing" if value is None else msgspec.json.encode(value).decode("utf-8", "replace")


def window(old: str, new: str) -> tuple[str, str]:
    """Both cut to what lies around their first difference."""
    if len(old) <= MOST and len(new) <= MOST:
        return old, new
    pairs = enumerate(zip(old, new, strict=False))
    at = next((n for n, (a, b) in pairs if a != b), min(len(old), len(new)))
    begin = max(0, at - AROUND)
    return _cut(old, begin), _cut(new, begin)


def _cut(text: str, begin: int) -> str:
    piece = text[begin : begin + MOST]
    head = f"[... {begin} characters ...]" if begin else ""
    rest = len(text) - begin - len(piece)
    return f"{head}{piece}" + (f"[... {rest} characters ...]" if rest > 0 else "")


class Replayed(msgspec.Struct, frozen=True):
    """What came of a replay. ``live`` names the parts that were today's.

    ``differences`` are in order, one for each place; where it stopped at the first there is
    one at most. ``ended_early``: the recording ends in the middle of a turn (a killed
    process, a salvaged file). ``stale`` names what has changed since without being asked.
    """

    session_id: str
    turns: int
    steps: int
    live: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    ended_early: bool = False
    stale: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        return not self.differences

    def check(self) -> None:
        """Raises ``ReplayMismatch`` for the first difference."""
        if self.differences:
            first = self.differences[0]
            raise ReplayMismatch(
                f"the replay differs from the recording: {first}\n{first.diff}",
                turn=first.turn,
                step=first.step,
                field=f"{first.entry}.{first.field}",
            )
