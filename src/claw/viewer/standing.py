"""Which entries stand after all rewinds; pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from claw.types.entries import PromptInstalled, Rewound, SessionStarted
from claw.viewer.fold import Placed

__all__ = ["standing"]


def standing(records: Sequence[Placed]) -> list[Placed]:
    """The records of the conversation as it is at the end, in order.

    A rewind leaves out what came after its place, and one that undoes it brings that back.
    What stands before a conversation is no part of it, and stays.
    """
    places = [record.seq for record in records]
    before: list[int] = []  # of each record: the one that it goes on from
    last = -1
    for at, record in enumerate(records):
        entry = record.entry
        if isinstance(entry, Rewound) and entry.to < record.seq:
            last = bisect_right(places, entry.to, hi=at) - 1
        before.append(last)
        last = at
    kept = set()
    while last >= 0:
        kept.add(last)
        last = before[last]
    always = (SessionStarted, PromptInstalled)
    return [r for at, r in enumerate(records) if at in kept or isinstance(r.entry, always)]
