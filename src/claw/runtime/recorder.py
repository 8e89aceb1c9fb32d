"""``Recorder``: journal, then fold, then tell. The only way a session's state changes."""

from __future__ import annotations

import hashlib

import msgspec
from msgspec.structs import replace

from claw.errors import SessionError
from claw.ports import EventSink, Journal
from claw.types.entries import (
    HookFinished,
    KnownEntry,
    ReplyReceived,
    Rewound,
    ToolFinished,
    TurnEnded,
    TurnStarted,
)
from claw.types.events import Delta, Notice
from claw.types.session import SessionState
from claw.types.surrogates import mend_all

__all__ = ["Recorder"]


class Recorder:
    """Holds the state of a running session.

    An entry is durable before anybody acts on it, and what is loaded later is
    folded from the same entries: so the live state and the loaded one are equal.
    ``place`` is that of the last entry recorded here, 0 before there is one.
    """

    def __init__(self, journal: Journal, sink: EventSink, state: SessionState) -> None:
        self._journal = journal
        self._sink = sink
        self.state = state
        self.place = 0
        self._chained = b""

    def record(self, entry: KnownEntry, *, sync: bool = False) -> None:
        """Make a fact durable and let it count. Raises ``SessionError``: then it does not."""
        self.place = self._journal.append(entry, sync=sync)
        self._chain(entry)
        self.state = self.state.fold(entry)
        self._sink.emit(entry)

    def rewound(self, to: int, past: SessionState, *, files: bool) -> None:
        """Let the conversation go on as it was after entry ``to``, which is ``past``."""
        self.record(Rewound(to, files), sync=True)
        self.state = self.state.rewound_to(past)

    def conclude(self, entry: KnownEntry, *, sync: bool = False) -> None:
        """Record how something ended, also where the journal fails: it counts all the same.

        A journal that lacks such an entry loads as a turn that was interrupted.
        """
        try:
            self.place = self._journal.append(entry, sync=sync)
            self._chain(entry)
        except SessionError as error:
            self._sink.emit(Notice("journal", "error", f"{error.message} {error.hint}".strip()))
        self.state = self.state.fold(entry)
        self._sink.emit(entry)

    def sealed(self, ended: TurnEnded) -> TurnEnded:
        """The end of the turn with the digest of all that is on record of it."""
        digest = _link(self._chained, replace(ended, ms=0, cost=None))
        return replace(ended, digest=digest.hex())

    def _chain(self, entry: KnownEntry) -> None:
        match entry:
            case TurnStarted():
                self._chained = b""
            case ToolFinished() | HookFinished():
                entry = replace(entry, ms=0)
            case ReplyReceived(wire=wire) if wire:
                entry = replace(entry, wire="", wire_dialect="", wire_sizes="")
        self._chained = _link(self._chained, entry)

    def tell(self, delta: Delta) -> None:
        """Show progress; nothing remembers it."""
        self._sink.emit(delta)


def _link(before: bytes, entry: KnownEntry) -> bytes:
    try:
        data = msgspec.json.encode(entry)
    except UnicodeEncodeError:  # as it is written down
        data = msgspec.json.encode(mend_all(msgspec.to_builtins(entry)))
    return hashlib.sha256(before + data).digest()[:16]
