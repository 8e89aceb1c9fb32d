"""``Recorder``: journal, then fold, then tell. The only way a session's state changes."""

from __future__ import annotations

from claw.errors import SessionError
from claw.ports import EventSink, Journal
from claw.types.entries import KnownEntry, Rewound
from claw.types.events import Delta, Notice
from claw.types.session import SessionState

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

    def record(self, entry: KnownEntry, *, sync: bool = False) -> None:
        """Make a fact durable and let it count. Raises ``SessionError``: then it does not."""
        self.place = self._journal.append(entry, sync=sync)
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
        except SessionError as error:
            self._sink.emit(Notice("journal", "error", f"{error.message} {error.hint}".strip()))
        self.state = self.state.fold(entry)
        self._sink.emit(entry)

    def tell(self, delta: Delta) -> None:
        """Show progress; nothing remembers it."""
        self._sink.emit(delta)
