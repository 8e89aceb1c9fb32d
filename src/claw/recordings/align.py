"""A recording beside its replay: entry by entry, what tells of the same thing in one pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

import msgspec

from claw.recordings.record import stands_between
from claw.recordings.verify import Played, Replayed, differing, ignored_in, place
from claw.types.entries import KnownEntry, PromptInstalled, StepRequested, TurnEnded

__all__ = ["Pair", "pairs"]

_Placed = tuple[int, KnownEntry]
"""An entry with its step; 0 is before the first request of the turn."""


class Pair(msgspec.Struct, frozen=True):
    """What was recorded and what was made in its place, None where there is nothing.

    ``fields`` are those that differ, with both values as plain data. ``reached`` claims that
    the replay came so far: else it tells nothing of this entry.
    """

    turn: int
    step: int
    recorded: KnownEntry | None
    made: KnownEntry | None
    fields: tuple[tuple[str, Any, Any], ...] = ()
    reached: bool = True

    @property
    def same(self) -> bool:
        return self.recorded is not None and self.made is not None and not self.fields


def pairs(report: Replayed) -> list[Pair]:
    """All of a replay, in order."""
    found: list[Pair] = []
    for turn, played in enumerate(report.played, 1):
        before = [*_between(turn, played)]
        if turn == 1 and report.system is not None:
            before = _told_anew(before, report.system)
        found += before
        found += _unreached(turn, played) if played.made is None else _turn(turn, played)
    return found


def _between(turn: int, played: Played) -> Iterator[Pair]:
    taken = played.made is not None or played.stopped
    for entry in played.before:
        stands = taken and stands_between(entry)
        yield Pair(turn, 0, entry, entry if stands else None, reached=taken)


def _told_anew(before: list[Pair], system: tuple[str, str]) -> list[Pair]:
    at = max(n for n, pair in enumerate(before) if isinstance(pair.recorded, PromptInstalled))
    entry = before[at].recorded
    before[at] = Pair(1, 0, entry, entry, (("system", *system),))
    return before


def _unreached(turn: int, played: Played) -> list[Pair]:
    return [Pair(turn, step, e, None, reached=False) for step, e in _in_steps(played.recorded)]


def _turn(turn: int, played: Played) -> list[Pair]:
    recorded, made = _in_steps(played.recorded), _in_steps(played.made or ())
    found: list[Pair] = []
    differed = False
    for tag, a, b, c, d in _matched(recorded, made):
        if tag != "equal":
            differed = True
            for old, new in zip_longest(recorded[a:b], made[c:d]):
                found += [Pair(turn, old[0], old[1], None)] if old else []
                found += [Pair(turn, new[0], None, new[1])] if new else []
            continue
        for (step, old), (_, new) in zip(recorded[a:b], made[c:d], strict=True):
            fields = _fields(old, new, played, differed=differed)
            differed = differed or bool(fields)
            found.append(Pair(turn, step, old, new, fields))
    return _cut(found) if played.stopped else found


def _in_steps(entries: Sequence[KnownEntry]) -> list[_Placed]:
    step, placed = 0, []
    for entry in entries:
        step = entry.step if isinstance(entry, StepRequested) else step
        placed.append((step, entry))
    return placed


def _matched(
    recorded: Sequence[_Placed], made: Sequence[_Placed]
) -> Sequence[tuple[str, int, int, int, int]]:
    old, new = [*map(_where, recorded)], [*map(_where, made)]
    return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def _where(placed: _Placed) -> tuple[object, ...]:
    """A turn ends after whatever step it does."""
    step, entry = placed
    return (0 if isinstance(entry, TurnEnded) else step), *place(entry)


def _fields(
    old: KnownEntry, new: KnownEntry, played: Played, *, differed: bool
) -> tuple[tuple[str, Any, Any], ...]:
    if old == new:
        return ()
    ignored = ignored_in(old, played.ignored, differed=differed)
    found = [*differing(old, new, names=played.names, ignored=ignored)]
    if any(name == "digests.messages" for name, _, _ in found):  # the earlier links say no more
        return tuple(field for field in found if not field[0].startswith("digests.before"))
    return tuple(found)


def _cut(found: list[Pair]) -> list[Pair]:
    """Nothing was looked for after the first difference, but for what it was found instead of."""
    end = 1 + max((n for n, pair in enumerate(found) if pair.made is not None), default=-1)
    if all(pair.same for pair in found[:end]):
        end += 1
    return found[:end] + [msgspec.structs.replace(pair, reached=False) for pair in found[end:]]
