"""The fold of many entries: what loading does, equal to the live one.

It can look back: ``Rewound`` goes on from an earlier state, which no single step of a
fold knows. The places that are gone back to are told before, so that one pass keeps
their states, however often and deep a session was rewound.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from claw.sessions.record import Record
from claw.types.entries import Checkpointed, Entry, Rewound, TurnStarted, UserMessaged
from claw.types.messages import text_of
from claw.types.session import SessionState, TurnPoint

__all__ = ["Folding", "NeedsPast", "fold_records", "targets", "turn_points"]


class NeedsPast(Exception):
    """A ``Rewound`` came, and nobody said before that its past would be needed."""


class Folding:
    """Folds records one by one into ``state``. ``past`` are the places to be gone back to."""

    def __init__(self, past: Iterable[int] = ()) -> None:
        self.state = SessionState()
        self._pending = sorted(set(past))
        self._past: dict[int, SessionState] = {}

    def add(self, record: Record) -> None:
        """Raises ``NeedsPast``, and what ``SessionState.fold`` raises."""
        while self._pending and self._pending[0] < record.seq:
            self._past[self._pending.pop(0)] = self.state
        entry = record.entry
        self.state = self.state.fold(entry)
        if isinstance(entry, Rewound) and entry.to < record.seq:
            if entry.to not in self._past:
                raise NeedsPast
            self.state = self.state.rewound_to(self._past[entry.to])


def fold_records(read: Callable[[], Iterable[Record]]) -> SessionState:
    """The state after all records; ``read`` may be called again."""
    try:
        return _folded(read(), ())
    except NeedsPast:
        return _folded(read(), targets(record.entry for record in read()))


def targets(entries: Iterable[Entry]) -> list[int]:
    """The places that are gone back to."""
    return [entry.to for entry in entries if isinstance(entry, Rewound)]


def _folded(records: Iterable[Record], past: Iterable[int]) -> SessionState:
    folding = Folding(past)
    for record in records:
        folding.add(record)
    return folding.state


def turn_points(records: Iterable[Record]) -> tuple[TurnPoint, ...]:
    """What ``Journal.turns`` gives."""
    points: list[TurnPoint] = []
    before: list[int] = []  # of each point: the place in ``points`` of the one before it, or -1
    places: list[tuple[int, int]] = []  # since which record, which point is the last
    last, begun = -1, None
    for record in records:
        match record.entry:
            case TurnStarted(turn=turn):
                begun = TurnPoint(turn, record.seq - 1, record.at, "")
            case UserMessaged(content=content) if begun is not None:
                points.append(replace(begun, prompt=text_of(content)))
                before.append(last)
                last, begun = len(points) - 1, None
                places.append((record.seq, last))
            case Checkpointed(call_id=str(call), path=path) if call and last >= 0:
                files = dict.fromkeys((*points[last].files, path))
                points[last] = replace(points[last], files=tuple(files))
            case Rewound(to=to) if to < record.seq:
                at = bisect_right(places, to, key=lambda place: place[0])
                last = places[at - 1][1] if at else -1
                places.append((record.seq, last))
    return tuple(points[at] for at in reversed([*_back(before, last)]))


def _back(before: list[int], last: int) -> Iterator[int]:
    while last >= 0:
        yield last
        last = before[last]
