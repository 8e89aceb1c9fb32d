"""What a replay made, against what was recorded: the first place where they differ."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import msgspec

from claw.errors import ReplayMismatch
from claw.recordings.trajectory import WIRE, Names, plain
from claw.types.entries import (
    Digests,
    HookFinished,
    KnownEntry,
    PromptInstalled,
    ReplyReceived,
    TurnEnded,
)
from claw.types.messages import Message

__all__ = [
    "Difference",
    "Played",
    "Replayed",
    "compare",
    "differing",
    "first_message",
    "ignored_in",
    "missing",
    "place",
    "same_place",
    "window",
]

MOST = 1_200
"""Characters of a value that are shown."""
MOST_LINES = 60
"""Of a diff."""
AROUND = 200
TELLING = frozenset({"decision", "judged"})
"""Fields that say what the others only explain."""
_KEYS = ("call_id", "event", "step", "attempt")
Show = Callable[[str], str | None]
"""The text of a blob, or the command of a hook, by its digest; None where it cannot be had."""


class Difference(msgspec.Struct, frozen=True):
    """``turn`` and ``step`` count from 1; step 0 is before the first request of the turn.

    ``entry`` is the kind of the recorded entry, ``field`` where in it, with dots and
    brackets. Values are text, cut to what lies around the first character that differs.
    ``about`` names the call and the event of an entry that has them.
    """

    turn: int
    step: int
    entry: str
    field: str
    expected: str
    actual: str
    about: str = ""

    def __str__(self) -> str:
        return f"turn {self.turn}, step {self.step}: {self.entry}.{self.field}"

    @property
    def diff(self) -> str:
        """A unified diff of the two values, its first lines."""
        lines = [*difflib.unified_diff(
            self.expected.splitlines(), self.actual.splitlines(), "recorded", "replayed",
            lineterm="", n=2,
        )]  # fmt: skip
        more = [f"... {len(lines) - MOST_LINES} more lines"] if len(lines) > MOST_LINES else []
        return "\n".join([*lines[:MOST_LINES], *more])


def compare(
    recorded: KnownEntry, made: KnownEntry, *, names: Names, ignored: Collection[str], show: Show
) -> tuple[str, str, str] | None:
    """The first field that differs, and its two values; None where nothing does.

    Durations and the fields ``ignored`` do not count. ``names`` are as for trajectories.
    """
    if recorded == made:
        return None
    found = next(differing(recorded, made, names=names, ignored=ignored), None)
    if found is None:
        return None
    field, old, new = found
    if isinstance(recorded, PromptInstalled) and field in ("system", "tools", "rules", "hooks"):
        old, new = show(str(old)) or old, show(str(new)) or new
    elif isinstance(recorded, HookFinished) and field == "hook":
        commands = show(str(old)), show(str(new))
        old, new = commands if all(commands) and commands[0] != commands[1] else (old, new)
    return field, *window(_text(old), _text(new))


def differing(
    recorded: KnownEntry, made: KnownEntry, *, names: Names, ignored: Collection[str]
) -> Iterator[tuple[str, Any, Any]]:
    """Each field that differs, with its two values as plain data, None where there is none."""
    found = _differing(plain(recorded, names, ignored), plain(made, names, ignored), "")
    return iter(sorted(found, key=lambda field: field[0] not in TELLING))


def first_message(
    recorded: Digests, made: Digests, sent: Sequence[Message]
) -> tuple[str, str, str] | None:
    """The first message of a request that is not what it was, as ``compare`` does.

    ``sent`` are the messages ``made`` was taken of. None where the recording does not tell.
    """
    expected, actual = ((*digests.before, digests.messages) for digests in (recorded, made))
    known = min(len(expected), len(actual), len(sent))
    pairs = zip(expected[-known:], actual[-known:], sent[-known:], strict=True)
    for back, (old, new, message) in zip(range(known, 0, -1), pairs, strict=True):
        if old == new:
            continue
        if back == known < len(sent):
            return None
        told = f"another message, with which the digest is {old}"
        return f"messages[{len(sent) - back}]", *window(told, _text(msgspec.to_builtins(message)))
    return None


def ignored_in(
    recorded: KnownEntry, ignored: Collection[str], *, differed: bool
) -> Collection[str]:
    """A turn's digest tells nothing where the turn ``differed`` before, or it was not made.

    The raw bytes of a reply are what it is made of, and not made again.
    """
    if isinstance(recorded, ReplyReceived):
        return {*ignored, *WIRE}
    if isinstance(recorded, TurnEnded) and (differed or not recorded.digest):
        return {*ignored, "digest"}
    return ignored


def missing(recorded: KnownEntry, made: KnownEntry | None) -> tuple[str, str, str]:
    """As ``compare``, where the kinds are not the same, or nothing was made."""
    kind = msgspec.to_builtins(made)["kind"] if made is not None else "nothing"
    return "kind", msgspec.to_builtins(recorded)["kind"], kind


def same_place(recorded: KnownEntry, made: KnownEntry) -> bool:
    """Claims that both tell of the same thing, whatever they tell."""
    return place(recorded) == place(made)


def place(entry: KnownEntry) -> tuple[object, ...]:
    """What an entry tells of: its kind, with its call, event, step and attempt."""
    return type(entry), *(getattr(entry, key, None) for key in _KEYS)


def _differing(expected: Any, actual: Any, at: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            name = f"{at}.{key}" if at else str(key)
            yield from _differing(expected.get(key), actual.get(key), name)
    elif isinstance(expected, list) and isinstance(actual, list):
        for number in range(max(len(expected), len(actual))):
            old = expected[number] if number < len(expected) else None
            new = actual[number] if number < len(actual) else None
            yield from _differing(old, new, f"{at}[{number}]")
    elif isinstance(expected, float) and isinstance(actual, int | float):
        if abs(expected - actual) >= 1e-9:
            yield at, expected, actual
    elif expected != actual:
        yield at, expected, actual


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


class Played(msgspec.Struct, frozen=True):
    """One turn as it was recorded, and what the replay made of it.

    ``before`` is what stands between it and the turn before: it is taken as it stands.
    ``made`` is None where the turn was not replayed; ``stopped`` claims that it was only to the
    first difference. ``names`` and ``ignored`` are those it was compared with.
    """

    before: tuple[KnownEntry, ...]
    recorded: tuple[KnownEntry, ...]
    made: tuple[KnownEntry, ...] | None = None
    stopped: bool = False
    names: Names = ()
    ignored: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        made = "none" if self.made is None else len(self.made)
        return f"Played({len(self.recorded)} entries, {made} made)"


class Replayed(msgspec.Struct, frozen=True):
    """What came of a replay. ``live`` names the parts that were today's.

    ``differences`` are in order, one for each place; where it stopped at the first there is
    one at most. ``missing_from`` is the place of the first record that is not there, where one is
    missing in the middle. ``ended_early``: the recording ends in the middle of a turn (a killed
    process, a salvaged file). ``edited`` is the first line whose checksum does not fit its content.
    ``stale`` names what has changed since without being asked. ``played`` is every turn of the
    recording, for looking at both side by side; ``system`` the system prompt as recorded and as
    of today, where they differ.
    """

    session_id: str
    turns: int
    steps: int
    live: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    ended_early: bool = False
    missing_from: int | None = None
    edited: int | None = None
    stale: tuple[str, ...] = ()
    played: tuple[Played, ...] = ()
    system: tuple[str, str] | None = None

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
